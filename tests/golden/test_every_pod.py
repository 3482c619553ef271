"""What is set for all pods reaches every pod of the chart, and a queue's labels only what trains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides
from trainchart.render.chart import list_pod_fields
from trainchart.spec.settings import EveryPodSettings

MNIST = Path(__file__).parent.parent.parent / "charts" / "mnist"
HELPERS = ("controller", "tensorboard", "test")
GIVEN: Mapping[str, Any] = {
    "podLabels": {"sidecar.istio.io/inject": "never", "cost": "7"},
    "podAnnotations": {"linkerd.io/inject": "disabled"},
    "containerSecurityContext": {"runAsUser": 7},
    "nodeSelector": {"pool": "ml"},
    "tolerations": [{"key": "ml", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    "priorityClassName": "batch",
    "runtimeClassName": "gvisor",
    "schedulerName": "volcano",
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["data"]}],
    "dnsPolicy": "ClusterFirst",
    "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
    "podSecurityContext": {"fsGroup": 7},
}
QUEUE_KEYS = (
    "kueue.x-k8s.io/priority-class",
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/preemptable",
    "scheduling.k8s.io/group-name",
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "yunikorn.apache.org/task-groups",
    "gang.scheduling.koordinator.sh/name",
    "kai.scheduler/queue",
    "kai.scheduler/subgroup",
    "kai.scheduler/subgroup-name",
    "quota.scheduling.koordinator.sh/name",
    "quota.scheduling.koordinator.sh/tree-id",
    "koordinator.sh/quota",
    "applicationId",
    "queue",
)


def render(values: Mapping[str, Any]) -> Rendering:
    overrides = ValueOverrides(files=(("values", json.dumps(values, indent=1)),))
    return find_engine("sdk").render(MNIST, release="exp-7", overrides=overrides)


def pods_by_component(rendering: Rendering) -> dict[str, Mapping[str, Any]]:
    """Return the chart's pods and pod templates."""
    owners = (m.document for m in rendering.manifests if m.kind in ("StatefulSet", "Deployment", "Job", "Pod"))
    templates = (owner if owner["kind"] == "Pod" else owner["spec"]["template"] for owner in owners)
    found = {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in templates}
    assert set(found) == {"chief", "worker", "ps", "evaluator", *HELPERS}
    return found


