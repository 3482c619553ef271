"""Messages about changes of phase: to a real HTTP server on loopback, which answers well, badly, or never."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.controller.fake_api import RUN_SETTINGS, make_pod
from trainchart_controller import notify
from trainchart_controller.notify import Notifier, NotifySettings, deliver, write_text
from trainchart_runtime import causes
from trainchart_runtime.run.state import FAILED, NOTICE_SENT, RUNNING, SUCCEEDED, RunState, Verdict

MISSING = "the Secret channel has no key url, or is missing"


class Webhook:
    """Takes messages; `answer` says how the next ones are answered."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answer: Any = 200
        self.ended = threading.Event()
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                webhook.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                webhook.reply(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/services/T0/B0/s3cr3t"

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        answer = self.answer.pop(0) if isinstance(self.answer, list) else self.answer
        if answer == "hang":
            self.ended.wait(60)
            return
        handler.send_response(200 if answer == "endless" else answer)
        if answer == 302:
            handler.send_header("Location", self.url)
        handler.end_headers()
        try:
            while answer == "endless" and not self.ended.is_set():
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    monkeypatch.setattr(notify, "_TRY_SECONDS", 0.5)
    monkeypatch.setattr(notify, "_PAUSE_SECONDS", 0.01)
    found = Webhook()
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield found
    found.ended.set()
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def settings(tmp_path: Path, webhook: Webhook) -> NotifySettings:
    (tmp_path / "url").write_text(webhook.url + "\n")
    return NotifySettings((FAILED, SUCCEEDED), str(tmp_path / "url"), "channel", "url")


@pytest.mark.parametrize(
    ("answer", "words", "tries"),
    [
        (200, NOTICE_SENT, 1),
        ("endless", NOTICE_SENT, 1),
        ([500, 429, 200], NOTICE_SENT, 3),
        (500, "the webhook answers with HTTP status 500", 3),
        (404, "the webhook answers with HTTP status 404", 1),
        (302, "the webhook answers with a redirect (302), which is not followed", 1),
        ("hang", "the webhook has not answered within 0 seconds", 3),
    ],
)
def test_every_answer_is_told_in_words(webhook, settings, answer, words, tries):
    webhook.answer = answer
    started = time.monotonic()
    assert deliver(settings, "it is done") == words
    assert webhook.bodies == [{"text": "it is done"}] * tries
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", MISSING),
        ("file:///etc/passwd", "the Secret does not contain an http or https URL"),
        ("http://[s3cr3t", "the Secret does not contain an http or https URL"),
        ("http://127.0.0.1:s3cr3t/", "the Secret does not contain an http or https URL"),
        ("http://127.0.0.1:1/s3cr3t", "the webhook cannot be reached: Connection refused"),
        ("http://127.0.0.1:1/s3 cr3t", "the Secret does not contain an http or https URL"),
        ("http://s3cr3t.invalid/", "the webhook's host name cannot be resolved"),
    ],
)
def test_a_wrong_url_is_told_without_the_url(settings, url, words):
    Path(settings.file).write_text(url)
    assert deliver(settings, "it is done") == words


OK = b"HTTP/1.1 200 OK\r\n"
REDIRECT = "the webhook answers with a redirect (302), which is not followed"
MANY = b"a: " + b"b" * 60_000 + b"\r\n"
LATE = "the webhook has not answered within 0 seconds"
CUT = "the webhook cannot be reached: RemoteDisconnected"


@pytest.fixture
def serve_raw(monkeypatch: pytest.MonkeyPatch, settings: NotifySettings) -> Iterator[Any]:
    """Serve a start, and then parts without end, to a message."""
    monkeypatch.setattr(notify, "_TRIES", 1)
    stopping = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def run(start: bytes, part: bytes, pause: float) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(start)
            while part and not stopping.wait(pause):
                connection.sendall(part)

    def serve(start: bytes, part: bytes = b"", pause: float = 0) -> None:
        Path(settings.file).write_text(f"http://127.0.0.1:{listener.getsockname()[1]}/s3cr3t")
        threading.Thread(target=run, args=(start, part, pause), daemon=True).start()

    yield serve
    stopping.set()
    listener.close()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("start", "part", "words"),
    [
        (OK, MANY, NOTICE_SENT),
        (b"HTTP/1.1 500 No\r\n", MANY, "the webhook answers with HTTP status 500"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", CUT),
    ],
)
def test_no_answer_is_read_without_end(serve_raw, settings, start, part, words):
    serve_raw(start, part)
    assert deliver(settings, "it is done") == words


@pytest.mark.timeout(20)
@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 100 Continue\r\n"])
def test_an_answer_byte_by_byte_is_late(serve_raw, settings, start):
    serve_raw(start, b"H", pause=0.05)
    assert deliver(settings, "it is done") == LATE


