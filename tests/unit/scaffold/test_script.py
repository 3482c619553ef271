"""Reading a training script: flags become hyperparameters, what cannot be told becomes a note, nothing runs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from trainchart.errors import ToolError
from trainchart.scaffold.script import CodeFolder, ScriptFacts, read_script
from trainchart.scaffold.tensorflow_1 import TENSORFLOW_1


def read(text: str) -> ScriptFacts:
    return read_script(text, "train.py")


def hyperparameters(text: str) -> dict[str, dict[str, Any]]:
    facts = read(text)
    assert facts.notes == ()
    return {f.name: f.hyperparameter.model_dump(by_alias=True, exclude_defaults=True) for f in facts.flags}


def words(facts: ScriptFacts) -> list[str]:
    return [word for flag in facts.flags for word in flag.words]


ARGPARSE = [
    (
        '"--learning_rate", type=float, default=1e-3, help="Step size."',
        {"learningRate": {"type": "number", "default": 0.001, "description": "Step size."}},
    ),
    ('"-b", "--batch-size", type=int, default=2 ** 6', {"batchSize": {"type": "integer", "default": 64}}),
    ('"--epochs", type=int, default=EPOCHS', {"epochs": {"type": "integer", "default": 10}}),
    ('"--offset", type=float, default=-1', {"offset": {"type": "number", "default": -1}}),
    ('"--momentum", type=float, default="0.9"', {"momentum": {"type": "number", "default": 0.9}}),
    ('"--name", default="mine"', {"name": {"type": "string", "default": "mine"}}),
    ('"--model.lr", type=float, default=1', {"modelLr": {"type": "number", "default": 1}}),
    (
        '"--optimizer", default="sgd", choices=["sgd", "adam"]',
        {"optimizer": {"type": "string", "default": "sgd", "enum": ["sgd", "adam"]}},
    ),
    (
        '"--layers", type=int, default=2, choices=range(1, 5)',
        {"layers": {"type": "integer", "default": 2, "minimum": 1, "maximum": 4}},
    ),
]


@pytest.mark.parametrize(("arguments", "expected"), ARGPARSE)
def test_argparse(arguments: str, expected: dict[str, Any]) -> None:
    assert hyperparameters(f"EPOCHS = 10\nparser.add_argument({arguments})\n") == expected


ABSL = [
    (
        'flags.DEFINE_float("learning_rate", 0.1, "Step size.", lower_bound=0.0)',
        {"learningRate": {"type": "number", "default": 0.1, "description": "Step size.", "minimum": 0.0}},
    ),
    ('tf.app.flags.DEFINE_integer("steps", 100, "")', {"steps": {"type": "integer", "default": 100}}),
    (
        'flags.DEFINE_float("rate", 0.1, "Dropped.", 0.0, 0.9)',
        {"rate": {"type": "number", "default": 0.1, "description": "Dropped.", "minimum": 0.0, "maximum": 0.9}},
    ),
    ('flags.DEFINE_bool("augment", True, "")', {"augment": {"type": "boolean", "default": True}}),
    (
        'flags.DEFINE_enum("model", "small", ["small", "large"], "Size.")',
        {"model": {"type": "string", "default": "small", "description": "Size.", "enum": ["small", "large"]}},
    ),
]


@pytest.mark.parametrize(("line", "expected"), ABSL)
def test_absl(line: str, expected: dict[str, Any]) -> None:
    assert hyperparameters(line) == expected


CLICK = [
    ('@click.option("--lr", default=0.1)\ndef f(lr): ...', {"lr": {"type": "number", "default": 0.1}}),
    (
        '@click.option("--lr", type=click.FloatRange(0, 1), default=0.1)\ndef f(lr): ...',
        {"lr": {"type": "number", "default": 0.1, "minimum": 0, "maximum": 1}},
    ),
    (
        '@click.option("--lr", type=click.FloatRange(0, 1, min_open=True))\ndef f(lr): ...',
        {"lr": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}},
    ),
    (
        '@click.option("--size", type=click.IntRange(1, max=9, max_open=True), default=2)\ndef f(size): ...',
        {"size": {"type": "integer", "default": 2, "minimum": 1, "exclusiveMaximum": 9}},
    ),
    # What is beyond the limits is taken for the limit, not refused.
    (
        '@click.option("--lr", type=click.FloatRange(0, 1, clamp=True), default=0.1)\ndef f(lr): ...',
        {"lr": {"type": "number", "default": 0.1}},
    ),
    (
        "@app.command()\ndef f(size: int = typer.Option(8, min=1, clamp=True)): ...",
        {"size": {"type": "integer", "default": 8}},
    ),
    (
        '@click.option("--kind", type=click.Choice(["a", "b"]), default="a", help="Which.")\ndef f(kind): ...',
        {"kind": {"type": "string", "default": "a", "description": "Which.", "enum": ["a", "b"]}},
    ),
    (
        'LR: float = typer.Option(0.5, help="Step.")\n@app.command()\ndef f(lr: float = LR): ...',
        {"lr": {"type": "number", "default": 0.5, "description": "Step."}},
    ),
    # click asks for a value of a boolean option that is not marked as a switch.
    (
        '@click.option("--shuffle", type=bool, default=False)\ndef f(shuffle): ...',
        {"shuffle": {"type": "boolean", "default": False}},
    ),
    (
        "@app.command()\ndef f(batch_size: int = typer.Option(8, min=1)): ...",
        {"batchSize": {"type": "integer", "default": 8, "minimum": 1}},
    ),
    (
        'def f(context: typer.Context, lr: Annotated[float, typer.Option(help="Step.")] = 0.5): ...\ntyper.run(f)',
        {"lr": {"type": "number", "default": 0.5, "description": "Step."}},
    ),
]


@pytest.mark.parametrize(("text", "expected"), CLICK)
def test_click_and_typer(text: str, expected: dict[str, Any]) -> None:
    assert hyperparameters(text) == expected


def test_hyperparameters_of_the_training_library_need_no_flag() -> None:
    text = (
        "STEPS = 10\n@dataclass(frozen=True)\nclass Settings(Hyperparameters):\n"
        '    """What may vary."""\n    learning_rate: float = 0.01\n    """Step size."""\n    max_steps: int = STEPS\n'
        '    augment: bool = True\n    loss: str = "mse"\nclass Other:\n    size: int = 1\n'
    )
    assert hyperparameters(text) == {
        "learningRate": {"type": "number", "default": 0.01, "description": "Step size."},
        "maxSteps": {"type": "integer", "default": 10},
        "augment": {"type": "boolean", "default": True},
        "loss": {"type": "string", "default": "mse"},
    }
    assert not any(flag.words for flag in read(text).flags)


UNREADABLE = [
    ('parser.add_argument("--steps", default=100)', "its value would arrive as text"),
    ('parser.add_argument("--lr", type=parse, default=1)', "its type= is not float, int or str"),
    ('parser.add_argument("--lr", **common)', "* or ** expression"),
    ('parser.add_argument("--kind", default="c", choices=["a", "b"])', "'c' is not one of a, b"),
    ('parser.add_argument("--2fast", type=int, default=1)', "its name cannot be a hyperparameter's"),
    ('parser.add_argument("--sep", default="a\\x07b")', "its default or one of its choices holds a control character"),
    (
        'parser.add_argument("--mark", default="a<no value>b")',
        "its default or one of its choices contains <no value>, which Helm removes",
    ),
    ('parser.add_argument("--sep", default="\\ud800")', "its default or one of its choices holds a control character"),
    (
        'parser.add_argument("--sep", default="a", choices=["a", "\\x7f"])',
        "its default or one of its choices holds a control character",
    ),
    ('flags.DEFINE_flag("sizes", [], "")', "DEFINE_flag is not read"),
    ('parser.add_argument("--fast", action="count")', "its action count is not read"),
    (
        'parser.add_argument("--fast", type=lambda text: text == "1", default=True)',
        "its type= is not float, int or str",
    ),
    ("class S(t.Hyperparameters):\n    sizes: list[int] = [1]", "its type is not float, int, str or bool"),
    ("class S(Hyperparameters):\n    size: int", "it has no default"),
    ("class S(Hyperparameters):\n    size: int = field(default=3)", "it is computed when the script runs"),
]


@pytest.mark.parametrize(("text", "reason"), UNREADABLE)
def test_what_cannot_be_told_is_a_note_with_its_line(text: str, reason: str) -> None:
    facts = read("\n\n" + text)
    assert facts.flags == ()
    (note,) = facts.notes
    assert note.startswith("train.py:")
    assert int(note.split(":")[1]) >= 3
    assert reason in note


REQUIRED = "; it is required, so the script does not start until code.command gives it a value"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('parser.add_argument("data_dir", help="Where.")', "data_dir is left to the script: it is an argument without"),
        ('parser.add_argument("sizes", nargs="+")', "sizes is left to the script: it is an argument without"),
        ('parser.add_argument("--data", required=True, type=parse)', "--data is left to the script: its type= is"),
        ('@click.argument("data")\ndef f(data): ...', "data is left to the script: it is an argument without"),
        ("@app.command()\ndef f(data: str): ...", "data is left to the script: it is an argument without"),
        (
            "@app.command()\ndef f(data: str = typer.Argument(...)): ...",
            "data is left to the script: it is an argument",
        ),
    ],
)
def test_flags_the_script_needs_are_marked_as_required(text: str, what: str) -> None:
    facts = read(text)
    assert facts.flags == ()
    (note,) = facts.notes
    assert what in note
    assert note.endswith(REQUIRED)


@pytest.mark.parametrize(
    "text",
    [
        'parser.add_argument("--data", required=True)',
        'flags.DEFINE_string("data", None, "", required=True)',
        'flags.DEFINE_string("data", None, "")\nflags.mark_flag_as_required("data")',
        'flags.DEFINE_string("data", None, "")\nflags.mark_flags_as_required(["data"])',
        'FOLDER = flags.DEFINE_string("data", None, "")\nflags.mark_flag_as_required(FOLDER)',
        'FOLDER = flags.DEFINE_string("data", None, "")\nNEEDED = [FOLDER]\nflags.mark_flags_as_required(NEEDED)',
        '@click.option("--data", required=True)\ndef f(data): ...',
        "@app.command()\ndef f(data: str = typer.Option(...)): ...",
        "@app.command()\ndef f(data: Annotated[str, typer.Option()]): ...",
        "def f(data): ...\nfire.Fire(f)",
    ],
)
def test_a_required_flag_is_a_hyperparameter_that_needs_a_value(text: str) -> None:
    facts = read(text)
    assert words(facts) == ["--data=$(TRAINCHART_HP_DATA?)"]
    (note,) = facts.notes
    assert note.endswith("--data is required: give hyperparameters.data a default in the spec, or set it")


@pytest.mark.parametrize(
    "text",
    [
        'parser.add_argument("data_dir", nargs="?")',
        '@click.argument("data", required=False)\ndef f(data): ...',
        '@app.command()\ndef f(data: str = typer.Argument("x")): ...',
    ],
)
def test_an_argument_that_may_be_missing_is_a_note_only(text: str) -> None:
    (note,) = read(text).notes
    assert note.endswith("is left to the script: it is an argument without a flag")


def test_a_required_flag_with_a_default_is_a_hyperparameter() -> None:
    text = 'parser.add_argument("--data", default="mnist", required=True)'
    assert hyperparameters(text) == {"data": {"type": "string", "default": "mnist"}}


@pytest.mark.parametrize(
    ("help_text", "shown"),
    [
        ("Share, 5%% (default: %(default)s).", "Share, 5% (default: 0.5)."),
        ("%(prog)s takes a %(type)s", "fit takes a float"),
        ("of %(unknown)s", "of %(unknown)s"),
        ("100%", "100%"),
        ("Shows <no value> for none.", "Shows <no-value> for none."),
    ],
)
def test_help_texts_are_filled_in_as_argparse_does(help_text: str, shown: str) -> None:
    script = f'p = ArgumentParser(prog="fit")\np.add_argument("--lr", type=float, default=0.5, help="{help_text}")'
    assert hyperparameters(script)["lr"]["description"] == shown


def test_help_texts_name_the_choices_and_the_script() -> None:
    text = 'p.add_argument("--kind", default="a", choices=["a", "b"], help="%(prog)s: %(choices)s")'
    assert hyperparameters(text)["kind"]["description"] == "train.py: a, b"


CLASSIC = "".join(
    f'flags.DEFINE_string("{name}", "", "")\n'
    for name in ("job_name", "ps_hosts", "worker_hosts", "train_dir", "logdir")
)


@pytest.mark.parametrize(
    ("more", "strategy"), [("", "between-graph-async"), ("tf.train.SyncReplicasOptimizer(o)", "between-graph-sync")]
)
def test_classic_flags_are_filled_by_the_launcher(more: str, strategy: str) -> None:
    facts = read(CLASSIC + 'flags.DEFINE_integer("task_index", 0, "")\n' + more)
    assert facts.references == {
        "--job_name": "$(TASK_TYPE)",
        "--ps_hosts": "$(PS_HOSTS)",
        "--worker_hosts": "$(WORKER_HOSTS)",
        "--train_dir": "$(TRAINCHART_CHECKPOINTS_DIR)",
        "--logdir": "$(TRAINCHART_TENSORBOARD_DIR)",
        "--task_index": "$(TASK_INDEX)",
    }
    assert (facts.strategy, facts.flags, facts.notes) == (strategy, (), ())


@pytest.mark.parametrize("strategy", ["single", "mirrored"])
def test_one_process_is_not_told_a_place_in_the_cluster(strategy: str) -> None:
    """Its hosts would be empty, and the script's defaults are right."""
    text = CLASSIC + 'flags.DEFINE_integer("task_index", 0, "")\nparser.add_argument("--tf_config", default="")\n'
    facts = read_script(text, "train.py", strategy=strategy)
    assert list(facts.references) == ["--train_dir", "--logdir"]
    assert (facts.strategy, facts.flags, facts.notes) == (strategy, (), ())
    needed = 'flags.DEFINE_string("job_name", None, "", required=True)\n'
    assert read_script(needed, "train.py", strategy=strategy).references == {"--job_name": "$(TASK_TYPE)"}


