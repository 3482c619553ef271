"""Addresses, arguments and files of the test cluster fit together, seen without starting anything."""

from __future__ import annotations

import ipaddress
import json

import pytest
from cryptography import x509

from tests.cluster.testcluster import components, config, files, metrics_server, network
from tests.cluster.testcluster.config import NODES, SLOTS, ClusterConfig, Programs
from tests.cluster.testcluster.pki import Authority

PROGRAMS = Programs("/bin/kubernetes", "/bin/storage", "/bin/networkpolicy", "/bin/kwok", "/bin/helm")
CLUSTER = ClusterConfig(slot=7)


@pytest.mark.parametrize("slot", [0, SLOTS - 1])
def test_every_slot_has_a_valid_address_and_interface_name(slot: int) -> None:
    cluster = ClusterConfig(slot=slot)

    pair = ipaddress.ip_network(f"{cluster.machine_address}/30", strict=False)
    assert ipaddress.ip_address(cluster.address) in pair
    assert pair.subnet_of(ipaddress.ip_network("198.18.0.0/15"))
    assert len(cluster.name) <= 15


def test_networks_do_not_overlap() -> None:
    networks = [ipaddress.ip_network(cidr) for cidr in (config.BRIDGE_CIDR, config.POD_CIDR, config.SERVICE_CIDR)]
    networks.append(ipaddress.ip_network(f"{CLUSTER.address}/30", strict=False))

    assert not any(a.overlaps(b) for a in networks for b in networks if a is not b)
    assert ipaddress.ip_address(config.DNS_ADDRESS) in ipaddress.ip_network(config.SERVICE_CIDR)
    for node in NODES:
        assert ipaddress.ip_network(node.pod_cidr).subnet_of(ipaddress.ip_network(config.POD_CIDR))
        assert ipaddress.ip_address(node.address) in ipaddress.ip_network(config.BRIDGE_CIDR)


def test_nodes_route_each_others_pods_and_nothing_leads_out() -> None:
    for node, other in (NODES, NODES[::-1]):
        commands = network.plan_node(CLUSTER, node)
        assert f"route add {other.pod_cidr} via {other.address}" in commands
        assert f"route add {node.pod_cidr} via {node.address}" in network.plan_control_plane(CLUSTER)

    assert not any("default" in command for command in network.plan_control_plane(CLUSTER))


def test_nodes_have_different_domains_and_dns_serves_both() -> None:
    first, second = (json.loads(files.dump_kubelet(CLUSTER, node))["clusterDomain"] for node in NODES)

    assert first != second
    assert f"kubernetes {first} {second} in-addr.arpa" in files.dump_corefile(CLUSTER)


def test_components_have_unique_names_and_nodes_keep_apart() -> None:
    everything = [
        components.plan_etcd(PROGRAMS),
        components.plan_api_server(PROGRAMS, CLUSTER),
        components.plan_registry(),
        *components.plan_controllers(PROGRAMS),
        *(component for node in NODES for component in components.plan_node(PROGRAMS, node)),
        *(components.plan_container_runtime(node) for node in NODES),
    ]

    names = [component.name for component in everything]
    assert len(names) == len(set(names))
    for component in everything:
        others = {node.name for node in NODES} - {component.node}
        if component.node:
            assert component.name.endswith(component.node)
            assert not any(other in word for word in component.argv for other in others)


def test_metrics_server_listens_where_the_api_server_looks() -> None:
    planned = metrics_server.plan_metrics_server("/bin/metrics-server")
    service, registration = metrics_server.plan_objects()

    assert f"--bind-address={service['spec']['externalName']}" in planned.argv
    target = registration["spec"]["service"]
    assert f"--secure-port={target['port']}" in planned.argv
    assert (target["name"], target["namespace"]) == (service["metadata"]["name"], service["metadata"]["namespace"])


def test_certificates_carry_user_groups_and_addresses() -> None:
    authority = Authority()
    pair = authority.issue("system:node:node1", groups=("system:nodes",), addresses=("10.89.0.1", "kubernetes"))

    certificate = x509.load_pem_x509_certificate(pair.certificate)
    assert certificate.subject.rfc4514_string() == "CN=system:node:node1,O=system:nodes"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.89.0.1")]
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
