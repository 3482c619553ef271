"""Every strategy trains the same program over pods, and what each has exported is loaded and scored afterwards.

The charts are made from models/mnist.yaml, with another strategy and its roles in it. All trainings leave their files
in one claim, each in a folder named after its strategy, where one pod finds the exported models: it knows nothing of
them but the signature.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.pods import dump_objects, plan_claim, plan_pod
from tests.cluster.testcluster.releases import (
    TRAINING_GROUP,
    TRAINING_SECONDS,
    Release,
    make_mnist_chart,
    make_values,
    merge_values,
)
from tests.cluster.testcluster.runs import CONTROLLED, ENDED, training_pods, wait_for_phase
from trainchart.plan.strategies import STRATEGIES

pytestmark = pytest.mark.cluster

ACCURACY = 0.85
"""On the 1,000 held-out digits after 300 steps of 64; a guess is right for one of ten."""
CLAIM = "trainings"
SCORER = "scorer"
ROLES: Mapping[str, Mapping[str, Any]] = {
    "in-graph": {"chief": {}, "worker": {"replicas": 1}, "ps": {}},
    "parameter-server": {"chief": {}, "worker": {"replicas": 1}, "ps": {}},
    "multi-worker-mirrored": {"worker": {"replicas": 2}},
    "between-graph-async": {"worker": {"replicas": 1}, "ps": {}},
    "between-graph-sync": {"worker": {"replicas": 1}, "ps": {}},
    "mirrored": {"worker": {}},
    "single": {"worker": {}},
}
"""Strategy → its roles; the largest first, so that the last ones end soon.
Few workers: the processors are shared by all trainings."""
SIDE_BY_SIDE = 4
"""Trainings: with fewer, processors idle whenever one ends; with more, all start slowly."""
SCORE = """
import json, pathlib
import tensorflow as tf
from mnist.data import read_digits, split_digits
_, held_out = split_digits(read_digits())
for folder in sorted(pathlib.Path("/volume").glob("*/saved_model")):
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    found = serve(images=tf.constant(held_out.images))["probabilities"].numpy().argmax(axis=1)
    print(json.dumps([folder.parent.name, float((found == held_out.labels).mean())]), flush=True)
"""


def plan_training(
    access: Access, namespace: str, strategy: str, roles: Mapping[str, Mapping[str, Any]], folder: Path
) -> Release:
    """Plan a release of the mnist program under `strategy`; its chart is made in `folder`."""
    chart = make_mnist_chart(folder, strategy, roles)
    changes = {"volumes": {"checkpoints": {"existingClaim": CLAIM, "subPath": strategy}}}
    values = make_values("mnist", tuple(roles), maxSteps=300, checkpointSteps=100)
    values = merge_values(merge_values(values, CONTROLLED), changes)
    return Release(access, namespace, strategy, chart, values)


@pytest.fixture(scope="module")
def trained(admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Release]:
    """The releases by strategy; each has trained to its end, whatever that is."""
    folder = tmp_path_factory.mktemp("charts")
    claim = dump_objects(plan_claim(CLAIM, "shared", "ReadWriteMany"))
    admin.kubectl("apply", f"--namespace={module_namespace}", "-f", "-", text=claim)

    # One after the other: ast.parse, which charts are made with, fails in threads side by side now and then.
    releases = {
        strategy: plan_training(admin, module_namespace, strategy, roles, folder / strategy)
        for strategy, roles in ROLES.items()
    }

    def train(release: Release) -> None:
        release.install()
        wait_for_phase(release, *ENDED, deadline_seconds=2 * TRAINING_SECONDS)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(train, releases.values()))
    return releases


@pytest.fixture(scope="module")
def scores(admin: Access, module_namespace: str, trained: dict[str, Release]) -> dict[str, float]:
    """The share of held-out digits that each exported model tells right, by strategy."""
    command = f"python -c {shlex.quote(SCORE)}"
    pod = plan_pod(SCORER, command, claim=CLAIM, fs_group=TRAINING_GROUP, is_read_only=True, memory_limit="2Gi")
    admin.kubectl("apply", f"--namespace={module_namespace}", "-f", "-", text=dump_objects(pod))

    def read_end(client: Client) -> str | None:
        status = client.get(Pod, SCORER, namespace=module_namespace).status
        return status.phase if status and status.phase in ("Succeeded", "Failed") else None

    end = admin.wait_for(read_end, "the end of the scorer", namespace=module_namespace, deadline_seconds=120)
    log = admin.kubectl("logs", SCORER, f"--namespace={module_namespace}")
    assert end == "Succeeded", log
    return dict(json.loads(line) for line in log.splitlines() if line.startswith("["))


def test_no_strategy_is_left_out() -> None:
    assert set(ROLES) == set(STRATEGIES)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_trains_to_its_last_step_and_frees_its_pods(trained: dict[str, Release], strategy: str) -> None:
    release = trained[strategy]

    verdict = wait_for_phase(release, *ENDED)["verdict"]

    assert verdict["result"] == "Succeeded", verdict
    # Asynchronous workers may add a step after the last one.
    assert verdict["step"] in (300, 301)
    assert not training_pods(release, release.access.client())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_exported_model_tells_held_out_digits(
    trained: dict[str, Release], scores: dict[str, float], strategy: str
) -> None:
    assert scores[strategy] >= ACCURACY
    # As good as what the training itself has measured: it is that model.
    metrics = wait_for_phase(trained[strategy], *ENDED)["verdict"]["metrics"]
    assert scores[strategy] == pytest.approx(metrics["test_accuracy"], abs=2e-3)
