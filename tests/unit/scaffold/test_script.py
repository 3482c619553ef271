"""Reading a training script: flags become hyperparameters, what cannot be told becomes a note, nothing runs."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.errors import ToolError
from trainchart.scaffold.script import ScriptFacts, read_script


def read(text: str) -> ScriptFacts:
    return read_script(text, "train.py")


def hyperparameters(text: str) -> dict[str, dict[str, Any]]:
    facts = read(text)
    assert facts.notes == ()
    return {f.name: f.hyperparameter.model_dump(by_alias=True, exclude_defaults=True) for f in facts.flags}


ARGPARSE = [
    (
        '"--learning_rate", type=float, default=1e-3, help="Step size."',
        {"learningRate": {"type": "number", "default": 0.001, "description": "Step size."}},
    ),
    ('"-b", "--batch-size", type=int, default=2 ** 6', {"batchSize": {"type": "integer", "default": 64}}),
    ('"--epochs", type=int, default=EPOCHS', {"epochs": {"type": "integer", "default": 10}}),
    ('"--offset", type=float, default=-1', {"offset": {"type": "number", "default": -1}}),
    ('"--data", default="/data"', {"data": {"type": "string", "default": "/data"}}),
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
        '@click.option("--kind", type=click.Choice(["a", "b"]), default="a", help="Which.")\ndef f(kind): ...',
        {"kind": {"type": "string", "default": "a", "description": "Which.", "enum": ["a", "b"]}},
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
    assert not any(flag.is_argument for flag in read(text).flags)


UNREADABLE = [
    ('parser.add_argument("--seed", type=int)', "it has no default"),
    ('parser.add_argument("--verbose", action="store_true")', "it is a switch"),
    ('parser.add_argument("--sizes", nargs="+", default=[1])', "it takes several values"),
    ('parser.add_argument("--steps", default=100)', "its value would arrive as text"),
    ('parser.add_argument("--fast", type=bool, default=False)', "type=bool takes every text for true"),
    ('parser.add_argument("--lr", type=float, default=os.cpu_count())', "it is computed when the script runs"),
    ('parser.add_argument("--lr", type=float, default=float("inf"))', "it is computed when the script runs"),
    ('parser.add_argument("--n", type=int, default=9 ** 9 ** 9 ** 9)', "it is computed when the script runs"),
    ('parser.add_argument("--lr", type=parse, default=1)', "its type= is not float, int or str"),
    ('parser.add_argument("--lr", **common)', "* or ** expression"),
    ('parser.add_argument("--kind", default="c", choices=["a", "b"])', "'c' is not one of a, b"),
    ('parser.add_argument("--2fast", type=int, default=1)', "its name cannot be a hyperparameter's"),
    ('parser.add_argument("--sep", default="a\\x07b")', "its default or one of its choices holds a control character"),
    ('parser.add_argument("--sep", default="\\ud800")', "its default or one of its choices holds a control character"),
    (
        'parser.add_argument("--sep", default="a", choices=["a", "\\x7f"])',
        "its default or one of its choices holds a control character",
    ),
    ('flags.DEFINE_list("sizes", [], "")', "DEFINE_list is not read"),
    ('@click.option("--fast", is_flag=True)\ndef f(fast): ...', "it is a switch"),
    ("@app.command()\ndef f(fast: bool = False): ...", "it is a switch"),
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
        ('parser.add_argument("--data", required=True)', "--data is left to the script: it has no default"),
        ('parser.add_argument("--data", required=True, type=parse)', "--data is left to the script: its type= is"),
        ('flags.DEFINE_string("data", None, "", required=True)', "--data is left to the script: it has no default"),
        ('flags.DEFINE_string("data", None, "")\nflags.mark_flag_as_required("data")', "--data is left"),
        ('flags.DEFINE_string("data", None, "")\nflags.mark_flags_as_required(["data"])', "--data is left"),
        ('@click.argument("data")\ndef f(data): ...', "data is left to the script: it is an argument without"),
        ('@click.option("--data", required=True)\ndef f(data): ...', "--data is left to the script: it has no default"),
        ("@app.command()\ndef f(data: str): ...", "data is left to the script: it is an argument without"),
        (
            "@app.command()\ndef f(data: str = typer.Argument(...)): ...",
            "data is left to the script: it is an argument",
        ),
        (
            "@app.command()\ndef f(data: str = typer.Option(...)): ...",
            "--data is left to the script: it has no default",
        ),
        ("@app.command()\ndef f(data: Annotated[str, typer.Option()]): ...", "--data is left to the script: it has no"),
    ],
)
def test_what_the_script_does_not_start_without_is_said_to_be_required(text: str, what: str) -> None:
    facts = read(text)
    assert facts.flags == ()
    (note,) = facts.notes
    assert what in note
    assert note.endswith(REQUIRED)


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
    text = 'parser.add_argument("--data", default="/data", required=True)'
    assert hyperparameters(text) == {"data": {"type": "string", "default": "/data"}}


@pytest.mark.parametrize(
    ("help_text", "shown"),
    [
        ("Share, 5%% (default: %(default)s).", "Share, 5% (default: 0.5)."),
        ("%(prog)s takes a %(type)s", "fit takes a float"),
        ("of %(unknown)s", "of %(unknown)s"),
        ("100%", "100%"),
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
        "--job_name": "TASK_TYPE",
        "--ps_hosts": "PS_HOSTS",
        "--worker_hosts": "WORKER_HOSTS",
        "--train_dir": "TRAINCHART_CHECKPOINTS_DIR",
        "--logdir": "TRAINCHART_LOG_DIR",
        "--task_index": "TASK_INDEX",
    }
    assert (facts.strategy, facts.flags, facts.notes) == (strategy, (), ())


def test_a_job_name_without_hosts_is_a_hyperparameter_like_any_other() -> None:
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
        ('"MirroredStrategy"', "single"),
    ],
)
def test_the_strategy_is_the_one_that_the_script_names(text: str, strategy: str) -> None:
    assert read(text).strategy == strategy


def test_several_strategies_are_said_to_be_several() -> None:
    facts = read("a = tf.distribute.MirroredStrategy()\nb = tf.distribute.MultiWorkerMirroredStrategy()")
    assert facts.strategy == "multi-worker-mirrored"
    assert facts.notes == (
        "train.py mentions multi-worker-mirrored, mirrored: taken for multi-worker-mirrored; --strategy says otherwise",
    )


def test_relative_imports_need_the_package() -> None:
    assert read("from . import data").is_module
    assert not read("from data import load").is_module


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
        "train.py:4: --steps is left to the script: it belongs to a subcommand, which the command in the spec would "
        "have to name",
        "train.py:6: f'--{name}' is left to the script: its name is computed when the script runs",
    )
