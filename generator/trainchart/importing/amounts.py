"""Requests and limits of a container, in the words of a role: cpu, memory, gpus and the rest. Pure."""

from __future__ import annotations

import re
from typing import Any

from trainchart.importing.ledger import Ledger, Place

GPU = "nvidia.com/gpu"
_GPUS = re.compile(r".+/(gpu|mig-.+)|.+/gpu-.+|gpu\.intel\.com/.+")
_KEYS = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeralStorage"}
_AMOUNTS = ("requests", "limits")


def find_gpu_resource(containers: list[Any]) -> str:
    """Return the resource that counts GPUs in these containers; NVIDIA's where none does."""
    for container in containers:
        resources = container.get("resources") if isinstance(container, dict) else None
        for kind in _AMOUNTS:
            amounts = resources.get(kind) if isinstance(resources, dict) else None
            found = (
                sorted(str(name) for name in amounts if _GPUS.fullmatch(str(name))) if isinstance(amounts, dict) else []
            )
            if found:
                return found[0]
    return GPU


def read_resources(value: Any, place: Place, role: str, gpu: str, ledger: Ledger) -> dict[str, Any]:
    """Return what a role's settings say of a container's `resources`; `gpu` is the resource that gpus counts."""
    resources = ledger.mapping(value, place)
    requests, limits = (ledger.mapping(resources.get(kind), (*place, kind)) for kind in _AMOUNTS)
    for key in [key for key in resources if key not in (*_AMOUNTS, "claims")]:
        ledger.leave((*place, str(key)), "it is not a field of resources in Kubernetes")
    settings: dict[str, Any] = {}
    for name, key in _KEYS.items():
        settings |= _read_amount(name, key, requests.get(name), limits.get(name))
        for kind, amounts in zip(_AMOUNTS, (requests, limits), strict=True):
            if name in amounts:
                ledger.carry((*place, kind, name), f"roles.{role}.{key}")
    count = limits.get(gpu, requests.get(gpu))
    if count is not None:
        settings["gpus"] = _count(count, (*place, "limits", gpu), ledger)
        ledger.carry((*place, "limits", gpu), f"roles.{role}.gpus")
    others = {
        kind: {name: amount for name, amount in amounts.items() if name not in _KEYS and name != gpu}
        for kind, amounts in zip(_AMOUNTS, (requests, limits), strict=True)
    }
    if any(others.values()):
        settings["resources"] = {kind: amounts for kind, amounts in others.items() if amounts}
        ledger.carry(place, f"roles.{role}.resources")
    if resources.get("claims"):
        settings.setdefault("resources", {})["claims"] = resources["claims"]
        ledger.carry((*place, "claims"), f"roles.{role}.resources.claims")
    return settings


def _read_amount(name: str, key: str, request: Any, limit: Any) -> dict[str, Any]:
    """Return request and limit of one resource; Kubernetes takes the limit as the request where there is only one."""
    settings = {}
    if request is not None or limit is not None:
        settings[key] = _plain(limit if request is None else request)
    # A chart's pods are limited to what they request, except on the node's disk.
    if limit is not None and (str(limit) != str(settings[key]) or name == "ephemeral-storage"):
        settings[f"{key}Limit"] = _plain(limit)
    return settings


def _plain(amount: Any) -> Any:
    return amount if isinstance(amount, (int, float)) and not isinstance(amount, bool) else str(amount)


def _count(value: Any, place: Place, ledger: Ledger) -> int:
    text = str(value)
    if re.fullmatch(r"[0-9]{1,6}", text):
        return int(text)
    ledger.leave(place, f"{text[:40]!r} is not a number of GPUs")
    return 0
