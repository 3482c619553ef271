"""The Pod Security Standard `restricted`, field by field, and what it allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from trainchart.check.finding import Case, CheckInput, Finding
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering

POD: Mapping[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
OWN: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def find(
    pod: Mapping[str, Any] = POD,
    own: Mapping[str, Any] = OWN,
    container: Mapping[str, Any] = {},
    spec: Mapping[str, Any] = {},
    annotations: Mapping[str, str] = {},
) -> list[str]:
    return [finding.message.removeprefix("Pod p: ") for finding in find_all(pod, own, container, spec, annotations)]


def find_all(
    pod: Mapping[str, Any] = POD,
    own: Mapping[str, Any] = OWN,
    container: Mapping[str, Any] = {},
    spec: Mapping[str, Any] = {},
    annotations: Mapping[str, str] = {},
) -> tuple[Finding, ...]:
    only = {"name": "a", "image": "b", "securityContext": own, **container}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {"securityContext": pod, "containers": [only], **spec},
    }
    rendering = Rendering("", "default", (Manifest("a.yaml", document),), {})
    return run_checks(CheckInput(files={}, cases=(Case("", rendering),)), find_rules(("pod-security",))).findings


def test_a_restricted_pod_is_fine() -> None:
    assert find() == []


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"procMount": "Unmasked"}, "container a has procMount Unmasked"),
        ({"seLinuxOptions": {"type": "spc_t"}}, "container a has the SELinux type spc_t"),
        ({"seLinuxOptions": {"user": "u"}}, "container a sets an SELinux user"),
        ({"seLinuxOptions": {"role": "r"}}, "container a sets an SELinux role"),
        ({"appArmorProfile": {"type": "Unconfined"}}, "container a turns AppArmor off"),
        (
            {"windowsOptions": {"hostProcess": True}},
            "container a is a process of the node (windowsOptions.hostProcess)",
        ),
        ({"runAsUser": 0}, "container a runs as user 0"),
        ({"seccompProfile": {"type": "Unconfined"}}, "container a has no seccomp profile"),
    ],
)
def test_what_a_container_may_not_say(own: Mapping[str, Any], message: str) -> None:
    assert find(own={**OWN, **own}) == [message]


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        ({"seLinuxOptions": {"type": "spc_t"}}, "the pod has the SELinux type spc_t"),
        ({"appArmorProfile": {"type": "Unconfined"}}, "the pod turns AppArmor off"),
        ({"runAsUser": 0}, "the pod runs as user 0"),
        ({"seccompProfile": {"type": "Unconfined"}}, "the pod has the seccomp profile Unconfined"),
        ({"runAsNonRoot": False}, "the pod may run as root"),
        ({"sysctls": [{"name": "kernel.msgmax"}]}, "its pods set the sysctl kernel.msgmax"),
    ],
)
def test_what_a_pod_may_not_say_whatever_its_containers_do(pod: Mapping[str, Any], message: str) -> None:
    own = {**OWN, **POD}
    assert find(pod={**POD, **pod}, own=own) == [message]


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"livenessProbe": {"httpGet": {"host": "1.2.3.4"}}}, "container a: livenessProbe calls the host 1.2.3.4"),
        ({"lifecycle": {"preStop": {"tcpSocket": {"host": "h"}}}}, "container a: lifecycle.preStop calls the host h"),
    ],
)
def test_probes_and_hooks_ask_the_pod_itself(container: Mapping[str, Any], message: str) -> None:
    assert find(container=container) == [f"{message}, not the pod"]


def test_an_annotation_may_not_turn_app_armor_off() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/a"
    assert find(annotations={key: "unconfined"}) == [f"the annotation {key} turns AppArmor off"]
    assert find(annotations={key: "localhost/mine"}) == find(annotations={key: "runtime/default"}) == []


def test_what_the_standard_allows() -> None:
    assert find(pod={**POD, "sysctls": [{"name": "net.ipv4.tcp_keepalive_time"}]}) == []
    assert find(own={**OWN, "seLinuxOptions": {"type": "container_t", "level": "s0"}, "procMount": "Default"}) == []
    assert find(own={**OWN, "appArmorProfile": {"type": "RuntimeDefault"}}) == []


def test_windows_is_not_asked_for_what_only_linux_has() -> None:
    assert find(pod={"runAsNonRoot": True}, own={}, spec={"os": {"name": "windows"}}) == []
    assert len(find(pod={"runAsNonRoot": True}, own={}, spec={"os": {"name": "linux"}})) == 3


@pytest.mark.parametrize(
    ("spec", "container"),
    [
        ({"hostNetwork": True}, {}),
        ({"hostIPC": True}, {}),
        ({"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}, {}),
        ({}, {"ports": [{"containerPort": 1, "hostPort": 1}]}),
        ({}, {"securityContext": {**OWN, "privileged": True}}),
    ],
)
def test_what_takes_rights_on_the_node_says_where_it_may_run(
    spec: Mapping[str, Any], container: Mapping[str, Any]
) -> None:
    [finding] = find_all(spec=spec, container=container)
    assert "pod-security.kubernetes.io/enforce: privileged" in finding.hint
    assert "a waiver in .trainchart-check.yaml: rule: pod-security, path: a.yaml, reason" in finding.hint


def test_what_can_be_restricted_says_how() -> None:
    [finding] = find_all(own={**OWN, "runAsUser": 0})
    assert finding.hint == "securityContext.runAsUser: 1000, or any other but 0"
