"""The volume of a release's checkpoints, by the objects that are there of the release."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.checkpoints.helper_pod import HelperPod, advise_on_writers, make_config, make_job
from trainchart.checkpoints.release_volume import (
    ReleaseVolume,
    borrow_settings,
    choose_node,
    find_volume,
    find_writers,
)
from trainchart.errors import Conflict, NotFound, ToolError, TrainchartError
from trainchart_runtime.contract import TENSORBOARD_DIR

LABELS = {"app.kubernetes.io/instance": "exp", "app.kubernetes.io/name": "mnist"}
CLAIM = "exp-mnist-checkpoints"
RESTRICTED = {"allowPrivilegeEscalation": False, "runAsUser": 4711}


def make_set(folder: str = "/checkpoints", *, chart: str = "mnist", **changes: Any) -> dict[str, Any]:
    env = [{"name": "TRAINCHART_CHECKPOINTS_DIR", "value": folder}] if folder else []
    mount = {"name": "volume-checkpoints", "mountPath": "/checkpoints", "subPath": "a"}
    volume = {"name": "volume-checkpoints", "persistentVolumeClaim": {"claimName": CLAIM}}
    training = {"name": "training", "image": "mnist:1", "env": env, "securityContext": RESTRICTED}
    spec = {
        "containers": [{**training, "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, mount]}],
        "volumes": [volume],
        "securityContext": {"fsGroup": 4711},
        "imagePullSecrets": [{"name": "registry"}],
        "tolerations": [{"key": "gpu"}],
        "nodeSelector": {"zone": "a"},
        **changes,
    }
    labels = {"team": "a", "kueue.x-k8s.io/queue-name": "q", "trainchart/training": "true", **LABELS}
    metadata = {"labels": {**LABELS, "app.kubernetes.io/name": chart, "app.kubernetes.io/component": "worker"}}
    return {"metadata": metadata, "spec": {"template": {"metadata": {"labels": labels}, "spec": spec}}}


def make_claim(name: str = CLAIM, *, mode: str = "ReadWriteMany", phase: str = "Bound") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": LABELS},
        "spec": {"accessModes": [mode]},
        "status": {"phase": phase},
    }


def make_pod(name: str, *, is_reader: bool = False, phase: str = "Running", folder: str = "") -> dict[str, Any]:
    mount = {"name": "v", "mountPath": "/checkpoints", "readOnly": is_reader, "subPath": folder}
    spec = {
        "nodeName": "node-7",
        "containers": [{"name": "training", "volumeMounts": [mount]}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": CLAIM}}],
    }
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


def find(*sets: Any, chart: str = "", jobs: Any = (), claims: Any = ()) -> ReleaseVolume:
    return find_volume("exp", "team", chart, sets, jobs, claims)


def find_error(*sets: Any, **options: Any) -> TrainchartError:
    with pytest.raises(TrainchartError) as caught:
        find(*sets, **options)
    return caught.value


def test_a_release_is_found_by_what_its_pods_mount() -> None:
    found = find(make_set(""), make_set("/checkpoints/second"))
    assert (found.claim, found.sub_path, found.folder, found.image) == (CLAIM, "a", "second", "mnist:1")
    assert found.called == f"claim {CLAIM}/a/second"


def test_the_runtime_image_comes_before_the_training_image() -> None:
    launcher = [{"name": "launcher", "image": "runtime:2"}]
    assert find(make_set(initContainers=launcher)).image == "runtime:2"
    controller = {"containers": [{"name": "controller", "image": "runtime:1"}]}
    labels = {**LABELS, "app.kubernetes.io/component": "controller"}
    job = {"metadata": {"labels": labels}, "spec": {"template": {"spec": controller}}}
    assert find(make_set(initContainers=launcher), jobs=[job]).image == "runtime:1"


def test_an_uninstalled_release_is_found_by_its_claim() -> None:
    found = find(claims=[make_claim("exp-mnist-logs"), make_claim()])
    assert (found.claim, found.image) == (CLAIM, "")
    assert find(claims=[make_claim("exp-mnist-3f2a")]).claim == "exp-mnist-3f2a"
    error = find_error(claims=[make_claim("exp-a"), make_claim("exp-b")])
    assert isinstance(error, NotFound) and error.hint == "name one: --claim exp-a or exp-b"


def test_an_uninstalled_release_borrows_settings_of_its_chart() -> None:
    volume = ReleaseVolume("old", "team", CLAIM)
    assert borrow_settings(volume, [], []) == ("", volume)
    older, newer = make_set(), make_set(initContainers=[{"name": "launcher", "image": "runtime:2"}])
    older["metadata"] |= {"creationTimestamp": "2026-11-27T00:00:00Z", "annotations": {"trainchart/replicas": "1"}}
    newer["metadata"] |= {"creationTimestamp": "2026-11-28T00:00:00Z", "annotations": {"trainchart/replicas": "1"}}
    lender, found = borrow_settings(volume, [newer, older], [])
    assert (lender, found.image, found.claim, found.sub_path) == ("exp", "runtime:2", CLAIM, "")
    assert found.template["spec"]["securityContext"] == {"fsGroup": 4711}


def test_what_is_no_claim_is_named() -> None:
    missing = find_error()
    assert isinstance(missing, NotFound) and "there is no training run 'exp' in namespace team" in missing.message
    bucket = find_error(make_set("gs://bucket/exp"))
    assert isinstance(bucket, ToolError) and bucket.message.startswith("gs://bucket/exp is in an object store")
    local = find_error(make_set(volumes=[{"name": "volume-checkpoints", "emptyDir": {}}]))
    assert isinstance(local, ToolError) and "in /checkpoints, which is not a claim" in local.message
    none = find_error(make_set(""))
    assert isinstance(none, ToolError) and none.message == "the release exp keeps no checkpoints"


def test_one_of_several_trainings_must_be_named() -> None:
    several = (make_set(), make_set(chart="digits"))
    error = find_error(*several)
    assert isinstance(error, NotFound) and error.hint == "name one of them: exp/digits, exp/mnist"
    assert find(*several, chart="mnist").claim == CLAIM


def test_a_claim_of_one_node_is_read_on_that_node() -> None:
    assert choose_node(make_claim(), [make_pod("w")]) == ""
    assert choose_node(make_claim(mode="ReadWriteOnce"), [make_pod("w")]) == "node-7"
    assert choose_node(make_claim(mode="ReadWriteOnce"), [make_pod("w", phase="Succeeded")]) == ""
    with pytest.raises(Conflict, match="serves one pod at a time"):
        choose_node(make_claim(mode="ReadWriteOncePod"), [make_pod("w")])


@pytest.mark.parametrize("phase", ["Pending", "Lost"])
def test_a_claim_without_a_volume_is_refused(phase: str) -> None:
    with pytest.raises(NotFound, match=f"the claim {CLAIM} has no volume: it is {phase}"):
        choose_node(make_claim(phase=phase), [])


def test_pods_that_only_read_do_not_keep_from_pruning() -> None:
    pods = [make_pod("tensorboard", is_reader=True), make_pod("old", phase="Failed"), make_pod("worker-0")]
    assert find_writers(ReleaseVolume("exp", "team", CLAIM), pods) == ["worker-0"]
    assert find_writers(ReleaseVolume("exp", "team", "other"), pods) == []


@pytest.mark.parametrize(
    ("folder", "is_one"), [("", True), ("a", True), ("a/b", True), ("a/b/c", True), ("a/x", False)]
)
def test_pods_of_other_folders_do_not_keep_from_pruning(folder: str, is_one: bool) -> None:
    volume = ReleaseVolume("exp", "team", CLAIM, "a", "b")
    assert find_writers(volume, [make_pod("worker-0", folder=folder)]) == ["worker-0"] * is_one


def make_helper(volume: ReleaseVolume, **changes: Any) -> dict[str, Any]:
    settings = {"name": "helper", "image": "runtime:1", "node": "", "writes": False, "seconds": 60, **changes}
    return make_job(HelperPod(volume=volume, **settings))


def test_a_helper_pod_is_like_the_training_but_reads_only() -> None:
    job = make_helper(find(make_set()))
    template = job["spec"]["template"]
    spec = template["spec"]
    (container,) = spec["containers"]
    assert (job["spec"]["activeDeadlineSeconds"], job["spec"]["backoffLimit"]) == (60, 0)
    assert spec["securityContext"] == {"fsGroup": 4711} and container["securityContext"] == RESTRICTED
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert (spec["tolerations"], spec["nodeSelector"]) == ([{"key": "gpu"}], {"zone": "a"})
    assert spec["automountServiceAccountToken"] is False
    assert {"limits", "requests"} == set(container["resources"])
    assert container["volumeMounts"][1]["readOnly"] and container["volumeMounts"][1]["subPath"] == "a"
    labels = template["metadata"]["labels"]
    assert labels["team"] == "a" and labels["app.kubernetes.io/instance"] == "helper"
    assert not {"trainchart/training", "kueue.x-k8s.io/queue-name"} & set(labels)


def test_only_a_pruning_may_write() -> None:
    job = make_helper(find(make_set()), writes=True)
    assert job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][1]["readOnly"] is False


def test_a_helper_pod_goes_to_the_node_that_has_the_claim() -> None:
    affinity = make_helper(find(make_set()), node="node-7")["spec"]["template"]["spec"]["affinity"]
    assert affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}]
    }


def test_without_a_release_the_pod_is_restricted() -> None:
    spec = make_helper(ReleaseVolume("exp", "team", CLAIM))["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"]
    assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_program_goes_with_the_job() -> None:
    volume = ReleaseVolume("exp", "team", CLAIM)
    helper = HelperPod("helper", volume, "runtime:1", "", False, 60)
    config = make_config(helper, {"metadata": {"uid": "u"}}, b"zip", {"action": "list"})
    assert config["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert config["binaryData"] == {"checkpoints.pyz": "emlw"}


def test_another_command_at_work_is_told_from_a_release() -> None:
    helper = {"metadata": {"name": "helper", "labels": {"app.kubernetes.io/name": "trainchart-checkpoints"}}}
    worker = {"metadata": {"name": "worker-0", "labels": {"app.kubernetes.io/name": "mnist"}}}
    pods = [helper, worker]
    assert advise_on_writers(["worker-0"], pods) == "wait until they have ended, or uninstall their release"
    told = advise_on_writers(["helper"], pods)
    assert told == "wait until it has ended: helper works for another trainchart checkpoints command"
    told = advise_on_writers(["helper", "worker-0"], pods)
    assert "uninstall the release of worker-0" in told and "helper works for" in told


def add_logs(each: dict[str, Any], claim: str) -> dict[str, Any]:
    """Return a set whose logs for TensorBoard lie in a volume of their own."""
    spec = each["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    container["env"].append({"name": "TRAINCHART_TENSORBOARD_DIR", "value": "/logs/board"})
    container["volumeMounts"].append({"name": "volume-logs", "mountPath": "/logs"})
    spec["volumes"].append({"name": "volume-logs", "persistentVolumeClaim": {"claimName": claim}})
    return each


def test_logs_are_found_beside_the_checkpoints_or_apart() -> None:
    apart = find_volume("exp", "team", "", [add_logs(make_set(), "exp-logs")], [], [], variable=TENSORBOARD_DIR)
    assert (apart.claim, apart.folder, apart.training_image) == ("exp-logs", "board", "mnist:1")
    beside = make_set()
    beside["spec"]["template"]["spec"]["containers"][0]["env"].append(
        {"name": "TRAINCHART_TENSORBOARD_DIR", "value": "/checkpoints/logs"}
    )
    found = find_volume("exp", "team", "", [beside], [], [], variable=TENSORBOARD_DIR)
    assert (found.claim, found.sub_path, found.folder) == (CLAIM, "a", "logs")
    with pytest.raises(ToolError, match="the release exp keeps no logs"):
        find_volume("exp", "team", "", [make_set()], [], [], variable=TENSORBOARD_DIR)


@pytest.mark.parametrize(
    ("left", "found"),
    [
        (("exp-mnist-checkpoints", "exp-mnist-logs"), "exp-mnist-logs"),
        (("exp-mnist-checkpoints", "exp-mnist-data"), "exp-mnist-checkpoints"),
        (("exp-mnist-data",), "exp-mnist-data"),
    ],
)
def test_of_an_uninstalled_release_the_likely_claim_has_the_logs(left: tuple[str, ...], found: str) -> None:
    claims = [{"metadata": {"name": name, "labels": LABELS}} for name in left]
    assert find_volume("exp", "team", "", [], [], claims, variable=TENSORBOARD_DIR).claim == found
