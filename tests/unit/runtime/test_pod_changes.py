"""How pods differ from what their StatefulSets say."""

from __future__ import annotations

from typing import Any

from trainchart_runtime.pod_changes import describe_changes, read_settings


def spec(image: str = "ml/digits:1", **resources: Any) -> dict[str, Any]:
    beside = {"name": "proxy", "image": "mesh/proxy:2"}
    training = {"name": "training", "image": image, "command": ["python3", "launcher.pyz"], "resources": resources}
    return {"containers": [beside, training]}


def compare(made: dict[str, Any], planned: dict[str, Any]) -> str:
    return describe_changes(read_settings(made), read_settings(planned))


def test_a_limit_and_an_image_that_a_policy_changed_are_named() -> None:
    planned = spec(limits={"memory": "256Mi"}, requests={"memory": "256Mi"})
    made = spec("mirror/base:1", limits={"memory": "96Mi", "cpu": "1"}, requests={"memory": "96Mi"})
    assert compare(made, planned) == (
        "image mirror/base:1 instead of ml/digits:1, limits.cpu 1 instead of unset, "
        "limits.memory 96Mi instead of 256Mi, requests.cpu 1 instead of unset, requests.memory 96Mi instead of 256Mi"
    )


def test_defaults_and_other_containers_are_no_change() -> None:
    planned, made = spec(limits={"nvidia.com/gpu": "2"}), spec(limits={"nvidia.com/gpu": "2"})
    made["containers"][1]["resources"]["requests"] = {"nvidia.com/gpu": "2"}
    made["containers"].append({"name": "mesh", "image": "a"})
    assert compare(made, planned) == ""


def test_a_long_command_is_cut() -> None:
    long = spec()
    long["containers"][1]["args"] = ["python3", "-c", "pass;" * 1000]
    assert len(compare(long, spec())) < 200
    assert len(compare(spec(limits={f"example.com/{number}": "1" for number in range(1000)}), spec())) == 1000


def test_a_hook_that_a_policy_added_is_named() -> None:
    made = spec()
    made["containers"][1]["lifecycle"] = {"postStart": {"exec": {"command": ["/opt/register"]}}}
    assert compare(made, spec()) == 'lifecycle.postStart {"exec": {"command": ["/opt/register"]}} instead of unset'
    assert compare(made, made) == ""


def test_names_and_rights_that_a_policy_changed_are_named() -> None:
    planned, made = spec(), spec()
    planned["hostAliases"] = [{"ip": "10.0.0.7", "hostnames": ["store"]}]
    planned["securityContext"] = {"runAsNonRoot": True, "fsGroup": 1000}
    made["hostAliases"] = [{"ip": "10.0.0.9", "hostnames": ["store"]}]
    made["securityContext"] = {"runAsNonRoot": True, "fsGroup": 65534, "seLinuxOptions": {"level": "s0:c1"}}
    made["dnsPolicy"] = "Default"
    made["dnsConfig"] = {"nameservers": ["10.0.0.3"]}
    made["containers"][1]["securityContext"] = {"readOnlyRootFilesystem": True}
    words = compare(made, planned)
    assert (
        'dnsConfig {"nameservers": ["10.0.0.3"]} instead of unset, dnsPolicy Default instead of ClusterFirst' in words
    )
    assert 'hostAliases [{"hostnames": ["store"], "ip": "10.0.0.9"}] instead of [{' in words
    assert "pod.securityContext.fsGroup 65534 instead of 1000, securityContext.readOnlyRootFilesystem true" in words
    assert "seLinuxOptions" not in words and "runAsNonRoot" not in words


def test_defaults_of_names_and_rights_are_no_change() -> None:
    made = {**spec(), "dnsPolicy": "ClusterFirst", "securityContext": {}, "hostAliases": []}
    assert compare(made, spec()) == ""
