"""What the launcher tells the program: the variables it adds, and the words it fills into the command line.

Pure: values in, values out.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from trainchart_launcher.settings import ContractError, Settings
from trainchart_runtime import contract
from trainchart_runtime.cluster import CHIEF, EVALUATOR, PS, WORKER, dump_tf_config, hosts_by_task_type

_REFERENCE = re.compile(r"\$\(([A-Z][A-Z0-9_]*)\)")


class Invocation(NamedTuple):
    """A program's command line and environment, complete."""

    command: Sequence[str]
    environ: Mapping[str, str]


def resolve_invocation(
    settings: Settings, command: Sequence[str], environ: Mapping[str, str], progress_file: str, attempt: int
) -> Invocation:
    """Return what to start; raises ContractError or ClusterDescriptionError where it cannot work."""
    # All that the kubelet cannot fill into the command, because the container's own environment does not hold it.
    words = {**_resolve_classic(settings), **_resolve_hyperparameters(settings.hyperparameters)}
    added = {
        **words,
        contract.STRATEGY: settings.cluster.strategy,
        contract.EVALUATORS: str(len(settings.cluster.tasks(EVALUATOR))),
        contract.PROGRESS_FILE: progress_file,
        contract.ATTEMPT: str(attempt),
    }
    tf_config = dump_tf_config(settings.task, hosts_by_task_type(settings.cluster, settings.addresses))
    if tf_config:
        added[contract.TF_CONFIG] = tf_config
        words[contract.TF_CONFIG] = tf_config
    for name, value in added.items():
        _check_string(name, value)
    return Invocation(substitute(command, words), {**environ, **added})


def substitute(command: Sequence[str], values: Mapping[str, str]) -> List[str]:
    """Fill $(NAME) into every argument for the names in `values`; other references stay as they are."""
    return [_REFERENCE.sub(lambda match: values.get(match[1], match[0]), argument) for argument in command]


def _resolve_classic(settings: Settings) -> Dict[str, str]:
    hosts = hosts_by_task_type(settings.cluster, settings.addresses)
    variables = {
        contract.CLASSIC_TASK_TYPE: settings.task.task_type,
        contract.CLASSIC_TASK_INDEX: str(settings.task.task_index),
    }
    for task_type in (CHIEF, PS, WORKER):
        variables[task_type.upper() + contract.CLASSIC_HOSTS_SUFFIX] = ",".join(hosts.get(task_type, ()))
    return variables


def _resolve_hyperparameters(hyperparameters: Mapping[str, Any]) -> Dict[str, str]:
    variables = {contract.HYPERPARAMETERS: json.dumps(hyperparameters, separators=(",", ":"))}
    for name, value in hyperparameters.items():
        # Text stays as it is, everything else reads as in JSON: true, 0.05, [1,2].
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        variables[contract.hyperparameter_variable(name)] = text
    return variables


def _check_string(name: str, value: str) -> None:
    if "\0" in value or "\0" in name or "=" in name:
        raise ContractError(f"{name} holds a character that no environment variable may hold")
    if len(name) + len(value.encode("utf-8", "replace")) + 2 > contract.ENVIRONMENT_STRING_LIMIT:
        raise ContractError(f"{name} is longer than Linux allows for one environment variable")
