"""A stopped task goes on while the leading task can still save, and no longer."""

from __future__ import annotations

import json
import signal
import socket
import time

import pytest

from trainchart_runtime import contract

FOREVER = "1000"
"""Seconds: no test waits so long."""
PROGRAM = (
    "import os, signal, time\n"
    "def stop(*_):\n"
    "    time.sleep(SECONDS)\n"
    "    open('stopped.new', 'w').write(repr(time.time())); os.rename('stopped.new', 'stopped')\n"
    "    os._exit(0)\n"
    "signal.signal(signal.SIGTERM, stop)\n"
    "signal.signal(signal.SIGUSR1, lambda *_: None)\n"
    "open('ready', 'w').write('1')\n"
    "while not os.path.exists('go'): time.sleep(0.01)\n"
)


@pytest.fixture
def leader(make_pod):
    """The pod of worker-0, which leads; nothing runs in it yet."""
    pod = make_pod(variables={contract.POD_NAME: "exp-worker-0"})
    addresses = json.loads(pod.variables[contract.ADDRESSES])
    addresses["exp-worker-0.exp:2223"] = addresses["exp-worker-1.exp:2223"]
    pod.variables[contract.ADDRESSES] = json.dumps(addresses)
    return pod


@pytest.fixture
def start_follower(make_pod, leader):
    """Return a function that starts worker-1, with so many seconds to wait for worker-0."""

    def start(seconds, port=None):
        pod = make_pod(variables={contract.SAVE_WAIT_SECONDS: seconds, contract.STOP_GRACE_SECONDS: "2000"})
        addresses = json.loads(pod.variables[contract.ADDRESSES])
        addresses["exp-worker-0.exp:2223"] = f"127.0.0.1:{port or leader.status_port}"
        pod.variables[contract.ADDRESSES] = json.dumps(addresses)
        process = pod.start(PROGRAM.replace("SECONDS", "0"))
        pod.wait_for_file("ready")
        return pod, process

    return start


@pytest.fixture
def silent_port():
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_task_goes_on_until_the_leader_has_saved(leader, start_follower):
    leading = leader.start(PROGRAM.replace("SECONDS", "0.7"))
    leader.wait_for_file("ready")
    leader.wait_for_status(lambda status: status["state"] == "running")
    follower, following = start_follower(FOREVER)
    for process in (following, leading):
        process.send_signal(signal.SIGTERM)
    assert following.wait(60) == contract.EXIT_TERMINATED
    saved, stopped = (float(pod.wait_for_file("stopped")) for pod in (leader, follower))
    assert stopped > saved


def test_a_leader_that_has_finished_is_not_waited_for(leader, start_follower):
    assert leader.run("print('done')")[0] == 0
    leader.start("print('again')")
    leader.wait_for_status(lambda status: status["state"] == "parked")
    _, following = start_follower(FOREVER)
    following.send_signal(signal.SIGTERM)
    assert following.wait(60) == contract.EXIT_TERMINATED


def test_a_leader_that_is_gone_is_not_waited_for(start_follower):
    follower, following = start_follower(FOREVER)
    following.send_signal(signal.SIGTERM)
    assert following.wait(60) == contract.EXIT_TERMINATED
    assert follower.message.cause == "terminated"


def test_a_leader_that_does_not_answer_is_waited_for(start_follower, silent_port):
    follower, following = start_follower("0.5", silent_port)
    asked_at = time.time()
    following.send_signal(signal.SIGTERM)
    assert following.wait(60) == contract.EXIT_TERMINATED
    assert float(follower.wait_for_file("stopped")) - asked_at >= 0.5


def test_a_second_request_to_stop_is_passed_on_at_once(start_follower, silent_port):
    follower, following = start_follower(FOREVER, silent_port)
    following.send_signal(signal.SIGTERM)
    follower.wait_for_status(lambda status: status["state"] == "stopping")
    following.send_signal(signal.SIGUSR1)
    assert not (follower.folder / "stopped").exists()
    following.send_signal(signal.SIGTERM)
    assert following.wait(60) == contract.EXIT_TERMINATED
    assert follower.wait_for_file("stopped")


def test_a_program_that_ends_meanwhile_was_stopped(start_follower, silent_port):
    follower, following = start_follower(FOREVER, silent_port)
    following.send_signal(signal.SIGTERM)
    follower.wait_for_status(lambda status: status["state"] == "stopping")
    (follower.folder / "go").touch()
    assert following.wait(60) == contract.EXIT_TERMINATED
    assert (follower.message.cause, follower.message.attempt) == ("terminated", 1)


def test_the_leader_itself_waits_for_nobody(leader):
    leader.variables[contract.SAVE_WAIT_SECONDS] = FOREVER
    process = leader.start(PROGRAM.replace("SECONDS", "0"))
    leader.wait_for_file("ready")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == contract.EXIT_TERMINATED


def test_a_program_that_must_end_anyway_is_killed_in_time(silent_port, make_pod):
    pod = make_pod(variables={contract.SAVE_WAIT_SECONDS: FOREVER, contract.STOP_GRACE_SECONDS: "1"})
    addresses = json.loads(pod.variables[contract.ADDRESSES])
    pod.variables[contract.ADDRESSES] = json.dumps({**addresses, "exp-worker-0.exp:2223": f"127.0.0.1:{silent_port}"})
    process = pod.start(PROGRAM.replace("SECONDS", "0"))
    pod.wait_for_file("ready")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == contract.EXIT_TERMINATED
    assert pod.message.signal == signal.SIGKILL
