"""How a pod differs from what its StatefulSet says: policies, webhooks, defaults of a namespace and people change pods.

Pure; the run controller and the CLI ask the same question here.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from trainchart_runtime.contract import TRAINING_CONTAINER

_TEXT_LIMIT = 120
"""Characters of one value: a command may be a whole program."""
_WORDS_LIMIT = 1000
"""Characters of all changes: a pod may ask for any number of resources."""


def read_settings(spec: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what decides how the training container of a pod spec runs: image, command, requests and limits."""
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
    return {key: value for key, value in found.items() if value}


def describe_changes(made: Mapping[str, str], planned: Mapping[str, str]) -> str:
    """Return what the settings that a pod has do not share with those of its StatefulSet; "" where all are equal."""
    changed = [key for key in sorted({*made, *planned}) if made.get(key) != planned.get(key)]
    words = (f"{key} {made.get(key, 'unset')} instead of {planned.get(key, 'unset')}" for key in changed)
    return ", ".join(words)[:_WORDS_LIMIT]
