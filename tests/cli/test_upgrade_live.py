"""upgrade --live: what upgrading the releases on a cluster would do, against a small API server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.small_cluster.cluster_objects import NAMESPACE, make_state
from tests.small_cluster.helm_records import make_cluster_objects, make_helm_record
from tests.small_cluster.small_api import SmallApi, serve_small_api
from trainchart.cli.app import app

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: sine
description: A tiny model.
image: {repository: registry.example.com/tiny, tag: "1.0"}
code: {path: code, command: [python, train.py]}
strategy: single
hyperparameters:
  epochs: {type: integer, default: 3}
"""


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallApi]:
    """A project with one chart, and a cluster without releases."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sine.yaml").write_text(SPEC)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print('trained')\n")
    assert call("generate").exit_code == 0
    with serve_small_api() as server:
        monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "kubeconfig")))
        yield server


def install(api: SmallApi, release: str, phase: str = "Running", **given: Any) -> None:
    """Put a release of the chart on disk onto the cluster, its run in a phase for two hours."""
    chart = Path("charts/sine")
    found = make_cluster_objects(chart, release, NAMESPACE, given)
    roles = {"worker": {"wanted": 1, "running": 1, "failures": 0}}
    found["configmaps"][0]["data"] = {
        "state.json": json.dumps(make_state(phase, roles=roles, since=time.time() - 7200))
    }
    found["secrets"] = [make_helm_record(chart, release, NAMESPACE, given)]
    for plural, objects in found.items():
        api.objects.setdefault(plural, []).extend(objects)


def change_default() -> None:
    spec = Path("models/sine.yaml")
    spec.write_text(spec.read_text().replace("default: 3", "default: 4"))


def predict(*arguments: str) -> dict[str, dict[str, Any]]:
    """Return what --live says, by release."""
    shown = call("upgrade", "--live", "--format", "json", *arguments)
    return {each["release"]: each for each in json.loads(shown.stdout)["releases"]}


def test_the_values_of_each_release_decide(api: SmallApi) -> None:
    install(api, "plain")
    install(api, "own", hyperparameters={"epochs": 9})
    install(api, "patient", run={"onChange": "finish-first"})
    install(api, "held", "Suspended")
    change_default()
    found = predict("--check")
    assert {name: each["effect"] for name, each in found.items()} == {
        "plain": "restarts training",
        "own": "no effect",
        "patient": "takes effect at the next attempt",
        "held": "takes effect at the next attempt",
    }
    assert found["plain"]["isLeftForNextAttempt"]
    command = "helm upgrade plain charts/sine --namespace team-a --reset-then-reuse-values"
    assert found["plain"]["command"].endswith(f"{command} --set run.onChange=finish-first")
    assert "default: 4" in Path("models/sine.yaml").read_text()
    assert "epochs: 3" in Path("charts/sine/values.yaml").read_text()


def test_a_table_a_summary_and_the_commands_are_shown(api: SmallApi) -> None:
    install(api, "plain")
    install(api, "own", hyperparameters={"epochs": 9})
    change_default()
    shown = call("upgrade", "--live").stdout
    assert "2 releases: 1 no effect, 1 would lose work, deferred to the next attempt" in shown
    assert "to upgrade the releases:\n" in shown
    row = next(line for line in shown.splitlines() if line.startswith("team-a  plain "))
    assert "restarts training, loses up to " in row
    assert row.endswith("the command below defers it to the next attempt")
    # Only the charts were written; what is installed is behind, and still is told.
    assert predict()["plain"]["effect"] == "restarts training"


def test_a_refused_value_is_named(api: SmallApi) -> None:
    install(api, "plain", hyperparameters={"epochs": 9})
    spec = Path("models/sine.yaml")
    spec.write_text(spec.read_text().replace("epochs:", "rounds:"))
    found = predict("--check")["plain"]
    assert found["effect"] == "values refused by the chart"
    assert "hyperparameters.epochs" in found["reason"]
    assert found["command"] is None


def test_what_cannot_be_compared_is_unknown(api: SmallApi) -> None:
    install(api, "plain")
    install(api, "applied")
    api.objects["secrets"].pop()
    assert predict()["applied"]["reason"] == "Helm did not install it: something else applied its manifests"
    api.refused["secrets"] = 403
    assert "secrets is forbidden" in predict()["plain"]["reason"]
    assert {each["effect"] for each in predict().values()} == {"unknown"}


def test_what_git_applies_is_left_to_it(api: SmallApi) -> None:
    install(api, "flux")
    install(api, "argo")
    api.objects["secrets"].pop()
    flux, argo = (each["metadata"] for each in api.objects["statefulsets"])
    flux["labels"] |= {"helm.toolkit.fluxcd.io/name": "flux", "helm.toolkit.fluxcd.io/namespace": "ops"}
    argo["annotations"]["argocd.argoproj.io/tracking-id"] = "argo:apps/StatefulSet:team-a/argo"
    change_default()
    found = predict("--check")
    assert found["argo"]["reason"] == "the Argo CD application argo applies it"
    assert (found["flux"]["effect"], found["flux"]["command"]) == ("restarts training", None)
    assert found["flux"]["hint"] == "upgrade it in git: the Flux HelmRelease ops/flux applies it"


def test_only_newest_revisions_and_own_charts_are_read(api: SmallApi) -> None:
    install(api, "plain")
    older = make_helm_record(Path("charts/sine"), "plain", NAMESPACE, {}, status="superseded")
    api.objects["secrets"].insert(0, older)
    for each in api.objects["statefulsets"]:
        foreign = json.loads(json.dumps(each).replace("plain", "other"))
        foreign["metadata"]["labels"]["app.kubernetes.io/name"] = "foreign"
        api.objects["statefulsets"] = [each, foreign]
    api.requests.clear()
    assert set(predict("-A")) == {"plain"}
    (asked,) = [request for request in api.requests if "/secrets" in request]
    assert "status%21%3Dsuperseded" in asked
    assert "other" not in asked


def test_where_to_look_needs_live(api: SmallApi) -> None:
    assert call("upgrade", "-A").exit_code != 0
    assert "--live" in str(call("upgrade", "-A").exception)
    assert "0 releases of these charts" in call("upgrade", "--live").stdout
