"""Objects of the Kubernetes API as a trainchart release makes them, for tests without a cluster.

The release is exp1 of chart mnist in namespace team-a: a chief, two workers with a GPU each, a parameter server.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from trainchart_runtime import causes
from trainchart_runtime.cause import Cause
from trainchart_runtime.termination import Termination, dump_termination

NOW = 1_800_000_000.0
NAMESPACE = "team-a"
ROLES = {"chief": 1, "worker": 2, "ps": 1}
GPU = "nvidia.com/gpu"


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_labels(component: str, release: str = "exp1", **more: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "mnist",
        "app.kubernetes.io/instance": release,
        "app.kubernetes.io/component": component,
        "helm.sh/chart": "mnist-0.1.0",
        **more,
    }


def make_metadata(name: str, labels: Mapping[str, str], *, age: float = 600, **more: Any) -> dict[str, Any]:
    created = stamp(NOW - age)
    return {"name": name, "namespace": NAMESPACE, "labels": dict(labels), "creationTimestamp": created, **more}


def make_set(
    role: str, replicas: int | None = None, *, release: str = "exp1", wanted: int | None = None
) -> dict[str, Any]:
    """A StatefulSet that is told to have `replicas` pods; `wanted` is what the chart asks for."""
    wanted = ROLES[role] if wanted is None else wanted
    annotations = {"trainchart/replicas": str(wanted), "trainchart/strategy": "parameter-server"}
    env = [{"name": "TRAINCHART_RUN_ID", "value": ""}, {"name": "TRAINCHART_MAX_RESTARTS", "value": "1"}]
    return {
        "metadata": make_metadata(f"{release}-mnist-{role}", make_labels(role, release), annotations=annotations),
        "spec": {
            "replicas": wanted if replicas is None else replicas,
            "template": {"spec": {"containers": [{"name": "training", "env": env}]}},
        },
    }


def make_sets(replicas: int | None = None) -> list[dict[str, Any]]:
    return [make_set(role, replicas) for role in ROLES]


def make_end(
    cause: Cause | None, exit_code: int = 1, *, at: float = NOW - 60, reason: str = "Error", **words: Any
) -> dict[str, Any]:
    """A terminated container; with a cause, its launcher has left these words."""
    found: dict[str, Any] = {"exitCode": exit_code, "reason": reason, "finishedAt": stamp(at)}
    if cause is not None:
        message = Termination(cause.name, exit_code, finished_at=at, **words)
        found["message"] = dump_termination(message).decode()
    return found


def make_pod(
    task: str,
    *,
    node: str = "node1",
    ended: Mapping[str, Any] | None = None,
    last: Mapping[str, Any] | None = None,
    restarts: int = 0,
    release: str = "exp1",
    conditions: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A training pod: running, or with `ended` its container has ended; without a node it is pending."""
    role = task.rpartition("-")[0]
    labels = {**make_labels(role, release), "trainchart/training": "true"}
    limits = {"cpu": "2", "memory": "8Gi", **({GPU: "1"} if role == "worker" else {})}
    state = {"terminated": dict(ended)} if ended else {"running": {"startedAt": stamp(NOW - 300)}}
    container = {"name": "training", "restartCount": restarts, "state": state, "ready": not ended}
    if last:
        container["lastState"] = {"terminated": dict(last)}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(NOW - 500)}
    return {
        "metadata": make_metadata(f"{release}-mnist-{task}", labels),
        "spec": {
            "containers": [{"name": "training", "resources": {"limits": limits}, "env": []}],
            **({"nodeName": node} if node else {}),
        },
        "status": {
            "phase": "Running" if node else "Pending",
            "conditions": [*([scheduled] if node else []), *conditions],
            "containerStatuses": [container] if node else [],
        },
    }


def make_pods(**replaced: dict[str, Any]) -> list[dict[str, Any]]:
    """All pods of exp1, running; `worker_1=…` replaces one."""
    tasks = ("chief-0", "worker-0", "worker-1", "ps-0")
    return [replaced.get(task.replace("-", "_"), make_pod(task)) for task in tasks]


