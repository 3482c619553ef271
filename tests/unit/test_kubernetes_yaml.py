"""YAML means to us what it means to Helm."""

from __future__ import annotations

import contextlib

import helm_python
import pytest

from trainchart.kubernetes_yaml import (
    YamlError,
    dump_mapping,
    find_duplicate_keys,
    find_merge_key,
    parse_documents,
    parse_mapping,
    parse_objects,
    require_few_nodes,
)
from trainchart.yaml_limits import NODE_LIMIT

WORDS = """
    y Y yes n No on OFF true TRUE tRUE null ~ 1 01 09 0755 0x1F 0b11 1_000 1e3 1.5 .5 5. +1 -1 1e-3 1E5 1:30
    12:30:45 2026-01-01 2026-01-01T00:00:00Z = 1.2.3 0.05 00 -0755 0.1.2 1e 0x e5 v1 text 1.2e+3
    1_0.5 1e5_0 .1_0 1_.5 -_1 -_1.5
    0X1f 0B11 0O17 0_x1f -0XfF 0X_ 0xg ._5 .5_ -._5 .5e1_0 .5e_1 0b+1 0b-1 0B+1 -0b+1
"""


@pytest.mark.parametrize("word", WORDS.split())
def test_unquoted_words_are_read_as_helm_reads_them(word: str) -> None:
    assert parse_mapping(f"a: {word}\n") == helm_python.values_from_yaml(f"a: {word}\n")


@pytest.mark.parametrize("word", WORDS.split())
def test_what_is_dumped_as_text_comes_back_as_text(word: str) -> None:
    text = dump_mapping({"a": word})
    assert parse_mapping(text) == {"a": word}
    assert helm_python.values_from_yaml(text) == {"a": word}


@pytest.mark.parametrize(
    "key",
    [
        "1",
        "true",
        "yes",
        "1.5",
        "1e3",
        "0x10",
        "010",
        "1000000.0",
        "1e21",
        "3.0",
        "1e-7",
        "2026-01-01",
        "1:30",
        "a",
        "123456.0",
        "1234567.0",
        "1.23456789",
        "0.0001",
        "0.00001",
        "-0.0",
        "16777217.5",
        "1e300",
        "-1e39",
        "3.14159265",
        "100000.5",
        ".inf",
        "-.inf",
    ],
)
def test_keys_become_texts_as_helm_makes_them(key: str) -> None:
    text = f"{key}: {{{key}: b}}\n"
    assert parse_mapping(text) == helm_python.values_from_yaml(text)


@pytest.mark.parametrize(
    "text",
    ["{1: a, 1.0: b}", "{'1': a, 1: b}", "a: {true: b, 'true': c}", "{1e3: a, 1000: b}", "{0.1: a, 0.100000001: b}"],
)
def test_keys_that_become_one_text_are_refused(text: str) -> None:
    """Helm takes one of the values at random."""
    with pytest.raises(YamlError, match="two keys that both become"):
        parse_mapping(text)


def test_keys_of_several_types_stay_apart() -> None:
    text = "{1: a, true: b, 0: c, false: d}"
    assert parse_mapping(text) == helm_python.values_from_yaml(text) == {"1": "a", "true": "b", "0": "c", "false": "d"}


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("text", ["a{}b", "{}b: c", "a{}", "{0}{0}", "a{}\n- b", "a {} b"])
def test_line_breaks_of_unicode_survive_a_dump(text: str, character: str) -> None:
    value = {"a": text.format(character), text.format(character): ["b"]}
    assert parse_mapping(dump_mapping(value)) == helm_python.values_from_yaml(dump_mapping(value)) == value


@pytest.mark.parametrize("text", ["~: a", "? [a]\n: b", "a: &a {b: *a}"])
def test_what_json_cannot_hold_is_refused_as_by_helm(text: str) -> None:
    with pytest.raises(YamlError):
        parse_mapping(text)
    with pytest.raises(helm_python.HelmError):
        helm_python.values_from_yaml(text)


