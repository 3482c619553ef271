"""Starts the helper pod of `trainchart checkpoints`, follows it until it has told its result, and removes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trainchart.actions.support.checkpoint_zipapp import build_program
from trainchart.check.objects import mapping_at, mappings_at
from trainchart.checkpoints import wire
from trainchart.checkpoints.helper_pod import CONTAINER, FOLDER, PROGRAM, PYTHON, HelperPod, make_config, make_job
from trainchart.cluster.io import kubernetes_api, probe
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.pod_exec import read_output
from trainchart.cluster.io.releases import read_events
from trainchart.cluster.snapshot import Object, listed, name_of
from trainchart.errors import ClusterError, Conflict, Forbidden, NotFound, NotInTime, Unauthorized, Unreachable
from trainchart_runtime.causes import CAUSES
from trainchart_runtime.contract import INSTANCE_LABEL
from trainchart_runtime.pod_problems import Problem, find_claim_problem, find_job_problem, find_pod_problem, parse_event
from trainchart_runtime.run.judge import list_names

_POLL_SECONDS = 0.5
_TRIES = 6
"""How often the cluster may fail to answer, each time after twice as long."""
_LOG_LOOKS = 10
_UNDER_WAY_SECONDS = 2.0
"""How long the request for a Job may be under way when the command is ended before its answer."""
_START_SECONDS = 300.0
"""How long a pod may take to start about which Kubernetes says nothing."""
_PATIENCE_SECONDS = 60.0
"""How long what keeps a pod from starting may last: volumes are attached, nodes get free."""
_PULL_SECONDS = 15.0
"""How long an image may be refused: registries answer late."""
_REFUSED_SECONDS = 5.0
"""How long the Job's controller may be refused its pod."""

Tell = Callable[[str], None]


@dataclass
class Helper:
    """A helper pod that was asked for."""

    api: KubernetesApi
    namespace: str
    plan: HelperPod
    tell: Tell
    pod: str = ""
    """Its name, once Kubernetes has made it."""
    _told: set[str] = field(default_factory=set)
    _looks_at_end: int = 0

    def await_result(self) -> dict[str, Any]:
        """Return the document that the pod prints, with the claim's name in the place of paths.

        Raises:
            TrainchartError: what the pod has found instead.
            ClusterError: it does not start, or has failed.
            NotInTime: Kubernetes has ended it by its deadline.
        """
        began, failures = time.monotonic(), 0
        while True:
            try:
                document = self._look(time.monotonic() - began)
                failures = 0
            except Unreachable:
                # It may take an hour to read all bytes: one look that fails must not be its end.
                failures += 1
                if failures == _TRIES:
                    raise
                document = None
            if document is not None:
                return document
            time.sleep(_POLL_SECONDS * 2**failures)

    def _look(self, seconds: float) -> dict[str, Any] | None:
        """Return the result if it is there. Raises what await_result does."""
        pod = self._find_pod()
        if pod is None or not _has_started(pod):
            self._require_hope(pod, seconds)
            return None
        try:
            document = self._read_result()
        except NotFound:  # deleted meanwhile: the next look says why
            return None
        if document is None and (ended := _find_terminated(pod)):
            self._looks_at_end += 1
            # The log of one that has ended well may be complete a moment later.
            if ended.get("exitCode") != 0 or self._looks_at_end > _LOG_LOOKS:
                raise self._find_job_end() or self._explain_end(pod)
        return document

    def read_file(self, name: str, offset: int) -> Iterator[bytes]:
        """Yield the bytes of a file of the folder, from an offset on; the pod must be one that serves.

        Raises:
            ClusterError: it cannot be read.
            NotInTime: Kubernetes has ended the pod by its deadline.
            Unreachable: the connection was lost.
        """
        folder = "/".join(filter(None, (FOLDER, self.plan.volume.folder)))
        command = [*PYTHON, PROGRAM, "send", f"{folder}/{name}", str(offset)]
        what = f"copy {name} from pod {self.pod}"
        try:
            yield from read_output(self.api, self.namespace, self.pod, CONTAINER, command, what)
        except ClusterError as error:
            ended = self._find_job_end()
            raise (ended or error) from error.__cause__

    def _find_pod(self) -> Object | None:
        pods = self.api.list_objects(kubernetes_api.PODS, self.namespace, labels=f"{INSTANCE_LABEL}={self.plan.name}")
        self.pod = name_of(pods[0]) if pods else self.pod
        return pods[0] if pods else None

    def _read_result(self) -> dict[str, Any] | None:
        lines = [
            line.partition(" ")[2] for line in self.api.read_log(self.pod, self.namespace, CONTAINER) if " " in line
        ]
        for line in lines:
            if line.startswith(wire.NOTE) and line not in self._told:
                self._told.add(line)
                self.tell(line[len(wire.NOTE) :])
        try:
            found = wire.unpack_lines(lines)
            if found is None:
                return None
            document: dict[str, Any] = wire.rename_places(found, FOLDER, self._mounted)
            error = wire.find_error(document)
        except ValueError as error:
            raise ClusterError(
                f"what the pod {self.pod} has printed cannot be read: {error}", hint="try another image: --image"
            ) from error
        if error is not None:
            raise error
        return document

    @property
    def _mounted(self) -> str:
        volume = self.plan.volume
        return "/".join(filter(None, (f"claim {volume.claim}", volume.sub_path.strip("/"))))

    def _require_hope(self, pod: Object | None, seconds: float) -> None:
        """Raise ClusterError for a pod that does not start."""
        events = [parse_event(event) for event in listed(read_events(self.api, self.namespace))]
        refused = find_job_problem(self.plan.name, events)
        if refused is not None and pod is None and seconds > _REFUSED_SECONDS:
            raise self._refuse(refused)
        if pod is None and (ended := self._find_job_end()):
            raise ended
        if pod is None and self.pod:
            raise ClusterError(f"the pod {self.pod} was deleted in the meantime", hint="try again")
        problem = None
        if pod is not None:
            is_waiting = not mapping_at(pod, "spec").get("nodeName")
            problem = find_pod_problem(pod, events)
            problem = (find_claim_problem([self.plan.volume.claim], events) if is_waiting else None) or problem
        patience = _PULL_SECONDS if problem and problem.cause == "image-pull" else _PATIENCE_SECONDS
        if problem is not None and (seconds > patience or _has_failed(pod)):
            raise self._refuse(problem)
        if seconds > _START_SECONDS:
            raise ClusterError(
                f"the pod {self.pod or self.plan.name} has not started within {_START_SECONDS:.0f} seconds",
                hint=f"see: kubectl describe job {self.plan.name} -n {self.namespace}",
            )

    def _refuse(self, problem: Problem) -> ClusterError:
        hint = CAUSES[problem.cause].hint
        if problem.cause == "image-pull":
            hint = "check the image and its pull secrets, or choose another image with Python 3.8 or newer: --image"
        return ClusterError(f"the pod that reads the claim does not start: {problem.message}", hint=hint)

    def _find_job_end(self) -> ClusterError | NotInTime | None:
        """Return why Kubernetes has ended the pod; None where it has not."""
        try:
            job = self.api.read_object(kubernetes_api.JOBS, self.namespace, self.plan.name)
        except NotFound:
            return ClusterError(f"the job {self.plan.name} was deleted in the meantime", hint="try again")
        conditions = {str(each.get("reason")) for each in mappings_at(job, "status", "conditions")}
        if "DeadlineExceeded" in conditions:
            return NotInTime(
                f"the pod {self.pod or self.plan.name} has not ended within {self.plan.seconds} seconds",
                hint="give it more time: --timeout",
            )
        return None

    def _explain_end(self, pod: Object) -> ClusterError:
        ended = _find_terminated(pod)
        problem = find_pod_problem(pod)
        if problem is not None:
            return ClusterError(
                f"the pod {self.pod} was terminated: {problem.message}", hint=CAUSES[problem.cause].hint
            )
        lines = " ".join(str(ended.get("message") or ended.get("reason") or "").split())
        return ClusterError(
            f"the pod {self.pod} has failed in the image {self.plan.image}: {lines[-300:] or 'no message'}",
            hint="it needs python3, version 3.8 or newer; choose another image: --image",
        )


