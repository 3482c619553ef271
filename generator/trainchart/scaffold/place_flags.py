"""Flags that tell a process its place in the cluster: which ones the launcher fills in, and which nothing can. Pure.

A place is another one in every pod, so such a flag never becomes a hyperparameter.
"""

from __future__ import annotations

import re

from trainchart.scaffold.flag import Declaration, split_words
from trainchart_runtime import contract

PS_HOSTS = f"$(PS{contract.CLASSIC_HOSTS_SUFFIX})"
WORKER_HOSTS = f"$(WORKER{contract.CLASSIC_HOSTS_SUFFIX})"
CHIEF_HOSTS = f"$(CHIEF{contract.CLASSIC_HOSTS_SUFFIX})"
TASK_TYPE = f"$({contract.CLASSIC_TASK_TYPE})"
TASK_INDEX = f"$({contract.CLASSIC_TASK_INDEX})"
_PLACE_NOT_FILLED = (
    "it looks like a pod's place in the cluster, which differs from pod to pod: give it a variable of the launcher, "
    f"such as {TASK_INDEX}"
)
_COUNT_NOT_FILLED = (
    "it looks like a number of pods, which roles.ROLE.replicas sets: let the program count the tasks in TF_CONFIG, or "
    "write the number into code.command"
)
_HOSTS_NOT_FILLED = (
    "it takes a list of hosts, and the launcher fills them in as one text separated by commas: "
    "let %s take one text, and split it at the commas"
)
_ROLES = ("ps", "worker", "chief", "master", "evaluator")
_LIST = r"(_?(hosts?|servers?|lists?|address(es)?|addrs?|nodes|endpoints|ips|urls|machines|specs?))"
_HOSTS = (
    (PS_HOSTS, re.compile(rf"ps{_LIST}?")),
    (WORKER_HOSTS, re.compile(rf"(workers|worker{_LIST}|workers{_LIST})")),
    (CHIEF_HOSTS, re.compile(rf"(chief|master){_LIST}")),
)
_TYPE = re.compile(r"job|job_name|role|role_name|(task|job|node|worker|process|replica|server|tf|machine)_(type|role)")
_INDEX = re.compile(
    r"rank|task|(task|worker|node|process|proc|replica|machine|job|server|host|client)_?(index|idx|id|num|no|number|rank)"
    r"|global_rank|task_?id"
)
_COUNT = re.compile(
    r"(num|n|number_of|total|count)_?(workers?|ps|nodes|hosts|tasks|replicas|processes|procs|proc|machines|servers)(_.*)?"
    r"|n(nodes|proc|workers|procs|hosts)(_per_node)?|world_?size|cluster_?size|workers?"
    r"|(worker|ps|node|task|replica|host|server|machine|process)s?_(count|num|number|size)"
)
_SIZE = re.compile(
    r"(num|n|number_of|total)_?(nodes|workers?|tasks|processes|procs)|workers?|nodes?_(count|num|number|size)"
)
"""Counts that are of a layer's nodes or a loader's workers in a program that is not distributed."""
_OTHER = re.compile(
    r"local_?rank|(worker|ps|node|task|replica|host|server|machine|process)s?_(port|name|ip|host|addr|address)"
    r"|(chief|master|coordinator|scheduler|leader)(_(addr|address|host|ip|port|url|uri))?"
    r"|(current|this|my|local|own|controller)_(hosts?|nodes?|workers?|tasks?|ip|address|addr)|server_protocol"
    r"|is_(chief|master|worker|ps|leader)|cluster(_(spec|config|def))?|tf_cluster|host_?file|hosts|grpc_(server|url|port)"
    r"|dist_url|init_method|server_(target|address|addr)|protocol"
)


def fill_place(declaration: Declaration) -> str | None:
    """Return what the command gives a flag that tells a place: empty where nothing can, None for all other flags."""
    name = _shorten_name(declaration)
    name = "ps_hosts" if name in ("parameterservers", "paramservers") else name
    kind, default = declaration.kind, declaration.default
    if name == "tf_config" and kind == "string":
        return f"$({contract.TF_CONFIG})"
    if _TYPE.fullmatch(name) or name == "task":
        is_role = kind == "string" and (not default or default in _ROLES)
        # A job's name may be a label of the experiment; a number is an index.
        if is_role or kind == "string":
            return TASK_TYPE if is_role else None
    if declaration.separator == "," or (kind == "string" and not declaration.separator):
        hosts = next((words for words, pattern in _HOSTS if pattern.fullmatch(name)), None)
        if hosts:
            return hosts
    if _INDEX.fullmatch(name):
        return TASK_INDEX if kind in ("integer", "string") and default in (None, "", 0, -1, "0") else ""
    others = (_COUNT, _OTHER, *(pattern for _, pattern in _HOSTS))
    return "" if any(pattern.fullmatch(name) for pattern in others) else None


def may_be_size(declaration: Declaration) -> bool:
    """Tell whether a flag that reads as a number of pods is one of the model or its input just as well."""
    return declaration.kind == "integer" and bool(_SIZE.fullmatch(_shorten_name(declaration)))


def explain_unfilled(declaration: Declaration) -> str:
    """Return why nothing fills in a flag that tells a place, and what to do about it."""
    name = _shorten_name(declaration)
    if declaration.separator and any(pattern.fullmatch(name) for _, pattern in _HOSTS):
        return _HOSTS_NOT_FILLED % declaration.option
    return _COUNT_NOT_FILLED if _COUNT.fullmatch(name) else _PLACE_NOT_FILLED


def _shorten_name(declaration: Declaration) -> str:
    """Return the name of a flag in words, with `ps` for a parameter server."""
    return re.sub(r"param(eter)?_servers?", "ps", "_".join(split_words(declaration.option)))