def test_hosts_as_one_comma_list_are_filled_like_a_string() -> None:
    facts = read(
        'flags.DEFINE_list("ps_hosts", [], "")\nflags.DEFINE_list("workers", ["localhost:2222"], "")\n'
        'flags.DEFINE_list("layers", ["128"], "")'
    )
    assert facts.references == {"--ps_hosts": "$(PS_HOSTS)", "--workers": "$(WORKER_HOSTS)"}
    assert (facts.strategy, [flag.name for flag in facts.flags], facts.notes) == ("between-graph-async", ["layers"], ())
    assert read('flags.DEFINE_list("worker_hosts", None, "")').strategy == "multi-worker-mirrored"


TYPER = "import typer\napp = typer.Typer()\n@app.command()\ndef main("


@pytest.mark.parametrize(
    "text",
    [
        'flags.DEFINE_multi_string("workers", [], "")',
        'flags.DEFINE_spaceseplist("workers", [], "")',
        'parser.add_argument("--workers", nargs="+")',
        'parser.add_argument("--workers", action="append")',
        'import click\n@click.command()\n@click.option("--workers", multiple=True)\ndef main(workers): pass',
        TYPER + "workers: list[str] = []): pass",
        TYPER + "workers: Optional[List[str]] = None): pass",
        "import fire\ndef main(workers=[]): pass\nfire.Fire(main)",
    ],
)
def test_hosts_given_one_by_one_are_left_to_the_script(text: str) -> None:
    facts = read(text)
    assert (facts.references, facts.flags) == ({}, ())
    (note,) = facts.notes
    assert note.endswith("as one comma-separated string: let --workers take one string, and split it at the commas")


@pytest.mark.parametrize("action", ['"append"', '"extend", nargs="+"'])
def test_values_added_to_a_default_do_not_repeat_it(action: str) -> None:
    found = hyperparameters(f'p.add_argument("--tags", action={action}, default=["a", "b"], help="Tags.")')
    assert found == {"tags": {"type": "string", "default": "", "description": "Tags. Added to the script's own: a, b."}}
    found = hyperparameters(f'p.add_argument("--tags", action={action}, default=[])')
    assert found == {"tags": {"type": "string", "default": ""}}
    assert hyperparameters('p.add_argument("--tags", nargs="+", default=["a"])')["tags"]["default"] == "a"


def test_job_name_without_hosts_is_a_plain_hyperparameter() -> None:
    assert hyperparameters('flags.DEFINE_string("job_name", "mine", "")') == {
        "jobName": {"type": "string", "default": "mine"}
    }


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("print(1)", "single"),
        ("tf.distribute.MirroredStrategy()", "mirrored"),
        ("from tensorflow.distribute import MultiWorkerMirroredStrategy as M", "multi-worker-mirrored"),
        ("tf.distribute.experimental.ParameterServerStrategy(r)", "parameter-server"),
        ("tf.train.replica_device_setter()", "between-graph-async"),
        ('print("MirroredStrategy")', "single"),
    ],
)
def test_the_strategy_is_the_one_that_the_script_names(text: str, strategy: str) -> None:
    assert read(text).strategy == strategy


@pytest.mark.parametrize("option", ["--data", "--data_path", "--data_file", "--dataset-path"])
def test_a_file_that_keras_downloads_is_no_folder_of_data(option: str) -> None:
    facts = read(f'p.add_argument("{option}", default="mnist.npz")')
    assert (facts.references, [flag.hyperparameter.default for flag in facts.flags]) == ({}, ["mnist.npz"])
    assert not facts.reads_data


def test_several_strategies_are_said_to_be_several() -> None:
    facts = read("a = tf.distribute.MirroredStrategy()\nb = tf.distribute.MultiWorkerMirroredStrategy()")
    assert facts.strategy == "multi-worker-mirrored"
    assert facts.notes == (
        "train.py mentions multi-worker-mirrored, mirrored: taken for multi-worker-mirrored; --strategy overrides it",
    )


@pytest.mark.parametrize("text", ["def (", "\0", "(" * 5000])
def test_what_is_no_python_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ToolError) as caught:
        read(text)
    assert caught.value.problems[0].where.startswith("train.py:")


def test_a_range_of_choices_is_never_written_out() -> None:
    text = 'p.add_argument("--n", type=int, default=1, choices=range(10**9), help="one of %(choices)s")'
    told = {"type": "integer", "default": 1, "minimum": 0, "maximum": 999999999}
    assert hyperparameters(text) == {"n": {**told, "description": "one of range(0, 1000000000)"}}


def test_flags_of_subcommands_and_of_computed_names_are_notes() -> None:
    facts = read(
        'main.add_argument("--lr", type=float, default=0.1)\n'
        'sub = main.add_subparsers()\ntrain = sub.add_parser("train")\n'
        'train.add_argument("--steps", type=int, default=5)\n'
        'for name in names:\n    main.add_argument(f"--{name}", type=int, default=5)\n'
        'OPTION = "--size"\nmain.add_argument(OPTION, type=int, default=2)\n'
    )
    assert [flag.name for flag in facts.flags] == ["lr", "size"]
    assert facts.notes == (
        "train.py:4: --steps is left to the script: it belongs to a subcommand, and code.command has to name one",
        "train.py:6: f'--{name}' is left to the script: its name is computed when the script runs",
    )


