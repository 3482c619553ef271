"""What the console reads: local runs again only where something may have changed, and refusals in words."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, make_pods, make_record, make_sets, make_state
from tests.small_cluster.helm_records import make_helm_record
from tests.small_cluster.small_api import SmallApi, serve_small_api
from tests.support.model_server_objects import make_deployment
from trainchart.actions import console
from trainchart.actions.console import RunSource, Scope
from trainchart.actions.support import live_progress
from trainchart.actions.support.cluster_access import Place
from trainchart.cluster.io import kubernetes_api
from trainchart.console.views import RunRef, ServerRef
from trainchart.local.io import run_report
from trainchart.reports.report import CLUSTER, LOCAL

RUN = RunRef(LOCAL, "", "exp-1", "")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run that is over, and no cluster."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "runs" / "exp-1"
    folder.mkdir(parents=True)
    record = {"release": "exp-1", "chart": "mnist-0.1.0", "target": "mnist", "deciding": [], "pods": []}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "result.json").write_text(json.dumps({"verdict": "Succeeded"}))
    (folder / "curves.jsonl").write_text('{"task": "chief-0", "at": 1, "step": 5, "values": {"loss": 0.5}}\n')
    return tmp_path / "runs"


def make_source(runs: Path, **more: bool) -> RunSource:
    return RunSource(Scope(Place(), runs, **more))


def test_a_run_that_is_over_is_read_once_until_it_changes(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, read = run_report.read_report, []
    monkeypatch.setattr(run_report, "read_report", lambda folder: (read.append(folder.name), whole(folder))[1])
    look = make_source(runs).watch_list(LOCAL)
    phases = [[report.phase for report in look().reports] for _ in range(3)]
    assert (phases, read) == ([["Succeeded"]] * 3, ["exp-1"])
    (runs / "exp-1" / "result.json").write_text(json.dumps({"verdict": "Stopped"}))
    os.utime(runs / "exp-1" / "result.json", ns=(1, 1))
    assert [report.phase for report in look().reports] == ["Stopped"]


def test_a_damaged_run_is_noted_and_hides_no_other(runs: Path) -> None:
    (runs / "exp-2").mkdir()
    (runs / "exp-2" / "run.json").write_text("{")
    view = make_source(runs).watch_list(LOCAL)()
    assert [report.key.release for report in view.reports] == ["exp-1"]
    assert "exp-2/run.json is damaged" in view.notes[0]


def test_a_cluster_that_is_not_configured_is_an_error_in_words(runs: Path) -> None:
    view = make_source(runs).watch_list(CLUSTER)()
    assert view.error
    assert view.read_at == 0
    assert make_source(runs, looks_at_cluster=False).watch_list(CLUSTER)().is_asked is False


def test_a_run_has_its_curves_and_is_kept_when_it_is_removed(runs: Path) -> None:
    look = make_source(runs).watch_run(RUN)
    assert [(curve.name, curve.steps) for curve in look().curves] == [("loss", (5,))]
    (runs / "exp-1" / "run.json").unlink()
    gone = look()
    assert gone.is_missing
    assert gone.report is not None


def test_long_lines_of_a_log_are_cut(runs: Path) -> None:
    folder = runs / "exp-1"
    record = json.loads((folder / "run.json").read_text())
    pods = [{"label": "worker-0", "role": "worker", "name": "exp-1-worker-0"}]
    (folder / "run.json").write_text(json.dumps({**record, "pods": pods}))
    (folder / "logs").mkdir()
    (folder / "logs" / "worker-0.log").write_text(f"2026-01-02T03:04:05.000000Z begin {'x' * 9000} end\n")
    (line,) = make_source(runs).watch_run(RUN)().lines
    assert line.text.startswith("begin x") and "x…x" in line.text and line.text.endswith("x end")
    assert len(line.text) == 2000


def test_servers_are_listed_without_what_helm_keeps(api: SmallApi, runs: Path) -> None:
    api.objects["deployments"] = [make_deployment(f"digits-{number}") for number in range(500)]
    look = make_source(runs).watch_servers()
    assert len(look().servers) == 500
    assert not [path for path in api.requests if "secrets" in path or "configmaps" in path]
    api.raw = (503, "text/plain", b"away")
    assert (len(look().servers), bool(look().error)) == (500, True)


def test_a_server_keeps_its_history_while_nothing_changes(api: SmallApi, runs: Path) -> None:
    chart = Path(__file__).parents[3] / "charts" / "digits"
    record = make_helm_record(chart, "digits", NAMESPACE, {})
    api.objects |= {"deployments": [make_deployment()], "secrets": [record]}
    look = make_source(runs).watch_server(ServerRef(NAMESPACE, "digits"))
    # A chart that is no model server has no history, and the page says so.
    assert "is not a model server" in look().history_error
    asked = len([path for path in api.requests if "secrets" in path])
    assert look().server is not None
    assert len([path for path in api.requests if "secrets" in path]) == asked
    api.objects["deployments"] = [make_deployment(version=301)]
    look()
    assert len([path for path in api.requests if "secrets" in path]) > asked
    api.objects["deployments"] = []
    assert (look().is_missing, look().server is not None) == (True, True)
    assert make_source(runs).watch_server(ServerRef(NAMESPACE, "other"))().is_missing


def test_what_an_action_refuses_is_said(runs: Path) -> None:
    source = make_source(runs)
    assert source.act(RUN, "stop").text == "exp-1: the run is already over: Succeeded; nothing was changed"
    suspended = source.act(RUN, "suspend")
    assert suspended.is_bad
    assert "is a local run" in suspended.text
    missing = source.act(RunRef(LOCAL, "", "none", ""), "stop")
    assert missing.is_bad
    assert "there is no local run 'none'" in missing.text


RELEASE = RunRef(CLUSTER, NAMESPACE, "exp1", "mnist")
STEP = {"step": 1200, "examplesPerSecond": 1480.5, "metrics": {"loss": 0.5}, "attempt": 1, "at": time.time() - 20}


@pytest.fixture
def api(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallApi]:
    """A cluster with a release that goes on, whose record has step 1200."""
    record = make_record(make_state("Running", progress=STEP))
    with serve_small_api() as server:
        server.objects = {"statefulsets": make_sets(), "pods": make_pods(), "configmaps": [record]}
        monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "kubeconfig")))
        yield server


def count_lists(api: SmallApi) -> int:
    return sum("/statefulsets" in path for path in api.requests)


def test_a_step_that_is_told_does_not_wait_for_the_record(
    api: SmallApi, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter(range(1201, 1300))
    page = lambda *_: json.dumps({"runId": "", "step": next(steps), "metrics": {"loss": 0.25}}).encode()  # noqa: E731
    monkeypatch.setattr(live_progress, "read_pod_page", page)
    monkeypatch.setattr(kubernetes_api.KubernetesApi, "read_object", lambda *_: {})
    source = make_source(runs)
    look, look_at_all = source.watch_run(RELEASE), source.watch_list(CLUSTER)
    views = [look()]
    asked = count_lists(api)
    views += [look(), look()]
    assert [view.report and view.report.progress.step for view in views] == [1201, 1202, 1203]
    assert [view.is_live for view in views] == [True] * 3
    assert count_lists(api) == asked, "only the step is read again at once"
    # The list knows the record only, which is late: its step does not get into the curve.
    look_at_all()
    assert [(curve.name, curve.steps) for curve in look().curves] == [("loss", (1201, 1202, 1203, 1204))]


def test_the_final_evaluation_at_the_last_step_is_kept(
    api: SmallApi, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = [(1300, {"loss": 0.25}), (1300, {"loss": 0.2, "test_loss": 0.3}), (1300, {"loss": 0.2, "test_loss": 0.4})]
    pages = iter(json.dumps({"runId": "", "step": step, "metrics": metrics}).encode() for step, metrics in reports)
    monkeypatch.setattr(live_progress, "read_pod_page", lambda *_: next(pages))
    monkeypatch.setattr(kubernetes_api.KubernetesApi, "read_object", lambda *_: {})
    look = make_source(runs).watch_run(RELEASE)
    view = [look() for _ in reports][-1]
    curves = [(curve.name, curve.steps, curve.values) for curve in view.curves]
    assert curves == [("loss", (1300,), (0.25,)), ("test_loss", (1300,), (0.3,))]


@pytest.mark.parametrize(("seconds", "steps"), [(3600.0, (1200, 1300)), (0.0, (1300,))])
def test_scalars_of_releases_that_are_gone_are_forgotten(
    api: SmallApi, runs: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, steps: tuple[int, ...]
) -> None:
    monkeypatch.setattr(console, "_GONE_SECONDS", seconds)
    look_at_all = (source := make_source(runs)).watch_list(CLUSTER)
    assert len(look_at_all().reports) == 1
    there, api.objects = api.objects, {}
    assert not look_at_all().reports
    later = {**STEP, "step": 1300, "at": time.time()}
    api.objects = {**there, "configmaps": [make_record(make_state("Running", progress=later))]}
    assert {curve.steps for curve in source.watch_run(RELEASE)().curves} == {steps}


def test_who_may_not_ask_pods_sees_the_record(api: SmallApi, runs: Path) -> None:
    api.refused["portforward"] = 403
    look = make_source(runs).watch_run(RELEASE)
    views = [look() for _ in range(3)]
    assert [view.report and view.report.progress.step for view in views] == [1200] * 3
    (note,) = [text for text in views[-1].notes if "30 seconds late" in text]
    assert "portforward is forbidden: not for you" in note
    assert not views[-1].is_live
    assert sum("portforward" in path for path in api.requests) == 1