def test_documents_and_their_errors() -> None:
    assert parse_documents("---\na: 1\n---\n# nothing\n---\nb: 2\n") == ({"a": 1}, {"b": 2})
    with pytest.raises(YamlError) as caught:
        parse_documents("a: 1\nb: [\n")
    assert caught.value.line == 3
    for text, message in (("- 1", "found a list"), ("a: 1\n---\nb: 1", "found 2"), ("text", "found a string")):
        with pytest.raises(YamlError, match=message):
            parse_mapping(text)
    assert parse_mapping("# nothing\n") == {}


@pytest.mark.parametrize("start", ["---\n---\n", "--- # first\n---\n", "---\n...\n---\n"])
def test_a_mapping_behind_an_empty_document_is_refused(start: str) -> None:
    assert helm_python.values_from_yaml(f"{start}a: 1\n") == {}
    with pytest.raises(YamlError, match="expected one YAML document, found 2"):
        parse_mapping(f"{start}a: 1\n")
    assert parse_mapping("# first\n---\na: 1\n---\n# last\n---\n") == {"a": 1}


def test_duplicate_keys_are_found_at_every_depth_once() -> None:
    text = "a: 1\nb:\n  - c: 1\n    d: 2\n    c: 3\n---\ne: &x {f: 1, f: 2}\ng: *x\na: 2\n"
    assert [(found.key, found.line) for found in find_duplicate_keys(text)] == [("c", 5), ("f", 7)]
    assert find_duplicate_keys("a: [") == ()


def test_the_merge_sign_is_a_text_where_it_is_a_value() -> None:
    assert parse_documents("a: <<\nb: {<<: {c: 1}}\n") == ({"a": "<<", "b": {"c": 1}},)
    assert parse_mapping(dump_mapping({"a": "<<"})) == {"a": "<<"}


@pytest.mark.parametrize("text", ["[" * 100_000, "a:\n" + "- " * 100_000 + "b", "{a: " * 100_000, "? " * 100_000])
def test_what_is_nested_without_end_is_refused(text: str) -> None:
    """libyaml before 0.2.6 would go down until the process dies of it; since then, it may be the first to refuse it."""
    with pytest.raises(YamlError, match=r"nested too deep|maximum nesting depth"):
        parse_mapping(text)
    assert find_duplicate_keys(text) == ()


def test_many_collections_beside_each_other() -> None:
    assert len(parse_mapping("a: [" + "[{b: [c]}], " * 2_000 + "]")["a"]) == 2_000
    assert parse_mapping(f"a:\n{' ' * 2_000}b: c") == {"a": {"b": "c"}}


MERGED = {
    "before": "a: own\n<<: {a: merged}\n",
    "before an alias": "b: &b {a: merged}\nc:\n  a: own\n  <<: *b\n",
    "in a list": "a: own\n<<: [{b: 1}, {a: merged}]\n",
    "between two": "<<: {a: 1}\na: own\n<<: {a: merged}\n",
    "two": "<<: {a: 1}\n<<: {b: 2}\n",
    "of another type": "1: own\n<<: {'1': merged}\n",
    "another name": "!!merge x: {a: 1}\n",
}


@pytest.mark.parametrize("text", MERGED.values(), ids=MERGED)
def test_a_merge_that_readers_understand_differently_is_refused(text: str) -> None:
    with pytest.raises(YamlError, match="understand") as caught:
        parse_mapping(text)
    assert caught.value.line


