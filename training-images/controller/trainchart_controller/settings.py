"""What the chart told this controller: environment and files, read once and checked before anything is done."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainchart_controller.notify import NotifySettings
from trainchart_runtime import contract
from trainchart_runtime.cluster import ClusterDescriptionError, deciding_tasks, parse_cluster
from trainchart_runtime.run.plan import CHANGE_POLICIES, DESIRED_STATES, RunPlan
from trainchart_runtime.run.state import PHASES

OBJECT_PATHS = {
    "Service": "/api/v1/namespaces/{}/services/{}",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies/{}",
}
"""Kind → path of one such object."""
_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class ContractError(Exception):
    """The chart and this controller disagree; the message names the variable or file."""


class Settings(NamedTuple):
    """Everything the controller knows before its first request."""

    plan: RunPlan
    plan_id: str
    release: str
    namespace: str
    pod_name: str
    job_name: str
    """Empty where the chart does not name the controller's Job."""
    state_name: str
    selector: str
    """Label selector of the training pods."""
    host: str
    port: int
    service_account_dir: str
    labels: Mapping[str, str] = {}
    """The same, as a mapping."""
    workload: str = ""
    """Name of the run's Workload; empty where it waits in no queue."""
    objects: Sequence[str] = ()
    """Kind and name of what the run needs beside its sets, such as "Service exp1-mnist"."""
    notify: NotifySettings = NotifySettings()
    metrics_address: Optional[Tuple[str, int]] = None
    """Host, "" for every address, and port of GET /metrics."""


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read the controller's settings; raises ContractError."""
    document = _parse_run_settings(_required(environ, contract.RUN_SETTINGS))
    path = _required(environ, contract.CLUSTER_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            cluster = parse_cluster(file.read())
    except (OSError, UnicodeDecodeError) as err:
        raise ContractError(f"cannot read {path}: {err}") from err
    except ClusterDescriptionError as err:
        raise ContractError(str(err)) from err
    if not deciding_tasks(cluster):
        raise ContractError("the cluster has neither a chief nor a worker, so no task's success could end the run")
    return Settings(
        plan=RunPlan(
            run_id=environ.get(contract.RUN_ID, ""),
            cluster=cluster,
            max_restarts=int(_number(document, "maxRestarts")),
            start_deadline_seconds=_spread(_number(document, "startDeadlineSeconds"), environ),
            evaluator_grace_seconds=_number(document, "evaluatorGraceSeconds"),
            active_deadline_seconds=_number(document, "activeDeadlineSeconds"),
            desired_state=_word(document, "desiredState", DESIRED_STATES),
            on_change=_word(document, "onChange", CHANGE_POLICIES),
            force_delete_lost=document.get("forceDeleteLostPods") is True,
            queue=str(document.get("queue") or ""),
            queue_priority_class=str(document.get("queuePriorityClass") or ""),
        ),
        plan_id=_required(environ, contract.PLAN_ID),
        release=_required(environ, contract.RELEASE),
        namespace=_required(environ, contract.NAMESPACE),
        pod_name=_required(environ, contract.POD_NAME),
        job_name=environ.get(contract.JOB_NAME, ""),
        state_name=_required(environ, contract.STATE_NAME),
        selector=_dump_selector(document),
        labels=document["selector"],
        workload=str(document.get("workload") or ""),
        objects=_parse_objects(document),
        host=_required(environ, "KUBERNETES_SERVICE_HOST"),
        port=int(_required(environ, "KUBERNETES_SERVICE_PORT")),
        service_account_dir=environ.get(contract.SERVICE_ACCOUNT_DIR) or _MOUNT,
        notify=_parse_notify(document),
        metrics_address=_read_address(environ, contract.METRICS_ADDRESS),
    )


def _required(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise ContractError(f"the variable {name} is not set")
    return value


def _read_address(environ: Mapping[str, str], name: str) -> Optional[Tuple[str, int]]:
    text = environ.get(name, "")
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ContractError(f"the variable {name} must be HOST:PORT or :PORT, not {text!r}")
    return host, int(port)


def _parse_run_settings(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise ContractError(f"{contract.RUN_SETTINGS} is not JSON: {err}") from err
    if not isinstance(document, dict):
        raise ContractError(f"{contract.RUN_SETTINGS} must be a JSON object")
    return document


def _number(document: Mapping[str, Any], key: str) -> float:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        raise ContractError(f"{contract.RUN_SETTINGS} needs {key!r} as a number of at least 0, not {value!r}")
    return float(value)


def _spread(seconds: float, environ: Mapping[str, str]) -> float:
    """Return a deadline that is up to a quarter longer, by the release's name.

    Releases that wait for each other's GPUs, each with a part of them, would give up at the same moment: so one of them
    gives up first, and the others find room.
    """
    name = "/".join(environ.get(each, "") for each in (contract.NAMESPACE, contract.RELEASE))
    return seconds * (1 + zlib.crc32(name.encode()) % 1000 / 4000)


def _word(document: Mapping[str, Any], key: str, known: Sequence[str]) -> str:
    value = document.get(key)
    if value not in known:
        raise ContractError(f"{contract.RUN_SETTINGS} needs {key!r} as one of {', '.join(known)}, not {value!r}")
    return str(value)


def _parse_objects(document: Mapping[str, Any]) -> Sequence[str]:
    objects = document.get("objects", [])
    if not isinstance(objects, list) or not all(str(each).partition(" ")[0] in OBJECT_PATHS for each in objects):
        kinds = ", ".join(OBJECT_PATHS)
        raise ContractError(f"{contract.RUN_SETTINGS} needs 'objects' as a list of {kinds} and a name, not {objects!r}")
    return tuple(objects)


def _parse_notify(document: Mapping[str, Any]) -> NotifySettings:
    notify = document.get("notify", {})
    phases = notify.get("phases", []) if isinstance(notify, dict) else None
    if not isinstance(phases, list) or not set(map(str, phases)) <= set(PHASES):
        raise ContractError(f"{contract.RUN_SETTINGS} needs 'notify' as an object with known phases, not {notify!r}")
    return NotifySettings(tuple(phases), *(str(notify.get(key) or "") for key in ("file", "secret", "key")))


def _dump_selector(document: Mapping[str, Any]) -> str:
    labels = document.get("selector")
    # Without labels the controller would read every pod of the namespace.
    if not isinstance(labels, dict) or not labels or not all(isinstance(value, str) for value in labels.values()):
        raise ContractError(f"{contract.RUN_SETTINGS} needs 'selector' as an object of labels, not {labels!r}")
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