VARIED = [
    ('p.add_argument("--fast", action="store_true")', ["--fast$(TRAINCHART_HP_FAST+)"]),
    ('p.add_argument("--no-cache", action="store_false")', ["--no-cache$(TRAINCHART_HP_NO_CACHE+)"]),
    (
        'p.add_argument("--fast", action=argparse.BooleanOptionalAction)',
        ["--fast$(TRAINCHART_HP_FAST+)", "--no-fast$(TRAINCHART_HP_FAST-)"],
    ),
    (
        'p.add_argument("--fast", type=bool, default=True)',
        ["--fast=True$(TRAINCHART_HP_FAST+)", "--fast=$(TRAINCHART_HP_FAST-)"],
    ),
    ('p.add_argument("--fast", type=str2bool, default="no")', ["--fast=$(TRAINCHART_HP_FAST)"]),
    ('p.add_argument("--sizes", nargs="+", default=[1])', ["--sizes $(TRAINCHART_HP_SIZES*)"]),
    ('p.add_argument("--tag", action="append")', ["--tag=$(TRAINCHART_HP_TAG*)"]),
    ('p.add_argument("--lr", type=float, default=os.cpu_count())', ["--lr=$(TRAINCHART_HP_LR?)"]),
    ('p.add_argument("--lr", type=float, default=9 ** 9 ** 9 ** 9)', ["--lr=$(TRAINCHART_HP_LR?)"]),
    ('flags.DEFINE_list("sizes", ["1", "2"], "")', ["--sizes=$(TRAINCHART_HP_SIZES)"]),
    ('flags.DEFINE_multi_string("tag", None, "")', ["--tag=$(TRAINCHART_HP_TAG*)"]),
    ('flags.DEFINE_bool("fast", None, "")', ["--fast$(TRAINCHART_HP_FAST+)", "--nofast$(TRAINCHART_HP_FAST-)"]),
    ('@click.option("--fast", is_flag=True)\ndef f(fast): ...', ["--fast$(TRAINCHART_HP_FAST+)"]),
    (
        '@click.option("--fast/--slow", default=True)\ndef f(fast): ...',
        ["--fast$(TRAINCHART_HP_FAST+)", "--slow$(TRAINCHART_HP_FAST-)"],
    ),
    ('@click.option("--size", nargs=2, default=(1, 2))\ndef f(size): ...', ["--size $(TRAINCHART_HP_SIZE*)"]),
    (
        "@app.command()\ndef f(fast: bool = False): ...",
        ["--fast$(TRAINCHART_HP_FAST+)", "--no-fast$(TRAINCHART_HP_FAST-)"],
    ),
    ("@app.command()\ndef f(seed: int | None = None): ...", ["--seed=$(TRAINCHART_HP_SEED?)"]),
    ("def f(lr=0.1, sizes=[1, 2]): ...\nfire.Fire(f)", ["--lr=$(TRAINCHART_HP_LR)", "--sizes=$(TRAINCHART_HP_SIZES)"]),
]


@pytest.mark.parametrize(("text", "expected"), VARIED)
def test_switches_lists_and_optional_values_can_be_varied(text: str, expected: list[str]) -> None:
    facts = read(text)
    assert (words(facts), facts.notes) == (expected, ())


@pytest.mark.parametrize(
    "text",
    [
        'sub = p.add_subparsers()\ntrain = sub.add_parser("train")\ntrain.add_argument("--steps", type=int, default=5)',
        "@app.command()\ndef f(lr: float = 0.1): ...\n@app.command()\ndef g(lr: float = 0.1): ...",
    ],
)
def test_a_script_with_several_commands_lacks_the_name_of_one(text: str) -> None:
    facts = read(text)
    assert facts.lacks_arguments
    assert "code.command has to name one" in facts.notes[0]
    assert not read('p.add_argument("--lr", type=float, default=0.1)').lacks_arguments


FIRE_CLASS = "class Trainer:\n    def __init__(self, size=8): ...\n    def fit(self, lr=0.1): ...\n"


@pytest.mark.parametrize(
    ("text", "command", "options"),
    [
        ("def f(lr=0.1): ...\nfire.Fire(f)", "", ["--lr"]),
        (FIRE_CLASS + "fire.Fire(Trainer)", "fit", ["--size", "--lr"]),
        (FIRE_CLASS + "fire.Fire(Trainer())", "fit", ["--lr"]),
        ('def f(lr=0.1): ...\nfire.Fire({"train": f})', "train", ["--lr"]),
        ("def f(lr=0.1): ...\ndef _g(x): ...\nfire.Fire()", "f", ["--lr"]),
    ],
)
def test_command_names_the_function_that_fire_runs(text: str, command: str, options: list[str]) -> None:
    facts = read(text)
    assert (facts.command, [flag.option for flag in facts.flags], facts.notes) == (command, options, ())


@pytest.mark.parametrize(
    ("call", "names"),
    [("Fire()", ": one of load, fit"), ('Fire({"a": load, "b": fit})', ": one of a, b"), ("Fire(make())", "")],
)
def test_functions_that_fire_could_run_are_listed(call: str, names: str) -> None:
    facts = read(f"import fire\ndef load(path): ...\ndef fit(lr=0.1): ...\nfire.{call}")
    assert (facts.command, facts.flags) == ("", ())
    assert facts.notes == (f"train.py:4: fire.Fire is left to the script: code.command has to name what runs{names}",)


PLACES = [
    ('"--worker_index", type=int', "$(TASK_INDEX)"),
    ('"--worker_id", type=int, default=0', "$(TASK_INDEX)"),
    ('"--rank", type=int, default=0', "$(TASK_INDEX)"),
    ('"--task", type=int, default=0', "$(TASK_INDEX)"),
    ('"--workers", default="localhost:2222"', "$(WORKER_HOSTS)"),
    ('"--worker-hosts"', "$(WORKER_HOSTS)"),
    ('"--parameter_servers", default=""', "$(PS_HOSTS)"),
    ('"--ps_addresses"', "$(PS_HOSTS)"),
    ('"--job_name", default="worker"', "$(TASK_TYPE)"),
    ('"--task_type"', "$(TASK_TYPE)"),
    ('"--tf_config"', "$(TF_CONFIG)"),
]


@pytest.mark.parametrize(("arguments", "value"), PLACES)
def test_a_place_in_the_cluster_is_filled_in_even_alone(arguments: str, value: str) -> None:
    facts = read(f"parser.add_argument({arguments})")
    assert (list(facts.references.values()), facts.flags, facts.notes) == ([value], (), ())


@pytest.mark.parametrize(
    "arguments",
    [
        '"--rank", type=int, default=8',
        '"--is_chief", action="store_true"',
        '"--master_port", default="29500"',
        '"--local_rank", type=int, default=0',
        '"--current-host"',
        '"--controller_host"',
    ],
)
def test_what_looks_like_a_place_is_no_hyperparameter(arguments: str) -> None:
    facts = read(f"parser.add_argument({arguments})")
    assert (facts.flags, facts.references) == ((), {})
    assert "it looks like a pod's place in the cluster" in facts.notes[0]


@pytest.mark.parametrize("option", ["num_workers", "workers", "world_size", "num_parameter_servers", "ps_count"])
def test_count_of_pods_is_no_place_that_differs(option: str) -> None:
    facts = read(f"tf.distribute.MultiWorkerMirroredStrategy()\nparser.add_argument('--{option}', type=int, default=4)")
    assert (facts.flags, facts.references) == ((), {})
    assert "a number of pods, which roles.ROLE.replicas sets" in facts.notes[0]
    assert "TF_CONFIG" in facts.notes[0]
    assert "pod to pod" not in facts.notes[0]


@pytest.mark.parametrize("option", ["num_nodes", "num_workers", "workers", "num_tasks"])
def test_count_in_a_program_that_is_alone_is_a_size(option: str) -> None:
    text = f"parser.add_argument('--{option}', type=int, default=4)\n"
    assert list(hyperparameters(text).values()) == [{"type": "integer", "default": 4}]
    for more in ("os.environ['TF_CONFIG']", "parser.add_argument('--rank', type=int)", "ClusterSpec(hosts)"):
        assert "a number of pods" in str(read(text + more).notes)


@pytest.mark.parametrize("option", ["world_size", "num_ps", "cluster_size"])
def test_count_that_can_only_be_of_pods_is_never_a_size(option: str) -> None:
    assert "a number of pods" in str(read(f"parser.add_argument('--{option}', type=int, default=4)").notes)


def test_hosts_of_workers_alone_are_a_cluster_of_workers() -> None:
    text = 'flags.DEFINE_string("worker_hosts", "", "")\nflags.DEFINE_integer("task_index", 0, "")'
    assert read(text).strategy == "multi-worker-mirrored"
    assert (
        read("parser.add_argument('--ps_hosts')\ntf.distribute.ParameterServerStrategy(r)").strategy
        == "parameter-server"
    )


