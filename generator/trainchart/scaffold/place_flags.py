"""Flags that tell a process its place in the cluster: which ones the launcher fills in, and which nothing can. Pure.

A place is another one in every pod, so such a flag never becomes a hyperparameter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    "it takes a list of hosts, and the launcher fills them in as one comma-separated string: "
    "let %s take one string, and split it at the commas"
)
_ALL_HOSTS_NOT_FILLED = (
    "it looks like a list of hosts, and the launcher has one for each role: let the program read PS_HOSTS and "
    "WORKER_HOSTS, which are in the environment, or add the one that it means to code.command"
)
_ROLES_NOT_FILLED = (
    "it takes a role as %s, and the launcher says chief, worker, ps or evaluator: let it accept those, and give it "
    f"{TASK_TYPE} in code.command"
)
_LEADER_NOT_FILLED = (
    "it looks like a pod's place in the cluster, which differs from pod to pod: let the program compare TASK_TYPE and "
    "TASK_INDEX, which are in the environment; the leader is the chief, or worker 0 where there is no chief"
)
_LOCAL_NOT_FILLED = (
    "it looks like a pod's place in the cluster, but counts the processes of one machine: "
    "a pod runs one, so leave it at 0"
)
_ADDRESS_NOT_FILLED = (
    "it looks like a pod's place in the cluster, the address of one pod: let the program take it from TF_CONFIG, "
    f"or add a variable of the launcher to code.command, such as {WORKER_HOSTS}, which starts with worker 0"
)
_ROLES = ("ps", "worker", "chief", "master", "evaluator")
_ROLE_CHOICES = {*_ROLES, "eval", "client", "server", "coordinator", "scheduler", "leader"}
_LIST = r"(_?(hosts?|servers?|lists?|address(es)?|addrs?|nodes|endpoints|ips|urls|machines|specs?))"
_HOSTS = (
    (PS_HOSTS, re.compile(rf"ps{_LIST}?")),
    (WORKER_HOSTS, re.compile(rf"(workers|worker{_LIST}|workers{_LIST})")),
    (CHIEF_HOSTS, re.compile(rf"(chief|master){_LIST}")),
)
_TYPE = re.compile(
    r"job|job_name|(my|this|own)_(role|type|job)|role|role_name|(task|job|node|worker|process|replica|server|tf|machine)_(type|role)"
)
_TASK = r"(task|worker|node|process|proc|replica|machine|job|server|host|client|pod|trainer|member|peer)"
_NUMBER = r"(index|idx|id|num|no|number|rank|ordinal)"
_INDEX = re.compile(
    rf"rank|task|{_TASK}_?{_NUMBER}|(my|this|own|self)_?({_TASK}_?)?{_NUMBER}|(my|this|own)_task"
    r"|(global|world|cluster|dist|distributed|mpi|group|process_group)_rank|rank_(id|idx|index)"
    rf"|{_NUMBER}_(of|in)_(the_|this_)?({_TASK}|cluster)"
)
_VAGUE_INDEX = re.compile(rf"{_NUMBER}|n|i|me|{_TASK}|position|slot|instance")
"""Names of a number that is a place only beside a flag for the role, or by its help."""
_INDEX_HELP = re.compile(
    rf"\b{_TASK}('s|s')? {_NUMBER}\b|\b{_NUMBER} (of|for) (this|the|each|a|an|current|my)( current)? {_TASK}\b"
    rf"|\b(which|this) {_TASK}\b",
    re.IGNORECASE,
)
_VAGUE_TYPE = re.compile(r"type|kind|mode|name|me|role_type|which|what")
_TYPE_HELP = re.compile(
    r"\b(ps|parameter[ _]server)\b.*\bworkers?\b|\bworkers?\b.*\b(ps|parameter[ _]server|chief)\b", re.I
)
_VAGUE_HOSTS = re.compile(r"nodes?|servers?|machines?|members|tasks|peers|(addresse|addr|endpoint|ip|url|neighbou?r)s")
_ALL_HOSTS = re.compile(
    r"(all_|cluster_)?host_?(list|s|names)|hostnames|(node|machine|server|peer)_?list|peers|all_nodes"
)
_HOSTS_HELP = re.compile(r"\bhosts?(names?)?\b|\b(ip|ips)\b|\baddress(es)?\b|\bhost:port\b", re.IGNORECASE)
_COUNT_HELP = re.compile(r"\b(hosts|machines|workers|pods|servers|processes|computers|cluster)\b", re.IGNORECASE)
_HOST = re.compile(r"[\w.-]+:\d{2,5}(,[\w.-]+:\d{2,5})*")
_COUNT = re.compile(
    r"(num|n|number_of|total|count)_?(workers?|ps|nodes|hosts|tasks|replicas|processes|procs|proc|machines|servers)(_.*)?"
    r"|n(nodes|proc|workers|procs|hosts)(_per_node)?|hosts|world_?size|cluster_?size|workers?"
    r"|(worker|ps|node|task|replica|host|server|machine|process)s?_(count|num|number|size)"
)
_SIZE = re.compile(
    r"(num|n|number_of|total)_?(nodes|workers?|tasks|processes|procs)|workers?|nodes?_(count|num|number|size)"
)
"""Counts that are of a layer's nodes or a loader's workers in a program that is not distributed."""
_SHARD = re.compile(r"(data_|input_)?shard(_(index|idx|id|rank))?")
_SHARDS = re.compile(r"(num|n|number_of|total|count)_?shards|shards|shard_?(count|num|number|size)s?")
"""Counts that are of pods beside the index of a shard, and else of files."""
_LOCAL = re.compile(rf"local_?({_TASK}_?)?{_NUMBER}")
_LEADER = re.compile(r"is_(the_)?(chief|master|worker|ps|leader|main|coordinator|evaluator)|(chief|leader)")
_OTHER = re.compile(
    r"(worker|ps|node|task|replica|host|server|machine|process)s?_(port|name|ip|host|addr|address)"
    r"|(chief|master|coordinator|scheduler|leader)(_(addr|address|host|ip|port|url|uri))?"
    r"|(current|this|my|local|own)_(hosts?|nodes?|workers?|tasks?|ip|address|addr)"
    r"|(controller|rendezvous|rdzv|grpc)_(hosts?|ip|addr|address|endpoint|target|url|port)"
    r"|cluster(_(spec|config|def))?|tf_cluster|host_?file|grpc_server"
    r"|dist_url|init_method|server_(target|address|addr)"
)
_ADDRESS = re.compile(
    r"(chief|master|coordinator|scheduler|leader)(_(addr|address|host|ip|url|uri))?|dist_url|init_method|grpc_server"
    r"|(controller|rendezvous|rdzv|grpc)_(hosts?|ip|addr|address|endpoint|target|url)|server_(target|address|addr)"
)


def fill_places(declarations: Sequence[Declaration]) -> list[str | None]:
    """Return what `fill_place` does for each flag of a program, where a role's flag shows what one beside it is."""
    names = [_shorten_name(flag) for flag in declarations]
    has_role = any(map(_is_role, declarations, names))
    has_shard = any(map(_SHARD.fullmatch, names))
    places = [fill_place(flag, has_role=has_role) if flag.option.startswith("-") else None for flag in declarations]
    return ["" if has_shard and _SHARDS.fullmatch(name) else place for name, place in zip(names, places, strict=True)]