@pytest.mark.parametrize(
    "merge",
    [
        "{<<: *p, a: own}",
        "{<<: *q}",
        "{<<: [*p]}",
        "{<<: [*q, *p]}",
        "{<<: [*p, *q]}",
        "{<<: {<<: [*p, {a: 8}], b: 4}, c: 5}",
        "{<<: {<<: [*r, {a: 8}], a: 4}}",
        "{<<: [*r, *q], b: 7}",
        "{<<: [{<<: *q, b: 9}, *r]}",
    ],
)
def test_a_merge_before_the_keys_means_the_same_to_all(merge: str) -> None:
    text = f"p: &p {{a: 1, c: 2}}\nq: &q {{<<: *p, a: 3, b: 4}}\nr: &r {{<<: *q, c: 5}}\ns: {merge}\n"
    assert parse_mapping(text) == helm_python.values_from_yaml(text)


def test_the_line_of_a_merge_is_found() -> None:
    assert find_merge_key("b: &b {a: merged, c: 1}\nd:\n  <<: *b\n  a: own\n") == 3
    assert find_merge_key('a: <<\n"<<": 1\n') == 0


@pytest.mark.parametrize("value", ["! 12", '! "12"', "!foo 12", "!!set {a}", "!!timestamp 2020-01-01", "!!binary MQ=="])
def test_tags_that_readers_understand_differently_are_refused(value: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_mapping(f"a: {value}\n")
    assert caught.value.line == 1
    assert parse_mapping(f"# {value}\na: 'wow ! {value}'\n".replace('"', ""))


@pytest.mark.parametrize(
    "text",
    [
        "[!!str, sh]",
        "[!!null, x]",
        "[!, x]",
        "{a: !, b}",
        "{!!str, b}",
        '{"a":!!str, b: c}',
        "[&a !!str, *a]",
        "[!!st%72, x]",
        "[!<tag:yaml.org,2002:str>, x]",
        "[a,!!str, x]",
        "[x,\n!!str,\nx]",
    ],
)
def test_a_tag_directly_before_a_comma_is_refused(text: str) -> None:
    """Helm takes the comma for a part of the tag, so that the next entry is the one with the tag."""
    with pytest.raises(YamlError, match="a comma directly after the tag") as caught:
        parse_mapping(f"# first\na: {text}\n")
    assert caught.value.line == 2 + text.count("\n", 0, text.find("!!"))


@pytest.mark.parametrize(
    "text",
    [
        "[!!str , x]",
        "[!!str\n, x]",
        "[!!str x, y]",
        "[!!str &a , *a]",
        "[!<tag:yaml.org,2002:str> x, y]",
        "['!!str, x', \"!, y\", wow!, a!!str,b] # !!str, c",
        "|\n  !!str, x\n  !, y",
        "{a: !!str , b: c}",
    ],
)
def test_a_comma_after_a_tag_elsewhere_is_no_part_of_it(text: str) -> None:
    text = f"# !!str, x\na: {text}\n"
    assert parse_mapping(text) == helm_python.values_from_yaml(text)


@pytest.mark.parametrize("start", ["", "\ufeff", "# first\r\n"])
@pytest.mark.parametrize(
    "text",
    ["[what?, b]", "[--url, http://x?a=b]", "{b: c, d: {e: f?}}", "{b?: c}", "[b,\n'c?', d ? e]", "[[b], c?d]"],
)
def test_a_question_mark_without_quotes_in_brackets_is_refused(start: str, text: str) -> None:
    with pytest.raises(helm_python.HelmError):
        helm_python.values_from_yaml(f"a: {text}\n")
    with pytest.raises(YamlError, match="question mark") as caught:
        parse_mapping(f"{start}a: {text}\n")
    assert caught.value.line == 1 + f"{start}{text}".count("\n")


@pytest.mark.parametrize("text", ["what? # [?]", "['b?', \"c?\"] # ?", "[b, ? c]", "[\n? b\n, c]", "[?b]", "|\n  [b?]"])
def test_question_marks_that_all_read_alike(text: str) -> None:
    text = f"# [a?]\na: {text}\nb: {{? c : d}}\ne: f?\n"
    assert parse_mapping(text) == helm_python.values_from_yaml(text)


def test_signs_like_tags_take_no_time() -> None:
    text = "!" * 300_000
    assert parse_mapping(f"a: '{text}'\nb: '!{'a!' * 150_000}'\n")["a"] == text


@pytest.mark.parametrize(
    "start",
    [
        "%YAML 1.2\n---\n",
        "# first\n%YAML 1.2 # second\n---\n",
        "--- {}\n...\n%YAML 1.2\n---\n",
        "\ufeff%YAML 1.2\n---\n",
        "# first\r%YAML 1.2\n---\n",
    ],
)
def test_a_version_of_yaml_that_helm_refuses_is_refused(start: str) -> None:
    with pytest.raises(helm_python.HelmError):
        helm_python.values_from_yaml(start.partition("...\n")[2] or start)
    with pytest.raises(YamlError, match=r"%YAML 1\.2") as caught:
        parse_documents(f"{start}a: 1\n")
    assert caught.value.line == start[: start.find("%")].count("\n") + start.count("\r") + 1


def test_the_version_of_yaml_that_helm_reads() -> None:
    text = "%YAML 1.1\n---\na: |\n  %YAML 1.2\n"
    assert parse_mapping(text) == helm_python.values_from_yaml(text)


@pytest.mark.parametrize(
    "text", ["!!bool x", "!!int ''", "!!int +", "!!int 1e3", "!!float _", "!!null x", "!!bool [x]", "!!int {a: b}"]
)
def test_a_value_that_is_not_of_its_tag_is_refused(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_mapping(f"b: 1\na: {text}\n")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("spec:\n\ufeffpodSelector: {}\n", 2),
        ("# first\n\ufeffa: 1\n", 2),
        ("---\n\ufeffa: 1\n", 2),
        ("\ufeff\n\ufeffa: 1\n", 2),
        ("\ufeff\ufeffa: 1\nbc: 2\n", 1),
        ("a: 1\r\ufeff# b\r", 2),
        ("a: [x,\n\ufeffy]\n", 2),
        ("a: 1\n\ufeff", 2),
        ("a: \ufeffx\n", 1),
        ("a: |\n  \ufeffx\n", 2),
        ("a: 1\n# \ufeff\n", 2),
    ],
)
def test_a_byte_order_mark_within_a_text_is_refused(text: str, line: int) -> None:
    with pytest.raises(YamlError, match="byte order mark") as caught:
        parse_mapping(text)
    assert caught.value.line == line


