"""Stopping: signals reach the program, nothing of its group survives, PID 1 reaps and is not deaf."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from trainchart_launcher import attempt
from trainchart_launcher.settings import read_settings
from trainchart_runtime import contract

READY = "import os, signal, sys, time\nprint(os.getpid(), file=open('pid.new', 'w'))\nos.rename('pid.new', 'pid')\n"
SAVE_AND_EXIT_0 = "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
IGNORE = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
SLEEP = "time.sleep(60)\n"
CAN_UNSHARE = sys.platform == "linux" and os.geteuid() == 0
PID_1 = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_exit_0_after_a_forwarded_sigterm_is_no_success(pod):
    process = pod.start("import signal, sys, time, os\n" + SAVE_AND_EXIT_0 + READY + SLEEP)
    pod.wait_for_file("pid")
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (contract.EXIT_TERMINATED, b"saved\n")
    assert (pod.message.cause, pod.message.exit_code) == ("terminated", 143)
    # No marker: the next container of this run trains again.
    assert pod.run("print('again')")[:2] == (0, "again\n")


def test_a_program_that_is_halted_is_named(pod):
    process = pod.start("import signal, sys, time, os\n" + READY + SLEEP)
    program = int(pod.wait_for_file("pid"))
    for number, words in (
        (signal.SIGSTOP, f"kill -CONT {program} resumes it"),
        (signal.SIGCONT, "program continues"),
    ):
        os.kill(program, number)
        line = process.stderr.readline().decode()
        while words not in line:
            assert line, "the launcher has ended"
            line = process.stderr.readline().decode()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == contract.EXIT_TERMINATED


def test_a_halted_program_of_a_pod_is_resumed_with_kubectl(pod):
    settings = read_settings({**pod.variables, contract.ADDRESSES: "{}", contract.NAMESPACE: "team-a"})
    words = attempt._describe_halt(settings, 20)
    assert words.startswith(f"{contract.HALTED}, and the others wait for it: kubectl exec exp-worker-1 -n team-a -c ")
    assert "-- python3 -c 'import os; os.kill(20, 18)' resumes it. If the pod is deleted instead, " in words


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_other_signals_end_the_run_of_the_pod_too(make_pod, number):
    pod = make_pod(variables={contract.MAX_RESTARTS: "5"})
    process = pod.start("import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n" + READY + SLEEP)
    pod.wait_for_file("pid")
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert (pod.message.cause, pod.message.attempt) == ("terminated", 1)


def test_user_signals_reach_the_program_not_the_launcher(pod):
    program = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: open('seen', 'w').write('usr1'))\n"
    pod_program = program + READY + "while not os.path.exists('seen'): time.sleep(0.01)\n"
    process = pod.start(pod_program)
    pod.wait_for_file("pid")
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=60)
    assert process.returncode == 0 and pod.message.succeeded


def test_program_that_ignores_sigterm_is_killed_in_grace_period(make_pod):
    pod = make_pod(variables={contract.STOP_GRACE_SECONDS: "1.5"})
    process = pod.start("import signal\n" + IGNORE + READY + SLEEP)
    pid = int(pod.wait_for_file("pid"))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == contract.EXIT_TERMINATED
    assert (pod.message.cause, pod.message.signal) == ("terminated", signal.SIGKILL)
    assert not pod.is_alive(pid)


def test_no_grandchild_outlives_the_program(pod):
    grandchild = "import os, subprocess, sys\n" + (
        "child = subprocess.Popen([sys.executable, '-c', 'import signal, time; "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)'], "
        "stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "open('grandchild', 'w').write(str(child.pid))\n"
    )
    assert pod.run(grandchild)[0] == 0
    pid = int((pod.folder / "grandchild").read_text())
    pod.wait(lambda: not pod.is_alive(pid), "the grandchild is gone")


def test_program_inside_a_shell_still_saves_at_the_end(pod):
    saver = pod.folder / "saver.py"
    saver.write_text("import signal, sys, time, os\n" + SAVE_AND_EXIT_0 + READY + SLEEP)
    process = pod.start("sh", "-c", f"{pod.python} {saver}; echo never reached")
    pod.wait_for_file("pid")
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (contract.EXIT_TERMINATED, b"saved\n")


def test_sigterm_while_waiting_for_the_next_attempt(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "100"})
    process = pod.start("import os\nraise ValueError(os.environ['TRAINCHART_ATTEMPT'])")
    pod.wait_for_status(lambda status: status["state"] == "waiting" and status["attempt"] >= 3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == contract.EXIT_TERMINATED
    assert pod.message.cause == "terminated"


def test_sigterm_at_any_moment_of_the_start_ends_the_launcher(make_pod):
    """From the interpreter's first instructions on: no hang, no surviving program, never a success."""
    for number in range(12):
        pod = make_pod(variables={contract.STOP_GRACE_SECONDS: "3"})
        process = pod.start("import signal\n" + READY + SLEEP)
        time.sleep(0.008 * number)  # the moment under test, not a synchronisation
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode in (contract.EXIT_TERMINATED, -signal.SIGTERM)
        pid = pod.folder / "pid"
        assert not pid.exists() or not pod.is_alive(int(pid.read_text()))


