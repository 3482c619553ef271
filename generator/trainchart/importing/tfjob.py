"""TFJobs of Kubeflow's training operator (kubeflow.org/v1, and v1beta2, which has the policies one level up). Pure.

Fields: https://github.com/kubeflow/training-operator/blob/release-1.9/manifests/base/crds/kubeflow.org_tfjobs.yaml
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainchart.errors import ToolError
from trainchart.importing.ledger import Ledger, Place
from trainchart.importing.pods import keep_own
from trainchart.importing.training import ROLE_NAMES, RolePods, Training

KIND = "TFJob"
CONTAINER = "tensorflow"
"""The operator gives TF_CONFIG to the container of this name."""
_POLICIES = ("cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "schedulingPolicy")
_SILENT = {"tfReplicaSpecs", "runPolicy", "successPolicy", *_POLICIES}
_REASONS = {
    "enableDynamicWorker": ("a run has a fixed number of workers", "set roles.worker.replicas in an upgrade"),
    "managedBy": ("no operator manages a release", ""),
    "startingDeadlineSeconds": ("a run has a start deadline of its own", "use run.startDeadline"),
}


def read_tfjob(job: Mapping[str, Any], ledger: Ledger) -> Training:
    """Return the training of a TFJob.

    Raises:
        ToolError: it has no replicas that can be read.
    """
    metadata = ledger.mapping(job.get("metadata"), ("metadata",))
    name = str(metadata.get("name") or str(metadata.get("generateName") or "").rstrip("-"))
    spec = ledger.mapping(job.get("spec"), ("spec",))
    place: Place = ("spec", "tfReplicaSpecs")
    replica_specs = ledger.mapping(spec.get("tfReplicaSpecs"), place)
    pods = _read_replicas(replica_specs, ledger)
    if not pods:
        old = "it has spec.replicaSpecs, as in v1alpha1: " if "replicaSpecs" in spec else ""
        raise ToolError(
            f"{ledger.origin.locate(('spec',))}: the TFJob {name[:60]!r} has no replicas that can be imported",
            hint=f"{old}expected spec.tfReplicaSpecs with Chief, Worker, PS or Evaluator, each with a template",
        )
    settings: dict[str, Any] = {}
    _read_policies(spec, replica_specs, settings, ledger)
    for key, value in spec.items():
        if key not in _SILENT and value not in (None, "", [], {}, False):
            ledger.leave(("spec", str(key)), *_REASONS.get(str(key), ("the model spec has no such setting", "")))
    _read_metadata(metadata, settings, ledger)
    ledger.note("TF_CONFIG comes from the launcher: a program that reads it needs no change")
    return Training(KIND, name, (), pods, ledger, settings, CONTAINER)


def _read_replicas(replica_specs: Mapping[str, Any], ledger: Ledger) -> tuple[RolePods, ...]:
    found: dict[str, RolePods] = {}
    for key, value in replica_specs.items():
        place: Place = ("spec", "tfReplicaSpecs", str(key))
        role = ROLE_NAMES.get(str(key).lower(), "")
        replica = ledger.mapping(value, place)
        template = ledger.mapping(replica.get("template"), (*place, "template"))
        pod = ledger.mapping(template.get("spec"), (*place, "template", "spec"))
        if not role or not pod:
            what = (
                "has no pod template"
                if role
                else f"is not a role: roles are {', '.join(('Chief', 'Worker', 'PS', 'Evaluator'))}"
            )
            ledger.leave(place, what)
        elif role in found:
            ledger.leave(place, f"another entry is already the {role}")
        else:
            metadata = ledger.mapping(template.get("metadata"), (*place, "template", "metadata"))
            count = ledger.number(replica.get("replicas"), (*place, "replicas"), 1)
            labels, annotations = (
                ledger.mapping(metadata.get(each), (*place, "template", "metadata", each))
                for each in ("labels", "annotations")
            )
            found[role] = RolePods(role, count, pod, (*place, "template", "spec"), labels, annotations)
            ledger.carry((*place, "replicas"), f"roles.{role}.replicas")
    return tuple(found.values())


def _read_policies(
    spec: Mapping[str, Any], replica_specs: Mapping[str, Any], settings: dict[str, Any], ledger: Ledger
) -> None:
    policy = ledger.mapping(spec.get("runPolicy"), ("spec", "runPolicy"))
    places: dict[str, Place] = {key: ("spec", key) for key in spec} | {
        key: ("spec", "runPolicy", key) for key in policy
    }
    values = {**{key: spec[key] for key in _POLICIES if key in spec}, **policy}
    run: dict[str, Any] = {}
    for key, value in values.items():
        place = places[key]
        if value in (None, "", {}, False):
            continue
        if key == "activeDeadlineSeconds":
            run["activeDeadline"] = ledger.number(value, place, 0)
            ledger.carry(place, "run.activeDeadline")
        elif key == "suspend":
            run["desiredState"] = "suspended"
            ledger.carry(place, "run.desiredState")
        elif key == "cleanPodPolicy":
            _read_clean_policy(value, place, ledger)
        elif key == "ttlSecondsAfterFinished":
            reason = "a finished run frees its pods and GPUs at once, and keeps its verdict until helm uninstall"
            ledger.leave(place, reason, "uninstall the release when it is no longer needed")
        elif key == "schedulingPolicy":
            _read_scheduling(ledger.mapping(value, place), place, settings, ledger)
        elif key != "backoffLimit":
            ledger.leave(place, *_REASONS.get(key, ("the model spec has no such setting", "")))
    _read_restarts(values.get("backoffLimit"), places.get("backoffLimit", ()), replica_specs, run, ledger)
    _read_success(spec.get("successPolicy"), ledger)
    settings |= {"run": run} if run else {}


def _read_clean_policy(value: Any, place: Place, ledger: Ledger) -> None:
    if value in ("All", "Running"):
        ledger.carry(place, "the run controller, which frees all pods when the run is over")
    else:
        reason = "a finished run frees all pods and their GPUs"
        ledger.leave(place, reason, "to keep the logs of deleted pods, add a volume called logs")


def _read_scheduling(policy: dict[str, Any], place: Place, settings: dict[str, Any], ledger: Ledger) -> None:
    for key, value in policy.items():
        if key == "priorityClass":
            settings["priorityClassName"] = value
            ledger.carry((*place, key), "priorityClassName")
        elif key == "queue":
            settings.setdefault("commonAnnotations", {})["scheduling.volcano.sh/queue-name"] = value
            ledger.carry((*place, key), "commonAnnotations")
        elif value not in (None, "", {}):
            reason = "the operator created a PodGroup from it, and a chart creates none"
            ledger.leave((*place, str(key)), reason, "add one to extraManifests (see docs/operations.md), or use Kueue")


def _read_restarts(
    limit: Any, place: Place, replica_specs: Mapping[str, Any], run: dict[str, Any], ledger: Ledger
) -> None:
    policies: dict[str, Place] = {}
    for role, replica in replica_specs.items():
        if isinstance(replica, dict) and replica.get("restartPolicy"):
            where: Place = ("spec", "tfReplicaSpecs", str(role), "restartPolicy")
            policies.setdefault(str(replica["restartPolicy"]), where)
    if limit is not None:
        run["maxRestarts"] = ledger.number(limit, place, 3)
        ledger.carry(place, "run.maxRestarts, which counts per pod")
    for policy, where in policies.items():
        if policy == "Never" and len(policies) == 1 and limit is None:
            run["maxRestarts"] = 0
            ledger.carry(where, "run.maxRestarts: 0; a pod that is evicted is still recreated")
        elif policy in ("OnFailure", "Always"):
            ledger.carry(where, f"run.maxRestarts: {run.get('maxRestarts', 3)}")
        else:
            reason = "the launcher decides by the cause of a failure whether a program starts again"
            ledger.leave(
                where, reason, "set run.maxRestarts: 0 to allow none" if policy == "Never" else "see run.maxRestarts"
            )


def _read_success(value: Any, ledger: Ledger) -> None:
    if value in (None, ""):
        return
    reason = "a run succeeds when its chief or worker 0 does; under multi-worker-mirrored, when all workers do"
    ledger.leave(("spec", "successPolicy"), reason)


def _read_metadata(metadata: Mapping[str, Any], settings: dict[str, Any], ledger: Ledger) -> None:
    for key, target in (("labels", "commonLabels"), ("annotations", "commonAnnotations")):
        kept = keep_own(ledger.mapping(metadata.get(key), ("metadata", key)))
        if kept:
            settings[target] = {**kept, **settings.get(target, {})}
            ledger.carry(("metadata", key), target)
    if metadata.get("namespace"):
        ledger.leave(
            ("metadata", "namespace"),
            "a chart can be installed into any namespace",
            f"helm install -n {metadata['namespace']}",
        )
