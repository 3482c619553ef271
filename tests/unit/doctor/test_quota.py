"""Whether a namespace's quotas have room for a whole release at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.doctor.test_packing import GPU, make_group
from trainchart.doctor.needs import PodGroup
from trainchart.doctor.quota import check_quotas
from trainchart.doctor.result import FAILED, OK, Result
from trainchart.doctor.storage import Need
from trainchart.helm.rendering import Manifest

CLASS = {"metadata": {"name": "cephfs"}, "provisioner": "cephfs.csi.ceph.com"}
NEED = Need("c", 2, True, {"spec": {"storageClassName": "cephfs", "resources": {"requests": {"storage": "20Gi"}}}})
MANIFESTS = (Manifest("a", {"kind": "ConfigMap"}), Manifest("b", {"kind": "ConfigMap"}))


def make_quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "team"}, "spec": {"hard": hard, **spec}, "status": {"hard": hard, "used": used or {}}}


def check(*quotas: dict[str, Any], groups: tuple[PodGroup, ...] = ()) -> list[Result]:
    pods = groups or (make_group("worker", 4, "1500m", gpus=1), make_group("ps", 2, "500m"))
    return list(check_quotas(quotas, pods, [NEED], [CLASS], MANIFESTS))


@pytest.mark.parametrize(
    ("resource", "hard", "used", "words"),
    [
        ("requests.cpu", "6", "0", "the release needs 7 of requests.cpu, 6 of 6 are left"),
        ("cpu", "10", "4", "the release needs 7 of cpu, 6 of 10 are left"),
        ("requests.nvidia.com/gpu", "4", "1", "needs 4 of requests.nvidia.com/gpu, 3 of 4 are left"),
        ("pods", "5", "0", "needs 6 of pods, 5 of 5 are left"),
        ("count/pods", "5", "0", "needs 6 of count/pods"),
        ("requests.storage", "10Gi", "0", "needs 20Gi of requests.storage, 10Gi of 10Gi are left"),
        ("cephfs.storageclass.storage.k8s.io/requests.storage", "1Gi", "0", "needs 20Gi of cephfs.storageclass"),
        ("count/configmaps", "1", "0", "needs 2 of count/configmaps"),
        ("secrets", "3", "3", "needs 1 of secrets, 0 of 3 are left"),
    ],
)
def test_a_quota_without_room_is_named(resource: str, hard: str, used: str, words: str) -> None:
    (found,) = check(make_quota({resource: hard}, {resource: used}))
    assert found.outcome == FAILED
    assert words in found.message


@pytest.mark.parametrize(
    "hard",
    [{"requests.cpu": "7"}, {"requests.storage": "20Gi"}, {"pods": "6"}, {"secrets": "1"}, {"limits.memory": "0"}],
)
def test_a_quota_with_room_is_no_fault(hard: dict[str, str]) -> None:
    (found,) = check(make_quota(hard))
    assert found.outcome == OK


def test_waiting_helps_only_where_others_hold_the_rest() -> None:
    (alone,) = check(make_quota({"requests.cpu": "6"}))
    (beside,) = check(make_quota({"requests.cpu": "8"}, {"requests.cpu": "2"}))
    assert "the release alone needs more than the quota allows" in alone.remedy
    assert "stop other releases" in beside.remedy


@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["BestEffort"]}, False),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]
                }
            },
            True,
        ),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["low"]}]
                }
            },
            False,
        ),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}}, True),
    ],
)
def test_a_quota_with_scopes_counts_their_pods_only(scope: dict[str, Any], counts: bool) -> None:
    group = make_group("worker", 4, priorityClassName="low")
    (found,) = check(make_quota({"requests.cpu": "1"}, **scope), groups=(group,))
    assert (found.outcome == FAILED) is counts


def test_limits_count_as_limits() -> None:
    (found,) = check(make_quota({f"limits.{GPU}": "3"}))
    assert "needs 4 of limits.nvidia.com/gpu" in found.message


def test_what_the_release_holds_itself_is_free() -> None:
    group = make_group("worker", 4)
    held = [make_group("worker-0", 1), make_group("worker-1", 1), make_group("worker-2", 1), make_group("worker-3", 1)]
    quota = make_quota({"requests.cpu": "4", "pods": "4"}, {"requests.cpu": "4", "pods": "4"})
    (found,) = check_quotas([quota], [group], [], [], [], held)
    assert found.outcome == OK
    assert len(list(check_quotas([quota], [group], [], [], [], held[:2]))) == 2


def test_claims_of_each_pod_count_once_a_pod() -> None:
    own = Need("scratch of each pod", 4, writes=True, made=NEED.made, own_of_pods="scratch")
    group = make_group("worker", 1, "1")
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": NEED.made}}
    group.pod["spec"]["volumes"] = [volume]
    quota = make_quota({"requests.storage": "79Gi", "persistentvolumeclaims": "3", "count/persistentvolumeclaims": "3"})
    found = [each.message for each in check_quotas([quota], (), [own], [CLASS], ())]
    assert "needs 80Gi of requests.storage" in found[0]
    assert "needs 4 of persistentvolumeclaims" in found[1] and "needs 4 of count" in found[2]
    assert len(found) == 3
    # One of them is there already.
    (found,) = check_quotas([quota], (), [own], [CLASS], (), [group])
    assert found.outcome == OK