@pytest.mark.timeout(20)
def test_a_tls_handshake_byte_by_byte_is_late(serve_raw, settings):
    # A record of a handshake, of 16 KiB, which comes slowly.
    serve_raw(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"\x03", pause=0.05)
    Path(settings.file).write_text(Path(settings.file).read_text().replace("http:", "https:"))
    assert deliver(settings, "it is done") == LATE


@pytest.mark.parametrize("where", [b"http://[", b"file:///etc/passwd", b"http://127.0.0.1:x/"])
def test_a_redirect_to_anything_is_a_redirect(serve_raw, settings, where):
    serve_raw(b"HTTP/1.1 302 Found\r\nLocation: " + where + b"\r\n\r\n")
    assert deliver(settings, "it is done") == REDIRECT


def test_a_secret_that_comes_later_is_read(webhook, settings):
    Path(settings.file).unlink()
    assert deliver(settings, "it is done") == MISSING
    Path(settings.file).write_text(webhook.url)
    assert deliver(settings, "it is done") == NOTICE_SENT


def test_a_proxy_of_the_environment_is_used(webhook, settings, monkeypatch):
    monkeypatch.setenv("http_proxy", webhook.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    Path(settings.file).write_text("http://hooks.invalid/services/1")
    assert (deliver(settings, "it is done"), len(webhook.bodies)) == (NOTICE_SENT, 1)


def test_text_names_cause_and_next_action_escaped():
    verdict = Verdict(FAILED, 2.0, "module-missing", "A module <x> & y is missing.", "Add it\nto the image.")
    text = write_text("exp1", "team-a", RunState("run-1", FAILED, 2.0, 2.0, attempt=2, verdict=verdict))
    first, second = text.split("\n")
    assert first == "exp1 in namespace team-a: Failed, 2 attempts"
    assert second == "module-missing: A module &lt;x&gt; &amp; y is missing. Add it to the image."
    succeeded = RunState(
        "run-1", SUCCEEDED, 2.0, 2.0, verdict=Verdict(SUCCEEDED, 2.0, "succeeded", "The program finished.")
    )
    assert write_text("exp1", "team-a", succeeded) == "exp1 in namespace team-a: Succeeded, 1 attempt"


def test_each_phase_is_sent_once_after_it_was_recorded():
    sent: list[str] = []

    def send(_: NotifySettings, text: str) -> str:
        sent.append(text)
        return NOTICE_SENT

    def make() -> Notifier:
        return Notifier(NotifySettings((FAILED,)), "exp1", "team-a", queue.Queue(), send)

    notifier = make()
    running = RunState("run-1", RUNNING, 1.0, 1.0)
    assert notifier.mark(running) is running
    failed = running._replace(phase=FAILED, since=2.0, verdict=Verdict(FAILED, 2.0))
    marked = notifier.mark(failed)
    assert (marked.notice, sent) == ((FAILED, 2.0, ""), []), "recorded before it is sent"
    notifier.start()
    notifier.wait()
    assert (notifier.mark(marked).notice, len(sent)) == ((FAILED, 2.0, NOTICE_SENT), 1)
    later = make()
    assert later.mark(marked) is marked, "a controller that comes later does not know whether it has arrived"
    later.start()
    assert len(sent) == 1


def test_run_tells_its_end_and_a_new_controller_does_not(api, start, run_to_phase, webhook, settings):
    asked = {"phases": [FAILED], "file": settings.file, "secret": "channel", "key": "url"}
    told = {**RUN_SETTINGS, "notify": asked}
    controller = start(settings=told)
    run_to_phase("Running")
    api.put_pod(make_pod("worker-1", causes.MODULE_MISSING, error="ModuleNotFoundError: No module named 's3cr3t'"))
    assert controller.wait() == 42
    assert api.state()["notice"]["outcome"] == NOTICE_SENT
    assert start(settings=told).wait() == 42
    (body,) = webhook.bodies
    assert body["text"].startswith("exp1 in namespace team-a: Failed, 1 attempt\nmodule-missing: ")
    assert "s3cr3t" not in body["text"] and webhook.url not in controller.log


def test_a_webhook_that_fails_is_recorded_and_ends_no_run(api, start, run_to_phase, webhook, settings):
    webhook.answer = 403
    asked = {"phases": [SUCCEEDED], "file": settings.file, "secret": "channel", "key": "url"}
    controller = start(settings={**RUN_SETTINGS, "notify": asked})
    run_to_phase("Running")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED, step=800))
    assert controller.wait() == 0
    assert api.state()["notice"]["outcome"] == "the webhook answers with HTTP status 403"
    assert "HTTP status 403" in controller.log and webhook.url not in controller.log + json.dumps(api.state())


def test_unknown_phases_are_refused_at_the_start(api, start):
    controller = start(patient=True, settings={**RUN_SETTINGS, "notify": {"phases": ["Done"]}})
    assert controller.wait() == 78
    assert "'notify' as an object with known phases" in controller.log
