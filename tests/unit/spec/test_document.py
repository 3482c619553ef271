"""YAML text to a tree with positions."""

from __future__ import annotations

import math

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
        ("? [1, 2]\n: 3\n", "a key is a list or a mapping", "m.yaml:1:3"),
        ("b: 1\na: !!set {b, c}\n", "the tag !!set has no meaning in a spec", "m.yaml:2:4"),
        ("a: !mine {b: 1}\n", "the tag !mine has no meaning in a spec", "m.yaml:1:4"),
        ("a: !!map [1]\n", "the tag !!map has no meaning in a spec", "m.yaml:1:4"),
        ("a: !!null x\n", "'x' is not of type null", "m.yaml:1:4"),
        ("a: @b\n", "a value cannot begin with @", "m.yaml:1:4"),
        ("a:\n\t- b\n", "a tab indents this line", "m.yaml:2:1"),
        ("a: [b,\n  c\nd: e\n", "(while parsing a flow sequence, which begins in line 1)", "m.yaml:3:2"),
        ("1: a\n'1': b\n", "1 is there twice: lines 1 and 2", "m.yaml:2:1"),
        ("b: 1\n# a\u2028c: 1\n", "U+2028 is a line break for some readers", "m.yaml:2"),
        ("a: &a\n  b: *a\n", "an alias within the value that it stands for", "m.yaml:2:3"),
        ("a: &a [*a]\n", "an alias within the value that it stands for", "m.yaml:1:4"),
        ("a: &a {<<: *a}\n", "<< takes a mapping, or a list of them", "m.yaml:1:4"),
        ("<<: 5\n", "<< takes a mapping, or a list of them", "m.yaml:1:5"),
        ('a: {"<<": {b: 1}}\n', "a quoted key <<", "m.yaml:1:5"),
        ("'<<': 1\n", "a quoted key <<", "m.yaml:1:1"),
        ("? " + "k" * 1001 + "\n: 1\n", "a key of more than 1000 characters", "m.yaml:1:3"),
        ("a: 0x" + "f" * 400 + "\n", "a number of 402 characters", "m.yaml:1:4"),
        (
            "a0: &a0 {}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)),
            "more than 50000 entries",
            "m.yaml",
        ),
        (
            f"a: &a {{{', '.join(f'k{n}: 1' for n in range(2000))}}}\nb: {{<<: [{', '.join(['*a'] * 2000)}]}}\n",
            "more than 50000 entries",
            "m.yaml",
        ),
        ("a: !!int x\n", "'x' is not of type int", "m.yaml:1:4"),
        ("b: 1\na: \x01\n", "the control character U+0001 is not allowed", "m.yaml:2"),
        ("- 1\n- 2\n", "expected a mapping", "m.yaml:1:1"),
        ("", "found nothing", "m.yaml:1:1"),
        ("just text", "expected a mapping", "m.yaml:1:1"),
        ("a: 1\n---\nb: 2\n", "", "m.yaml"),
        ("a: \x00", "", "m.yaml"),
        ("\ta: 1", "", "m.yaml"),
        ("a: {null: 1}\n", "a key is empty", "m.yaml:1:5"),
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
    with pytest.raises(SpecError) as refusal:
        parse(text)
    (problem,) = refusal.value.problems
    assert says in problem.message
    assert problem.where.startswith(where)


@pytest.mark.parametrize(
    ("written", "value", "spelling"),
    [
        ("0712345", 712345, "0712345"),
        ("0x1F", 31, "0x1F"),
        ("-0o17", -15, "-0o17"),
        ("0b1_1", 3, "0b1_1"),
        ("1_0", 10, "1_0"),
        ("12e4567", math.inf, "12e4567"),
        ("-.inf", -math.inf, "-.inf"),
        ("._5", 0.5, "._5"),
        ("1.10", 1.1, "1.10"),
        ("TRUE", True, "TRUE"),
        ("~", None, "~"),
        ("yes", "yes", ""),
        ("2026-01-01", "2026-01-01", ""),
        ("+_", "+_", ""),
        ("_1", "_1", ""),
        ("<<", "<<", ""),
        ("=", "=", ""),
        ("1:30", "1:30", ""),
        ('!!int "5"', 5, "5"),
        ("!!str 5", "5", ""),
        ("9" * 5000, None, None),
    ],
)
def test_words_are_read_by_the_core_schema_of_yaml_1_2(written: str, value: object, spelling: str | None) -> None:
    if spelling is None:
        with pytest.raises(SpecError, match="not valid YAML"):
            parse(f"a: {written}\n")
        return
    document = parse(f"a: {written}\n")
    assert document.tree == {"a": value} and type(document.tree["a"]) is type(value)
    assert document.origins[("a",)].spelling == spelling


def test_merged_keys_stand_where_their_mapping_does() -> None:
    document = parse("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  z: 3\n  <<: [*a, *b]\n")
    assert document.tree["c"] == {"x": 1, "y": 1, "z": 3}
    assert str(document.origins["c", "y"]) == "m.yaml:4:3"
    assert str(document.origins["c", "z"]) == "m.yaml:4:3"


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
    assert problem.where == "m.yaml:2:14"
    assert "not a character" in problem.message


@pytest.mark.parametrize("escape", ["\\x7f", "\\x80", "\\x85", "\\x9f", "\\u2028", "\\u2029", "\\uFFFE", "\\uFFFF"])
@pytest.mark.parametrize("text", ['name: mnist\nargs: ["a{}"]\n', 'name: mnist\n"a{}": 1\n'])
def test_characters_that_helm_cannot_write_are_refused(text: str, escape: str) -> None:
    with pytest.raises(SpecError) as refusal:
        parse(text.format(escape))
    (problem,) = refusal.value.problems
    assert problem.where.startswith("m.yaml:2:") and "control character" in problem.message


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("env: {MARK: <no value>}\n", "m.yaml:1:13"),
        ("name: mnist\nargs: ['--na=a<no value>b']\n", "m.yaml:2:8"),
        ('name: mnist\nargs:\n  - |\n    print("<no value>")\n', "m.yaml:3:5"),
        ("name: mnist\n<no value>: 1\n", "m.yaml:2:1"),
    ],
)
def test_a_text_that_helm_removes_is_refused(text: str, where: str) -> None:
    with pytest.raises(SpecError) as refusal:
        parse(text)
    (problem,) = refusal.value.problems
    assert problem.where == where
    assert "contains <no value>, which Helm removes from every text" in problem.message
    assert problem.hint == "write it in another way, such as <no-value>"


def test_texts_like_the_one_that_helm_removes_are_kept() -> None:
    assert parse("a: <no-value> no value < no value> <No value>\n").tree == {
        "a": "<no-value> no value < no value> <No value>"
    }


def test_characters_that_helm_writes_are_kept() -> None:
    assert parse('name: "\\x03 \\uFEFF \\U0001F600"\n').tree == {"name": "\x03 \ufeff \U0001f600"}
