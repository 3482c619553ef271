"""The pods that try a cluster: what they are made of, what their program does, and what their reports mean."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.doctor.test_packing import make_group
from trainchart.cluster.io import probe_program
from trainchart.cluster.io.probe import read_program
from trainchart.doctor.probe import Probe, make_probe, own, plan_volumes
from trainchart.doctor.probe_results import Network, is_over, judge_probe, read_report
from trainchart.doctor.result import FAILED, OK, UNKNOWN, WARNING
from trainchart.doctor.storage import Need
from trainchart_runtime.pod_problems import Event

MADE = Need(
    "exp-checkpoints",
    3,
    True,
    {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "5Gi"}}}},
)
DATA = Need("team-data", 3, False, None)
NAME = "trainchart-doctor-abc"
POLICED = Network(has_policy=True)


def make_training(**spec: Any) -> Any:
    group = make_group("worker", 2, **spec)
    container = group.spec["containers"][0]
    container |= {"image": "registry/mnist:1", "securityContext": {"runAsNonRoot": True}}
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data", "subPath": "mnist"}]
    group.spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "team-data"}}]  # type: ignore[index]
    group.labels.update({"kueue.x-k8s.io/queue-name": "team", "team": "a", "trainchart/training": "true"})  # type: ignore[attr-defined]
    return group


def make(*, count: int = 2, nodes: tuple[str, ...] = (), **spec: Any) -> Probe:
    group = make_training(**spec)
    volumes = plan_volumes(NAME, [MADE, DATA], [group])
    images = ("registry/mnist:1", "registry/runtime:1")
    return make_probe(NAME, group, volumes, images, "pass", nodes=nodes, count=count, seconds=300)


def test_a_probe_is_like_the_training_but_small() -> None:
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    template = make(tolerations=tolerations, serviceAccountName="ci").job["spec"]["template"]
    spec = template["spec"]
    first, second = spec["containers"]
    assert (spec["tolerations"], spec["serviceAccountName"]) == (tolerations, "ci")
    assert (first["image"], second["image"]) == ("registry/mnist:1", "registry/runtime:1")
    assert first["securityContext"] == {"runAsNonRoot": True}
    assert first["resources"]["limits"]["cpu"] == "100m"
    labels = template["metadata"]["labels"]
    assert labels["team"] == "a"
    assert not {"kueue.x-k8s.io/queue-name", "trainchart/training"} & set(labels)


def test_a_probe_mounts_what_the_training_mounts() -> None:
    probe = make()
    spec = probe.job["spec"]["template"]["spec"]
    claims = [each["persistentVolumeClaim"]["claimName"] for each in spec["volumes"] if "persistentVolumeClaim" in each]
    assert claims == [f"{NAME}-0", "team-data"]
    assert spec["containers"][0]["volumeMounts"][2] == {
        "name": "volume-1",
        "mountPath": "/trainchart-doctor/volumes/1",
        "subPath": "mnist",
        "readOnly": True,
    }
    (claim,) = [each for each in probe.owned if each["kind"] == "PersistentVolumeClaim"]
    assert claim["spec"] == MADE.made["spec"]  # type: ignore[index]


def test_all_that_a_probe_makes_goes_with_its_job() -> None:
    probe = make()
    job = {"metadata": {"name": NAME, "uid": "u-1"}}
    owners = [own(document, job)["metadata"]["ownerReferences"][0]["uid"] for document in probe.owned]
    assert owners == ["u-1"] * 4
    spec = probe.job["spec"]
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"], spec["backoffLimit"]) == (300, 300, 0)


def test_a_probe_runs_on_nodes_of_the_training() -> None:
    spec = make(nodes=("a", "b")).job["spec"]["template"]["spec"]
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchFields"][0]["values"] for term in terms] == [["a"], ["b"]]


def run_program(tmp_path: Path, volumes: list[dict[str, Any]], peers: int = 1, seconds: float = 3) -> dict[str, Any]:
    """Run the program as one pod does, and return its report."""
    hosts = [{"index": index, "host": "localhost"} for index in range(peers)]
    settings = {"folder": ".doctor", "seconds": seconds, "ports": [0, 0], "peers": hosts, "volumes": volumes}
    file, report, program = tmp_path / "settings.json", tmp_path / "report", tmp_path / "probe.py"
    file.write_text(json.dumps(settings))
    program.write_text(read_program())
    subprocess.run([sys.executable, program, file, report], check=True, timeout=60, env={"NODE_NAME": "node1"})
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_the_program_writes_and_leaves_nothing(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    found = run_program(tmp_path, [{"claim": "c", "path": str(volume), "writes": True}])
    assert found["node"] == "node1"
    assert {"free", "seconds"} == set(found["volumes"]["c"])
    assert not list(volume.iterdir())


def test_the_program_says_that_data_are_missing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "data").touch()
    volumes = [{"claim": name, "path": str(tmp_path / name), "writes": False} for name in ("empty", "full")]
    found = run_program(tmp_path, volumes)["volumes"]
    assert (found["empty"]["isEmpty"], found["full"]["isEmpty"]) == (True, False)


def test_the_program_tells_what_a_volume_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = run_program(tmp_path, [{"claim": "c", "path": str(tmp_path / "file"), "writes": True}])
    assert found["volumes"]["c"]["error"].startswith("NotADirectoryError: ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not appear"),
        (b"0" * 64 + b"\nother bytes", "does not contain the bytes that it wrote: 11 of 1048576"),
    ],
)
def test_the_program_compares_what_another_pod_wrote(tmp_path: Path, content: bytes | None, words: str) -> None:
    folder = tmp_path / "volume" / ".doctor"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "1").write_bytes(content)
    volume = {"claim": "c", "path": str(tmp_path / "volume"), "writes": True}
    found = run_program(tmp_path, [volume], peers=2, seconds=1)
    assert words in found["volumes"]["c"]["error"]
    assert "ConnectionRefusedError" in found["peer"]["error"]


def test_the_program_needs_the_standard_library_only() -> None:
    assert "import trainchart" not in read_program()
    assert len(read_program()) < 100_000
    assert probe_program.BLOCK == 1024 * 1024


def make_pod(index: int, report: dict[str, Any] | None, **status: Any) -> dict[str, Any]:
    terminated = {"terminated": {"exitCode": 0, "message": json.dumps(report)}}
    image = {"image": "registry/mnist:1", "imageID": "sha256:1"}
    statuses = [{"name": "probe", "state": terminated, **image}] if report is not None else []
    metadata = {"name": f"{NAME}-{index}", "uid": f"u{index}"}
    return {
        "metadata": metadata,
        "spec": {"nodeName": f"node{index}"},
        "status": {"containerStatuses": statuses, **status},
    }


GOOD = {"free": 10 * 2**30, "seconds": 0.02}
PEER = {"address": "10.0.0.1", "skew": 0.01, "isClosed": True}


def judge(
    volume: Any = None, data: Any = None, peer: Any = None, *, network: Network = POLICED
) -> dict[str, tuple[str, str]]:
    volumes = {"exp-checkpoints": volume or GOOD, "team-data": data or {"free": 1, "isEmpty": False}}
    reports = [{"node": f"node{index}", "volumes": volumes, "peer": peer or PEER} for index in range(2)]
    pods = [make_pod(index, report) for index, report in enumerate(reports)]
    results = judge_probe(make(), pods, [], network)
    return {f"{each.check} {each.subject}".strip(): (each.outcome, each.message) for each in results}


def test_a_healthy_cluster_has_no_fault() -> None:
    found = judge()
    assert {outcome for outcome, _ in found.values()} == {OK}
    assert set(found) == {
        *("images", "storage exp-checkpoints", "storage team-data", "network", "network-policy", "clock"),
    }


@pytest.mark.parametrize(
    ("given", "check", "outcome", "words"),
    [
        (
            {"volume": {"error": "PermissionError: no"}},
            "storage exp-checkpoints",
            FAILED,
            "cannot be written to and read by pods",
        ),
        (
            {"volume": {"free": 2**30, "seconds": 0.1}},
            "storage exp-checkpoints",
            FAILED,
            "asks for 5Gi, and its storage has 1Gi left",
        ),
        (
            {"volume": {"free": 2**40, "seconds": 4.2}},
            "storage exp-checkpoints",
            WARNING,
            "takes 4.2 s for a file of 1 MiB",
        ),
        (
            {"data": {"free": 1, "isEmpty": True}},
            "storage team-data",
            WARNING,
            "is empty, and the release only reads it",
        ),
        ({"volume": {"free": 0, "seconds": 0.1}}, "storage exp-checkpoints", FAILED, "has 0 left"),
        ({"peer": {"error": "gaierror: no such name"}}, "network", FAILED, "do not reach each other by name: gaierror"),
        (
            {"peer": {**PEER, "isClosed": False}},
            "network-policy",
            WARNING,
            "no network plug-in applies NetworkPolicies",
        ),
        ({"peer": {**PEER, "skew": -7.5}}, "clock", WARNING, "differ by 7.5 s"),
    ],
)
def test_each_fault_of_a_report_is_told(given: dict[str, Any], check: str, outcome: str, words: str) -> None:
    found = judge(**given)[check]
    assert found[0] == outcome
    assert words in found[1]


def test_a_chart_without_a_policy_needs_no_plugin() -> None:
    assert "network-policy" not in judge(peer={**PEER, "isClosed": False}, network=Network(has_policy=False))


def test_what_other_policies_may_admit_is_unknown() -> None:
    found = judge(peer={**PEER, "isClosed": False}, network=Network(has_policy=True, has_others=True))
    assert found["network-policy"][0] == UNKNOWN


def test_the_network_of_the_nodes_is_not_tried() -> None:
    found = judge(network=Network(has_policy=True, is_host=True))
    assert found["network"][0] == UNKNOWN
    assert not {"network-policy", "clock"} & set(found)


def test_a_probe_that_is_refused_says_nothing_of_the_training() -> None:
    refused = Event("Job", NAME, "FailedCreate", "minimum memory usage per Container is 256Mi", 1.0)
    (found,) = judge_probe(make(), [], [refused], POLICED)
    assert found.outcome == UNKNOWN


def waiting(reason: str, message: str) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "probe", "state": {"waiting": {"reason": reason, "message": message}}}]}


@pytest.mark.parametrize(
    ("status", "check", "outcome"),
    [
        (waiting("ImagePullBackOff", "not found"), "images", FAILED),
        (waiting("CreateContainerError", "python3: not found"), "probe", FAILED),
        ({}, "probe", UNKNOWN),
    ],
)
def test_a_pod_that_does_not_start_is_explained(status: dict[str, Any], check: str, outcome: str) -> None:
    results = list(judge_probe(make(), [make_pod(0, None, **status)], [], POLICED))
    assert [(each.check, each.outcome) for each in results] == [(check, outcome)]


def test_claims_of_the_probe_are_told_as_those_of_the_release() -> None:
    event = Event("PersistentVolumeClaim", f"{NAME}-0", "ProvisioningFailed", "no such pool", 1.0)
    pod = make_pod(0, None, conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])
    pod["spec"] = {}
    (found,) = judge_probe(make(), [pod], [event], POLICED)
    assert found.message == "a pod like those of the training does not start: claim exp-checkpoints: no such pool"


def test_a_pod_that_fails_tells_nothing() -> None:
    assert read_report(make_pod(0, None, phase="Failed")) is None
    assert (
        read_report(
            {
                "status": {
                    "containerStatuses": [{"name": "probe", "state": {"terminated": {"exitCode": 0, "message": "[]"}}}]
                }
            }
        )
        is None
    )


def test_a_probe_ends_when_all_have_told_or_are_stuck() -> None:
    probe, told = make(), make_pod(0, {})
    stuck = make_pod(1, None, **waiting("ImagePullBackOff", "not found"))
    assert is_over(probe, [told, make_pod(1, {})], [], 1, 300)
    assert not is_over(probe, [told], [], 1, 300)
    assert not is_over(probe, [told, stuck], [], 5, 300)
    assert is_over(probe, [told, stuck], [], 30, 300)
    refused = Event("Job", NAME, "FailedCreate", "quota", 1.0)
    assert is_over(probe, [], [refused], 1, 300)


def pending_claim(name: str, phase: str = "Pending") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"storageClassName": "never"}, "status": {"phase": phase}}


NEVER = {"metadata": {"name": "never"}, "provisioner": "nothing.example.com"}
NOT_FOUND = f'0/2 nodes are available: persistentvolumeclaim "{NAME}-0" not found. not found'
UNBOUND = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"


def judge_unscheduled(message: str, claim: dict[str, Any], mode: str) -> tuple[str, str]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    pod = make_pod(0, None, conditions=[condition])
    pod["spec"] = {}
    classes = [{**NEVER, "volumeBindingMode": mode}]
    (found,) = judge_probe(make(), [pod], [], POLICED, claims=[claim], classes=classes)
    return found.message, found.remedy


@pytest.mark.parametrize(("message", "mode"), [(NOT_FOUND, "WaitForFirstConsumer"), (UNBOUND, "Immediate")])
def test_a_provisioner_that_makes_no_volume_is_named(message: str, mode: str) -> None:
    told, hint = judge_unscheduled(message, pending_claim(f"{NAME}-0"), mode)
    expected = (
        "claim exp-checkpoints of class never stays Pending: provisioner nothing.example.com has not made a volume"
    )
    assert told == f"a pod like those of the training does not start: {expected}"
    assert "kubectl describe storageclass never" in hint and "nothing.example.com" in hint


@pytest.mark.parametrize(
    ("message", "claim", "mode"),
    [
        (NOT_FOUND, pending_claim(f"{NAME}-0", "Bound"), "WaitForFirstConsumer"),
        (UNBOUND, pending_claim(f"{NAME}-0"), "WaitForFirstConsumer"),
        (UNBOUND, pending_claim("other"), "Immediate"),
    ],
)
def test_other_waits_for_volumes_keep_their_words(message: str, claim: dict[str, Any], mode: str) -> None:
    told, hint = judge_unscheduled(message, claim, mode)
    assert "stays Pending" not in told
    assert "CLAIM" not in hint and "kubectl describe pvc team-data" in hint
