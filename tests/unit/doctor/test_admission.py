"""What the API server's answers to trials mean, and which rights an account has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.doctor.test_packing import make_group
from trainchart.doctor.admission import Trial, check_objects, check_pods, check_sidecars, complete_groups
from trainchart.doctor.result import FAILED, OK, UNKNOWN, WARNING
from trainchart.doctor.rights import check_rights, read_rules

NO_RIGHT = 'roles is forbidden: User "ann" cannot create resource "roles" in API group "rbac.authorization.k8s.io"'
SECURITY = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
POLICY = "ValidatingAdmissionPolicy 'house' with binding 'house' denied request: label team is missing"
QUOTA = 'pods "x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5'


@pytest.mark.parametrize(
    ("refusal", "advice"), [(SECURITY, "Pod Security level"), (POLICY, "ask the owner of the policy"), ("else", "")]
)
def test_a_refused_object_is_named_with_its_advice(refusal: str, advice: str) -> None:
    (found,) = check_objects([Trial("Role exp", None, refusal), Trial("Service exp", {})])
    assert (found.outcome, found.message) == (FAILED, f"Role exp: {refusal}")
    assert advice in found.remedy


def test_objects_without_a_right_are_told_together() -> None:
    (found,) = check_objects([Trial("Role a", None, NO_RIGHT), Trial("Role b", None, NO_RIGHT), Trial("Job c", {})])
    assert (found.outcome, found.message) == (FAILED, "you are not allowed to create 2 objects: Role a, Role b")
    (found,) = check_pods([Trial("worker", None, NO_RIGHT)])
    assert found.outcome == UNKNOWN


def test_many_refused_objects_are_cut_short() -> None:
    found = list(check_objects([Trial(f"Role {number}", None, POLICY) for number in range(12)]))
    assert [each.message for each in found[-2:]] == [f"Role 9: {POLICY}", "2 more objects are refused"]


def test_objects_that_are_there_are_a_warning() -> None:
    claim = Trial("PersistentVolumeClaim exp", None, "exists", is_there=True)
    (found,) = check_objects([Trial("Service exp", None, "exists", is_there=True), claim])
    assert (found.outcome, found.message) == (WARNING, "1 of 2 objects are there already: Service exp")


def test_refused_pods_are_told_but_for_quotas() -> None:
    (found,) = check_pods([Trial("worker", None, SECURITY), Trial("ps", None, QUOTA), Trial("chief", {})])
    assert (found.outcome, found.message) == (FAILED, f"pods of worker: {SECURITY}")
    (found,) = check_pods([Trial("ps", None, QUOTA)])
    assert found.outcome == OK
    (found,) = check_pods([Trial("ps", None, SECURITY), Trial("worker", None, SECURITY)])
    assert found.message.startswith("pods of ps, worker: ")


def test_containers_that_something_adds_are_named() -> None:
    group = make_group("worker", 2)
    spec = {"containers": [{"name": "training"}, {"name": "istio-proxy"}], "initContainers": [{"name": "istio-init"}]}
    completed = Trial("worker", {"spec": spec})
    (found,) = check_sidecars([group], [completed])
    assert (found.outcome, found.message) == (WARNING, "something puts istio-init, istio-proxy into the pods of worker")
    assert complete_groups([group], [completed])[0].spec == spec
    (found,) = check_sidecars([group], [Trial("worker", group.pod)])
    assert found.outcome == OK


ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def allow(group: str, plural: str, *verbs: str, **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [plural], "verbs": list(verbs), **more}


def test_rights_that_are_missing_are_named() -> None:
    rules = [allow("apps", "statefulsets", "get", "create"), allow("", "secrets", "*", resourceNames=["one"])]
    first, second = check_rights([("apps", "statefulsets")], rules, is_complete=True)
    assert first.outcome == FAILED
    assert "patch statefulsets.apps, delete statefulsets.apps, get secrets" in first.message
    assert second.outcome == UNKNOWN


def test_rights_that_are_not_listed_whole_are_unknown() -> None:
    (found,) = check_rights([("apps", "statefulsets")], [], is_complete=False)
    assert found.outcome == UNKNOWN


def test_an_account_with_all_rights_passes() -> None:
    (found,) = check_rights([("apps", "statefulsets")], [ALL], is_complete=True)
    assert found.outcome == OK


def test_the_answer_of_a_review_is_read() -> None:
    assert read_rules({"status": {"resourceRules": [ALL], "incomplete": True}}) == ([ALL], False)
    assert read_rules({}) == ([], True)
