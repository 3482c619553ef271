"""The pages that install and uninstall releases: choose a chart, fill in its form, review, install; and uninstall.

No state is kept between them but the charts that were fetched: each form carries what was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from trainchart.console.addresses import address_of, parse_cluster
from trainchart.console.form_pages import FIELD_PREFIX, FormPages
from trainchart.console.installing import NOWHERE, Installer, Problems, PublishedChart, Review, Typed
from trainchart.console.io.feed import call_in_thread
from trainchart.console.views import Notice, RunRef
from trainchart.errors import NotFound, TrainchartError

WRONG = 422
Answer = TypeVar("Answer")


class InstallRoutes:
    """Answers what is asked below /new, and about the end of a release."""

    def __init__(
        self,
        open_installer: Callable[[], Installer],
        pages: FormPages,
        token: str,
        tell: Callable[[RunRef, Notice], None],
    ) -> None:
        """`open_installer` may take a while, and always gives the same; `tell` keeps what a run's page is to say."""
        self._open, self._pages, self._token, self._tell = open_installer, pages, token, tell

    async def _ask(self, call: Callable[[Installer], Answer]) -> Answer:
        return await call_in_thread(lambda: call(self._open()))

    def list_routes(self) -> list[Route]:
        """Return the routes."""
        removal = "/runs/cluster/{namespace}/{release}/{chart}/uninstall"
        return [
            Route("/new", self._choose),
            Route("/new/published", self._fetch, methods=["POST"]),
            Route("/new/form", self._show_form),
            Route("/new/form", self._change_form, methods=["POST"]),
            Route("/new/review", self._review, methods=["POST"]),
            Route("/new/install", self._install, methods=["POST"]),
            Route(removal, self._show_removal),
            Route(removal, self._uninstall, methods=["POST"]),
        ]

    async def _choose(self, request: Request) -> Response:
        del request
        return await self._show_charts()

    async def _show_charts(
        self, published: PublishedChart | None = None, error: TrainchartError | None = None
    ) -> Response:
        try:
            offers = await self._ask(lambda installer: installer.list_charts())
        except TrainchartError as failure:
            return self._refuse(failure)
        page = self._pages.charts(offers, published or PublishedChart(""), describe(error), self._token)
        return HTMLResponse(page, WRONG if error else 200)

    async def _fetch(self, request: Request) -> Response:
        form = request.scope["form"]
        published = PublishedChart(
            form.get("reference", ""), form.get("name", ""), form.get("version", ""), "plain" in form
        )
        try:
            offer = await self._ask(lambda installer: installer.fetch(published))
        except TrainchartError as error:
            return await self._show_charts(published, error)
        return RedirectResponse(f"/new/form?chart={offer.key}", 303)

    async def _show_form(self, request: Request) -> Response:
        return await self._send_form(Typed(chart=request.query_params.get("chart", "")), {})

    async def _change_form(self, request: Request) -> Response:
        return await self._send_form(_read_typed(request.scope["form"]), {})

    async def _send_form(self, typed: Typed, problems: Problems) -> Response:
        try:
            chart = await self._ask(lambda installer: installer.open_chart(typed.chart))
        except TrainchartError as error:
            return self._refuse(error)
        return HTMLResponse(self._pages.form(chart, typed, problems, self._token), WRONG if problems else 200)

    async def _review(self, request: Request) -> Response:
        typed = _read_typed(request.scope["form"])
        try:
            found = await self._ask(lambda installer: installer.check(typed))
        except NotFound as error:
            return self._refuse(error)
        except TrainchartError as error:
            return await self._send_form(typed, {NOWHERE: [describe(error)]})
        if not isinstance(found, Review):
            return await self._send_form(typed, found)
        return HTMLResponse(self._pages.review(found, typed, "", self._token))

    async def _install(self, request: Request) -> Response:
        typed = _read_typed(request.scope["form"])
        try:
            done = await self._ask(lambda installer: installer.install(typed))
        except TrainchartError as error:
            return await self._show_failure(typed, error)
        if isinstance(done, Mapping):
            return await self._send_form(typed, done)
        if done.run is None:
            return HTMLResponse(self._pages.done(f"{typed.release} is installed", done.text, [], self._token))
        self._tell(done.run, Notice(f"{typed.release} is installed."))
        return RedirectResponse(address_of(done.run), 303)

    async def _show_failure(self, typed: Typed, error: TrainchartError) -> Response:
        """Say what helm said on the page from which it was started, so that nothing is lost."""
        try:
            found = await self._ask(lambda installer: installer.check(typed))
        except TrainchartError as failure:
            return self._refuse(failure)
        if not isinstance(found, Review):
            return await self._send_form(typed, found)
        return HTMLResponse(self._pages.review(found, typed, describe(error), self._token), 502)

    async def _show_removal(self, request: Request) -> Response:
        return await self._send_removal(request)

    async def _uninstall(self, request: Request) -> Response:
        run = _find_release(request)
        if run is not None and request.scope["form"].get("release", "").strip() != run.release:
            return await self._send_removal(request, f"This is not the name of the release: {run.release}", WRONG)
        if run is None:
            return self._refuse(NotFound("No release has this name."))
        try:
            removal = await self._ask(lambda installer: installer.plan_removal(run))
            said = await self._ask(lambda installer: installer.uninstall(run))
        except TrainchartError as error:
            return await self._send_removal(request, "", 502, describe(error))
        return HTMLResponse(self._pages.done(f"{run.release} is uninstalled", said, removal.kept, self._token))

    async def _send_removal(
        self, request: Request, problem: str = "", status: int = 200, failure: str = ""
    ) -> Response:
        run = _find_release(request)
        try:
            if run is None:
                raise NotFound("No release has this name.")
            removal = await self._ask(lambda installer: installer.plan_removal(run))
        except TrainchartError as error:
            return self._refuse(error)
        return HTMLResponse(self._pages.removal(run, removal, problem, failure, self._token), status)

    def _refuse(self, error: TrainchartError) -> Response:
        status = 404 if isinstance(error, NotFound) else 502
        return HTMLResponse(self._pages.refusal(describe(error), self._token), status)


def describe(error: TrainchartError | None) -> str:
    """Return an error in words; empty for none."""
    if error is None:
        return ""
    problems = "".join(f"\n{problem.message}" for problem in error.problems)
    return f"{error.message}{problems}{f' ({error.hint})' if error.hint else ''}"


def _read_typed(form: Mapping[str, str]) -> Typed:
    return Typed(
        chart=form.get("chart", ""),
        release=form.get("release", "").strip(),
        namespace=form.get("namespace", "").strip(),
        fields={name.removeprefix(FIELD_PREFIX): text for name, text in form.items() if name.startswith(FIELD_PREFIX)},
        yaml=form.get("yaml", "").replace("\r\n", "\n"),
        seen=form.get("seen", ""),
    )


def _find_release(request: Request) -> RunRef | None:
    parts = request.path_params
    return parse_cluster(parts["namespace"], parts["release"], parts["chart"])
