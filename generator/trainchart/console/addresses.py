"""The addresses of pages: /runs/local/NAME, /runs/cluster/NAMESPACE/RELEASE/CHART, /servers/NAMESPACE/RELEASE. Pure."""

from __future__ import annotations

from urllib.parse import quote

from trainchart.console.views import RunRef, ServerRef
from trainchart.reports.report import CLUSTER, LOCAL


def address_of(run: RunRef) -> str:
    """Return the path of a run's page."""
    parts = [run.origin, run.release] if run.origin == LOCAL else list(run)
    return "/runs/" + "/".join(quote(part, safe="") for part in parts)


def key_of(run: RunRef) -> str:
    """Return the name of a run in queries: local/NAME or cluster/NAMESPACE/RELEASE/CHART."""
    return "/".join([run.origin, run.release] if run.origin == LOCAL else run)


def parse_key(key: str) -> RunRef | None:
    """Return the run that a key names; None where none can have it."""
    origin, *parts = key.split("/")
    if origin == LOCAL and len(parts) == 1:
        return parse_local(parts[0])
    return parse_cluster(*parts) if origin == CLUSTER and len(parts) == 3 else None


def parse_local(name: str) -> RunRef | None:
    """Return the local run that a decoded part of a path names; None where no run can have that name."""
    is_name = name not in ("", ".", "..") and "/" not in name and "\0" not in name
    return RunRef(LOCAL, "", name, "") if is_name else None


def address_of_server(server: ServerRef) -> str:
    """Return the path of a model server's page."""
    return "/servers/" + "/".join(quote(part, safe="") for part in server)


def parse_server(namespace: str, name: str) -> ServerRef | None:
    """Return the model server that decoded parts of a path name; None where no object can have these names."""
    return ServerRef(namespace, name) if _is_plain(namespace, name) else None


def parse_cluster(namespace: str, release: str, chart: str) -> RunRef | None:
    """Return the run on the cluster; None where no object can have these names."""
    return RunRef(CLUSTER, namespace, release, chart) if _is_plain(namespace, release, chart) else None


def _is_plain(*parts: str) -> bool:
    return all(part.strip(".") and part.isascii() and set(part) <= _CHARACTERS for part in parts)


_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")
