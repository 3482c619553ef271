"""Which cause a message is about a container that was not created or started: the kubelet's and the runtimes' words.

Data, and the patterns that pick from it; pod_problems.py asks for a container that waits, problems.py for its end.
"""

from __future__ import annotations

import re
from typing import Mapping, Optional, Sequence, Tuple

from trainchart_runtime import causes, pod_causes
from trainchart_runtime.cause import Cause

TOO_LITTLE_MEMORY = r"container init was OOM-killed|memory limit too low"
"""As runc says it of a container that does not even start within its limit, the pod's sandbox included."""
LOST_DEVICES = r"number of devices unavailable|healthy devices|Allocate failed due to rpc error"
"""As the kubelet says it of a pod that came to a node with fewer GPUs than it had told the scheduler."""
_START_CAUSES: Sequence[Tuple[str, Cause]] = (
    ("exec format error", causes.WRONG_ARCHITECTURE),
    (TOO_LITTLE_MEMORY, causes.OUT_OF_MEMORY),
    (r"nvidia-container-cli|CDI devices?\b", pod_causes.DEVICE_ERROR),
    (r"subPath|error mounting \S+ to rootfs", pod_causes.VOLUME_ERROR),
    (r"(?i)\b(seccomp|apparmor)\b", pod_causes.NODE_FILE_MISSING),
    # The kubelet's, containerd's, then those of CRI-O and Docker.
    (
        r"has runAsNonRoot and image |runAsUser breaks non-root policy|: no (users|groups) found"
        r"|unable to find (user|group) |no matching entries in (passwd|group) file",
        pod_causes.IMAGE_USER,
    ),
    ("no command specified", causes.PROGRAM_MISSING),
    (
        "no space left on device|context deadline exceeded|failed to reserve container name|input/output error",
        pod_causes.SANDBOX_ERROR,
    ),
)
"""Pattern → cause, the first that is found counts."""


def name_start_cause(message: str, otherwise: Cause) -> Cause:
    """Return the cause that a message about a container's start is, `otherwise` where it says nothing of one."""
    return next((cause for pattern, cause in _START_CAUSES if re.search(pattern, message)), otherwise)


_KINDS: Mapping[str, str] = {
    "secret": "Secret",
    "configmap": "ConfigMap",
    "config": "ConfigMap",
    "serviceaccount": "ServiceAccount",
}
_NO_OBJECT = re.compile(r'\b(secret|configmap|serviceaccount) "([^"]+)" not found')
_NO_KEY = re.compile(r"couldn't find key (\S+) in (Secret|ConfigMap) (?:[^/\s]+/)?(\S+)")
_NO_KEY_OF_VOLUME = re.compile(r"references non-existent (secret|config) key: (\S+)")


def find_keyless(message: str) -> Optional[Tuple[str, str]]:
    """Return the kind and name of the Secret or ConfigMap that lacks a key, as the kubelet says; None otherwise."""
    found = _NO_KEY.search(message)
    return (found[2], found[3]) if found else None


def name_sentence(cause: str, message: str) -> str:
    """Return the sentence of a cause; of CONFIG_MISSING, which object or key is missing as the message says."""
    if cause != pod_causes.CONFIG_MISSING.name:
        return causes.CAUSES[cause].sentence if cause in causes.CAUSES else ""
    if found := _NO_KEY.search(message):
        return f"The pod refers to the key {found[1]}, which the {found[2]} {found[3]} does not have."
    if found := _NO_KEY_OF_VOLUME.search(message):
        return f"The pod refers to the key {found[2]}, which its {_KINDS[found[1]]} does not have."
    if found := _NO_OBJECT.search(message):
        return f"The pod refers to the {_KINDS[found[1]]} {found[2]}, which does not exist."
    return "The container cannot be created as the pod describes it."
