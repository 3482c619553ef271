"""YAML text to a tree with positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.errors import SpecError
from trainchart.spec.document import parse_document


def parse(text: str):  # type: ignore[no-untyped-def]
    return parse_document(text, file="m.yaml", layer="spec")


def test_every_node_knows_its_line_and_column() -> None:
    document = parse("name: mnist\nroles:\n  worker:\n    cpu: 2\n    args: [a, b]\n")
    places = {path: str(origin) for path, origin in document.origins.items()}
    assert places[("name",)] == "m.yaml:1:1"
    assert places[("roles", "worker", "cpu")] == "m.yaml:4:5"
    assert places[("roles", "worker", "args", 1)] == "m.yaml:5:15"


def test_anchors_and_merges_are_followed() -> None:
    document = parse("a: &a {cpu: 1, gpu: yes}\nb:\n  <<: *a\n  cpu: 2\n")
    assert document.tree["b"] == {"cpu": 2, "gpu": "yes"}


@pytest.mark.parametrize(
    ("text", "says", "where"),
    [
        ("name: [unclosed\n", "expected ',' or ']'", "m.yaml:2:1"),
        ("roles: {a: 1}\nb: 2\nroles: {a: 1}\n", "roles is there twice: lines 1 and 3", "m.yaml:3:1"),
        ("a: {1: 1, 1: 2}\n", "1 is there twice: line 1", "m.yaml:1:11"),
        ("a: 1\na: 2\na: 3\n", "a is there 3 times: lines 1, 2 and 3", "m.yaml:2:1"),
        ("? [1, 2]\n: 3\n", "a key is a list or a mapping", "m.yaml:1:1"),
        ("b: 1\na: !!set {b, c}\n", "neither a text, number, list nor mapping", "m.yaml:2:1"),
        ("a: !!int x\n", "'x' is not of type int", "m.yaml:1:4"),
        ("b: 1\na: \x01\n", "the control character U+0001 is not allowed", "m.yaml:2"),
        ("- 1\n- 2\n", "expected a mapping", "m.yaml:1:1"),
        ("", "found nothing", "m.yaml:1:1"),
        ("just text", "expected a mapping", "m.yaml:1:1"),
        ("a: 1\n---\nb: 2\n", "", "m.yaml"),
        ("a: \x00", "", "m.yaml"),
        ("\ta: 1", "", "m.yaml"),
        ("a: {null: 1}\n", "a key is empty", "m.yaml:1:1"),
        (
            "a: &a [1,1,1,1,1,1,1,1]\n"
            + "".join(f"{c}: &{c} [{','.join(['*' + p] * 8)}]\n" for p, c in zip("abcde", "bcdef", strict=True)),
            "more than 50000 entries",
            "m.yaml",
        ),
        ("a: *nowhere\n", "undefined alias", "m.yaml:1:4"),
        ("a: !!python/object:os.system x\n", "", "m.yaml"),
    ],
)
def test_what_is_no_spec_is_refused_with_its_place(text: str, says: str, where: str) -> None:
    try:
        parse(text)
    except SpecError as error:
        (problem,) = error.problems
        assert says in problem.message
        assert "_Spelled" not in str(problem)
        assert problem.where.startswith(where)
    else:
        assert text.startswith("a: !!python"), "an unknown tag is harmless: it is read as text"


def test_an_alias_of_itself_is_nothing() -> None:
    assert parse("a: &a\n  b: *a\n").tree == {"a": {"b": None}}


@given(st.text(max_size=200))
def test_no_text_at_all_gives_a_traceback(text: str) -> None:
    try:
        parse(text)
    except SpecError as error:
        assert error.problems


def test_half_a_character_is_refused_where_it_stands() -> None:
    with pytest.raises(SpecError) as refusal:
        parse('name: mnist\nargs: [a, "\\ud83d\\ude00"]\n')
    (problem,) = refusal.value.problems
    assert problem.where == "m.yaml:2:11"
    assert "half a character" in problem.message


@pytest.mark.parametrize("escape", ["\\x7f", "\\x80", "\\x85", "\\x9f", "\\uFFFE", "\\uFFFF"])
@pytest.mark.parametrize("text", ['name: mnist\nargs: ["a{}"]\n', 'name: mnist\n"a{}": 1\n'])
def test_characters_that_helm_cannot_write_are_refused(text: str, escape: str) -> None:
    with pytest.raises(SpecError) as refusal:
        parse(text.format(escape))
    (problem,) = refusal.value.problems
    assert problem.where.startswith("m.yaml:2:") and "control character" in problem.message


def test_characters_that_helm_writes_are_kept() -> None:
    assert parse('name: "\\x03 \\uFEFF \\U0001F600"\n').tree == {"name": "\x03 \ufeff \U0001f600"}
