"""Asks the launcher of a run's leading pod how far it is, for who watches the run: the record is up to 30 s late."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.pod_page import read_pod_page
from trainchart.cluster.snapshot import Object, items_of, section
from trainchart.errors import ClusterError, Forbidden
from trainchart.json_documents import parse_json
from trainchart.reports.report import CLUSTER, PodReport, Progress, Report
from trainchart_runtime.cluster import CHIEF
from trainchart_runtime.contract import STATUS_PORT
from trainchart_runtime.progress import parse_metrics, parse_number, parse_whole
from trainchart_runtime.run.state import FINISHING, RUNNING

_FORBIDDEN_SECONDS = 60.0
"""So long nothing is asked of who may not ask."""
_FAILED_SECONDS = 4.0
_KEPT_SECONDS = 45.0
"""So long the last answer counts; the record has newer steps then."""
_EVALUATOR = "evaluator/"


@dataclass
class LiveProgress:
    """What the leading pod of one run has told."""

    place: Place
    refusal: str = ""
    """Why this user's steps come from the record; empty where they do not have to."""
    _api: KubernetesApi | None = None
    _pod: tuple[str, float] = ("", 0.0)
    """Name and age of the pod that `_port` is of."""
    _port: int = STATUS_PORT
    _last: Progress = field(default_factory=Progress)
    _answered_at: float = 0.0
    _quiet_until: float = 0.0
    is_live: bool = False
    """Whether the last question was answered."""

    def renew(self, report: Report) -> Report:
        """Return the report with what the leading pod tells now, and else with what it told a moment ago."""
        pod = find_leading_pod(report)
        if pod is None:
            self.is_live, self._answered_at = False, 0.0
            return report
        if time.monotonic() >= self._quiet_until:
            try:
                told = self._ask(report, pod)
            except ClusterError as error:
                is_refused = isinstance(error, Forbidden)
                self.is_live, self.refusal = False, error.message if is_refused else ""
                self._quiet_until = time.monotonic() + (_FORBIDDEN_SECONDS if is_refused else _FAILED_SECONDS)
                self._api, self._pod = None, ("", 0.0)  # credentials may have changed meanwhile
            else:
                self.is_live, self.refusal = True, ""
                if told is not None:
                    self._last, self._answered_at = told, time.monotonic()
        if not self._answered_at or time.monotonic() - self._answered_at > _KEPT_SECONDS:
            return report
        return replace(report, progress=_join(report.progress, self._last))

    def _ask(self, report: Report, pod: PodReport) -> Progress | None:
        namespace = report.key.namespace
        if self._api is None:
            self._api, _ = open_cluster(replace(self.place, namespace=namespace))
        if self._pod != (pod.name, pod.created):
            self._port = find_status_port(self._api.read_object(kubernetes_api.PODS, namespace, pod.name))
            self._pod, self._answered_at = (pod.name, pod.created), 0.0
        told = parse_status(read_pod_page(self._api, namespace, pod.name, self._port, "/status"), report.run_id)
        if told is None:
            return None
        is_known = told.step == self._last.step and self._answered_at
        recorded = report.progress.at if told.step == report.progress.step else 0.0
        return replace(told, at=self._last.at if is_known else recorded or time.time())


def find_leading_pod(report: Report) -> PodReport | None:
    """Return the pod whose steps are those of the run, where it runs on a cluster and may tell some."""
    if report.origin != CLUSTER or report.phase not in (RUNNING, FINISHING):
        return None
    has_chief = any(each.role == CHIEF and each.wanted for each in report.roles)
    label = "chief-0" if has_chief else "worker-0"
    return next((pod for pod in report.pods or () if pod.label == label and pod.state == "Running"), None)


def find_status_port(pod: Object) -> int:
    """Return the port of a training pod on which its launcher tells its status."""
    for container in items_of(section(pod, "spec"), "containers"):
        for port in items_of(container, "ports"):
            number = port.get("containerPort")
            if port.get("name") == "status" and isinstance(number, int) and 0 < number < 65536:
                return number
    return STATUS_PORT


def parse_status(text: bytes, run_id: str) -> Progress | None:
    """Return what a launcher's status says of steps; None where it tells none, or is that of another run."""
    try:
        document = parse_json(text)
    except ValueError as error:
        raise ClusterError(f"the status of the leading pod cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ClusterError("the status of the leading pod is not a JSON object")
    step = parse_whole(document.get("step"))
    if step is None or str(document.get("runId") or "") != run_id:
        return None
    names = document.get("nanMetrics")
    return Progress(
        step=step,
        examples_per_second=parse_number(document.get("examplesPerSecond")),
        metrics=parse_metrics(document.get("metrics")),
        nan_metrics=tuple(map(str, names[:10])) if isinstance(names, list) else (),
    )


def _join(recorded: Progress, told: Progress) -> Progress:
    """Return what was told, with what only the record knows: what evaluators have measured, and restarts."""
    others = {name: value for name, value in recorded.metrics.items() if name.startswith(_EVALUATOR)}
    metrics = {**told.metrics, **others}
    return replace(told, metrics=metrics, fruitless_restarts=recorded.fruitless_restarts)
