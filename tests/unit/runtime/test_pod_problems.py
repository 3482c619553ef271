"""What keeps a pod from running: Kubernetes' own words, as real clusters said them, and the cause that each one is."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_runtime import causes
from trainchart_runtime.pod_problems import (
    Event,
    Problem,
    find_claims,
    find_last_start,
    find_pod_event,
    find_pod_problem,
    find_set_problem,
    parse_event,
    parse_time,
)

ELSEWHERE = (
    "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s)."
)
ZONELESS = "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label)."
TIED_TO_A_CLOSED_NODE = (
    "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) were unschedulable."
)
TAINTED = "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
TAINTED_OR_FULL = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {maintenance: gpu}."
CLOSED = "0/2 nodes are available: 2 node(s) were unschedulable."
CLOSED_OR_FULL = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
MATCHING_BUT_FULL = (
    "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector."
)
APART = (
    "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: "
    "0/2 nodes are available: 2 No preemption victims found for incoming pod."
)
TOGETHER = "0/2 nodes are available: 1 node(s) didn't match pod affinity rules, 1 node(s) had untolerated taint(s)."
KEPT_AWAY = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
SPREAD = (
    "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod topology "
    "spread constraints."
)
APART_OR_FULL = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod anti-affinity rules."
APART_OR_CROWDED = "0/2 nodes are available: 1 Too many pods, 1 node(s) didn't match pod anti-affinity rules."
SCHEDULER = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2 nodes are available."
UNBOUND = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
NO_CLAIM = '0/2 nodes are available: persistentvolumeclaim "exp-9-digits-checkpoints" not found. not found'
NO_CLAIM_OF_API = 'persistentvolumeclaims "exp-9-digits-checkpoints" not found'
IN_USE = (
    "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
    "access mode. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
)
NO_ATTACHER = (
    'AttachVolume.Attach failed for volume "corpus-2026-11" : timed out waiting for external-attacher of '
    "file.csi.nimbus-storage.io CSI driver to attach volume vol-0c41f7"
)
NO_CLIENT = "mount-unsupported"
NO_DRIVER = (
    'MountVolume.MountDevice failed for volume "corpus" : kubernetes.io/csi: attacher.MountDevice failed to create '
    "newCsiDriverClient: driver name file.csi.nimbus-storage.io not found in the list of registered CSI drivers"
)
NO_PROFILE = (
    'failed to create containerd container: cannot load seccomp profile "/run/cluster/node2/kubelet/seccomp/profiles/'
    'batch.json": open /run/cluster/node2/kubelet/seccomp/profiles/batch.json: no such file or directory'
)
AS_ROOT = (
    "container has runAsNonRoot and image will run as root (pod: "
    '"exp-19-digits-controller-8883b0f4-dsj8x_team-a(94cc2d7b-8b01-44b0-bd8d-bdc6acf4f8ad)", container: controller)'
)
NOT_A_NUMBER = (
    "container has runAsNonRoot and image has non-numeric user (tensorflow), cannot verify user is non-root (pod: "
    '"exp1-mnist-worker-0_team-a(94cc2d7b)", container: training)'
)
ROOT_ASKED = (
    'container\'s runAsUser breaks non-root policy (pod: "exp1-mnist-worker-0_team-a(94cc2d7b)", container: training)'
)
CREATE = "failed to create containerd container: "
NO_USER = f"{CREATE}mount callback failed on /run/containerd/tmpmounts/containerd-mount398787802: no users found"
NO_USER_OF_CRI_O = "container create failed: unable to find user trainer: no matching entries in passwd file"
NO_GROUP = "linux spec user: unable to find group trainers: no matching entries in group file"
START = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: "
)
ON_A_FILE = (
    f'{START}error during container init: error mounting "/kubelet/pods/6b24/volumes/kubernetes.io~empty-dir/a" to '
    'rootfs at "/app/train.py": not a directory: unknown'
)
OLD_DRIVER = (
    f"{START}error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: "
    "Auto-detected mode as 'legacy'\nnvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, "
    "please update your driver to a newer version, or use an earlier cuda container: unknown"
)
NO_CDI = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: could not apply "
    "required modification to OCI specification: error modifying OCI spec: failed to inject CDI devices: unresolvable "
    "CDI devices management.nvidia.com/gpu=0: unknown"
)
NO_DEVICE = "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu"
TOO_SMALL = f"{START}container init was OOM-killed (memory limit too low?): unknown"
PORTS = "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."


def pod_of(**status: Any) -> dict[str, Any]:
    volumes = [{"name": "c", "persistentVolumeClaim": {"claimName": "exp1-mnist-checkpoints"}}]
    return {"metadata": {"name": "exp1-mnist-worker-0"}, "spec": {"volumes": volumes}, "status": status}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return pod_of(
        containerStatuses=[{"name": "training", "state": {"waiting": {"reason": reason, "message": message}}}]
    )


def init_container(last: dict[str, Any] | None = None, **state: Any) -> dict[str, Any]:
    init = {"name": "fetch", "state": state, "lastState": {"terminated": last} if last else {}}
    training = {"name": "training", "state": {"waiting": {"reason": "PodInitializing"}}}
    return pod_of(phase="Pending", initContainerStatuses=[init], containerStatuses=[training])


def sidecar(last: dict[str, Any], **state: Any) -> dict[str, Any]:
    beside = {"name": "metrics", "state": state, "lastState": {"terminated": last}}
    return pod_of(containerStatuses=[{"name": "training", "state": {"running": {}}}, beside])


def native_sidecar(last: dict[str, Any], **state: Any) -> dict[str, Any]:
    pod = init_container(last, **state)
    pod["spec"]["initContainers"] = [{"name": "fetch", "restartPolicy": "Always"}]
    return pod


def gated(*gates: str) -> dict[str, Any]:
    message = "Scheduling is blocked due to non-empty scheduling gates"
    pod = pod_of(conditions=[condition("PodScheduled", "False", "SchedulingGated", message)])
    pod["spec"]["schedulingGates"] = [{"name": name} for name in gates]
    return pod


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "then"}


TAINT_MANAGER = condition(
    "DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
)


def event(kind: str, name: str, reason: str, message: str, at: float = 1.0) -> Event:
    return Event(kind, name, reason, message, at)


@pytest.mark.parametrize(
    ("pod", "cause", "words"),
    [
        (pod_of(conditions=[condition("PodScheduled", "False", "Unschedulable", SCHEDULER)]), "unschedulable", "gpu"),
        (pod_of(conditions=[condition("PodScheduled", "False", "", ELSEWHERE)]), "no-node-matches", "selector"),
        (
            pod_of(conditions=[condition("PodScheduled", "False", "", ZONELESS)]),
            "no-node-matches",
            "missing required label",
        ),
        (
            pod_of(conditions=[condition("PodScheduled", "False", "", TIED_TO_A_CLOSED_NODE)]),
            "no-node-matches",
            "affinity",
        ),
        (pod_of(conditions=[condition("PodScheduled", "False", "", CLOSED)]), "no-node-matches", "unschedulable"),
        (pod_of(conditions=[condition("PodScheduled", "False", "", CLOSED_OR_FULL)]), "unschedulable", "cpu"),
        (pod_of(conditions=[condition("PodScheduled", "False", "", TAINTED)]), "no-node-matches", "taint"),
        (pod_of(conditions=[condition("PodScheduled", "False", "", TAINTED_OR_FULL)]), "unschedulable", "cpu"),
        (pod_of(conditions=[condition("PodScheduled", "False", "", MATCHING_BUT_FULL)]), "unschedulable", "gpu"),
        (pod_of(conditions=[condition("PodScheduled", "False", "Unschedulable", UNBOUND)]), "volume-error", "unbound"),
        (pod_of(conditions=[condition("PodScheduled", "False", "Unschedulable", PORTS)]), "port-in-use", "free ports"),
        (
            pod_of(conditions=[condition("PodScheduled", "False", "Unschedulable", IN_USE)]),
            "claim-in-use",
            "claim exp1-mnist-checkpoints: 0/2 nodes",
        ),
        (gated("kueue.x-k8s.io/admission", "b"), "scheduling-gated", "gates: kueue.x-k8s.io/admission, b"),
        (
            sidecar({"exitCode": 2, "reason": "Error"}, waiting={"reason": "CrashLoopBackOff"}),
            "sidecar-failed",
            "container metrics ended with 2: Error",
        ),
        (
            native_sidecar({"exitCode": 4, "message": "no proxy"}, waiting={"reason": "CrashLoopBackOff"}),
            "sidecar-failed",
            "container fetch ended with 4: no proxy",
        ),
        (waiting("ErrImagePull", "manifest unknown"), "image-pull", "manifest unknown"),
        (waiting("ImagePullBackOff"), "image-pull", "ImagePullBackOff"),
        (waiting("InvalidImageName", "couldn't parse image name"), "image-pull", "parse"),
        (waiting("CreateContainerConfigError", 'secret "keys" not found'), "config-missing", "keys"),
        (
            waiting(
                "CreateContainerConfigError", 'failed to prepare subPath for volumeMount "c" of container "training"'
            ),
            "volume-error",
            "subPath",
        ),
        (waiting("CreateContainerConfigError", AS_ROOT), "image-user", "image will run as root"),
        (waiting("CreateContainerConfigError", NOT_A_NUMBER), "image-user", "non-numeric user (tensorflow)"),
        (waiting("CreateContainerConfigError", ROOT_ASKED), "image-user", "breaks non-root policy"),
        (waiting("CreateContainerError", NO_PROFILE), "node-file-missing", "profiles/batch.json: no such file"),
        (waiting("CreateContainerError", "apparmor profile not found k8s-train"), "node-file-missing", "k8s-train"),
        (pod_of(phase="Failed", reason="AppArmor", message="Cannot enforce AppArmor"), "node-file-missing", "Cannot"),
        (waiting("CreateContainerError", NO_USER), "image-user", "no users found"),
        (waiting("CreateContainerError", NO_USER_OF_CRI_O), "image-user", "user trainer"),
        (waiting("CreateContainerError", NO_GROUP), "image-user", "group trainers"),
        (waiting("CreateContainerError", f"{CREATE}copy: no space left on device"), "sandbox-error", "no space"),
        (waiting("CreateContainerError", "context deadline exceeded"), "sandbox-error", "deadline"),
        (waiting("CreateContainerError", 'failed to reserve container name "a"'), "sandbox-error", "reserve"),
        (waiting("CreateContainerError", "no command specified"), "program-missing", "no command"),
        (waiting("RunContainerError", "exec: no such file"), "program-missing", "exec"),
        (waiting("RunContainerError", f'{START}exec: "/app/a": exec format error'), "wrong-architecture", "/app/a"),
        (waiting("RunContainerError", f'{START}exec: "/app/a": permission denied'), "program-missing", "/app/a"),
        (waiting("RunContainerError", ON_A_FILE), "volume-error", "not a directory"),
        (waiting("RunContainerError", OLD_DRIVER), "device-error", "cuda>=12.8"),
        (waiting("RunContainerError", NO_CDI), "device-error", "nvidia.com/gpu=0"),
        (waiting("CreateContainerError", f"{CREATE}CDI device injection failed"), "device-error", "injection"),
        (pod_of(phase="Failed", reason="UnexpectedAdmissionError", message=NO_DEVICE), "device-error", "unhealthy"),
        (pod_of(phase="Failed", reason="UnexpectedAdmissionError", message="no memory"), "admission-refused", "no m"),
        (waiting("RunContainerError", TOO_SMALL), "out-of-memory", "limit too low"),
        (init_container(terminated={"exitCode": 1, "reason": "Error"}), "init-failed", "fetch ended with exit code 1"),
        (
            init_container(last={"exitCode": 3, "message": "no bucket"}, waiting={"reason": "CrashLoopBackOff"}),
            "init-failed",
            "fetch ended with exit code 3: no bucket",
        ),
        (
            pod_of(phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
            "evicted",
            "memory",
        ),
        (
            pod_of(conditions=[condition("DisruptionTarget", "True", "PreemptionByScheduler", "for b")]),
            "preempted",
            "b",
        ),
        (
            pod_of(
                phase="Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the deadline"
            ),
            "pod-deadline",
            "longer",
        ),
        (pod_of(phase="Failed", reason="OutOfcpu", message="Node didn't have enough cpu"), "admission-refused", "cpu"),
        (pod_of(phase="Failed", reason="NodeAffinity", message="labels differ"), "admission-refused", "labels"),
        (pod_of(conditions=[condition("DisruptionTarget", "True", "DeletionByTaintManager")]), "node-lost", "Taint"),
        (pod_of(conditions=[condition("Ready", "True"), TAINT_MANAGER]), "evicted-by-taint", "NoExecute taint"),
        (
            pod_of(conditions=[condition("Ready", "False"), TAINT_MANAGER], containerStatuses=[{"ready": True}]),
            "node-lost",
            "NoExecute taint",
        ),
        (
            pod_of(conditions=[TAINT_MANAGER], containerStatuses=[{"state": {"terminated": {"exitCode": 143}}}]),
            "evicted-by-taint",
            "NoExecute taint",
        ),
        (
            pod_of(conditions=[condition("DisruptionTarget", "True", "EvictionByEvictionAPI")]),
            "evicted-by-client",
            "Eviction",
        ),
        (
            pod_of(
                containerStatuses=[{"name": "training", "ready": True, "state": {"running": {}}}],
                conditions=[condition("Ready", "False")],
            ),
            "node-lost",
            "since then",
        ),
    ],
)
def test_a_status_names_its_cause(pod: dict[str, Any], cause: str, words: str) -> None:
    problem = find_pod_problem(pod)

    assert problem is not None
    assert problem.cause == cause
    assert words in problem.message


@pytest.mark.parametrize(
    "pod",
    [
        pod_of(),
        sidecar({"exitCode": 2}, running={}),
        native_sidecar({"exitCode": 4}, waiting={"reason": "PodInitializing"}),
        waiting("ContainerCreating"),
        waiting("CrashLoopBackOff", "back-off 10s restarting failed container"),
        pod_of(containerStatuses=[{"ready": True}], conditions=[condition("Ready", "True")]),
        pod_of(containerStatuses=[{"ready": False}], conditions=[condition("Ready", "False", "ContainersNotReady")]),
        pod_of(conditions=[condition("DisruptionTarget", "False", "TerminationByKubelet")]),
    ],
)
def test_no_problem_is_found_where_there_is_none(pod: dict[str, Any]) -> None:
    assert find_pod_problem(pod) is None


@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        ("FailedMount", 'MountVolume.SetUp failed for volume "data": rpc error: no such export', "volume-error"),
        ("FailedMount", 'MountVolume.SetUp failed for volume "config": configmap "c" not found', "config-missing"),
        ("FailedMount", "mount failed: exit status 32 Output: mount: /x: unknown filesystem type 'nfs'.", NO_CLIENT),
        ("FailedMount", "mount: bad option; you might need a /sbin/mount.<type> helper program.", NO_CLIENT),
        ("FailedMount", "mount failed: exit status 127 Output: mount.glusterfs: not found", NO_CLIENT),
        ("FailedAttachVolume", "Multi-Attach error for volume pvc-1", "claim-in-use"),
        ("FailedAttachVolume", "AttachVolume.Attach failed for volume pvc-1: not found", "volume-error"),
        ("FailedAttachVolume", NO_ATTACHER, "storage-driver-missing"),
        ("FailedMount", NO_DRIVER, "storage-driver-missing"),
        ("FailedAttachVolume", "CSINode node1 does not contain driver ebs.csi.aws.com", "storage-driver-missing"),
        ("FailedMount", "hostPath type check failed: /mnt/data is not a directory", "node-file-missing"),
        ("FailedMount", f"error processing PVC team-a/c: failed to fetch PVC: {NO_CLAIM_OF_API}", "claim-missing"),
        ("FailedCreatePodSandBox", "failed to set up pod network", "sandbox-error"),
        ("FailedCreatePodSandBox", TOO_SMALL, "out-of-memory"),
    ],
)
def test_an_event_speaks_where_the_status_is_silent(reason: str, message: str, cause: str) -> None:
    events = [
        event("Pod", "exp1-mnist-worker-1", "FailedMount", "another pod's", at=9),
        event("Pod", "exp1-mnist-worker-0", "Pulled", "Successfully pulled", at=8),
        event("Pod", "exp1-mnist-worker-0", reason, message),
    ]

    problem = find_pod_problem(waiting("ContainerCreating"), events)

    assert problem is not None
    assert (problem.cause, problem.message) == (cause, message)


@pytest.mark.parametrize("message", [UNBOUND, NO_CLAIM])
def test_provisioner_says_more_about_a_claim_than_the_scheduler(message: str) -> None:
    pod = pod_of(conditions=[condition("PodScheduled", "False", "Unschedulable", message)])
    events = [
        event("PersistentVolumeClaim", "exp1-mnist-checkpoints", "ProvisioningFailed", "no class cephfs"),
        event("PersistentVolumeClaim", "other", "ProvisioningFailed", "not ours", at=5),
    ]

    problem = find_pod_problem(pod, events)

    assert problem is not None
    assert problem.message == "claim exp1-mnist-checkpoints: no class cephfs"


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (SCHEDULER, "unschedulable"),
        (ELSEWHERE, "no-node-matches"),
        (ZONELESS, "no-node-matches"),
        (MATCHING_BUT_FULL, "unschedulable"),
        (APART, "placement-rules"),
        (TOGETHER, "placement-rules"),
        (KEPT_AWAY, "placement-rules"),
        (SPREAD, "placement-rules"),
        (APART_OR_FULL, "unschedulable"),
        (APART_OR_CROWDED, "unschedulable"),
        (UNBOUND, "volume-error"),
        (PORTS, "port-in-use"),
        (IN_USE, "claim-in-use"),
        (NO_CLAIM, "claim-missing"),
    ],
)
def test_schedulers_event_is_read_like_the_pods_condition(message: str, cause: str) -> None:
    of_event = find_pod_event("ps-0", [event("Pod", "ps-0", "FailedScheduling", message)])
    of_status = find_pod_problem(pod_of(conditions=[condition("PodScheduled", "False", "Unschedulable", message)]))
    assert of_event is not None
    assert of_status is not None
    assert (of_event.cause, of_status.cause) == (cause, cause)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ('pods "exp1-mnist-ps-0" is forbidden: exceeded quota: tests, requested: pods=1', "quota-exceeded"),
        (
            'pods "exp1-mnist-ps-0" is forbidden: failed quota: compute: must specify limits.cpu for: log-shipper',
            "quota-needs-amount",
        ),
        ('pods "exp1-mnist-ps-0" is forbidden: violates PodSecurity "restricted:latest"', "admission-refused"),
        ('admission webhook "policy" denied the request', "admission-refused"),
        ("Pod is invalid: metadata.labels: must be no more than 63 characters", "admission-refused"),
        ('pods "exp1-mnist-ps-0" already exists', "name-conflict"),
        (
            'pods "exp1-mnist-ps-0" is forbidden: cpu max limit to request ratio per Container is 10, but provided '
            "ratio is 20.000000",
            "limit-range",
        ),
        (
            'pods "exp1-mnist-ps-0" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi',
            "limit-range",
        ),
        (
            'pods "exp1-mnist-ps-0" is forbidden: no PriorityClass with name high was found',
            "class-missing",
        ),
        ('pods "exp1-mnist-ps-0" is forbidden: pod rejected: RuntimeClass "nvidia" not found', "class-missing"),
        ('pods "exp1-mnist-ps-0" is forbidden: error looking up service account a/b: not found', "config-missing"),
    ],
)
def test_only_events_tell_why_a_pod_was_not_created(message: str, cause: str) -> None:
    told = event("StatefulSet", "exp1-mnist-ps", "FailedCreate", message)

    problem = find_set_problem("exp1-mnist-ps", [event("StatefulSet", "exp1-mnist-ps", "SuccessfulCreate", ""), told])

    assert problem is not None
    assert problem.cause == cause
    assert find_set_problem("exp1-mnist-worker", [told]) is None


def test_the_newest_event_counts() -> None:
    old = event("StatefulSet", "ps", "FailedCreate", "exceeded quota: tests", at=1)
    new = event("StatefulSet", "ps", "FailedCreate", "violates PodSecurity", at=2)

    for events in ([old, new], [new, old]):
        problem = find_set_problem("ps", events)
        assert problem is not None
        assert problem.cause == "admission-refused"


@pytest.mark.parametrize(
    ("uid", "reason", "node", "cause"),
    [
        ("u2", "FailedMount", "node-1", "volume-error"),
        ("", "FailedMount", "node-1", "volume-error"),
        ("u1", "FailedMount", "node-1", None),
        ("u1", "Evicted", "", None),
        ("u2", "FailedScheduling", "", "unschedulable"),
        ("u2", "FailedScheduling", "node-1", None),
    ],
)
def test_events_of_an_earlier_pod_or_its_wait_are_ignored(uid: str, reason: str, node: str, cause: str | None) -> None:
    # The pod is pulling its image, of which its status and Warnings say nothing.
    events = [event("Pod", "ps-0", reason, "timed out")._replace(uid=uid)]
    pod = {"metadata": {"name": "ps-0", "uid": "u2"}, "spec": {"nodeName": node}}

    for problem in (find_pod_event("ps-0", events, "u2", bool(node)), find_pod_problem(pod, events)):
        assert (problem and problem.cause) == cause


NOT_YET_BOUND = (
    "Unable to attach or mount volumes: unmounted volumes=[volume-checkpoints], unattached volumes=[], failed to "
    "process volumes=[volume-checkpoints]: error processing PVC team-a/exp-6-digits-checkpoints: PVC is not bound"
)


@pytest.mark.parametrize(
    ("reason", "message", "at", "cause"),
    [
        ("FailedMount", NOT_YET_BOUND, "04:04:26", None),
        ("FailedMount", NOT_YET_BOUND, "04:05:00", "volume-error"),
        ("FailedMount", 'MountVolume.SetUp failed for volume "config": configmap "c" not found', "04:04:26", None),
        ("FailedMapVolume", "no such device", "04:04:26", None),
        ("FailedAttachVolume", "Multi-Attach error for volume pvc-1", "04:04:26", None),
        ("FailedAttachVolume", NO_ATTACHER, "04:04:26", None),
        ("FailedCreatePodSandBox", "failed to set up pod network", "04:04:26", None),
        ("NetworkNotReady", "network is not ready", "04:04:26", None),
        ("NetworkNotReady", "network is not ready", "04:05:00", "sandbox-error"),
        ("Evicted", "The node was low on resource: memory.", "04:04:26", "evicted"),
    ],
)
def test_started_init_container_ends_earlier_mount_failures(
    reason: str, message: str, at: str, cause: str | None
) -> None:
    pod = init_container(running={"startedAt": "2026-11-29T04:04:41Z"})
    pod["spec"]["nodeName"] = "node1"
    started = find_last_start(pod)

    events = [event("Pod", "exp1-mnist-worker-0", reason, message, at=parse_time(f"2026-11-29T{at}Z"))]

    assert started == parse_time("2026-11-29T04:04:41Z")
    for problem in (
        find_pod_event("exp1-mnist-worker-0", events, "", True, started),
        find_pod_problem(pod, events),
    ):
        assert (problem and problem.cause) == cause


def test_last_start_of_a_pod_includes_ended_containers() -> None:
    ended = {"exitCode": 0, "startedAt": "2026-11-29T04:04:41Z", "finishedAt": "2026-11-29T04:04:50Z"}
    assert find_last_start(init_container(terminated=ended)) == parse_time("2026-11-29T04:04:41Z")
    again = init_container(ended, waiting={"reason": "CrashLoopBackOff"})
    assert find_last_start(again) == parse_time("2026-11-29T04:04:41Z")
    assert find_last_start(init_container(ended, running={"startedAt": "2026-11-29T04:05:00Z"})) == parse_time(
        "2026-11-29T04:05:00Z"
    )
    assert find_last_start(waiting("ContainerCreating")) == 0.0


def test_an_event_is_read_with_the_time_of_its_last_occurrence() -> None:
    found = parse_event(
        {
            "involvedObject": {"kind": "Pod", "name": "a"},
            "reason": "FailedMount",
            "message": "m",
            "eventTime": "2026-01-01T00:00:00.000001Z",
            "series": {"lastObservedTime": "2026-01-01T00:01:00.5Z"},
        }
    )

    assert found == Event("Pod", "a", "FailedMount", "m", parse_time("2026-01-01T00:01:00Z"))


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "now", None])
def test_a_time_that_makes_no_sense_ends_no_controller(time: object) -> None:
    assert parse_time(time) == 0.0


REASONS = st.sampled_from(["", "FailedMount", "FailedCreate", "Evicted", "Unschedulable", "ErrImagePull", "x"])
TEXTS = st.none() | st.text(max_size=20)


@given(REASONS, TEXTS, TEXTS, st.sampled_from(["True", "False", "Unknown", None]))
def test_whatever_a_cluster_says_the_cause_is_of_the_closed_list(
    reason: str, message: str | None, phase: str | None, status: str | None
) -> None:
    conditions = [
        {"type": kind, "status": status, "reason": reason, "message": message}
        for kind in ("DisruptionTarget", "PodScheduled", "Ready")
    ]
    pod = waiting(reason, message or "")
    pod["status"].update(conditions=conditions, phase=phase, reason=reason, message=message)

    problem = find_pod_problem(pod, [event("Pod", "exp1-mnist-worker-0", reason, message or "")])

    assert problem is None or problem.cause in causes.CAUSES


def test_claim_that_is_being_deleted_is_told_from_a_missing_one():
    words = '0/2 nodes are available: persistentvolumeclaim "tagger-mnist-checkpoints" is being deleted. not found'
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    pod = {"metadata": {"name": "tagger-mnist-worker-0"}, "status": {"conditions": [condition]}}
    expected = Problem("claim-deleted", 'claim "tagger-mnist-checkpoints" is being deleted')
    assert find_pod_problem(pod) == expected
    event = Event("Pod", "tagger-mnist-worker-0", "FailedScheduling", words, 1.0)
    assert find_pod_event("tagger-mnist-worker-0", [event]) == expected
    condition["message"] = '0/2 nodes are available: persistentvolumeclaim "data" not found.'
    assert find_pod_problem(pod).cause == "claim-missing"


def test_claims_of_a_pod_include_those_of_its_own():
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "tiles"}},
        {"name": "volume-scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "tmp", "emptyDir": {}},
    ]
    pod = {"metadata": {"name": "exp1-mnist-worker-0"}, "spec": {"volumes": volumes}}
    assert find_claims(pod) == ("tiles", "exp1-mnist-worker-0-volume-scratch")


def test_missing_claim_of_the_release_to_resume_from_is_told():
    words = '0/2 nodes are available: persistentvolumeclaim "nosuch-mnist-checkpoints" not found. not found'
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    volumes = [{"name": "resume", "persistentVolumeClaim": {"claimName": "nosuch-mnist-checkpoints"}}]
    pod = {"metadata": {"name": "exp1-mnist-worker-0"}, "spec": {"volumes": volumes}}
    pod["status"] = {"conditions": [condition]}
    expected = 'run.resumeRelease: the claim "nosuch-mnist-checkpoints" of that release is not there'
    assert find_pod_problem(pod) == Problem("resume-claim-missing", expected)
    volumes[0]["name"] = "volume-checkpoints"
    assert find_pod_problem(pod).cause == "claim-missing"


def test_texts_of_an_event_are_cut() -> None:
    about = {"kind": "k" * 1_000_000, "name": "n" * 1_000_000, "uid": "u" * 1_000_000}
    found = parse_event({"involvedObject": about, "reason": "r" * 1_000_000, "message": "m" * 1_000_000})
    assert found.message == "m" * 1024
    assert [len(text) for text in (found.kind, found.name, found.uid, found.reason)] == [63, 300, 64, 128]


def test_long_event_of_a_set_is_read_quickly() -> None:
    events = [Event("StatefulSet", "worker", "FailedCreate", "failed quota: " * 15_000, 1.0)]
    began = time.process_time()
    problem = find_set_problem("worker", events)
    assert problem and problem.cause == "quota-exceeded"
    assert time.process_time() - began < 1


LONG = "x" * 10_000


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (
            {"conditions": [condition("PodScheduled", "False", "Unschedulable", f"{LONG} persistentvolumeclaim")]},
            "unschedulable",
        ),
        ({"reason": "UnexpectedAdmissionError", "message": f"{LONG} healthy devices"}, "admission-refused"),
        (
            {
                "containerStatuses": [
                    {"state": {"waiting": {"reason": "CreateContainerError", "message": f"{LONG} exec format error"}}}
                ]
            },
            "config-missing",
        ),
    ],
)
def test_only_the_start_of_a_long_message_is_read(status: dict[str, Any], cause: str) -> None:
    problem = find_pod_problem(pod_of(**status))
    assert problem and problem.cause == cause


def test_only_the_start_of_a_long_end_is_read() -> None:
    problem = find_pod_problem(init_container({"exitCode": 1, "message": "first" + "\n" * 10_000 + "last"}, waiting={}))
    assert problem and problem.message.endswith("exit code 1: first")
