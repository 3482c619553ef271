"""The lock comes back as it was written, and drift is told file by file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainchart.archive.lock import (
    Drift,
    DriftKind,
    Source,
    build_lock,
    dump_lock,
    find_drift,
    hash_content,
    hash_tree,
    parse_lock,
)
from trainchart.errors import ToolError

FILES = {"values.yaml": b"a: 1\n", "templates/a.yaml": b"x", "trainchart.lock.yaml": b"whatever"}
LOCK = build_lock(
    generator="0.1.0",
    spec=Source("models/mnist.yaml", hash_content(b"spec")),
    family=Source("training-job", hash_tree({"templates/a.yaml": b"x"})),
    layers=(Source("built-in", "ab" * 32), Source("packs/vision", "cd" * 32)),
    files=FILES,
)


def test_a_lock_comes_back() -> None:
    assert parse_lock(dump_lock(LOCK)) == LOCK
    assert dump_lock(LOCK) == dump_lock(parse_lock(dump_lock(LOCK)))
    assert dump_lock(LOCK).startswith("# Written by `trainchart generate`")
    assert set(LOCK.files) == {"values.yaml", "templates/a.yaml"}


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=200),
        st.one_of(st.text("0123456789abcdef", min_size=1, max_size=64), st.text("01be", min_size=1, max_size=8)),
    )
)
@example({"?": "1e3", "yes": "0b1", "a: b": "1", "~": "0", "- x": "abc", "x" * 200: "f"})
def test_a_lock_comes_back_with_any_file_names(files: dict[str, str]) -> None:
    assert parse_lock(dump_lock(replace(LOCK, files=files))).files == files


def test_drift_is_told_by_file_and_kind() -> None:
    assert find_drift(LOCK, FILES) == []
    changed = {"values.yaml": b"a: 2\n", "templates/b.yaml": b"", "trainchart.lock.yaml": b"other"}
    assert find_drift(LOCK, changed) == [
        Drift("templates/a.yaml", DriftKind.missing),
        Drift("templates/b.yaml", DriftKind.added),
        Drift("values.yaml", DriftKind.changed),
    ]


def test_a_tree_hash_depends_on_names_and_contents_not_on_order() -> None:
    tree = {"a": b"1", "b": b"2"}
    assert hash_tree(tree) == hash_tree({"b": b"2", "a": b"1"})
    assert len({hash_tree(tree), hash_tree({"a": b"2", "b": b"1"}), hash_tree({"a": b"1", "c": b"2"})}) == 3


def test_a_tree_hash_takes_names_that_are_no_utf8() -> None:
    listing = f"{hash_content(b'1')}  ü\n".encode()
    assert hash_tree({"ü": b"1"}) == hash_content(listing)
    assert hash_tree({"\udcfc": b"1"}) == hash_content(listing.replace("ü".encode(), b"\xfc"))


def test_a_path_of_two_lines_is_not_hashed_as_two_files() -> None:
    assert hash_tree({"a": b"1", "b": b"2"}) != hash_tree({f"a\n{hash_content(b'2')}  b": b"1"})
    assert hash_tree({"a\n": b""}) != hash_tree({"a\\n": b""})
    assert hash_tree({"a\\b": b"1"}) == hash_content(f"{hash_content(b'1')}  a\\b\n".encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: 2\n", "has format 2, but this trainchart reads 1"),
        ("", "has format None"),
        ("format: 1\ngenerator: x\n", "damaged"),
        ("format: [\n", "damaged"),
        (dump_lock(LOCK).replace("files:", "files: []\nother:"), "damaged"),
        ("- 1\n", "damaged"),
        (dump_lock(LOCK).replace("models/", "/models/"), "'/models/mnist.yaml' is outside the project"),
        (dump_lock(LOCK).replace("models/", "a/../../b/"), "'a/../../b/mnist.yaml' is outside the project"),
    ],
)
def test_a_damaged_or_newer_lock_is_refused(text: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        parse_lock(text)
