"""Fit a spec to its strategy, so that its one word can be changed and nothing else: for plan/resolve.py. Pure.

What a strategy does not have is set aside with a note, and what the author leaves open follows from the strategy. The
data for that is in strategies.py and under `strategies` in defaults.yaml; here is what depends on the rest of the spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainchart.plan.layers import BUILTIN_LAYER
from trainchart.plan.strategies import STRATEGIES, Strategy, describe_lone_worker
from trainchart.spec.document import Origin, Path
from trainchart.spec.model import ModelSpec
from trainchart.spec.settings import RoleSettings, VolumeSettings
from trainchart_runtime.cluster import ROLES


@dataclass(frozen=True)
class Note:
    """What the author should know: about which key, and why."""

    path: Path
    message: str


def fit_to_strategy(spec: ModelSpec, origins: Mapping[Path, Origin]) -> tuple[ModelSpec, tuple[Note, ...]]:
    """Return `spec` as its strategy can train it, and a note on everything that the author wrote and is not used."""
    strategy = STRATEGIES[spec.strategy]
    notes = tuple(_set_aside(spec, strategy))
    roles = {
        role: _fit_role(role, settings, spec, origins)
        for role, settings in spec.roles.items()
        if role in strategy.roles or role not in ROLES
    }
    fitted = spec.model_copy(update={"roles": roles})
    volumes = {name: _fit_volume(name, volume, fitted, origins) for name, volume in spec.volumes.items()}
    fitted = fitted.model_copy(update={"volumes": volumes})
    worker = roles["worker"]
    alone = describe_lone_worker(strategy, worker.replicas, worker.gpus)
    return fitted, (*notes, *([Note(("strategy",), alone)] if alone else []))


def _set_aside(spec: ModelSpec, strategy: Strategy) -> Iterator[Note]:
    for role, settings in spec.roles.items():
        if role in ROLES and role not in strategy.roles:
            reason = strategy.no_ps_reason if role == "ps" else f"its roles are {', '.join(strategy.roles)}"
            yield Note(("roles", role), f"roles.{role} is not used: {spec.strategy} has no {role} ({reason})")
        elif role == "worker" and strategy.has_one_worker and settings.replicas > 1:
            message = f"roles.worker.replicas: {settings.replicas} is not used: {spec.strategy} is one process"
            yield Note(("roles", role, "replicas"), message)


def _fit_role(role: str, settings: RoleSettings, spec: ModelSpec, origins: Mapping[Path, Origin]) -> RoleSettings:
    changes = {}
    if role == "worker" and STRATEGIES[spec.strategy].has_one_worker and settings.replicas > 1:
        changes["replicas"] = 1
    if spec.framework.flavour == "cpu" and _is_default(("roles", role, "gpus"), origins):
        changes["gpus"] = 0
    return settings.model_copy(update=changes)


def _fit_volume(name: str, volume: VolumeSettings, spec: ModelSpec, origins: Mapping[Path, Origin]) -> VolumeSettings:
    changes: dict[str, object] = {}
    if volume.roles:
        # Where there is no chief, worker 0 leads, and does what a chief does.
        named = [spec.leader if role == "chief" else role for role in volume.roles]
        kept = [role for role in dict.fromkeys(named) if role in spec.roles or role not in ROLES]
        changes["roles"] = kept or [spec.leader]
        volume = volume.model_copy(update=changes)
    is_made = volume.size != "" and not volume.uri and not volume.existing_claim
    is_default = _is_default(("volumes", name, "accessMode"), origins)
    if volume.ephemeral or (is_made and is_default and _is_of_one_pod(name, volume, spec)):
        changes["access_mode"] = "ReadWriteOnce"
    return volume.model_copy(update=changes)


def _is_of_one_pod(name: str, volume: VolumeSettings, spec: ModelSpec) -> bool:
    """Say whether one pod mounts `volume`, and no other can be added by raising a number at install."""
    mounting = [role for role in spec.roles if not volume.roles or role in volume.roles]
    is_read = spec.tensorboard.enabled and name == spec.log_volume
    return STRATEGIES[spec.strategy].has_one_worker and mounting == ["worker"] and not is_read


def _is_default(path: Path, origins: Mapping[Path, Origin]) -> bool:
    return path in origins and origins[path].layer == BUILTIN_LAYER