def find_unlike(given: Any, pod: Mapping[str, Any]) -> list[str]:
    """Return the settings for every pod that `pod` does not have as `given`."""
    spec = pod["spec"]
    places = {field.value: spec.get(field.key) for field in list_pod_fields("pod")}
    places["podLabels"] = pod["metadata"]["labels"]
    places["podAnnotations"] = pod["metadata"].get("annotations", {})
    places["containerSecurityContext"] = spec["containers"][0]["securityContext"]
    component = pod["metadata"]["labels"]["app.kubernetes.io/component"]

    def has(wanted: Any, found: Any) -> bool:
        if isinstance(wanted, dict):
            return isinstance(found, dict) and all(has(value, found.get(key)) for key, value in wanted.items())
        if isinstance(wanted, list):
            return isinstance(found, list) and all(any(has(item, other) for other in found) for item in wanted)
        return bool(wanted == found)

    constraints = places["topologySpreadConstraints"]
    assert not constraints or constraints[0]["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == component
    return [name for name, wanted in given.items() if not has(wanted, places[name])]


def test_every_pod_has_what_is_set_for_all_pods() -> None:
    assert set(GIVEN) == {field.alias for field in EveryPodSettings.model_fields.values()}, "a new field needs a value"
    found = {component: find_unlike(GIVEN, pod) for component, pod in pods_by_component(render(GIVEN)).items()}
    assert {component: unlike for component, unlike in found.items() if unlike} == {}


def test_no_pod_gets_a_sidecar_by_default() -> None:
    for component, pod in pods_by_component(render({})).items():
        assert pod["metadata"]["labels"]["sidecar.istio.io/inject"] == "false", component


@pytest.mark.parametrize(
    ("place", "component"), [("run.controller", "controller"), ("tensorboard", "tensorboard"), ("roles.ps", "ps")]
)
def test_a_pods_own_settings_win_over_those_for_all(place: str, component: str) -> None:
    own_values = {"nodeSelector": {"pool": "cpu"}, "priorityClassName": "high", "podLabels": {"cost": "8"}}
    own_values["podAnnotations"] = {"linkerd.io/inject": "enabled"}
    own_values["containerSecurityContext"] = {"runAsUser": 8}
    values: dict[str, Any] = own_values
    for key in reversed(place.split(".")):
        values = {key: values}
    found = pods_by_component(render({**GIVEN, **values}))
    assert find_unlike({**GIVEN, **own_values}, found[component]) == []
    assert found[component]["metadata"]["labels"]["sidecar.istio.io/inject"] == "never"
    others = {other: find_unlike(GIVEN, pod) for other, pod in found.items() if other != component}
    assert not any(others.values()), others


def test_what_is_for_training_pods_stays_out_of_the_others() -> None:
    """Another container would keep the controller's Job alive, and a claim would take a GPU."""
    container = {"name": "more", "image": "r/more:1"}
    claim = {"name": "gpu", "resourceClaimName": "gpu"}
    training = {"extraContainers": [container], "initContainers": [container], "resourceClaims": [claim]}
    for component, pod in pods_by_component(render(training)).items():
        there = [len(pod["spec"]["containers"]) > 1, "initContainers" in pod["spec"], "resourceClaims" in pod["spec"]]
        assert there == [component not in HELPERS] * 3, component


@pytest.mark.parametrize("kind", ["Labels", "Annotations"])
def test_a_queue_gets_the_training_and_never_the_controller(kind: str) -> None:
    keys = dict.fromkeys(QUEUE_KEYS, "research")
    others = {"team": "research", "example.com/organ": "x", "koordinator.sh/qosClass": "LS"}
    rendering = render({f"common{kind}": {**keys, **others}, f"pod{kind}": {**keys, **others}})

    def given(metadata: Mapping[str, Any]) -> set[str]:
        return set(metadata.get(kind.lower(), {})) & {*keys, *others}

    for manifest in rendering.manifests:
        component = manifest.document["metadata"]["labels"]["app.kubernetes.io/component"]
        wanted = set(others) if component in HELPERS else {*keys, *others}
        assert given(manifest.document["metadata"]) == wanted, f"{manifest.kind} {manifest.name}"
    for component, pod in pods_by_component(rendering).items():
        assert given(pod["metadata"]) == (set(others) if component in HELPERS else {*keys, *others}), component


def test_role_objects_and_controller_pod_take_their_own_labels() -> None:
    label = {"example.com/waits": "here"}
    values = {"roles": {"worker": {"labels": label}}, "run": {"controller": {"podLabels": {"queue": "a"}}}}
    rendering = render(values)
    labelled = [m.name for m in rendering.manifests if label.items() <= m.document["metadata"]["labels"].items()]
    assert labelled == ["exp-7-mnist-worker"]
    queued = [
        component for component, pod in pods_by_component(rendering).items() if "queue" in pod["metadata"]["labels"]
    ]
    assert queued == ["controller"]
    (job,) = [m.document for m in rendering.manifests if m.kind == "Job"]
    assert "queue" not in job["metadata"]["labels"]


def test_labels_of_ours_cannot_be_changed() -> None:
    wrong = {"trainchart/training": "false", "app.kubernetes.io/component": "x"}
    values = {"podLabels": wrong, "roles": {"worker": {"labels": wrong, "podLabels": wrong}}}
    found = pods_by_component(render(values))
    assert [found[role]["metadata"]["labels"]["trainchart/training"] for role in ("worker", "controller")] == [
        "true",
        "false",
    ]
