"""The console's pages, and the parts of them that change while someone watches, as HTML. Pure.

Every value is escaped by the templates (autoescape), control characters are left out, and no page holds a script or a
style of its own: what others have written, such as names, logs and metrics, stays text. A page is sent whole once;
later only the parts that have changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined

from trainchart.console.addresses import address_of
from trainchart.console.compare_page import describe_comparison
from trainchart.console.form_pages import FormPages
from trainchart.console.list_page import describe_group, find_holdings
from trainchart.console.run_page import describe_run
from trainchart.console.server_pages import ServerPages
from trainchart.console.views import ORIGINS, ListView, Notice, RunRef, RunView
from trainchart.reports.text import describe_bytes, describe_seconds, describe_time
from trainchart_runtime.log_text import clean

Parts = dict[str, str]
"""Id of an element → its HTML, that element included."""
RUN_PARTS = (
    "run-head",
    "run-actions",
    "run-why",
    "run-problems",
    "run-serving",
    "run-pods",
    "run-settings",
    "run-checkpoints",
    "run-logs",
)


_ROWS = "<!--rows-->"
"""Where the rows of a group go in its template; the text of others, which is escaped, never holds it."""


@dataclass(frozen=True)
class GroupHtml:
    """The runs of one origin, in pieces: of hundreds of rows, mostly few change."""

    id: str
    frame: str
    rows: Parts

    @property
    def html(self) -> str:
        """The whole."""
        head, _, tail = self.frame.partition(_ROWS)
        return f"{head}{''.join(self.rows.values())}{tail}"

    def changes_since(self, before: GroupHtml | None) -> Parts:
        """Return the parts that differ: rows, or the whole where more than rows is different."""
        if before is None or before.frame != self.frame or list(before.rows) != list(self.rows):
            return {self.id: self.html}
        return {name: html for name, html in self.rows.items() if before.rows[name] != html}


class Pages:
    """Makes pages from templates, which are given by name."""

    def __init__(
        self, templates: Mapping[str, str], version: str, context: str = "", *, takes_tokens: bool = False
    ) -> None:
        """`context` is the kubeconfig's that the user named; commands that pages show have it, too.

        `takes_tokens`: users sign in with their Kubernetes tokens, not with the code of the terminal.
        """
        self._context = context
        self._environment = Environment(
            loader=DictLoader(templates),
            autoescape=True,
            finalize=_clean,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {"lines": _Lines}
        self._environment.filters |= {"ago": describe_seconds, "moment": describe_time, "bytes": describe_bytes}
        self._environment.globals |= {"version": version, "takes_tokens": takes_tokens}
        self.forms = FormPages(self)
        """The pages that install and uninstall."""
        self.servers = ServerPages(self, context)
        """The pages of model servers."""

    def sign_in(self, message: str = "") -> str:
        """Return the page that asks for the code, or for a token."""
        return self.render("sign_in.html", message=message)

    def signed_in(self) -> str:
        """Return the page that leads on: the first request that a browser sends the new cookie with."""
        return self.render("signed_in.html")

    def refusal(self, title: str, message: str) -> str:
        """Return the page of an error."""
        return self.render("refusal.html", title=title, message=message)

    def list(self, views: Mapping[str, ListView], token: str, *, installs: bool = False) -> str:
        """Return the page of all runs; `installs` where releases can be installed."""
        groups = [self.list_group(origin, views[origin]).html for origin in ORIGINS]
        return self.render("list.html", groups=groups, token=token, installs=installs)

    def list_group(self, origin: str, view: ListView) -> GroupHtml:
        """Return what changes on the page of all runs: the group of one origin."""
        group = describe_group(origin, view)
        rows = {row.id: self.render("list_row.html", group=group, row=row) for row in group.rows}
        frame = self.render("list_group.html", group=group, holdings=find_holdings(view.reports))
        return GroupHtml(f"group-{origin}", frame, rows)

    def run(self, run: RunRef, view: RunView, token: str, notice: Notice | None = None) -> str:
        """Return the page of one run."""
        parts = self.run_parts(run, view, token, notice)
        return self.render("run.html", run=run, parts=parts, address=address_of(run), token=token)

    def run_parts(self, run: RunRef, view: RunView, token: str, notice: Notice | None = None) -> Parts:
        """Return what changes on the page of one run; only its head where it was never read."""
        values = {"run": run, "view": view, "notice": notice, "token": token, "address": address_of(run)}
        if view.report is None:
            return {"run-head": self.render("run_head.html", **values, page=None)}
        page = describe_run(view, view.report, self._context)
        return {name: self.render(f"{name.replace('-', '_')}.html", **values, page=page) for name in RUN_PARTS}

    def compare(self, views: Sequence[RunView], stream: str, token: str) -> str:
        """Return the page of several runs, all of which were read."""
        return self.render("compare.html", parts=self.compare_parts(views), stream=stream, token=token)

    def compare_parts(self, views: Sequence[RunView]) -> Parts:
        """Return what changes on the page of several runs."""
        return {"comparison": self.render("comparison.html", page=describe_comparison(views, self._context))}

    def render(self, name: str, **values: Any) -> str:
        """Return what a template makes of some values."""
        return self._environment.get_template(name).render(values)


class _Lines(str):
    """A text whose line breaks stay."""


def _clean(value: object) -> object:
    """Return a text without control characters; HTML that templates have made is left as it is."""
    if isinstance(value, _Lines):
        return "\n".join(map(clean, value.split("\n")))
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
