"""What a chart of the family model-server starts, from its rendered objects."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.errors import PlanError
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.serving.chart_server import ChartServer, read_chart_server

HASH = "sha256:" + "0" * 64
FETCH = {"name": "fetch", "args": ["/source/saved_model", "/models/digits/200", HASH]}
ARGUMENTS = ["--model_name=digits", "--model_base_path=/models/digits", "--version=200", f"--content=200={HASH}"]
SERVER = {"name": "server", "command": ["python3"], "args": [*ARGUMENTS, "--max_batch_size=8", "--port=1", "--x"]}
VOLUMES = [{"name": "models", "emptyDir": {}}, {"name": "source", "persistentVolumeClaim": {"claimName": "exp-7"}}]


def render(name: str = "served", **changes: Any) -> Rendering:
    pod = {"initContainers": [FETCH], "containers": [SERVER], "volumes": VOLUMES, **changes}
    documents = [
        {"kind": "Service", "metadata": {"name": "served"}},
        {"kind": "Deployment", "metadata": {"name": "served-canary"}, "spec": {}},
        {"kind": "Deployment", "metadata": {"name": name}, "spec": {"template": {"spec": pod}}},
    ]
    return Rendering("served", "default", tuple(Manifest("a.yaml", each) for each in documents), {})


def test_the_server_of_a_chart_is_read_with_its_own_arguments() -> None:
    assert read_chart_server(render()) == ChartServer(
        model_name="digits",
        version=200,
        content=HASH,
        claim="exp-7",
        path="saved_model",
        arguments=("--max_batch_size=8", "--x"),
        environment={},
        notes=(),
    )


def test_a_model_elsewhere_has_no_claim() -> None:
    fetch = {**FETCH, "args": ["gs://models/digits", *FETCH["args"][1:]]}
    server = read_chart_server(render(initContainers=[fetch], volumes=VOLUMES[:1]))
    assert (server.claim, server.path) == ("", "gs://models/digits")


def test_what_only_a_cluster_knows_is_noted() -> None:
    env = [{"name": "OMP_NUM_THREADS", "value": "2"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {}}}]
    server = read_chart_server(render(containers=[{**SERVER, "env": env}]))
    assert server.environment == {"OMP_NUM_THREADS": "2"}
    assert server.notes == ("the variable KEY keeps this machine's value: the chart takes it from a cluster object",)


@pytest.mark.parametrize("name", ["PYTHONWARNINGS", "BROWSER", "PATH", "LD_PRELOAD", "XLA_FLAGS", "TF_NUM_X"])
def test_a_chart_sets_no_variable_that_could_run_a_command(name: str) -> None:
    server = read_chart_server(render(containers=[{**SERVER, "env": [{"name": name, "value": "x"}]}]))
    assert server.environment == {}
    (note,) = server.notes
    assert note.startswith(f"the variable {name} of the chart is left out")


@pytest.mark.parametrize("given", [["--model-base-path=/x"], ["--rest-api-port", "1"], ["--host=::", "--version=7"]])
def test_a_chart_does_not_say_where_the_server_is(given: list[str]) -> None:
    server = read_chart_server(render(containers=[{**SERVER, "args": [*given, "--max-batch-size=4"]}]))
    assert server.arguments == ("--max-batch-size=4",)


def test_ours_stands_for_the_program_of_tensorflow_serving() -> None:
    env = [{"name": "MODEL_NAME", "value": "digits"}, {"name": "OMP_NUM_THREADS", "value": "2"}]
    server = read_chart_server(render(containers=[{"name": "server", "args": ["--flag"], "env": env}]))
    assert (server.arguments, server.environment) == ((), {"OMP_NUM_THREADS": "2"})
    assert server.notes[0].endswith("here, trainchart's own server runs instead, without its arguments --flag")


@pytest.mark.parametrize(
    "rendering",
    [
        render("other"),
        render(initContainers=[]),
        render(initContainers=[{"name": "fetch", "args": 3}]),
        render(initContainers=[{**FETCH, "args": ["a", "/models/x/y", HASH]}]),
        Rendering("served", "default", (Manifest("a.yaml", {"kind": "Deployment"}),), {}),
    ],
)
def test_another_chart_is_refused(rendering: Rendering) -> None:
    with pytest.raises(PlanError, match="starts no model server"):
        read_chart_server(rendering)
