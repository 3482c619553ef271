"""Which ServiceAccounts may delete pods, from roles and bindings as the API shows them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_pods, make_record, make_sets, make_state
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.pod_deleters import Rights, find_deleters, loses_pods
from trainchart.cluster.snapshot import Snapshot, Unreadable
from trainchart.reports.report import Report, TrainingKey

RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}
DEATH = {"at": NOW - 120, "pod": "exp1-mnist-worker-1", "node": "node1", "cause": "pod-deleted", "action": ""}


def look(*deaths: dict[str, Any]) -> Report:
    record = make_record(make_state("Running", incidents=list(deaths)))
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=tuple(make_pods()), records=(record,))
    return diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)


def make(name: str, namespace: str = NAMESPACE, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **more}


def bind(role: str, kind: str, *accounts: str, namespace: str = NAMESPACE) -> dict[str, Any]:
    subjects = [
        {"kind": "ServiceAccount", "name": name, "namespace": place}
        for place, _, name in (account.rpartition("/") for account in accounts)
    ]
    return make(f"{role}-binding", namespace, roleRef={"kind": kind, "name": role}, subjects=subjects)


def find(
    *bindings: dict[str, Any], rules: tuple[dict[str, Any], ...] = (RULE,), pods: tuple[dict[str, Any], ...] = ()
) -> str:
    rights = Rights(
        roles=(make("tidy", rules=list(rules)), make("see", rules=[{**RULE, "verbs": ["get", "list"]}])),
        role_bindings=tuple(each for each in bindings if "namespace" in each["metadata"]),
        cluster_roles=(make("all", "", rules=list(rules)),),
        cluster_role_bindings=tuple(each for each in bindings if "namespace" not in each["metadata"]),
    )
    return " ".join(find_deleters(look(), "exp1-mnist-controller", rights, pods))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([RULE], True),
        ([{**RULE, "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], True),
        ([{**RULE, "verbs": ["get"]}, {**RULE, "verbs": ["deletecollection"]}], True),
        ([{**RULE, "resources": ["pods/log"]}], False),
        ([{**RULE, "apiGroups": ["apps"]}], False),
        ([{**RULE, "resourceNames": ["other"]}], False),
        ([{"nonResourceURLs": ["*"], "verbs": ["*"]}], False),
        ([], False),
    ],
)
def test_accounts_with_the_right_are_named(rules: Any, expected: bool) -> None:
    assert ("cleaner" in find(bind("tidy", "Role", f"{NAMESPACE}/cleaner"), rules=tuple(rules))) == expected


def test_rights_from_cluster_roles_count() -> None:
    words = find(bind("all", "ClusterRole", "ops/janitor"), bind("all", "ClusterRole", "ops/reaper", namespace=""))
    assert "ops/janitor (RoleBinding all-binding), ops/reaper (ClusterRoleBinding all-binding). Check" in words


def test_own_account_and_those_of_kubernetes_are_left_out() -> None:
    own = bind("tidy", "Role", f"{NAMESPACE}/exp1-mnist-controller")
    assert find(own, bind("all", "ClusterRole", "kube-system/pod-garbage-collector", namespace="")) == ""
    assert find(bind("see", "Role", f"{NAMESPACE}/viewer")) == ""


def test_accounts_that_pods_use_come_first_and_few_are_named() -> None:
    bindings = [bind("tidy", "Role", *(f"{NAMESPACE}/account-{number}" for number in range(9)))]
    pod = make("reaper-1", spec={"serviceAccountName": "account-7"})
    words = find(*bindings, pods=(pod,))
    begin = "these ServiceAccounts may delete pods in team-a: account-7 (RoleBinding tidy-binding, used by pod "
    assert words.startswith(begin) and ", and 5 more. Check first " in words


def test_a_job_of_a_cron_job_is_named_by_it() -> None:
    pod = make("reaper-29384712-x", spec={"serviceAccountName": "cleaner"})
    pod["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "reaper-29384712", "controller": True}]
    words = find(bind("tidy", "Role", f"{NAMESPACE}/cleaner"), pods=(pod,))
    assert ": cleaner (RoleBinding tidy-binding, used by CronJob reaper). Check first " in words


def test_what_may_not_be_read_says_nothing() -> None:
    hidden = Unreadable("roles", "forbidden")
    rights = Rights(hidden, (bind("tidy", "Role", f"{NAMESPACE}/cleaner"),), hidden, hidden)
    assert not list(find_deleters(look(), "", rights, Unreadable("pods", "forbidden")))


def test_one_deleted_pod_is_no_reason_to_ask() -> None:
    assert not loses_pods(look(DEATH))
    assert not loses_pods(look(DEATH, {**DEATH, "pod": "exp1-mnist-worker-0"}))
    assert not loses_pods(look(DEATH, {**DEATH, "cause": "evicted"}))
    assert loses_pods(look(DEATH, {**DEATH, "at": NOW - 20}))
