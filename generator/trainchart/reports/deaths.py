"""Words the deaths of a run: equal ones together, the outlived ones apart, and the one that was first. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainchart.reports.evictions import advise_on_eviction, is_overrun
from trainchart.reports.hints import fill_in
from trainchart.reports.report import TERMINATING, Report
from trainchart.reports.text import describe_seconds, describe_time
from trainchart_runtime.cause import RESTART_IN_PLACE, RESTART_IN_PLACE_PEER
from trainchart_runtime.causes import CAUSES, OUT_OF_MEMORY
from trainchart_runtime.pod_causes import EVICTED, POD_DELETED
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.problems import BY_SET
from trainchart_runtime.run.state import RUNNING, Incident, Verdict

_NOT_YET = f"{BY_SET} once this one is gone"
_ABSENT = "the StatefulSet has not recreated the pod yet"
_ERROR_COMPARED = 160
"""Characters of the errors of two deaths: whatever comes behind them, they are alike."""
_GROUPS_SHOWN = 8
_OFTEN = 3
_ALIKE = 3.0
"""Times between deaths that differ by less are about equal."""
_TWO_ALIKE = 1.5
"""The same of two times only."""
_LONG_SECONDS = 60.0
"""What dies later has not needed too much from its start on, also where it reports no steps."""
_SHORT_SECONDS = 10.0
"""What dies sooner after another death is the same one."""
_GROWTH = (
    "ran out of memory {times} times, each time about {gap} after it was started: its program grows. Most "
    "likely it keeps what it no longer needs (a list or cache that grows, a tf.function that is traced again): look "
    "for that first, since more memory only delays the next failure. If it ends at the same step each time, that step "
    "needs too much: give the role more memory, or let the program hold less at once."
)
_LAG_SECONDS = 30.0
"""A step is reported this much later than it was made, at most."""
_LINKED_SECONDS = 600.0
"""A failure that another follows so soon may be what that one comes from."""


class Repeated(NamedTuple):
    """A pod that dies again and again of one cause of its own."""

    pod: str
    cause: str
    times: int


def death_lines(report: Report) -> Iterator[str]:
    """Yield the deaths; of a run that goes on, first those after which it has made no step."""
    progress = report.progress
    # Each start of the leading task renews the report, also where it has come no further.
    has_steps = report.outcome is None and progress.step is not None and not progress.fruitless_restarts
    incidents = [
        each._replace(action=_NOT_YET)
        if _stays(each, report)
        else each._replace(action=_ABSENT)
        if _is_absent(each, report)
        else each
        for each in report.incidents
    ]
    past = [
        each for each in incidents if has_steps and each.at < progress.at - _LAG_SECONDS and each.action != _NOT_YET
    ]
    last = [each for each in incidents if each not in past]
    yield from _list_deaths("Deaths in this run, the newest first:", last)
    # What took the pod away is why it now waits.
    waiting = {each.subject for each in report.problems}
    newest = last[-1] if last else None
    is_advised = bool(newest and newest.cause != POD_DELETED.name and newest.pod in waiting)
    told = {each.cause for each in report.problems}
    if newest and newest.cause in CAUSES and is_advised and newest.cause not in told:
        yield f"  next: {fill_in(CAUSES[newest.cause].hint, report.address, newest.pod, newest.node)}"
    yield from _list_deaths("Earlier deaths, after which the training made steps, the newest first:", past)
    if report.outcome is None and not is_advised:
        hint = advise_repeated(report) or _advise_overrun(report)
        yield from [f"  next: {hint}"] if hint else []


def find_growth(report: Report) -> str:
    """Return what to do where a pod ran out of memory again and again, each time after a while; "" where none did."""
    outcome = report.outcome
    times: dict[str, list[float]] = {}
    if outcome is not None and outcome.cause == OUT_OF_MEMORY.name:
        times[outcome.pod] = [outcome.at]
    for each in report.incidents:
        known = times.setdefault(each.pod, [])
        # The end of a run is an incident too, and recorded some seconds later.
        if each.cause == OUT_OF_MEMORY.name and all(abs(each.at - at) >= _SHORT_SECONDS for at in known):
            known.append(each.at)
    for pod, ends in times.items():
        begins = [each.at for each in report.history if each.phase == RUNNING and ends and each.at < min(ends)]
        lives = [later - earlier for earlier, later in itertools.pairwise(sorted((*begins[-1:], *ends)))]
        if len(ends) > 1 and _are_alike(lives) and (report.progress.step is not None or min(lives) >= _LONG_SECONDS):
            return f"{pod} {_GROWTH.format(times=len(ends), gap=describe_seconds(sum(lives) / len(lives)))}"
    return ""


def _are_alike(lives: Sequence[float]) -> bool:
    return len(lives) > 1 and max(lives) <= (_ALIKE if len(lives) > 2 else _TWO_ALIKE) * min(lives)


def advise_repeated(report: Report) -> str:
    """Return what to do where a pod of a run that goes on dies again and again of one cause of its own, until now."""
    repeated = find_repeated(report)
    if repeated is None:
        return ""
    return find_growth(report) or fill_in(CAUSES[repeated.cause].hint, report.address, repeated.pod)


def find_repeated(report: Report) -> Repeated | None:
    """Return what a run that goes on dies of again and again, until now; None where that is nothing."""
    times: dict[tuple[str, str], list[float]] = {}
    for each in report.incidents if report.outcome is None else ():
        times.setdefault((each.pod, each.cause), []).append(each.at)
    for (pod, name), ends in sorted(times.items(), key=lambda item: -len(item[1])):
        cause, first, last = CAUSES.get(name), min(ends), max(ends)
        is_past = report.now - last > max(_LINKED_SECONDS, 2 * (last - first) / len(ends))
        if len(ends) >= _OFTEN and not is_past and cause is not None and cause.restart == RESTART_IN_PLACE:
            return Repeated(pod, name, len(ends))
    return None


def _advise_overrun(report: Report) -> str:
    """Return what to do where the last pod that died was evicted for exceeding its own limit, as it will be again."""
    newest = max(report.incidents, key=lambda each: each.at, default=None)
    if newest is None or newest.cause != EVICTED.name or not is_overrun(newest.error):
        return ""
    hint = fill_in(advise_on_eviction(newest.error), report.address, newest.pod, newest.node)
    return "" if any(hint in remark for remark in report.remarks) else hint


def _stays(incident: Incident, report: Report) -> bool:
    """Say whether a pod that a StatefulSet is to replace is still there, so that no other can take its place."""
    staying = [pod.created for pod in report.pods or () if (pod.name, pod.state) == (incident.pod, TERMINATING)]
    return incident.action == BY_SET and any(created <= incident.at for created in staying)


def _is_absent(incident: Incident, report: Report) -> bool:
    """Say whether a pod that a StatefulSet is to replace has no successor yet."""
    is_missing = report.pods is not None and all(pod.name != incident.pod for pod in report.pods)
    return incident.action == BY_SET and report.phase == RUNNING and report.outcome is None and is_missing


def find_first_death(report: Report, outcome: Verdict) -> Incident | None:
    """Return the failure from which that which ended the run may come; None where it is the same, or there is none."""
    first: Incident | None = None
    until, began = outcome.at, report.progress.first_at
    for each in sorted(report.incidents, key=lambda incident: incident.at, reverse=True):
        is_over = each.at < began < outcome.at - _LAG_SECONDS
        if is_over or each.at < until - _LINKED_SECONDS:
            break
        until = min(until, each.at)
        cause = CAUSES.get(each.cause)
        if each.cause != POD_DELETED.name and (cause is None or cause.restart != RESTART_IN_PLACE_PEER):
            first = each
    if first is None or (first.cause == outcome.cause and _is_cut_from(first.error, outcome.error)):
        return None
    return first


def _is_cut_from(error: str, whole: str) -> bool:
    """Say whether an error, perhaps cut short, is the same as another, but for numbers such as steps."""
    return _without_numbers(whole).startswith(_without_numbers(error.rstrip("…").rstrip()))


def _list_deaths(heading: str, incidents: Sequence[Incident]) -> Iterator[str]:
    if not incidents:
        return
    alike: dict[tuple[str, str, int | None, str], list[Incident]] = {}
    for each in sorted(incidents, key=lambda incident: incident.at, reverse=True):
        # The same error may have been cut at different lengths.
        begin = _without_numbers(each.error)[:_ERROR_COMPARED]
        alike.setdefault((each.pod, each.cause, each.exit_code, begin), []).append(each)
    groups = list(alike.values())
    yield ""
    yield heading
    for group in groups[:_GROUPS_SHOWN]:
        yield f"  {_word(group)}"
    if len(groups) > _GROUPS_SHOWN:
        older = sum(map(len, groups[_GROUPS_SHOWN:]))
        yield f"  and {older} older, from {describe_time(min(each.at for each in incidents))} on"


def _word(alike: Sequence[Incident]) -> str:
    """Return the line of deaths that differ in nothing but their time and node, the newest first."""
    last = alike[0]
    times = f" {len(alike)} times since {describe_time(alike[-1].at)}" if len(alike) > 1 else ""
    nodes = list_names(sorted({each.node for each in alike if each.node}))
    code = "" if last.exit_code is None else f", exit code {last.exit_code}"
    error = f": {last.error}" if last.error else ""
    action = f" → {last.action}" if last.action else ""
    where = f" on {nodes}" if nodes else ""
    return f"{describe_time(last.at)}  {last.pod}{where} ({last.cause}{code}){times}{error}{action}"


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "0", text)