FOLDERS = [
    ('"--output-dir", default="./out"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--save_dir"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--model_dir", default="m"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--model_file", default="out/model.h5"', "$(TRAINCHART_CHECKPOINTS_DIR)/model.h5"),
    ('"--saved-model"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--saved_model_dir"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--output"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--logdir"', "$(TRAINCHART_TENSORBOARD_DIR)"),
    ('"--profile_dir"', "$(TRAINCHART_TENSORBOARD_DIR)"),
    ('"--profile-dir", default="prof"', "$(TRAINCHART_TENSORBOARD_DIR)"),
    ('"--profiling_path", default="prof"', "$(TRAINCHART_TENSORBOARD_DIR)"),
    ('"--tensorboard-path", type=Path', "$(TRAINCHART_TENSORBOARD_DIR)"),
    ('"--log_file", default="train.log"', "$(TRAINCHART_TENSORBOARD_DIR)/train.log"),
    ('"--working_dir"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--dir", default="logs"', "$(TRAINCHART_TENSORBOARD_DIR)"),
    ('"--output_data_dir"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--out", type=Path, default=Path("out")', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--checkpoints", default="checkpoints"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--checkpoints", type=os.path.normpath', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--checkpoints", type=pathlib.PosixPath', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--output", type=argparse.FileType("w"), default="out.json"', "$(TRAINCHART_CHECKPOINTS_DIR)/out.json"),
    ('"--checkpoints", type=pathlib.Path', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--checkpoints", help="Directory of the checkpoints."', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--artifacts", type=Path, default=Path("artifacts")', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--artifacts", default="mine", help="Folder for what comes out."', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--results", default="./mine"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--results", default="results.json"', "$(TRAINCHART_CHECKPOINTS_DIR)/results.json"),
    ('"--metrics", default="metrics.json"', "$(TRAINCHART_CHECKPOINTS_DIR)/metrics.json"),
    ('"--train_dir", default="train"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--snapshots", default="snapshots_v1"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--summaries", default="summaries"', "$(TRAINCHART_TENSORBOARD_DIR)"),
    ('"--tensorboard", default=os.path.join("runs", "tb")', "$(TRAINCHART_TENSORBOARD_DIR)"),
    ('"--runs", default="runs"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--workdir", default="./"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--destination", default="out"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--dump_path"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--evaluation_dir"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--model_out", default="model_out"', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--save_model_to", default="out/best.keras"', "$(TRAINCHART_CHECKPOINTS_DIR)/best.keras"),
    ('"--weights", default="out/w.h5", help="Weights are saved to this file."', "$(TRAINCHART_CHECKPOINTS_DIR)/w.h5"),
    ('"--state_dir", help="Where the state is stored."', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--model_path", help="Folder the model is saved to."', "$(TRAINCHART_CHECKPOINTS_DIR)"),
    ('"--cache_dir", default="cache"', "$(TRAINCHART_CHECKPOINTS_DIR)/cache_dir-$(TRAINCHART_POD_NAME)"),
    *(
        (f'"--{option}", default="{default}"', f"/tmp/{option}-$(TRAINCHART_POD_NAME)")
        for option, default in [
            *(
                ("tmpdir", "./tmp"),
                ("tmp_dir", "tmp"),
                ("temp-dir", "/var/tmp"),
                ("tmp", "./t"),
                ("scratch", "/scratch"),
            ),
            *(("scratch_dir", "scratch"), ("scratch_path", "~/s"), ("data_tmp_dir", "t"), ("temporary_folder", "t")),
        ]
    ),
    ('"--tempdir", required=True', "/tmp/tempdir-$(TRAINCHART_POD_NAME)"),
    ('"--cache", default="~/.cache"', "$(TRAINCHART_CHECKPOINTS_DIR)/cache-$(TRAINCHART_POD_NAME)"),
]


@pytest.mark.parametrize(("arguments", "value"), FOLDERS)
def test_outputs_go_into_the_volumes_of_the_run(arguments: str, value: str) -> None:
    facts = read(f"parser.add_argument({arguments})")
    assert (list(facts.references.values()), facts.flags, facts.notes) == ([value], (), ())


@pytest.mark.parametrize(
    "arguments",
    [
        '"--checkpoint", help="Checkpoint file to resume from."',
        '"--checkpoint", default="old/last.h5", help="Load this one."',
        '"--checkpoint_dir", help="Directory of the checkpoint to restore."',
        '"--model_path", default="old/m.keras", help="A saved model to load."',
        '"--checkpoints"',
        '"--output", default="-"',
        '"--output", type=argparse.FileType("w")',
        '"--output", type=argparse.FileType("w"), default="-"',
        '"--results", type=FileType("w"), default=sys.stdout',
        '"--saved-model", help="Saved model to start from, which is loaded."',
        '"--weights", default="nets/yolo.h5"',
        '"--weights", default="imagenet"',
        '"--model", default="resnet"',
        '"--results", type=int, default=5',
        '"--cache_dir"',
        '"--cache", default="memory"',
        '"--log", default="info", help="How much to write."',
        '"--summary", default="short"',
        '"--run", default="run1"',
        '"--experiment", default="experiment"',
        '"--export", default="onnx", choices=["onnx", "tflite"]',
        '"--metrics", default="accuracy loss"',
        '"--data", default="mnist"',
        '"--tmp_dir", default="/tmp/x"',
        '"--tmp_dir"',
        '"--tmpdir", default=tempfile.gettempdir()',
        '"--temp", default="0.7"',
    ],
)
def test_what_only_sounds_like_an_output_is_varied(arguments: str) -> None:
    facts = read(f"parser.add_argument({arguments})")
    assert (facts.references, len(facts.flags)) == ({}, 1)
    assert "/tmp/x" not in str(facts.notes)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ('"--data", type=Path', "$(TRAINCHART_DATA_DIR)"),
        ('"--dataset", help="Path to the records."', "$(TRAINCHART_DATA_DIR)"),
        ('"--train_path", default="data/train.tfrecord"', "$(TRAINCHART_DATA_DIR)/train.tfrecord"),
        ('"--training_file", default="train.csv"', "$(TRAINCHART_DATA_DIR)/train.csv"),
        ('"--train", default="data/train.csv"', "$(TRAINCHART_DATA_DIR)/train.csv"),
        ('"--validation-data", default="data/val.csv"', "$(TRAINCHART_DATA_DIR)/val.csv"),
    ],
)
def test_data_flags_without_a_folders_name_are_filled(arguments: str, value: str) -> None:
    facts = read(f"parser.add_argument({arguments})")
    assert (list(facts.references.values()), facts.reads_data) == ([value], True)


@pytest.mark.parametrize(
    "use",
    [
        *('os.path.join(args.data, "train")', "open(FLAGS.data)", "np.load(args.data)", "Path(args.data)"),
        *('pd.read_csv(options["data"])', "tf.data.TFRecordDataset(data)", "image_dataset_from_directory(args.data)"),
    ],
)
def test_data_is_known_by_its_use(use: str) -> None:
    declared = 'p.add_argument("--data")\n'
    facts = read(declared + f"x = {use}")
    assert (facts.references, facts.reads_data) == ({"--data": "$(TRAINCHART_DATA_DIR)"}, True)
    assert read(declared.replace(")", ", type=Path)") + "x = load_data(args.data)").reads_data
    for other in ("load(args.data)", "print(args.data)", "os.path.join(folder, args.data)"):
        assert [flag.option for flag in read(declared + other).flags] == ["--data"]


@pytest.mark.parametrize(
    ("arguments", "use"),
    [
        ('"--data", default="my.npz", help="Path of the data."', "mnist.load_data(path=args.data)"),
        ('"--data", default="sets/my.npz"', "mnist.load_data(args.data)"),
        ('"--dataset", help="Path of the data."', "keras.utils.get_file(args.dataset, URL)"),
        ('"--data", default="cifar10", help="Name of a dataset of Keras, or a folder."', "os.listdir(args.data)"),
    ],
)
def test_name_of_what_keras_downloads_is_no_folder_of_data(arguments: str, use: str) -> None:
    facts = read(f"p.add_argument({arguments})\n{use}")
    assert (facts.references, len(facts.flags), facts.notes) == ({}, 1, ())


def test_outputs_do_not_share_a_folder() -> None:
    facts = read('p.add_argument("--model_dir")\np.add_argument("--export_dir")')
    assert list(facts.references.values()) == [
        "$(TRAINCHART_CHECKPOINTS_DIR)",
        "$(TRAINCHART_CHECKPOINTS_DIR)/export_dir",
    ]


def test_second_logs_folder_that_may_exclude_the_first_is_left() -> None:
    facts = read('p.add_argument("--logdir")\np.add_argument("--logdir_root")')
    assert facts.references == {"--logdir": "$(TRAINCHART_TENSORBOARD_DIR)"}


def test_profiles_go_beside_the_logs() -> None:
    facts = read('p.add_argument("--logdir")\np.add_argument("--profile_dir")')
    assert facts.references == dict.fromkeys(["--logdir", "--profile_dir"], "$(TRAINCHART_TENSORBOARD_DIR)")


@pytest.mark.parametrize("option", ["--trace_file", "--inference_input_file", "--test_prefix", "--export_file"])
def test_a_file_without_a_name_is_not_replaced_by_a_folder(option: str) -> None:
    facts = read(f'p.add_argument("{option}")')
    assert (facts.references, [flag.option for flag in facts.flags]) == ({}, [option])


def test_evaluations_go_beside_checkpoints_if_data_has_its_flag() -> None:
    text = 'p.add_argument("--train_dir")\np.add_argument("--eval_dir")\n'
    assert set(read(text).references.values()) == {"$(TRAINCHART_DATA_DIR)"}
    assert read(text + 'p.add_argument("--data_dir")').references == {
        "--train_dir": "$(TRAINCHART_CHECKPOINTS_DIR)",
        "--eval_dir": "$(TRAINCHART_CHECKPOINTS_DIR)/eval_dir",
        "--data_dir": "$(TRAINCHART_DATA_DIR)",
    }


def test_evaluations_that_the_help_says_are_written_are_no_data() -> None:
    facts = read('p.add_argument("--train_dir")\np.add_argument("--eval_dir", help="Where to write event logs.")')
    assert facts.references == {
        "--train_dir": "$(TRAINCHART_CHECKPOINTS_DIR)",
        "--eval_dir": "$(TRAINCHART_CHECKPOINTS_DIR)/eval_dir",
    }


@pytest.mark.parametrize(
    "parameter",
    [
        "@click.option('--results', type=click.Path())\ndef f(results): ...",
        "@click.option('--results', type=Path)\ndef f(results): ...",
        "@app.command()\ndef f(results: PurePath = None): ...",
        "def f(results: PosixPath = None): ...\nfire.Fire(f)",
    ],
)
def test_types_of_paths_are_known_to_every_library(parameter: str) -> None:
    assert read(parameter).references == {"--results": "$(TRAINCHART_CHECKPOINTS_DIR)"}
    opened = read("@click.option('--results', type=click.File('w'))\ndef f(results): ...")
    assert (opened.references, [flag.option for flag in opened.flags]) == ({}, ["--results"])


def test_text_with_a_slash_is_not_always_a_path() -> None:
    assert read('p.add_argument("--eos", default="</s>")').notes == ()


def test_data_comes_from_its_volume_unless_the_image_holds_it() -> None:
    text = 'p.add_argument("--data_dir", default="data")'
    facts = read(text)
    assert (facts.references, facts.reads_data) == ({"--data_dir": "$(TRAINCHART_DATA_DIR)"}, True)
    shipped = read_script(text, "train.py", folder=CodeFolder(has_path=lambda path: path == "data"))
    assert words(shipped) == ["--data_dir=$(TRAINCHART_HP_DATA_DIR)"]


def test_data_that_the_program_can_make_is_left_away() -> None:
    text = 'p.add_argument("--data_dir", help="Folder of records. Without it, synthetic data is used.")'
    facts = read(text)
    assert (facts.reads_data, words(facts)) == (False, ["--data_dir=$(TRAINCHART_HP_DATA_DIR?)"])
    assert facts.notes == (
        "train.py:1: --data_dir may stay empty according to its help, and then no data is read: to read some, add "
        "the volume data to the spec and set hyperparameters.dataDir to its mountPath",
    )
    assert read(text.replace(", help", ', default="records", help')).reads_data


def test_folders_that_sagemaker_names_are_those_of_the_volumes() -> None:
    text = (
        'p.add_argument("--train", default=os.environ["SM_CHANNEL_TRAIN"])\n'
        'p.add_argument("--model", default=os.environ.get("SM_MODEL_DIR"))\n'
        'p.add_argument("--results", default=os.getenv("SM_OUTPUT_DATA_DIR", "out"))\n'
    )
    assert read(text).references == {
        "--train": "$(TRAINCHART_DATA_DIR)/train",
        "--model": "$(TRAINCHART_CHECKPOINTS_DIR)",
        "--results": "$(TRAINCHART_CHECKPOINTS_DIR)/results",
    }


@pytest.mark.parametrize(
    "option",
    ["--password", "--token", "--hub-token", "--api_key", "--aws_secret_access_key", "--bearer", "--db-creds", "--pw"],
)
def test_secrets_never_become_hyperparameters(option: str) -> None:
    facts = read(f'parser.add_argument("{option}", default="x")')
    assert (facts.flags, facts.references) == ((), {})
    assert "secretKeyRef" in facts.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        'p.add_argument("--url", default="postgres://me:pw@db/x")',
        'p.add_argument("--broker", nargs="+", default=["redis://:pw@cache:6379"])',
        'flags.DEFINE_list("urls", "http://a,https://me:pw@b", "")',
        "class S(Hyperparameters):\n    url: str = 'mysql://me:pw@db'",
        'os.environ.get("TRAINCHART_HP_URL", "amqp://me:pw@queue")',
        'p.add_argument("--url", default="https://h/x?token=pw@1")',
        'p.add_argument("--url", default="https://s3/x?X-Amz-Expires=9&X-Amz-Signature=pw@1")',
        'p.add_argument("--url", default="https://blob/x?sv=1&sig=pw@1")',
        'p.add_argument("--url", default="https://ghp_pw@github.com/x")',
        'p.add_argument("--db", default="Server=h;User Id=me;Password=pw@1;")',
        'p.add_argument("--blob", default="AccountName=a;AccountKey=pw@1==")',
        'p.add_argument("--hook", default="https://hooks.slack.com/services/pw@1/B/c")',
    ],
)
def test_an_address_with_a_password_never_enters_the_values(text: str) -> None:
    facts = read(text)
    assert facts.flags == ()
    assert "secretKeyRef" in facts.notes[0]
    assert "pw@" not in facts.notes[0]


