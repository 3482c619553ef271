"""What the chart told this pod: environment and files, read once and checked before anything is started."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Mapping, NamedTuple

from trainchart_runtime import contract
from trainchart_runtime.cluster import (
    Cluster,
    ClusterDescriptionError,
    Task,
    check_task,
    parse_addresses,
    parse_cluster,
)

DEFAULT_TERMINATION_FILE = "/dev/termination-log"
"""Where Kubernetes looks unless the pod says otherwise."""
DEFAULT_STOP_GRACE_SECONDS = 30.0
"""Kubernetes' own default."""
DEFAULT_FENCE_SECONDS = 2.0
"""Rare enough for any storage; a takeover then waits 5 s, little beside the loss of a node."""


class ContractError(Exception):
    """The chart and this launcher disagree; the message names the variable or file."""


class Settings(NamedTuple):
    """Everything the launcher knows about its pod."""

    cluster: Cluster
    task: Task
    pod_name: str
    pod_uid: str
    node_name: str
    namespace: str
    """Empty where the pod is not told."""
    run_id: str
    state_dir: str
    termination_file: str
    checkpoints_dir: str
    logs_dir: str
    """Folder of the volume `logs`; empty where the model has none."""
    max_restarts: int
    stop_grace_seconds: float
    save_wait_seconds: float
    no_progress_seconds: float
    fence_seconds: float
    addresses: Mapping[str, str]
    hyperparameters: Mapping[str, Any]


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read the pod's settings; raises ContractError."""
    try:
        cluster = parse_cluster(_read_text(_required(environ, contract.CLUSTER_FILE)))
        task = Task(_required(environ, contract.TASK_TYPE), _read_ordinal(environ))
        check_task(cluster, task)
        addresses = parse_addresses(environ.get(contract.ADDRESSES) or "{}")
    except ClusterDescriptionError as err:
        raise ContractError(str(err)) from err
    return Settings(
        cluster=cluster,
        task=task,
        pod_name=_find_pod_name(environ),
        pod_uid=environ.get(contract.POD_UID, ""),
        node_name=environ.get(contract.NODE_NAME, ""),
        namespace=environ.get(contract.NAMESPACE, ""),
        run_id=environ.get(contract.RUN_ID, ""),
        state_dir=_required(environ, contract.STATE_DIR),
        termination_file=find_termination_file(environ),
        logs_dir=environ.get(contract.LOGS_DIR, ""),
        checkpoints_dir=environ.get(contract.CHECKPOINTS_DIR, ""),
        max_restarts=int(_number(environ, contract.MAX_RESTARTS, 0)),
        stop_grace_seconds=_number(environ, contract.STOP_GRACE_SECONDS, DEFAULT_STOP_GRACE_SECONDS),
        save_wait_seconds=_number(environ, contract.SAVE_WAIT_SECONDS, 0),
        no_progress_seconds=_number(environ, contract.NO_PROGRESS_SECONDS, 0),
        fence_seconds=_number(environ, contract.FENCE_SECONDS, DEFAULT_FENCE_SECONDS),
        addresses=addresses,
        hyperparameters=_read_hyperparameters(environ.get(contract.HYPERPARAMETERS_FILE, "")),
    )


def find_termination_file(environ: Mapping[str, str]) -> str:
    """Return where the termination message goes, also while the rest of the settings is unusable."""
    return environ.get(contract.TERMINATION_FILE) or DEFAULT_TERMINATION_FILE


def _required(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise ContractError(f"the variable {name} is not set")
    return value


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "")
    try:
        number = float(text) if text else default
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise ContractError(f"the variable {name} must be a number of at least 0, not {text!r}")
    return number


def _read_ordinal(environ: Mapping[str, str]) -> int:
    text = environ.get(contract.ORDINAL, "")
    if text:
        if not re.fullmatch("[0-9]+", text):
            raise ContractError(f"the variable {contract.ORDINAL} must be a number, not {text!r}")
        return int(text)
    pod_name = _find_pod_name(environ)
    suffix = re.search("-([0-9]+)$", pod_name.split(".")[0])
    if not suffix:
        raise ContractError(f"neither {contract.ORDINAL} nor the pod name {pod_name!r} holds an ordinal")
    return int(suffix.group(1))


def _find_pod_name(environ: Mapping[str, str]) -> str:
    return environ.get(contract.POD_NAME) or os.uname().nodename


def _read_hyperparameters(path: str) -> Mapping[str, Any]:
    if not path:
        return {}
    try:
        document = json.loads(_read_text(path))
    except (ValueError, RecursionError) as err:
        raise ContractError(f"the hyperparameters in {path} are not JSON: {err}") from err
    if not isinstance(document, dict):
        raise ContractError(f"the hyperparameters in {path} must be a JSON object")
    return document


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as err:
        raise ContractError(f"cannot read {path}: {err}") from err
