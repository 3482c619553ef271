"""Opens the cluster that a command means: the kubeconfig's context, and the namespace of the option or the context."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainchart.cluster.io.kubeconfig import read_entry
from trainchart.cluster.io.kubernetes_api import KubernetesApi, connect
from trainchart.errors import Forbidden, NotFound

_NAMESPACE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Place:
    """Where a user looks; empty means what the kubeconfig says."""

    context: str = ""
    namespace: str = ""
    kubeconfig: str = ""
    """The file that a session of the console has for itself; empty: that of the environment."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment's variables, with that kubeconfig."""
        return {**os.environ, "KUBECONFIG": self.kubeconfig} if self.kubeconfig else os.environ


def open_cluster(place: Place) -> tuple[KubernetesApi, str]:
    """Return a door to the cluster and the namespace to look in.

    Raises:
        ClusterError: the kubeconfig does not name a usable cluster.
    """
    entry = read_entry(place.context, place.environment)
    namespace = place.namespace or entry.namespace
    if not _NAMESPACE_NAME.fullmatch(namespace):
        raise NotFound(f"{namespace!r} is not a valid namespace name")
    return connect(entry), namespace


def read_namespaces(
    namespaces: Sequence[str], read: Callable[[str], Iterable[Found]]
) -> tuple[list[Found], tuple[str, ...]]:
    """Return what `read` finds in those of several namespaces that may be read, and notes about the others.

    Raises:
        ClusterError: what `read` says, Forbidden only where no namespace may be read.
    """
    found: list[Found] = []
    refusals: dict[str, Forbidden] = {}
    for namespace in namespaces:
        try:
            found += read(namespace)
        except Forbidden as error:
            refusals[namespace] = error
    if refusals and len(refusals) == len(namespaces):
        raise next(iter(refusals.values()))
    return found, tuple(f"{namespace} is not shown: {error.message}" for namespace, error in refusals.items())
