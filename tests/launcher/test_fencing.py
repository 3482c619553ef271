"""Two pods never train the same task: the newest pod wins, and the other notices before the newest one starts."""

from __future__ import annotations

import json
import os
import signal
import time

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_launcher.claim import Owner, dump_owner, parse_owner, resolve_wait
from trainchart_runtime import contract

TRAIN = (
    "import fcntl, os, time\n"
    "folder = os.environ['TRAINCHART_CHECKPOINTS_DIR']\n"
    "lock = open(folder + '/lock', 'w')\n"
    "try: fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    "except OSError: open(folder + '/overlap', 'w').write('two programs at once')\n"
    "print('x', file=open('attempts', 'a'))\n"
    "print(os.getpid(), file=open('pid.new', 'w', 1))\n"
    "os.rename('pid.new', 'pid')\n"
    "while not os.path.exists('go'): time.sleep(0.01)\n"
)
"""Trains until the file `go` exists, and tells if another one does so at the same time."""


@pytest.fixture
def make_twin(make_pod, tmp_path):
    """Make pods of one name that share a checkpoint folder, as a StatefulSet's pod and its successors do."""
    made = []
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()

    def make(**variables):
        number = len(made) + 1
        storage = tmp_path / f"storage-{number}"
        storage.mkdir()
        (storage / "sitecustomize.py").write_text(STORAGE)
        pod = make_pod(
            variables={
                contract.CHECKPOINTS_DIR: str(checkpoints),
                contract.FENCE_SECONDS: "0.4",
                contract.NODE_NAME: f"node-{number}",
                contract.POD_UID: f"uid-{number}",
                "PYTHONPATH": str(storage),
                **variables,
            }
        )
        pod.checkpoints, pod.storage = checkpoints, storage
        pod.owner_file = checkpoints / ".trainchart/owners/exp-worker-1.owner"
        made.append(pod)
        return pod

    yield make
    assert not (checkpoints / "overlap").exists()


def owner_of(pod):
    return parse_owner(pod.owner_file.read_bytes())


def start(pod):
    """Start a pod's program and return (launcher, number of the program)."""
    process = pod.start(TRAIN)
    return process, int(pod.wait_for_file("pid"))


def end(process):
    """Return (exit code, stderr) of a launcher that is about to end."""
    _, stderr = process.communicate(timeout=20)
    return process.returncode, stderr.decode()


def kill_container(pod, process, program):
    """Kill launcher and program at once, as the end of a container does."""
    process.kill()
    process.wait()
    pod.kill(program)


def test_pod_keeps_its_owner_file_only_while_it_trains(make_twin):
    pod = make_twin()
    process, _ = start(pod)
    owner = owner_of(pod)
    assert (owner.pod, owner.pod_uid, owner.node, owner.check_seconds) == ("exp-worker-1", "uid-1", "node-1", 0.4)
    (pod.folder / "go").touch()
    assert end(process)[0] == 0
    assert not pod.owner_file.exists()


@pytest.mark.parametrize("way", ["failure", "sigterm", "killed with its program"])
def test_pod_that_ends_in_order_lets_successor_start_at_once(make_twin, way):
    pod, successor = make_twin(), make_twin()
    if way == "failure":
        assert pod.run("raise SystemExit(3)")[0] == 3
    else:
        process, program = start(pod)
        if way == "sigterm":
            process.send_signal(signal.SIGTERM)
            assert end(process)[0] == contract.EXIT_TERMINATED
        else:
            kill_container(pod, process, program)
            assert pod.owner_file.exists()
            # Its next container finds that no restart is allowed.
            assert pod.run(TRAIN)[0] == 137
    assert not pod.owner_file.exists()
    process, _ = start(successor)
    (successor.folder / "go").touch()
    code, stderr = end(process)
    assert code == 0 and "zombie" not in stderr


