"""Reports of made-up runs, and a Source that gives them to the console."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainchart.console.views import ListView, Notice, RunRef, RunView, ServerRef, ServersView, ServerView, refer_to
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import CLUSTER, FROM_RECORD, LOCAL, PodReport, Progress, Report, RoleReport, TrainingKey
from trainchart.reports.run_settings import RoleSettings, RunSettings
from trainchart_runtime.run.state import FAILED, RUNNING, Verdict

NOW = 1_800_000_000.0
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "</title></textarea></style><script>alert(1)</script>",
    "{{ 7 * 7 }}${7*7}<%= 7 %>",
    "</script><!--",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\x1b]0;title\x07\u202egnp.exe",
    "data: x\n\nevent: parts\ndata: {}",
)


def make_report(name: str = "exp-7", *, origin: str = LOCAL, phase: str = RUNNING, **more: Any) -> Report:
    namespace = "team-a" if origin == CLUSTER else ""
    return Report(
        key=TrainingKey(namespace, name, "mnist"),
        now=NOW,
        phase=phase,
        source=FROM_RECORD,
        origin=origin,
        folder=f".trainchart/runs/{name}" if origin == LOCAL else "",
        chart="mnist-0.1.0",
        since=NOW - 90,
        attempt=1,
        **{
            "progress": Progress(1200, 8000.0, {"loss": 0.25}, NOW - 2),
            "roles": (RoleReport("worker", wanted=1, running=1),),
            "pods": (make_pod(),),
            **more,
        },
    )


def make_pod(label: str = "worker-0", **more: Any) -> PodReport:
    settings = {
        "state": "Running",
        "node": "node-1",
        "restarts": 0,
        "created": NOW - 90,
        "gpus": {},
        "holds_gpus": False,
    }
    return PodReport(name=label, label=label, role=label.rpartition("-")[0], **{**settings, **more})


def make_failed(name: str = "exp-8", error: str = "ValueError: no data today", **more: Any) -> Report:
    verdict = Verdict(
        FAILED, NOW - 60, "program-error", "The program ended with an exception.", "Read the exception.", "worker-0",
        exit_code=1, error=error, lines=(error,),
    )  # fmt: skip
    return make_report(
        name, phase=FAILED, outcome=verdict, resume_command=f"trainchart run mnist --resume --release {name}", **more
    )


def make_hostile(text: str) -> Report:
    """A failed run in which everything that others write is `text`."""
    return replace(
        make_failed(text, text, pods=(make_pod(state=text, node=text, gpus={text: 1}, last_end=text),)),
        chart=text,
        progress=Progress(1, 1.0, {text: 1.0}, NOW),
        record={"command": text, "code": {"folder": text}},
        settings=RunSettings(
            text, {"worker": RoleSettings(1, text, text, text, text)}, {text: text}, {text: {text: text}}
        ),
        remarks=(text,),
    )


@dataclass
class MadeUpSource:
    """Gives the console what a test puts there."""

    local: ListView = field(default_factory=lambda: ListView(read_at=NOW))
    cluster: ListView = field(default_factory=lambda: ListView(is_asked=False))
    runs: dict[RunRef, RunView] = field(default_factory=dict)
    servers: ServersView = field(default_factory=lambda: ServersView(read_at=NOW))
    server_views: dict[ServerRef, ServerView] = field(default_factory=dict)
    acts: list[tuple[RunRef, str]] = field(default_factory=list)
    notice: Notice = field(default_factory=lambda: Notice("it was done"))

    def add(self, report: Report, **more: Any) -> RunView:
        lines = (LogLine("2027-01-15T08:00:00.000000Z", "worker-0", "step 1200"),)
        view = RunView(**{"report": report, "why": report, "lines": lines, "read_at": NOW, **more})
        self.runs[refer_to(report)] = view
        if report.origin == LOCAL:
            self.local = replace(self.local, reports=(*self.local.reports, report))
        else:
            self.cluster = replace(self.cluster, reports=(*self.cluster.reports, report), is_asked=True)
        return view

    def act(self, run: RunRef, verb: str) -> Notice:
        self.acts.append((run, verb))
        return self.notice

    def watch_list(self, origin: str) -> Callable[[], ListView]:
        return lambda: self.local if origin == LOCAL else self.cluster

    def watch_servers(self) -> Callable[[], ServersView]:
        return lambda: self.servers

    def watch_server(self, server: ServerRef) -> Callable[[], ServerView]:
        return lambda: self.server_views.get(server) or ServerView(error="there is no such server", is_missing=True)

    def watch_run(self, run: RunRef) -> Callable[[], RunView]:
        return lambda: self.runs.get(run) or RunView(error="there is no such run", is_missing=True)


def make_pages(*, takes_tokens: bool = False) -> Any:
    from trainchart.console.pages import Pages
    from trainchart.resources import read_console_files

    templates: Mapping[str, str] = {name: text.decode() for name, text in read_console_files("templates").items()}
    return Pages(templates, "0.1.0", takes_tokens=takes_tokens)


def make_code_app(source: MadeUpSource, code: str, open_installer: Any = None) -> Any:
    """Return the application for who knows the code, at http://127.0.0.1:8123."""
    from trainchart.console.access import list_names
    from trainchart.console.io.app import Console
    from trainchart.console.io.code_door import CodeDoor
    from trainchart.console.io.guard import Guard
    from trainchart.resources import read_console_files

    pages, origins = make_pages(), [f"http://{name}" for name in list_names("127.0.0.1", 8123)]
    door = CodeDoor(Console(source, pages, open_installer), pages, origins, code)
    return Guard(door, pages, read_console_files("static"))