def fill_place(declaration: Declaration, *, has_role: bool = False) -> str | None:
    """Return what the command gives a flag that tells a place: empty where nothing can, None for all other flags."""
    name = _shorten_name(declaration)
    name = "ps_hosts" if name in ("parameterservers", "paramservers") else name
    kind, default = declaration.kind, declaration.default
    if name == "tf_config" and kind == "string":
        return f"$({contract.TF_CONFIG})"
    if _is_role(declaration, name):
        choices = set(declaration.choices)
        return TASK_TYPE if choices <= {*_ROLES, ""} or choices >= {"ps", "worker"} else ""
    if (_TYPE.fullmatch(name) or name == "task") and kind == "string":
        # A job's name may be a label of the experiment; a number is an index.
        return None
    if declaration.separator == "," or (kind == "string" and not declaration.separator):
        hosts = next((words for words, pattern in _HOSTS if pattern.fullmatch(name)), None)
        if hosts or (name == "worker" and _HOST.fullmatch(str(default))):
            return hosts or WORKER_HOSTS
    if _INDEX.fullmatch(name) or (has_role and kind == "integer" and _VAGUE_INDEX.fullmatch(name)):
        return TASK_INDEX if kind in ("integer", "string") and default in (None, "", 0, -1, "0") else ""
    return "" if _is_unfilled(declaration, name) else None


