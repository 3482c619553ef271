"""Statements about where a chart comes from say what its annotations say, and can be read back."""

from __future__ import annotations

import json

import pytest

from trainchart.archive.attestation import (
    MATERIALS_TYPE,
    STATEMENT_TYPE,
    Subject,
    build_attestations,
    origin_annotations,
    parse_statement,
)

SUBJECT = Subject("mnist", "1.4.0", "a" * 64, "b" * 64)
IMAGE = "registry.example.com:5000/ml/mnist:1.4.0@sha256:" + "c" * 64
ANNOTATIONS = {
    "trainchart/content-sha256": "d" * 64,
    "trainchart/generator": "0.1.0",
    "trainchart/git-commit": "1a2b3c" + "0" * 34 + "-dirty",
    "trainchart/spec-sha256": "e" * 64,
    "trainchart/templates-sha256": "f" * 64,
    "trainchart/packs-sha256": f"org={'1' * 64} team={'2' * 64}",
    "trainchart/images": f"{IMAGE} registry.example.com/runtime@sha256:{'3' * 64}",
    "artifacthub.io/license": "Apache-2.0",
}


@pytest.mark.parametrize("missing", ["", *sorted(ANNOTATIONS.keys() - {"trainchart/generator"})])
def test_a_statement_gives_back_what_the_chart_says(missing: str) -> None:
    annotations = {key: value for key, value in ANNOTATIONS.items() if key != missing}
    statement, *_ = build_attestations(annotations, SUBJECT)
    origin = parse_statement(statement.content)
    assert origin is not None
    assert origin.annotations == origin_annotations(annotations)
    assert origin.subjects == {"a" * 64, "b" * 64}


def test_documents_have_the_form_that_others_read() -> None:
    statement, materials = build_attestations(ANNOTATIONS, SUBJECT)
    assert (statement.media_type, materials.media_type) == (STATEMENT_TYPE, MATERIALS_TYPE)
    said = json.loads(statement.content)
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicateType"] == statement.annotations["in-toto.io/predicate-type"]
    source = said["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    assert source["digest"] == {"gitCommit": "1a2b3c" + "0" * 34}
    bill = json.loads(materials.content)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    first, second = bill["components"]
    assert first["purl"] == (
        f"pkg:oci/mnist@sha256%3A{'c' * 64}?repository_url=registry.example.com%3A5000/ml/mnist&tag=1.4.0"
    )
    assert (first["name"], first["version"]) == ("registry.example.com:5000/ml/mnist", "1.4.0")
    assert "version" not in second


def test_nothing_is_said_that_nobody_knows() -> None:
    assert build_attestations({"artifacthub.io/license": "MIT"}, SUBJECT) == ()
    (statement,) = build_attestations({"trainchart/generator": "0.1.0"}, SUBJECT)
    assert statement.media_type == STATEMENT_TYPE


def test_the_same_chart_gives_the_same_bytes() -> None:
    assert build_attestations(ANNOTATIONS, SUBJECT) == build_attestations(
        dict(reversed(list(ANNOTATIONS.items()))), SUBJECT
    )


@pytest.mark.parametrize("content", [b'{"predicateType": "https://spdx.dev/Document"}', b'{"predicate": null}', b"{}"])
def test_statements_of_others_are_left_alone(content: bytes) -> None:
    assert parse_statement(content) is None


@pytest.mark.parametrize("content", [b"no json", b"[]", b'{"predicate": {"buildDefinition": 1}}', b"\xff"])
def test_what_is_no_statement_at_all(content: bytes) -> None:
    with pytest.raises(ValueError):
        parse_statement(content)


def test_a_damaged_statement_is_said_to_be_so() -> None:
    statement, *_ = build_attestations(ANNOTATIONS, SUBJECT)
    said = json.loads(statement.content)
    del said["predicate"]["runDetails"]
    with pytest.raises(ValueError, match="lacks 'runDetails'"):
        parse_statement(json.dumps(said).encode())
