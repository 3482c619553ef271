"""Values of the archived chart distributed-tensorflow (helm/charts, stable), which starts ps and workers. Pure.

What its templates make of the values: https://github.com/helm/charts/tree/master/stable/distributed-tensorflow
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainchart.importing.amounts import GPU
from trainchart.importing.ledger import Ledger, Place
from trainchart.importing.training import RolePods, Training
from trainchart_runtime.cluster import PS, WORKER

KIND = "values file of the chart distributed-tensorflow"
_IMAGE = {"repository": "dysproz/distributed-tf", "tag": "1.7.0"}
_REPLICAS = 2
_PROGRAM = ("python", "train_distributed.py")
_FLAGS = {
    "learningrate": "--learning_rate",
    "batchsize": "--batch_size",
    "trainsteps": "--train_steps",
    "datadir": "--data_dir",
    "logdir": "--log_dir",
    "hiddenunits": "--hidden_units",
}
"""Hyperparameters of that chart and the flags that its program gets."""
_ROLE_KEYS = {"number", "image", "gpuCount", "env", "port", "podManagementPolicy"}


def are_chart_values(value: Any) -> bool:
    """Tell whether a document holds values of that chart."""
    if not isinstance(value, dict) or "kind" in value:
        return False
    has_roles = [isinstance(value.get(role), dict) and bool(_ROLE_KEYS & value[role].keys()) for role in (WORKER, PS)]
    return any(has_roles) and (all(has_roles) or isinstance(value.get("hyperparams"), dict))


def read_chart_values(values: Mapping[str, Any], ledger: Ledger) -> Training:
    """Return the training that the chart would start with these values."""
    flags = _read_hyperparams(ledger.mapping(values.get("hyperparams"), ("hyperparams",)), ledger)
    pods = tuple(_read_role(role, values, flags, ledger) for role in (WORKER, PS))
    for key, value in values.items():
        if key not in (WORKER, PS, "hyperparams", "volumes", "volumeMounts") and value not in (None, "", {}, []):
            ledger.leave((str(key),), "the chart distributed-tensorflow has no such value")
    ledger.note("the program finds its place in WORKER_HOSTS, PS_HOSTS, JOB_NAME and POD_NAME, as it did before")
    return Training(KIND, "", (), pods, ledger, has_tf_config=False)


def _read_hyperparams(given: Mapping[str, Any], ledger: Ledger) -> list[str]:
    words: list[str] = []
    for key, value in given.items():
        place: Place = ("hyperparams", str(key))
        flag = _FLAGS.get(str(key))
        if flag is None:
            ledger.leave(place, "the chart distributed-tensorflow has no such value")
        elif value and isinstance(value, (str, int, float)):
            words += [flag, str(value)]
            ledger.carry(place, f"code.command: {flag}")
    return words


def _read_role(role: str, values: Mapping[str, Any], flags: list[str], ledger: Ledger) -> RolePods:
    settings = ledger.mapping(values.get(role), (role,))
    image = {**_IMAGE, **ledger.mapping(settings.get("image"), (role, "image"))}
    container: dict[str, Any] = {
        "name": role,
        "image": f"{image['repository']}:{image['tag']}",
        "command": [*_PROGRAM, *flags],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "JOB_NAME", "value": role},
        ],
        "volumeMounts": values.get("volumeMounts"),
    }
    env = ledger.mapping(settings.get("env"), (role, "env"))
    container["env"] += [{"name": str(name), "value": value} for name, value in env.items()]
    if image.get("pullPolicy"):
        container["imagePullPolicy"] = image["pullPolicy"]
    gpus = ledger.number(settings.get("gpuCount"), (role, "gpuCount"), 0)
    if gpus:
        container["resources"] = {"limits": {GPU: gpus}}
        container["command"] += ["--num_gpus", str(gpus)] if role == WORKER else []
    count = ledger.number(settings.get("number"), (role, "number"), _REPLICAS)
    ledger.carry((role, "number"), f"roles.{role}.replicas")
    for key, value in settings.items():
        if key in ("port", "podManagementPolicy"):
            ledger.carry((role, key), "the chart: all pods start at once, and listen at service.port")
        elif key not in _ROLE_KEYS and value not in (None, "", {}, []):
            ledger.leave((role, str(key)), "the chart distributed-tensorflow has no such value")
    return RolePods(role, count, {"containers": [container], "volumes": values.get("volumes")}, (role, "pod"))
