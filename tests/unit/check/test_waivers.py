"""Waivers that cannot be read say so, and waivers in plain manifests reach the object that they stand in."""

from __future__ import annotations

import pytest

from trainchart.check.finding import Case, CheckInput, Severity
from trainchart.check.manifests import parse_plain_manifests
from trainchart.check.registry import find_rules
from trainchart.check.runner import CheckResult, run_checks
from trainchart.helm.rendering import Rendering

RULES = find_rules(("names-valid", "waivers"))


def check(files: dict[str, str]) -> CheckResult:
    manifests = parse_plain_manifests({path: text for path, text in files.items() if not path.startswith(".")}, "x")
    contents = {path: text.encode() for path, text in files.items()}
    return run_checks(CheckInput(contents, cases=(Case("", Rendering("", "default", manifests, {})),)), RULES)


def told(result: CheckResult) -> list[tuple[str, int, str]]:
    return [(found.rule, found.line, found.message) for found in result.findings]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("waivers: []\nwaivers: []\n", "holds the key 'waivers' twice", 2),
        ("waivers: [{rule: 7, reason: x}]\n", "waiver 1: rule: 7 is not a string", 0),
        ("waivers: [{rule: names-valid, reason: [x]}]\n", "waiver 1: reason: ['x'] is not a string", 0),
        ("waivers: [{reason: x}]\n", "waiver 1: names no rule", 0),
        ("waivers: \x07\n", "cannot be read: it holds a character that YAML forbids", 1),
    ],
)
def test_a_waiver_file_that_cannot_be_read_is_an_error(text: str, message: str, line: int) -> None:
    [found] = check({".trainchart-check.yaml": text}).findings
    assert (found.rule, found.severity, found.message, found.line) == ("waivers", Severity.error, message, line)


def test_a_waiver_file_that_is_a_folder_is_said_to_be_one() -> None:
    [found] = check({".trainchart-check.yaml/a.yaml": "a: 1\n"}).findings
    assert (found.path, found.severity) == (".trainchart-check.yaml", Severity.error)
    assert "is a folder, expected a file" in found.message


def test_a_waiver_of_no_rule_suggests_one() -> None:
    [found] = check({".trainchart-check.yaml": "waivers: [{rule: name-valid, reason: x}]\n"}).findings
    assert found.severity is Severity.warning
    assert found.message.startswith("there is no rule 'name-valid'; did you mean names-valid")


BAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: A%d\n"
MARK = "# trainchart: ignore[names-valid] as the vendor wrote it\n"


def test_without_a_waiver_every_object_is_told_with_its_line() -> None:
    assert told(check({"a.yaml": f"# a\n{BAD % 1}---\n{BAD % 2}"})) == [
        ("names-valid", 2, "ConfigMap 'A1' is not a valid name"),
        ("names-valid", 7, "ConfigMap 'A2' is not a valid name"),
    ]


@pytest.mark.parametrize("path", ["a.yaml", ""], ids=["in a folder", "the only file"])
@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"{MARK}{BAD % 1}---\n{BAD % 2}", []),
        (f"{BAD % 1}---\n\n{MARK}{BAD % 2}", [1]),
        (f"{BAD % 1}---\n{BAD % 2}  # trainchart: ignore[names-valid] as it was\n", [1]),
        (f"{BAD % 1}---\n{BAD % 2}data:\n  a: b # trainchart: ignore[names-valid] as it was\n---\n{BAD % 3}", [1, 13]),
    ],
    ids=["first lines", "line above", "last line", "inside"],
)
def test_a_waiver_in_plain_manifests_reaches_its_object(path: str, text: str, left: list[int]) -> None:
    result = check({path: text})
    assert [found.line for found in result.findings] == left
    assert result.waived


def test_a_waiver_between_items_of_a_list_is_for_the_next_one() -> None:
    items = "".join(f"- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: A{number}}}}}\n" for number in range(6))
    lines = f"apiVersion: v1\nkind: List\nitems:\n{items}".splitlines(keepends=True)
    result = check({"a.yaml": "".join([*lines[:7], MARK, *lines[7:]])})
    assert [found.line for found in result.findings] == [4, 5, 6, 7, 10]
    assert [entry.finding.line for entry in result.waived] == [9]


def test_a_useless_waiver_in_plain_manifests_is_told() -> None:
    [found] = check({"a.yaml": (BAD % 1).replace("A1", "a") + "\n\n" + MARK}).findings
    assert found.message == "the waiver of names-valid matches no finding"


def test_the_waiver_file_of_a_folder_works_for_manifests_too() -> None:
    waivers = "waivers: [{rule: names-valid, path: 'a*.yaml', reason: as it was}]\n"
    result = check({"a[1].yaml": BAD % 1, "b.yaml": BAD % 2, ".trainchart-check.yaml": waivers})
    assert [found.path for found in result.findings] == ["b.yaml"]


def test_a_waiver_in_a_file_with_brackets_in_its_name() -> None:
    assert check({"a[1].yaml": MARK + BAD % 1}).findings == ()


@pytest.mark.parametrize("text", ["note: 'a # trainchart: ignore[names-valid] b'\n", f"note: |\n  {MARK}"])
def test_a_text_that_looks_like_a_waiver_is_none(text: str) -> None:
    assert [found.rule for found in check({"a.yaml": BAD % 1 + text}).findings] == ["names-valid"]
    assert check({"a.yaml": BAD % 1 + text + MARK}).findings == ()


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (f"a: [{'1, ' * 100_000}1]\n", 1, "100000"),
        (f"b: 1\na: {'[' * 101}{']' * 101}\n", 3, "more than 100 nested collections"),
        ("a: \x07\n", 2, "a character that YAML forbids"),
    ],
    ids=["large", "deep", "characters"],
)
def test_waivers_that_are_not_read_are_an_error(text: str, line: int, why: str) -> None:
    rules = find_rules(("keys-unique", "waivers"))
    marked = CheckInput({"values.yaml": f"# trainchart: ignore[keys-unique] two teams\n{text}".encode()})
    [found] = (found for found in run_checks(marked, rules).findings if found.rule == "waivers")
    assert (found.path, found.line, found.severity) == ("values.yaml", line, Severity.error)
    assert "waivers in its comments cannot be read: " in found.message
    assert why in found.message
    assert ".trainchart-check.yaml" in found.hint
    without = CheckInput({"values.yaml": f"# trainchart: two teams\n{text}".encode()})
    assert not [found for found in run_checks(without, rules).findings if found.rule == "waivers"]
