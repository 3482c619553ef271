"""What a post-renderer changed about a release stays when one value of its chart changes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from trainchart.helm.kept_changes import SOURCE_ANNOTATION, Carried, carry_over, dump_objects
from trainchart.helm.rendering import ReleaseTexts
from trainchart.kubernetes_yaml import dump_mapping, parse_documents

Document = dict[str, Any]


def make_set(run_id: str) -> Document:
    containers = [{"name": "training", "image": "ml/a:1", "env": [{"name": "RUN_ID", "value": run_id}]}]
    metadata = {"name": "exp1-worker", "annotations": {"trainchart/replicas": "2"}, "labels": {"app": "a"}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"template": template}}


def make_job(run_id: str) -> Document:
    containers = [{"name": "controller", "args": ["--run", run_id]}]
    metadata = {"name": f"exp1-{run_id}", "labels": {"app": "a", "run": run_id}}
    spec = {"template": {"spec": {"containers": containers}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def make_release(run_id: str) -> list[Document]:
    policy = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "exp1"}, "spec": {}}
    return [policy, make_set(run_id), make_job(run_id)]


HOOK: Document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "exp1-test", "annotations": {"hook": "test"}}}


def as_texts(objects: list[Document], hook: Document = HOOK) -> ReleaseTexts:
    manifest = "".join(f"---\n# Source: a/templates/{each['kind']}.yaml\n{dump_mapping(each)}" for each in objects)
    return ReleaseTexts(manifest, (("a/templates/tests/test.yaml", dump_mapping(hook)),))


def carry(change: Callable[[list[Document]], None]) -> tuple[dict[str, Document], Carried]:
    """Return what a new run id makes of a release that `change` has changed, by kind."""
    stored = copy.deepcopy(make_release("one"))
    change(stored)
    carried = carry_over(as_texts(make_release("one")), as_texts(stored), as_texts(make_release("two")), "team-a")
    return {each["kind"]: dict(each) for _, each in carried.objects}, carried


def test_without_changes_the_new_rendering_stays_as_it_is() -> None:
    objects, carried = carry(lambda _: None)
    assert list(objects.values()) == make_release("two")
    assert (carried.kept, carried.kept_in_hooks, carried.conflicts) == ((), (), ())
    assert [source for source, _ in carried.objects] == [
        "a/templates/PodDisruptionBudget.yaml", "a/templates/StatefulSet.yaml", "a/templates/Job.yaml",
    ]  # fmt: skip


def test_labels_sidecars_images_and_added_objects_are_kept() -> None:
    def change(stored: list[Document]) -> None:
        for each in stored:
            each["metadata"].setdefault("labels", {})["team"] = "a"
            each["metadata"]["namespace"] = "team-a"
        pods = stored[1]["spec"]["template"]["spec"]
        pods["containers"][0] |= {"image": "mirror/a@sha256:1", "resources": {"limits": {"cpu": 1}}}
        pods["containers"].insert(0, {"name": "sidecar", "image": "proxy:1"})
        pods["containers"][1]["env"].insert(0, {"name": "PROXY", "value": "http://proxy"})
        stored.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}})

    objects, carried = carry(change)
    sidecar, training = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert sidecar == {"name": "sidecar", "image": "proxy:1"}
    assert training["image"] == "mirror/a@sha256:1"
    assert training["env"] == [{"name": "PROXY", "value": "http://proxy"}, {"name": "RUN_ID", "value": "two"}]
    assert objects["Job"]["metadata"] == {
        "name": "exp1-two", "labels": {"app": "a", "run": "two", "team": "a"}, "namespace": "team-a",
    }  # fmt: skip
    assert objects["PodDisruptionBudget"]["metadata"]["labels"] == {"team": "a"}
    assert objects["ConfigMap"]["metadata"] == {"name": "extra"}
    assert carried.conflicts == ()
    assert "StatefulSet exp1-worker: spec.template.spec.containers[sidecar]" in carried.kept
    assert "StatefulSet exp1-worker: spec.template.spec.containers[training].image" in carried.kept
    assert "ConfigMap extra" in carried.kept


def test_what_a_post_renderer_took_away_stays_away() -> None:
    def change(stored: list[Document]) -> None:
        del stored[0]
        del stored[0]["metadata"]["labels"]["app"]

    objects, carried = carry(change)
    assert sorted(objects) == ["Job", "StatefulSet"]
    assert objects["StatefulSet"]["metadata"]["labels"] == {}
    assert sorted(carried.kept) == ["PodDisruptionBudget exp1", "StatefulSet exp1-worker: metadata.labels.app"]


def _rename_job(stored: list[Document]) -> None:
    stored[2]["metadata"]["name"] = "team-exp1-one"


def _add_argument(stored: list[Document]) -> None:
    stored[2]["spec"]["template"]["spec"]["containers"][0]["args"].append("--debug")


def _drop_job(stored: list[Document]) -> None:
    del stored[2]


def _set_run_id(stored: list[Document]) -> None:
    stored[1]["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = "mine"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_rename_job, "Job exp1-one"),
        (_drop_job, "Job exp1-one"),
        (_add_argument, "Job exp1-one: spec.template.spec.containers[controller].args"),
        (_set_run_id, "StatefulSet exp1-worker: spec.template.spec.containers[training].env[RUN_ID].value"),
    ],
)
def test_a_field_changed_by_both_is_a_conflict(change: Callable[[list[Document]], None], field: str) -> None:
    assert carry(change)[1].conflicts == (field,)


def test_the_number_of_pods_is_not_taken_for_a_change() -> None:
    """The chart renders it when a release is installed suspended, or when its run is over."""

    def change(stored: list[Document]) -> None:
        stored[1]["spec"]["replicas"] = 0

    objects, carried = carry(change)
    assert "replicas" not in objects["StatefulSet"]["spec"]
    assert carried.kept == ()


def test_another_way_to_write_the_same_is_no_change() -> None:
    before, after = make_set("one"), make_set("one")
    before["spec"] |= {"serviceName": None, "minReadySeconds": 1e6}
    after["spec"] |= {"minReadySeconds": 1000000}
    rendered = as_texts([before])
    carried = carry_over(rendered, as_texts([after]), rendered, "team-a")
    assert carried.kept == ()
    assert "1000000\n" in dump_objects(carried.objects, marks_sources=False)


def test_hooks_are_kept_apart_from_objects() -> None:
    changed: Document = {**HOOK, "metadata": {**HOOK["metadata"], "labels": {"team": "a"}}}
    rendered, stored = as_texts([], HOOK), as_texts([], changed)
    carried = carry_over(rendered, stored, rendered, "team-a")
    assert (carried.objects, carried.kept_in_hooks) == ((), ("Pod exp1-test: metadata.labels",))
    assert carried.hooks == (("a/templates/tests/test.yaml", changed),)


@pytest.mark.parametrize("marks_sources", [True, False])
def test_only_helm_4_is_given_sources_as_annotations(marks_sources: bool) -> None:
    _, carried = carry(lambda stored: stored[0]["metadata"].update(labels={"team": "a"}))
    text = dump_objects(carried.objects, marks_sources=marks_sources)
    documents = parse_documents(text)
    assert len(documents) == 3
    marks = [(each["metadata"].get("annotations") or {}).get(SOURCE_ANNOTATION) for each in documents]
    assert marks == [source if marks_sources else None for source, _ in carried.objects]
    assert "# Source: a/templates/Job.yaml\n" in text


def test_a_number_that_becomes_a_truth_value_is_kept() -> None:
    rendered, changed = (
        {"apiVersion": "a/v1", "kind": "Foo", "metadata": {"name": "a"}, "level": x} for x in (1, True)
    )
    carried = carry_over(as_texts([rendered]), as_texts([changed]), as_texts([rendered]), "team-a")
    assert carried.kept == ("Foo a: level",)
    assert carried.objects[0][1]["level"] is True
