"""The forms over HTTP: nothing is done without session, origin and token, and nothing that was typed is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.console_reports import HOSTILE, MadeUpSource, make_code_app, make_report
from trainchart.console.access import VALUES_LIMIT
from trainchart.console.installing import (
    ChartOffer,
    ChartOffers,
    Installed,
    OpenChart,
    Problems,
    PublishedChart,
    Removal,
    Review,
    Typed,
)
from trainchart.console.views import RunRef
from trainchart.errors import NotFound, ToolError
from trainchart.reports.report import CLUSTER

BASE = "http://127.0.0.1:8123"
RUN = RunRef(CLUSTER, "team-a", "exp-9", "mnist")
REMOVAL = "/runs/cluster/team-a/exp-9/mnist/uninstall"
OFFER = ChartOffer("local/charts/mnist", "mnist", "1.0.0", where="charts/mnist")
CHANGES = ("/new/published", "/new/form", "/new/review", "/new/install", REMOVAL)


@dataclass
class MadeUpInstaller:
    """Writes down what it is asked for."""

    calls: list[Any] = field(default_factory=list)
    answer: Review | Problems = field(default_factory=lambda: Review("helm install", "", [("Job", 1)], "mnist"))
    failure: str = ""
    trains: bool = True

    def list_charts(self) -> ChartOffers:
        return ChartOffers([OFFER], "charts")

    def fetch(self, published: PublishedChart) -> ChartOffer:
        self.calls.append(published)
        raise ToolError("no such chart")

    def open_chart(self, key: str) -> OpenChart:
        if key != OFFER.key:
            raise NotFound(f"{key} is not one of the offered charts")
        values = {"hyperparameters": {"seed": 1}}
        return OpenChart(OFFER, values, {}, "digest", "team-a", f"# {HOSTILE[0]}\nhyperparameters: {{seed: 1}}\n")

    def check(self, typed: Typed) -> Review | Problems:
        self.open_chart(typed.chart)
        return self.answer

    def install(self, typed: Typed) -> Installed | Problems:
        self.calls.append(typed)
        if self.failure:
            raise ToolError(self.failure)
        run = RunRef(CLUSTER, typed.namespace, typed.release, "mnist")
        return Installed("STATUS: <b>deployed</b>\nREVISION: 1", run if self.trains else None)

    def plan_removal(self, run: RunRef) -> Removal:
        return Removal(f"helm uninstall {run.release}", ["Claim a"], [], [("Job", 1)])

    def uninstall(self, run: RunRef) -> str:
        self.calls.append(run)
        return "uninstalled"


@pytest.fixture
def installer() -> MadeUpInstaller:
    return MadeUpInstaller()


@pytest.fixture
def user(installer: MadeUpInstaller) -> TestClient:
    source = MadeUpSource()
    source.add(make_report("exp-9", origin=CLUSTER))
    app = make_code_app(source, "the-code", lambda: installer)
    client = TestClient(app, base_url=BASE, follow_redirects=False)
    client.post("/sign-in", data={"code": "the-code"})
    return client


@pytest.fixture
def send(user: TestClient) -> Callable[..., Any]:
    """Return a function that sends a form as a page of the console does."""
    token = user.get("/").text.partition('name="token" value="')[2].partition('"')[0]

    def send_one(path: str, **data: str) -> Any:
        return user.post(path, data={"token": token, **data}, headers={"origin": BASE})

    return send_one


@pytest.mark.parametrize("path", CHANGES)
def test_a_foreign_page_can_send_no_form(user: TestClient, installer: MadeUpInstaller, path: str) -> None:
    token = user.get("/").text.partition('name="token" value="')[2].partition('"')[0]
    data = {"chart": OFFER.key, "release": "exp-9", "namespace": "team-a", "reference": "oci://evil.example/c:1"}
    for headers, more in (
        ({"origin": BASE}, {}),
        ({"origin": BASE}, {"token": "wrong"}),
        ({}, {"token": token}),
        ({"origin": "http://evil.example"}, {"token": token}),
    ):
        assert user.post(path, data={**data, **more}, headers=headers).status_code == 403
    user.cookies.clear()
    assert user.post(path, data={**data, "token": token}, headers={"origin": BASE}).status_code == 401
    assert installer.calls == []


def test_without_a_cluster_nothing_is_offered() -> None:
    client = TestClient(make_code_app(MadeUpSource(), "the-code"), base_url=BASE)
    client.post("/sign-in", data={"code": "the-code"})
    assert "New run" not in client.get("/").text
    assert client.get("/new").status_code == 404


@pytest.mark.parametrize("key", ["", "../etc", "oci://evil.example/c:1"])
def test_only_charts_that_were_offered_are_opened(
    user: TestClient, send: Callable[..., Any], installer: MadeUpInstaller, key: str
) -> None:
    assert user.get("/new/form", params={"chart": key}).status_code == 404
    assert send("/new/form", chart=key).status_code == 404
    assert send("/new/review", chart=key).status_code == 404
    assert installer.calls == []


def test_problems_keep_what_was_typed(send: Callable[..., Any], installer: MadeUpInstaller) -> None:
    installer.answer = {"hyperparameters.seed": ["too <b>small"], "": ["it does not render"]}
    typed = {"value:hyperparameters.seed": HOSTILE[2], "release": HOSTILE[0], "yaml": "\n\na: |\n  x\n"}
    answer = send("/new/review", chart=OFFER.key, seen="digest", **typed)
    assert answer.status_code == 422
    assert "too &lt;b&gt;small" in answer.text
    assert "One value is not accepted" in answer.text
    assert "it does not render" in answer.text
    assert 'value="&#34;&gt;&lt;svg onload=alert(1)&gt;"' in answer.text
    assert "\n\n\na: |\n  x\n</textarea>" in answer.text
    assert HOSTILE[0] not in answer.text


def test_the_review_carries_what_was_typed(send: Callable[..., Any], installer: MadeUpInstaller) -> None:
    typed = {"release": "exp-9", "namespace": "team-a", "value:hyperparameters.seed": "", "yaml": "a: 1\r\nb: 2"}
    page = send("/new/review", chart=OFFER.key, **typed).text
    assert '<input type="hidden" name="value:hyperparameters.seed" value="">' in page
    assert '<input type="hidden" name="yaml" value="a: 1\nb: 2">' in page
    done = send("/new/install", chart=OFFER.key, **typed)
    assert (done.status_code, done.headers["location"]) == (303, "/runs/cluster/team-a/exp-9/mnist")
    wanted = Typed(OFFER.key, "exp-9", "team-a", {"hyperparameters.seed": ""}, "a: 1\nb: 2")
    assert installer.calls == [wanted]


def test_what_helm_says_is_shown_and_nothing_is_lost(send: Callable[..., Any], installer: MadeUpInstaller) -> None:
    installer.failure = "helm exited with 1: <b>quota</b>\nsecond line"
    answer = send("/new/install", chart=OFFER.key, release="exp-9", namespace="team-a", yaml="a: 1")
    assert answer.status_code == 502
    assert "&lt;b&gt;quota&lt;/b&gt;\nsecond line" in answer.text
    assert '<input type="hidden" name="yaml" value="a: 1">' in answer.text


def test_a_release_without_a_run_says_what_helm_said(send: Callable[..., Any], installer: MadeUpInstaller) -> None:
    installer.trains = False
    answer = send("/new/install", chart=OFFER.key, release="exp-9", namespace="team-a")
    assert answer.status_code == 200
    assert "exp-9 is installed" in answer.text
    assert "STATUS: &lt;b&gt;deployed&lt;/b&gt;\nREVISION: 1" in answer.text


def test_the_form_explains_the_values_without_a_field(user: TestClient) -> None:
    page = user.get("/new/form", params={"chart": OFFER.key}).text
    assert "# &lt;script&gt;alert(1)&lt;/script&gt;\nhyperparameters: {seed: 1}" in page


def test_a_chart_that_cannot_be_fetched_keeps_its_address(send: Callable[..., Any], installer: MadeUpInstaller) -> None:
    answer = send("/new/published", reference="oci://r.example/a:1", version="1", plain="1")
    assert answer.status_code == 422
    assert "no such chart" in answer.text
    assert 'value="oci://r.example/a:1"' in answer.text
    assert installer.calls == [PublishedChart("oci://r.example/a:1", "", "1", plain_http=True)]


def test_a_form_is_bounded(send: Callable[..., Any]) -> None:
    assert send("/new/review", chart=OFFER.key, yaml="x" * VALUES_LIMIT).status_code == 413
    assert send("/new/review", chart=OFFER.key, yaml="x" * (VALUES_LIMIT // 2)).status_code == 200
    assert send("/new/review", **{f"value:{number}": "" for number in range(300)}).status_code == 413
    assert send(REMOVAL, release="x" * 5000).status_code == 413


@pytest.mark.parametrize("typed", ["", "exp", "exp-99", "EXP-9"])
def test_uninstalling_needs_the_name(send: Callable[..., Any], installer: MadeUpInstaller, typed: str) -> None:
    answer = send(REMOVAL, release=typed)
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert installer.calls == []


def test_uninstalling_says_what_stays(user: TestClient, send: Callable[..., Any], installer: MadeUpInstaller) -> None:
    assert f'href="{REMOVAL}"' in user.get(REMOVAL.removesuffix("/uninstall")).text
    assert "Claim a" in user.get(REMOVAL).text
    assert "Claim a" in send(REMOVAL, release="exp-9 ").text
    assert installer.calls == [RUN]
