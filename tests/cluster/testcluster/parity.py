"""What a pod's container is on a cluster and what stands for it in a local run, and where the two may differ: pure.

Both sides become flat tables, place → text. The local one is translated by the maps of paths and addresses that
`trainchart run` prints, and by nothing else; whatever then differs must be in ALLOWED.
"""

from __future__ import annotations

import difflib
import enum
import fnmatch
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lightkube.resources.core_v1 import Pod

from trainchart_runtime.contract import TF_CONFIG

from .stand_in import Report


class Side(enum.Enum):
    """In which of the two a place has something to say."""

    POD = "only in the pod"
    HERE = "only in the local run"
    BOTH = "different values"


@dataclass(frozen=True)
class Allowed:
    """One difference that is meant, with its reason."""

    place: str
    """Pattern of shell kind; places are `program.environment.PATH`, `launcher.argv.0`, `mounts./tmp.kind`."""
    side: Side
    reason: str
    pod: str = ".*"
    """Regular expression for the whole value in the pod."""
    here: str = ".*"
    """The same for the translated value of the local run."""


_IMAGE = "what the image sets; locally the caller's own Python and variables stand for the image"
_RUNTIME = "mounted by container runtime and kubelet into every container, never by a chart"
_KUBELET = "set by the kubelet in every container; programs that look for a Kubernetes API find none here, rightly"
_FIELD = "a field of a pod that exists: another address, node or uid by its nature"

ALLOWED = (
    Allowed("*.environment.PATH", Side.BOTH, _IMAGE, pod="/opt/venv/bin:.*", here=".+/bin:.*"),
    Allowed("*.environment.HOME", Side.BOTH, _IMAGE, pod="/tmp"),
    Allowed("*.environment.PYTHONDONTWRITEBYTECODE", Side.POD, _IMAGE + "; bytecode may be cached beside it", pod="1"),
    Allowed("*.environment.LANG", Side.HERE, _IMAGE),
    Allowed("program.environment.LC_CTYPE", Side.POD, "Python sets it where there is no LANG (PEP 538)", pod="C.UTF-8"),
    Allowed("*.environment.HOSTNAME", Side.POD, _KUBELET),
    Allowed("*.environment.KUBERNETES_*", Side.POD, _KUBELET),
    Allowed("*.environment.A_NODE", Side.BOTH, _FIELD, pod="[a-z0-9.-]+", here="localhost"),
    Allowed("*.environment.TRAINCHART_NODE_NAME", Side.BOTH, _FIELD, pod="[a-z0-9.-]+", here="localhost"),
    Allowed("*.environment.TRAINCHART_POD_UID", Side.BOTH, _FIELD, pod="[0-9a-f-]{36}", here="local-.+"),
    Allowed("*.environment.AN_ADDRESS", Side.BOTH, _FIELD, pod=r"[0-9a-f.:]+", here=r"127\.0\.0\.1"),
    Allowed("*.environment.A_UID", Side.BOTH, _FIELD, pod="[0-9a-f-]{36}", here="local-.+"),
    Allowed("*.environment.A_LIMIT", Side.POD, "there are no limits here; the run's notes say that it stays unset"),
    Allowed(
        "*.environment.CUDA_VISIBLE_DEVICES",
        Side.HERE,
        "hides GPUs from a process as NVIDIA_VISIBLE_DEVICES=void hides them from a container",
        here="-1",
    ),
    *(
        Allowed(
            f"program.environment.{name}",
            Side.BOTH,
            "names every task: here all have one address",
            pod=r"localhost,127\.0\.0\.1(,.+)",
            here=r"localhost,127\.0\.0\.1",
        )
        for name in ("no_proxy", "no_grpc_proxy")
    ),
    Allowed("*.environment.TRAINCHART_ADDRESSES", Side.HERE, "the printed map of addresses, for the launcher"),
    Allowed("*.environment.TRAINCHART_LOCAL_POD", Side.HERE, "marks the processes of a run, so that none is left over"),
    Allowed("*.environment.TRAINCHART_LOCAL_READ_ONLY", Side.HERE, "where a pod may not write"),
    Allowed("*.environment.TRAINCHART_LOCAL_WRITABLE", Side.HERE, "where a pod may"),
    Allowed("*.environment.TRAINCHART_LOCAL_WRITES", Side.HERE, "notes what the program writes where a pod may not"),
    Allowed("*.environment.PYTHONPATH", Side.HERE, "the same"),
    Allowed("launcher.environment.TRAINCHART_LOCAL_PARENT", Side.HERE, "which process the launcher must not outlive"),
    Allowed("mounts.*.read-only", Side.BOTH, "a process has no mounts of its own to protect", pod="true", here="false"),
    *(
        Allowed(f"mounts.{path}.{what}", Side.POD, _RUNTIME, pod="runtime|true|false")
        for path in ("/", "/proc*", "/sys*", "/dev", "/dev/pts", "/dev/mqueue", "/etc/host*", "/etc/resolv.conf")
        for what in ("kind", "read-only")
    ),
)


