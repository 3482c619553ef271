"""A finished task is not trained again: markers keyed by run, in the pod and on the shared volume."""

from __future__ import annotations

import os
import signal

import pytest

from trainchart_runtime import contract

TRAIN = "print('x', file=open('attempts', 'a'))"


def park(pod):
    """Start the launcher, wait until it is parked, and return the process."""
    process = pod.start(TRAIN)
    pod.wait_for_status(lambda status: status["state"] == "parked")
    return process


@pytest.mark.parametrize("run_id", ["run-1", ""])
def test_a_restarted_container_of_a_finished_run_parks(make_pod, run_id):
    pod = make_pod(variables={contract.RUN_ID: run_id})
    assert pod.run(TRAIN)[0] == 0
    finished = pod.message
    (pod.folder / "termination").unlink()
    process = park(pod)
    assert pod.message == finished and finished.succeeded
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert pod.attempts() == 1


def test_another_run_trains(pod):
    assert pod.run(TRAIN)[0] == 0
    pod.variables[contract.RUN_ID] = "run-2"
    assert pod.run(TRAIN)[0] == 0
    assert pod.attempts() == 2


@pytest.fixture
def successor(pod, make_pod):
    """A pod of the same task on another node, sharing only the checkpoints of `pod`."""
    checkpoints = str(pod.folder / "checkpoints")
    pod.variables[contract.CHECKPOINTS_DIR] = checkpoints
    return make_pod(variables={contract.CHECKPOINTS_DIR: checkpoints})


def test_the_shared_marker_reaches_a_new_pod(pod, successor):
    assert pod.run(TRAIN)[0] == 0
    assert (pod.folder / "checkpoints/.trainchart/run-1/exp-worker-1.done").exists()
    park(successor)
    assert successor.message == pod.message
    assert successor.attempts() == 0


@pytest.mark.parametrize(
    "variables", [{contract.RUN_ID: "run-2"}, {contract.ORDINAL: "0"}], ids=["another run", "another task"]
)
def test_the_shared_marker_is_only_for_its_run_and_task(pod, successor, variables):
    assert pod.run(TRAIN)[0] == 0
    successor.variables.update(variables)
    assert successor.run(TRAIN)[0] == 0
    assert successor.attempts() == 1


def test_shared_marker_is_not_for_another_releases_run(pod, successor):
    assert pod.run(TRAIN)[0] == 0
    text = (successor.folder / "cluster.json").read_text()
    (successor.folder / "cluster.json").write_text(text.replace("exp-", "exp2-"))
    successor.variables[contract.POD_NAME] = "exp2-worker-1"
    assert successor.run(TRAIN)[0] == 0
    assert successor.attempts() == 1


@pytest.mark.parametrize(
    "variables", [{contract.RUN_ID: ""}, {contract.CHECKPOINTS_DIR: "s3://bucket/run"}], ids=["no run id", "URI"]
)
def test_no_shared_marker_without_run_id_or_local_folder(pod, variables):
    pod.variables[contract.CHECKPOINTS_DIR] = str(pod.folder / "checkpoints")
    pod.variables.update(variables)
    assert pod.run(TRAIN)[0] == 0
    assert not list(pod.folder.rglob("*.done")) and not list(pod.folder.glob("s3*"))


@pytest.mark.parametrize("run_id", ["../../../etc", "a/b", "..", "ä b"])
def test_no_run_id_leads_out_of_the_marker_folder(pod, run_id):
    pod.variables.update({contract.CHECKPOINTS_DIR: str(pod.folder / "checkpoints"), contract.RUN_ID: run_id})
    assert pod.run(TRAIN)[0] == 0
    [marker] = pod.folder.rglob("*.done")
    assert marker.parent.parent == pod.folder / "checkpoints" / ".trainchart"


def test_a_failure_leaves_no_shared_marker(pod):
    pod.variables[contract.CHECKPOINTS_DIR] = str(pod.folder / "checkpoints")
    assert pod.run("raise SystemExit(1)")[0] == 1
    assert not list(pod.folder.rglob("*.done"))


@pytest.mark.parametrize("kind", ["pipe", "device", "link to nothing", "endless text"])
def test_whatever_lies_in_the_place_of_a_marker_stops_no_task(pod, kind):
    pod.variables[contract.CHECKPOINTS_DIR] = str(pod.folder / "checkpoints")
    marker = pod.folder / "checkpoints/.trainchart/run-1/exp-worker-1.done"
    marker.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(marker)
    elif kind == "endless text":
        with marker.open("wb") as file:
            file.truncate(1 << 40)
    else:
        marker.symlink_to("/dev/zero" if kind == "device" else pod.folder / "elsewhere")
    code, _, stderr = pod.run(TRAIN)
    assert (code, pod.attempts()) == (0, 1), stderr
    assert marker.is_file() and not marker.is_symlink() and not (pod.folder / "elsewhere").exists()
    assert f"cannot read {marker}, continuing without it" in stderr or kind == "link to nothing"
    assert [path.name for path in marker.parent.iterdir()] == [marker.name]


def test_a_pipe_where_a_marker_would_be_written_stops_no_end(pod):
    pod.variables[contract.CHECKPOINTS_DIR] = str(pod.folder / "checkpoints")
    marker = pod.folder / "checkpoints/.trainchart/run-1/exp-worker-1.done"
    marker.parent.mkdir(parents=True)
    trap = f"import os\nos.mkfifo({str(marker)!r} + f'.{{os.getppid()}}.new')"
    assert pod.run(trap)[0] == 0
    assert marker.is_file()
