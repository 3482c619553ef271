"""Plain manifests are read as kubectl reads them: Lists fall apart, keys are texts, every object has its line."""

from __future__ import annotations

import pytest

from trainchart.check.manifests import parse_plain_manifests
from trainchart.errors import RenderError, ToolError
from trainchart.helm.manifests import parse_manifests
from trainchart.yaml_limits import NODE_LIMIT

LIST = """\
# two objects
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: a}
  - apiVersion: v1
    kind: ConfigMapList
    items:
      - metadata: {name: b}
      - metadata: {name: c}
---
apiVersion: v1
kind: Secret
metadata: {name: d}
---
apiVersion: v1
kind: List
items: []
---
apiVersion: v1
kind: List
"""


def test_lists_fall_apart_and_every_object_has_its_line() -> None:
    found = parse_plain_manifests({"a.yaml": LIST}, "x")
    assert [(manifest.kind, manifest.name, manifest.line) for manifest in found] == [
        ("ConfigMap", "a", 5),
        ("ConfigMap", "b", 11),
        ("ConfigMap", "c", 12),
        ("Secret", "d", 14),
    ]
    assert found[1].document["apiVersion"] == "v1"


def test_lists_that_a_chart_renders_fall_apart_too() -> None:
    found = parse_manifests({"templates/a.yaml": LIST}, "x")
    assert [(manifest.name, manifest.line) for manifest in found] == [("a", 0), ("b", 0), ("c", 0), ("d", 0)]
    with pytest.raises(RenderError):
        parse_manifests({"templates/a.yaml": "kind: List\nitems: [1]\n"}, "x")


def test_a_rendered_byte_order_mark_at_the_beginning_is_refused() -> None:
    """Behind Helm's line about the source, Kubernetes reads it as a part of the first key."""
    text = "\ufeffdata: {a: b}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    with pytest.raises(RenderError) as caught:
        parse_manifests({"templates/a.yaml": text}, "x")
    assert str(caught.value.problems[0]).startswith("templates/a.yaml:1: renders to invalid YAML: a byte order mark")
    assert parse_plain_manifests({"a.yaml": text}, "x")


def test_objects_have_a_limit_together() -> None:
    texts = dict.fromkeys(("a.yaml", "b.yaml"), f"kind: A\nx: [{'1,' * (NODE_LIMIT // 2)}1]\n")
    with pytest.raises(ToolError, match="x is too large: it holds more than"):
        parse_plain_manifests(texts, "x")
    with pytest.raises(RenderError, match="the rendered chart x is too large: it holds more than 5000 objects"):
        parse_manifests({"a.yaml": "kind: A\n---\n" * 5001}, "x")
    with pytest.raises(RenderError, match="the rendered chart x is too large: it holds more than 500000 keys"):
        parse_manifests(texts, "x")


def test_a_kind_that_only_ends_like_a_list_stays_whole() -> None:
    [found] = parse_plain_manifests({"": "{apiVersion: x.io/v1, kind: AllowList, spec: {items: []}}"}, "x")
    assert found.kind == "AllowList"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: 1\n---\nb: [\n", "x/a.yaml:4", "is not YAML"),
        ("a: 1\n---\n- b\n", "x/a.yaml:3", "is not a Kubernetes object"),
        ("a: 1\nb: &b\n  c: {d: *b}\n", "x/a.yaml:2", "an anchor contains itself"),
        ("a: 1\n~: 2\n", "x/a.yaml:1", "a key is null or not a plain word"),
        ("a: 1\nb: \x07\n", "x/a.yaml:2", "it holds a character that YAML forbids"),
        (
            "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)),
            "x/a.yaml:1",
            "its aliases repeat too much",
        ),
    ],
)
def test_what_cannot_be_read_has_file_and_line(text: str, place: str, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_plain_manifests({"a.yaml": text}, "x/")
    [problem] = caught.value.problems
    assert problem.where == place
    assert message in problem.message


def test_the_only_file_is_called_what_the_user_called_it() -> None:
    with pytest.raises(ToolError) as caught:
        parse_plain_manifests({"": "a: 1\nb: [\n"}, "web.yaml")
    assert [problem.where for problem in caught.value.problems] == ["web.yaml:3"]


def test_keys_are_texts_as_in_json() -> None:
    [found] = parse_plain_manifests({"": "{3: 4, true: x, 1.5: z, a: {2: {1: b}}}"}, "x")
    assert found.document == {"3": 4, "true": "x", "1.5": "z", "a": {"2": {"1": "b"}}}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("base/kustomization.yaml", "resources: [a.yaml]"),
        ("kustomization.yml", "{kind: Kustomization, resources: []}"),
        ("k.yaml", "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization}"),
        ("a.yaml", "{apiVersion: kubeadm.k8s.io/v1beta4, kind: ClusterConfiguration}"),
        ("a.yaml", "{apiVersion: kind.x-k8s.io/v1alpha4, kind: Cluster}"),
        ("a.yaml", "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration}"),
        ("a.yaml", "{apiVersion: v1, kind: Config, clusters: []}"),
    ],
)
def test_the_configuration_of_a_tool_is_no_object(path: str, text: str) -> None:
    assert parse_plain_manifests({path: text}, "x") == ()
    [kept] = parse_plain_manifests({path: "{apiVersion: v1, kind: Secret, metadata: {name: a}}"}, "x")
    assert kept.kind == "Secret"


def test_the_only_file_may_be_a_kustomization_too() -> None:
    assert parse_plain_manifests({"": "resources: []"}, "base/kustomization.yaml") == ()
    [kept] = parse_plain_manifests({"": "resources: []"}, "base/other.yaml")
    assert kept.kind == ""