def unschedulable(message: str = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.") -> dict[str, Any]:
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}


def make_state(phase: str, **fields: Any) -> dict[str, Any]:
    """The run controller's record, as a document."""
    roles = {role: {"wanted": number, "running": number, "failures": 0} for role, number in ROLES.items()}
    return {
        "version": 1,
        "runId": "",
        "phase": phase,
        "attempt": 1,
        "since": NOW - 120,
        "updated": NOW - 30,
        "succeeded": {},
        "verdict": None,
        "pendingVerdict": None,
        "roles": roles,
        "history": [{"at": NOW - 600, "phase": "Starting", "message": "a new run"}],
        **fields,
    }


def make_verdict(result: str = "Failed", cause: Cause = causes.PROGRAM_ERROR, **fields: Any) -> dict[str, Any]:
    return {
        "result": result,
        "at": NOW - 120,
        "cause": cause.name,
        "sentence": cause.sentence,
        "hint": cause.hint,
        "pod": "exp1-mnist-worker-1",
        "node": "node2",
        "exitCode": 1,
        "error": "ValueError: no data today",
        "step": 1200,
        "metrics": {},
        "lines": ["starting", "ValueError: no data today"],
        **fields,
    }


def make_record(state: Mapping[str, Any] | str | None, *, logs: str | None = None) -> dict[str, Any]:
    """The ConfigMap of the run controller; None leaves it as the chart renders it."""
    data = {} if state is None else {"state.json": state if isinstance(state, str) else json.dumps(state)}
    if logs is not None:
        data["logs.json"] = logs
    return {"metadata": make_metadata("exp1-mnist-state", make_labels("controller")), "data": data}


def make_job(condition: str = "", *, ready: int = 1) -> dict[str, Any]:
    """The run controller's Job: running, not yet, or with the condition Complete or Failed."""
    conditions = [{"type": condition, "status": "True", "message": "it ended"}] if condition else []
    return {
        "metadata": make_metadata("exp1-mnist-controller-1", make_labels("controller")),
        "status": {"conditions": conditions, "ready": 0 if condition else ready},
    }


def make_controller_pod(waiting: Mapping[str, str] | None = None) -> dict[str, Any]:
    state = {"waiting": dict(waiting)} if waiting else {"running": {}}
    return {
        "metadata": make_metadata("exp1-mnist-controller-1-abcde", make_labels("controller")),
        "spec": {"containers": [{"name": "controller"}], "nodeName": "node1"},
        "status": {"phase": "Running", "containerStatuses": [{"name": "controller", "state": state}]},
    }


def make_event(kind: str, name: str, reason: str, message: str, *, at: float = NOW - 30) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.1", "namespace": NAMESPACE},
        "involvedObject": {"kind": kind, "name": name, "namespace": NAMESPACE},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "lastTimestamp": stamp(at),
    }


def make_revision(
    number: int,
    image: str = "a",
    status: str = "superseded",
    description: str = "",
    *,
    values: Mapping[str, Any] | None = None,
    version: str = "0.1.0",
    age: float = 600,
) -> dict[str, Any]:
    """Helm's record of a revision of exp1, whose workers have this image, and what Helm says of it."""
    container = f"{{name: training, image: {image}}}"
    manifest = (
        f"---\n# Source: a\nkind: StatefulSet\nmetadata: {{name: exp1-mnist-worker}}\n"
        f"spec: {{template: {{spec: {{containers: [{container}]}}}}}}\n"
    )
    chart = {"metadata": {"name": "mnist", "version": version, "apiVersion": "v2"}}
    document = {"name": "exp1", "version": number, "chart": chart, "manifest": manifest, "config": values or {}}
    document["info"] = {"description": description}
    data = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(document).encode()))).decode()
    labels = {"owner": "helm", "name": "exp1", "version": str(number), "status": status}
    return {"metadata": make_metadata(f"v{number}", labels, age=age), "data": {"release": data}}
