"""Says in which claim a file is missing that a program needs, and which other pods may have deleted it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.cluster.full_volumes import find_claim
from trainchart.cluster.namespace_pods import describe_user
from trainchart.cluster.pod_leads import find_training
from trainchart.cluster.snapshot import Objects, Snapshot, listed, name_of, section
from trainchart.reports.report import Report
from trainchart_runtime.data_causes import LOST_FILES
from trainchart_runtime.pod_problems import find_claims, parse_time
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import FAILED, Incident

_USERS_SHOWN = 3
_START_SECONDS = 120.0
"""From the death of a program to the first step that its next start is seen at; a slow one is not recognized."""


def loses_files(report: Report) -> bool:
    """Say whether a program that had made steps has ended because a file was missing."""
    return bool(_find_errors(report))


def describe_lost_files(report: Report, seen: Snapshot, pods: Objects) -> Iterator[str]:
    """Yield which claim the missing file lies in, and which `pods` of the namespace beside the release's mount it."""
    own = {name_of(each) for each in listed(seen.pods)}
    specs = {name_of(each): section(each, "spec", "template", "spec") for each in listed(seen.sets)}
    for pod, error in _find_errors(report)[-1:]:
        spec = specs.get(pod.rpartition("-")[0], {})
        claim = find_claim(error, spec, find_training(spec), pod)
        if not claim:
            continue
        users = [each for each in listed(pods) if claim in find_claims(each) and name_of(each) not in own]
        users.sort(key=lambda each: parse_time(section(each, "metadata").get("creationTimestamp")), reverse=True)
        names = list_names([describe_user(each) for each in users[:_USERS_SHOWN]])
        more = f" and {len(users) - _USERS_SHOWN} more" if len(users) > _USERS_SHOWN else ""
        who = f"Other pods of the namespace mount it: {names}{more}. Check whether one deletes or moves files there."
        who = who if users else "Check for Jobs or users that clean up there."
        yield (
            f"The missing or damaged file belongs to the claim {claim}. The program had already made steps, so another "
            "pod, a person, or a second task that saves under the same name may have deleted, renamed or changed the "
            f"file or its folder. {who}"
        )


def _find_errors(report: Report) -> list[tuple[str, str]]:
    """Return pod and error of the deaths of programs that had made steps, and since then none, or earlier ones."""
    outcome = report.outcome
    if outcome is not None:
        is_loss = outcome.result == FAILED and outcome.cause in LOST_FILES and not report.fails_at_start
        return [(outcome.pod, outcome.error)] if is_loss and outcome.step is not None else []
    step = report.progress.step
    deaths = [each for each in report.incidents if each.cause in LOST_FILES and step is not None]
    deaths = [each for each in deaths if each.at > report.progress.at or _has_set_back(report, each)]
    return [(each.pod, each.error) for each in deaths]


def _has_set_back(report: Report, death: Incident) -> bool:
    """Say whether steps were lost when the program started again after a death."""
    return any(each.pod == death.pod and death.at <= each.at <= death.at + _START_SECONDS for each in report.setbacks)
