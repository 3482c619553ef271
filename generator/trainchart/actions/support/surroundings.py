"""Look at what surrounds a release on a cluster: what `why` may need beside the objects of the release itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from trainchart.cluster.builds import has_mixed_builds
from trainchart.cluster.departures import is_overdue, may_end_with_namespace
from trainchart.cluster.init_waits import InitWait, find_init_waits
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import (
    read_autoscalers,
    read_claims,
    read_namespace,
    read_nodes,
    read_services,
    read_volumes,
)
from trainchart.cluster.log_lines import parse_line
from trainchart.cluster.placement import find_homeless, list_volumes
from trainchart.cluster.pod_leads import needs_services
from trainchart.cluster.snapshot import Snapshot, has_ended, is_controllers, listed, name_of, section
from trainchart.errors import ClusterError
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import Report

_LOGS_READ = 4
"""Pods that wait for the same print the same."""
_CONTROLLER = "controller"
"""The container of the run controller's pod."""
_CONTROLLER_LINES = 100
_CHARACTERS_READ = 128 * 1024
"""Of a log."""


def add_surroundings(api: KubernetesApi, seen: Snapshot, report: Report) -> Snapshot:
    """Return what was seen of a release with what else of its cluster may explain the state in `report`."""
    namespace = report.key.namespace
    is_late = any(is_overdue(pod, report.now) for pod in listed(seen.pods))
    if find_homeless(report, seen) or is_late or has_mixed_builds(seen):
        seen = replace(seen, nodes=read_nodes(api))
    if may_end_with_namespace(report, seen):
        seen = replace(seen, namespaces=read_namespace(api, namespace))
    if needs_services(report):
        seen = replace(seen, services=read_services(api, namespace))
    if report.is_over:
        return seen
    seen = replace(seen, controller_lines=_read_controller_lines(api, namespace, seen))
    if waits := find_init_waits(report, seen):
        lines = {wait.pod: _read_last_line(api, namespace, wait) for wait in waits[:_LOGS_READ]}
        known = {pod: line for pod, line in lines.items() if line is not None}
        seen = replace(seen, services=read_services(api, namespace), init_lines=known)
    seen = replace(seen, autoscalers=read_autoscalers(api, namespace), claims=read_claims(api, namespace))
    return replace(seen, volumes=read_volumes(api, list_volumes(report, seen)))


def _read_controller_lines(api: KubernetesApi, namespace: str, seen: Snapshot) -> tuple[LogLine, ...]:
    """Return the last lines of the run controller that runs; none where there is none, or they may not be read."""
    pods = (each for each in listed(seen.pods) if is_controllers(each) and not has_ended(each))
    running = [each for each in pods if section(each, "spec").get("nodeName")]
    if not running:
        return ()
    with suppress(ClusterError):
        lines = api.read_log(
            name_of(running[-1]), namespace, _CONTROLLER, tail=_CONTROLLER_LINES, newest=_CHARACTERS_READ
        )
        return tuple(parse_line("", line) for line in lines)
    return ()


def _read_last_line(api: KubernetesApi, namespace: str, wait: InitWait) -> str | None:
    """Return the last line that a container has printed; "" where there is none, None where it may not be read.

    A line without a time is the kubelet's, whose node has no log of the container any more.
    """
    with suppress(ClusterError):
        lines = api.read_log(wait.pod, namespace, wait.container, tail=1, newest=_CHARACTERS_READ)
        line = parse_line("", lines[-1]) if lines else None
        return "" if line is None else line.text if line.at else None
    return None
