"""Says which other pods of a namespace keep a training waiting: they hold its claim, or use up a quota. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainchart.cluster.snapshot import Object, Objects, Snapshot, has_ended, listed, name_of, owner_of, section
from trainchart.reports.quotas import COUNT_OF_PODS, ExceededQuota, list_exceeded
from trainchart.reports.report import Report
from trainchart.reports.text import describe_time
from trainchart_runtime.pod_causes import CLAIM_IN_USE
from trainchart_runtime.pod_problems import find_claims, parse_time
from trainchart_runtime.run.judge import list_names


def wants_other_pods(report: Report) -> bool:
    """Return whether other pods of the namespace may say what the training waits for."""
    return any(each.cause == CLAIM_IN_USE.name for each in report.problems) or bool(list_exceeded(report.problems))


def find_claim_users(report: Report, pods: Objects) -> Iterator[str]:
    """Yield which pods use the claims that pods of the training wait for."""
    waiting = {each.subject for each in report.problems if each.cause == CLAIM_IN_USE.name}
    wanted = {claim: name_of(pod) for pod in listed(pods) if name_of(pod) in waiting for claim in find_claims(pod)}
    users: dict[str, list[Object]] = {}
    for pod in listed(pods):
        is_using = section(pod, "spec").get("nodeName") and not has_ended(pod)
        for claim in find_claims(pod) if is_using and name_of(pod) not in waiting else ():
            users.setdefault(claim, []).append(pod)
    for claim in sorted(set(users) & set(wanted)):
        names = list_names([describe_user(pod) for pod in users[claim]])
        yield (
            f"the claim {claim} is in use by {names}: {wanted[claim]} waits until they have gone. Ask their owner to "
            "end them, or give the release another claim"
        )


def claims_by_label(report: Report, seen: Snapshot) -> dict[str, tuple[str, ...]]:
    """Return the volume claims of each pod of the training, by the pod's label."""
    labels = {pod.name: pod.label for pod in report.pods or ()}
    return {labels[name_of(pod)]: tuple(find_claims(pod)) for pod in listed(seen.pods) if name_of(pod) in labels}


def describe_user(pod: Object) -> str:
    """Return a pod's name, its owner and its creation time."""
    owner = owner_of(pod)
    since = describe_time(parse_time(section(pod, "metadata").get("creationTimestamp")))
    return f"pod {name_of(pod)} ({f'of {owner}, ' if owner else ''}since {since})"


def _find_count_quotas(report: Report) -> list[ExceededQuota]:
    """Return the quotas that refuse pods of the training because of the number of pods, finished ones included."""
    return [each for each in dict.fromkeys(list_exceeded(report.problems)) if each.resource == COUNT_OF_PODS]


def find_finished_pods(report: Report, pods: Objects) -> Iterator[str]:
    """Yield how many of the pods that a quota counts have finished, whose they are, and how they are freed."""
    quotas = {each.quota: each for each in _find_count_quotas(report)}
    finished = list(filter(has_ended, listed(pods)))
    owners = Counter(filter(None, map(owner_of, finished)))
    for quota in quotas.values():
        words = f"the quota {quota.quota} counts finished pods too ({COUNT_OF_PODS}, unlike pods): "
        if isinstance(pods, tuple):
            words += f"{len(finished)} of the {len(pods)} pods in the namespace have finished"
            words += f", of {list_names([f'{name} ({number})' for name, number in owners.items()])}" if owners else ""
        else:
            words += "how many have finished could not be read"
        yield (
            f"{words}. They count until they are deleted: delete the Jobs that have ended (kubectl delete job NAME -n "
            f"{report.key.namespace}), and set ttlSecondsAfterFinished in Jobs or successfulJobsHistoryLimit in "
            "CronJobs; what the training lacks then starts by itself"
        )
