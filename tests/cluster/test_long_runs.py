"""Trainings with TensorFlow that are hurt again and again, and end with what they were to learn all the same."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from lightkube.core.client import Client

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.faults import Faults
from tests.cluster.testcluster.faults.processes import Container, ProcessNotFound, Victim, find_processes, kill_process
from tests.cluster.testcluster.releases import PROJECT, Release, digits_values, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED, read_state, training_pods, wait_for_phase
from tests.cluster.testcluster.traced import Traces
from tests.support.golden_charts import chart_folder

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1500)]

SHARED = {"volumes": {"checkpoints": {"existingClaim": "shared"}}}
KILLS = 10
SAVED_EVERY = 20
LAST_STEP = 40000
IN_STEP_CHART = "multi-worker-mirrored"
IN_STEP = """
import json, os, sys, time
folder = os.environ["TRAINCHART_CHECKPOINTS_DIR"]
def tell(step):
    with open(os.environ["TRAINCHART_PROGRESS_FILE"] + ".new", "w") as file:
        json.dump({"step": step}, file)
    os.rename(file.name, os.environ["TRAINCHART_PROGRESS_FILE"])
if os.path.exists(folder + "/learnt"):
    # Lost its peer when all was done: that one does not come back.
    step = int(open(folder + "/learnt").read())
    tell(step)
    print("done at", step, flush=True)
    sys.exit()
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    # As much as there were steps: a mean of ones is added at each.
    learnt = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
checkpoint = tf.train.Checkpoint(learnt=learnt)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
checkpoint.restore(manager.latest_checkpoint)
step = int(learnt.numpy())
is_first = os.environ["TASK_INDEX"] == "0"
print("restored", step, flush=True)
@tf.function
def train(is_last):
    def replica():
        learnt.assign_add(tf.ones([]))
        return tf.identity(is_last)
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica), axis=None)
while True:
    asked = train(tf.constant(1.0 if os.path.exists(folder + "/end") else 0.0))
    step += 1
    assert step == int(learnt.numpy())
    is_last = float(asked) > 0
    if is_first and (step % SAVED_EVERY == 0 or is_last):
        manager.save(checkpoint_number=step)
    tell(step)
    if is_last:
        break
    time.sleep(0.05)
if is_first:
    open(folder + "/learnt", "w").write(str(step))
# Nobody leaves before the first has saved: it would lose a peer.
train(tf.constant(0.0))
print("done at", step, flush=True)
""".replace("SAVED_EVERY", str(SAVED_EVERY))
"""Two workers in step; whoever loses its peer fails, and all go on from the last checkpoint."""


def read_file(release: Release, name: str) -> str:
    """Read a file among the checkpoints."""
    return release.access.kubectl("exec", "shared", "-n", release.namespace, "--", "cat", f"/volume/{name}")


def wait_for_step(release: Release, above: int) -> int:
    """Wait until the leading task reports a step above `above`, and return it."""

    def read(client: Client) -> int | None:
        state: dict[str, Any] = read_state(release, client) or {}
        step = (state.get("progress") or {}).get("step") or 0
        return step if step > above else None

    what = f"a step above {above}"
    return release.access.wait_for(read, what, namespace=release.namespace, deadline_seconds=180)


def test_workers_in_step_start_again_together_in_place(
    admin: Access, namespace: str, faults: Faults, tmp_path: Path
) -> None:
    traces = Traces(admin, namespace)
    traces.prepare()
    worker = {"replicas": 2, "gpus": 0, "cpu": "100m", "cpuLimit": "2", "memory": "1Gi"}
    changes = {
        "command": ["python3", "-c", IN_STEP],
        "run": {"maxRestarts": 10, "noProgressTimeout": "30s"},
        "roles": {"worker": worker, "evaluator": {"replicas": 0}},
    }
    values = merge_values(merge_values(digits_values(), CONTROLLED), merge_values(SHARED, changes))
    # A chart's folder has its name.
    chart = Path(shutil.copytree(chart_folder("multi-worker-mirrored"), tmp_path / IN_STEP_CHART))
    values = {**values, "hyperparameters": {}, "image": {**values["image"], "tag": "1.0.0"}}
    release = Release(admin, namespace, "in-step", chart, values)
    release.install()
    pods = [f"in-step-{IN_STEP_CHART}-worker-{index}" for index in range(2)]
    step = wait_for_step(release, 0)
    before = {name: pod.metadata and pod.metadata.uid for name, pod in training_pods(release, admin.client()).items()}
    assert set(before) == set(pods)

    for victim in (pods[1], pods[0], pods[1]):
        kill_process(faults.site, Container(namespace, victim))
        step = wait_for_step(release, step)
    (hung,) = find_processes(faults.site, Container(namespace, pods[1]), Victim.TRAINING)
    hung.suspend()
    _, still_there = psutil.wait_procs([hung], timeout=180)
    assert not still_there, "noProgressTimeout ends what hangs"
    step = wait_for_step(release, step)

    after = {name: pod.metadata and pod.metadata.uid for name, pod in training_pods(release, admin.client()).items()}
    assert after == before, "all of it in place"
    traces.access.kubectl("exec", "shared", "-n", namespace, "--", "touch", "/volume/end")
    state = wait_for_phase(release, "Succeeded", deadline_seconds=180)
    assert state["attempt"] == 1
    # What was done since the last checkpoint is lost with a peer, and the last step that was told may be one of these.
    assert state["verdict"]["step"] == int(read_file(release, "learnt")) > step - SAVED_EVERY
    logs = state["verdict"]["lines"]
    assert any(line.startswith("done at ") for line in logs), logs


@pytest.mark.timeout(1500)
def test_ten_kills_at_random_times_cost_no_step_and_no_accuracy(
    admin: Access, namespace: str, faults: Faults, request: pytest.FixtureRequest
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    traces = Traces(admin, namespace)
    traces.prepare()
    values = mnist_values(maxSteps=LAST_STEP, checkpointSteps=100)
    changes = {**SHARED, "run": {"maxRestarts": 2 * KILLS}}
    values = merge_values(merge_values(values, CONTROLLED), changes)
    release = Release(admin, namespace, "hurt", PROJECT / "charts" / "mnist", values)
    release.install()
    wait_for_step(release, 0)

    def may_be_hurt(client: Client) -> bool:
        """A run is given up after five restarts of its chief without a step further, which slow machines come to."""
        progress = (read_state(release, client) or {}).get("progress") or {}
        return bool(progress["fruitlessRestarts"] < 3)

    killed: list[tuple[str, str]] = []
    while len(killed) < KILLS:
        time.sleep(chance.uniform(5, 25))
        admin.wait_for(may_be_hurt, "a step further", namespace=namespace, deadline_seconds=180)
        task = chance.choice(["chief-0", "worker-0", "worker-1", "ps-0"])
        victim = chance.choice([Victim.TRAINING, Victim.LAUNCHER])
        try:
            kill_process(faults.site, Container(namespace, f"hurt-mnist-{task}"), victim)
        except ProcessNotFound:
            # It has not come back from the last time.
            continue
        killed.append((task, victim.value))
        print(f"killed {killed[-1]}")
    state = wait_for_phase(release, "Succeeded", deadline_seconds=900)
    assert state["verdict"]["step"] == LAST_STEP
    assert f'model_checkpoint_path: "ckpt-{LAST_STEP}"' in read_file(release, "checkpoint")
    assert state["attempt"] == 1
    assert state["verdict"]["metrics"]["evaluator/accuracy"] >= 0.95
