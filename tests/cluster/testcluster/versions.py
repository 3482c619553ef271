"""Which versions of outside programs the tests run against; pure data.

The versions of Kubernetes and etcd are not here: they are what the Go module's go.mod requires, because that is
what gets compiled, and they are read from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

KUBERNETES_MODULE = "k8s.io/kubernetes"


@dataclass(frozen=True)
class GoProgram:
    """A program that `go install` builds straight from the module proxy."""

    package: str
    """The package's path without the version; its last element is the name of what Go builds."""
    version: str

    @property
    def binary(self) -> str:
        return self.package.rpartition("/")[2]

    @property
    def query(self) -> str:
        """What `go install` takes."""
        return f"{self.package}@v{self.version}"


GO_PROGRAMS: Mapping[str, GoProgram] = MappingProxyType(
    {
        "helm-3": GoProgram("helm.sh/helm/v3/cmd/helm", "3.22.0"),
        "helm-4": GoProgram("helm.sh/helm/v4/cmd/helm", "4.3.1"),
        "coredns": GoProgram("github.com/coredns/coredns", "1.14.6"),
        "kwok": GoProgram("sigs.k8s.io/kwok/cmd/kwok", "0.7.0"),
        "kueue": GoProgram("sigs.k8s.io/kueue/cmd/kueue", "0.17.0"),
        "metrics-server": GoProgram("sigs.k8s.io/metrics-server/cmd/metrics-server", "0.9.0"),
        "registry": GoProgram("github.com/distribution/distribution/v3/cmd/registry", "3.0.0"),
    }
)
"""Name → program."""


def parse_required_version(go_mod: str, module: str) -> str:
    """Return the version, without its v, that a go.mod requires of a module; LookupError where it requires none."""
    for line in go_mod.splitlines():
        found = re.fullmatch(rf"\s*(?:require\s+)?{re.escape(module)}\s+v(\S+)(?:\s+//.*)?", line)
        if found:
            return found[1]
    raise LookupError(f"go.mod requires no {module}")