@pytest.mark.parametrize(
    "default",
    [
        *("postgres://db/x", "ssh://git@host/x", "http://host:80/a@b", "mysql://me:$(PW)@db", "db://u:{pw}@h"),
        *(
            "https://h/x?token=$(TOKEN)",
            "https://h/x?tokens=5",
            "a=1;b=2",
            "https://me@github.com/x",
            "Password policy",
        ),
    ],
)
def test_an_address_without_a_password_is_varied(default: str) -> None:
    assert list(hyperparameters(f'p.add_argument("--url", default="{default}")')) == ["url"]


HOLDERS = 'ONE = flags.DEFINE_string("a", None, "")\nTWO = flags.DEFINE_string("b", None, "")\n'


def test_tokens_of_texts_are_no_secrets() -> None:
    text = 'p.add_argument("--pad_token", default="<pad>")\np.add_argument("--max_tokens", type=int, default=5)'
    assert list(hyperparameters(text)) == ["padToken", "maxTokens"]


@pytest.mark.parametrize(
    "text",
    [
        'flags.DEFINE_string("a", None, "")\nflags.DEFINE_string("b", None, "")\n'
        'flags.mark_flags_as_mutual_exclusive(["a", "b"])',
        'flags.DEFINE_string("a", None, "")\nflags.DEFINE_string("b", None, "")\nNAMES = ["a", "b"]\n'
        "flags.mark_flags_as_mutual_exclusive(NAMES)",
        HOLDERS + "flags.mark_flags_as_mutual_exclusive([ONE, TWO])",
        HOLDERS + "EXCLUSIVE = [ONE, TWO]\nflags.mark_flags_as_mutual_exclusive(EXCLUSIVE)",
        HOLDERS + "EXCLUSIVE: list = [ONE]\nflags.mark_flags_as_mutual_exclusive([*EXCLUSIVE, TWO])",
        HOLDERS + "flags.mark_flags_as_mutual_exclusive((ONE.name, TWO.name))",
        HOLDERS + "NAMES = [ONE.name] + [TWO.name]\nflags.mark_flags_as_mutual_exclusive(flag_names=NAMES)",
        'ONE = flags.DEFINE_bool("a", False, "")\nTWO = flags.DEFINE_bool("b", False, "")\n'
        "EXCLUSIVE = (ONE, TWO)\nflags.mark_bool_flags_as_mutual_exclusive(EXCLUSIVE)",
        'g = p.add_mutually_exclusive_group()\ng.add_argument("--a")\ng.add_argument("--b")',
        # A group of which one has a default needs none of them.
        'flags.DEFINE_string("a", None, "")\nflags.DEFINE_string("b", "x", "")\n'
        'flags.mark_flags_as_mutual_exclusive(["a", "b"], required=True)',
    ],
)
def test_flags_that_exclude_each_other_are_left_to_the_script(text: str) -> None:
    facts = read(text)
    assert (facts.flags, facts.lacks_arguments) == ((), False)
    [note] = facts.notes
    assert note.endswith("it excludes others of its group (also --b)")


@pytest.mark.parametrize(
    "text",
    [
        'flags.DEFINE_string("a", None, "")\nflags.DEFINE_string("b", None, "")\n'
        'flags.mark_flags_as_mutual_exclusive(["a", "b"], required=True)',
        'flags.DEFINE_bool("a", False, "")\nflags.DEFINE_bool("b", False, "")\n'
        'flags.mark_bool_flags_as_mutual_exclusive(["a", "b"], required=True)',
        'g = p.add_mutually_exclusive_group(required=True)\ng.add_argument("-a", "--a")\ng.add_argument("--b")',
        "with p.add_mutually_exclusive_group(required=True) as g:\n"
        '    g.add_argument("--a")\n    g.add_argument("--b")',
    ],
)
def test_one_of_a_required_group_is_asked_for(text: str) -> None:
    facts = read(text)
    assert (facts.flags, facts.lacks_arguments) == ((), True)
    [note] = facts.notes
    assert note.endswith("the script does not start until code.command has one of --a, --b (also --b)")


@pytest.mark.parametrize(
    "text",
    [
        'p.add_argument("--a", nargs="+", required=True)',
        'p.add_argument("--a", action="append", required=True)',
        'p.add_argument("--a", action="store_true", required=True)',
        'flags.DEFINE_list("a", None, "", required=True)',
        'flags.DEFINE_multi_integer("a", None, "")\nflags.mark_flag_as_required("a")',
        '@click.option("--a", multiple=True, required=True)\ndef f(a): ...',
        '@click.option("--a", type=int, prompt=True)\ndef f(a): ...',
        '@click.option("--a", default=None, prompt="A")\ndef f(a): ...',
        '@click.option("--a", default=getuser(), prompt=True)\ndef f(a): ...',
        "@app.command()\ndef f(a: str = typer.Option(None, prompt=True)): ...",
        "@app.command()\ndef f(a: Annotated[str, typer.Option(prompt=True)] = None): ...",
        "@app.command()\ndef f(a: list[str] = typer.Option(...)): ...",
    ],
)
def test_required_flag_whose_default_leaves_it_out_is_named(text: str) -> None:
    facts = read(text)
    assert facts.required == ("a",)
    assert "--a is required: give hyperparameters.a a default" in facts.notes[0]


@pytest.mark.parametrize(("text", "is_lacking"), [("sys.argv[1]", True), ("len(sys.argv) > 1 and sys.argv[1]", False)])
def test_argument_taken_from_the_command_line_is_lacking(text: str, is_lacking: bool) -> None:
    assert read(f"import sys\nrun({text})").lacks_arguments is is_lacking


def test_flags_with_the_same_reason_share_a_note() -> None:
    text = "\n".join(f'p.add_argument("--{name}", default={value})' for name, value in [("lr", 0.1), ("size", 8)])
    facts = read(f'{text}\np.add_argument("--sizes", action="count")\np.add_argument("--steps", default=5)')
    assert facts.notes == (
        "train.py:1: --lr is left to the script: it has no type=, so its value would arrive as text (also --size, "
        "--steps)",
        "train.py:3: --sizes is left to the script: its action count is not read",
    )