def test_a_restarted_container_keeps_what_its_pod_owns(make_twin):
    pod = make_twin(**{contract.MAX_RESTARTS: "1"})
    kill_container(pod, *start(pod))
    before = owner_of(pod).id
    (pod.folder / "pid").unlink()
    process, _ = start(pod)
    assert owner_of(pod).id == before
    (pod.folder / "go").touch()
    code, stderr = end(process)
    assert code == 0 and "zombie" not in stderr
    assert (pod.message.attempt, pod.message.own_failures) == (2, 1)


def test_the_newest_pod_wins_and_both_say_so(make_twin):
    zombie, newcomer = make_twin(**{contract.MAX_RESTARTS: "5"}), make_twin()
    old, program = start(zombie)
    new, _ = start(newcomer)
    code, stderr = end(old)
    assert code == contract.EXIT_SUPERSEDED
    assert not zombie.is_alive(program)
    message = zombie.message
    assert (message.cause, message.exit_code, message.signal) == ("superseded", code, signal.SIGKILL)
    assert (message.attempt, message.own_failures) == (1, 0)
    assert message.error == "pod exp-worker-1 on node node-2 (uid-2) has taken over"
    assert "giving up: two pods must not train the same task" in stderr
    assert owner_of(newcomer).pod_uid == "uid-2"
    (newcomer.folder / "go").touch()
    code, stderr = end(new)
    assert code == 0
    assert "pod exp-worker-1 on node node-1 (uid-1) owns the checkpoints of this task" in stderr
    assert "waiting 1.3 s until it must have stopped" in stderr


@pytest.mark.parametrize("is_told", [True, False], ids=["noticed before", "was away"])
def test_a_superseded_pod_does_not_take_its_task_back(make_twin, is_told):
    zombie, newcomer = make_twin(), make_twin()
    old, program = start(zombie)
    if not is_told:
        kill_container(zombie, old, program)
    start(newcomer)
    if is_told:
        assert end(old)[0] == contract.EXIT_SUPERSEDED
    else:
        zombie.variables[contract.MAX_RESTARTS] = "5"
    code, _, stderr = zombie.run(TRAIN)
    assert code == contract.EXIT_SUPERSEDED, stderr
    assert zombie.message.cause == "superseded" and zombie.attempts() == 1
    assert owner_of(newcomer).pod_uid == "uid-2"


def test_a_zombie_that_wakes_up_is_ended(make_twin):
    zombie, newcomer = make_twin(), make_twin()
    old, program = start(zombie)
    # As on a machine that stands still.
    old.send_signal(signal.SIGSTOP)
    os.kill(program, signal.SIGSTOP)
    (zombie.checkpoints / "lock").unlink()
    _, successor = start(newcomer)
    os.kill(program, signal.SIGCONT)
    old.send_signal(signal.SIGCONT)
    assert end(old)[0] == contract.EXIT_SUPERSEDED
    assert not zombie.is_alive(program) and newcomer.is_alive(successor)
    assert owner_of(newcomer).pod_uid == "uid-2"


@pytest.mark.parametrize("left_behind", [True, False], ids=["over a dead owner", "over nothing"])
def test_of_many_newcomers_one_ends_up_with_the_task(make_twin, left_behind):
    pods = [make_twin() for _ in range(4)]
    if left_behind:
        pods[0].owner_file.parent.mkdir(parents=True)
        pods[0].owner_file.write_bytes(dump_owner(Owner("gone", "exp-worker-1", check_seconds=0.4)))
    processes = [pod.start(TRAIN) for pod in pods]
    pods[0].wait(lambda: sum(process.poll() is None for process in processes) == 1, "one is left")
    [winner] = [pod for pod, process in zip(pods, processes, strict=True) if process.poll() is None]
    winner.wait_for_file("pid")
    assert owner_of(winner).pod_uid == winner.variables[contract.POD_UID]
    assert sorted(process.poll() or 0 for process in processes) == [0, *[contract.EXIT_SUPERSEDED] * 3]


