"""Our .helmignore drops what Helm's drops: compared with the Helm library on real folders."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import helm_python
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainchart.archive.ignore import IGNORE_FILE, _translate, drop_ignored
from trainchart.errors import ToolError

FILES = (
    "Chart.yaml",
    "README.md",
    "notes.swp",
    "ci/a-values.yaml",
    "ci/deep/b.swp",
    "docs/ci/x.md",
    "docs/a.md",
    "docs/b1.md",
    "templates/a.yaml",
    "templates/.hidden.yaml",
    "templates/sub/.kept.yaml",
    "a[1].txt",
    "weird name.txt",
    ".helmignore",
)


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "# comment\n\n*.swp\n",
        "ci/\n",
        "/ci\n",
        "ci\n",
        "docs/*.md\n",
        "docs/b?.md\n",
        "docs/[a-b]*.md\n",
        "docs/[^b]*.md\n",
        "/*.md\n",
        "*.md/\n",
        "  ci/  \n",
        "a\\[1\\].txt\n",
        "!*.yaml\n",
        "!docs/\n",
        "!Chart.yaml/\n",
        "templates/sub/\n",
        "weird name.txt\n",
        "docs/ci/x.md\n",
        "x.md\n",
        "*\n",
        ".*\n",
        "docs\x0bci\n",
        "x\rci\n",
        "x\u2028ci\nx\u0085ci\nx\x1cci\n",
        "ci\x1c\n",
        "docs/[b-a]*.md\n",
        "docs/[^b-a]*.md\n",
        "docs/[\\a-\\b]*.md\n",
        "docs/[a^&&|~[]*.md\n",
        "docs/[é-ü]?*é\n?/x*\n",
    ],
)
def test_the_same_files_as_helm_packs(tmp_path: Path, rules: str) -> None:
    files = dict.fromkeys(FILES, b"x: 1\n") | {
        "Chart.yaml": b"apiVersion: v2\nname: demo\nversion: 1.0.0\n",
        ".helmignore": rules.encode(),
    }
    chart = tmp_path / "demo"
    for path, content in files.items():
        (chart / path).parent.mkdir(parents=True, exist_ok=True)
        (chart / path).write_bytes(content)
    try:
        archive = helm_python.package(chart, destination=tmp_path)
    except helm_python.HelmError:
        # The rule drops Chart.yaml itself, and then there is nothing to pack.
        assert "Chart.yaml" not in drop_ignored(files)
        return
    with tarfile.open(archive) as tar:
        packed = {name.removeprefix("demo/") for name in tar.getnames()}
    assert set(drop_ignored(files)) == packed


@pytest.mark.parametrize(
    "rule", ["docs/**/x", "[a", "a\\", "[a-]", "[-a]", "[]a]", "[--]", "[^]a]", "[]", "[a-", "[a\\"]
)
def test_rules_that_helm_refuses_are_refused_with_their_line(rule: str) -> None:
    with pytest.raises(ToolError, match=r"\.helmignore:2"):
        drop_ignored({".helmignore": f"# first\n{rule}\n".encode()})


@pytest.mark.parametrize("rule", ["//docs", "!//docs", "//docs/", "docs//a.md"])
def test_rules_that_helm_3_and_4_read_differently_are_refused(rule: str) -> None:
    with pytest.raises(ToolError, match=r"\.helmignore:1: .*//"):
        drop_ignored({".helmignore": rule.encode()})


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", ["*a" * 12 + "b", "a*" * 40 + "b", "*?" * 30 + "[b]", "/".join(["*a*a*"] * 9)])
def test_a_pattern_of_many_stars_takes_no_time(pattern: str) -> None:
    files = {IGNORE_FILE: f"{pattern}\n".encode(), "a" * 250: b"", "/".join(["a" * 99] * 9): b""}
    assert drop_ignored(files)


@settings(max_examples=300, deadline=None)
@given(st.text("ab*?/", min_size=1, max_size=8), st.text("ab/", min_size=1, max_size=9))
def test_stars_match_as_if_every_way_was_tried(pattern: str, path: str) -> None:
    body = "".join({"*": "[^/]*", "?": "[^/]"}.get(char, char) for char in pattern)
    assert bool(re.fullmatch(_translate(pattern), path)) is bool(re.fullmatch(body, path))


def test_more_patterns_than_anyone_needs_are_refused() -> None:
    files = {"Chart.yaml": b"", "a": b""}
    assert drop_ignored({**files, IGNORE_FILE: b"# x\n" * 10_000 + b"a\n" * 500}).keys() == {"Chart.yaml", IGNORE_FILE}
    with pytest.raises(ToolError, match="more than 500 patterns"):
        drop_ignored({**files, IGNORE_FILE: b"a\n" * 501})


def test_rules_that_are_no_utf8_are_refused() -> None:
    """Helm compares bytes; a reader that replaces them drops files that Helm packs."""
    with pytest.raises(ToolError, match=r"\.helmignore is not UTF-8 text"):
        drop_ignored({IGNORE_FILE: b"\xff.yaml\n", "templates/\ufffd.yaml": b""})


@pytest.mark.parametrize("rule", ["*[^é]", "*[^é].yaml", "docs*/?x", "!*??"])
def test_rules_that_go_by_half_characters_are_refused(rule: str) -> None:
    """Go's filepath.Match skips bytes behind a star, so *[^é] matches é in its middle."""
    files = {IGNORE_FILE: f"{rule}\n".encode(), "templates/a.yaml": b""}
    drop_ignored(files)
    with pytest.raises(ToolError, match=r"half characters of templates/b\.yamlé"):
        drop_ignored({**files, "templates/b.yamlé": b""})
