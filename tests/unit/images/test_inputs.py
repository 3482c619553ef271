"""The hash of an image's inputs, and what must never be one of them."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainchart.errors import PlanError, Problem
from trainchart.images.ignore import parse_ignore_rules
from trainchart.images.inputs import ContextFile, hash_files, hash_mapping, holds_key, is_secret, require_no_secrets

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


@pytest.mark.parametrize("path", [".env", "conf/.env.local", "tls/server.key", "id_rsa", ".ssh/config", "pip.conf"])
def test_passwords_and_keys_are_known_by_name(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize("path", ["train.py", "env.py", "environment.yaml", "keys.py", "data/monkey", "ssh/readme"])
def test_other_files_are_none(path: str) -> None:
    assert not is_secret(path)


BASE64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PEM = f"-----BEGIN PRIVATE KEY-----\n{BASE64}\n{BASE64}\n-----END PRIVATE KEY-----\n"
ACCOUNT = {"type": "service_account", "project_id": "x", "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE\n"}


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM.replace("\n", "\r\n"),
        PEM.replace(" PRIVATE", " OPENSSH PRIVATE"),
        f"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{PEM}",
        PEM.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n", 1),
        "tls:\n  key: |\n" + "".join(f"    {line}\n" for line in PEM.splitlines()),
        f"KEY = {PEM!r}\n",
        json.dumps({"private_key": PEM}),
        json.dumps(ACCOUNT),
    ],
)
def test_private_keys_are_known_by_what_they_hold(text: str) -> None:
    assert holds_key(text.encode())
    code = [ContextFile("train.py", b""), ContextFile("conf/ca.txt", text.encode())]
    require_no_secrets(code, parse_ignore_rules("!conf/ca.txt"))
    with pytest.raises(PlanError) as refusal:
        require_no_secrets(code, parse_ignore_rules(""))
    assert refusal.value.problems == (Problem("holds a private key", "conf/ca.txt"),)


@pytest.mark.parametrize(
    "text",
    [
        PEM.replace("PRIVATE KEY", "CERTIFICATE"),
        PEM.replace("PRIVATE KEY", "PUBLIC KEY"),
        'MARKER = "-----BEGIN PRIVATE KEY-----"\n',
        'if text.startswith("-----BEGIN PRIVATE KEY-----\\n"):\n    pass\n',
        "It begins with\n-----BEGIN PRIVATE KEY-----\nand ends so.\n",
        json.dumps({**ACCOUNT, "private_key": "fill it in"}),
        json.dumps({**ACCOUNT, "type": "authorized_user"}),
        json.dumps(ACCOUNT)[:-1],
        json.dumps([ACCOUNT["type"]]),
        PEM + " " * 64 * 1024,
    ],
)
def test_certificates_and_words_about_keys_are_none(text: str) -> None:
    assert not holds_key(text.encode())


def test_a_secret_is_refused_with_all_others_unless_it_is_meant() -> None:
    code = [ContextFile(path, b"") for path in ("train.py", ".env", "conf/ca.pem")]
    with pytest.raises(PlanError) as refusal:
        require_no_secrets(code, parse_ignore_rules(""))
    assert [problem.where for problem in refusal.value.problems] == [".env", "conf/ca.pem"]
    with pytest.raises(PlanError) as refusal:
        require_no_secrets(code, parse_ignore_rules("!conf/ca.pem"))
    assert [problem.where for problem in refusal.value.problems] == [".env"]
