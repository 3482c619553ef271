"""What an upgrade does to objects; tests/cluster/test_change_effects.py asks a real API server about the same."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from trainchart.compare.effect import Effect, Fate, find_changes, removed_names
from trainchart.helm.rendering import Manifest, Rendering

STATEFUL_SET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "a", "labels": {"helm.sh/chart": "a-1.0.0"}},
    "spec": {
        "replicas": 2,
        "serviceName": "a",
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {
                "containers": [
                    {
                        "name": "a",
                        "image": "a:1",
                        "env": [],
                        "ports": [{"containerPort": 1, "protocol": "TCP"}],
                        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                    }
                ]
            },
        },
    },
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "None"}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "immutable": True, "data": {"a": "b"}}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "a", "annotations": {"helm.sh/resource-policy": "keep"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}},
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "a"},
    "spec": {"backoffLimit": 1, "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}},
}
WORK_QUEUE = {**JOB, "spec": {"parallelism": 5, "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}}}
CUSTOM = {
    "apiVersion": "example.com/v1",
    "kind": "Job",
    "metadata": {"name": "a"},
    "spec": {"limits": {"size": "1"}, "template": {}},
}
DEPLOYMENT = {**copy.deepcopy(STATEFUL_SET), "kind": "Deployment"}
HOOK = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t", "annotations": {"helm.sh/hook": "test"}}}


def test_a_hook_of_the_same_name_hides_no_object() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t"}, "spec": {"restartPolicy": "Never"}}
    changed = {**pod, "spec": {"restartPolicy": "Always"}}
    (change,) = find_changes(rendering(pod, HOOK), rendering(changed, HOOK))
    assert (change.kind, [field.path for field in change.fields]) == ("Pod", ["spec.restartPolicy"])


def test_hooks_of_one_name_hide_no_change() -> None:
    pods = [
        {**HOOK, "metadata": {"name": "t", "annotations": {"helm.sh/hook": hook}}, "spec": {"nodeName": node}}
        for hook, node in (("pre-upgrade", "a"), ("pre-upgrade", "b"), ("test", "a"))
    ]
    first, changed, other = pods
    for beside in ([], [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t"}}]):
        (change,) = find_changes(rendering(*beside, first, other, other), rendering(*beside, changed, other, other))
        assert [field.path for field in change.fields] == ["spec.nodeName"]


def test_an_object_that_is_there_twice_is_no_longer_hidden() -> None:
    another = copy.deepcopy(STATEFUL_SET)
    another["spec"]["template"]["spec"]["containers"].append({"name": "b", "image": "b:1"})
    manifests = Manifest("templates/a.yaml", another), Manifest("templates/z.yaml", STATEFUL_SET)
    (change,) = find_changes(rendering(STATEFUL_SET), Rendering("exp", "default", manifests, {}))
    assert (change.fate, change.kind, change.name) == (Fate.added, "StatefulSet", "a")


def test_an_object_that_becomes_a_hook_is_removed() -> None:
    metadata = {**STATEFUL_SET["metadata"], "annotations": {"helm.sh/hook": "test"}}
    changes = find_changes(rendering(STATEFUL_SET), rendering({**STATEFUL_SET, "metadata": metadata}))
    assert [(change.fate, change.effect) for change in changes] == [
        (Fate.removed, Effect.restart),
        (Fate.added, Effect.none),
    ]


def rendering(*documents: dict[str, Any]) -> Rendering:
    return Rendering("exp", "default", tuple(Manifest("templates/a.yaml", document) for document in documents), {})


def at(*path: Any) -> Callable[[dict[str, Any], Any], None]:
    def put(document: dict[str, Any], value: Any) -> None:
        place: Any = document
        for part in path[:-1]:
            place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = value

    return put


CONTAINER = ("spec", "template", "spec", "containers", 0)


@pytest.mark.parametrize(
    ("document", "path", "value", "effect"),
    [
        (STATEFUL_SET, ("metadata", "labels", "helm.sh/chart"), "a-2.0.0", None),
        (STATEFUL_SET, ("metadata", "labels", "team"), "vision", Effect.none),
        (STATEFUL_SET, ("metadata", "annotations", "note"), "x", Effect.none),
        (STATEFUL_SET, ("spec", "replicas"), 3, Effect.applied),
        (STATEFUL_SET, ("spec", "replicas"), None, Effect.applied),
        (STATEFUL_SET, ("spec", "minReadySeconds"), 5, Effect.applied),
        (STATEFUL_SET, ("spec", "minReadySeconds"), 0, None),
        (STATEFUL_SET, ("spec", "revisionHistoryLimit"), 10, None),
        (STATEFUL_SET, (*CONTAINER, "image"), "a:2", Effect.restart),
        (STATEFUL_SET, (*CONTAINER, "resources", "requests", "cpu"), "0.5", None),
        (STATEFUL_SET, (*CONTAINER, "resources", "requests", "memory"), "1024Mi", None),
        (STATEFUL_SET, (*CONTAINER, "resources", "requests", "memory"), "2Gi", Effect.restart),
        (STATEFUL_SET, (*CONTAINER, "env"), None, None),
        (STATEFUL_SET, (*CONTAINER, "env"), [{"name": "protocol", "value": "TCP"}], Effect.restart),
        (STATEFUL_SET, (*CONTAINER, "ports", 0, "protocol"), None, None),
        (STATEFUL_SET, (*CONTAINER, "ports", 0, "protocol"), "UDP", Effect.restart),
        (STATEFUL_SET, ("spec", "template", "spec", "dnsPolicy"), "ClusterFirst", None),
        (STATEFUL_SET, ("spec", "template", "spec", "terminationGracePeriodSeconds"), 60, Effect.restart),
        (STATEFUL_SET, ("spec", "template", "spec", "initContainers"), [{"restartPolicy": "Always"}], Effect.restart),
        (STATEFUL_SET, (*CONTAINER, "livenessProbe", "terminationGracePeriodSeconds"), 30, Effect.restart),
        (STATEFUL_SET, (*CONTAINER, "terminationMessagePolicy"), "File", None),
        (STATEFUL_SET, (*CONTAINER, "protocol"), "TCP", Effect.restart),
        (STATEFUL_SET, ("spec", "template", "metadata", "annotations", "dnsPolicy"), "ClusterFirst", Effect.restart),
        (STATEFUL_SET, ("spec", "template", "metadata", "labels", "helm.sh/chart"), "a-2.0.0", Effect.restart),
        (STATEFUL_SET, ("spec", "serviceName"), "b", Effect.rejected),
        (STATEFUL_SET, ("spec", "podManagementPolicy"), "OrderedReady", Effect.rejected),
        (STATEFUL_SET, ("spec", "podManagementPolicy"), None, Effect.rejected),
        (STATEFUL_SET, ("spec", "selector", "matchLabels", "app"), "b", Effect.rejected),
        (DEPLOYMENT, (*CONTAINER, "image"), "a:2", Effect.applied),
        (DEPLOYMENT, ("spec", "selector", "matchLabels", "app"), "b", Effect.rejected),
        (SERVICE, ("spec", "clusterIP"), "10.0.0.9", Effect.rejected),
        (SERVICE, ("spec", "clusterIP"), None, None),
        (SERVICE, ("spec", "publishNotReadyAddresses"), False, None),
        (SERVICE, ("spec", "publishNotReadyAddresses"), True, Effect.applied),
        (SERVICE, ("spec", "ports"), [{"port": 1}], Effect.applied),
        (CONFIG_MAP, ("data", "a"), "c", Effect.rejected),
        (CONFIG_MAP, ("immutable",), False, Effect.rejected),
        (CONFIG_MAP, ("metadata", "labels", "a"), "b", Effect.none),
        (CLAIM, ("spec", "accessModes"), ["ReadWriteMany"], Effect.rejected),
        (CLAIM, ("spec", "resources", "requests", "storage"), "9Gi", Effect.applied),
        (CLAIM, ("spec", "resources", "requests", "storage"), "1Gi", Effect.rejected),
        (CLAIM, ("spec", "resources", "requests", "storage"), "5120Mi", None),
        (JOB, (*CONTAINER, "image"), "a:2", Effect.rejected),
        (JOB, ("spec", "completions"), 2, Effect.rejected),
        (JOB, ("spec", "completions"), 1, None),
        (JOB, ("spec", "parallelism"), 1, Effect.applied),
        (WORK_QUEUE, ("spec", "completions"), 1, Effect.rejected),
        (WORK_QUEUE, ("spec", "parallelism"), None, Effect.applied),
        (CUSTOM, ("spec", "template"), {"protocol": "TCP"}, Effect.applied),
        (CUSTOM, ("spec", "items"), [], Effect.applied),
        (CUSTOM, ("spec", "limits", "size"), "1.0", Effect.applied),
        (CUSTOM, ("metadata", "labels"), {"helm.sh/chart": "a-2.0.0"}, None),
        (JOB, ("spec", "backoffLimit"), 2, Effect.applied),
        (HOOK, ("spec", "nodeName"), "b", Effect.none),
    ],
)
def test_a_field_that_changes(
    document: dict[str, Any], path: tuple[Any, ...], value: Any, effect: Effect | None
) -> None:
    changed = copy.deepcopy(document)
    at(*path)(changed, value)
    changes = find_changes(rendering(document), rendering(changed))
    assert [change.effect for change in changes] == ([] if effect is None else [effect])
    if changes:
        assert (changes[0].kind, changes[0].fate) == (document["kind"], Fate.changed)
        assert changes[0].fields


@pytest.mark.parametrize(
    ("document", "fate", "effect"),
    [
        (STATEFUL_SET, Fate.added, Effect.applied),
        (STATEFUL_SET, Fate.removed, Effect.restart),
        (SERVICE, Fate.removed, Effect.applied),
        (CLAIM, Fate.removed, Effect.none),
        (HOOK, Fate.removed, Effect.none),
        (HOOK, Fate.added, Effect.none),
    ],
)
def test_an_object_that_comes_or_goes(document: dict[str, Any], fate: Fate, effect: Effect) -> None:
    before, after = ((), (document,)) if fate is Fate.added else ((document,), ())
    (change,) = find_changes(rendering(*before), rendering(*after))
    assert (change.fate, change.effect) == (fate, effect)


def test_the_worst_comes_first() -> None:
    before = [CONFIG_MAP, JOB, STATEFUL_SET]
    after = copy.deepcopy(before)
    at("metadata", "labels", "x")(after[0], "y")
    at("spec", "backoffLimit")(after[1], 2)
    at(*CONTAINER, "image")(after[2], "a:2")
    effects = [change.effect for change in find_changes(rendering(*before), rendering(*after))]
    assert effects == [Effect.restart, Effect.applied, Effect.none]


def test_names_that_end_in_a_hash_are_not_gone() -> None:
    def named(name: str) -> dict[str, Any]:
        return CONFIG_MAP | {"metadata": {"name": name}}

    changes = find_changes(
        rendering(named("exp-cluster-0a1b2c3d"), named("exp-lost"), named("exp-lost-00000000"), SERVICE),
        rendering(named("exp-cluster-ffffffff"), named("exp-other"), SERVICE),
    )
    assert list(removed_names({"": changes})) == ["ConfigMap exp-lost"]


def test_a_number_that_becomes_a_truth_value_is_a_change() -> None:
    before, after = ({"apiVersion": "a/v1", "kind": "Foo", "metadata": {"name": "a"}, "level": x} for x in (1, True))
    (change,) = find_changes(rendering(before), rendering(after))
    assert [field.path for field in change.fields] == ["level"]
