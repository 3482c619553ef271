""".dockerignore as Docker reads it: a table from its own tests, and what holds for any patterns."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainchart.errors import ToolError
from trainchart.images.ignore import parse_ignore_rules
from trainchart.images.ignore_patterns import Pattern, parse_tokens

names = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name.strip("."))
paths = st.lists(names, min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("patterns", "path", "is_ignored"),
    [
        ("**", "dir/file", True),
        ("**/", "file", True),
        ("dir/**", "dir/sub/file", True),
        ("dir/**", "dir", False),
        ("**/file", "file", True),
        ("**/dir/file", "x/dir/file", True),
        ("**/file*", "dir/dir/file.txt", True),
        ("dir/**/file", "dir/file", True),
        ("file", "dir/file", False),
        ("dir", "dir/file", True),
        ("/dir/", "dir/file", True),
        ("./dir//sub", "dir/sub/file", True),
        ("dir/../data", "data/file", True),
        ("/../data", "data", True),
        ("../data", "data", False),
        ("data/..", "data", False),
        ("data\n!dir/../data/file", "data/file", False),
        ("*", "dir/file", True),
        ("*/*", "file", False),
        ("abc.def", "abcXdef", False),
        ("a[b-d]e", "ace", True),
        ("a[^b-d]e", "ace", False),
        ("a\\*b", "a*b", True),
        ("a\\*b", "axb", False),
        ("?", "ab", False),
        ("# dir", "# dir", False),
        ("dir\n!dir/file", "dir/file", False),
        ("!dir/file\ndir", "dir/file", True),
        ("*\n!src", "src/file", False),
        ("", "sub/__pycache__/m.pyc", True),
        ("", ".git/config", True),
        ("", "third_party/x/.git/config", True),
        ("", "src/.gitignore", False),
        ("", "sub/.trainchart/runs/net/out", True),
        ("", "sub/.venv/bin/python", True),
        ("", ".dockerignore", True),
        ("*\n!.", "file", True),
        ("!.git/HEAD", ".git/HEAD", False),
    ],
)
def test_the_last_pattern_that_matches_decides(patterns: str, path: str, is_ignored: bool) -> None:
    assert parse_ignore_rules(patterns).ignores(path) is is_ignored


@pytest.mark.parametrize(("text", "where"), [("ok\na[b\n", ".dockerignore:2"), ("!\n", ".dockerignore:1")])
def test_what_docker_refuses_is_named_by_its_line(text: str, where: str) -> None:
    with pytest.raises(ToolError) as refusal:
        parse_ignore_rules(text)
    assert refusal.value.problems[0].where == where


@settings(max_examples=50, deadline=None)
@given(st.lists(paths, max_size=4), paths, names)
def test_what_is_ignored_is_so_with_all_below_it(patterns: list[str], path: str, below: str) -> None:
    rules = parse_ignore_rules("\n".join(patterns))
    assert not rules.ignores(path) or rules.ignores(f"{path}/{below}")
    assert rules.prunes(path) is rules.ignores(path)


@settings(max_examples=50, deadline=None)
@given(st.lists(paths, max_size=4), paths)
def test_an_exception_at_the_end_brings_a_file_back(patterns: list[str], path: str) -> None:
    rules = parse_ignore_rules("\n".join([*patterns, f"!{path}"]))
    assert not rules.ignores(path)
    assert rules.demands(path)
    assert not rules.prunes("any"), "something below may be wanted after all"


def test_a_wildcard_demands_no_file() -> None:
    rules = parse_ignore_rules("*\n!src\n!src/**")
    assert not rules.ignores("src/.env")
    assert not rules.demands("src/.env")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", ["*a" * 14 + "b", "**a" * 14 + "b", "**/*a" * 9 + "b", "*?" * 30 + "[b]"])
def test_a_pattern_of_many_stars_takes_no_time(pattern: str) -> None:
    rules = parse_ignore_rules(pattern)
    assert not rules.ignores("a" * 200)
    assert not rules.ignores("/".join(["a" * 99] * 9))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "*", "**", "**/", "?", "/", "[ab]"]), min_size=1, max_size=8).map("".join),
    st.text("ab/", min_size=1, max_size=9),
)
def test_stars_match_as_if_every_way_was_tried(pattern: str, path: str) -> None:
    tokens = parse_tokens(pattern)
    kinds = {"*": "[^/]*", "**": ".*", "**/": "(?:.*/)?"}
    body = "".join(kinds.get(token, token) for token in tokens)
    assert Pattern(tokens).matches(path) is bool(re.fullmatch(body, path))


@pytest.mark.parametrize("mark", ["\f", "\v", "\x1c", "\x85", "\u2028", "\r"])
def test_only_a_newline_ends_a_line(mark: str) -> None:
    assert not parse_ignore_rules(f"# a comment{mark}pkg\n").ignores("pkg")
