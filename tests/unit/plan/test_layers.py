"""Layers of defaults: how lists merge, what is kept of weaker layers, and where their order matters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.errors import SpecError
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.plan.layers import Merged, merge_layers
from trainchart.spec.document import Document, parse_document

SPEC = "strategy: parameter-server\nroles: {worker: {}, ps: {}}\nvolumes: {data: {}}\n"


def layer(text: str, name: str) -> Document:
    return parse_document(text, file=f"{name}.yaml", layer=name)


def merge(*packs: str, spec: str = SPEC) -> Merged:
    return merge_layers([layer(text, f"pack {n}") for n, text in enumerate(packs)], layer(spec, "spec"))


def test_a_list_replaces_and_a_key_with_a_plus_adds() -> None:
    below = "tolerations: [{key: a}]\nextraVolumes: [{name: x, emptyDir: {}}, {name: y}]\n"
    merged = merge(below, "tolerations: [{key: b}]\nextraVolumes+: [{name: z}, {name: x, hostPath: {}}, {name: y}]\n")
    assert merged.tree["tolerations"] == [{"key": "b"}]
    assert merged.tree["extraVolumes"] == [{"name": "x", "hostPath": {}}, {"name": "y"}, {"name": "z"}]
    origins = {path: origin.layer for path, origin in merged.origins.items() if path[:1] == ("extraVolumes",)}
    assert origins["extraVolumes",] == "pack 1"
    assert origins["extraVolumes", 0, "hostPath"] == "pack 1"
    assert ("extraVolumes", 0, "emptyDir") not in origins
    assert origins["extraVolumes", 1] == "pack 0"
    assert origins["extraVolumes", 2, "name"] == "pack 1"


def test_a_plus_adds_to_nothing_and_to_its_own_list() -> None:
    assert merge("tolerations+: [{key: a}]\n").tree["tolerations"] == [{"key": "a"}]
    own = merge("keywords: [x]\n", "keywords+: [b]\nkeywords: [a]\n")
    assert own.tree["keywords"] == ["a", "b"]


def test_a_plus_works_in_every_section() -> None:
    merged = merge(
        'roles:\n  "*": {tolerations: [{key: a}]}\n  ps: {tolerations+: [{key: b}]}\n',
        spec=SPEC.replace("worker: {}", "worker: {tolerations+: [{key: c}]}"),
    )
    assert merged.tree["roles"]["ps"]["tolerations"] == [{"key": "a"}, {"key": "b"}]
    assert merged.tree["roles"]["worker"]["tolerations"] == [{"key": "a"}, {"key": "c"}]


@pytest.mark.parametrize("value", ["5", "{key: a}", "", "text"])
def test_a_plus_without_a_list_is_refused_with_its_place(value: str) -> None:
    with pytest.raises(SpecError) as refusal:
        merge(f"tolerations+: {value}\n")
    (problem,) = refusal.value.problems
    assert problem.message == "tolerations+: a key with a plus adds to a list, but its value is not a list"
    assert problem.where == "pack 0.yaml:1:1"


def test_weaker_settings_are_kept_the_strongest_first() -> None:
    merged = merge(
        'roles: {"*": {cpu: 1}}\nkeywords: [a]\n',
        "roles: {ps: {cpu: 2}}\nkeywords+: [b]\n",
        spec=SPEC.replace("ps: {}", "ps: {cpu: 3}"),
    )
    settings = merged.overridden["roles", "ps", "cpu"]
    assert [(setting.value, setting.origin.layer) for setting in settings] == [(2, "pack 1"), (1, "pack 0")]
    (added,) = merged.overridden["keywords",]
    assert (added.value, added.extended) == (["a"], True)
    assert ("roles", "worker", "cpu") not in merged.overridden


KEYS = ("image", "run", "service", "gpu", "env", "nodeSelector")
TREES = st.dictionaries(
    st.sampled_from(KEYS), st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), min_size=1), max_size=4
)


def _leaves(tree: dict[str, dict[str, int]]) -> set[tuple[str, str]]:
    return {(section, key) for section, entries in tree.items() for key in entries}


def _without(tree: dict[str, dict[str, int]], taken: set[tuple[str, str]]) -> dict[str, dict[str, int]]:
    return {
        section: {key: value for key, value in entries.items() if (section, key) not in taken}
        for section, entries in tree.items()
    }


def _sorted(tree: Any) -> Any:
    return {key: _sorted(tree[key]) for key in sorted(tree)} if isinstance(tree, dict) else tree


@given(TREES, TREES, TREES)
def test_the_order_of_disjoint_layers_changes_nothing(
    first: dict[str, dict[str, int]], second: dict[str, dict[str, int]], third: dict[str, dict[str, int]]
) -> None:
    second = _without(second, _leaves(first))
    third = _without(third, _leaves(first) | _leaves(second))
    texts = [dump_mapping(tree) if tree else "{}" for tree in (first, second, third)]
    forwards, backwards = merge(*texts), merge(*reversed(texts))
    assert _sorted(forwards.tree) == _sorted(backwards.tree)
    assert not forwards.overridden
    assert not backwards.overridden


@given(TREES, TREES)
def test_the_stronger_layer_wins_wherever_two_meet(
    weak: dict[str, dict[str, int]], strong: dict[str, dict[str, int]]
) -> None:
    merged = merge(*(dump_mapping(tree) if tree else "{}" for tree in (weak, strong)))
    for section, key in _leaves(weak) | _leaves(strong):
        wanted = strong.get(section, {}).get(key, weak.get(section, {}).get(key))
        assert merged.tree[section][key] == wanted
    both = _leaves(weak) & _leaves(strong)
    assert {path[:2] for path in merged.overridden} == both