@dataclass(frozen=True)
class Maps:
    """What `trainchart run` prints about one pod."""

    paths: Mapping[str, str]
    """Container path → path here."""
    addresses: Mapping[str, str]
    """ "host:port" of the cluster → "host:port" here."""

    def translate(self, text: str) -> str:
        """Put the cluster's words in place of the local ones, the longest first."""
        here = {local: there for there, local in (*self.paths.items(), *self.addresses.items())}
        words = "|".join(re.escape(local) for local in sorted(here, key=len, reverse=True))
        return re.sub(rf"(?:{words})(?![\w.-])", lambda found: here[found[0]], text)


def table_of_pod(report: Report, pod: Pod) -> dict[str, str]:
    """Return the table of what a pod's program has found, its mounts explained by the pod's live specification."""
    assert pod.spec
    container = next(container for container in pod.spec.containers if container.name == "training")
    volumes = {volume.name: volume.to_dict() for volume in pod.spec.volumes or []}
    mounted = {fields[4]: fields for fields in report.given["mounts"]}
    table = _table_of_processes(report)
    for path, fields in mounted.items():
        table[f"mounts.{path}.kind"] = "runtime"
        table[f"mounts.{path}.read-only"] = _boolean("ro" in fields[5].split(","))
    # The kubelet makes this one, yet the chart names it.
    del table[f"mounts.{container.terminationMessagePath}.read-only"]
    table[f"mounts.{container.terminationMessagePath}.kind"] = "termination-message"
    for mount in container.volumeMounts or []:
        if mount.mountPath not in mounted:
            raise ValueError(f"{mount.mountPath} is not mounted in the container")
        sub_path = mount.subPath or _expand(mount.subPathExpr or "", report.given["launcher"]["environment"])
        if not mounted[mount.mountPath][3].endswith(sub_path):
            raise ValueError(f"{mount.mountPath} shows {mounted[mount.mountPath][3]}, not the folder {sub_path}")
        table |= _describe_volume(mount.mountPath, volumes[mount.name], sub_path)
    return table


def table_of_process(
    report: Report, planned: Mapping[str, Any], claims: Mapping[str, str], maps: Maps
) -> dict[str, str]:
    """Return the table of what a local process has found; `planned` and `claims` are from the run's --dry-run."""
    table = {place: maps.translate(text) for place, text in _table_of_processes(report).items()}
    table = {maps.translate(place) if place.startswith("files.") else place: text for place, text in table.items()}
    for path, folder in planned["paths"].items():
        table |= _describe_place(path, folder, planned, claims)
    return table


def _table_of_processes(report: Report) -> dict[str, str]:
    table = {f"files.{path}": content for path, content in report.given["files"].items()}
    for name in ("launcher", "program"):
        process = report.given[name]
        table[f"{name}.workingDirectory"] = process["workingDirectory"]
        table |= {f"{name}.argv.{number}": word for number, word in enumerate(process["argv"])}
        table |= {f"{name}.environment.{variable}": text for variable, text in process["environment"].items()}
    return table


