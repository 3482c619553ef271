"""The status page: what it says, and that nothing sent to it disturbs the training."""

from __future__ import annotations

import json
import re
import socket
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_controller import launchers
from trainchart_launcher import peers as peers_module
from trainchart_launcher.peers import PeerWatch, describe_waiting
from trainchart_launcher.state import StepWatch
from trainchart_launcher.status import Status, WaitingPeer, dump_status, render_metrics
from trainchart_runtime import contract
from trainchart_runtime.progress import METRICS_KEPT, Progress
from trainchart_runtime.run.observation import MissingPeer, parse_report
from trainchart_runtime.termination import FAILURES_KEPT, Failure

WAIT_FOR_FILE = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
REPORT = (
    "import json, os\n"
    "def report(**values):\n"
    "    path = os.environ['TRAINCHART_PROGRESS_FILE']\n"
    "    open(path + '.new', 'w').write(json.dumps(values)); os.rename(path + '.new', path)\n"
)


@pytest.fixture
def running(pod):
    """A pod whose program has reported step 20 and runs until the file `go` exists."""
    pod.start(REPORT + "report(step=20, examples_per_second=512.5, metrics={'loss': 0.5})\n" + WAIT_FOR_FILE)
    pod.wait_for_status(lambda status: status["step"] == 20)
    return pod


def test_status_of_a_running_program(running):
    status = running.status()
    assert status.pop("since") > 1.6e9
    assert [peer["address"] for peer in status.pop("peersWaiting")] == [f"127.0.0.1:{running.ps_port}"]
    assert status == {
        "taskType": "worker",
        "taskIndex": 1,
        "runId": "run-1",
        "state": "running",
        "attempt": 1,
        "restarts": 0,
        "ownFailures": 0,
        "peerFailures": 0,
        "step": 20,
        "examplesPerSecond": 512.5,
        "metrics": {"loss": 0.5},
        "nanMetrics": [],
        "memoryKill": "",
        "memoryKilledAt": 0.0,
        "silentStorage": "",
        "cpuThrottling": None,
        "lastCause": "",
        "lastError": "",
        "ended": 0,
        "failures": [],
    }


def test_metrics_of_a_running_program(running):
    lines = running.get("/metrics").splitlines()
    task = 'task_type="worker",task_index="1",run_id="run-1"'
    assert f"trainchart_step{{{task}}} 20.0" in lines
    assert f'trainchart_metric{{{task},name="loss"}} 0.5' in lines
    assert f'trainchart_state{{{task},state="running"}} 1.0' in lines
    assert f"trainchart_peers_waiting{{{task}}} 1.0" in lines


def test_a_failure_shows_while_the_program_runs_again(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "1"})
    pod.start("import os\nif os.environ['TRAINCHART_ATTEMPT'] == '1': raise ValueError('bad')\n" + WAIT_FOR_FILE)
    status = pod.wait_for_status(lambda status: status["attempt"] == 2 and status["state"] == "running")
    assert (status["restarts"], status["ownFailures"]) == (1, 1)
    assert (status["lastCause"], status["lastError"]) == ("program-error", "ValueError: bad")


GARBAGE = [
    b"",
    b"\r\n\r\n",
    b"\x00\xff\x16\x03\x01" * 50 + b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /status\r\n\r\n",
    b"POST /status HTTP/1.1\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
    b"GET " + b"/x" * 8000 + b" HTTP/1.1\r\n\r\n",
    b"GET /status HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
]


def ask(pod, request):
    with socket.create_connection(("127.0.0.1", pod.status_port), timeout=10) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(65536)
        except OSError:  # reset, because the launcher had read enough
            return b""


def test_garbage_gets_an_error_and_changes_nothing(running):
    for request in GARBAGE:
        answer = ask(running, request)
        assert answer == b"" or re.match(rb"HTTP/1\.1 40[045] ", answer), request[:40]
    # More silent strangers than there are threads: they are cut off, then the page answers again.
    strangers = [socket.create_connection(("127.0.0.1", running.status_port)) for _ in range(4)]
    assert running.wait_for_status(lambda status: status["step"] == 20)
    for stranger in strangers:
        stranger.close()
    (running.folder / "go").touch()
    _, stderr = running.started[0].communicate(timeout=60)
    assert running.started[0].returncode == 0
    assert b"Traceback" not in stderr


def test_a_head_request_gets_no_body(running):
    head, _, body = ask(running, b"HEAD /status HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK") and body == b""


def test_a_taken_port_is_logged_and_no_more(pod):
    with socket.create_server(("127.0.0.1", pod.status_port)):
        code, stdout, stderr = pod.run("print('trained')")
    assert (code, stdout) == (0, "trained\n")
    assert f"no status page: port {pod.status_port} cannot be used" in stderr


def test_peers_are_named_until_they_have_answered_once(running):
    [peer] = running.wait_for_status(
        lambda status: [peer for peer in status["peersWaiting"] if peer["reason"] != "not asked yet"]
    )["peersWaiting"]
    assert peer["reason"] == "refuses connections" and peer["seconds"] > 0
    with socket.create_server(("127.0.0.1", running.ps_port)) as ps:
        running.wait_for_status(lambda status: status["peersWaiting"] == [])
        ps.settimeout(0)
        ps.accept()
        # One connection was all.
        with pytest.raises(BlockingIOError):
            ps.accept()