@pytest.mark.parametrize("lead", ["'", '"', "|\n  ", "# "])
def test_where_a_byte_order_mark_is_does_not_save_it(lead: str) -> None:
    """The buffer of Go starts again behind each 512 bytes: with the mark there, the next lines lose a character."""
    for length in range(506, 512):
        text = f"a: {lead}{'x' * (length - len(lead))}\ufeff{lead.strip('|# ').strip()}\nxy: 1\n"
        with contextlib.suppress(helm_python.HelmError):
            if "xy" in helm_python.values_from_yaml(text):
                continue
        break
    else:
        pytest.fail("Helm reads a byte order mark within a text like any character: no need to refuse it")
    with pytest.raises(YamlError, match="byte order mark"):
        parse_mapping(text)


@pytest.mark.parametrize("text", ["\ufeffa: 1\nb: 2\n", "\ufeff", "\ufeff---\na: 1\n", '\ufeffa: "\\ufeffb"\n'])
def test_a_byte_order_mark_at_the_beginning_or_escaped_is_read(text: str) -> None:
    assert parse_mapping(text) == helm_python.values_from_yaml(text)


def test_a_byte_order_mark_is_dumped_as_its_escape() -> None:
    value = {"a": "\ufeffb", "c\ufeff": "\n\ufeffd\n"}
    text = dump_mapping(value)
    assert parse_mapping(text) == helm_python.values_from_yaml(text) == value


