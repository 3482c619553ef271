"""Says which finished pods of a namespace use up a quota that counts them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainchart.cluster.snapshot import Object, Objects, listed, section
from trainchart.reports.quotas import COUNT_OF_PODS, ExceededQuota, parse_refusal
from trainchart.reports.report import Report
from trainchart_runtime.run.judge import list_names

_FINISHED = ("Succeeded", "Failed")


def find_count_quotas(report: Report) -> list[ExceededQuota]:
    """Return the quotas that refuse pods of the training because of the number of pods, finished ones included."""
    exceeded = [each for problem in report.problems for each in parse_refusal(problem.message)]
    return [each for each in dict.fromkeys(exceeded) if each.resource == COUNT_OF_PODS]


def find_finished_pods(report: Report, pods: Objects) -> Iterator[str]:
    """Yield how many of the pods that a quota counts have finished, whose they are, and how they are freed."""
    quotas = {each.quota: each for each in find_count_quotas(report)}
    finished = [pod for pod in listed(pods) if section(pod, "status").get("phase") in _FINISHED]
    owners = Counter(filter(None, map(_find_owner, finished)))
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


def _find_owner(pod: Object) -> str:
    """Return the kind and the name of what made a pod."""
    owners = section(pod, "metadata").get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller"):
            return f"{owner.get('kind')} {owner.get('name')}"
    return ""
