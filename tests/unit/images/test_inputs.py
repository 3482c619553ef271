"""The hash of an image's inputs, and what must never be one of them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainchart.errors import PlanError, Problem
from trainchart.images.ignore import parse_ignore_rules
from trainchart.images.inputs import ContextFile, hash_files, hash_mapping, require_no_secrets

files = st.lists(
    st.builds(ContextFile, st.text(min_size=1, max_size=6), st.binary(max_size=6), st.booleans()),
    min_size=1,
    max_size=5,
    unique_by=lambda file: file.path,
)


@settings(max_examples=50, deadline=None)
@given(files)
def test_the_order_of_files_does_not_matter(given: list[ContextFile]) -> None:
    assert hash_files(given[::-1]) == hash_files(given[1:] + given[:1]) == hash_files(given)


@settings(max_examples=50, deadline=None)
@given(files, files)
def test_other_files_have_another_hash(one: list[ContextFile], other: list[ContextFile]) -> None:
    assert (hash_files(one) == hash_files(other)) is (set(one) == set(other))


def test_every_property_of_a_file_counts() -> None:
    file = ContextFile("train.py", b"print(1)")
    others = [
        dataclasses.replace(file, path="test.py"),
        dataclasses.replace(file, content=b"print(2)"),
        dataclasses.replace(file, is_executable=True),
    ]
    assert len({hash_files([each]) for each in (file, *others)}) == 4


def test_arguments_are_told_apart() -> None:
    assert hash_mapping({"a": "1", "b": "2"}) == hash_mapping({"b": "2", "a": "1"})
    assert hash_mapping({"a": "1", "b": "2"}) != hash_mapping({"a": "1b=2"})


def test_a_secret_is_refused_with_all_others_unless_it_is_meant() -> None:
    token = "hf_" + "a1" * 17
    code = [ContextFile(path, b"") for path in ("train.py", ".env", "conf/ca.pem", "conf/config.json")]
    code.append(ContextFile("lib/hub.py", f"import os\nlogin({token!r})\n".encode()))
    with pytest.raises(PlanError) as refusal:
        require_no_secrets(code, parse_ignore_rules(""))
    assert refusal.value.problems == (
        Problem("files of this name hold variables with passwords", ".env"),
        Problem("files of this name hold a private key", "conf/ca.pem"),
        Problem("holds a Hugging Face token", "lib/hub.py:2"),
    )
    assert token not in str(refusal.value)
    with pytest.raises(PlanError) as refusal:
        require_no_secrets(code, parse_ignore_rules("!conf/ca.pem\n!lib/hub.py"))
    assert [problem.where for problem in refusal.value.problems] == [".env"]
