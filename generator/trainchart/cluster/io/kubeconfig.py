"""Finds how to reach a cluster: the kubeconfig files of KUBECONFIG merged as kubectl does, or a pod's own account.

Gives plain data; what a client makes of it is kubernetes_api.py's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainchart.errors import ClusterError, ToolError
from trainchart.host.files import read_bytes, read_text
from trainchart.kubernetes_yaml import YamlError, parse_mapping

DEFAULT_FILE = "~/.kube/config"
POD_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_FILES = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
    "context": (),
}
"""Keys that hold paths, relative to the kubeconfig that says them."""
FILES = tuple(key for keys in _FILES.values() for key in keys)
_FILE_LIMIT = 1024 * 1024
"""Bytes of a certificate, key or token."""
_NOT_SUPPORTED = {"cluster": ("tls-server-name",), "user": ("as", "as-uid", "as-groups", "as-user-extra")}
"""Left out silently, these would make us another user, or trust another server."""
_HINT = "set KUBECONFIG to a kubeconfig, or put one in ~/.kube/config"
_REPAIR = "correct it, or set KUBECONFIG to another one"


@dataclass(frozen=True)
class Entry:
    """One context with the cluster and the user that it names, as kubeconfig sections."""

    context_name: str
    namespace: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]


def read_entry(context: str, environment: Mapping[str, str]) -> Entry:
    """Return the context named, or the current one; a pod without a kubeconfig uses its own account.

    Raises:
        ClusterError: there is no such context, or it cannot be used.
    """
    named = [part for part in environment.get("KUBECONFIG", "").split(":") if part]
    files = [_expand(name) for name in named or [DEFAULT_FILE]]
    present = [file for file in files if file.exists()]
    if not present:
        if not named and not context and (POD_ACCOUNT / "token").is_file():
            return _read_pod_account(environment)
        raise ClusterError(f"there is no kubeconfig: {', '.join(map(str, files))} is not there", hint=_HINT)
    return _select(_merge([_read(file) for file in present]), context, present)


def require_files(entry: Entry) -> None:
    """Raise ClusterError for a file of the kubeconfig that has no end: who reads it below knows no limit."""
    named = {key: Path(str(part[key])) for part in (entry.cluster, entry.user) for key in FILES if part.get(key)}
    for key, path in named.items():
        try:
            if path.exists():
                read_bytes(path, limit=_FILE_LIMIT)
        except ToolError as error:
            raise ClusterError(f"{key} of the kubeconfig: {error.message}", hint=error.hint) from error


def is_configured(environment: Mapping[str, str]) -> bool:
    """Return whether anything says how to reach a cluster."""
    named = [part for part in environment.get("KUBECONFIG", "").split(":") if part]
    files = [_expand(name) for name in named or [DEFAULT_FILE]]
    return any(file.exists() for file in files) or (POD_ACCOUNT / "token").is_file()


def _expand(name: str) -> Path:
    """Return the path that `name` means; one that begins with an unknown user's home stays as it is."""
    return Path(os.path.expanduser(name))  # noqa: PTH111  # Path's own raises where there is no such user


def _read_pod_account(environment: Mapping[str, str]) -> Entry:
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ClusterError("this pod has a service account token, but KUBERNETES_SERVICE_HOST is not set", hint=_HINT)
    namespace = POD_ACCOUNT / "namespace"
    return Entry(
        context_name="(this pod)",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        cluster={
            "server": f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            "certificate-authority": str(POD_ACCOUNT / "ca.crt"),
        },
        user={"tokenFile": str(POD_ACCOUNT / "token")},
    )


def _read(file: Path) -> Mapping[str, Any]:
    try:
        document = parse_mapping(read_text(file))
    except (ToolError, YamlError) as error:
        raise ClusterError(f"the kubeconfig {file} cannot be read: {error}", hint=_REPAIR) from error
    return {**document, "sections": {kind: dict(_named_sections(document, kind, file)) for kind in _FILES}}


def _named_sections(document: Mapping[str, Any], kind: str, file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    items = document.get(f"{kind}s") or ()
    if not isinstance(items, list | tuple):
        raise ClusterError(f"the kubeconfig {file} is damaged: {kind}s is not a list", hint=_REPAIR)
    for item in items:
        if not isinstance(item, Mapping) or not isinstance(item.get(kind) or {}, Mapping):
            raise ClusterError(f"the kubeconfig {file} is damaged: one of its {kind}s is not a mapping", hint=_REPAIR)
        section = dict(item.get(kind) or {})
        for key in _FILES[kind]:
            if section.get(key):
                section[key] = str(file.parent / str(section[key]))
        yield str(item.get("name", "")), section


def _merge(files: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return one kubeconfig: the first file to say something wins."""
    merged: dict[str, Any] = {kind: {} for kind in _FILES}
    for file in files:
        for kind in _FILES:
            merged[kind] = {**file["sections"][kind], **merged[kind]}
    current = (str(file["current-context"]) for file in files if file.get("current-context"))
    return {**merged, "current": next(current, "")}


def _select(config: Mapping[str, Any], wanted: str, files: list[Path]) -> Entry:
    name = wanted or config["current"]
    where = ":".join(map(str, files))
    known = ", ".join(sorted(config["context"])) or "none"
    if not name:
        raise ClusterError(f"{where} has no current context", hint=f"name one with --context; it has: {known}")
    if name not in config["context"]:
        raise ClusterError(f"{where} has no context {name!r}", hint=f"it has: {known}")
    context = config["context"][name]
    found: dict[str, Mapping[str, Any]] = {}
    for kind in ("cluster", "user"):
        reference = str(context.get(kind) or "")
        if reference and reference not in config[kind]:
            raise ClusterError(f"the context {name!r} names the {kind} {reference!r}, which {where} does not contain")
        found[kind] = config[kind].get(reference, {})
        for key in _NOT_SUPPORTED[kind]:
            if found[kind].get(key):
                raise ClusterError(
                    f"the {kind} {reference!r} of the context {name!r} sets {key!r}, which trainchart does not support",
                    hint="use a context without it",
                )
    if not found["cluster"].get("server"):
        raise ClusterError(f"the context {name!r} names no cluster with a server")
    return Entry(name, str(context.get("namespace") or "default"), found["cluster"], found["user"])
