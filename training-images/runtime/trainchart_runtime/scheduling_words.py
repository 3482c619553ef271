"""Which cause a message of Kubernetes' scheduler is: why it finds no node for a pod.

Data, and the patterns that pick from it; pod_problems.py asks, for a pod's status and for its events.
"""

from __future__ import annotations

import re
from typing import Sequence, Tuple

from trainchart_runtime import causes, pod_causes
from trainchart_runtime.cause import Cause

DELETED_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" is being deleted')
MISSING_CLAIM = r'persistentvolumeclaims? "[^"]+" not found'
"""As the scheduler and the kubelet say it."""
IN_USE_WORDS = re.compile(r"ReadWriteOncePod access mode|Multi-Attach error")
_HAS_ROOM = r"(?s)^(?!.*(Insufficient|Too many pods))"
"""Nodes that are merely full may become free."""
_OTHER_PODS = (
    r"didn't match pod (anti-)?affinity rules|didn't satisfy existing pods anti-affinity rules"
    r"|didn't match pod topology spread constraints(?! \(missing required label\))"
)
_NO_MATCH = (
    r"didn't match (Pod's node affinity/selector|pod topology spread constraints \(missing required label\)"
    r"|PersistentVolume's node affinity)|were unschedulable|had untolerated taint"
)
"""No node has the labels or reaches the volume, or those that do are closed."""
SCHEDULING_CAUSES: Sequence[Tuple[str, Cause]] = (
    (DELETED_CLAIM.pattern, pod_causes.CLAIM_DELETED),
    (MISSING_CLAIM, pod_causes.CLAIM_MISSING),
    (IN_USE_WORDS.pattern, pod_causes.CLAIM_IN_USE),
    (
        r"persistentvolumeclaim|PersistentVolumeClaim|volume node affinity|volume zone|bind to PVs?|CSI",
        pod_causes.VOLUME_ERROR,
    ),
    ("free ports? for the requested pod ports", causes.PORT_IN_USE),
    (f"{_HAS_ROOM}.*({_OTHER_PODS})", pod_causes.PLACEMENT_RULES),
    (f"{_HAS_ROOM}.*({_NO_MATCH})", pod_causes.NO_NODE_MATCHES),
    ("", pod_causes.UNSCHEDULABLE),
)
"""Pattern → cause, the first that is found counts."""


def name_scheduling_cause(message: str) -> Cause:
    """Return the cause that a message of the scheduler is."""
    return next(cause for pattern, cause in SCHEDULING_CAUSES if re.search(pattern, message))
