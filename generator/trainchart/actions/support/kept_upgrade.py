"""Upgrades a release, and keeps what a post-renderer or another program has changed in its objects."""

from __future__ import annotations

from dataclasses import replace

from trainchart.errors import Conflict, Problem
from trainchart.helm.io.upgrade import HelmUpgrade, render_upgrade, run_upgrade, runs_helm_3
from trainchart.helm.kept_changes import carry_over, dump_objects
from trainchart.helm.rendering import ReleaseTexts


def upgrade_and_keep(upgrade: HelmUpgrade, unchanged: HelmUpgrade, stored: ReleaseTexts) -> tuple[str, ...]:
    """Upgrade, keep what was changed outside the chart, and return what that was.

    Raises:
        Conflict: something cannot be kept.
        YamlError: what is kept of the release cannot be read.
    """
    rendered, namespace = render_upgrade(unchanged), upgrade.namespace
    carried = carry_over(rendered, stored, rendered, namespace)
    if not carried.kept and not carried.kept_in_hooks:
        run_upgrade(upgrade)
        return ()
    carried = carry_over(rendered, stored, render_upgrade(upgrade), namespace)
    # Helm 3 hands no hooks to post-renderers.
    is_helm_3 = runs_helm_3()
    lost = (*carried.conflicts, *(carried.kept_in_hooks if is_helm_3 else ()))
    if lost:
        raise _refuse_to_lose(upgrade, lost)
    objects = carried.objects if is_helm_3 else carried.objects + carried.hooks
    run_upgrade(replace(upgrade, objects=dump_objects(objects, marks_sources=not is_helm_3)), is_helm_3=is_helm_3)
    return carried.kept + carried.kept_in_hooks


def _refuse_to_lose(upgrade: HelmUpgrade, fields: tuple[str, ...]) -> Conflict:
    sets = " ".join(f"--set-string {name}={value}" for name, value in upgrade.sets.items()) or "--values FILE"
    return Conflict(
        f"nothing was changed: this command would undo changes made to {upgrade.release} outside its chart",
        hint=f"helm upgrade {upgrade.release} CHART -n {upgrade.namespace} --reuse-values {sets}, "
        "with the --post-renderer that the release was installed with, if there was one",
        problems=tuple(Problem(field) for field in fields),
    )
