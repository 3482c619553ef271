"""Command lines `arena submit tfjob …` (kubeflow/arena): flags as the pods that arena would make of them. Pure.

Flags: https://github.com/kubeflow/arena/blob/master/docs/cli/arena_submit_tfjob.md, and their older names in camelCase.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trainchart.errors import Problem, ToolError
from trainchart.importing.amounts import GPU
from trainchart.importing.ledger import Ledger, Origin, Place
from trainchart.importing.training import RolePods, Training
from trainchart_runtime.cluster import CHIEF, EVALUATOR, PS, WORKER

KIND = "command line of arena"
_START = re.compile(r"^[ \t]*(?:[$#>][ \t]+)?(?:sudo[ \t]+)?(?:\S*/)?arena(?=[ \t\\])", re.MULTILINE)
_TO_END = re.compile(
    r"""(?:[^\\'"\n]++|\\.|'[^']*+(?:'|\Z)|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))*+\\?""",
    re.DOTALL,
)
"""A command line: a line end in quotes or behind a backslash is part of it, and a quote that is not closed goes on."""
_LINE_LIMIT = 65_536
"""Characters of one command line."""
_MOST_LINES = 200
"""Command lines of one input: each may go on to the end of it."""
_SWITCHES = {
    *("chief", "evaluator", "gang", "rdma", "tensorboard", "queue", "help", "pprof", "trace"),
    *("host-network", "host-ipc", "host-pid"),
}
_SHORT = {
    "-a": "annotation",
    "-d": "data",
    "-e": "env",
    "-l": "label",
    "-n": "namespace",
    "-p": "priority",
    "-h": "help",
}
_SILENT = {
    "loglevel",
    "config",
    "arena-namespace",
    "pprof",
    "trace",
    "help",
    "name",
    "shell",
    "workers",
    "chief",
    "evaluator",
}
_NODE_RIGHTS = "the Pod Security level restricted, which charts follow, forbids it"
_REASONS = {
    "sync-mode": (
        "code is part of the image",
        "get the code into a folder of your project, and import again with --code FOLDER",
    ),
    "sync-source": (
        "code is part of the image",
        "get the code into a folder of your project, and import again with --code FOLDER",
    ),
    "sync-image": ("code is part of the image", ""),
    "config-file": (
        "a chart takes no files from your machine",
        "create a ConfigMap from it, and mount it with extraVolumes and extraVolumeMounts",
    ),
    "gang": (
        "a chart creates no PodGroup by itself",
        "use Kueue (run.queue), or add a PodGroup to extraManifests (see docs/operations.md)",
    ),
    "queue": ("kube-queue does not know releases", "use Kueue: run: {queue: NAME}"),
    "role-sequence": ("all pods start at once, and programs wait for the peers that they need", ""),
    "ttl-after-finished": ("a finished run frees its pods at once, and keeps its verdict until helm uninstall", ""),
    "success-policy": (
        "a run succeeds when its chief or worker 0 does; under multi-worker-mirrored, when all workers do",
        "",
    ),
    "clean-task-policy": (
        "a finished run frees all pods and their GPUs",
        "to keep the logs of deleted pods, add a volume called logs",
    ),
    "host-network": (_NODE_RIGHTS, "set hostNetwork: true where RDMA needs it, and waive the check pod-security"),
    "host-ipc": (_NODE_RIGHTS, ""),
    "host-pid": (_NODE_RIGHTS, ""),
    "logdir": (
        "summaries go to the volume logs, or to checkpoints/logs",
        "let the program write to $(TRAINCHART_TENSORBOARD_DIR)",
    ),
    "namespace": ("a chart can be installed into any namespace", "helm install -n NAMESPACE"),
}
_ROLES = {WORKER: "worker", PS: "ps", CHIEF: "chief", EVALUATOR: "evaluator"}


@dataclass
class _Line:
    """One command line: its flags by their present names, in order, and the command that the job runs."""

    number: int
    flags: dict[str, list[str]] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)

    def last(self, name: str, default: str = "") -> str:
        return self.flags.get(name, [default])[-1]


def is_arena(text: str) -> bool:
    """Tell whether a text holds a command line that submits a job."""
    return any("submit" in line for _, line in _find_lines(text))


def read_arena(text: str, file: str) -> tuple[Training, ...]:
    """Return the training of each command line.

    Raises:
        ToolError: a command line cannot be read, or submits another kind of job.
    """
    found = [(number, line) for number, line in _find_lines(text) if "submit" in line]
    return tuple(_read_training(_parse(number, line, file), file) for number, line in found)


def _find_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each command line with the number of the line that it begins on.

    Raises:
        ToolError: there are more than _MOST_LINES.
    """
    for count, match in enumerate(_START.finditer(text)):
        if count == _MOST_LINES:
            raise ToolError(f"the input holds more than {_MOST_LINES} arena command lines", hint="import fewer at once")
        end = _TO_END.match(text, match.start(), match.start() + _LINE_LIMIT + 1)
        assert end is not None  # it matches an empty text, too
        yield text.count("\n", 0, match.start()) + 1, end[0]


