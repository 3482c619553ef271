"""What was changed about a StatefulSet by hand is read from the fields that the API server says who owns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_job,
    make_record,
    make_set,
    make_state,
    make_verdict,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.outside_changes import (
    describe_scalers,
    find_config_changes,
    find_object_changes,
    find_outside_changes,
    lay_over,
    list_config_maps,
    list_secrets,
)
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.list_table import list_lines
from trainchart.reports.report import OutsideChange, Report, ReportedProblem, TrainingKey
from trainchart.reports.text import status_lines
from trainchart.reports.why import why_lines
from trainchart_runtime import causes
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.problems import BY_SET
from trainchart_runtime.run.state import Incident, Verdict

OF_RELEASE = {"meta.helm.sh/release-name": "exp1"}
HELM = {
    "manager": "helm",
    "operation": "Apply",
    "time": "2026-11-26T19:39:13Z",
    "fieldsV1": {"f:spec": {"f:selector": {}, "f:template": {"f:spec": {"f:hostNetwork": {}}}}},
}
STATUS = {
    "manager": "kube-controller-manager",
    "operation": "Update",
    "subresource": "status",
    "time": "2026-11-26T19:40:59Z",
    "fieldsV1": {"f:status": {"f:replicas": {}}},
}


def by_hand(manager: str, container: Any) -> dict[str, Any]:
    pods = {"f:containers": {'k:{"name":"training"}': container}}
    fields = {"f:spec": {"f:template": {"f:spec": pods}}}
    return {"manager": manager, "operation": "Update", "time": "2026-11-26T19:40:39Z", "fieldsV1": fields}


SET_RESOURCES = by_hand(
    "kubectl-set", {"f:resources": {"f:limits": {"f:memory": {}}, "f:requests": {".": {}, "f:memory": {}}}}
)


def make_changed(*entries: Any) -> dict[str, Any]:
    each = make_set("ps", 0)
    container = each["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"cpu": "2", "memory": "176Mi"}, "requests": {"memory": "176Mi"}}
    container["env"].append({"name": "PASSWORD", "value": "hunter2"})
    each["metadata"]["managedFields"] = [HELM, *entries, STATUS]
    return each


def test_resources_that_were_set_by_hand_are_told_with_values() -> None:
    assert find_outside_changes(make_changed(SET_RESOURCES)) == (
        OutsideChange(
            "StatefulSet",
            "exp1-mnist-ps",
            "kubectl-set",
            1795722039.0,
            ("training.resources.limits.memory=176Mi", "training.resources.requests.memory=176Mi"),
        ),
    )


def test_values_that_may_be_secret_are_not_shown() -> None:
    env = by_hand("kubectl-edit", {"f:env": {'k:{"name":"PASSWORD"}': {".": {}, "f:name": {}, "f:value": {}}}})
    [change] = find_outside_changes(make_changed(env))
    assert change.fields == ("training.env.PASSWORD.name", "training.env.PASSWORD.value")


@pytest.mark.parametrize(
    "entry",
    [
        {"manager": "trainchart-controller", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}}},
        {
            "manager": "kubectl-rollout",
            "fieldsV1": {
                "f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}}
            },
        },
        {"manager": 7, "fieldsV1": []},
        {"fieldsV1": {"f:spec": {"f:template": {"f:spec": None, "k:{": {}, "x": {}}}}},
        "junk",
    ],
)
def test_what_leaves_the_pods_as_they_are_is_no_change(entry: Any) -> None:
    found = find_outside_changes(make_changed(entry))
    assert not [field for change in found for field in change.fields if "resources" in field or "spec" in field]
    assert len(found) == ("k:{" in str(entry))


def test_advice_after_a_change_by_hand_is_to_undo_it() -> None:
    verdict = make_verdict(cause=causes.OUT_OF_MEMORY, pod="exp1-mnist-ps-0")
    record = make_record(make_state("Failed", verdict=verdict))
    seen = Snapshot(NOW, (make_changed(SET_RESOURCES),), (), (record,), (make_job("Failed"),))
    report = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)
    told = "note: changed outside Helm: exp1-mnist-ps, by kubectl-set at 2026-11-26 19:40:39 UTC"
    assert told in status_lines(report)
    lines = why_lines(report)
    start = lines.index("What was changed outside Helm:")
    assert lines[start + 1] == (
        "  2026-11-26 19:40:39 UTC  exp1-mnist-ps, by kubectl-set: "
        "training.resources.limits.memory=176Mi, training.resources.requests.memory=176Mi"
    )
    [advice] = [line for line in lines if line.startswith("What to do next: ")]
    assert "If that was not intended: helm rollback exp1 REVISION -n team-a, with the newest revision of helm" in advice
    assert advice.index("helm rollback") < advice.index("Give the role more memory")
    assert list_lines([report])[1].endswith("; changed outside Helm: exp1-mnist-ps")


def test_changes_by_hand_are_laid_over_the_manifest() -> None:
    """Fields that the manifest does not have are left alone by whatever applies it."""
    env = by_hand("kubectl-edit", {"f:env": {'k:{"name":"PASSWORD"}': {".": {}, "f:name": {}, "f:value": {}}}})
    image = by_hand("kubectl-set", {"f:image": {}})
    live = make_changed(SET_RESOURCES, env, image)
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "ml/mnist:2"
    manifest = make_set("ps", 0)
    training = manifest["spec"]["template"]["spec"]["containers"][0]
    training |= {"image": "ml/mnist:1", "resources": {"limits": {"cpu": "2", "memory": "64Mi"}}}
    manifest["spec"]["template"]["spec"]["containers"].insert(0, {"name": "sidecar", "image": "proxy:1"})
    sidecar, laid = lay_over(manifest, live)["spec"]["template"]["spec"]["containers"]
    assert sidecar == {"name": "sidecar", "image": "proxy:1"}
    assert laid == {**training, "image": "ml/mnist:2", "resources": {"limits": {"cpu": "2", "memory": "176Mi"}}}
    assert training["image"] == "ml/mnist:1"


@pytest.mark.parametrize("entries", [(), (STATUS,), ({"manager": "x", "fieldsV1": {}},), ("junk",)])
def test_without_changes_by_hand_the_manifest_stays(entries: tuple[Any, ...]) -> None:
    assert lay_over(make_set("ps", 0), make_changed(*entries)) == make_set("ps", 0)


def make_scaled(manager: str, fields: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    entry = {"manager": manager, "operation": "Update", "time": "2026-11-26T19:41:00Z", "fieldsV1": fields}
    return make_changed(entry | ({"subresource": subresource} if subresource else {}))


@pytest.mark.parametrize(
    ("manager", "fields", "subresource", "how"),
    [
        ("kubectl", {"f:spec": {"f:replicas": {}}}, "scale", "it has set spec.replicas"),
        (
            "kube-downscaler",
            {"f:metadata": {"f:annotations": {"f:downscaler/original-replicas": {}}}},
            "",
            "annotation downscaler/original-replicas",
        ),
    ],
)
def test_who_else_scales_a_release_is_named(manager: str, fields: dict[str, Any], subresource: str, how: str) -> None:
    (told,) = describe_scalers([make_scaled(manager, fields, subresource)])
    assert told.startswith(f"{manager} scales exp1-mnist-ps ({how}, last at 2026-11-26 19:41:00 UTC): ")
    report = diagnose(
        TrainingKey(NAMESPACE, "exp1", "mnist"), Snapshot(NOW, sets=(make_scaled(manager, fields, subresource),))
    )
    assert told in report.remarks


def test_the_run_controller_and_helm_may_scale() -> None:
    scaled = {"f:spec": {"f:replicas": {}}}
    sets = [make_scaled("trainchart-controller", scaled, "scale"), make_scaled("helm", scaled)]
    assert list(describe_scalers(sets)) == []
    assert list(describe_scalers([make_changed()])) == []


def test_config_maps_of_all_kinds_of_use_are_found() -> None:
    each = make_set("ps", 1)
    pods = each["spec"]["template"]["spec"]
    pods["volumes"] = [{"name": "a", "configMap": {"name": "code"}}, {"name": "b", "emptyDir": {}}]
    pods["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    pods["containers"][0]["env"] = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "key", "key": "a"}}}]
    assert list_config_maps([each]) == ["code", "settings", "key"]


def test_secrets_of_all_kinds_of_use_are_found() -> None:
    each = make_set("ps", 1)
    pods = each["spec"]["template"]["spec"]
    pods["volumes"] = [{"name": "a", "secret": {"secretName": "files"}}, {"name": "b", "configMap": {"name": "code"}}]
    pods["containers"][0]["envFrom"] = [{"secretRef": {"name": "settings"}}]
    pods["containers"][0]["env"] = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "key", "key": "a"}}}]
    assert list_secrets([each]) == ["files", "settings", "key"]


def test_a_key_that_was_changed_meanwhile_explains_a_refusal() -> None:
    entry = {"manager": "kubectl", "time": "2026-11-26T19:41:00Z", "fieldsV1": {"f:data": {".": {}, "f:token": {}}}}
    secret = {"metadata": {"name": "credentials", "managedFields": [entry]}, "data": {"token": "c2VjcmV0"}}
    changes = tuple(find_config_changes("Secret", [secret], 0, "exp1"))
    assert [(change.subject, change.fields) for change in changes] == [("Secret credentials", ("data.token",))]
    verdict = Verdict("Failed", NOW, "access-refused", pod="exp1-mnist-worker-1", error="HTTP Error 403: Forbidden")
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Failed", "record", outcome=verdict)
    assert report.is_refused_access
    text = "\n".join(why_lines(replace(report, outside_changes=changes)))
    assert "Secret credentials (not part of the release), by kubectl: data.token" in text
    assert "What to do next: A Secret was changed during the run" in text
    assert "containers from before the change keep the old value as long as they live" in text
    assert "If the program is refused again: Check the credentials" in text
    assert "c2VjcmV0" not in text
    running = "\n".join(why_lines(replace(report, phase="Running", outcome=None, outside_changes=changes)))
    assert "If the new value is right: trainchart stop exp1" in running and "helm rollback" not in running
    keyless = ReportedProblem(
        "exp1-mnist-worker-1", "config-missing", "couldn't find key token in Secret a/credentials"
    )
    pending = replace(report, phase="Pending", outcome=None, outside_changes=changes, problems=(keyless,))
    assert "If the new value is right" not in "\n".join(why_lines(pending))


@pytest.mark.parametrize(
    ("manager", "owned", "more", "is_named"),
    [
        ("kubectl-patch", {"f:spec": {".": {}, "f:selector": {}}}, {}, True),
        ("kubectl-patch", {"f:spec": {"f:selector": {}}}, {"time": "2026-11-20T19:41:00Z"}, False),
        ("kubectl-patch", {"f:metadata": {"f:annotations": {"f:note": {}}}}, {}, False),
        ("argocd", {"f:spec": {"f:selector": {}}, "f:metadata": {"f:labels": {"f:helm.sh/chart": {}}}}, {}, False),
        ("helm", {"f:spec": {"f:selector": {}}}, {}, False),
        ("trainchart-controller", {"f:spec": {"f:backoffLimit": {}}}, {}, False),
        ("kubelet", {"f:spec": {"f:selector": {}}}, {"subresource": "status"}, False),
    ],
)
def test_who_changed_a_service_is_named(
    manager: str, owned: dict[str, Any], more: dict[str, str], is_named: bool
) -> None:
    entry = {"manager": manager, "operation": "Update", "time": "2026-11-26T19:41:00Z", "fieldsV1": owned} | more
    service = {"metadata": {"name": "exp1-mnist", "annotations": OF_RELEASE, "managedFields": [entry]}}
    at = parse_time("2026-11-26T19:41:00Z")
    expected = [OutsideChange("Service", "exp1-mnist", manager, at, ("spec.selector",))] if is_named else []
    assert list(find_object_changes("Service", [service], at - 60, "exp1")) == expected


@pytest.mark.parametrize(
    ("kind", "field", "is_left"),
    [
        ("Job", "suspend", True),
        ("Job", "parallelism", True),
        ("Job", "template", False),
        ("Service", "selector", False),
        ("Service", "externalIPs", True),
        ("NetworkPolicy", "egress", False),
    ],
)
def test_rollback_is_offered_only_where_it_undoes_a_change(kind: str, field: str, is_left: bool) -> None:
    entry = {"manager": "kubectl-patch", "time": "2026-11-26T19:41:00Z", "fieldsV1": {"f:spec": {f"f:{field}": {}}}}
    each = {"metadata": {"name": "exp1-mnist", "annotations": OF_RELEASE, "managedFields": [entry]}}
    changes = find_object_changes(kind, [each], 0, "exp1")
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Running", "record", outside_changes=tuple(changes))
    text = "\n".join(why_lines(report))
    assert (f"undo it: kubectl edit {kind.lower()} exp1-mnist -n team-a. The chart does not set" in text) is is_left
    assert ("helm rollback exp1 REVISION -n team-a" in text) is not is_left


OF_CHART = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "exp1"}


@pytest.mark.parametrize(
    ("metadata", "is_own"),
    [
        ({}, False),
        ({"labels": {"app.kubernetes.io/instance": "exp1"}}, False),
        ({"labels": OF_CHART}, True),
        ({"labels": OF_CHART, "annotations": {"meta.helm.sh/release-name": "exp2"}}, False),
        ({"annotations": OF_RELEASE}, True),
    ],
)
@pytest.mark.parametrize("kind", ["ConfigMap", "Service"])
def test_only_objects_of_the_release_are_rolled_back(kind: str, metadata: dict[str, Any], *, is_own: bool) -> None:
    owned = {"f:data": {"f:train.py": {}}} if kind == "ConfigMap" else {"f:spec": {"f:selector": {}}}
    entry = {"manager": "kubectl-edit", "time": "2026-11-26T19:41:00Z", "fieldsV1": owned}
    each = {"metadata": {"name": "code", "managedFields": [entry]} | metadata}
    find = find_config_changes if kind == "ConfigMap" else find_object_changes
    report = Report(
        TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Running", "record",
        outside_changes=tuple(find(kind, [each], 0, "exp1")),
    )  # fmt: skip
    verdict = Verdict("Failed", NOW, "program-error", pod="exp1-mnist-worker-1", error="KeyError: 'x'")
    failed = replace(report, phase="Failed", outcome=verdict) if kind == "ConfigMap" else report
    for text in ("\n".join(why_lines(report)), "\n".join(why_lines(failed))):
        assert ("helm rollback exp1 REVISION" in text) is is_own
        assert (f"have the owner of {kind} code apply the earlier version again (kubectl apply)" in text) is not is_own
        assert ("helm rollback restores only objects of the release." in text) is not is_own
        assert (f"{kind} code (not part of the release), by kubectl-edit" in text) is not is_own


def test_pods_recreated_after_a_change_of_files_are_named() -> None:
    verdict = Verdict("Failed", NOW, "workers-differ", pod="exp1-mnist-worker-1", error="Shape mismatch")
    change = OutsideChange("ConfigMap", "code", "kubectl", NOW - 60, ("data.train.py",))
    deaths = tuple(
        Incident(NOW - ago, f"exp1-mnist-worker-{number}", "", "pod-deleted", BY_SET)
        for number, ago in enumerate((70, 40))
    )
    key = TrainingKey(NAMESPACE, "exp1", "mnist")
    report = Report(key, NOW, "Failed", "record", outcome=verdict, outside_changes=(change,), incidents=deaths)
    assert "those from before (recreated since then: exp1-mnist-worker-1). If the" in "\n".join(why_lines(report))
    assert "those from before. If the" in "\n".join(why_lines(replace(report, incidents=())))
