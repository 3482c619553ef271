"""How a pod differs from what its StatefulSet says: policies, webhooks, defaults of a namespace and people change pods.

Pure; the run controller and the CLI ask the same question here.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, Dict, Mapping

from trainchart_runtime.contract import TRAINING_CONTAINER

_TEXT_LIMIT = 120
"""Characters of one value: a command may be a whole program."""
_DNS_POLICY = "ClusterFirst"
_LABELS = "seLinuxOptions"
"""Some clusters give each namespace labels of its own."""
_SETTINGS_KEPT = 200
"""Of one pod, which may ask for any number of resources."""
_WORDS_LIMIT = 1000
"""Characters of all changes: a pod may ask for any number of resources."""


def read_settings(spec: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what decides how the training container of a pod spec runs: image, command, resources, names, rights."""
    containers = spec.get("containers") or ()
    training: Mapping[str, Any] = next((each for each in containers if each.get("name") == TRAINING_CONTAINER), {})
    found: Dict[str, str] = {}
    for key in ("image", "command", "args"):
        value = training.get(key) or ""
        found[key] = (value if isinstance(value, str) else " ".join(map(str, value)))[:_TEXT_LIMIT]
    resources = training.get("resources") or {}
    limits = resources.get("limits") or {}
    # Kubernetes does so in pods, and not in the templates of StatefulSets.
    requests = {**limits, **(resources.get("requests") or {})}
    for kind, amounts in (("requests", requests), ("limits", limits)):
        found.update({f"{kind}.{name}": str(amount) for name, amount in amounts.items()})
    hooks = training.get("lifecycle")
    for name, hook in hooks.items() if isinstance(hooks, dict) else ():
        found[f"lifecycle.{name}"] = _dump(hook)
    found.update(_read_names_and_rights(spec, training))
    said = ((key, value) for key, value in found.items() if value)
    return dict(itertools.islice(said, _SETTINGS_KEPT))


def _read_names_and_rights(spec: Mapping[str, Any], training: Mapping[str, Any]) -> Mapping[str, str]:
    """Return how a pod resolves names, and as whom and with which rights its training container runs."""
    policy = spec.get("dnsPolicy")
    found = {
        # The API server sets this default, perhaps in pods alone.
        "dnsPolicy": "" if policy == _DNS_POLICY else str(policy or ""),
        "dnsConfig": _dump(spec.get("dnsConfig")),
        "hostAliases": _dump(spec.get("hostAliases")),
    }
    for place, context in (("pod.", spec.get("securityContext")), ("", training.get("securityContext"))):
        fields = context.items() if isinstance(context, dict) else ()
        found.update({f"{place}securityContext.{name}": _dump(value) for name, value in fields if name != _LABELS})
    return found


def _dump(value: Any) -> str:
    """Return a value as one short text; "" for one that says nothing."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return "" if value in (None, {}, []) else text[:_TEXT_LIMIT]


def describe_changes(made: Mapping[str, str], planned: Mapping[str, str]) -> str:
    """Return what the settings that a pod has do not share with those of its StatefulSet; "" where all are equal."""
    changed = [key for key in sorted({*made, *planned}) if made.get(key) != planned.get(key)]
    unset = {"dnsPolicy": _DNS_POLICY}
    sides = ((key, unset.get(key, "unset")) for key in changed)
    words = (f"{key} {made.get(key, other)} instead of {planned.get(key, other)}" for key, other in sides)
    return ", ".join(words)[:_WORDS_LIMIT]
