"""What upgrading the releases on a cluster to the charts of a project would do now. The cluster is only read."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.installed import read_all_installed
from trainchart.actions.support.parallel import FEW, map_parallel
from trainchart.archive.identity import build_tar
from trainchart.archive.ignore import drop_ignored
from trainchart.check.objects import is_hook, mapping_at
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.gitops import find_gitops_owner
from trainchart.cluster.helm_record import HelmRelease
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import look_at_all
from trainchart.cluster.snapshot import find_trainings, listed
from trainchart.compare.effect import Effect, find_changes
from trainchart.compare.live import (
    DEFERRING,
    REPLICAS,
    Prediction,
    ReleaseChange,
    Target,
    leave_unknown,
    predict,
    worst_first,
)
from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.manifests import parse_manifests
from trainchart.helm.rendering import Rendering, ValueOverrides, merge_maps
from trainchart.kubernetes_yaml import dump_mapping, parse_mapping
from trainchart.render.chart import RenderedChart
from trainchart.reports.report import Report


@dataclass(frozen=True)
class Where:
    """Which releases: those of a namespace, or of the whole cluster."""

    place: Place
    everywhere: bool = False


@dataclass(frozen=True)
class _Task:
    installed: HelmRelease
    namespace: str
    files: Mapping[str, bytes]
    """Of the new chart."""
    engine: str


def predict_upgrades(
    charts: Mapping[str, RenderedChart], folder: Path, where: Where, *, engine: str
) -> tuple[Prediction, ...]:
    """Return what upgrading each release of `charts`, which lie in `folder`, does now; the worst first.

    Raises:
        ClusterError: the cluster cannot be asked for the training runs.
    """
    api, namespace = open_cluster(where.place)
    seen = look_at_all(api, "" if where.everywhere else namespace)
    trainings = {key: own for key, own in find_trainings(seen).items() if key.chart in charts}
    reports = [diagnose(key, own) for key, own in trainings.items()]
    owners = {key: find_gitops_owner(listed(own.sets)) for key, own in trainings.items()}
    tasks: list[_Task] = []
    compared: list[Report] = []
    found: list[Prediction] = []
    for report, installed in _read_all(api, reports):
        owner = owners[report.key]
        if isinstance(installed, str):
            found.append(leave_unknown(report, f"{owner.name} applies it" if owner else installed))
            continue
        compared.append(report)
        tasks.append(_Task(installed, report.key.namespace, charts[report.key.chart].files, engine))
    for report, change in zip(compared, map_parallel(_compare, tasks, are_many=len(tasks) > FEW), strict=True):
        chart, owner = charts[report.key.chart], owners[report.key]
        place = str(folder / chart.name)
        target = Target(f"{chart.name}-{chart.version}", place, where.place.context, owner.name if owner else "")
        found.append(predict(report, change, target))
    return tuple(worst_first(found))


def _read_all(api: KubernetesApi, reports: Sequence[Report]) -> Iterator[tuple[Report, HelmRelease | str]]:
    """Yield what Helm keeps of each release, or why it cannot be compared."""
    for namespace in dict.fromkeys(report.key.namespace for report in reports):
        own = [report for report in reports if report.key.namespace == namespace]
        kept = read_all_installed(api, namespace, {report.key.release for report in own})
        for report in own:
            installed = kept[report.key.release]
            if isinstance(installed, HelmRelease) and (
                installed.dependencies or installed.chart_name != report.key.chart
            ):
                installed = f"it was installed as part of the chart {installed.chart_name}"
            yield report, installed


def _compare(task: _Task) -> ReleaseChange:
    """Compare the objects of a release with those of the new chart, rendered with the release's own values."""
    installed = task.installed
    values = merge_maps(parse_mapping(task.files["values.yaml"].decode()), installed.given)
    new_run, old_run = (mapping_at(each, "run") for each in (values, installed.values))
    with tempfile.TemporaryDirectory(prefix="trainchart-") as folder:
        archive = Path(folder, "chart.tgz")
        archive.write_bytes(gzip.compress(build_tar(installed.chart_name, drop_ignored(task.files)), 1, mtime=0))
        try:
            after = _render(archive, task)
            before = replace(
                after,
                manifests=parse_manifests({"the manifest of Helm's record": installed.texts.manifest}, installed.name),
            )
        except RenderError as error:
            return ReleaseChange(refusal="; ".join([error.message, *map(str, error.problems)]))
        has_controller = mapping_at(new_run, "controller").get("enabled") is True
        objects = find_changes(before, after, without=REPLICAS if has_controller else ())
        can_defer = True
        if any(change.effect is Effect.restart for change in objects):
            can_defer = _renders(archive, task, DEFERRING)
    has_brief_pods = has_controller and _asks_for_none(before) and not _asks_for_none(after)
    return ReleaseChange(objects, old_run, new_run, has_brief_pods=has_brief_pods, can_defer=can_defer)


def _asks_for_none(rendering: Rendering) -> bool:
    """Return whether a StatefulSet is rendered without pods."""
    sets = (mapping_at(each.document, "spec") for each in rendering.manifests if each.kind == "StatefulSet")
    return any(spec.get("replicas") == 0 for spec in sets)


def _render(archive: Path, task: _Task, *sets: str) -> Rendering:
    given: Any = task.installed.given
    files = (("the release's values", dump_mapping(given)),) if given else ()
    rendering = find_engine(task.engine).render(
        archive,
        release=task.installed.name,
        namespace=task.namespace,
        overrides=ValueOverrides(files=files, sets=sets),
        is_upgrade=True,
    )
    # Helm's record keeps hooks apart, and an upgrade leaves them alone.
    return replace(rendering, manifests=tuple(each for each in rendering.manifests if not is_hook(each)))


def _renders(archive: Path, task: _Task, value: str) -> bool:
    try:
        _render(archive, task, value)
    except RenderError:
        return False
    return True
