"""TFJobs to specs: each field is carried over or named, secrets stay out, and no field disappears silently."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.importing.convert import Choices, build_tree
from trainchart.importing.detect import read_trainings
from trainchart.importing.ledger import Ledger
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.render.schema import KUBERNETES_VERSION

CORE = "io.k8s.api.core.v1"
SPEC_KEYS = ("enableDynamicWorker", "successPolicy")
POLICY_KEYS = (
    *("activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "managedBy", "suspend", "ttlSecondsAfterFinished"),
    *("schedulingPolicy.minAvailable", "schedulingPolicy.minResources", "schedulingPolicy.priorityClass"),
    *("schedulingPolicy.queue", "schedulingPolicy.scheduleTimeoutSeconds"),
)
"""As in manifests/base/crds/kubeflow.org_tfjobs.yaml of kubeflow/training-operator, release 1.9."""
SILENT = {
    *("containers", "volumes", "restartPolicy", "automountServiceAccountToken", "serviceAccount", "enableServiceLinks"),
    *("name", "terminationMessagePath", "terminationMessagePolicy", "stdin", "stdinOnce", "tty", "volumeMounts"),
}
"""What every chart has anyway, and lists whose entries are reported one by one."""
SAMPLES: dict[str, Any] = {"string": "x", "integer": 7, "boolean": True, "array": [{"name": "x"}], "object": {"x": "y"}}


def make_job(container: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    training = {"name": "tensorflow", "image": "ml/digits:1.4", "command": ["python", "/app/train.py"]}
    template = {"spec": {"containers": [{**training, **(container or {})}], **(pod or {})}}
    replicas = {"Worker": {"replicas": 1, "template": template}}
    return {"kind": "TFJob", "metadata": {"name": "digits"}, "spec": {"tfReplicaSpecs": replicas, **spec}}


def read(job: dict[str, Any], **choices: Any) -> tuple[dict[str, Any], Ledger]:
    (training,) = read_trainings(dump_mapping(job), "job.yaml")
    return build_tree(training, Choices("digits", **choices)), training.ledger


def mentions(ledger: Ledger, key: str) -> bool:
    names = [entry.source for entry in ledger.carried] + [left.what for left in ledger.left]
    return any(key in name for name in names)


@pytest.mark.parametrize("kind", ["PodSpec", "Container"])
def test_no_field_of_kubernetes_disappears_silently(kind: str) -> None:
    properties = read_definitions(KUBERNETES_VERSION)[f"{CORE}.{kind}"]["properties"]
    assert len(properties) > 20
    lost = []
    for key, schema in properties.items():
        kinds = schema.get("type", "object")
        sample = SAMPLES[next(kind for kind in SAMPLES if kind in kinds)]
        _, ledger = read(make_job(pod={key: sample}) if kind == "PodSpec" else make_job({key: sample}))
        if key not in SILENT and not mentions(ledger, key):
            lost.append(key)
    assert lost == []


@pytest.mark.parametrize("key", [*SPEC_KEYS, *(f"runPolicy.{key}" for key in POLICY_KEYS)])
def test_no_policy_of_a_job_disappears_silently(key: str) -> None:
    value: Any = 7
    for part in reversed(key.split(".")[1:]):
        value = {part: value}
    _, ledger = read(make_job(**{key.split(".")[0]: value}))
    assert mentions(ledger, key)


def test_policies_become_settings_of_the_run() -> None:
    tree, ledger = read(make_job(runPolicy={"backoffLimit": 5, "activeDeadlineSeconds": 60, "suspend": True}))
    run = {key: value for key, value in tree["run"].items() if key != "controller"}
    assert run == {"activeDeadline": 60, "desiredState": "suspended", "maxRestarts": 5}
    tree, ledger = read(make_job(backoffLimit=2, cleanPodPolicy="All"))
    assert tree["run"]["maxRestarts"] == 2
    assert not ledger.left


def test_resources_become_those_of_the_role() -> None:
    amounts = {
        "requests": {"cpu": 2, "memory": "4Gi", "rdma/hca": 1},
        "limits": {"cpu": 4, "memory": "4Gi", "rdma/hca": 1, "amd.com/gpu": 2},
    }
    tree, _ = read(make_job({"resources": amounts}))
    expected = {"cpu": 2, "cpuLimit": 4, "memory": "4Gi", "gpus": 2}
    others = {"requests": {"rdma/hca": 1}, "limits": {"rdma/hca": 1}}
    assert tree["roles"]["worker"] == {"replicas": 1, **expected}
    assert (tree["resources"], tree["gpu"]) == (others, {"resourceName": "amd.com/gpu"})
    assert (tree["strategy"], tree["framework"]) == ("mirrored", {"flavour": "gpu"})


def test_secrets_are_named_and_not_copied() -> None:
    container = {
        "command": ["python", "train.py", "--api-key=k1", "--hub-token", "k2"],
        "env": [
            {"name": "DB_PASSWORD", "value": "k3"},
            {"name": "DB", "value": "db://me:k4@h"},
            {"name": "MODE", "value": "fast"},
        ],
    }
    tree, ledger = read(make_job(container))
    shown = dump_mapping(tree) + str(ledger)
    assert not any(secret in shown.replace("k8s", "") for secret in ("k1", "k2", "k3", "k4"))
    reference = {"valueFrom": {"secretKeyRef": {"name": "digits-secrets", "key": "DB_PASSWORD"}}}
    assert tree["env"]["DB_PASSWORD"] == reference
    assert tree["code"]["command"] == ["python", "train.py", "--api-key=$(API_KEY)", "--hub-token", "$(HUB_TOKEN)"]
    assert {"API_KEY", "HUB_TOKEN", "MODE"} <= tree["env"].keys()
    assert "kubectl create secret generic digits-secrets --from-literal=DB_PASSWORD=…" in str(ledger.left)


def test_variables_of_the_launcher_are_left_to_it() -> None:
    env = [{"name": "TF_CONFIG", "value": "{}"}, {"name": "ROOT", "value": "$(HOME_OF_ALL)/x"}]
    tree, ledger = read(make_job({"env": env}))
    assert tree["env"] == {"ROOT": "$$(HOME_OF_ALL)/x", "HOME": "/tmp"}
    assert any("sets TF_CONFIG" in entry.target for entry in ledger.carried)


def test_volumes_are_claims_or_extra_volumes() -> None:
    mounts = [("models", "/models"), ("data", "/data"), ("shm", "/dev/shm"), ("conf", "/etc/x"), ("node", "/fast")]
    volumes = [
        {"name": "models", "persistentVolumeClaim": {"claimName": "m"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "d", "readOnly": True}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "conf", "configMap": {"name": "c"}},
        {"name": "node", "hostPath": {"path": "/fast"}},
    ]
    container = {"volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts]}
    tree, ledger = read(make_job(container, {"volumes": volumes}))
    assert tree["volumes"] == {
        "checkpoints": {"existingClaim": "m", "mountPath": "/models"},
        "data": {"existingClaim": "d", "mountPath": "/data", "readOnly": True},
    }
    assert tree["extraVolumes"] == [{"name": "conf", "configMap": {"name": "c"}}]
    assert tree["roles"]["worker"]["shmSize"] == "1Gi"
    (left,) = ledger.left
    assert "a folder on a node" in left.reason


def test_what_needs_rights_is_left_out() -> None:
    context = {"runAsUser": 0, "privileged": True, "capabilities": {"add": ["IPC_LOCK"]}}
    tree, ledger = read(make_job({"securityContext": context}, {"hostNetwork": True}))
    assert tree["podSecurityContext"] == {"runAsUser": 1000}
    assert "containerSecurityContext" not in tree
    assert len(ledger.left) == 4


def test_a_chief_leads_as_worker_0_where_there_is_none() -> None:
    job = make_job()
    replicas = job["spec"]["tfReplicaSpecs"]
    replicas["Master"] = replicas["Worker"]
    tree, _ = read(job)
    assert (tree["strategy"], tree["roles"]["worker"]["replicas"]) == ("multi-worker-mirrored", 2)
    tree, _ = read(job, strategy="parameter-server")
    assert {role: settings["replicas"] for role, settings in tree["roles"].items()} == {"chief": 1, "worker": 1}


def test_code_of_the_user_replaces_that_in_the_image() -> None:
    tree, _ = read(make_job({"workingDir": "/app"}), code="digits", scripts={"train.py": "src/train.py"})
    assert tree["code"] == {"path": "digits", "command": ["python", "src/train.py"]}
    assert tree["image"] == {"repository": "registry.example.com/digits", "tag": "0.1.0"}
    assert "podSecurityContext" not in tree
    assert "workingDir" not in tree
