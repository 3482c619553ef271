"""The versions that the tests run against."""

from __future__ import annotations

import re

import pytest

from tests.cluster.testcluster.programs import MODULE, read_kubernetes_version
from tests.cluster.testcluster.versions import GO_PROGRAMS, KUBERNETES_MODULE, parse_required_version

GO_MOD = """module trainchart.example/testcluster

go 1.26.0

require github.com/spf13/cobra v1.10.2

require (
	go.etcd.io/etcd/server/v3 v3.6.8
	k8s.io/kubernetes/staging v0.0.1
	k8s.io/kubernetes v1.36.3 // indirect
)

replace k8s.io/kubectl => k8s.io/kubectl v0.36.3
"""


@pytest.mark.parametrize(
    ("module", "version"),
    [
        (KUBERNETES_MODULE, "1.36.3"),
        ("go.etcd.io/etcd/server/v3", "3.6.8"),
        ("github.com/spf13/cobra", "1.10.2"),
    ],
)
def test_a_required_version_is_read(module: str, version: str) -> None:
    assert parse_required_version(GO_MOD, module) == version


@pytest.mark.parametrize("module", ["k8s.io/kubectl", "k8s.io", "k8s-io/kubernetes"])
def test_what_is_not_required_has_no_version(module: str) -> None:
    with pytest.raises(LookupError, match=module):
        parse_required_version(GO_MOD, module)


def test_a_program_knows_what_go_fetches_and_leaves() -> None:
    helm = GO_PROGRAMS["helm-4"]

    assert helm.query == f"helm.sh/helm/v4/cmd/helm@v{helm.version}"
    assert helm.binary == "helm"


def test_all_parts_of_kubernetes_are_of_one_release() -> None:
    """Kubernetes' own parts are replaced one by one, and Go would mix releases without a word."""
    _, _, release = read_kubernetes_version().partition(".")
    replaced = re.findall(r"^\s(k8s\.io/\S+) => (\S+) v(\S+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)

    assert len(replaced) > 20
    assert [(part, by, version) for part, by, version in replaced if (by, version) != (part, f"0.{release}")] == []