def test_newcomer_that_ends_before_its_turn_keeps_others_waiting(make_twin):
    zombie, newcomer, third = make_twin(), make_twin(**{contract.FENCE_SECONDS: "20"}), make_twin()
    old, _ = start(zombie)
    new = newcomer.start(TRAIN)
    assert newcomer.wait_for_status(lambda status: status["state"] == "starting")
    new.send_signal(signal.SIGTERM)
    code, stderr = end(new)
    assert code == contract.EXIT_TERMINATED and "waiting 50.0 s" in stderr
    assert newcomer.owner_file.exists() and newcomer.attempts() == 0
    assert end(old)[0] == contract.EXIT_SUPERSEDED
    third.start(TRAIN)
    third.wait(lambda: owner_of(third).pod_uid == "uid-3", "the third pod asks for the task")
    assert third.attempts() == 0


@pytest.mark.parametrize("trouble", ["absent", "junk", "no folder"])
def test_lost_owner_file_is_rewritten_and_nothing_else_happens(make_twin, trouble):
    pod = make_twin()
    process, program = start(pod)
    before = owner_of(pod)
    if trouble == "absent":
        pod.owner_file.unlink()
    elif trouble == "junk":
        pod.owner_file.write_text('{"id": 7}')
    else:
        (pod.checkpoints / ".trainchart").rename(pod.checkpoints / "cleaned")
    pod.wait(lambda: pod.owner_file.exists() and owner_of(pod) == before, "the claim is written again")
    assert pod.is_alive(program)
    (pod.folder / "go").touch()
    assert end(process)[0] == 0
    assert (pod.message.attempt, pod.attempts()) == (1, 1)


STORAGE = (
    "import errno, os, time\n"
    "open_really, way = os.open, os.path.join(os.path.dirname(__file__), 'way')\n"
    "def open_owner(path, *rest, **named):\n"
    "    while str(path).endswith('.owner') and os.path.exists(way):\n"
    "        if open(way).read() == 'fails': raise OSError(errno.EIO, os.strerror(errno.EIO))\n"
    "        time.sleep(0.01)\n"
    "    return open_really(path, *rest, **named)\n"
    "os.open = open_owner\n"
)
"""Loaded by the launcher's Python before all else: storage that fails or hangs while the file `way` says so."""


def block(pod, way):
    """Make opening the owner file fail, or hang as on storage that does not answer; returns what mends it."""
    new = pod.folder / "new"
    new.write_text(way)
    new.replace(pod.storage / "way")
    return (pod.storage / "way").unlink


@pytest.mark.parametrize("way", ["fails", "hangs"])
def test_program_is_paused_while_storage_does_not_answer(make_twin, way):
    pod = make_twin()
    process, program = start(pod)
    mend = block(pod, way)
    pod.wait(lambda: psutil.Process(program).status() == psutil.STATUS_STOPPED, "the program is paused")
    status = pod.wait_for_status(lambda status: status["state"] == "paused")
    why = "Input/output error" if way == "fails" else "no answer"
    assert status["silentStorage"] == f"cannot read {pod.owner_file}: {why}"
    mend()
    pod.wait(lambda: psutil.Process(program).status() != psutil.STATUS_STOPPED, "the program goes on")
    assert pod.wait_for_status(lambda status: status["state"] == "running")["silentStorage"] == ""
    (pod.folder / "go").touch()
    code, stderr = end(process)
    assert code == 0 and pod.message.attempt == 1
    assert "program paused so that two pods cannot write" in stderr and "the program continues" in stderr
    assert "halted" not in stderr


@pytest.mark.parametrize("hangs", [False, True], ids=["goes on", "hangs"])
def test_time_in_a_pause_is_no_lack_of_progress(make_twin, hangs):
    pod = make_twin(**{contract.NO_PROGRESS_SECONDS: "2"})
    report = (
        "    if not os.path.exists('hang'):\n"
        "        open('report', 'w').write('{\"step\": 7}')\n"
        "        os.rename('report', os.environ['TRAINCHART_PROGRESS_FILE'])\n"
    )
    process = pod.start(TRAIN.replace("time.sleep(0.01)\n", "\n" + report + "    time.sleep(0.01)\n"))
    program = int(pod.wait_for_file("pid"))
    assert pod.wait_for_status(lambda status: status["step"] == 7)
    mend = block(pod, "fails")
    pod.wait(lambda: psutil.Process(program).status() == psutil.STATUS_STOPPED, "the program is paused")
    time.sleep(3)
    if hangs:
        (pod.folder / "hang").touch()
    mend()
    pod.wait(lambda: psutil.Process(program).status() != psutil.STATUS_STOPPED, "the program goes on")
    if not hangs:
        # Long enough for the watchdog to look.
        time.sleep(1)
        (pod.folder / "go").touch()
    code, _ = end(process)
    assert code == (143 if hangs else 0)
    assert pod.message.cause == ("no-progress" if hangs else "succeeded")