def _is_role(declaration: Declaration, name: str) -> bool:
    """Tell whether a flag takes the role of a pod: by its choices, else by its name or help and its default."""
    if declaration.kind != "string":
        return False
    choices = _role_choices(declaration)
    if choices:
        is_known = choices <= _ROLE_CHOICES and not choices.isdisjoint(("ps", "worker"))
        return len(choices) > 1 and (is_known or choices >= {"ps", "worker"})
    is_named = bool(_TYPE.fullmatch(name)) or name == "task"
    is_shown = bool(_TYPE_HELP.search(declaration.help_text)) or declaration.default in _ROLES
    is_named = is_named or (is_shown and bool(_VAGUE_TYPE.fullmatch(name)))
    return is_named and (not declaration.default or declaration.default in _ROLES)


def _is_unfilled(declaration: Declaration, name: str) -> bool:
    """Tell whether a flag looks like a place that the launcher has no variable for."""
    if _is_hosts(declaration, name):
        return True
    may_be_index = declaration.kind in ("integer", "string") and _VAGUE_INDEX.fullmatch(name)
    if may_be_index and _INDEX_HELP.search(declaration.help_text):
        return True
    if name in ("nodes", "machines", "servers") and declaration.kind == "integer":
        return bool(_COUNT_HELP.search(declaration.help_text))
    others = (_COUNT, _SHARD, _LOCAL, _LEADER, _OTHER, *(pattern for _, pattern in _HOSTS))
    return any(pattern.fullmatch(name) for pattern in others)


def _is_hosts(declaration: Declaration, name: str) -> bool:
    """Tell whether a flag takes hosts of any role."""
    if declaration.kind != "string" and not declaration.separator:
        return False
    is_shown = _HOSTS_HELP.search(declaration.help_text) or _HOST.fullmatch(str(declaration.default))
    return bool(_ALL_HOSTS.fullmatch(name) or (_VAGUE_HOSTS.fullmatch(name) and is_shown))


def shown_roles(declarations: Sequence[Declaration]) -> set[str]:
    """Return the roles that a flag for the role may take, as far as its choices say them."""
    return {role for flag in declarations if _is_role(flag, _shorten_name(flag)) for role in _role_choices(flag)}


def _role_choices(declaration: Declaration) -> set[str]:
    words = {"".join(split_words(choice)) for choice in declaration.choices if choice}
    return {"ps" if word == "parameterserver" else word for word in words}


def may_be_size(declaration: Declaration) -> bool:
    """Tell whether a flag that reads as a number of pods is one of the model or its input just as well."""
    return declaration.kind == "integer" and bool(_SIZE.fullmatch(_shorten_name(declaration)))


def explain_unfilled(declaration: Declaration) -> str:
    """Return why nothing fills in a flag that tells a place, and what to do about it."""
    name = _shorten_name(declaration)
    if declaration.separator and any(pattern.fullmatch(name) for _, pattern in _HOSTS):
        return _HOSTS_NOT_FILLED % declaration.option
    if _is_role(declaration, name):
        return _ROLES_NOT_FILLED % ", ".join(declaration.choices)
    if _is_hosts(declaration, name):
        return _ALL_HOSTS_NOT_FILLED
    is_count = declaration.kind == "integer" and name in ("nodes", "machines", "servers")
    if is_count or _COUNT.fullmatch(name) or _SHARDS.fullmatch(name):
        return _COUNT_NOT_FILLED
    if _LOCAL.fullmatch(name):
        return _LOCAL_NOT_FILLED
    if _LEADER.fullmatch(name) and (declaration.kind != "string" or name.startswith("is_")):
        return _LEADER_NOT_FILLED
    return _ADDRESS_NOT_FILLED if _ADDRESS.fullmatch(name) else _PLACE_NOT_FILLED


def _shorten_name(declaration: Declaration) -> str:
    """Return the name of a flag in words, with `ps` for a parameter server."""
    return re.sub(r"param(eter)?_servers?", "ps", "_".join(split_words(declaration.option)))
