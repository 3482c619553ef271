"""Where a chart comes from, as documents that other tools read: an in-toto statement and a bill of materials. Pure.

Both say what the annotations of Chart.yaml say, about exactly one archive and one manifest, so that the same chart
gives the same bytes. Signing them is left to others.
Formats: https://slsa.dev/spec/v1.0/provenance, https://cyclonedx.org/docs/1.6/json/
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from trainchart.archive.chart_file import (
    COMMIT_ANNOTATION,
    GENERATOR_ANNOTATION,
    IMAGES_ANNOTATION,
    PACKS_ANNOTATION,
    SPEC_ANNOTATION,
    TEMPLATES_ANNOTATION,
)
from trainchart.json_documents import parse_json

STATEMENT_TYPE = "application/vnd.in-toto+json"
MATERIALS_TYPE = "application/vnd.cyclonedx+json"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "trainchart:chart/v1"
"""Says that it is our kind of provenance: others may attach theirs to the same chart."""
_BUILDER = "trainchart:generator"
_DIRTY = "-dirty"
_FILES = {TEMPLATES_ANNOTATION: "templates", SPEC_ANNOTATION: "spec"}
"""What there is one of, and what the statement calls it."""
_PACK, _IMAGE = "pack/", "image/"


@dataclass(frozen=True)
class Subject:
    """The chart that is spoken of; digests are 64 hexadecimal digits."""

    name: str
    version: str
    manifest_sha256: str
    archive_sha256: str


@dataclass(frozen=True)
class Attestation:
    """A document about a chart, and what registries call its type."""

    media_type: str
    content: bytes
    annotations: Mapping[str, str]


@dataclass(frozen=True)
class Origin:
    """What a statement of ours says: which digests it is about, and the chart's annotations that it stands for."""

    subjects: frozenset[str]
    annotations: Mapping[str, str]


def build_attestations(annotations: Mapping[str, str], subject: Subject) -> tuple[Attestation, ...]:
    """Return what is to be attached to a chart with these annotations; nothing where it was not made by us."""
    if GENERATOR_ANNOTATION not in annotations:
        return ()
    statement = Attestation(
        STATEMENT_TYPE, _dump(_statement(annotations, subject)), {"in-toto.io/predicate-type": PREDICATE_TYPE}
    )
    if IMAGES_ANNOTATION not in annotations:  # digests were not asked for, and an empty bill would be untrue
        return (statement,)
    return (statement, Attestation(MATERIALS_TYPE, _dump(_materials(annotations, subject)), {}))


def origin_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return those of a chart's annotations that a statement stands for."""
    keys = (GENERATOR_ANNOTATION, COMMIT_ANNOTATION, *_FILES, PACKS_ANNOTATION, IMAGES_ANNOTATION)
    return {key: annotations[key] for key in keys if key in annotations}


def parse_statement(content: bytes) -> Origin | None:
    """Return what a statement says; None where it is not of our kind. Raises ValueError where it is damaged."""
    try:
        statement = parse_json(content)
        definition = (statement.get("predicate") or {}).get("buildDefinition") or {}
        if definition.get("buildType") != BUILD_TYPE:
            return None
        builder = statement["predicate"]["runDetails"]["builder"]
        return Origin(
            frozenset(str(subject["digest"]["sha256"]) for subject in statement["subject"]),
            {
                GENERATOR_ANNOTATION: str(builder["version"]["trainchart"]),
                **_parse_materials(definition["resolvedDependencies"]),
            },
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the statement lacks {error}") from error


def _statement(annotations: Mapping[str, str], subject: Subject) -> dict[str, Any]:
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": subject.name, "digest": {"sha256": subject.manifest_sha256}},
            {"name": f"{subject.name}-{subject.version}.tgz", "digest": {"sha256": subject.archive_sha256}},
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"chart": subject.name, "version": subject.version},
                "resolvedDependencies": list(_dependencies(annotations)),
            },
            "runDetails": {"builder": {"id": _BUILDER, "version": {"trainchart": annotations[GENERATOR_ANNOTATION]}}},
        },
    }


def _dependencies(annotations: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    commit = annotations.get(COMMIT_ANNOTATION, "")
    if commit:
        changed = {"annotations": {"isDirty": True}} if commit.endswith(_DIRTY) else {}
        yield {"name": "source", "digest": {"gitCommit": commit.removesuffix(_DIRTY)}, **changed}
    for key, name in sorted(_FILES.items()):
        if key in annotations:
            yield {"name": name, "digest": {"sha256": annotations[key]}}
    for pack in annotations.get(PACKS_ANNOTATION, "").split():
        name, _, digest = pack.rpartition("=")
        yield {"name": f"{_PACK}{name}", "digest": {"sha256": digest}}
    for image in annotations.get(IMAGES_ANNOTATION, "").split():
        name, _, digest = image.partition("@sha256:")
        yield {"name": f"{_IMAGE}{name}", "digest": {"sha256": digest}}


def _parse_materials(found: list[Mapping[str, Any]]) -> dict[str, str]:
    """Return the annotations that dependencies stand for: what _dependencies makes of them, undone."""
    facts: dict[str, str] = {}
    names = {name: key for key, name in _FILES.items()}
    packs, images = [], []
    for each in found:
        name, digest = str(each["name"]), each["digest"]
        if name == "source":
            is_dirty = (each.get("annotations") or {}).get("isDirty") is True
            facts[COMMIT_ANNOTATION] = str(digest["gitCommit"]) + (_DIRTY if is_dirty else "")
        elif name in names:
            facts[names[name]] = str(digest["sha256"])
        elif name.startswith(_PACK):
            packs.append(f"{name.removeprefix(_PACK)}={digest['sha256']}")
        elif name.startswith(_IMAGE):
            images.append(f"{name.removeprefix(_IMAGE)}@sha256:{digest['sha256']}")
    facts |= {PACKS_ANNOTATION: " ".join(packs)} if packs else {}
    return facts | ({IMAGES_ANNOTATION: " ".join(images)} if images else {})


def _materials(annotations: Mapping[str, str], subject: Subject) -> dict[str, Any]:
    tool = {"type": "application", "name": "trainchart", "version": annotations[GENERATOR_ANNOTATION]}
    hashes = [{"alg": "SHA-256", "content": subject.archive_sha256}]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [tool]},
            "component": {"type": "application", "name": subject.name, "version": subject.version, "hashes": hashes},
        },
        "components": [_image_component(image) for image in annotations[IMAGES_ANNOTATION].split()],
    }


def _image_component(image: str) -> dict[str, Any]:
    name, _, digest = image.partition("@sha256:")
    path, tag = name, ""
    if ":" in name.rpartition("/")[2]:
        path, _, tag = name.rpartition(":")
    # https://github.com/package-url/purl-spec/blob/main/types-doc/oci-definition.md
    qualifiers = f"repository_url={quote(path, safe='/')}" + (f"&tag={quote(tag)}" if tag else "")
    purl = f"pkg:oci/{path.rpartition('/')[2]}@{quote(f'sha256:{digest}', safe='')}?{qualifiers}"
    hashes = [{"alg": "SHA-256", "content": digest}]
    component = {"type": "container", "bom-ref": image, "name": path, "version": tag, "purl": purl, "hashes": hashes}
    return {key: value for key, value in component.items() if value}


def _dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
