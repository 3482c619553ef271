"""The addresses of the console's pages: /runs/local/NAME and /runs/cluster/NAMESPACE/RELEASE/CHART. Pure."""

from __future__ import annotations

from urllib.parse import quote

from trainchart.console.views import RunRef
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


def parse_cluster(namespace: str, release: str, chart: str) -> RunRef | None:
    """Return the run on the cluster; None where no object can have these names."""
    parts = (namespace, release, chart)
    is_plain = all(part and part.isascii() and set(part) <= _CHARACTERS for part in parts)
    return RunRef(CLUSTER, *parts) if is_plain else None


_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")
