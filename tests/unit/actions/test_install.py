"""Installing from the console: which charts are offered, what is checked, and the command that installs."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from trainchart.actions import install
from trainchart.actions.install import ReleaseInstaller
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.published_chart import fetch_published
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.console.installing import NAMESPACE, NOWHERE, RELEASE, Installed, PublishedChart, Review, Typed
from trainchart.console.views import RunRef
from trainchart.errors import NotFound, TrainchartError
from trainchart.helm.io.release import HelmInstall
from trainchart.host.files import read_tree
from trainchart.publish.repository import FetchedArchive
from trainchart.reports.report import CLUSTER

CHARTS = Path(__file__).parent.parent.parent.parent / "charts"


@pytest.fixture
def project(tmp_path: Path, helm4: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a project with a chart as folder and as archive, and one outside of it."""
    folder = tmp_path / "project"
    shutil.copytree(CHARTS / "mnist", folder / "charts" / "mnist")
    shutil.copytree(CHARTS / "digits", tmp_path / "outside")
    (folder / "dist").mkdir()
    (folder / "dist" / "digits-0.1.0.tgz").write_bytes(pack_chart(read_tree(CHARTS / "digits"), BuildInfo()).data)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "helm").symlink_to(helm4)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(folder)
    return folder


INSTALLER = ReleaseInstaller(Place("prod", "team-a"))


def test_folders_and_archives_of_the_project_are_offered(project: Path) -> None:
    (project / "charts" / "linked").symlink_to(project.parent / "outside")
    (project / "charts" / "broken").mkdir()
    (project / "charts" / "broken" / "Chart.yaml").write_text("name: [")
    (project / "-x.tgz").symlink_to("/etc/passwd")
    (project / "dist" / "not-a-chart.tgz").write_text("hello")
    offers = INSTALLER.list_charts()
    assert [offer.where for offer in offers.charts] == ["charts/mnist", "dist/digits-0.1.0.tgz"]
    assert len(offers.notes) == 4


@pytest.mark.parametrize(
    "key", ["", "local/../outside", "local/charts/../../outside", "local/charts/linked", "local//etc", "../outside"]
)
def test_no_other_path_is_opened(project: Path, key: str) -> None:
    (project / "charts" / "linked").symlink_to(project.parent / "outside")
    for call in (INSTALLER.open_chart, lambda name: INSTALLER.check(Typed(name, "exp-1", "team-a"))):
        with pytest.raises(NotFound, match="is not one of the offered charts"):
            call(key)


def test_a_chart_whose_files_lead_outside_is_not_opened(project: Path) -> None:
    (project / "charts" / "mnist" / "secret").symlink_to("/etc")
    with pytest.raises(TrainchartError, match="secret"):
        INSTALLER.open_chart("local/charts/mnist")


@pytest.mark.parametrize(
    "reference",
    ["", "charts/mnist", "../outside", "/etc", "file:///etc", "-x", "chartmuseum+http://127.0.0.1:1", "ftp://a/b"],
)
def test_a_published_chart_is_no_path(project: Path, reference: str) -> None:
    with pytest.raises(TrainchartError, match="is not the address of a published chart"):
        INSTALLER.fetch(PublishedChart(reference, "digits", "0.1.0"))


class DigitsRepository:
    """A repository that has the chart digits under every name."""

    def fetch(self, name: str, version: str) -> FetchedArchive:
        return FetchedArchive(pack_chart(read_tree(CHARTS / "digits"), BuildInfo()).data, "sha256:0", None)


@pytest.fixture
def _repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "open_repository", lambda *_: nullcontext(DigitsRepository()))


@pytest.mark.usefixtures("project", "_repository")
@pytest.mark.parametrize("name", ["--post-renderer=x", "-x", "..", "./charts/mnist", "/etc", "a b", "a\0b", "ä"])
def test_an_option_or_a_path_is_no_name_of_a_chart(name: str) -> None:
    with pytest.raises(TrainchartError, match="is not the name of a chart"):
        INSTALLER.fetch(PublishedChart("https://charts.example.com", name, "0.1.0"))


