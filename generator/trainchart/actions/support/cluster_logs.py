"""Read the logs of a release on a cluster: of its pods while they are there, else of the record."""

from __future__ import annotations

import shlex
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.log_filter import LogsFilter
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import read_training
from trainchart.cluster.log_lines import (
    add_last_words,
    describe_gaps,
    find_failure_time,
    find_kept_lines,
    merge_logs,
    name_pods,
    parse_line,
    stamp_of,
)
from trainchart.cluster.record import read_record
from trainchart.cluster.snapshot import Snapshot
from trainchart.errors import ClusterError, Forbidden, NotFound, Unauthorized, Unreachable
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import PodReport, Report
from trainchart_runtime.contract import TRAINING_CONTAINER
from trainchart_runtime.log_text import hide_credentials, is_lost_log, shorten
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import RUNNING

_READERS = 8
_LAST_LINES_OF = 16
"""Pods."""
_LINES_READ = 2000
"""Of each: what a thread printed when it died may be far above the lines of the last steps."""
_CHARACTERS_READ = 512 * 1024
"""Of each, and of the container before; long lines are cut."""
_BRIEF_PODS, _BRIEF_CHARACTERS = 64, 128 * 1024
"""What is read for a page: of how many pods, and how much of each."""
_POLL_SECONDS = 1.0
_ANSWER_SHOWN = 400
"""Characters of a kubelet's answer."""


def read_cluster_logs(place: Place, release: str, wanted: LogsFilter, note: Callable[[str], None]) -> Iterator[LogLine]:
    """Yield the lines asked for, oldest first; `note` is told what is missing.

    Raises:
        ClusterError: there is no such release, pod or failure, or nothing can be read.
    """
    api, namespace = open_cluster(place)
    key, seen = read_training(api, namespace, release)
    report = diagnose(key, seen)
    pods = _choose(wanted, report)
    since = _find_since(wanted, report)
    if wanted.follow and not report.is_over:
        return _follow(_Follower(api, namespace, note), release, wanted, since)
    if pods:
        reader = _Reader(api, namespace, note, _BRIEF_CHARACTERS if wanted.is_brief else 0)
        if wanted.is_brief and len(pods) > _BRIEF_PODS:
            shown = f"these are the logs of {_BRIEF_PODS} of {len(pods)} pods"
            note(f"note: {shown}; trainchart logs {shlex.quote(release)} prints all")
            pods = _list_troubled_first(pods)[:_BRIEF_PODS]
        lines = merge_logs(reader.read(pods, {}, since, wanted.tail))
        lines = add_last_words(lines, report) if wanted.since_failure else lines
        return iter(deque(lines, maxlen=wanted.tail)) if wanted.tail is not None else lines
    return iter(_read_kept(wanted, seen, report, note))


def read_last_lines(place: Place, report: Report) -> tuple[list[list[LogLine]], tuple[str, ...]]:
    """Return the last lines of each of the most important pods of a release, and of which pods the logs are gone.

    There is nothing of those that cannot be read.
    """
    api, namespace = open_cluster(place)
    pods = _list_troubled_first([pod for pod in report.pods or () if pod.node])[:_LAST_LINES_OF]
    reader = _Reader(api, namespace, lambda text: None, _CHARACTERS_READ)
    with suppress(ClusterError):
        logs = [each for each in reader.read(pods, {}, "", _LINES_READ) if each]
        shown = [[replace(line, text=hide_credentials(line.text)) for line in lines] for lines in logs]
        return shown, tuple(reader.gone)
    return [], ()


def _list_troubled_first(pods: Sequence[PodReport]) -> list[PodReport]:
    """Return the pods that are not running, or have restarted, before the others."""
    return sorted(pods, key=lambda pod: pod.state == "Running" and not pod.restarts and not pod.program_restarts)


def _choose(wanted: LogsFilter, report: Report) -> list[PodReport]:
    if report.pods is None:
        raise Forbidden(f"cannot read the logs of {report.key.release}: {'; '.join(report.unknown)}")
    return [pod for pod in report.pods if pod.node and _is_wanted(wanted, pod.role, pod.label, pod.name)]


def _is_wanted(wanted: LogsFilter, role: str, label: str, name: str) -> bool:
    return wanted.role in ("", role) and wanted.pod in ("", label, name)


def _find_since(wanted: LogsFilter, report: Report) -> str:
    if not wanted.since_failure:
        return ""
    at = find_failure_time(report)
    if at is None:
        raise NotFound(f"no failure of {report.key.release} is known", hint="leave --since-failure out")
    return stamp_of(at)


