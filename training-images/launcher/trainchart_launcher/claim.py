"""Who may write a task's checkpoints: the content of its owner file, and how long a newcomer has to wait.

Pure; fence.py reads and writes the file.
"""

from __future__ import annotations

import json
from typing import Any, Mapping, NamedTuple

from trainchart_runtime.progress import parse_number

_LONGEST_CHECK_SECONDS = 60.0
"""What a damaged owner file may make a newcomer believe."""
_SHORTEST_MARGIN_SECONDS = 0.5


class Owner(NamedTuple):
    """One pod that owns, or owned, a task."""

    id: str = ""
    """Made up by the pod at its first claim, and kept as long as the pod; empty in a damaged file."""
    pod: str = ""
    pod_uid: str = ""
    node: str = ""
    check_seconds: float = 0.0
    """How often it looks whether it still owns the task."""
    since: float = 0.0
    """Unix seconds, for readers only: clocks of nodes differ."""

    def __str__(self) -> str:
        if not self.id:
            return "an unknown pod (its owner file is damaged)"
        where = f" on node {self.node}" if self.node else ""
        return f"pod {self.pod}{where} ({self.pod_uid or self.id})"


def dump_owner(owner: Owner) -> bytes:
    """Return the content of the owner file."""
    document = {
        "id": owner.id,
        "pod": owner.pod,
        "podUid": owner.pod_uid,
        "node": owner.node,
        "checkSeconds": owner.check_seconds,
        "since": round(owner.since, 3),
    }
    return json.dumps(document).encode()


def parse_owner(content: bytes) -> Owner:
    """Parse an owner file; one that no launcher has written gives an owner without id."""
    try:
        document = json.loads(content.decode())
    except (ValueError, RecursionError):
        return Owner()
    if not isinstance(document, dict):
        return Owner()
    return Owner(
        id=_text(document, "id"),
        pod=_text(document, "pod"),
        pod_uid=_text(document, "podUid"),
        node=_text(document, "node"),
        check_seconds=_seconds(document, "checkSeconds"),
        since=_seconds(document, "since"),
    )


def resolve_wait(own_check_seconds: float, former: Owner) -> float:
    """Return the seconds after which `former` has noticed that its task was taken, or cannot write any more.

    It stops its program when it has not seen its own name for two checks; the margin is for the stopping.
    """
    check_seconds = max(own_check_seconds, min(former.check_seconds, _LONGEST_CHECK_SECONDS))
    return 2 * check_seconds + max(check_seconds / 2, _SHORTEST_MARGIN_SECONDS)


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    # It ends up in the log.
    return "".join(letter for letter in value if letter.isprintable())[:300] if isinstance(value, str) else ""


def _seconds(document: Mapping[str, Any], key: str) -> float:
    return max(float(parse_number(document.get(key)) or 0.0), 0.0)