def test_takeover_behind_silent_storage_ends_paused_program(make_twin):
    pod = make_twin()
    process, program = start(pod)
    mend = block(pod, "hangs")
    pod.wait(lambda: psutil.Process(program).status() == psutil.STATUS_STOPPED, "the program is paused")
    pod.owner_file.write_bytes(dump_owner(Owner("another", "exp-worker-1", node="node-9")))
    mend()
    assert end(process)[0] == contract.EXIT_SUPERSEDED
    assert pod.message.error == "pod exp-worker-1 on node node-9 (another) has taken over"


def test_storage_that_stays_away_ends_the_program_and_says_so(make_twin):
    pod = make_twin(**{contract.FENCE_SECONDS: "0.05"})
    process, program = start(pod)
    block(pod, "fails")
    code, _ = end(process)
    assert code == contract.EXIT_STORAGE_LOST and not pod.is_alive(program)
    assert (pod.message.cause, pod.message.own_failures) == ("storage-lost", 1)
    assert pod.message.error.endswith("exp-worker-1.owner for more than 3 s: Input/output error")


def test_every_start_waits_for_the_storage_anew(make_twin):
    pod = make_twin(**{contract.FENCE_SECONDS: "0.02", contract.MAX_RESTARTS: "1"})
    block(pod, "hangs")
    process = pod.start(TRAIN)
    waiting = pod.wait_for_status(lambda status: status["state"] == "waiting" and status["silentStorage"])
    began = waiting["since"]
    assert end(process)[0] == contract.EXIT_STORAGE_LOST
    assert (pod.message.cause, pod.message.own_failures, pod.message.attempt) == ("storage-lost", 2, 0)
    # Sixty looks once more, not only the wait before a restart.
    assert pod.message.finished_at - began >= 1.2
    assert pod.attempts() == 0


@pytest.mark.parametrize("moment", ["before the start", "while paused"])
def test_storage_that_hangs_stops_no_sigterm(make_twin, moment):
    pod = make_twin(**{contract.STOP_GRACE_SECONDS: "1"})
    if moment == "before the start":
        block(pod, "hangs")
        process = pod.start(TRAIN)
        pod.wait(lambda: len(psutil.Process(process.pid).threads()) > 1, "the launcher looks at the file")
    else:
        process, program = start(pod)
        block(pod, "hangs")
        pod.wait(lambda: psutil.Process(program).status() == psutil.STATUS_STOPPED, "the program is paused")
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == contract.EXIT_TERMINATED
    assert pod.message.cause == "terminated"


@pytest.mark.parametrize(
    "variables",
    [
        {contract.CHECKPOINTS_DIR: "gs://bucket/run"},
        {contract.CHECKPOINTS_DIR: "/proc/nowhere"},
        {contract.FENCE_SECONDS: "0"},
        {contract.CHECKPOINTS_DIR: ""},
    ],
    ids=["object store", "not mounted", "switched off", "no checkpoints"],
)
def test_where_there_is_nothing_to_fence_nothing_is_said(make_twin, variables):
    pod = make_twin(**variables)
    code, stdout, stderr = pod.run("print('trained')")
    assert (code, stdout) == (0, "trained\n")
    assert len(stderr.splitlines()) == (3 if "nowhere" in variables.get(contract.CHECKPOINTS_DIR, "") else 2), stderr
    assert not list(pod.folder.parent.rglob("*.owner"))


