"""What the pods of a probe have found, as results. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainchart.check.objects import mapping_at, mappings_at
from trainchart.cluster.snapshot import Object, name_of, section
from trainchart.doctor.needs import read_thousandths
from trainchart.doctor.probe import CONTAINER, Probe, ProbeVolume
from trainchart.doctor.refusals import describe_amount
from trainchart.doctor.result import FAILED, OK, UNKNOWN, WARNING, Result
from trainchart.doctor.storage import CHECK as STORAGE
from trainchart.doctor.waiting_claims import describe_waiting_claim
from trainchart.json_documents import parse_json
from trainchart_runtime.causes import CAUSES
from trainchart_runtime.pod_problems import Event, Problem, find_claim_problem, find_pod_problem
from trainchart_runtime.run.judge import list_names

IMAGES, NETWORK, POLICY, CLOCK = "images", "network", "network-policy", "clock"
_SLOW_WRITE = 1.0
"""Seconds for a file of 1 MiB."""
_MOST_OVERHEAD = 0.9
"""Share of a claim that its file system must have free: it needs some for itself."""
_SKEW = 2.0
"""Seconds."""
_CLAIM_CAUSES = ("volume-error", "claim-missing", "storage-class-missing")
_STORAGE_CAUSES = (*_CLAIM_CAUSES, "mount-unsupported", "storage-driver-missing", "claim-in-use", "claim-deleted")
_CHECKS = {
    "image-pull": (IMAGES, FAILED),
    **dict.fromkeys(_STORAGE_CAUSES, (STORAGE, FAILED)),
    "unschedulable": ("probe", UNKNOWN),
    "placement-rules": ("probe", UNKNOWN),
}
"""Cause → the check that it is about. That nodes are full now is told by another check."""
_SLOW_CAUSES = ("unschedulable", "placement-rules", "no-node-matches", "volume-error", "claim-missing")
"""What a pod has while its volumes are being made, which may take minutes."""
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class Network:
    """What decides what a probe can say about the network."""

    has_policy: bool
    """Whether the release has NetworkPolicies."""
    has_others: bool = False
    """Whether the namespace has others, which may admit what those of the probe do not."""
    is_host: bool = False
    """Whether the training pods use the network of their nodes, which the probe does not."""


def judge_probe(
    probe: Probe,
    pods: Sequence[Object],
    events: Sequence[Event],
    network: Network,
    *,
    claims: Sequence[Object] = (),
    classes: Sequence[Object] = (),
) -> Iterator[Result]:
    """Yield the results of a probe whose pods have ended, or have had their time.

    `claims` are those of the namespace at that time, `classes` the StorageClasses, as far as they may be listed.
    """
    reports = {name_of(pod): report for pod in pods if (report := read_report(pod)) is not None}
    yield from _judge_starts(probe, pods, events, reports, (claims, classes))
    yield from _judge_images(pods)
    if reports:
        yield from _judge_volumes(probe, list(reports.values()))
        if probe.count > 1 and len(reports) == probe.count:
            yield from _judge_network(list(reports.values()), network)


def read_report(pod: Object) -> Object | None:
    """Return what the probe of a pod tells; None where it has not ended well."""
    terminated = _find_terminated(pod)
    if terminated.get("exitCode") != 0:
        return None
    try:
        found = parse_json(str(terminated.get("message")))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def is_over(probe: Probe, pods: Sequence[Object], events: Sequence[Event], seconds: float, limit: float) -> bool:
    """Say whether a probe that has been watched for `seconds` of `limit` has nothing more to tell.

    What keeps a pod from starting may pass: volumes are being made, registries answer late.
    """
    if find_job_problem(probe, events) is not None:
        return True
    return len(pods) >= probe.count and all(
        _has_told(pod) or _is_stuck(probe, pod, events, seconds, limit) for pod in pods
    )


def _has_told(pod: Object) -> bool:
    """Say whether the probe of a pod has ended, well or not."""
    return bool(_find_terminated(pod)) or section(pod, "status").get("phase") in ("Failed", "Succeeded")


def _is_stuck(probe: Probe, pod: Object, events: Sequence[Event], seconds: float, limit: float) -> bool:
    problem = _find_start_problem(probe, pod, events)
    if problem is None:
        return False
    is_refused = find_claim_problem([each.claim for each in probe.volumes], events) is not None
    waits_for_volume = problem.cause in _SLOW_CAUSES and not is_refused
    return seconds > (limit / 2 if waits_for_volume else _PATIENCE_SECONDS)


def _find_start_problem(probe: Probe, pod: Object, events: Sequence[Event]) -> Problem | None:
    """Return what keeps a pod of the probe from starting."""
    claims = [each.claim for each in probe.volumes]
    problem = find_pod_problem(pod, events)
    of_claim = (
        find_claim_problem(claims, events) if problem is not None or not section(pod, "spec").get("nodeName") else None
    )
    return of_claim or problem


def find_job_problem(probe: Probe, events: Sequence[Event]) -> str | None:
    """Return why the Job of a probe gets no pods; None where it gets them."""
    own = [event for event in events if event.kind == "Job" and event.name == probe.name]
    return next((event.message for event in own if event.reason == "FailedCreate"), None)


def _find_terminated(pod: Object) -> Object:
    statuses = mappings_at(pod, "status", "containerStatuses")
    own = next((each for each in statuses if each.get("name") == CONTAINER), {})
    return mapping_at(own, "state", "terminated")


def _judge_starts(
    probe: Probe,
    pods: Sequence[Object],
    events: Sequence[Event],
    reports: dict[str, Object],
    storage: tuple[Sequence[Object], Sequence[Object]],
) -> Iterator[Result]:
    refusal = find_job_problem(probe, events)
    if refusal is not None:
        # Whether it takes those of the training is checked by another trial.
        yield Result("probe", UNKNOWN, f"nothing was tried with pods, since the small ones are refused: {refusal}")
    elif not pods:
        yield Result(
            "probe", UNKNOWN, "Kubernetes did not create the pods of the trial in time", "try a longer --timeout"
        )
    silent = [pod for pod in pods if name_of(pod) not in reports]
    for pod in silent:
        problem = _find_start_problem(probe, pod, events)
        ended = _find_terminated(pod)
        if problem is not None:
            check, outcome = _CHECKS.get(problem.cause, ("probe", FAILED))
            words, hint = _name_claims(probe, problem.message), CAUSES[problem.cause].hint
            if problem.cause in _CLAIM_CAUSES:
                words, hint = describe_waiting_claim(probe, problem.message, *storage) or (
                    words,
                    _hint_at_claims(probe),
                )
            yield Result(check, outcome, f"a pod like those of the training does not start: {words}", hint)
        elif ended:
            lines = " ".join(str(ended.get("message") or "").split())
            yield Result("probe", FAILED, f"the probe has failed in the training image: {lines[-300:] or 'no message'}")
        else:
            yield Result("probe", UNKNOWN, f"{name_of(pod)} has not ended in time", "try again with a longer --timeout")


def _hint_at_claims(probe: Probe) -> str:
    """Return where to look; a claim that the probe has made is gone by then."""
    existing = [f"kubectl describe pvc {each.claim}" for each in probe.volumes if each.made is None]
    looks = ", ".join([*existing, "kubectl get storageclass"])
    return f"{looks}: the class must support volumes of that access mode and size, and its provisioner must be running"


def _name_claims(probe: Probe, message: str) -> str:
    """Return a message with the claims of the release in the place of those of the probe."""
    for each in probe.volumes:
        message = message.replace(each.claim, each.need.claim)
    return message


def _judge_images(pods: Sequence[Object]) -> Iterator[Result]:
    statuses = [each for pod in pods for each in mappings_at(pod, "status", "containerStatuses")]
    pulled = {str(each.get("image")) for each in statuses if each.get("imageID")}
    if pulled:
        nodes = {str(section(pod, "spec").get("nodeName")) for pod in pods}
        yield Result(IMAGES, OK, f"{list_names(sorted(nodes))} can pull {list_names(sorted(pulled))}")


def _judge_volumes(probe: Probe, reports: Sequence[Object]) -> Iterator[Result]:
    for volume in probe.volumes:
        claim = volume.need.claim
        nodes = list_names(sorted({str(report.get("node")) for report in reports}))
        found = [mapping_at(report, "volumes", claim) for report in reports]
        outcome, message, remedy = _judge_volume(volume, found, nodes)
        yield Result(STORAGE, outcome, f"the claim {claim} {message}", remedy, claim)


def _judge_volume(volume: ProbeVolume, found: Sequence[Object], nodes: str) -> tuple[str, str, str]:
    """Return outcome, message and remedy of one volume; of several faults, the worst."""
    writes = volume.need.writes
    error = next((str(each["error"]) for each in found if each.get("error")), "")
    if error:
        does = "written to and read" if writes else "read"
        return (
            FAILED,
            f"cannot be {does} by pods on {nodes}: {error}",
            "see: kubectl describe pvc, and the storage itself",
        )
    free = min((int(each["free"]) for each in found if isinstance(each.get("free"), int)), default=None)
    asked = read_thousandths(section(volume.need.made or {}, "spec", "resources", "requests").get("storage")) // 1000
    if free is not None and free < asked * _MOST_OVERHEAD:
        have, want = (describe_amount("storage", each * 1000) for each in (free, asked))
        remedy = "free some, request less (size), or use another StorageClass"
        return FAILED, f"asks for {want}, and its storage has {have} left", remedy
    if free == 0 and writes:
        return FAILED, "is full", "delete what is no longer needed, or have it enlarged"
    if any(each.get("isEmpty") for each in found):
        return WARNING, "is empty, and the release only reads it", "put the data there first"
    seconds = max((float(each.get("seconds") or 0) for each in found), default=0.0)
    if seconds > _SLOW_WRITE:
        remedy = "checkpoints will be slow: save less often, or use faster storage"
        return WARNING, f"takes {seconds:.1f} s for a file of 1 MiB", remedy
    if not writes:
        return OK, f"can be read by pods on {nodes}", ""
    did = "wrote, renamed and read each other's files" if len(found) > 1 else "wrote and renamed a file"
    return OK, f"works: pods on {nodes} {did}, 1 MiB in {seconds:.2f} s", ""


def _judge_network(reports: Sequence[Object], network: Network) -> Iterator[Result]:
    peers = [mapping_at(report, "peer") for report in reports]
    nodes = list_names(sorted({str(report.get("node")) for report in reports}))
    errors = [str(peer["error"]) for peer in peers if peer.get("error")]
    if network.is_host:
        yield Result(NETWORK, UNKNOWN, "the pods use the network of their nodes, which was not tried")
        return
    if errors:
        yield Result(
            NETWORK,
            FAILED,
            f"pods on {nodes} do not reach each other by name: {errors[0]}",
            "training pods need DNS and TCP between all nodes: see the NetworkPolicies of the namespace (kubectl get "
            "networkpolicies), the cluster's DNS, its network plug-in and firewalls",
        )
        return
    yield Result(NETWORK, OK, f"pods on {nodes} reach each other by name")
    if network.has_policy:
        yield _judge_policies(is_closed=all(peer.get("isClosed") for peer in peers), has_others=network.has_others)
    skew = max(abs(float(peer.get("skew") or 0)) for peer in peers)
    if skew > _SKEW:
        yield Result(
            CLOCK,
            WARNING,
            f"the clocks of {nodes} differ by {skew:.1f} s",
            "have them synchronized (NTP): logs and leases compare times of several nodes",
        )
    else:
        yield Result(CLOCK, OK, f"the clocks of {nodes} differ by {skew:.2f} s")


def _judge_policies(*, is_closed: bool, has_others: bool) -> Result:
    if is_closed:
        return Result(POLICY, OK, "the network plug-in applies NetworkPolicies")
    if has_others:
        what = "it is not known whether NetworkPolicies are applied: one of the namespace may admit what was tried"
        return Result(POLICY, UNKNOWN, what)
    return Result(
        POLICY,
        WARNING,
        "no network plug-in applies NetworkPolicies here",
        "all pods of the cluster reach the ports of the training pods: see security in the documentation",
    )