@pytest.mark.usefixtures("_repository")
def test_no_folder_is_installed_in_place_of_a_published_chart(project: Path) -> None:
    published = PublishedChart("https://charts.example.com", "digits", "0.1.0")
    offer = INSTALLER.fetch(published)
    typed = Typed(offer.key, "exp-1", "team-a")
    review = INSTALLER.check(typed)
    assert isinstance(review, Review)
    assert "digits --repo=https://charts.example.com --version=0.1.0" in review.command
    shutil.copytree(CHARTS / "mnist", project / "digits")
    for call in (lambda: INSTALLER.fetch(published), lambda: INSTALLER.check(typed)):
        with pytest.raises(TrainchartError, match="helm would install"):
            call()


@pytest.mark.usefixtures("project", "_repository")
def test_the_archive_that_was_reviewed_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    offer = INSTALLER.fetch(PublishedChart("https://charts.example.com", "digits", "0.1.0"))
    installed: list[bytes] = []

    def run_install(made: HelmInstall) -> str:
        installed.append(Path(*made.chart).read_bytes())
        return "done"

    monkeypatch.setattr(install, "run_install", run_install)
    done = INSTALLER.install(Typed(offer.key, "exp-1", "team-a"))
    assert done == Installed("done", RunRef(CLUSTER, "team-a", "exp-1", "digits"))
    assert installed == [DigitsRepository().fetch("digits", "0.1.0").data]


@pytest.mark.parametrize("reference", ["oci://127.0.0.1:1/a\udcff:1", "oci://127.0.0.1:1/a:1\udcff"])
def test_a_reference_that_is_no_utf8_names_no_chart(reference: str) -> None:
    with pytest.raises(TrainchartError, match="does not name a chart version"):
        fetch_published(reference, plain_http=False, environment={})


def test_the_command_installs_what_was_reviewed(project: Path) -> None:
    typed = Typed("local/charts/mnist", "exp-1", "team-a", {"hyperparameters.seed": "7"})
    review = INSTALLER.check(typed)
    assert isinstance(review, Review)
    assert review.command == (
        "helm install exp-1 charts/mnist --namespace team-a --kube-context prod --values - <<'VALUES'\n"
        "hyperparameters:\n  seed: 7\nVALUES"
    )
    assert review.training == "mnist"
    assert ("StatefulSet", 4) in review.kinds
    seen = INSTALLER.open_chart(typed.chart).seen
    unchanged = Typed("local/charts/mnist", "exp-1", "team-a", {}, seen=seen)
    plain = INSTALLER.check(unchanged)
    assert isinstance(plain, Review)
    assert plain.command == "helm install exp-1 charts/mnist --namespace team-a --kube-context prod"
    (project / "charts" / "mnist" / "README.md").write_text("changed")
    problems = INSTALLER.check(unchanged)
    assert not isinstance(problems, Review)
    assert "has changed" in problems[NOWHERE][0]


def test_all_that_is_wrong_is_said_at_once(project: Path) -> None:
    problems = INSTALLER.check(
        Typed("local/dist/digits-0.1.0.tgz", "Exp", "Team A", {"image.digest": "x"}, yaml="foo: 1\nbar: 2")
    )
    assert not isinstance(problems, Review)
    assert sorted(problems) == sorted([RELEASE, NAMESPACE, "image.digest", "yaml"])
    assert len(problems["yaml"]) == 2


def test_a_huge_schema_makes_no_form(project: Path) -> None:
    (project / "charts" / "mnist" / "values.schema.json").write_text('{"title": "' + "x" * 3_000_000 + '"}')
    with pytest.raises(TrainchartError, match=r"values\.schema\.json of the chart is too large"):
        INSTALLER.open_chart("local/charts/mnist")


@pytest.mark.parametrize(
    ("hook", "is_test"),
    [("test", True), (" test-success, test", True), ("test,post-install", False), ("testing", False), ("", False)],
)
def test_only_objects_of_helm_test_are_left_out_of_a_review(hook: str, is_test: bool) -> None:
    assert install._is_test({"metadata": {"annotations": {"helm.sh/hook": hook}}}) is is_test