def _parse(number: int, line: str, file: str) -> _Line:
    where = f"{file}:{number}"
    if len(line) > _LINE_LIMIT:
        what = f"{where}: the arena command line is longer than {_LINE_LIMIT} characters"
        raise ToolError(what, hint="check its quotes, and the backslashes at the ends of lines")
    try:
        words = shlex.split(re.sub(r"\\[ \t]*\r?\n", " ", line))
    except ValueError as error:
        problem = Problem(f"the arena command line cannot be read: {str(error).lower()}", where)
        raise ToolError(f"{file} cannot be imported", hint="check its quotes", problems=(problem,)) from error
    words = words[next(index for index, word in enumerate(words) if word.rpartition("/")[2] == "arena") + 1 :]
    found = _Line(number)
    plain = _read_flags(words, found)
    if plain[:1] != ["submit"] or plain[1:2] not in (["tfjob"], ["tf"]):
        given = " ".join(plain[:2])[:60]
        raise ToolError(
            f"{where}: arena {given} is not a TensorFlow job", hint="expected arena submit tfjob, or arena submit tf"
        )
    found.command = plain[2:]
    return found


def _read_flags(words: list[str], found: _Line) -> list[str]:
    """Take the flags out of the words of a command line, and return the rest."""
    plain: list[str] = []
    number = 0
    while number < len(words):
        word = words[number]
        number += 1
        if word == "--":
            return plain + words[number:]
        if not re.match(r"-[A-Za-z]|--[A-Za-z]", word):
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        flag = _SHORT.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.lstrip("-")).lower()
        if equals:
            pass
        elif flag in _SWITCHES or number >= len(words):
            value = "true"
        else:
            value = words[number]
            number += 1
        found.flags.setdefault(flag, []).append(value)
    return plain


def _read_training(line: _Line, file: str) -> Training:
    names: dict[Place, str] = {}
    ledger = Ledger(Origin(file, {(): line.number}, names))
    used: set[str] = set(_SILENT)
    replicas = _count_roles(line, ledger)
    pods = tuple(_read_role(role, count, line, names, used, ledger) for role, count in replicas.items())
    settings = _read_settings(line, names, used, ledger)
    for flag in line.flags:
        if flag not in used:
            place = _name(names, flag)
            is_default = (flag, line.last(flag)) == ("clean-task-policy", "Running")
            if is_default:
                ledger.carry(place, "the run controller, which frees all pods when the run is over")
            elif line.last(flag) != "false":
                ledger.leave(place, *_REASONS.get(flag, ("the model spec has no such setting", "")))
    ledger.note("TF_CONFIG comes from the launcher: a program that reads it needs no change")
    return Training(KIND, line.last("name"), (), pods, ledger, settings)


