"""CEL in packs: what is accepted, how faults are described, and that no expression takes much time or memory."""

from __future__ import annotations

import contextlib
import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainchart.packs.expressions import LENGTH_LIMIT, evaluate, require_boolean

POD = {"spec": {"containers": [{"name": "a", "image": "registry.example.com/a:1"}], "priority": 3}}
MEMORY_LIMIT_KIB = 300 * 1024


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))", True),
        ("object.spec.?hostNetwork.orValue(false)", False),
        ("has(object.spec.hostNetwork)", False),
        ("object.spec.priority <= 2", False),
        ("object.spec.containers.exists(c, c.name.matches('^[a-c]+$'))", True),
        ("object.spec['containers'].all(c, c['name'] in ['a', \"[{+}]\"] || c.name in ['b']) // + it's", True),
        ("[object.spec.?a.orValue({}), {}].all(x, !([1, 2] in [[1], [true, null]]) && x == {})", True),
    ],
)
def test_an_expression_answers_yes_or_no(expression: str, answer: bool) -> None:
    assert evaluate(expression, {"object": POD}) is answer


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("object.spec ==", "syntax error"),
        ("objct.spec == 1", "undeclared reference to 'objct.spec', at character 6"),
        ("'text'", "returns string, not true or false"),
        ("quantity('1Gi') == 1", "undeclared reference to 'quantity'"),
        ("true" + " " * LENGTH_LIMIT, "longer than 4,000 characters"),
        ("'a' + 'b' + 'c' + 'd' + 'e' + 'f' == ''", "more than 4 plus signs"),
        ("'\x1b' == ''", "control characters"),
        ("(" * 100 + "true" + ")" * 100, "recursion limit"),
        ("// \"\n'a' + 'b' + 'c' + 'd' + 'e' + 'f' == '' // \"", "more than 4 plus signs"),
        ("r'\\' + 'b' + 'c' + 'd' + 'e' + 'f' == r'\\'", "more than 4 plus signs"),
        ("[object, object] == [[object], {'a': object}]", "more than 2 lists or maps of non-constant values"),
        ("// '\n[object] in [object] && [ object ] == object", "more than 2 lists or maps of non-constant values"),
    ],
)
def test_what_cannot_answer_is_refused_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
        require_boolean(expression, ("object",))


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("object.spec.missing == 1", 'key not found in map : "missing"'),
        ("object.spec.containers[7].name == ''", "index error: index=7 size=1"),
        ("1 / 0 == 1", "divide by zero"),
        ("object.spec.containers", "it returns list.*, not true or false"),
    ],
)
def test_no_answer_is_an_error_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        evaluate(expression, {"object": POD})


@pytest.mark.parametrize(
    "expression",
    [
        "['aaaaaaaaaa']" + ".map(a, a + a)" * 4 + ".all(x, x == '')",
        "object.all(a, object.all(b, object.all(c, true)))",
        "object.map(a, object.map(b, object)).size() == 1",
        f"'{'a' * 1000}b'.matches('^(a+)+$')",
        "'a'.matches('((a{100}){100}){100}')",
        "// \"\n['aaaaaaaaaa']" + ".map(a, a + a + a + a + a + a + a + a)" * 8 + ".all(x, x == '') // \"",
        "dyn([1]" + ".map(a, [a, a])" * 24 + ")",
        "[1]" + ".map(a, [a, a, a])" * 18 + " == [1]" + ".map(a, [a, a, a])" * 18,
        "[[1]]" + ".map(a, [0, 0].map(b, a))" * 12 + " == object",
        "[0]" + ".map(a, {'a': object, 'b': object})" * 2 + " == object",
    ],
)
def test_hostile_expressions_are_bounded(expression: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with contextlib.suppress(ValueError):
        evaluate(expression, {"object": list(range(1000))})
    used = resource.getrusage(resource.RUSAGE_SELF)
    assert used.ru_maxrss - before < MEMORY_LIMIT_KIB
    assert used.ru_utime - start < 20  # of processor time, whatever else runs


TOKENS = (
    "object",
    ".",
    "?",
    "a",
    "all(x, ",
    "(",
    ")",
    "[",
    "]",
    "'",
    '"',
    "+",
    "==",
    "1",
    "-",
    "&&",
    "{",
    ":",
    "\\",
    "e9",
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(
    st.text(max_size=20) | st.lists(st.sampled_from(TOKENS), max_size=10).map("".join),
    SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), SCALARS, max_size=3),
)
@settings(max_examples=200)
def test_any_text_answers_or_is_a_value_error(expression: str, value: object) -> None:
    try:
        assert evaluate(expression, {"object": value}) in (True, False)
    except ValueError as error:
        assert str(error)
