"""The addresses of the console's pages: /runs/local/NAME and /runs/cluster/NAMESPACE/RELEASE/CHART. Pure."""

from __future__ import annotations

from urllib.parse import quote

from trainchart.console.views import RunRef
from trainchart.reports.report import CLUSTER, LOCAL


def address_of(run: RunRef) -> str:
    """Return the path of a run's page."""
    parts = [run.origin, run.release] if run.origin == LOCAL else list(run)
    return "/runs/" + "/".join(quote(part, safe="") for part in parts)


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
