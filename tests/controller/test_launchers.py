"""Whatever a training pod answers to the run controller, the controller goes on."""

from __future__ import annotations

import json
import queue
import socket
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

    def serve(*answers: Answer) -> queue.Queue[Any]:
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
        poll.look_at(Target("u1", "127.0.0.1"), ())
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
    texts = {"lastCause": "c" * 50_000, "lastError": ["not", "a", "text"]}
    report = (
        serve(body(json.dumps({"attempt": 1, "step": 10**300, "metrics": metrics, **texts}))).get(timeout=30).report
    )
    assert list(report.metrics) == [f"m{number}" for number in range(METRICS_KEPT)]
    assert (len(report.cause), report.error, report.step) == (500, "", None)


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
