"""The labels of `trainchart diff` are true: random changes of a rendered chart, and what a real API server makes of it.

'rejected' is what its dry run refuses, 'restarts training' what gives a StatefulSet another update revision, and 'no
effect' what leaves every generation as it was. The release is installed without pods, so that changes cost nothing.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lightkube.core.client import Client
from lightkube.resources.apps_v1 import StatefulSet

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import PROJECT, mnist_values
from trainchart.compare.effect import Effect, find_changes
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Manifest, Rendering, ValueOverrides
from trainchart.kubernetes_yaml import dump_mapping

pytestmark = pytest.mark.cluster

CASES = 200
MANAGER = "helm"
WITHOUT_GENERATION = {"ConfigMap", "Role", "RoleBinding", "Service", "ServiceAccount"}
"""Kinds that the API server does not count the generations of: theirs are compared by content."""
Document = dict[str, Any]


def _put(*path: Any) -> Callable[[Document, Any], None]:
    def put(document: Document, value: Any) -> None:
        place: Any = document
        for part in path[:-1]:
            place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
        if value is None:
            place.pop(path[-1], None)
        else:
            place[path[-1]] = value

    return put


@dataclass(frozen=True)
class Mutation:
    """A field of a kind of object, and values that are fit to stand there; None takes it away."""

    kind: str
    path: tuple[Any, ...]
    values: tuple[Any, ...]


POD = ("spec", "template", "spec")
CONTAINER = (*POD, "containers", 0)
MUTATIONS = (
    *(
        Mutation(kind, ("metadata", part, "example.com/note"), ("a", "b"))
        for kind in ("StatefulSet", "Service", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Role", "Job")
        for part in ("labels", "annotations")
    ),
    Mutation("StatefulSet", (*CONTAINER, "image"), ("example.com/a:1", "example.com/a:2")),
    Mutation("StatefulSet", (*CONTAINER, "args"), ([], ["--a"], ["--b"])),
    Mutation("StatefulSet", (*CONTAINER, "terminationMessagePolicy"), ("File", "FallbackToLogsOnError")),
    Mutation("StatefulSet", (*CONTAINER, "resources", "requests", "cpu"), ("1", "1000m", "0.5", "500m", 1)),
    Mutation("StatefulSet", (*CONTAINER, "resources", "requests", "memory"), ("1Gi", "1024Mi", "1073741824", "512Mi")),
    Mutation("StatefulSet", (*POD, "terminationGracePeriodSeconds"), (30, 31, None)),
    Mutation("StatefulSet", (*POD, "dnsPolicy"), ("ClusterFirst", "Default", None)),
    Mutation("StatefulSet", (*POD, "schedulerName"), ("default-scheduler", "other", None)),
    Mutation("StatefulSet", (*POD, "nodeSelector"), ({"a": "b"}, {"a": "c"}, None)),
    Mutation("StatefulSet", (*POD, "tolerations"), ([], [{"key": "a", "operator": "Exists"}], None)),
    Mutation("StatefulSet", ("spec", "template", "metadata", "annotations", "a"), ("b", "c")),
    Mutation("StatefulSet", ("spec", "minReadySeconds"), (0, 5, None)),
    Mutation("StatefulSet", ("spec", "revisionHistoryLimit"), (10, 3, None)),
    Mutation("StatefulSet", ("spec", "updateStrategy", "type"), ("OnDelete", "RollingUpdate")),
    Mutation("StatefulSet", ("spec", "podManagementPolicy"), ("Parallel", "OrderedReady")),
    Mutation("StatefulSet", ("spec", "serviceName"), ("other", "another")),
    Mutation("StatefulSet", ("spec", "selector", "matchLabels", "a"), ("b",)),
    Mutation("Service", ("spec", "clusterIP"), ("None", "10.96.200.200", None)),
    Mutation("Service", ("spec", "publishNotReadyAddresses"), (True, False)),
    Mutation("Service", ("spec", "sessionAffinity"), ("None", "ClientIP", None)),
    Mutation("ConfigMap", ("data", "a"), ("b", "c")),
    Mutation("ConfigMap", ("immutable",), (True, False)),
    Mutation("NetworkPolicy", ("spec", "policyTypes"), (["Ingress"], ["Ingress", "Egress"])),
    Mutation("PodDisruptionBudget", ("spec", "maxUnavailable"), (1, 2)),
    Mutation("RoleBinding", ("roleRef", "name"), ("other",)),
    Mutation("Job", ("spec", "backoffLimit"), (3, 5)),
    Mutation("Job", ("spec", "completions"), (1, 2)),
    Mutation("Job", ("spec", "activeDeadlineSeconds"), (1000, 2000)),
    Mutation("Job", (*CONTAINER, "image"), ("example.com/a:1", "example.com/a:2")),
    Mutation("PersistentVolumeClaim", ("spec", "accessModes"), (["ReadWriteOnce"], ["ReadOnlyMany"])),
    Mutation("PersistentVolumeClaim", ("spec", "storageClassName"), ("other", "another")),
)
"""Claims are not bound here, and grow only then, so their size is left out."""


@dataclass(frozen=True)
class Installed:
    """The objects of a release that lie in a namespace, and how the API server keeps them."""

    admin: Access
    namespace: str
    documents: tuple[Document, ...]

    def apply(self, document: Document, *, dry_run: bool = False) -> Document | None:
        """Update an object as Helm 4 does; None where the API server refuses."""
        arguments = [
            "apply",
            "--server-side",
            "--force-conflicts",
            f"--field-manager={MANAGER}",
            "-o",
            "json",
            "-f",
            "-",
        ]
        arguments += ["--dry-run=server"] if dry_run else []
        printed = self.admin.kubectl("-n", self.namespace, *arguments, text=dump_objects(document), check=False)
        return dict(json.loads(printed)) if printed.strip() else None

    def revision(self, name: str) -> tuple[int, str]:
        """Return generation and update revision of a StatefulSet, once its controller has seen the generation."""

        def read(client: Client) -> tuple[int, str] | None:
            found = client.get(StatefulSet, name, namespace=self.namespace)
            assert found.metadata is not None
            generation = found.metadata.generation or 0
            if found.status is None or found.status.observedGeneration != generation:
                return None
            return generation, found.status.updateRevision or ""

        return self.admin.wait_for(read, f"{name} seen by its controller", namespace=self.namespace)


@pytest.fixture
def installed(admin: Access, namespace: str) -> Iterator[Installed]:
    values = mnist_values() | {"run": {"desiredState": "suspended"}}
    rendering = find_engine().render(
        PROJECT / "charts" / "mnist",
        release="exp",
        namespace=namespace,
        overrides=ValueOverrides(files=(("values.yaml", dump_mapping(values)),)),
    )
    documents = [dict(manifest.document) for manifest in rendering.manifests if manifest.kind != "Pod"]
    for document in documents:
        if document["kind"] == "Job":
            document["spec"] = document["spec"] | {"suspend": True}
        if document["kind"] == "StatefulSet":
            assert document["spec"]["replicas"] == 0
    found = Installed(admin, namespace, tuple(documents))
    for document in documents:
        assert found.apply(document) is not None, document
    yield found


def _effect(document: Document, changed: Document) -> Effect:
    before, after = (
        Rendering("exp", "default", (Manifest("templates/a.yaml", found),), {}) for found in (document, changed)
    )
    return max((change.effect for change in find_changes(before, after)), default=Effect.none)


def _content(kept: Document) -> Document:
    """Return what an object without generations is about."""
    return {key: value for key, value in kept.items() if key not in ("metadata", "status")}


def test_every_label_is_true(installed: Installed) -> None:
    kinds = {document["kind"] for document in installed.documents}
    assert {mutation.kind for mutation in MUTATIONS} <= kinds
    choices = [
        (document, mutation, value)
        for document in installed.documents
        for mutation in MUTATIONS
        if mutation.kind == document["kind"]
        for value in mutation.values
    ]
    seen: set[Effect] = set()
    disagreements: list[tuple[Any, ...]] = []

    @settings(
        max_examples=CASES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.sampled_from(choices))
    def agree(choice: tuple[Document, Mutation, Any]) -> None:
        document, mutation, value = choice
        changed = copy.deepcopy(document)
        _put(*mutation.path)(changed, value)
        expected, found = _effect(document, changed), _ask(installed, document, changed)
        seen.add(expected)
        if expected != found:
            disagreements.append(
                (document["kind"], document["metadata"]["name"], mutation.path, value, expected, found)
            )

    agree()
    assert disagreements == []
    assert seen == set(Effect)


def _ask(installed: Installed, document: Document, changed: Document) -> Effect:
    """Return what the API server and the controllers make of an update, and take it back."""
    kept = installed.apply(document, dry_run=True)
    assert kept is not None
    answer = installed.apply(changed, dry_run=True)
    if answer is None:
        return Effect.rejected
    if document["kind"] in WITHOUT_GENERATION:
        return Effect.none if _content(answer) == _content(kept) else Effect.applied
    if answer["metadata"]["generation"] == kept["metadata"]["generation"]:
        return Effect.none
    if document["kind"] != "StatefulSet":
        return Effect.applied
    name = document["metadata"]["name"]
    before = installed.revision(name)
    assert installed.apply(changed) is not None
    after = installed.revision(name)
    assert installed.apply(document) is not None
    return Effect.applied if after[1] == before[1] else Effect.restart
