"""Whatever a training pod answers to the run controller, the controller goes on."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from trainchart_controller import launchers
from trainchart_controller.console import print_line
from trainchart_controller.launchers import LauncherPoll, Target
from trainchart_runtime.progress import METRICS_KEPT

Answer = Callable[[socket.socket], None]
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LauncherPoll]]:
    """Serve one answer after the other as the leader's launcher, the last one again and again."""
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(launchers, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(launchers, "_ANSWER_SECONDS", 0.5)
    port = listener.getsockname()[1]

    def serve(*answers: Answer, others: bool = False) -> queue.Queue[Any]:
        def run() -> None:
            for number in range(10_000):
                try:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(4096)
                        answers[min(number, len(answers) - 1)](connection)
                except OSError:
                    if listener.fileno() == -1:
                        return

        threading.Thread(target=run, daemon=True).start()
        observations: queue.Queue[Any] = queue.Queue()
        poll = LauncherPoll(port, observations)
        poll.look_at(Target("u1", "127.0.0.1"), (Target("u2", "127.0.0.1"),) if others else ())
        poll.start()
        return observations

    yield serve
    listener.close()


def body(text: str) -> Answer:
    return lambda connection: connection.sendall(HEAD + text.encode())


def drip(connection: socket.socket) -> None:
    """Send headers without end, slowly enough that no single read times out."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    pause = threading.Event()
    while True:
        connection.sendall(b"X: y\r\n")
        pause.wait(0.05)


def drip_body(head: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(head + b"\r\n\r\n")
        pause = threading.Event()
        while True:
            connection.sendall(b" ")
            pause.wait(0.05)

    return answer


GOOD = json.dumps({"attempt": 2, "step": 7})
HOSTILE = {
    "nested without end": body('{"attempt": 1, "metrics": ' + "[" * 90_000),
    "another kind of document": body("[1, 2]"),
    "a number beyond all others": body('{"attempt": 1e999, "step": 1}'),
    "an endless number": body('{"attempt": ' + "9" * 5_000 + "}"),
    "a status that is none": lambda connection: connection.sendall(b"HTTP/1.1 999999999999999 x\r\n\r\n"),
    "a chunk that is none": lambda connection: connection.sendall(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    ),
    "a header that Python cannot read": lambda connection: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x; a*=b; a*0=c\r\n\r\n{}"
    ),
    "drop by drop": drip,
    "drop by drop until the end": drip_body(b"HTTP/1.1 200 OK\r\nConnection: close"),
    "drop by drop as of old": drip_body(b"HTTP/1.0 200 OK"),
}


@pytest.mark.parametrize("answer", HOSTILE)
def test_the_poll_goes_on_after_a_hostile_answer(serve: Callable[..., queue.Queue[Any]], answer: str) -> None:
    report = serve(HOSTILE[answer], body(GOOD)).get(timeout=10).report
    assert (report.attempt, report.step) == (2, 7)


def test_what_a_report_holds_is_bounded(serve: Callable[..., queue.Queue[Any]]) -> None:
    metrics = {f"m{number}": number for number in range(2_000)}
    peers = [{"address": "a" * 1_000, "reason": "r" * 1_000, "seconds": 61}] * 50
    document = {"attempt": 1, "step": 10**300, "metrics": metrics, "peersWaiting": peers}
    report = serve(body(json.dumps(document))).get(timeout=30).report
    assert list(report.metrics) == [f"m{number}" for number in range(METRICS_KEPT)]
    assert report.step is None
    assert report.missing_peers == (("a" * 200, "r" * 200),) * 20


def test_only_the_leaders_metrics_are_kept(serve: Callable[..., queue.Queue[Any]]) -> None:
    told = serve(body(json.dumps({"attempt": 1, "metrics": {"loss": 1}})), others=True)
    reports = {answer.uid: answer.report for answer in (told.get(timeout=30), told.get(timeout=30))}
    assert {uid: dict(report.metrics) for uid, report in reports.items()} == {"u1": {"loss": 1}, "u2": {}}


MANY_HOSTILE_PODS = """
import json, resource
from trainchart_runtime.cluster import PARAMETER_SERVER, Cluster, Role
from trainchart_runtime.run.observation import parse_pod, parse_report

CLUSTER = Cluster(PARAMETER_SERVER, "e", 1, 2, {"worker": Role("w", 1000)})
WIDE = "\U0001f600"  # four bytes for every character of its text

def dump(document):
    return json.dumps(document, ensure_ascii=False)

def report(pod):
    failures = [{"number": n, "at": n + pod, "cause": "x", "error": WIDE + "e" * 299} for n in range(1, 11)]
    peers = [{"address": f"{n}{WIDE}" + "a" * 190, "reason": WIDE + "r" * 199, "seconds": 61} for n in range(20)]
    texts = {"lastCause": WIDE + "c" * 499, "lastError": WIDE + "d" * 499}
    return parse_report(json.loads(dump({"attempt": 1, "failures": failures, "peersWaiting": peers, **texts})))

def view(pod):
    ends = [dump({"cause": "a", "exitCode": end, "lines": [WIDE + str(n % 10) for n in range(420)]}) for end in (1, 2)]
    now, last = ({"terminated": {"exitCode": 1, "message": end}} for end in ends)
    status = {"containerStatuses": [{"name": "training", "state": now, "lastState": last}]}
    return parse_pod(CLUSTER, {"metadata": {"name": f"w-{pod}"}, "status": status})

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kept = [(report(pod), view(pod)) for pod in range(1000)]
assert kept[0][1].ends[0].termination.lines
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.timeout(120)
def test_a_thousand_hostile_pods_need_little_memory() -> None:
    """A controller has 128 MiB, and needs 25 for itself."""
    done = subprocess.run([sys.executable, "-c", MANY_HOSTILE_PODS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60


def test_the_log_holds_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    print_line("RunIncident: \x1b[2Jfirst\nsecond \x1b]0;title\x07\u202eend")
    assert capsys.readouterr().err == "trainchart-controller: RunIncident: first second end\n"


def test_an_answer_in_chunks_is_not_read() -> None:
    """http.client takes a chunk's size as it comes: one of -1 was read without end."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert launchers._fetch(launchers.Target("u", "127.0.0.1"), server.getsockname()[1], "/status") == b""
        thread.join()


STATUS = b"HTTP/1.1 200 OK\r\n"
SEMICOLONS = b'Content-Type: multipart/x; "' + b"".join(b";" * 60_000 + b"\r\n " for _ in range(4)) + b"\r\n"
"""For which Python's parser of e-mails needs half a minute."""


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("head", "body"),
    [
        (STATUS + b"H: " + b"a" * 4000 + b"\r\n", b"{}"),
        (STATUS + b"H: " + b"a" * 9000 + b"\r\n", b""),
        (STATUS + SEMICOLONS, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + STATUS + SEMICOLONS, b""),
        (b"HTTP/1.1\xa0100 200 \r\n\r\n" + STATUS + SEMICOLONS, b""),
    ],
    ids=["short", "long", "folded", "second", "second-in-disguise"],
)
def test_the_headers_of_an_answer_have_a_limit(head: bytes, body: bytes) -> None:
    """http.client takes a hundred headers of 64 KiB each, and needs several times that in memory."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(head + b"Content-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=answer)
        thread.start()
        assert launchers._fetch(launchers.Target("u", "127.0.0.1"), server.getsockname()[1], "/status") == body
        thread.join()