def test_modules_of_the_code_are_read_as_far_as_they_are_used() -> None:
    files = {
        "net.options": b"import argparse\nLR = 0.5\ndef parse():\n    p = argparse.ArgumentParser()\n"
        b"    p.add_argument('--lr', type=float, default=LR)\ndef unused(p):\n    p.add_argument('--no')\n"
        b"if __name__ == '__main__':\n    p.add_argument('--guarded')\n",
        "net.data": b"from absl import flags\nflags.DEFINE_integer('batch', 8, '')\n"
        b"def make(): return tf.distribute.MirroredStrategy()\n",
    }
    folder = CodeFolder(load=lambda name: (f"{name}.py", files[name]) if name in files else None)
    facts = read_script("from . import data\nfrom .options import parse\ndata.make()", "train.py", "net.train", folder)
    assert [(flag.name, flag.hyperparameter.default) for flag in facts.flags] == [("batch", 8), ("lr", 0.5)]
    assert (facts.strategy, facts.notes) == ("mirrored", ())


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (b"# coding: klingon\nprint()\n", "unknown encoding: klingon"),
        (b"\xef\xbb\xbf# coding: latin-1\nprint()\n", "encoding problem: iso-8859-1 with BOM"),
        (b'print()\nprint("gr\xfc\xdf")\n', "codec can't decode byte 0xfc"),
    ],
)
def test_an_encoding_that_python_refuses_is_named(script: bytes, reason: str) -> None:
    with pytest.raises(ToolError) as refusal:
        read_script(script, "train.py")
    [problem] = refusal.value.problems
    assert reason in problem.message
    assert problem.where == f"train.py:{2 if b'gr' in script else 1}"


@pytest.mark.parametrize(
    ("script", "hint"),
    [
        (b'print()\nprint("gr\xfc\xdf")\n', "byte 0xfc in line 2 is not UTF-8: save the file as UTF-8, or name its"),
        (b"# coding: utf-8\nx = '\xe9t\xe9'\n", "byte 0xe9 in line 2 is not UTF-8"),
        (b'x = """\n\n\xff"""\n', "byte 0xff in line 3 is not UTF-8"),
        ("print()".encode("utf-16"), "it is UTF-16: save it as UTF-8"),
    ],
)
def test_a_file_of_another_encoding_has_a_way_out(script: bytes, hint: str) -> None:
    with pytest.raises(ToolError) as refusal:
        read_script(script, "train.py")
    assert refusal.value.problems[0].hint.startswith(hint)


def test_a_byte_order_mark_is_no_part_of_the_script() -> None:
    facts = read_script(b'\xef\xbb\xbfp.add_argument("--name", default="gr\xc3\xbc\xc3\x9f")', "train.py")
    assert facts.flags[0].hyperparameter.default == "gr\xfc\xdf"


def test_the_encoding_is_the_one_that_the_file_declares() -> None:
    facts = read_script(b'# -*- coding: latin-1 -*-\np.add_argument("--name", default="gr\xfc\xdf")', "train.py")
    assert facts.flags[0].hyperparameter.default == "gr\u00fc\u00df"


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("import torch", "PyTorch"),
        ("import tensorflow as tf\nimport horovod.tensorflow as hvd", "Horovod"),
        ("import jax", "JAX"),
    ],
)
def test_other_frameworks_are_refused_by_name(text: str, framework: str) -> None:
    with pytest.raises(ToolError, match=f"a {framework} program"):
        read(text)


def test_torch_beside_tensorflow_or_in_a_try_is_accepted() -> None:
    assert read("import tensorflow\nimport torch\nrun()").notes == ()
    assert read("try:\n    import torch\nexcept ImportError:\n    pass\nrun()").notes == ()


def test_hyperparameters_from_the_environment_need_no_flag() -> None:
    facts = read(
        "import os\n"
        'steps = int(os.environ["TRAINCHART_HP_STEPS"])\n'
        'rate = float(os.environ.get("TRAINCHART_HP_LEARNING_RATE", "0.1"))\n'
        'size = os.getenv("TRAINCHART_HP_SIZE", 32)\n'
        'name = os.environ.get("TRAINCHART_HP_NAME")\n'
        'again = os.environ["TRAINCHART_HP_STEPS"], os.environ["TRAINCHART_CHECKPOINTS_DIR"]\n'
    )
    found = {f.name: (f.hyperparameter.type, f.hyperparameter.default) for f in facts.flags}
    assert found == {
        "steps": ("integer", None),
        "learningRate": ("number", 0.1),
        "size": ("integer", 32),
        "name": ("string", None),
    }
    assert words(facts) == []
    assert facts.required == ("steps",)
    assert facts.notes == (
        "train.py:2: steps is required: give hyperparameters.steps a default in the spec, or set it",
    )


V1 = "import tensorflow as tf\n"
SPEC = "tf.train.ClusterSpec"
CAUTIONS = [
    (V1 + "tf.app.flags", "tf.app needs TensorFlow 1"),
    (V1 + "tf.logging.info(1)", "tf.logging needs TensorFlow 1"),
    (V1 + "tf.Session()", "TensorFlow 2: import tensorflow.compat.v1 as tf and call tf.disable_v2_behavior()"),
    (V1 + "tf.layers.dense(x, 1)", 'tf.disable_v2_behavior(), and set env TF_USE_LEGACY_KERAS: "1" in the spec'),
    ("from tensorflow.examples.tutorials.mnist import input_data", "needs TensorFlow 1"),
    ("import tensorflow.compat.v1 as tf\ntf.estimator.Estimator()", "tf.estimator needs TensorFlow 1"),
    (
        V1 + "tf.Session()\ntf.contrib.x",
        "tf.contrib needs TensorFlow 1, and images have TensorFlow 2: TensorFlow 2 has no",
    ),
    (V1 + "tf.keras.optimizers.Adam(lr=0.1)", "Adam(lr=…) is Keras 2, and images have Keras 3"),
    (V1 + 'tf.keras\nmodel.save(folder + "/1")', "save(folder + '/1') is Keras 2"),
    ('import keras\nmodel.save_weights(f"{folder}/w")', "is Keras 2"),
    ('import keras\nkeras.callbacks.ModelCheckpoint("/tmp/c.tf", save_weights_only=True)', "is Keras 2"),
    (
        "import keras\nmodel.fit_generator(x)",
        "model.fit_generator is Keras 2, and images have Keras 3: import tf_keras",
    ),
    (V1 + "tf.keras\nmodel.fit_generator(x)", 'Keras 3: set env TF_USE_LEGACY_KERAS: "1" in the spec, with tf_keras'),
    ("from tensorflow.python.keras.layers import Add", "tensorflow.python.keras.layers.Add is Keras 2"),
    ("import keras\ntf.distribute.MultiWorkerMirroredStrategy()\nmodel.fit(x)", "fit(…) of Keras 3 fails under"),
    (
        "o = tf.train.SyncReplicasOptimizer(a, 2)\nwith tf.train.MonitoredTrainingSession(t) as s: ...",
        "train.py:2: MonitoredTrainingSession mistakes a peer that SyncReplicasOptimizer loses for the end of the data",
    ),
    ('os.environ["TF_CONFIG"] = json.dumps(cluster)', "sets TF_CONFIG, so its tasks do not find those of the run"),
    (SPEC + '({"ps": ["ps0:2222"]})', "ClusterSpec names its own hosts"),
    ('hosts = {}\nhosts["ps"] = ["localhost:%d" % port]\n' + SPEC + "(hosts)", "ClusterSpec names its own hosts"),
    (
        'a = os.environ["JOB"]\nb = os.environ["BASE"]',
        "train.py:1: needs BASE, JOB in the environment",
    ),
    ("import keras\ndef main(): ...\nif __name__ == 'train':\n    main()", "calls none of them"),
    ("async def main(): ...", "calls none of them"),
    ("def main(): ...\nif False:\n    main()", "calls none of them"),
    ("import tensorflow as tf\nRATE = 0.1", "train.py runs nothing: name the script that is started"),
    ("pass", "train.py runs nothing"),
    ("import sys\nif len(sys.argv) < 3:\n    print('usage: train.py A B')", "train.py runs nothing"),
    ("from sys import argv, exit\nif len(argv) < 3:\n    print(f'{argv[0]} A B')\n    exit()", "train.py runs nothing"),
    ("def usage(): ...\ndef main(): ...\nif len(sys.argv) < 3:\n    usage()", "calls none of them"),
    ("X = tf.constant(1)\ndef main(): ...", "defines main() and does not call it"),
    ('flags.DEFINE_float("lr", 0.1, "")\ndef main(_): ...', "defines main() and does not call it"),
    ("lr = float(sys.argv[1])", "sys.argv[1] is left to the script"),
    ("from sys import argv\nlr = float(argv[1])", "argv[1] is left to the script"),
    ("_, lr, steps = sys.argv", "sys.argv is left to the script"),
    ("x = input('Name: ')", "input() reads from a terminal, which no pod has: take the answer from a flag"),
    ("import getpass\np = getpass.getpass()", "train.py:2: getpass.getpass() reads from a terminal"),
    ("from getpass import getpass\np = getpass()", "getpass() reads from a terminal"),
    ("import click\nx = click.prompt('X')\nclick.confirm('Y')", "click.prompt() reads from a terminal"),
    ("import typer as t\nx = t.prompt('X')\ny = input()", "from the environment (also input())"),
    ("from rich.prompt import Prompt\nx = Prompt.ask('X')", "Prompt.ask() reads from a terminal"),
    ("import sys\nfor line in sys.stdin.readline(): ...", "sys.stdin.readline() reads from a terminal"),
    ("@click.password_option()\ndef f(password): ...", "--password is left to the script: a secret"),
    ("@click.password_option('--pin')\ndef f(pin): ...", "--pin is left to the script: it prompts at a terminal"),
    ("@click.confirmation_option(prompt='Sure?')\ndef f(): ...", "--yes is left to the script: it prompts at a"),
    ("import docopt", "what docopt reads is left to the script"),
    ('model.save("model.keras")', "save('model.keras') writes where a pod cannot"),
    ('open("/var/x", "w")', "open('/var/x') writes where a pod cannot"),
    ('model.export("exp")', "export('exp') writes where a pod cannot"),
    ('tf.saved_model.save(m, "sm")', "save('sm') writes where a pod cannot"),
    ('Path("r.txt").write_text(r)', "write_text('r.txt') writes where a pod cannot"),
    ('(pathlib.Path("out") / "r").write_bytes(r)', "write_bytes('out/r') writes where a pod cannot"),
    ('m.save("/tmp/m.keras")', "save('/tmp/m.keras') is lost with the pod, and shared between local runs"),
    ('tf.train.CheckpointManager(ck, "/tmp/ck")', "CheckpointManager('/tmp/ck') is lost with the pod"),
    ('saver.save(session, "/tmp/ck")', "save('/tmp/ck') is lost with the pod"),
    ('tf.saved_model.save(m, export_dir="/tmp/sm")', "save('/tmp/sm') is lost with the pod"),
    ('p.add_argument("--words", default="~/words")', "is '~/words' by default"),
    ('p.add_argument("--nets_dir", default="nets")', "is 'nets' by default"),
    ('p.add_argument("--weights_out", default="w.h5")', "is 'w.h5' by default"),
    ('p.add_argument("--csv_log", default="history.csv")', "is 'history.csv' by default"),
    ('p.add_argument("--nets", type=Path, default="nets")', "is 'nets' by default"),
    ('p.add_argument("--nets", type=Path, default=pathlib.Path("nets"))', "is 'nets' by default"),
    ('@click.option("--nets", type=click.Path(), default="nets")\ndef f(nets): ...', "is 'nets' by default"),
    ('def f(nets: Path = Path("nets")): ...\ntyper.run(f)', "is 'nets' by default"),
    ('def f(nets: Path = Path("nets")): ...\nfire.Fire(f)', "is 'nets' by default"),
]


