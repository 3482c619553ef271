"""What the launcher tells the program: the variables it adds, and the words it fills into the command line.

Pure: values in, values out.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Match, NamedTuple, Optional, Sequence

from trainchart_launcher.settings import ContractError, Settings
from trainchart_runtime import contract
from trainchart_runtime.cluster import CHIEF, EVALUATOR, PS, WORKER, dump_tf_config, hosts_by_task_type

_LOOPBACK = ("localhost", "127.0.0.1")
_PROXIED_ADDRESSES = "GRPC_ADDRESS_HTTP_PROXY_ENABLED_ADDRESSES"
_POLL_STRATEGY = "GRPC_POLL_STRATEGY"
_REFERENCE = re.compile(r"\$\(([A-Z][A-Z0-9_]*)([?+*-]?)\)")


class Invocation(NamedTuple):
    """A program's command line and environment, complete."""

    command: Sequence[str]
    environ: Mapping[str, str]


def resolve_invocation(
    settings: Settings, command: Sequence[str], environ: Mapping[str, str], progress_file: str, attempt: int
) -> Invocation:
    """Return what to start; raises ContractError or ClusterDescriptionError where it cannot work."""
    hosts = hosts_by_task_type(settings.cluster, settings.addresses)
    # All of this goes into the command too: the kubelet fills in only what the container's own environment holds.
    added = {
        **_resolve_classic(settings, hosts),
        **_resolve_hyperparameters(settings.hyperparameters),
        **_resolve_network(environ, hosts),
        contract.STRATEGY: settings.cluster.strategy,
        contract.EVALUATORS: str(len(settings.cluster.tasks(EVALUATOR))),
        contract.PROGRESS_FILE: progress_file,
        contract.ATTEMPT: str(attempt),
    }
    tf_config = dump_tf_config(settings.task, hosts)
    if tf_config:
        added[contract.TF_CONFIG] = tf_config
    for name, value in added.items():
        _check_string(name, value)
    return Invocation(substitute(command, added), {**environ, **added})


def substitute(command: Sequence[str], values: Mapping[str, str]) -> List[str]:
    """Fill the references into every word of the command; names that are not the launcher's stay as they are.

    A hyperparameter may have a mark: $(NAME?) leaves the word out while NAME has no value; $(NAME+) keeps it only where
    NAME is true, $(NAME-) only where it is false, and both add nothing to it; $(NAME*) makes a word of each item.
    """
    return [filled for word in command for filled in _fill(word, values)]


def _fill(word: str, values: Mapping[str, str]) -> Iterator[str]:
    """Yield the words that one word of the command stands for."""
    prefix = contract.HYPERPARAMETER_PREFIX
    references = [m for m in _REFERENCE.finditer(word) if m[1] in values or m[1].startswith(prefix)]
    if not all(_is_kept(match[2], values.get(match[1])) for match in references):
        return
    lists = [match for match in references if match[2] == "*"]
    if not lists:
        yield _REFERENCE.sub(lambda match: _value(match, values), word)
        return
    # "--size $(SIZES*)" has the flag once, before all items; "--size=$(SIZES*)" has it before each.
    flag, blank, rest = word[: lists[0].start()].rpartition(" ")
    items = values.get(lists[0][1], "").split()
    if blank and items:
        yield flag
    yield from (rest + item + word[lists[0].end() :] for item in items)


def _is_kept(mark: str, value: Optional[str]) -> bool:
    return {"?": value is not None, "+": value == "true", "-": value == "false"}.get(mark, True)


def _value(match: Match[str], values: Mapping[str, str]) -> str:
    return "" if match[2] in ("+", "-") and match[1] in values else values.get(match[1], match[0])


def _resolve_classic(settings: Settings, hosts: Mapping[str, Sequence[str]]) -> Dict[str, str]:
    variables = {
        contract.CLASSIC_TASK_TYPE: settings.task.task_type,
        contract.CLASSIC_TASK_INDEX: str(settings.task.task_index),
    }
    for task_type in (CHIEF, PS, WORKER):
        variables[task_type.upper() + contract.CLASSIC_HOSTS_SUFFIX] = ",".join(hosts.get(task_type, ()))
    return variables


def _resolve_network(environ: Mapping[str, str], hosts: Mapping[str, Sequence[str]]) -> Dict[str, str]:
    """Return the variables without which tasks do not reach each other; proxies keep the user's own entries.

    gRPC sends every connection to the proxy of grpc_proxy, https_proxy or http_proxy, also those to localhost, and
    waits silently for a proxy that does not know the pods. It reads no_grpc_proxy, or no_proxy where that is not set,
    and does not know "*". GRPC_ADDRESS_HTTP_PROXY ignores both, and only its list of addresses switches it off:
    https://github.com/grpc/grpc/blob/master/src/core/handshaker/http_connect/http_proxy_mapper.cc
    """
    peers = [address.rpartition(":")[0] for group in hosts.values() for address in group]
    # Most programs read the upper case only where the lower case is not set, so setting it must not hide the other.
    own = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    own_grpc = environ.get("no_grpc_proxy", own)
    unproxied = {
        # "*" means every host, but only while it stands alone.
        "no_proxy": own if own.strip() == "*" else _join_hosts([*own.split(","), *_LOOPBACK, *peers]),
        "no_grpc_proxy": _join_hosts([*own_grpc.split(","), *_LOOPBACK, *peers]),
    }
    if peers and _PROXIED_ADDRESSES in environ:
        unproxied[_PROXIED_ADDRESSES] = ""
    if peers and "none" in environ.get(_POLL_STRATEGY, "").split(","):
        # A server that polls for nothing aborts the program; this is gRPC's default.
        unproxied[_POLL_STRATEGY] = "all"
    return unproxied


def _join_hosts(hosts: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(host.strip() for host in hosts if host.strip()))


def _resolve_hyperparameters(hyperparameters: Mapping[str, Any]) -> Dict[str, str]:
    given = {name: value for name, value in hyperparameters.items() if value is not None}
    variables = {contract.HYPERPARAMETERS: json.dumps(given, separators=(",", ":"))}
    for name, value in given.items():
        # Text stays as it is, everything else reads as in JSON: true, 0.05, [1,2].
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        variables[contract.hyperparameter_variable(name)] = text
    return variables


def _check_string(name: str, value: str) -> None:
    if "\0" in value or "\0" in name or "=" in name:
        raise ContractError(f"{name} holds a character that no environment variable may hold")
    if len(name) + len(value.encode("utf-8", "replace")) + 2 > contract.ENVIRONMENT_STRING_LIMIT:
        raise ContractError(f"{name} is longer than Linux allows for one environment variable")