@pytest.mark.parametrize("tag", ["!!str", "!!int", "!!float", "!!bool", "!!null"])
@pytest.mark.parametrize(
    "text", ["a: {} {{!!value x: 5}}\n", "? {} {{!!value x: 5}}\n: b\n", "[{} &a {{!!value x: 5}}, *a]"]
)
def test_a_mapping_tagged_as_a_scalar_is_refused(text: str, tag: str) -> None:
    """PyYAML takes the value of the key !!value for the mapping; Helm keeps the mapping, or refuses it as a key."""
    with pytest.raises(YamlError, match="expected a scalar, found a mapping") as caught:
        parse_documents(text.format(tag))
    assert caught.value.line == 1


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(
    "number",
    ["1e308", "1e309", "1e390", "9" * 25, "9" * 400, f"0x{'f' * 17}", f"0b{'1' * 65}", f"0o{'7' * 30}", "7_" * 40],
)
def test_numbers_that_overflow_are_read_as_helm_reads_them(number: str, sign: str) -> None:
    text = f"a: {sign}{number}\n"
    assert parse_mapping(text) == helm_python.values_from_yaml(text)


@pytest.mark.parametrize("value", ["!!float 010", "!!int '12'", "!!float '1'", "!!bool 'yes'", "!!null ''", "!!str 1"])
def test_tagged_values_are_read_as_helm_reads_them(value: str) -> None:
    text = f"a: {value}\n"
    assert parse_mapping(text) == helm_python.values_from_yaml(text)


@pytest.mark.parametrize("line_break", ["\r", "\x85", "\u2028", "\u2029"])
def test_a_separator_that_kubernetes_does_not_see_is_refused(line_break: str) -> None:
    with pytest.raises(YamlError, match="---") as caught:
        parse_objects(f"a: 1\nb: 2{line_break}---{line_break}kind: Pod\n")
    assert caught.value.line == 3


@pytest.mark.parametrize("text", ["---kind: Pod\n", "a: 1\n---kind: Pod\n", "a: 1\r\n---b: 1\r\n"])
def test_a_line_that_kubernetes_takes_for_a_separator_is_refused(text: str) -> None:
    with pytest.raises(YamlError, match="---"):
        parse_objects(text)


def test_separators_of_every_usual_form() -> None:
    text = "---\r\na: 1\r\n---\r\nb: |\n  ---x\n--- # c\nd: '\u2028 ---'\n---\ne: 1\n"
    assert len(parse_documents(text)) == 4


@pytest.mark.parametrize(
    "text",
    [
        f"a: [{'1,' * NODE_LIMIT}1]\n",
        f"{{{'a,' * (NODE_LIMIT // 2)}b}}\n",
        f"[{'a: ,' * (NODE_LIMIT // 3 + 1)}a]\n",
        "---\n" * NODE_LIMIT + "a: 1\n",
        f"a: &a 1\nb: [{'*a,' * NODE_LIMIT}*a]\n",
    ],
    ids=["list", "mapping", "pairs", "documents", "aliases"],
)
def test_more_nodes_than_a_chart_has_are_refused(text: str) -> None:
    with pytest.raises(YamlError, match=f"more than {NODE_LIMIT} keys and values"):
        parse_documents(text)
    assert find_duplicate_keys(text) == ()


def test_nodes_are_counted_up_to_the_limit() -> None:
    text = "[a, b, {c: d}]"
    assert parse_documents(text, node_limit=6) == (["a", "b", {"c": "d"}],)
    with pytest.raises(YamlError, match="more than 5 keys and values"):
        parse_documents(text, node_limit=5)


def test_all_texts_together_have_a_limit() -> None:
    require_few_nodes(["a: 1", "b: 2"], limit=6)
    with pytest.raises(YamlError, match="more than 6 keys and values"):
        require_few_nodes(["a: 1", "b: [", "c: 3"], limit=6)
