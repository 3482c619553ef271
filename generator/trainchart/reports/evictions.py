"""What to do about a pod that was evicted because it exceeded a limit of its own, as the kubelet's words say. Pure."""

from __future__ import annotations

import re

from trainchart_runtime.pod_causes import EVICTED

_VOLUME = re.compile(r'EmptyDir volume "(?P<name>[^"]{1,63})" exceeds the limit "(?P<limit>[^"]{1,20})"')
_CONTAINER = re.compile(r'exceeded its local ephemeral storage limit "(?P<limit>[^"]{1,20})"')
_POD = re.compile(r"ephemeral local storage usage exceeds the total limit of containers (?P<limit>\S{1,20}\b)")


def is_overrun(words: str) -> bool:
    """Return whether a pod exceeded its own limit, as it will again, by the words of its eviction."""
    return "exceed" in words


def advise_on_eviction(words: str) -> str:
    """Return what to do about an eviction; the general advice where its words do not say which limit it was."""
    if volume := _VOLUME.search(words):
        name, limit = volume["name"], volume["limit"]
        if name == "tmp":
            return f"Raise tmpSize of the role (now {limit}), or let the program write less to /tmp."
        return f"Raise the size of the volume {name} (now {limit}) in the values, or let the program write less to it."
    if found := _CONTAINER.search(words) or _POD.search(words):
        return (
            f"Raise ephemeralStorageLimit of the role (now {found['limit']}), or let the program write less to the "
            "disk of the node: to /tmp, to volumes of type emptyDir, and to its output."
        )
    return EVICTED.hint
