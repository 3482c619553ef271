"""Charts of the family console: no rights in the cluster, no disk under tokens, no name but those it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.family_charts import make_family_chart, render_family_chart
from trainchart.errors import RenderError


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_family_chart("console", tmp_path_factory.mktemp("project"))


def render(chart: Path, **values: Any) -> dict[str, dict[str, Any]]:
    """Return the objects by kind; of the pods, the console's is in the Deployment."""
    return {each.kind: each.document for each in render_family_chart(chart, "con", "platform", values).manifests}


def find_pod(chart: Path, **values: Any) -> dict[str, Any]:
    spec: dict[str, Any] = render(chart, **values)["Deployment"]["spec"]["template"]["spec"]
    return spec


def test_the_console_has_no_rights_of_its_own(chart: Path) -> None:
    objects = render(chart)
    assert not {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Secret"} & set(objects)
    assert objects["ServiceAccount"]["automountServiceAccountToken"] is False
    for pod in (find_pod(chart), objects["Pod"]["spec"]):
        assert pod["automountServiceAccountToken"] is False
        assert pod["serviceAccountName"] == "con"


def test_no_disk_and_no_account_is_mounted(chart: Path) -> None:
    pod = find_pod(chart)
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["tmp"]["emptyDir"]["medium"] == "Memory"
    sources = volumes["cluster"]["projected"]["sources"]
    assert [each["configMap"]["name"] for each in sources] == ["con", "kube-root-ca.crt"]
    assert set(volumes) == {each["name"] for each in container["volumeMounts"]} == {"tmp", "cluster"}


def test_the_kubeconfig_names_no_user(chart: Path) -> None:
    text = render(chart, apiServer="https://api.example.com:6443")["ConfigMap"]["data"]["kubeconfig"]
    assert "https://api.example.com:6443" in text
    assert "user" not in text
    assert "insecure" not in text


def test_addresses_and_namespaces_are_what_it_is_told(chart: Path) -> None:
    addresses = ["https://console.example.com", "http://localhost:8080"]
    (container,) = find_pod(chart, addresses=addresses)["containers"]
    assert container["args"] == [
        *(f"--address={each}" for each in addresses),
        "--namespace=team-a",
        "--namespace=team-b",
    ]
    assert container["livenessProbe"]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "console.example.com"}]
    (container,) = find_pod(chart, namespaces=[])["containers"]
    assert container["args"] == ["--address=http://localhost:8080", "--all-namespaces"]


@pytest.mark.parametrize(
    "address", ["http://console.example.com", "console.example.com", "https://a.example/path", "https://A", "ftp://a"]
)
def test_an_address_at_which_tokens_would_leak_is_refused(chart: Path, address: str) -> None:
    with pytest.raises(RenderError):
        find_pod(chart, addresses=[address])


def test_an_ingress_has_tls_and_the_name_of_an_address(chart: Path) -> None:
    ingress = {"enabled": True, "tlsSecret": "console-tls"}
    spec = render(chart, addresses=["http://localhost:8080", "https://c.example.com:8443"], ingress=ingress)["Ingress"]
    assert spec["spec"]["tls"] == [{"hosts": ["c.example.com"], "secretName": "console-tls"}]
    assert spec["spec"]["rules"][0]["host"] == "c.example.com"
    assert "Ingress" not in render(chart)
    with pytest.raises(RenderError) as refused:
        render(chart, ingress=ingress)
    assert "an address in addresses that begins with https://" in str(refused.value.problems)


def test_the_network_is_closed_but_for_what_is_named(chart: Path) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
    api = {"ipBlock": {"cidr": "192.0.2.1/32"}}
    spec = render(chart, network={"from": [peer], "apiServer": [api]})["NetworkPolicy"]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"][0]["from"][1:] == [peer]
    assert [rule["to"] for rule in spec["egress"] if {"port": 443, "protocol": "TCP"} in rule.get("ports", [])] == [
        [api]
    ]
