"""What charts promise about the run controller: its objects, its rights, and who owns the number of pods."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Manifest, Rendering, ValueOverrides

ROOT = Path(__file__).parent.parent.parent
CHARTS = sorted([*Path(__file__).parent.glob("*/chart"), *(ROOT / "charts").glob("*")])
each_chart = pytest.mark.parametrize("chart", CHARTS, ids=lambda path: f"{path.parent.name}-{path.name}")
MNIST = ROOT / "charts" / "mnist"


@cache
def render(chart: Path, *sets: str, release: str = "exp-7") -> Rendering:
    return find_engine("sdk").render(chart, release=release, overrides=ValueOverrides(sets=sets))


def of_kind(rendering: Rendering, kind: str) -> list[Manifest]:
    return [manifest for manifest in rendering.manifests if manifest.kind == kind]


def job(rendering: Rendering) -> Manifest:
    (found,) = of_kind(rendering, "Job")
    return found


def environment(rendering: Rendering) -> Mapping[str, Any]:
    (container,) = job(rendering).document["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value") for variable in container["env"]}


@each_chart
def test_the_number_of_pods_belongs_to_the_controller(chart: Path) -> None:
    """Helm 3 would silently start a finished run anew with every upgrade, and Helm 4 would refuse the upgrade."""
    for stateful_set in of_kind(render(chart), "StatefulSet"):
        assert "replicas" not in stateful_set.document["spec"]
        assert int(stateful_set.document["metadata"]["annotations"]["trainchart/replicas"]) >= 1


@each_chart
def test_the_state_holds_nothing_that_an_upgrade_could_overwrite(chart: Path) -> None:
    rendering = render(chart)

    (state,) = [m for m in of_kind(rendering, "ConfigMap") if m.name == environment(rendering)["TRAINCHART_STATE_NAME"]]
    assert not {"data", "binaryData", "immutable"} & set(state.document)


@each_chart
def test_the_controller_reads_the_cluster_of_the_pods(chart: Path) -> None:
    rendering = render(chart)
    (volume,) = (v for v in job(rendering).document["spec"]["template"]["spec"]["volumes"] if v["name"] == "config")
    (config,) = (m for m in of_kind(rendering, "ConfigMap") if m.name == volume["configMap"]["name"])
    roles = json.loads(config.document["data"]["cluster.json"])["roles"]

    assert {role["name"] for role in roles.values()} == {m.name for m in of_kind(rendering, "StatefulSet")}


@each_chart
def test_the_role_names_exactly_the_sets_and_the_state(chart: Path) -> None:
    rendering = render(chart)
    (role,) = of_kind(rendering, "Role")
    rules = {
        (resource, verb): rule.get("resourceNames")
        for rule in role.document["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    sets = {
        m.name: int(m.document["metadata"]["annotations"]["trainchart/replicas"])
        for m in of_kind(rendering, "StatefulSet")
    }
    state = [environment(rendering)["TRAINCHART_STATE_NAME"]]
    pods = [f"{name}-{ordinal}" for name, replicas in sets.items() for ordinal in range(replicas)]
    headless = {m.document["spec"]["serviceName"] for m in of_kind(rendering, "StatefulSet")}

    assert rules == {
        ("pods", "list"): None,
        ("pods", "watch"): None,
        ("pods", "delete"): pods,
        ("pods/log", "get"): pods,
        ("statefulsets", "get"): list(sets),
        ("statefulsets/scale", "patch"): list(sets),
        ("configmaps", "get"): state,
        ("configmaps", "patch"): state,
        ("configmaps", "create"): state,
        ("services", "get"): list(headless),
        ("networkpolicies", "get"): [m.name for m in of_kind(rendering, "NetworkPolicy")],
        ("jobs", "get"): [job(rendering).name],
        ("jobs", "patch"): [job(rendering).name],
        ("events", "create"): None,
        ("events", "list"): None,
    }
    (binding,) = of_kind(rendering, "RoleBinding")
    assert binding.document["roleRef"]["name"] == role.name
    account = job(rendering).document["spec"]["template"]["spec"]["serviceAccountName"]
    assert [subject["name"] for subject in binding.document["subjects"]] == [account]


def test_unchanged_run_keeps_its_job_and_a_new_run_gets_another(tmp_path: Path) -> None:
    newer = Path(shutil.copytree(MNIST, tmp_path / "mnist"))
    text = (newer / "Chart.yaml").read_text()
    (newer / "Chart.yaml").write_text(text.replace("version: 0.1.0", "version: 0.2.0", 1))
    assert "0.2.0" in (newer / "Chart.yaml").read_text()

    name = job(render(MNIST)).name
    assert job(render(newer)).name == name
    assert job(render(MNIST, "commonLabels.team=research")).name == name
    assert job(render(MNIST, "run.id=second")).name != name
    assert job(render(MNIST, "roles.worker.replicas=3")).name != name


@pytest.mark.parametrize(
    "change",
    ["hyperparameters.maxSteps=7", "image.tag=2.0.0", "roles.ps.memory=3Gi", "run.desiredState=suspended", "env.A=b"],
)
def test_whatever_the_run_depends_on_changes_plan_and_controller(change: str) -> None:
    before, after = render(MNIST), render(MNIST, change)

    assert job(before).name != job(after).name
    for rendering in (before, after):
        (state,) = [m for m in of_kind(rendering, "ConfigMap") if m.name.endswith("-state")]
        plan = environment(rendering)["TRAINCHART_PLAN_ID"]
        assert state.document["metadata"]["annotations"]["trainchart/plan"] == plan
    assert environment(before)["TRAINCHART_PLAN_ID"] != environment(after)["TRAINCHART_PLAN_ID"]


@pytest.mark.parametrize("desired", ["suspended", "stopped"])
def test_a_release_that_is_not_to_run_is_installed_without_pods(desired: str) -> None:
    rendering = render(MNIST, f"run.desiredState={desired}")

    assert {m.document["spec"]["replicas"] for m in of_kind(rendering, "StatefulSet")} == {0}


@pytest.mark.parametrize("length", [1, 30, 53])
def test_the_jobs_name_fits_into_its_pods_labels(length: int) -> None:
    rendering = render(MNIST, release="r" * length)

    assert len(job(rendering).name) <= 63
    assert len(environment(rendering)["TRAINCHART_STATE_NAME"]) <= 63


def test_without_rights_to_give_the_user_names_an_account() -> None:
    with pytest.raises(RenderError) as refused:
        render(MNIST, "rbac.create=false")
    assert "to a ServiceAccount with the run controller's permissions" in str(refused.value.problems)
    rendering = render(MNIST, "rbac.create=false", "run.controller.serviceAccountName=runs")

    assert not of_kind(rendering, "Role")
    assert not of_kind(rendering, "RoleBinding")
    assert job(rendering).document["spec"]["template"]["spec"]["serviceAccountName"] == "runs"
    assert "runs" not in {account.name for account in of_kind(rendering, "ServiceAccount")}


def test_role_without_pods_has_none_before_controller_looks() -> None:
    sets = {m.name: m.document["spec"] for m in of_kind(render(MNIST, "roles.evaluator.replicas=0"), "StatefulSet")}

    assert sets["exp-7-mnist-evaluator"]["replicas"] == 0
    assert "replicas" not in sets["exp-7-mnist-worker"]


def test_without_the_controller_the_chart_says_how_many_pods() -> None:
    rendering = render(MNIST, "run.controller.enabled=false")

    assert not {"Job", "Role", "RoleBinding"} & {manifest.kind for manifest in rendering.manifests}
    assert {m.document["spec"]["replicas"] for m in of_kind(rendering, "StatefulSet")} == {1, 2}