@pytest.mark.parametrize(("text", "says"), CAUTIONS)
def test_what_will_not_work_in_a_pod_is_said(text: str, says: str) -> None:
    assert [note for note in read(text).notes if says in note]


DEAD = 'def old():\n    tf.contrib.x\n    open("out.txt", "w")\n    input()\n    p.add_argument("--old", type=int)\n'
DEAD += "    tf.distribute.MirroredStrategy()\n"


@pytest.mark.parametrize(
    "calls",
    [
        "run()",
        "def main(): run()\nif __name__ == '__main__':\n    main()",
        "def older(): old()\nrun(vars(args), tensor.eval())",
    ],
)
def test_functions_that_are_never_called_are_not_told_of(calls: str) -> None:
    facts = read(V1 + DEAD + calls)
    assert (facts.notes, facts.flags, facts.strategy) == ((), (), "single")


@pytest.mark.parametrize(
    "calls",
    ["old()", "run(old)", "globals()['old']()", "def main(): old()\napp.run()", "x.old()", "@app.x\ndef f(): old()\n"],
)
def test_functions_that_may_be_called_are_told_of(calls: str) -> None:
    facts = read(V1 + DEAD + calls + "\nrun()")
    assert (len(facts.notes), len(facts.flags), facts.strategy) == (3, 1, "mirrored")


K = "from keras import backend as K\n"
TF_K = "from tensorflow.keras import backend as K\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (K + "K.set_session(s)", "K.set_session"),
        (TF_K + "K.get_session()", "K.get_session"),
        ("import keras\nkeras.backend.set_session(s)", "keras.backend.set_session"),
        (V1 + "tf.keras.backend.set_session(s)", "tf.keras.backend.set_session"),
        ("import tensorflow.keras.backend as K\nK.set_session(s)", "K.set_session"),
        ("from keras.backend.tensorflow_backend import set_session", "keras.backend.tensorflow_backend.set_session"),
        (V1 + "tf.GPUOptions(allow_growth=True)", "tf.GPUOptions"),
        (V1 + "tf.train.AdagradDAOptimizer(1, s)", "tf.train.AdagradDAOptimizer"),
        (V1 + "tf.train.ProximalAdagradOptimizer(1)", "tf.train.ProximalAdagradOptimizer"),
        (V1 + "tf.nn.xw_plus_b(x, w, b)", "tf.nn.xw_plus_b"),
        (V1 + "tf.to_float(x)", "tf.to_float"),
        (V1 + "tf.image.resize_images(x, [1, 1])", "tf.image.resize_images"),
        (V1 + "tf.metrics.accuracy(a, b)", "tf.metrics.accuracy"),
        (V1 + "train = tf.train\ntrain.AdamOptimizer(1)", "train.AdamOptimizer"),
        ("from tensorflow import Session, constant", "tensorflow.Session"),
        ("import tensorflow.compat.v2 as tf\nimport tensorflow\ntensorflow.layers.dense(x, 1)", "tensorflow.layers"),
        ("from tensorflow.python.ops import seq2seq", "tensorflow.python.ops.seq2seq"),
        ("from tensorflow.models.rnn import ptb", "tensorflow.models.rnn.ptb"),
    ],
)
def test_names_of_tensorflow_1_are_told(text: str, name: str) -> None:
    [note] = read(text + "\nrun()").notes
    assert f": {name} needs TensorFlow 1, and images have TensorFlow 2: " in note


@pytest.mark.parametrize(
    "text",
    [
        V1 + "tf.compat.v1.Session()\ntf.compat.v1.keras.backend.set_session(s)\ntf.compat.v1.layers.dense(x, 1)",
        "import tensorflow.compat.v1 as tf\ntf.train.AdamOptimizer(1)\ntf.to_float(x)\ntf.keras.backend.set_session(s)",
        "from tensorflow.compat.v1 import Session, placeholder",
        V1 + "v1 = tf.compat.v1\nv1.placeholder(x)",
        V1 + "tf.keras.backend.clear_session()\ntf.keras.backend.mean(x)\ntf.math.log(x)",
        K + "K.clear_session()\nK.floatx()\nK.set_image_data_format(x)",
        "from tensorflow.python.framework import ops\nfrom tensorflow.python.client import device_lib",
    ],
)
def test_names_that_tensorflow_2_has_are_not_told(text: str) -> None:
    assert read(text + "\nrun()").notes == ()


@pytest.mark.parametrize(
    ("text", "name", "way_out"),
    [
        (K + "K.mean(x)", "K.mean", "import tf_keras instead of keras"),
        ("from keras.backend import square", "keras.backend.square", "import tf_keras instead of keras"),
        (TF_K + "K.function([x], [y])", "K.function", 'set env TF_USE_LEGACY_KERAS: "1" in the spec'),
    ],
)
def test_backend_functions_of_keras_2_are_told(text: str, name: str, way_out: str) -> None:
    [note] = read(text + "\nrun()").notes
    assert f"{name} is Keras 2, and images have Keras 3: {way_out}" in note


def test_a_session_of_keras_has_a_way_out_of_its_own() -> None:
    [note] = read(V1 + "tf.Session()\n" + K + "K.set_session(s)").notes
    assert "tf.Session needs TensorFlow 1, and images have TensorFlow 2: import tensorflow.compat.v1 as tf" in note
    assert "; for K.set_session, remove it, or call tf.compat.v1.keras.backend's" in note


_COMPARE = """
import json, sys, tensorflow as tf
def has(module, name):
    for part in name.split("."):
        module = getattr(module, part, ...)
    return module is not ...
names = json.load(sys.stdin)
wrong = [name for name in names if has(tf, name) or not has(tf.compat.v1, name)]
public = [name for name in dir(tf.compat.v1) if not name.startswith("_")]
public += [f"train.{name}" for name in dir(tf.compat.v1.train) if not name.startswith("_")]
print(json.dumps([wrong, [name for name in public if name not in names and not has(tf, name)]]))
"""


@pytest.mark.tensorflow
@pytest.mark.timeout(120)
def test_names_of_tensorflow_1_are_what_tensorflow_2_lacks() -> None:
    asked = subprocess.run(
        [sys.executable, "-c", _COMPARE], input=json.dumps(sorted(TENSORFLOW_1)), capture_output=True, text=True
    )
    assert json.loads(asked.stdout.splitlines()[-1]) == [[], []], asked.stderr


def test_old_code_of_a_program_is_one_note_for_all_its_modules() -> None:
    modules = {"net": ("net.py", b"import tensorflow as tf\ntf.placeholder(1)\n")}
    folder = CodeFolder(load=modules.get)
    [note] = read_script(V1 + "import net\nnet.x\ntf.Session()", "train.py", folder=folder).notes
    assert note.startswith("train.py:4: tf.Session needs TensorFlow 1")
    assert note.endswith("(also net.py:2)")


def test_keras_fit_that_distributes_nothing_is_not_told() -> None:
    read_text = read_script("import keras\nkeras.Model().fit(x)", "train.py", strategy="multi-worker-mirrored")
    assert [note for note in read_text.notes if "fails under" in note] == []


def test_keras_fit_is_told_where_another_module_imports_keras() -> None:
    modules = {"net": ("net.py", b"import keras\n")}
    text = "import net\ntf.distribute.MultiWorkerMirroredStrategy()\nnet.model.fit(x)"
    [note] = read_script(text, "train.py", folder=CodeFolder(load=modules.get)).notes
    assert note.startswith("train.py:3: net.model.fit(…) of Keras 3 fails")