def test_sigterm_between_start_and_bookkeeping_is_not_lost():
    program = (
        "import os, signal, time\n"
        "from trainchart_launcher.signals import Signals\n"
        "signals = Signals()\n"
        "signals.install()\n"
        "child = os.posix_spawnp('sleep', ['sleep', '60'], os.environ, setpgroup=0)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "signals.attach(child)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, timeout=20)
    assert result.stdout == b"%d\n" % signal.SIGTERM, result.stderr


def test_a_program_starts_with_pythons_ignored_signals_restored(pod):
    code, stdout, _ = pod.run("sh", "-c", "kill -PIPE $$; echo survived")
    assert (code, stdout) == (128 + signal.SIGPIPE, "")


def test_a_blocked_log_does_not_delay_the_end(make_pod):
    pod = make_pod(variables={contract.STOP_GRACE_SECONDS: "2"})
    program = READY + "import threading\n" + "while True: os.write(1, b'x' * 65536)\n"
    process = pod.start(program)
    pid = int(pod.wait_for_file("pid"))
    pod.wait(pod.status, "the status page answers although nobody reads the log")
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == contract.EXIT_TERMINATED
    assert pod.message.cause == "terminated" and not pod.is_alive(pid)


@pytest.mark.skipif(not CAN_UNSHARE, reason="a PID namespace needs root on Linux")
class TestAsPid1:
    def test_it_reaps_orphans(self, make_pod):
        pod = make_pod(prefix=PID_1)
        # The orphan ends at once; only its new parent, PID 1, can make its number vanish.
        program = READY + (
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    orphan = os.fork()\n"
            "    if orphan: open('orphan', 'w').write(str(orphan))\n"
            "    os._exit(0)\n"
            "os.wait()\n"
            "orphan = '/proc/' + open('orphan').read()\n"
            "deadline = time.monotonic() + 15\n"
            "while os.path.exists(orphan) and time.monotonic() < deadline: time.sleep(0.01)\n"
            "print(os.getppid(), os.path.exists(orphan))\n"
        )
        code, stdout, stderr = pod.run(program)
        assert (code, stdout) == (0, "1 False\n"), stderr

    def test_sigterm_reaches_the_program(self, make_pod):
        pod = make_pod(prefix=PID_1)
        process = pod.start("import signal, sys, time, os\n" + SAVE_AND_EXIT_0 + READY + SLEEP)
        pod.wait_for_file("pid")
        os.kill(pod.first_child_of(process.pid), signal.SIGTERM)
        stdout, _ = process.communicate(timeout=60)
        assert (process.returncode, stdout) == (contract.EXIT_TERMINATED, b"saved\n")

    def test_a_parked_launcher_ends_at_once(self, make_pod):
        pod = make_pod(prefix=PID_1)
        assert pod.run("pass")[0] == 0
        process = pod.start("pass")
        pod.wait_for_status(lambda status: status["state"] == "parked")
        os.kill(pod.first_child_of(process.pid), signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 0