def test_unwritable_folder_is_logged_and_training_goes_on(make_twin):
    pod = make_twin(**{contract.CHECKPOINTS_DIR: "/proc"})
    code, stdout, stderr = pod.run("print('trained')")
    assert (code, stdout) == (0, "trained\n")
    assert "nothing keeps a second pod from writing checkpoints: cannot write /proc/.trainchart/owners/" in stderr


def test_other_tasks_and_other_releases_are_strangers(make_twin):
    pods = [make_twin(), make_twin(**{contract.ORDINAL: "0"}), make_twin()]
    description = json.loads((pods[2].folder / "cluster.json").read_text())
    description["roles"]["worker"]["name"] = "other-worker"
    (pods[2].folder / "cluster.json").write_text(json.dumps(description))
    # Where the chart names no pod, all of them have the machine's name.
    pods[2].variables.update({contract.POD_NAME: "", contract.ORDINAL: "1"})
    wait = "import os, time\nopen('pid', 'w').write('1')\nwhile not os.path.exists('go'): time.sleep(0.01)"
    processes = [pod.start(wait) for pod in pods]
    for pod in pods:
        pod.wait_for_file("pid")
    names = sorted(path.name for path in pods[0].owner_file.parent.iterdir())
    assert names == ["exp-worker-0.owner", "exp-worker-1.owner", "other-worker-1.owner"]
    for pod, process in zip(pods, processes, strict=True):
        (pod.folder / "go").touch()
        assert end(process)[0] == 0


@pytest.mark.parametrize("junk", [b"", b"\xff\x00{"], ids=["empty", "binary"])
def test_a_damaged_owner_file_costs_one_wait(make_twin, junk):
    pod = make_twin()
    pod.owner_file.parent.mkdir(parents=True)
    pod.owner_file.write_bytes(junk)
    process, _ = start(pod)
    (pod.folder / "go").touch()
    code, stderr = end(process)
    assert code == 0
    assert "an unknown pod (its owner file is damaged) owns the checkpoints" in stderr


def put_special(pod, kind):
    """Put something that is not a regular file in the place of the owner file."""
    beside = pod.folder / "special"
    pod.owner_file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(beside)
    else:
        beside.symlink_to("/dev/zero" if kind == "device" else pod.folder / "elsewhere")
    beside.replace(pod.owner_file)


@pytest.mark.parametrize("kind", ["pipe", "device", "link to nothing"])
@pytest.mark.parametrize("moment", ["before the start", "while it trains"])
def test_what_is_no_file_is_replaced_like_a_damaged_owner_file(make_twin, kind, moment):
    pod = make_twin()
    if moment == "before the start":
        put_special(pod, kind)
    process, program = start(pod)
    if moment == "while it trains":
        put_special(pod, kind)
    pod.wait(lambda: pod.owner_file.is_file() and not pod.owner_file.is_symlink(), "the claim is written again")
    assert owner_of(pod).pod_uid == "uid-1" and pod.is_alive(program)
    assert psutil.Process(program).status() != psutil.STATUS_STOPPED
    (pod.folder / "go").touch()
    code, stderr = end(process)
    assert code == 0 and not (pod.folder / "elsewhere").exists()
    assert ("its owner file is damaged" in stderr) is (moment == "before the start")
    assert not list(pod.owner_file.parent.iterdir())


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
documents = st.dictionaries(st.sampled_from([*json.loads(dump_owner(Owner())), "x"]), values).map(json.dumps)


@given(documents.map(str.encode) | st.binary())
def test_no_owner_file_breaks_a_reader_or_makes_it_wait_long(content):
    owner = parse_owner(content)
    assert "\n" not in str(owner) and str(owner).isprintable()
    assert 2.5 <= resolve_wait(1.0, owner) <= 150.0
    assert parse_owner(dump_owner(owner)) == owner._replace(since=round(owner.since, 3))


def test_a_newcomer_waits_for_the_slower_of_both():
    assert resolve_wait(2.0, Owner("a", check_seconds=2.0)) == 5.0
    assert resolve_wait(0.2, Owner("a", check_seconds=10.0)) == 25.0
    assert resolve_wait(10.0, Owner()) == 25.0
