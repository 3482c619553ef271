"""Flags for a process's place in the cluster whose name alone does not say it."""

from __future__ import annotations

import pytest

from trainchart.scaffold.script import ScriptFacts, read_script


def read(*arguments: str) -> ScriptFacts:
    return read_script("\n".join(f"p.add_argument({given})" for given in arguments), "train.py")


@pytest.mark.parametrize(
    "role",
    [
        '"--type", choices=["ps", "worker"]',
        '"--kind", choices=["chief", "worker", "evaluator"], default="worker"',
        '"--node_type", choices=["worker", "ps"]',
        '"--job_name", choices=["ps", "worker", "controller", ""], default=""',
        '"--type", default="worker"',
        '"--type", help="Whether this is a ps or a worker."',
    ],
)
@pytest.mark.parametrize("index", ["index", "idx", "id", "number", "n", "node"])
def test_number_beside_a_role_is_its_index(role: str, index: str) -> None:
    facts = read(role, f'"--{index}", type=int, default=0')
    assert (list(facts.references.values()), facts.flags, facts.notes) == (["$(TASK_TYPE)", "$(TASK_INDEX)"], (), ())


def test_role_and_index_of_other_libraries_are_filled_in() -> None:
    text = 'flags.DEFINE_enum("type", None, ["ps", "worker"], "")\nflags.DEFINE_integer("index", 0, "")'
    assert list(read_script(text, "train.py").references.values()) == ["$(TASK_TYPE)", "$(TASK_INDEX)"]
    text = (
        '@click.option("--type", type=click.Choice(["ps", "worker"]))\n@click.option("--index", type=int)\ndef f(): ...'
    )
    assert list(read_script(text, "train.py").references.values()) == ["$(TASK_TYPE)", "$(TASK_INDEX)"]


@pytest.mark.parametrize(
    "arguments",
    [
        '"--type", choices=["cnn", "rnn"], default="cnn"',
        '"--job_type", choices=["train", "evaluate"]',
        '"--index", type=int, default=0',
        '"--id", default="run1", help="Name of the experiment."',
        '"--nodes", type=int, default=64, help="Nodes of the hidden layer."',
        '"--seed", type=int, default=0, help="Seed; the worker index is added."',
        '"--lora_rank", type=int, default=0',
        '"--mode", choices=["client", "server"]',
        '"--number", type=int, default=3, help="Number of worker threads."',
        '"--server_protocol", default="grpc"',
    ],
)
def test_what_shows_no_place_is_a_hyperparameter(arguments: str) -> None:
    facts = read(arguments)
    assert (facts.references, len(facts.flags), facts.notes, facts.strategy) == ({}, 1, (), "single")


@pytest.mark.parametrize(
    "option",
    [
        *("my_rank", "node_rank", "my_id", "this_id", "my_task_index", "own_rank", "global_rank", "cluster_rank"),
        *("dist_rank", "mpi_rank", "rank_id", "pod_index", "trainer_id", "member_id", "index_of_worker", "myRank"),
    ],
)
def test_index_with_another_word_around_it_is_filled_in(option: str) -> None:
    facts = read(f'"--{option}", type=int, default=0')
    assert (list(facts.references.values()), facts.flags, facts.notes) == (["$(TASK_INDEX)"], (), ())


