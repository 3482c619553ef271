"""Pods that run, but not as their StatefulSets have them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_pod, make_set, stamp
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import TrainingKey
from trainchart.reports.why import why_lines

# As a MutatingAdmissionPolicy left them.
PLANNED = {
    "limits": {"cpu": "1", "ephemeral-storage": "21Gi", "memory": "128Mi"},
    "requests": {"cpu": "10m", "ephemeral-storage": "1Gi", "memory": "128Mi"},
}


def look(*, limits: dict[str, str], planned: Any = PLANNED, revision: str = "r-1", **metadata: Any) -> list[str]:
    each, pod = make_set("worker"), make_pod("worker-0")
    each["status"] = {"updateRevision": "r-1"}
    each["spec"]["template"]["spec"]["containers"][0]["resources"] = planned
    pod["metadata"]["labels"]["controller-revision-hash"] = revision
    pod["metadata"] |= metadata
    requests = planned.get("requests") or {}
    pod["spec"]["containers"][0]["resources"] = {
        "limits": {**planned.get("limits", {}), **limits},
        "requests": requests | {name: limit for name, limit in limits.items() if name not in requests},
    }
    seen = Snapshot(now=NOW, sets=(each,), pods=(pod,))
    report = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)
    return [line for line in why_lines(report) if "which the chart does not ask for" in line]


def test_running_pod_with_a_lower_cpu_limit_is_remarked() -> None:
    [remark] = look(limits={"cpu": "50m"}, generation=1)
    assert remark.startswith(
        "note: exp1-mnist-worker-0 has limits.cpu 50m instead of 1, which the chart does not "
        "ask for: a policy, a webhook or a default of the namespace changed it when it was created. Less CPU slows "
        "programs down. "
    )
    assert "kubectl get mutatingadmissionpolicies,mutatingwebhookconfigurations" in remark
    assert f"kubectl get limitranges -n {NAMESPACE}" in remark and "kubectl delete pod exp1-mnist-worker-0 -n" in remark


def test_resized_pod_may_have_been_changed_by_a_person() -> None:
    [remark] = look(limits={"cpu": "500m"}, generation=2)
    assert "an autoscaler or a person changed it. Less CPU" in remark


def test_who_resized_a_running_pod_is_named() -> None:
    resources = {"f:spec": {"f:containers": {'k:{"name":"training"}': {"f:resources": {"f:limits": {"f:cpu": {}}}}}}}
    fields = [
        {"manager": "kube-controller-manager", "time": stamp(NOW - 300), "fieldsV1": resources},
        {"manager": "kubelet", "subresource": "status", "time": stamp(NOW - 60), "fieldsV1": {"f:status": {}}},
        {"manager": "vpa-updater", "subresource": "resize", "time": stamp(NOW - 90), "fieldsV1": resources},
    ]
    [remark] = look(limits={"cpu": "500m"}, generation=2, managedFields=fields)
    assert "ask for: vpa-updater changed this at 2027-01-15 07:58:30 UTC, after the pod was created. Less" in remark
    assert "Have the owner of vpa-updater exempt these pods. Then delete them (kubectl delete pod" in remark
    assert "limitranges" not in remark
    fields[-1] |= {"manager": "kubectl-edit"}
    [remark] = look(limits={"cpu": "500m"}, generation=2, managedFields=fields)
    assert "Find out who used kubectl-edit, and have them exempt these pods." in remark


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"cpu": "1000m", "memory": "134217728"},
        {"cpu": "2", "memory": "256Mi"},
        {"cpu": "800m"},
        {"memory": "32Mi"},
        {"ephemeral-storage": "1Gi"},
        {"cpu": "odd"},
        {"nvidia.com/gpu": "1"},
    ],
    ids=["equal", "same amount", "more", "a little less", "less memory", "less storage", "unreadable", "another"],
)
def test_running_pod_that_loses_little_is_not_remarked(limits: dict[str, str]) -> None:
    assert not look(limits=limits)


def test_limit_that_the_chart_does_not_set_is_not_remarked() -> None:
    assert not look(limits={"cpu": "4"}, planned={"requests": {"cpu": "2"}})
    assert not look(limits={"cpu": "4"}, planned={})


def test_pod_of_an_earlier_revision_is_not_remarked() -> None:
    assert not look(limits={"cpu": "50m"}, revision="r-0")