def _read_kept(wanted: LogsFilter, seen: Snapshot, report: Report, note: Callable[[str], None]) -> list[LogLine]:
    """Return what the record kept; its lines have no times, so that nothing can be cut off before a failure."""
    record = read_record(seen.records)
    labels = name_pods(report)
    lines = find_kept_lines(record.logs, report, labels)
    for error in filter(None, (record.error, record.logs_error)):
        note(f"note: {error}")
    chosen = [line for line in lines if _is_wanted(wanted, line.label.rpartition("-")[0], line.label, line.label)]
    if not chosen:
        silent = [
            pod.label for pod in report.pods or () if not pod.node and _is_wanted(wanted, pod.role, pod.label, pod.name)
        ]
        if silent:
            verb = "has" if len(silent) == 1 else "have"
            had_run = any(each.phase == RUNNING for each in report.history)
            names = "the same name" if len(silent) == 1 else "the same names"
            earlier = f"; the output of earlier pods with {names} is gone" if had_run else ""
            raise NotFound(
                f"{list_names(silent)} of {report.key.release} {verb} no node yet, and so {verb} printed "
                f"nothing{earlier}",
                hint=f"see: trainchart why {report.key.release} -n {report.key.namespace}",
            )
        raise NotFound(
            f"no pod of {report.key.release} matches, and no matching lines were kept",
            hint=f"see: trainchart status {report.key.release} -n {report.key.namespace}",
        )
    note("note: the pods are gone; these are the last lines that were kept of them, pod by pod")
    if wanted.since_failure:
        note("note: kept lines have no times, so those from before the failure are shown too")
    chosen_labels = {
        pod: label for pod, label in labels.items() if _is_wanted(wanted, label.rpartition("-")[0], label, pod)
    }
    for words in describe_gaps(record.logs, chosen_labels):
        note(f"note: {words}")
    return chosen if wanted.tail is None else chosen[-wanted.tail :] if wanted.tail else []


@dataclass
class _Reader:
    """Reads the logs of several pods at once; one that cannot be read is noted once, and the others go on."""

    api: KubernetesApi
    namespace: str
    note: Callable[[str], None]
    most_characters: int = 0
    """Characters of each log that are kept, with long lines cut; 0 for all."""
    noted: set[str] = field(default_factory=set)
    gone: list[str] = field(default_factory=list)
    """That the logs of pods are gone, a line for each."""

    def read(
        self, pods: list[PodReport], newest: Mapping[str, str], since: str, tail: int | None
    ) -> list[list[LogLine]]:
        """Return each pod's lines from its time in `newest` on, else from `since`.

        Those of the container before a restart come first.

        Raises:
            ClusterError: no pod's log can be read, or this user may not read them.
        """
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            found = list(readers.map(lambda pod: self._read_pod(pod, newest.get(pod.label, since), tail), pods))
        errors = [result for result in found if isinstance(result, ClusterError)]
        for error in errors:
            if isinstance(error, (Forbidden, Unauthorized)) or (len(errors) == len(pods) and _is_failed_read(error)):
                raise error
            self._note_error(error)
        return [result for result in found if not isinstance(result, ClusterError)]

    def _read_pod(self, pod: PodReport, since: str, tail: int | None) -> list[LogLine] | ClusterError:
        lines: list[LogLine] = []
        for is_previous in (True, False) if pod.restarts else (False,):
            try:
                raw = self.api.read_log(
                    pod.name,
                    self.namespace,
                    TRAINING_CONTAINER,
                    since=since,
                    is_previous=is_previous,
                    tail=tail or 0,
                    newest=self.most_characters,
                )
            except ClusterError as error:
                # The log of the container before may have been cleaned up already.
                if not is_previous or _is_failed_read(error):
                    return error
                continue
            parsed = [parse_line(pod.label, each) for each in raw]
            lines += (line for line in parsed if line.at >= since and not _is_lost(line))
            lost = next(filter(_is_lost, parsed), None)
            if lost is not None and not is_previous:
                self._note_gone(pod, lost.text)
        return lines

    def _note_error(self, error: ClusterError) -> None:
        if error.message not in self.noted:
            self.noted.add(error.message)
            self.note(f"note: {error.message}")

    def _note_gone(self, pod: PodReport, answer: str) -> None:
        words = (
            f"node {pod.node} no longer has the log of {pod.label}, so its last lines are not known: "
            f"{shorten(answer.strip(), _ANSWER_SHOWN)}. If the cluster collects logs, look there"
        )
        if words not in self.gone:
            self.gone.append(words)
            self.note(f"note: {words}")


def _is_lost(line: LogLine) -> bool:
    """Return whether a line is the kubelet's, in place of a log that is gone: those of programs have a time."""
    return not line.at and is_lost_log(line.text)


def _is_failed_read(error: ClusterError) -> bool:
    """Return whether an error says more than that a container has no log (yet, or any more)."""
    return isinstance(error, (Forbidden, Unauthorized, Unreachable))


class _Follower(_Reader):
    """Reads again and again: pods that have no log yet are no news, and a log that is gone is noted once."""

    def _note_error(self, error: ClusterError) -> None:
        pass

    def _note_gone(self, pod: PodReport, answer: str) -> None:
        # After a restart, the kubelet answers with the name of another container.
        if pod.name not in self.noted:
            self.noted.add(pod.name)
            super()._note_gone(pod, answer)


def _follow(reader: _Follower, release: str, wanted: LogsFilter, since: str) -> Iterator[LogLine]:
    """Yield lines as they come, of pods as they come and go, until the run is over.

    Asking again each second outlives restarts, moves and connections, which a stream per pod would not.
    """
    newest: dict[str, str] = {}
    tail = wanted.tail
    while True:
        report = diagnose(*read_training(reader.api, reader.namespace, release))
        pods = _choose(wanted, report)
        lines = list(merge_logs(reader.read(pods, newest, since, tail)))
        fresh = [line for line in lines if line.at > newest.get(line.label, "")]
        for line in fresh:
            newest[line.label] = max(line.at, newest.get(line.label, ""))
        yield from fresh if tail is None else fresh[len(fresh) - min(tail, len(fresh)) :]
        tail = None
        if report.is_over:
            return
        time.sleep(_POLL_SECONDS)
