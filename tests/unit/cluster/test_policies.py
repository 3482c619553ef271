"""NetworkPolicies of others that keep the pods of a training from each other, and those that do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_controller_pod,
    make_job,
    make_pod,
    make_pods,
    make_record,
    make_set,
    make_sets,
    stamp,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.policies import explain_by_policies, find_foreign_policies, needs_policies
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import Report, ReportedProblem, RoleReport, TrainingKey
from trainchart.reports.report_json import describe_report
from trainchart_runtime.run.state import Incident, Verdict

REPORT = Report(key=TrainingKey(NAMESPACE, "exp1", "mnist"), now=NOW, phase="Running", source="record")
DNS = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 443}]}
OWN_PODS = {"podSelector": {"matchLabels": {"app.kubernetes.io/instance": "exp1"}}}


def make_policy(name: str = "baseline", release: str = "", selector: Any = None, **spec: Any) -> dict[str, Any]:
    labels = {"app.kubernetes.io/instance": release} if release else {}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels, "creationTimestamp": stamp(NOW - 60)}
    return {"metadata": metadata, "spec": {"podSelector": selector or {}, **spec}}


def egress(*rules: Any, **more: Any) -> dict[str, Any]:
    return make_policy(policyTypes=["Egress"], egress=list(rules), **more)


def find(*policies: dict[str, Any]) -> list[str]:
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=tuple(make_pods()))
    return list(find_foreign_policies(REPORT, seen, policies))


def test_a_policy_that_denies_the_way_out_is_named() -> None:
    [remark] = find(egress(DNS), make_policy("exp1-mnist", "exp1", ingress=[{"from": [OWN_PODS]}]))
    assert remark.startswith("the NetworkPolicy baseline, which is not this release's and was made ")
    assert " selects exp1-mnist-chief-0, " in remark
    assert "(Egress)" in remark
    assert f"kubectl describe networkpolicy baseline -n {NAMESPACE}" in remark


@pytest.mark.parametrize(
    ("policy", "is_named"),
    [
        (egress(), True),
        (egress({"to": [{"podSelector": {}}]}), True),
        (egress(selector={"matchLabels": {"app.kubernetes.io/component": "ps"}}), False),
        (egress({"ports": [{"port": 443}]}), False),
        (egress({"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}), False),
        (egress({"to": [{"namespaceSelector": {}, "podSelector": {}}]}), False),
        (make_policy(policyTypes=["Ingress"]), False),
    ],
)
def test_policy_that_cuts_off_the_run_controller_is_named(policy: dict[str, Any], is_named: bool) -> None:
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=(make_controller_pod(),))
    remarks = list(find_foreign_policies(REPORT, seen, (policy,)))
    assert [("run controller exp1-mnist-controller-1-abcde" in remark) for remark in remarks] == [True] * is_named
    assert not list(find_foreign_policies(REPORT, seen, (policy, egress({}, name="own", release="exp1"))))


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app.kubernetes.io/component": "ps"}},
        {"matchExpressions": [{"key": "app.kubernetes.io/component", "operator": "In", "values": ["ps"]}]},
    ],
)
def test_only_the_selected_pods_are_named(selector: dict[str, Any]) -> None:
    [remark] = find(make_policy(selector=selector, ingress=[{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]))
    assert "selects exp1-mnist-ps-0 (Ingress)" in remark


@pytest.mark.parametrize(
    "policies",
    [
        (egress({}),),
        (egress(DNS, {"to": [OWN_PODS]}),),
        (egress(DNS, {"ports": [{"port": 1024, "endPort": 65535}]}),),
        (egress(DNS, {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}),),
        (egress(DNS), egress({"to": [{"namespaceSelector": {}}]}, name="same-namespace")),
        (egress(DNS, selector={"matchLabels": {"app.kubernetes.io/instance": "exp2"}}),),
        (egress(DNS, selector={"matchExpressions": [{"key": "web", "operator": "Exists"}]}),),
        (make_policy(), make_policy("exp1-mnist", "exp1", ingress=[{"from": [OWN_PODS]}])),
    ],
)
def test_policies_that_leave_the_peers_alone_are_not_named(policies: tuple[dict[str, Any], ...]) -> None:
    assert not find(*policies)


OWN_NAMESPACE = {"to": [{"podSelector": {}}]}


def to_dns(*peers: Any, **port: Any) -> dict[str, Any]:
    return {"to": list(peers), "ports": [{"port": 53, "protocol": "UDP", **port}]}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"to": [{"namespaceSelector": {}}], "ports": [{"port": 443}]}, "does not admit port 53 (DNS). Its owner"),
        (to_dns({"podSelector": {}}), "does not admit port 53 (DNS). Its owner"),
        (to_dns({"namespaceSelector": {}}, protocol="TCP"), "does not admit port 53 (DNS). Its owner"),
        (
            to_dns({"namespaceSelector": {"matchLabels": {"name": "kube-system"}}}),
            "except in namespaces with the label name=kube-system: kubectl get namespaces -l name=kube-system must",
        ),
        (to_dns({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}), ""),
        (to_dns({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}), ""),
        (to_dns({"namespaceSelector": {}, "podSelector": {}}), ""),
        (to_dns({"ipBlock": {"cidr": "10.0.0.10/32"}}), ""),
        (to_dns(), ""),
        ({"ports": [{"port": "dns", "protocol": "UDP"}]}, ""),
        ({"ports": [{"port": 1, "endPort": 100, "protocol": "UDP"}]}, ""),
        ({}, ""),
    ],
)
def test_policies_that_close_the_dns_are_named(rule: dict[str, Any], words: str) -> None:
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=tuple(make_pods()))
    policies = (egress(OWN_NAMESPACE, rule),)
    assert not list(find_foreign_policies(REPORT, seen, policies))
    problem = ReportedProblem("exp1-mnist-worker-0", "peer-unresolvable", "", "node1", NOW)
    remarks = list(find_foreign_policies(replace(REPORT, problems=(problem,)), seen, policies))
    assert [words in remark for remark in remarks] == ([True] if words else [])


@pytest.mark.parametrize(("step_at", "is_told"), [(0.0, True), (NOW - 90, True), (NOW - 30, False)])
def test_deaths_for_lack_of_names_count_until_the_next_step(step_at: float, is_told: bool) -> None:
    death = Incident(NOW - 60, "exp1-mnist-worker-0", "node1", "peer-unresolvable", "gaierror")
    report = replace(REPORT, incidents=(death,), progress=replace(REPORT.progress, at=step_at))
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=tuple(make_pods()))
    assert bool(list(find_foreign_policies(report, seen, (egress(OWN_NAMESPACE),)))) is is_told


DOWNLOAD = Verdict("Failed", NOW - 30, "download-failed", "It failed.", pod="exp1-mnist-worker-0", node="node1")
TO_ALL_DNS = {"ports": [{"port": 53, "protocol": "UDP"}]}
UNRESOLVED = "URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"
TIMED_OUT = "URLError: <urlopen error timed out>"


def fail(cause: str, error: str) -> Report:
    return replace(REPORT, phase="Failed", outcome=DOWNLOAD._replace(cause=cause, error=error))


@pytest.mark.parametrize(
    ("cause", "error", "rules", "words"),
    [
        ("download-failed", UNRESOLVED, [], "where names do not resolve, and does not admit port 53 (DNS)"),
        ("download-failed", TIMED_OUT, [], "where the program gets no answer, and does not admit port 53 (DNS)"),
        ("download-failed", UNRESOLVED, [TO_ALL_DNS], ""),
        ("download-failed", TIMED_OUT, [TO_ALL_DNS], "admits only what its rules list"),
        ("download-failed", TIMED_OUT, [TO_ALL_DNS, {}], ""),
        ("download-failed", TIMED_OUT, [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}], ""),
        ("download-failed", "urllib.error.HTTPError: HTTP Error 404: Not Found", [], ""),
        ("service-unreachable", "ConnectionRefusedError: [Errno 111] Connection refused", [], "(DNS)"),
        ("program-error", "redis.exceptions.TimeoutError: Timeout connecting to server", [], "(DNS)"),
        ("program-error", "ValueError: no data today", [], ""),
    ],
)
def test_policy_that_explains_a_failed_run_is_named(cause: str, error: str, rules: list[Any], words: str) -> None:
    """Its pods may be gone: then its sets stand for them."""
    sets = (make_set("worker", 0),)
    report = replace(fail(cause, error), roles=(RoleReport("worker", 1, 0, 1),))
    for seen in (Snapshot(NOW, sets=sets, pods=(make_pod("worker-0"),)), Snapshot(NOW, sets=sets)):
        remarks = list(find_foreign_policies(report, seen, (egress(*rules),)))
        assert [words in remark for remark in remarks] == ([True] if words else [])
        assert all("NetworkPolicy baseline, " in each and "selects exp1-mnist-worker" in each for each in remarks)
        late = egress(*rules)
        late["metadata"]["creationTimestamp"] = stamp(NOW - 10)
        own = egress(*rules, name="own", release="exp1")
        assert not list(find_foreign_policies(report, seen, (late,)))
        assert not list(find_foreign_policies(report, seen, (egress(*rules), own)))


@pytest.mark.parametrize("has_pod", [True, False])
def test_empty_record_is_explained_by_the_policy(has_pod: bool) -> None:
    pods = (*make_pods(), *([make_controller_pod()] if has_pod else []))
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=pods, records=(make_record(None),), jobs=(make_job(),))
    report = diagnose(REPORT.key, seen)
    assert needs_policies(report, seen)
    assert "has not written it yet" in report.remarks[0]
    found = explain_by_policies(report, seen, (egress(),))
    policy, record, *_ = found.remarks
    assert policy.startswith("the NetworkPolicy baseline, which is not this release's"), "the cause comes first"
    assert record.startswith("the record exp1-mnist-state is empty: the run controller could not write it, ")
    assert "NetworkPolicy baseline keeps it from the API server" in record
    assert "keeps the run controller from the API server" in found.blockade
    assert explain_by_policies(report, seen, ()) == report


def test_policy_with_several_limits_is_one_note() -> None:
    pods = (*make_pods(), make_controller_pod())
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=pods, records=(make_record(None),), jobs=(make_job(),))
    problem = ReportedProblem("exp1-mnist-worker-0", "peer-unresolvable", "", "node1", NOW)
    report = replace(REPORT, problems=(problem,))
    deny = make_policy(policyTypes=["Ingress", "Egress"])
    other = egress(name="other")
    found = list(find_foreign_policies(report, seen, (deny, other)))
    assert [remark.partition(",")[0] for remark in found] == ["the NetworkPolicy baseline", "the NetworkPolicy other"]
    assert found[0].count("kubectl describe networkpolicy baseline") == found[0].count("Its owner must admit") == 1
    for words in ("(Ingress and Egress)", "traffic to each other", "the run controller exp1", "port 53 (DNS)"):
        assert found[0].count(words) == 1
    assert "(Egress) and does not admit their traffic" in found[1]
    (quiet,) = find_foreign_policies(REPORT, seen, (other,))
    assert "to each other or to the cluster's DNS; it also selects the run controller" in quiet
    assert "must admit traffic between the pods of this release, and from them to DNS; and the API server" in quiet
    shown = describe_report(explain_by_policies(report, seen, (deny,)))
    assert shown["blockade"].startswith("The NetworkPolicy baseline keeps the pods from the cluster's DNS")
    assert describe_report(report)["blockade"] is None


def test_policies_that_act_together_are_judged_together() -> None:
    deny = make_policy("deny-egress", policyTypes=["Egress"])
    dns = egress(to_dns({"namespaceSelector": {}}), name="allow-dns")
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=(*make_pods(), make_controller_pod()))
    [remark] = find_foreign_policies(REPORT, seen, (deny, dns))
    assert remark.startswith("each of the NetworkPolicies deny-egress, allow-dns, which are not this release's and ")
    assert "does not admit their traffic to each other; it also selects the run controller " in remark
    assert "does not admit connections out of the namespace, so perhaps not to the API server" in remark
    assert "DNS" not in remark
    assert f"(kubectl describe networkpolicy deny-egress allow-dns -n {NAMESPACE})" in remark
    report = explain_by_policies(REPORT, seen, (deny, dns))
    assert report.blockade.startswith("The NetworkPolicies deny-egress, allow-dns keep the run controller from the API")


def test_policies_are_not_read_where_they_explain_nothing() -> None:
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=tuple(make_pods()))
    assert not needs_policies(REPORT, seen)
    assert not needs_policies(fail("program-error", "ValueError: no data today"), seen)
    assert needs_policies(fail("download-failed", UNRESOLVED), seen)
