"""Published charts in the console's form: what is fetched, and that real helm takes how the shown command names it."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.repositories.chart_servers import serve_registry, serve_web_folder
from trainchart.actions.install import ReleaseInstaller
from trainchart.actions.publish import PublishOptions, publish_chart
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.repository_access import Address
from trainchart.console.installing import PublishedChart, Review, Typed
from trainchart.errors import TrainchartError

CHART = Path(__file__).parent.parent.parent / "charts" / "digits"


@pytest.fixture(scope="module", params=["registry", "web folder"])
def repository(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a repository that holds a chart."""
    folder = tmp_path_factory.mktemp("served") / "data"
    with ExitStack() as stack:
        if request.param == "registry":
            address = f"oci://{stack.enter_context(serve_registry(folder))}/team/charts"
        else:
            address = f"http://{stack.enter_context(serve_web_folder(folder))}/charts"
        publish_chart(CHART, Address(address, plain_http=True), PublishOptions(images=None))
        yield address


@pytest.fixture
def installer(tmp_path: Path, helm4: Path, monkeypatch: pytest.MonkeyPatch) -> ReleaseInstaller:
    """What the console installs with, outside of any project."""
    (tmp_path / "helm").symlink_to(helm4)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return ReleaseInstaller(Place("", "team-a"))


def name_charts(repository: str) -> list[PublishedChart]:
    found = [PublishedChart(repository, "digits", version, plain_http=True) for version in ("", "0.1.0")]
    if repository.startswith("oci://"):
        wholes = (f"{repository}/digits", f"{repository}/digits:0.1.0")
        found += [PublishedChart(whole, plain_http=True) for whole in wholes]
    return found


def test_helm_takes_what_the_command_names(
    repository: str, installer: ReleaseInstaller, helm3: Path, helm4: Path, tmp_path: Path
) -> None:
    for published in name_charts(repository):
        offer = installer.fetch(published)
        assert (offer.name, offer.version) == ("digits", "0.1.0")
    assert installer.list_charts().charts[-1] == offer
    review = installer.check(Typed(offer.key, "exp-1", "team-a", {"roles.worker.memory": "3100Mi"}))
    assert isinstance(review, Review)
    command, _, rest = review.command.partition(" <<'VALUES'\n")
    words, values = shlex.split(command), rest.removesuffix("VALUES")
    assert words[:3] == ["helm", "install", "exp-1"]
    for helm in (helm3, helm4):
        done = subprocess.run(
            [str(helm), "template", *words[2:], "--kube-version=1.36.0"],
            input=values, capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "3100Mi" in done.stdout
        assert 'name: "exp-1-digits-checkpoints"' in done.stdout


def make_unknown(repository: str) -> list[PublishedChart]:
    return [
        PublishedChart(repository, "other", plain_http=True),
        PublishedChart(repository, "digits", "9.9.9", plain_http=True),
        PublishedChart(repository, "digits", "0.1.0"),
        PublishedChart(repository, "../../etc", "0.1.0", plain_http=True),
        PublishedChart(repository, "--post-renderer=x", "0.1.0", plain_http=True),
    ]


def test_what_is_not_published_is_not_offered(repository: str, installer: ReleaseInstaller) -> None:
    for published in make_unknown(repository):
        with pytest.raises(TrainchartError):
            installer.fetch(published)
    assert installer.list_charts().charts == []


def test_only_the_last_charts_are_kept(repository: str, installer: ReleaseInstaller) -> None:
    fetch: Callable[[], str] = lambda: installer.fetch(name_charts(repository)[1]).key  # noqa: E731
    keys = [fetch() for _ in range(10)]
    assert [offer.key for offer in installer.list_charts().charts] == keys[2:]
