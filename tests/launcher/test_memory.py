"""A program that the kernel killed for memory is told from one that somebody killed, by the container's cgroup.

The cgroup is a folder of plain files, mounted over the real one for the launcher and its program alone.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from trainchart_runtime import contract

CAN_MOUNT = sys.platform == "linux" and os.geteuid() == 0
pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="a mount namespace needs root on Linux")

MOUNT = 'mount --bind "$0/cgroup" /sys/fs/cgroup && mount --bind "$0/self" /proc/$$/cgroup && exec "$@"'
KILL_SELF = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
LIMIT = 512 << 20
LAYOUTS = {
    # name: (what /proc/self/cgroup says, the cgroup's folder as the container sees it, counter, limit)
    "v1": ("4:memory:/kubepods/pod1/abc\n0::/\n", "memory", "memory.oom_control", "memory.limit_in_bytes"),
    "v1 of the host": ("4:memory:/kubepods\n", "memory/kubepods", "memory.oom_control", "memory.limit_in_bytes"),
    "v2": ("0::/\n", ".", "memory.events", "memory.max"),
    "v2 of the host": ("0::/user.slice/x.scope\n", "user.slice/x.scope", "memory.events", "memory.max"),
}


class Cgroup:
    """The files of one cgroup, and the Python text with which a program pretends a kill in it."""

    def __init__(self, folder, layout):
        own, inside, events, limit = LAYOUTS[layout]
        (folder / "self").write_text(own)
        self.folder = folder / "cgroup" / inside
        self.folder.mkdir(parents=True)
        self.events = self.folder / events
        self.limit = self.folder / limit
        self.events.write_text("low 7\noom_kill_disable 0\noom_kill 4\noom_group_kill 9\n")
        self.limit.write_text(f"{LIMIT}\n")
        # Once the launcher has looked: its page opens after that.
        self.kill = (
            "import socket, time\n"
            "def is_open():\n"
            "    with socket.socket() as client: return client.connect_ex(('127.0.0.1', PORT)) == 0\n"
            "while not is_open(): time.sleep(0.01)\n"
            f"open({str(self.events)!r}, 'w').write('oom_kill 5\\n')\n"
        )


@pytest.fixture
def make_contained(make_pod, tmp_path):
    def make(layout, **variables):
        cgroup = Cgroup(tmp_path, layout)
        pod = make_pod(prefix=("unshare", "--mount", "sh", "-c", MOUNT, str(tmp_path)), variables=variables)
        cgroup.kill = cgroup.kill.replace("PORT", str(pod.status_port))
        return pod, cgroup

    return make


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_kill_for_memory_is_named_with_the_limit(make_contained, layout):
    pod, cgroup = make_contained(layout)
    code, _, stderr = pod.run(cgroup.kill + KILL_SELF)
    assert code == 128 + signal.SIGKILL, stderr
    assert pod.message.cause == "out-of-memory"
    assert pod.message.error == "the kernel killed the program for memory; the container's limit is 512 MiB"


@pytest.mark.parametrize("unlimited", ["max\n", "9223372036854771712\n", ""])
def test_a_container_without_limit_blames_the_node(make_contained, unlimited):
    pod, cgroup = make_contained("v2")
    cgroup.limit.write_text(unlimited)
    pod.run(cgroup.kill + KILL_SELF)
    assert pod.message.error.endswith("; the container has no limit of its own, so its node ran short")


def test_an_older_kill_explains_nothing(make_contained):
    pod, _ = make_contained("v2")
    pod.run(KILL_SELF)
    assert (pod.message.cause, pod.message.error) == ("killed", "")


def test_each_attempt_answers_for_its_own_kills(make_contained):
    pod, cgroup = make_contained("v1", **{contract.MAX_RESTARTS: "1"})
    cgroup.kill = "import os\nif os.environ['TRAINCHART_ATTEMPT'] == '1':\n    " + cgroup.kill.replace("\n", "\n    ")
    _, _, stderr = pod.run(cgroup.kill + "\n" + KILL_SELF)
    assert "attempt 1 ended" in stderr and "out-of-memory (signal 9): the kernel killed the program" in stderr
    assert (pod.message.cause, pod.message.attempt) == ("killed", 2)


@pytest.mark.parametrize("damage", ["", "oom_kill\n", "oom_kill x\n", "oom_kill -1\n", "\x00", None])
def test_an_unreadable_counter_is_no_answer(make_contained, damage):
    pod, cgroup = make_contained("v2")
    if damage is None:
        cgroup.events.unlink()
    else:
        cgroup.events.write_text(damage)
    pod.run(cgroup.kill + KILL_SELF)
    assert pod.message.cause == "killed"


def test_a_shell_around_the_killed_program_changes_nothing(make_contained):
    pod, cgroup = make_contained("v1")
    (pod.folder / "train.py").write_text(cgroup.kill + KILL_SELF)
    assert pod.run("sh", "-c", f"{pod.python} train.py; exit $?")[0] == 137
    assert (pod.message.cause, pod.message.signal) == ("out-of-memory", None)


def test_killed_helper_is_named_beside_the_programs_own_error(make_contained):
    pod, cgroup = make_contained("v2")
    pod.run(cgroup.kill + "raise RuntimeError('DataLoader worker exited unexpectedly')")
    assert pod.message.cause == "program-error"
    assert pod.message.error == (
        "RuntimeError: DataLoader worker exited unexpectedly "
        "(the kernel killed a process of the container for memory; the container's limit is 512 MiB)"
    )


def test_a_killed_helper_shows_while_the_program_waits_for_it(make_contained):
    pod, cgroup = make_contained("v1", **{contract.MAX_RESTARTS: "1"})
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
    process = pod.start(cgroup.kill + wait + "os.remove('go'); raise ValueError('bad')")
    status = pod.wait_for_status(lambda status: status["memoryKill"])
    assert status["state"] == "running" and 0 <= time.time() - status["memoryKilledAt"] < 60
    words = "the kernel killed a process of the container for memory; the container's limit is 512 MiB"
    assert status["memoryKill"].startswith(f"{words} (seen at 20")
    assert pod.status()["memoryKilledAt"] == status["memoryKilledAt"]
    (pod.folder / "go").touch()
    status = pod.wait_for_status(lambda status: status["attempt"] == 2 and status["state"] == "running")
    assert (status["memoryKill"], status["memoryKilledAt"]) == ("", 0.0)
    (pod.folder / "go").touch()
    _, stderr = process.communicate()
    assert stderr.decode().count(f"worker-1: {words}\n") == 1


def test_program_that_survives_a_helpers_kill_succeeds(make_contained):
    pod, cgroup = make_contained("v1")
    assert pod.run(cgroup.kill)[0] == 0
    assert pod.message.succeeded and pod.message.error == ""