@contextmanager
def run_helper(
    api: KubernetesApi, namespace: str, plan: HelperPod, settings: Mapping[str, Any], tell: Tell
) -> Iterator[Helper]:
    """Have a helper pod started, and remove it and all that belongs to it in the end.

    Raises:
        ClusterError: the caller may not make one.
    """
    is_refused, job = False, None
    try:
        try:
            job = probe.create(api, namespace, make_job(plan))
        except (Forbidden, Unauthorized, NotFound, Conflict):
            is_refused = True
            raise
        probe.create(api, namespace, make_config(plan, job, build_program(), settings))
        yield Helper(api, namespace, plan, tell)
    finally:
        if job is None and not is_refused:
            time.sleep(_UNDER_WAY_SECONDS)
        if not is_refused:
            _remove(api, namespace, plan.name, tell)


def _remove(api: KubernetesApi, namespace: str, name: str, tell: Tell) -> None:
    """Remove a helper pod; that it cannot be removed is told, and hides no error that came before."""
    try:
        left = probe.remove(api, namespace, name)
    except ClusterError as error:
        tell(f"note: the job {name} may still be there: {error.message}")
        return
    if left:
        tell(f"note: not removed yet: {list_names(left)}; see: kubectl get job {name} -n {namespace}")


def _statuses(pod: Object) -> Sequence[Object]:
    return [each for each in mappings_at(pod, "status", "containerStatuses") if each.get("name") == CONTAINER]


def _has_started(pod: Object) -> bool:
    states = [mapping_at(each, "state") for each in _statuses(pod)]
    return any("running" in state or "terminated" in state for state in states)


def _has_failed(pod: Object | None) -> bool:
    return pod is not None and mapping_at(pod, "status").get("phase") == "Failed"


def _find_terminated(pod: Object) -> Object:
    return next((found for each in _statuses(pod) if (found := mapping_at(each, "state", "terminated"))), {})
