"""Two models and the changes that each goes through, release by release: which version each gets, and what it does.

tests/contract/test_upgrade_ladder.py proves the versions and labels, tests/cluster/test_upgrade_ladder.py that a real
API server and real helm agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainchart.actions.release import Released, ReleaseOptions, release_model
from trainchart.actions.support.repository_access import Address
from trainchart.compare.effect import Effect
from trainchart.kubernetes_yaml import dump_mapping

from .config import REGISTRY_HOST
from .releases import IDLE, merge_values
from .runs import TINY

ENVIRONMENT = {"HOME": "/nonexistent", "SOURCE_DATE_EPOCH": "1767225600"}


@dataclass(frozen=True)
class Rung:
    """A change of the spec, the version that its release gets, and the worst that an upgrade to it does."""

    name: str
    changes: Mapping[str, Any]
    version: str
    effect: Effect


@dataclass(frozen=True)
class Ladder:
    """A model, and all changes one after the other."""

    spec: Mapping[str, Any]
    rungs: tuple[Rung, ...]

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    def write_spec(self, folder: Path, last: Rung) -> Path:
        """Write the spec with all changes up to `last` into `folder`."""
        spec: dict[str, Any] = dict(self.spec)
        for rung in self.rungs[: self.rungs.index(last) + 1]:
            spec = merge_values(spec, rung.changes)
        path = folder / f"{self.name}.yaml"
        path.write_text(dump_mapping(spec))
        return path

    def publish(self, folder: Path, to: Address) -> Iterator[tuple[Rung, Released]]:
        """Release the model and then each change of it, and yield what became of each; `folder` holds the spec."""
        for rung in self.rungs:
            spec = self.write_spec(folder, rung)
            yield rung, release_model(str(spec), to, ReleaseOptions(None, environment=ENVIRONMENT))


def _make_spec(name: str, strategy: str, roles: tuple[str, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "trainchart/v1",
        "kind": "Model",
        "name": name,
        "version": "0.1.0",
        "description": "A model that is released again and again.",
        # That of an example: nothing of it runs.
        "image": {"repository": f"{REGISTRY_HOST}/ml/digits", "tag": "1.0.0"},
        "code": {"path": ".", "command": IDLE["command"]},
        "strategy": strategy,
        "roles": {role: {**TINY, "replicas": 1} for role in roles},
        "volumes": {
            "checkpoints": {
                "size": "1Gi",
                "mountPath": "/checkpoints",
                "storageClass": "shared",
                # Else it follows from the roles, and a new one would change it.
                "accessMode": "ReadWriteMany",
            }
        },
        "hyperparameters": {"epochs": {"type": "integer", "default": 3}},
        "run": {"controller": {"enabled": False}},
    }


def _make_rungs() -> tuple[Rung, ...]:
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    return (
        Rung("the first release", {}, "0.1.0", Effect.none),
        Rung("documentation", {"description": "A model that is described better."}, "0.1.1", Effect.none),
        Rung("a rule of the network", {"networkPolicy": {"statusFrom": [monitoring]}}, "0.1.2", Effect.applied),
        Rung(
            "a new value",
            {"hyperparameters": {"momentum": {"type": "number", "default": 0.9}}},
            "0.2.0",
            Effect.restart,
        ),
        Rung("a new image", {"image": {"tag": "1.0.1"}}, "0.2.1", Effect.restart),
        Rung("a new role", {"roles": {"evaluator": TINY}}, "0.3.0", Effect.restart),
        Rung("an immutable field", {"volumes": {"checkpoints": {"storageClass": "other"}}}, "1.0.0", Effect.rejected),
    )


def _make_ladder(name: str, strategy: str, roles: tuple[str, ...]) -> Ladder:
    return Ladder(_make_spec(name, strategy, roles), _make_rungs())


LADDERS = (
    _make_ladder("alone", "single", ("worker",)),
    _make_ladder("together", "parameter-server", ("chief", "worker", "ps")),
)