def test_unresolvable_peers_are_told_from_silent_ones(make_pod):
    pod = make_pod(variables={})
    addresses = {"exp-worker-1.exp:2223": f"127.0.0.1:{pod.status_port}", "exp-ps-0.exp:2222": "no-such-host.invalid:1"}
    pod.variables[contract.ADDRESSES] = json.dumps(addresses)
    pod.start(WAIT_FOR_FILE)
    status = pod.wait_for_status(
        lambda status: all(peer["reason"] != "not asked yet" for peer in status["peersWaiting"])
    )
    assert [peer["reason"] for peer in status["peersWaiting"]] == ["name does not resolve"]


def test_missing_peers_are_counted_beyond_the_first_few():
    peers = [WaitingPeer(f"exp-ps-{number}.exp:2222", "does not answer", 20.4) for number in range(7)]
    line = describe_waiting(peers)
    assert line.startswith("waiting for 7 peers for 20 s: exp-ps-0.exp:2222 (does not answer), ")
    assert line.endswith("exp-ps-4.exp:2222 (does not answer) and 2 more")


@pytest.mark.parametrize(
    ("round_seconds", "reports"),
    [
        (1.0, [10, 20, 40, 80, 140, 200]),
        (35.0, [35, 45, 65, 105, 165, 225]),
    ],
)
def test_missing_peers_are_reported_at_growing_intervals(monkeypatch, round_seconds, reports):
    now, said = [0.0], []
    monkeypatch.setattr(peers_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(peers_module, "print_line", lambda line: said.append(int(re.search(r" (\d+) s: ", line)[1])))
    watch = PeerWatch(["127.0.0.1:1"], "127.0.0.1:2", lambda: False)
    # A name that does not resolve takes long in the first round only.
    rounds = iter([round_seconds, *[1.0] * 300])

    def look(deadline):
        now[0] += next(rounds)
        if now[0] > 250:
            watch.stop()

    monkeypatch.setattr(watch, "_look", look)
    monkeypatch.setattr(peers_module, "FIRST_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(peers_module, "_LONGEST_PAUSE_SECONDS", 0.0)
    watch._watch()
    assert said == reports


@pytest.fixture
def peer():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def lines(monkeypatch):
    """What the launcher says, with no time for a program to connect."""
    said = []
    monkeypatch.setattr(peers_module, "print_line", said.append)
    monkeypatch.setattr(peers_module, "FIRST_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(peers_module, "_CONNECTED_AFTER_SECONDS", 0.0)
    return said


def watch_to_the_end(peer, *, has_step=False):
    host, port = peer.getsockname()
    watch = PeerWatch([f"{host}:{port}"], "127.0.0.1:1", lambda: has_step)
    watch.start()
    watch._thread.join(timeout=30)
    assert not watch._thread.is_alive() and watch.waiting() == []
    return f"{host}:{port}"


def test_a_program_that_connects_to_nobody_is_told(peer, lines):
    address = watch_to_the_end(peer)
    [line] = lines
    assert line.startswith("no connection to any peer for ") and address in line


def test_program_that_makes_steps_without_connection_is_fine(peer, lines):
    watch_to_the_end(peer, has_step=True)
    assert lines == []


def test_only_a_step_of_this_start_counts(tmp_path):
    report = tmp_path / contract.PROGRESS_FILE_NAME
    report.write_text('{"step": 20}')
    watch = StepWatch(SimpleNamespace(state_dir=str(tmp_path)))
    assert not watch.has_step()
    for text, has_step in (('{"metrics": {"loss": 0.4}}', False), ('{"step": 20}', True)):
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").rename(report)
        assert watch.has_step() == has_step


def test_a_program_that_has_a_connection_is_left_alone(peer, lines):
    with socket.create_connection(peer.getsockname()):
        watch_to_the_end(peer)
    assert lines == []


def test_the_run_controller_reads_the_longest_answer():
    """A thousand pods that wait for each other, and a program with the longest names that it may report."""
    names = [f"{chr(0x1F600) * 97}{number:03d}" for number in range(METRICS_KEPT)]
    failures = [Failure(number, 1e9, "program-error", 1, chr(0x1F600) * 500) for number in range(FAILURES_KEPT)]
    status = Status("worker", 7, "r", "running", attempt=3, last_error=chr(0x1F600) * 500, failures=failures)
    host = f"{'r' * 53}-worker-%d.{'r' * 53}:2222"
    unasked = [WaitingPeer(host % number, contract.PEER_UNASKED, 100.0) for number in range(1000)]
    waiting = [WaitingPeer(host % number, contract.PEER_UNRESOLVED, 100.0) for number in range(1000, 2000)]
    progress = Progress(5, 1.5, dict.fromkeys(names, 10**300), names)
    body = dump_status(status, progress, unasked + waiting)
    assert len(body) < launchers._STATUS_LIMIT
    report = parse_report(json.loads(body))
    assert (report.step, report.missing_peers[0]) == (5, MissingPeer(host % 1000, contract.PEER_UNRESOLVED))


SAMPLE = re.compile(r'^[a-z_]+\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\n"])*",?)+\} [-+0-9.e]+$')


@given(st.text(), st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False), max_size=3))
def test_whatever_the_names_hold_the_pages_stay_readable(text, metrics):
    status = Status(task_type=text, task_index=0, run_id=text, last_cause=text, last_error=text)
    progress = Progress(3, 1.5, metrics)
    peers = [WaitingPeer(text, text, 1.0)]
    assert json.loads(dump_status(status, progress, peers))["runId"] == text
    for line in render_metrics(status, progress, peers).rstrip("\n").split("\n"):
        assert line.startswith("# ") or SAMPLE.match(line), line
