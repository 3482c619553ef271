"""Takes out of an imported spec what no chart can hold, and says so. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trainchart.errors import Problem
from trainchart.importing.ledger import Ledger, LeftOut
from trainchart.spec.document import Document, Path

_BY_ENTRY = {"env", "volumes", "commonLabels", "commonAnnotations", "podLabels", "podAnnotations", "hyperparameters"}
"""Sections of which one entry is taken out; of all others, the whole key."""
_NEEDED = {"apiVersion", "kind", "name", "description", "code", "strategy", "roles", "image"}


def drop_refused(tree: dict[str, Any], document: Document, problems: Iterable[Problem], ledger: Ledger) -> bool:
    """Take what `problems` are about out of `tree`, and note it; False where something is needed for any spec."""
    places = {str(origin): path for path, origin in document.origins.items()}
    refused: dict[Path, Problem] = {}
    for problem in problems:
        path = _unit(places.get(problem.where, ()))
        if not _is_optional(path) or not _has(tree, path):
            return False
        refused.setdefault(path, problem)
    for path, problem in refused.items():
        _delete(tree, path)
        dotted = ".".join(map(str, path))
        ledger.carried = [entry for entry in ledger.carried if entry.target not in (dotted, str(path[-1]))]
        ledger.left.append(
            LeftOut(dotted, problem.message.removeprefix(f"{dotted}: "), problem.hint, ledger.origin.file)
        )
    return bool(refused)


def _unit(path: Path) -> Path:
    """Return the part of the spec that is taken out as one for a problem at `path`."""
    base = 2 if path[:1] == ("roles",) else 0
    if len(path) <= base:
        return path
    if path[base] in _BY_ENTRY:
        return path[: base + 2]
    return path[:2] if path[0] in ("run", "image", "framework", "gpu", "serviceAccount") else path[: base + 1]


def _is_optional(path: Path) -> bool:
    if not path:
        return False
    if path[0] == "roles":
        return len(path) > 2 or path[1:] == ("evaluator",)
    if path[0] == "image":
        return len(path) > 1 and path[1] not in ("repository", "tag", "injectLauncher")
    return path[0] not in _NEEDED


def _has(tree: Mapping[str, Any], path: Path) -> bool:
    node: Any = tree
    for key in path:
        if not isinstance(node, dict) or key not in node:
            return False
        node = node[key]
    return True


def _delete(tree: dict[str, Any], path: Path) -> None:
    node: Any = tree
    for key in path[:-1]:
        node = node[key]
    del node[path[-1]]
    if not node and len(path) > 1 and path[0] != "roles":
        _delete(tree, path[:-1])
