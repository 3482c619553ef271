"""Messages about changes of phase, to a webhook that takes Slack's JSON.

A message is recorded before it is sent, so that a controller that comes later sends none twice. A thread of its own
sends it: the run never waits, except that a controller whose run is over leaves only when it is out, or given up.
The webhook's URL is a credential: no line of the log and no text of the record holds it.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import socket
import ssl
import threading
import time
from typing import Any, Callable, NamedTuple, Optional, Sequence
from urllib.parse import urlsplit

from trainchart_controller.console import print_line
from trainchart_controller.short_response import Alarm, ShortResponse
from trainchart_runtime.contract import CONTROLLER_AGENT
from trainchart_runtime.log_text import clean, shorten
from trainchart_runtime.run.state import NOTICE_SENT, SUCCEEDED, PhaseNotice, RunState

_TRIES = 3
_TRY_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_LAST_WAIT_SECONDS = 20.0
"""All tries and pauses; a server that sends its answer drop by drop would otherwise be waited for without end."""
_TEXT_LIMIT = 500
_URL_LIMIT = 8192
_PASSING = (408, 425, 429)


class NotifySettings(NamedTuple):
    """What the chart asks for; no phases: nothing is sent."""

    phases: Sequence[str] = ()
    file: str = ""
    """Holds the URL, from a Secret that may be missing."""
    secret: str = ""
    key: str = ""


class NoticeOutcome(NamedTuple):
    """What became of one message."""

    since: float
    """Of the phase that it was about."""
    outcome: str


class _Answer(NamedTuple):
    """What came of one try."""

    outcome: str
    may_pass: bool = False
    """Whether the next try may do better."""


_NO_URL = _Answer("the Secret does not contain an http or https URL")


class Notifier:
    """Marks in the state what is to be sent, and sends it once that is recorded."""

    def __init__(
        self, settings: NotifySettings, release: str, namespace: str, outcomes: "queue.Queue[Any]", send: Any = None
    ) -> None:
        self._settings = settings
        self._release = release
        self._namespace = namespace
        self._outcomes = outcomes
        self._send: Callable[[NotifySettings, str], str] = send or deliver
        self._due: Optional[RunState] = None
        self._outcome: Optional[NoticeOutcome] = None
        self._thread: Optional[threading.Thread] = None

    def mark(self, state: RunState) -> RunState:
        """Return the state with what is about to be sent, or with what became of it; itself if there is no news."""
        told, came, self._due = state.notice, self._outcome, None
        if state.phase in self._settings.phases and (told is None or told.since != state.since):
            self._due = state._replace(notice=PhaseNotice(state.phase, state.since))
            return self._due
        if told is not None and came is not None and (came.since, "") == (told.since, told.outcome):
            return state._replace(notice=told._replace(outcome=came.outcome))
        return state

    def start(self) -> None:
        """Send what was marked last: it is recorded now."""
        if self._due is None:
            return
        text = write_text(self._release, self._namespace, self._due)
        self._thread = threading.Thread(target=self._run, args=(text, self._due.since), daemon=True)
        self._due = None
        self._thread.start()

    def take_in(self, outcome: NoticeOutcome) -> None:
        if outcome.outcome != NOTICE_SENT:
            print_line(f"a message could not be sent: {outcome.outcome}")
        self._outcome = outcome

    def wait(self) -> None:
        """Wait for the message that is on its way, for a limited time, and take in what became of it."""
        if self._thread is None:
            return
        self._thread.join(_LAST_WAIT_SECONDS)
        while not self._outcomes.empty():
            item = self._outcomes.get()
            if isinstance(item, NoticeOutcome):
                self.take_in(item)

    def _run(self, text: str, since: float) -> None:
        try:
            outcome = self._send(self._settings, text)
        except Exception as err:  # the record must say so where this program is at fault
            outcome = type(err).__name__
        self._outcomes.put(NoticeOutcome(since, outcome))


def write_text(release: str, namespace: str, state: RunState) -> str:
    """Return the message about the present phase, in one or two lines."""
    attempts = f"{state.attempt} attempt{'' if state.attempt == 1 else 's'}"
    line = f"{release} in namespace {namespace}: {state.phase}, {attempts}"
    verdict = state.verdict
    if verdict is not None and verdict.result != SUCCEEDED:
        words = f"{verdict.cause}: {verdict.sentence} {verdict.hint}"
    else:
        words = state.history[-1].message if state.history and verdict is None else ""
    lines = [line, shorten(clean(" ".join(words.split())), _TEXT_LIMIT)]
    text = "\n".join(each for each in lines if each)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def deliver(settings: NotifySettings, text: str) -> str:
    """Send a text and return NOTICE_SENT, or why it could not be sent, without the URL."""
    until = time.monotonic() + _LAST_WAIT_SECONDS
    missing = _Answer(f"the Secret {settings.secret} has no key {settings.key}, or is missing")
    answer, pause = missing, _PAUSE_SECONDS
    for number in range(_TRIES):
        # Read each time: the Secret may have come, or changed, in the meantime.
        url = _read_url(settings)
        answer = _post(url, text) if url else missing
        if not answer.may_pass or number == _TRIES - 1 or time.monotonic() + pause >= until:
            break
        time.sleep(pause)
        pause *= 2
    return answer.outcome


def _read_url(settings: NotifySettings) -> str:
    try:
        with open(settings.file, encoding="utf-8") as file:
            return file.read(_URL_LIMIT).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _post(url: str, text: str) -> _Answer:
    """Try once; proxies are those of the environment."""
    # Only here: a controller that sends nothing need not hold it in memory.
    import urllib.error
    import urllib.request

    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        return _NO_URL
    headers = {"Content-Type": "application/json", "User-Agent": CONTROLLER_AGENT}
    alarm = Alarm(_TRY_SECONDS)
    try:
        request = urllib.request.Request(url, json.dumps({"text": text}).encode(), headers, method="POST")
        # The body is not read: the status says all, and the body may have no end.
        with _make_opener(alarm).open(request, timeout=_TRY_SECONDS):
            return _Answer(NOTICE_SENT)
    except urllib.error.HTTPError as err:
        err.close()
        if 300 <= err.code < 400:
            return _Answer(f"the webhook answers with a redirect ({err.code}), which is not followed")
        return _Answer(f"the webhook answers with HTTP status {err.code}", err.code >= 500 or err.code in _PASSING)
    except Exception as err:  # http.client has many, and their texts may hold the URL
        return _describe(TimeoutError() if alarm.has_rung else getattr(err, "reason", err))
    finally:
        alarm.stop()


def _make_opener(alarm: Alarm) -> Any:
    """Return an opener that follows no redirects, and whose answers are bounded in size, and in time by the alarm."""
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        """Lets an answer that points elsewhere be an error: the message is for the server that the URL names."""

        def _leave(self, *args: Any) -> None:
            return None  # Without a look at where it points: that may be anything but a URL.

        http_error_301: Any = _leave
        http_error_302 = http_error_303 = http_error_307 = http_error_308 = http_error_301

    def connect(*args: Any, **options: Any) -> socket.socket:
        connected = socket.create_connection(*args, **options)
        alarm.start(connected)
        return connected

    class Bounded(urllib.request.AbstractHTTPHandler):
        def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
            def make(*args: Any, **options: Any) -> Any:
                connection = http_class(*args, **options)
                connection.response_class = ShortResponse
                # Before TLS and a proxy's tunnel, whose answers the alarm is for too.
                connection._create_connection = connect
                return connection

            return super().do_open(make, req, **options)

    class Http(Bounded, urllib.request.HTTPHandler):
        pass

    class Https(Bounded, urllib.request.HTTPSHandler):
        pass

    return urllib.request.build_opener(NoRedirects, Http, Https)


def _describe(err: object) -> _Answer:
    if isinstance(err, ssl.SSLCertVerificationError):
        return _Answer("the webhook's certificate is not trusted")
    if isinstance(err, socket.gaierror):
        return _Answer("the webhook's host name cannot be resolved", may_pass=True)
    if isinstance(err, (socket.timeout, TimeoutError)):
        return _Answer(f"the webhook has not answered within {_TRY_SECONDS:.0f} seconds", may_pass=True)
    if isinstance(err, (ValueError, http.client.InvalidURL)):
        return _NO_URL
    why = os.strerror(err.errno) if isinstance(err, OSError) and err.errno else type(err).__name__
    return _Answer(f"the webhook cannot be reached: {why}", may_pass=True)