def _name(names: dict[Place, str], flag: str) -> Place:
    place: Place = (f"--{flag}",)
    names[place] = f"--{flag}"
    return place


def _number(line: _Line, flag: str, default: int, ledger: Ledger) -> int:
    text = line.last(flag)
    if re.fullmatch(r"[0-9]{1,6}", text):
        return int(text)
    if text:
        ledger.leave((f"--{flag}",), f"{text[:40]!r} is not a number")
    return default


def _count_roles(line: _Line, ledger: Ledger) -> dict[str, int]:
    counts = {
        CHIEF: int(line.last("chief", "false") != "false"),
        WORKER: _number(line, "workers", 1, ledger),
        PS: _number(line, "ps", 0, ledger),
        EVALUATOR: int(line.last("evaluator", "false") != "false"),
    }
    for role, count in counts.items():
        if count:
            ledger.carry(("--workers" if role == WORKER else f"--{role}",), f"roles.{role}.replicas")
    found = {role: count for role, count in counts.items() if count}
    return found if {WORKER, CHIEF} & found.keys() else {WORKER: 1, **found}


def _read_role(role: str, count: int, line: _Line, names: dict[Place, str], used: set[str], ledger: Ledger) -> RolePods:
    place: Place = (role,)
    inner: Place = (role, "containers", 0)
    own = "ps-image" if role == PS else "worker-image"
    container: dict[str, Any] = {"name": "tensorflow", "image": line.last(own) or line.last("image")}
    script = " ".join(line.command)
    if len(line.command) == 1 and re.fullmatch(r"'[^']*'|\"[^\"]*\"", script):
        script = script[1:-1]
    container["command"] = [line.last("shell", "sh"), "-c", script] if script.strip() else None
    resources = _read_resources(role, line, used, ledger)
    container["resources"] = resources
    container["env"] = [
        {"name": name, "value": value} for name, _, value in (pair.partition("=") for pair in line.flags.get("env", ()))
    ]
    pod: dict[str, Any] = {"containers": [container]}
    _read_scheduling(role, line, pod, used)
    _read_mounts(line, pod, container)
    if "image-pull-policy" in line.flags:
        container["imagePullPolicy"] = line.last("image-pull-policy")
    pod["imagePullSecrets"] = [{"name": name} for name in _split(line.flags.get("image-pull-secret", []))]
    if line.last("working-dir") not in ("", "/root"):
        container["workingDir"] = line.last("working-dir")
        used.add("working-dir")
    used |= {"image", "worker-image", "ps-image", "env", "data", "data-dir", "share-memory", "image-pull-policy"}
    used |= {"image-pull-secret", "worker-port", "ps-port", "chief-port", "ps"}
    names[(*inner, "command")] = "the command"
    names[(*inner, "image")] = f"--{own}" if line.last(own) else "--image"
    names[(*inner, "env")] = "--env"
    names[(*inner, "resources")] = f"--{_ROLES[role]}-cpu, --{_ROLES[role]}-memory and --gpus"
    names[(*inner, "volumeMounts")] = "--data and --data-dir"
    names[(*inner, "workingDir")] = "--working-dir"
    names[(*inner, "imagePullPolicy")] = "--image-pull-policy"
    names[(*place, "nodeSelector")] = "--selector"
    names[(*place, "tolerations")] = "--toleration"
    names[(*place, "priorityClassName")] = "--priority"
    names[(*place, "schedulerName")] = "--scheduler"
    names[(*place, "imagePullSecrets")] = "--image-pull-secret"
    return RolePods(role, count, pod, place)


