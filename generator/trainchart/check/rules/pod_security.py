"""The rule that pods keep the Pod Security Standard `restricted`, which includes `baseline`, as of Kubernetes 1.34."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import Finding, Severity
from trainchart.check.objects import Container, Pods, find_pods, list_at, mapping_at, mappings_at
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Rendering

_VOLUME_TYPES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
    "image",
}
_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC")
_SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
}
_SELINUX_TYPES = {"", "container_engine_t", "container_init_t", "container_kvm_t", "container_t"}
_PROFILES = ("RuntimeDefault", "Localhost")
_APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_PROBES = (
    ("livenessProbe",),
    ("readinessProbe",),
    ("startupProbe",),
    ("lifecycle", "postStart"),
    ("lifecycle", "preStop"),
)
_Problem = tuple[str, str]
"""What is wrong, and how to restrict it; empty where the pod needs rights on the node."""


@for_each_rendering
def check_pod_security(rendering: Rendering) -> Iterator[Finding]:
    """Hold every pod, init containers and hooks included, against the standard `restricted`."""
    for pods in find_pods(rendering):
        problems = [
            *_pod_problems(pods),
            *(p for container in pods.containers for p in _container_problems(pods, container)),
        ]
        for problem, hint in problems:
            hint = hint or _explain_privileges(pods.manifest.source)
            yield Finding(f"{pods.called}: {problem}", path=pods.manifest.source, line=pods.manifest.line, hint=hint)


def _explain_privileges(path: str) -> str:
    """Return what to do about a pod that must have what no securityContext can make right."""
    return (
        "if it is needed, the namespace must have the label pod-security.kubernetes.io/enforce: privileged; accept it "
        f"with a waiver in .trainchart-check.yaml: rule: pod-security, path: {path}, reason: …"
    )


def _pod_problems(pods: Pods) -> Iterator[_Problem]:
    for field in _HOST_FIELDS:
        if pods.spec.get(field):
            yield f"its pods set {field}", ""
    for volume in mappings_at(pods.spec, "volumes"):
        kinds = volume.keys() - {"name"} - _VOLUME_TYPES
        if kinds:
            yield (
                f"volume {volume.get('name')} is of the type {', '.join(sorted(map(str, kinds)))}",
                "" if "hostPath" in kinds else "use a claim or a CSI volume",
            )
    context = mapping_at(pods.spec, "securityContext")
    for sysctl in mappings_at(context, "sysctls"):
        if sysctl.get("name") not in _SAFE_SYSCTLS:
            yield f"its pods set the sysctl {sysctl.get('name')}", ""
    yield from _context_problems("the pod", context)
    if context.get("runAsNonRoot") is False:
        yield "the pod may run as root", "securityContext.runAsNonRoot: true"
    profile = mapping_at(context, "seccompProfile").get("type")
    if profile not in (None, *_PROFILES):
        yield f"the pod has the seccomp profile {profile}", "securityContext.seccompProfile.type: RuntimeDefault"
    for key, value in pods.annotations.items():
        is_confined = str(value) in ("", "runtime/default") or str(value).startswith("localhost/")
        if str(key).startswith(_APPARMOR_ANNOTATION) and not is_confined:
            yield f"the annotation {key} turns AppArmor off", ""


def _container_problems(pods: Pods, container: Container) -> Iterator[_Problem]:
    pod, own = mapping_at(pods.spec, "securityContext"), mapping_at(container.document, "securityContext")
    where = container.where
    if own.get("privileged"):
        yield f"{where} is privileged", ""
    if own.get("procMount") not in (None, "", "Default"):
        yield f"{where} has procMount {own['procMount']}", ""
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{where} may run as root", "securityContext.runAsNonRoot: true"
    yield from _context_problems(where, own)
    if mapping_at(pods.spec, "os").get("name") != "windows":
        yield from _linux_problems(where, pod, own)
    if set(map(str, list_at(own, "capabilities", "add"))) - {"NET_BIND_SERVICE"}:
        yield f"{where} adds capabilities", "only NET_BIND_SERVICE may be added"
    for port in mappings_at(container.document, "ports"):
        if port.get("hostPort"):
            yield f"{where} uses port {port['hostPort']} of the node", ""
    for path in _PROBES:
        for action in ("httpGet", "tcpSocket"):
            host = mapping_at(container.document, *path, action).get("host")
            if host:
                yield f"{where}: {'.'.join(path)} calls the host {host}, not the pod", ""


def _linux_problems(where: str, pod: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[_Problem]:
    """Yield what Windows knows nothing of, so that no rule asks for it there."""
    if own.get("allowPrivilegeEscalation") is not False:
        yield f"{where} may gain privileges", "securityContext.allowPrivilegeEscalation: false"
    if "ALL" not in list_at(own, "capabilities", "drop"):
        yield f"{where} keeps capabilities", "securityContext.capabilities.drop: [ALL]"
    profile = mapping_at(own, "seccompProfile") or mapping_at(pod, "seccompProfile")
    if profile.get("type") not in _PROFILES:
        yield f"{where} has no seccomp profile", "securityContext.seccompProfile.type: RuntimeDefault"


def _context_problems(where: str, context: Mapping[str, Any]) -> Iterator[_Problem]:
    """Yield what neither a pod nor a container may say of itself."""
    if context.get("runAsUser") == 0:
        yield f"{where} runs as user 0", "securityContext.runAsUser: 1000, or any other but 0"
    selinux = mapping_at(context, "seLinuxOptions")
    if selinux.get("type", "") not in _SELINUX_TYPES:
        yield f"{where} has the SELinux type {selinux['type']}", ""
    for field in ("user", "role"):
        if selinux.get(field):
            yield f"{where} sets an SELinux {field}", ""
    if mapping_at(context, "appArmorProfile").get("type") not in (None, "", *_PROFILES):
        yield f"{where} turns AppArmor off", "securityContext.appArmorProfile.type: RuntimeDefault"
    if mapping_at(context, "windowsOptions").get("hostProcess"):
        yield f"{where} is a process of the node (windowsOptions.hostProcess)", ""


RULES = (
    Rule(
        "pod-security",
        "A namespace that enforces the `restricted` standard rejects pods that violate it, often without a Helm error.",
        check_pod_security,
        "https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted",
        others=Severity.info,
    ),
)