def _expand(expression: str, environment: Mapping[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], expression)


def _describe_volume(path: str, volume: Mapping[str, Any], sub_path: str) -> dict[str, str]:
    claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
    kind = "claim" if claim else "scratch" if "emptyDir" in volume else "files"
    return {
        f"mounts.{path}.kind": kind,
        **({f"mounts.{path}.claim": claim} if claim else {}),
        **({f"mounts.{path}.sub-path": sub_path} if sub_path else {}),
    }


def _describe_place(path: str, folder: str, planned: Mapping[str, Any], claims: Mapping[str, str]) -> dict[str, str]:
    """Say what a mount has become here, from where it lies. Places of the image's own are no mounts."""
    if path == "/dev/termination-log":
        return {f"mounts.{path}.kind": "termination-message"}
    place = {f"mounts.{path}.read-only": "false"}
    for claim, claim_folder in claims.items():
        if folder == claim_folder or folder.startswith(f"{claim_folder}/"):
            sub_path = folder.removeprefix(claim_folder).removeprefix("/")
            return place | _describe_volume(path, {"persistentVolumeClaim": {"claimName": claim}}, sub_path)
    volumes = f"{planned['log'].rpartition('/logs/')[0]}/pods/{planned['pod']}/volumes/"
    if not folder.startswith(volumes):
        return {}
    sub_path = folder.removeprefix(volumes).partition("/")[2]
    volume = volumes + folder.removeprefix(volumes).partition("/")[0]
    holds_files = any(file.startswith(f"{volume}/") for file in planned["files"])
    return place | _describe_volume(path, {"configMap": {}} if holds_files else {"emptyDir": {}}, sub_path)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def read_printed_addresses(lines: Iterable[str]) -> dict[str, str]:
    """Read the map of addresses that a local run prints when it starts."""
    found = (re.fullmatch(r" +(\S+:\d+) +(127\.0\.0\.1:\d+)", line.rstrip()) for line in lines)
    return {match[1]: match[2] for match in found if match}


@dataclass(frozen=True)
class Comparison:
    """How two tables differ."""

    unexpected: str
    """A readable diff, empty where every difference is allowed."""
    used: frozenset[Allowed]
    """What of the allowed there was."""


def compare_tables(pod: Mapping[str, str], here: Mapping[str, str], allowed: Collection[Allowed]) -> Comparison:
    """Compare two tables; two TF_CONFIGs are equal if they mean the same."""
    used: set[Allowed] = set()
    lines: list[str] = []
    for place in sorted({*pod, *here}):
        there, local = pod.get(place), here.get(place)
        if _is_same(place, there, local):
            continue
        rule = next((rule for rule in allowed if _covers(rule, place, there, local)), None)
        if rule:
            used.add(rule)
            continue
        diff = difflib.ndiff(_lines_of(place, there), _lines_of(place, local))
        lines += [line for line in diff if line.startswith(("-", "+"))]
    return Comparison("\n".join(lines), frozenset(used))


def _covers(rule: Allowed, place: str, there: str | None, local: str | None) -> bool:
    side = Side.POD if local is None else Side.HERE if there is None else Side.BOTH
    return (
        rule.side is side
        and fnmatch.fnmatchcase(place, rule.place)
        and (there is None or re.fullmatch(rule.pod, there, re.DOTALL) is not None)
        and (local is None or re.fullmatch(rule.here, local, re.DOTALL) is not None)
    )


def _is_same(place: str, there: str | None, local: str | None) -> bool:
    if there is not None and local is not None and place.endswith(f".{TF_CONFIG}"):
        return bool(json.loads(there) == json.loads(local))
    return there == local


def _lines_of(place: str, text: str | None) -> list[str]:
    return [] if text is None else [f"{place} = {line}" for line in text.split("\n")]
