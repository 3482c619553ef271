"""Locks that can be seen in objects, as rules: so that checks of manifests and API servers enforce them, too. Pure.

Most locks cannot: nothing in an object says that it comes from that path of a spec.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from trainchart.packs.locks import Lock, LockedPath
from trainchart.packs.rules import PackRule, RuleFile
from trainchart.plan.layers import ANY_ENTRY

_COMPONENT = "app.kubernetes.io/component"
_WITH_IMAGE = {("run", "controller", "image"): "controller", ("tensorboard", "image"): "tensorboard"}
"""Paths of the image of one component, and its label."""


def make_lock_rules(locks: Iterable[LockedPath]) -> Iterator[PackRule]:
    """Yield a rule for each lock on storage classes, on the GPUs of a role, and on the image of a component."""
    for locked in locks:
        rule = _make_rule(locked)
        if rule is not None:
            name = "locked-" + "-".join(part for part in locked.path if part != ANY_ENTRY).lower()
            yield PackRule(name, rule, locked.origin, locked.waivers)


def _make_rule(locked: LockedPath) -> RuleFile | None:
    only = "only " if locked.lock.allowed is not None else ""
    message = f"{locked.key} is locked: {only}{locked.lock}"
    message += f"; {locked.lock.message}" if locked.lock.message else ""
    allowed = json.dumps(locked.lock.allowed, ensure_ascii=False)
    if locked.path == ("volumes", ANY_ENTRY, "storageClass"):
        expression = f"object.spec.?storageClassName.orValue('') in {allowed}"
        return RuleFile(expression=expression, message=message, kinds=["PersistentVolumeClaim"])
    if locked.path == ("roles", ANY_ENTRY, "gpus"):
        most = _largest(locked.lock)
        limits = "c.?resources.?limits.orValue({})"
        expression = (
            f"variables.containers.all(c, {limits}.all(r, !r.endsWith('/gpu') || int(string({limits}[r])) <= {most}))"
        )
        return RuleFile(expression=expression, message=message) if most is not None else None
    if locked.path in _WITH_IMAGE:
        component = f"object.metadata.?labels[?'{_COMPONENT}'].orValue('') == '{_WITH_IMAGE[locked.path]}'"
        expression = f"!({component}) || variables.containers.all(c, c.image in {allowed})"
        return RuleFile(expression=expression, message=message)
    return None


def _largest(lock: Lock) -> int | None:
    """Return the largest allowed number; None where there is no bound, or what is allowed is no number."""
    if lock.allowed is None:
        return lock.maximum
    return max(lock.allowed) if all(isinstance(value, int) for value in lock.allowed) else None
