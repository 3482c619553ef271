"""The use case `trainchart top`: what pods use, beside what they request and hold.

The metrics API is asked once for each namespace. It knows no GPUs, and many clusters have none: then launchers are
asked, several at a time and within a limit, so that a thousand silent pods do not keep a user waiting.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.live_progress import find_status_port
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.io.kubernetes_api import POD_METRICS, KubernetesApi
from trainchart.cluster.io.pod_page import read_pod_page
from trainchart.cluster.io.releases import look_at_all, read_training
from trainchart.cluster.pod_use import PodKey, parse_launcher_use, parse_pod_metrics, sum_amounts
from trainchart.cluster.snapshot import Object, Snapshot, find_trainings, has_ended, listed, name_of
from trainchart.errors import ClusterError, Forbidden, NotFound, Unreachable
from trainchart.reports.pod_use import PodLine, TopReport, Use
from trainchart.reports.report import TrainingKey
from trainchart_runtime.contract import USE_QUERY

_ASKED_AT_ONCE = 16
_ASK_SECONDS = 30.0
"""All pods together; those that come later are not asked."""
_NO_GPU_USE = (
    "some launchers report no GPUs: the training image has no nvidia-ml-py, or NVML does not support these GPUs"
)
_SECOND_LOOK_SECONDS = 1.0
"""A launcher measures CPU from one look to the next, and reads GPUs between them."""


def read_top(place: Place, releases: Sequence[str], *, everywhere: bool) -> TopReport:
    """Return what the pods of these releases use, or of all in the namespace, or in all of them.

    Raises:
        ClusterError: the cluster refuses, does not answer or has no such release.
    """
    api, namespace = open_cluster(place)
    trainings = _find(api, "" if everywhere else namespace, releases)
    lines: list[PodLine] = []
    objects: dict[PodKey, Object] = {}
    notes: list[str] = []
    for key, seen in trainings.items():
        report = diagnose(key, seen)
        if report.pods is None:
            notes += [f"{key}: {each}" for each in report.unknown]
        known = {name_of(pod): pod for pod in listed(seen.pods) if not has_ended(pod)}
        for pod in report.pods or ():
            if pod.name in known:
                objects[key.namespace, pod.name] = known[pod.name]
                lines.append(PodLine(key, pod, sum_amounts(known[pod.name])))
    if not lines:
        return TopReport((), tuple(notes))
    places = [""] if everywhere and not releases else sorted({line.key.namespace for line in lines})
    measured: dict[PodKey, Use] = {}
    for each in places:
        found, reasons = _read_metrics(api, each)
        measured |= found
        notes += reasons
    launchers = _Launchers(api, objects)
    told = launchers.ask([line for line in lines if _needs_launcher(line, measured)])
    if any(line.pod.gpus and (use := told.get(_key(line))) and not use.gpus for line in lines):
        notes.append(_NO_GPU_USE)
    merged = (replace(line, use=_merge(measured.get(_key(line)), told.get(_key(line)))) for line in lines)
    return TopReport(tuple(merged), tuple(dict.fromkeys([*notes, *launchers.reasons])))


def _find(api: KubernetesApi, namespace: str, releases: Sequence[str]) -> dict[TrainingKey, Snapshot]:
    if namespace and releases:
        return dict(read_training(api, namespace, name) for name in releases)
    trainings = find_trainings(look_at_all(api, namespace))
    if not releases:
        return trainings
    for name in releases:
        if not any(name in (key.release, str(key)) for key in trainings):
            raise NotFound(f"there is no training run {name!r} in any namespace", hint="see: trainchart list -A")
    return {key: own for key, own in trainings.items() if key.release in releases or str(key) in releases}


def _read_metrics(api: KubernetesApi, namespace: str) -> tuple[Mapping[PodKey, Use], list[str]]:
    """Return what the metrics API knows, and why it knows nothing."""
    try:
        return parse_pod_metrics(api.list_objects(POD_METRICS, namespace)), []
    except (NotFound, Unreachable):
        return {}, ["this cluster has no working metrics API (metrics-server provides one)"]
    except Forbidden as error:
        return {}, [f"the metrics API cannot be queried: {error.message}"]


def _key(line: PodLine) -> PodKey:
    return line.key.namespace, line.pod.name


def _needs_launcher(line: PodLine, measured: Mapping[PodKey, Use]) -> bool:
    return line.pod.state == "Running" and (_key(line) not in measured or bool(line.pod.gpus))


def _merge(measured: Use | None, told: Use | None) -> Use:
    if measured is None:
        return told or Use()
    return replace(measured, gpus=told.gpus if told else ())


@dataclass
class _Launchers:
    """Asks launchers for their status, and remembers whom not to ask."""

    api: KubernetesApi
    objects: Mapping[PodKey, Object]
    _failures: dict[PodKey, str] = field(default_factory=dict)
    """Pod → why it has not answered, at the last time that it was asked."""
    _refused: dict[str, str] = field(default_factory=dict)
    """Namespace in which this user may not ask → why, in the words of the first refusal."""
    _deadline: float = 0.0

    @property
    def reasons(self) -> list[str]:
        """Why figures are missing; what concerns many pods comes first."""
        return [*self._refused.values(), *(self._failures[key] for key in sorted(self._failures))]

    def ask(self, lines: Sequence[PodLine]) -> dict[PodKey, Use]:
        """Return what the launchers of these pods say."""
        if not lines:
            return {}
        self._deadline = time.monotonic() + _ASK_SECONDS
        first = self._ask_all(lines)
        again = [line for line in lines if (use := first.get(_key(line))) and _wants_second_look(line, use)]
        if not again:
            return first
        time.sleep(_SECOND_LOOK_SECONDS)
        return first | self._ask_all(again)

    def _ask_all(self, lines: Sequence[PodLine]) -> dict[PodKey, Use]:
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            told = list(pool.map(self._ask, lines))
        return {_key(line): use for line, use in zip(lines, told, strict=True) if use}

    def _ask(self, line: PodLine) -> Use | None:
        namespace, name = key = _key(line)
        if namespace in self._refused:
            return None
        if time.monotonic() > self._deadline:
            self._failures[key] = f"some pods were not queried within {_ASK_SECONDS:.0f} s"
            return None
        try:
            port = find_status_port(self.objects[key])
            return parse_launcher_use(read_pod_page(self.api, namespace, name, port, f"/status?{USE_QUERY}"))
        except Forbidden as error:
            # Others of the threads may have asked meanwhile.
            self._refused.setdefault(namespace, f"launchers in {namespace} cannot be queried: {error.message}")
        except ClusterError as error:
            self._failures[key] = error.message if name in error.message else f"{name}: {error.message}"
        return None


def _wants_second_look(line: PodLine, use: Use) -> bool:
    return use.cpu is None or bool(line.pod.gpus and not use.gpus)