def _read_resources(role: str, line: _Line, used: set[str], ledger: Ledger) -> dict[str, Any]:
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for resource in ("cpu", "memory"):
        for flag, amounts in ((f"{role}-{resource}", requests), (f"{role}-{resource}-limit", limits)):
            if line.last(flag):
                amounts[resource] = line.last(flag)
            used.add(flag)
    gpus = _number(line, "ps-gpus" if role == PS else "gpus", 0, ledger)
    used |= {"gpus", "ps-gpus", "device", "rdma"}
    if gpus:
        limits[GPU] = gpus
    devices = line.flags.get("device", []) if role != PS else []
    for name, _, count in (pair.partition("=") for pair in devices):
        limits[name] = int(count) if re.fullmatch(r"[0-9]{1,6}", count) else count
    if line.last("rdma", "false") != "false":
        limits["rdma/hca"] = requests["rdma/hca"] = 1
    return {"requests": requests, "limits": limits}


def _read_scheduling(role: str, line: _Line, pod: dict[str, Any], used: set[str]) -> None:
    own = f"{_ROLES[role]}-selector"
    pairs = _split(line.flags.get(own) or line.flags.get("selector", []))
    pod["nodeSelector"] = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    pod["tolerations"] = [_read_toleration(text) for text in _split(line.flags.get("toleration", []), ";")]
    pod["priorityClassName"] = line.last("priority")
    pod["schedulerName"] = line.last("scheduler")
    used |= {own, "selector", "toleration", "priority", "scheduler"}


def _read_toleration(text: str) -> dict[str, Any]:
    """Return what `all`, `KEY` or `KEY=VALUE:EFFECT,OPERATOR` tolerates."""
    if text == "all":
        return {"operator": "Exists"}
    pair, _, rest = text.partition(":")
    key, equals, value = pair.partition("=")
    effect, _, operator = rest.partition(",")
    operator = operator or ("Equal" if equals else "Exists")
    toleration = {"key": key, "operator": operator} | ({"value": value} if operator == "Equal" else {})
    return toleration | ({"effect": effect} if effect else {})


def _read_mounts(line: _Line, pod: dict[str, Any], container: dict[str, Any]) -> None:
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    for claim, _, path in (pair.partition(":") for pair in _split(line.flags.get("data", []))):
        volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": claim, "mountPath": path})
    for number, pair in enumerate(_split(line.flags.get("data-dir", []))):
        host, _, path = pair.partition(":")
        volumes.append({"name": f"node-{number}", "hostPath": {"path": host}})
        mounts.append({"name": f"node-{number}", "mountPath": path or host})
    if line.last("share-memory"):
        volumes.append({"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": line.last("share-memory")}})
        mounts.append({"name": "dshm", "mountPath": "/dev/shm"})
    pod["volumes"], container["volumeMounts"] = volumes, mounts


def _split(values: list[str], separator: str = ",") -> list[str]:
    return [part.strip() for value in values for part in value.split(separator) if part.strip()]


def _read_settings(line: _Line, names: dict[Place, str], used: set[str], ledger: Ledger) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    run: dict[str, Any] = {}
    for flag, key in (("running-timeout", "activeDeadline"), ("starting-timeout", "startDeadline")):
        if line.last(flag):
            run[key] = line.last(flag)
            ledger.carry(_name(names, flag), f"run.{key}")
        used.add(flag)
    if line.last("retry"):
        run["maxRestarts"] = _number(line, "retry", 3, ledger)
        ledger.carry(_name(names, "retry"), "run.maxRestarts, which counts per pod")
    if line.last("tensorboard", "false") != "false":
        board = {"enabled": True} | (
            {"image": line.last("tensorboard-image")} if line.last("tensorboard-image") else {}
        )
        settings["tensorboard"] = board
        ledger.carry(_name(names, "tensorboard"), "tensorboard.enabled")
    for flag, key in (("label", "commonLabels"), ("annotation", "commonAnnotations")):
        pairs = {name: value for name, _, value in (pair.partition("=") for pair in line.flags.get(flag, ()))}
        if pairs:
            settings[key] = pairs
            ledger.carry(_name(names, flag), key)
    used |= {"retry", "tensorboard", "tensorboard-image", "label", "annotation"}
    if line.last("working-dir") == "/root":
        used.add("working-dir")
    return settings | ({"run": run} if run else {})
