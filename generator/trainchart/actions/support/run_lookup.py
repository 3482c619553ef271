"""Which run a command means: a local one, or a release on a cluster.

Local runs come first, since they need no cluster; a context or a namespace always means the cluster.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.project import NO_PROJECT, list_specs
from trainchart.cluster.io.kubeconfig import is_configured
from trainchart.errors import ToolError
from trainchart.local.io.release_folder import holds_run, refuse_damaged
from trainchart.name_order import natural_key


@dataclass(frozen=True)
class RunAddress:
    """A run as a user names it."""

    name: str
    """Empty: the local run that was started last."""
    place: Place
    runs_folder: Path


def find_local_run(address: RunAddress) -> Path | None:
    """Return the folder of the local run that is meant; None where a release on a cluster is.

    Raises:
        ToolError: no local run has that name, and no cluster is configured; or its record is damaged.
    """
    name, runs_folder = address.name, address.runs_folder
    if address.place.context or address.place.namespace:
        if not name:
            raise ToolError("name the release", hint="see: trainchart list")
        return None
    if not name:
        runs = _find_runs(runs_folder)
        if not runs:
            hint = "start one: trainchart run MODEL" if list_specs() else NO_PROJECT
            raise ToolError(f"there are no local runs in {runs_folder}", hint=hint)
        return runs[-1]
    if "/" not in name and name not in ("", ".", ".."):
        refuse_damaged(runs_folder / name)
        if holds_run(runs_folder / name):
            return runs_folder / name
    if is_configured(os.environ):
        return None
    raise ToolError(
        f"there is no local run {name!r} in {runs_folder}, and no kubeconfig names a cluster",
        hint=_hint(name, [folder.name for folder in _find_runs(runs_folder)]),
    )


def _find_runs(runs_folder: Path) -> list[Path]:
    from trainchart.local.io.run_report import find_runs  # not needed for a release on a cluster

    return find_runs(runs_folder)


def _hint(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"runs there: {', '.join(sorted(known, key=natural_key))}" if known else "runs of another folder: --runs-dir"