NOTED = [
    ('"--local_rank", type=int, default=0', "a pod runs one, so leave it at 0"),
    ('"--local_process_index", type=int', "a pod runs one, so leave it at 0"),
    ('"--is-chief", action="store_true"', "compare TASK_TYPE and TASK_INDEX"),
    ('"--is_main", type=bool, default=False', "compare TASK_TYPE and TASK_INDEX"),
    ('"--chief", action="store_true"', "compare TASK_TYPE and TASK_INDEX"),
    ('"--master", default=""', "take it from TF_CONFIG, or add a variable of the launcher"),
    ('"--coordinator_address"', "take it from TF_CONFIG, or add a variable of the launcher"),
    *(
        (f'"--{option}", default=""', "take it from TF_CONFIG, or add a variable of the launcher")
        for option in ("controller_host", "server_address", "server_target", "grpc_url", "rdzv_endpoint")
    ),
    ('"--current_host"', "which differs from pod to pod"),
    ('"--nodes", help="Comma-separated list of hosts."', "let the program read PS_HOSTS and WORKER_HOSTS"),
    ('"--nodes", default="localhost:2222,localhost:2223"', "let the program read PS_HOSTS and WORKER_HOSTS"),
    ('"--nodes", nargs="+", help="The addresses of all."', "let the program read PS_HOSTS and WORKER_HOSTS"),
    ('"--hosts"', "let the program read PS_HOSTS and WORKER_HOSTS"),
    ('"--peers"', "let the program read PS_HOSTS and WORKER_HOSTS"),
    ('"--nodes", type=int, default=2, help="Number of machines."', "a number of pods"),
    ('"--hosts", type=int, default=2', "a number of pods"),
    ('"--id", type=int, default=0, help="Id of this worker."', "a pod's place in the cluster"),
    ('"--id", help="The worker\'s number."', "a pod's place in the cluster"),
    ('"--node", type=int, help="Which machine this is."', "a pod's place in the cluster"),
    ('"--job_name", choices=["parameter_server", "worker"]', "it takes a role as parameter_server, worker"),
    ('"--shard_index", type=int, default=0', "a pod's place in the cluster"),
    ('"--shard", type=int, default=0', "a pod's place in the cluster"),
    ('"--role", choices=["PS", "WORKER"]', "it takes a role as PS, WORKER"),
]


@pytest.mark.parametrize(("arguments", "says"), NOTED)
def test_place_that_nothing_fills_in_is_noted(arguments: str, says: str) -> None:
    facts = read(arguments)
    assert (facts.flags, facts.references) == ((), {})
    [note] = facts.notes
    assert says in note


@pytest.mark.parametrize("option", ["num-shards", "num_shards", "nshards", "shards", "shard_count", "total_shards"])
def test_count_of_shards_beside_a_shards_index_is_of_pods(option: str) -> None:
    count = f'"--{option}", type=int, default=4'
    assert [flag.option for flag in read(count).flags] == [f"--{option}"]
    facts = read('"--shard_index", type=int, default=0', count)
    assert (facts.flags, facts.references) == ((), {})
    assert "roles.ROLE.replicas sets" in facts.notes[1]


@pytest.mark.parametrize(
    ("choices", "strategy"),
    [
        ('["ps", "worker"]', "between-graph-async"),
        ('["parameter_server", "worker"]', "between-graph-async"),
        ('["chief", "ps", "worker"]', "parameter-server"),
        ('["chief", "worker", "evaluator"]', "multi-worker-mirrored"),
    ],
)
@pytest.mark.parametrize("option", ["job_name", "node_type", "job_type", "type"])
def test_strategy_has_the_roles_that_a_flag_takes(option: str, choices: str, strategy: str) -> None:
    assert read(f'"--{option}", choices={choices}').strategy == strategy
    text = f'p.add_argument("--{option}", choices={choices})\ntf.distribute.ParameterServerStrategy(r)'
    assert read_script(text, "train.py").strategy == "parameter-server"


def test_role_that_a_strategy_starts_and_a_flag_refuses_is_noted() -> None:
    text = 'p.add_argument("--type", choices=["ps", "worker"])\ntf.distribute.ParameterServerStrategy(r)'
    [note] = read_script(text, "train.py").notes
    assert note.startswith("train.py:1: --type takes ps, worker, and parameter-server also starts chief: let it accept")
    assert read_script(text, "train.py", strategy="between-graph-sync").notes == ()
    assert read_script(text, "train.py", strategy="single").notes == ()