@pytest.mark.parametrize(
    "use",
    [
        *("from net.loop import train\ntrain()", "import net.loop as loop\nloop.train()", "from net.loop import *"),
        *("from net import loop\ngetattr(loop, mode)()", "import net.loop as runs\ngetattr(runs, mode)()"),
    ],
)
def test_keras_fit_in_an_imported_module_is_told(use: str) -> None:
    files = {"net.loop": ("net/loop.py", b"import keras\ndef train():\n    model().fit(x)\n")}
    text = f"{use}\ntf.distribute.MultiWorkerMirroredStrategy()"
    [note] = read_script(text, "train.py", folder=CodeFolder(load=files.get)).notes
    assert note.startswith("net/loop.py:3: model().fit(…) of Keras 3 fails under multi-worker-mirrored")


def test_import_from_outside_pythons_search_path_is_reported() -> None:
    folder = CodeFolder(find_below={"net": "src"}.get)
    [note] = read_script("import net, numpy\nrun()", "train.py", folder=folder).notes
    assert note == "train.py imports net, which is in src/: set env PYTHONPATH: src in the spec"
    assert read_script("import sys, net\nsys.path += ['src']\nrun()", "train.py", folder=folder).notes == ()


BESIDE = 'import net\nopen("./rows.csv")\n'


def test_file_beside_a_script_that_starts_above_is_reported() -> None:
    folder = CodeFolder(has_path=lambda path: path in ("steps/rows.csv", "steps/more.csv", "more.csv"))
    [note] = read_script(BESIDE, "steps/fit.py", "steps.fit", folder).notes
    assert (
        note
        == "steps/fit.py:2: './rows.csv' is not found: the program starts in the code folder, so write 'steps/rows.csv'"
    )
    for text in ('open("more.csv")', 'open(os.path.join(here, "rows.csv"))', BESIDE + "os.chdir(dirname(__file__))"):
        assert read_script(text, "steps/fit.py", "steps.fit", folder).notes == ()
    assert read_script(BESIDE, "fit.py", "fit", folder).notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow.compat.v1 as tf\ntf.app.run()\ntf.Session()",
        V1 + "tf.losses.Reduction.NONE",
        V1 + "try:\n    tf.contrib.x\nexcept AttributeError:\n    pass",
        V1 + "if tf.__version__ < '2':\n    tf.Session()",
        'import keras\nkeras.optimizers.Adam(learning_rate=0.1)\nsaver.save(folder)\nform.save("draft")',
        'import keras\nos.environ["TF_USE_LEGACY_KERAS"] = "1"\nkeras.optimizers.Adam(lr=0.1)',
        'if "TF_CONFIG" not in os.environ:\n    os.environ["TF_CONFIG"] = "{}"',
        'os.environ["A"] = "1"\na = os.environ["A"]\nb = os.environ["HOME"]\nc = os.environ.get("B")',
        'try:\n    a = os.environ["A"]\nexcept KeyError:\n    a = ""',
        'if "A" in os.environ:\n    a = os.environ["A"]',
        SPEC + '({"ps": flags.ps_hosts.split(",")})',
        "import keras\nmodel.fit(x)",
        "import tf_keras as keras\ntf.distribute.MultiWorkerMirroredStrategy()\nmodel.fit(x)",
        "main(sys.argv[1:])\np.add_argument('--lr', type=float, default=1)",
        'open("/tmp/x", "w")\nopen("data.csv")',
        'Path("/tmp/x").write_text(r)\nPath(folder, "x").write_text(r)\n(Path(folder) / "x").write_text(r)',
        "def input(x): ...\ninput(1)",
        "input = keras.Input(8)\nx = layer(input)\ny = input(x)",
        "import sys\nif sys.stdin.isatty():\n    x = input()",
        "try:\n    x = input()\nexcept EOFError:\n    x = ''",
        "model.prompt('x')\ndialog.confirm()\nf.read()",
        'm.save("/tmp/m.keras")\ntf.io.gfile.copy("/tmp/m.keras", target)',
        'tf.saved_model.save(m, folder)\nmodel.export(folder)\nexport("csv")\nmodel.export("gs://models/exp")',
    ],
)
def test_what_works_is_not_warned_of(text: str) -> None:
    assert read(text + "\nrun()").notes == ()


@pytest.mark.parametrize(
    "text",
    [
        'import importlib\nimportlib.import_module("net.flags")',
        'from importlib import import_module\nimport_module("net.flags")',
        'import importlib\nNAME = "net.flags"\nimportlib.import_module(NAME)',
        'import importlib\nimportlib.import_module(".flags", package=__package__)',
        '__import__("net.flags")',
    ],
)
def test_module_imported_by_its_constant_name_is_read(text: str) -> None:
    files = {"net.flags": ("net/flags.py", b'flags.DEFINE_float("lr", 0.1, "")')}
    facts = read_script(text, "train.py", "net.train", CodeFolder(load=files.get))
    assert ([flag.name for flag in facts.flags], facts.notes) == (["lr"], ())


@pytest.mark.parametrize(
    ("call", "does"),
    [
        ('importlib.import_module(f"models.{name}")', "imports a module that is known only at run time"),
        ("__import__(name)", "imports a module that is known only at run time"),
        ('runpy.run_path("flags.py")', "runs another script"),
        ('runpy.run_module("flags", run_name="__main__")', "runs another script"),
        ('exec(open("flags.py").read())', "runs another script"),
        ('importlib.util.spec_from_file_location("flags", "flags.py")', "runs another script"),
        ('subprocess.run([sys.executable, "flags.py"], check=True)', "runs another script"),
        ('os.system("python3 flags.py --lr 1")', "runs another script"),
    ],
)
def test_modules_that_cannot_be_told_are_named_in_a_note(call: str, does: str) -> None:
    notes = [note for note in read(f"import os\n{call}").notes if does in note]
    assert len(notes) == 1
    assert notes[0].startswith("train.py:2: ")
    assert notes[0].endswith("its flags are not read: give them in code.command, or name it in --from-script")


@pytest.mark.parametrize("call", ['exec("x = 1")', 'subprocess.run(["nvidia-smi"])', 'importlib.import_module("json")'])
def test_what_starts_no_script_of_the_code_needs_no_note(call: str) -> None:
    assert read(f"import os\n{call}").notes == ()


@pytest.mark.parametrize(
    "text", ["", "# Comments\n# only.\n", '"""Only a docstring."""\n', "...", '{"lr": 0.1}', "lr: 0.1\nname: mine"]
)
def test_script_without_a_statement_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="contains no statement that does anything"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "import net",
        "import fire\ndef main(): ...\nfire.Fire()",
        "import sys\ndef main(): ...\nsys.exit(main())",
        "import tensorflow.compat.v1 as tf\ndef main(_): ...\ntf.app.run()",
        "import sys\nimport tensorflow.compat.v1 as tf\ndef main(_): ...\ntf.app.run(argv=sys.argv)",
        "@app.command()\ndef main(lr: float = 0.1): ...\napp()",
    ],
)
def test_script_that_runs_something_gets_no_note(text: str) -> None:
    folder = CodeFolder(load={"net": ("net.py", b"print(1)")}.get)
    assert read_script(text, "train.py", folder=folder).notes == ()


@pytest.mark.parametrize(
    ("text", "listed", "names"),
    [
        ("import tensorflow\nimport torch, jax\nimport mxnet", (), "jax, mxnet, torch"),
        ("import numpy, h5py, os\nfrom sklearn.svm import SVC", (), "scikit-learn"),
        ("import cv2, pandas", ("opencv-python-headless",), "pandas"),
        ("import tf_keras", (), "tf_keras"),
        ('import os\nos.environ["TF_USE_LEGACY_KERAS"] = "1"', (), "tf_keras"),
        ("import horse_racing", (), "horse_racing"),
    ],
)
def test_packages_that_the_image_lacks_are_named(text: str, listed: tuple[str, ...], names: str) -> None:
    notes = read_script(f"{text}\nrun()", "train.py", folder=CodeFolder(listed=frozenset(listed))).notes
    [note] = [note for note in notes if "requirements.txt" in note]
    assert f": images have TensorFlow and its own packages only: list {names}, and what they need" in note


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow, keras, numpy, absl.flags, google.protobuf, PIL, os",
        "import pandas, tf_keras\nimport of_another_name",
        "try:\n    import torch\nexcept ImportError:\n    pass",
        "import net.layers",
    ],
)
def test_packages_that_the_image_has_are_not_named(text: str) -> None:
    listed = frozenset({"pandas", "tf-keras"})
    folder = CodeFolder(load={"net": ("net/__init__.py", b"x = 1")}.get, listed=listed)
    assert [note for note in read_script(text, "train.py", folder=folder).notes if "images have" in note] == []


@pytest.mark.parametrize(
    "call", ['os.environ["KERAS_BACKEND"] = "jax"', 'os.environ.setdefault("KERAS_BACKEND", "jax")']
)
def test_another_backend_of_keras_is_refused(call: str) -> None:
    with pytest.raises(ToolError, match="sets KERAS_BACKEND to jax"):
        read(f"import os\n{call}\nimport keras")
    assert read(f"import os\n{call.replace('jax', 'tensorflow')}\nimport keras\nrun()").notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "if tf.__version__ < '2':\n    from net import build",
        "if can_import_contrib:\n    from net import build",
        "try:\n    from net import build\nexcept ImportError:\n    pass",
    ],
)
def test_module_that_is_only_tried_is_not_warned_of(text: str) -> None:
    net = b"import scipy\n" + V1.encode() + b"import torch\ntf.contrib.x\nDATA = os.environ['DATA']\ndef build(): ..."
    folder = CodeFolder(load={"net": ("net.py", net)}.get, listed=frozenset())
    assert read_script(text + "\nbuild()", "train.py", folder=folder).notes == ()
    assert len(read_script("from net import build\nbuild()", "train.py", folder=folder).notes) == 3
