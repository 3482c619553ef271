"""Chart.yaml as archives need it: name and version, and our build annotations put in and taken out.

Putting annotations in keeps the author's comments and order wherever the file is written in the usual
block style.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.archive.chart_keys import CHART_KEYS, INDEX_KEYS, find_mistaken_chart_key
from trainchart.archive.subcharts import require_unambiguous
from trainchart.chart_version import is_chart_version
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, dump_mapping, find_merge_key, parse_mapping
from trainchart.yaml_loader import helm_text

CHART_FILE = "Chart.yaml"
REQUIREMENTS_FILE = "requirements.yaml"
"""The dependencies of a chart of Helm 2. Helm 3 and 4 read every key of Chart.yaml in it, and prefer it."""
IDENTITY_ANNOTATION = "trainchart/content-sha256"
COMMIT_ANNOTATION = "trainchart/git-commit"
CREATED_ANNOTATION = "trainchart/created"
GENERATOR_ANNOTATION = "trainchart/generator"
SPEC_ANNOTATION = "trainchart/spec-sha256"
TEMPLATES_ANNOTATION = "trainchart/templates-sha256"
PACKS_ANNOTATION = "trainchart/packs-sha256"
IMAGES_ANNOTATION = "trainchart/images"
"""Images with the digests that their registries had when the chart was released."""
BUILD_ANNOTATIONS = frozenset(
    {
        IDENTITY_ANNOTATION,
        COMMIT_ANNOTATION,
        CREATED_ANNOTATION,
        GENERATOR_ANNOTATION,
        SPEC_ANNOTATION,
        TEMPLATES_ANNOTATION,
        PACKS_ANNOTATION,
        IMAGES_ANNOTATION,
    }
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME_LIMIT = 63
_VERSION_LIMIT = 128
"""Of a tag in a registry."""


@dataclass(frozen=True)
class ChartFile:
    """A parsed Chart.yaml whose name and version are fit for a file name and an OCI tag."""

    name: str
    version: str
    text: str
    data: Mapping[str, Any]

    @property
    def annotations(self) -> dict[str, str]:
        found = self.data.get("annotations")
        return {key: helm_text(value) for key, value in found.items()} if isinstance(found, dict) else {}

    @property
    def build(self) -> dict[str, str]:
        """The build annotations: what it was made from, and when."""
        return {key: value for key, value in self.annotations.items() if key in BUILD_ANNOTATIONS}

    @property
    def plain_data(self) -> dict[str, Any]:
        """The content without build annotations: what identity is about."""
        return _without_build_annotations(self.data)


def parse_chart_file(files: Mapping[str, bytes]) -> ChartFile:
    """Return the Chart.yaml among `files`. Raises ToolError where it is missing or unfit, or not what Helm goes by."""
    if CHART_FILE not in files:
        raise ToolError("this is not a chart: there is no Chart.yaml")
    text, data = _read_unambiguous(files, CHART_FILE)
    if REQUIREMENTS_FILE in files:
        _, requirements = _read_unambiguous(files, REQUIREMENTS_FILE)
        for key in find_overriding_keys(requirements):
            raise ToolError(
                f"{REQUIREMENTS_FILE}: Helm prefers its key {key} to that of {CHART_FILE}",
                hint=f"keep nothing but dependencies in {REQUIREMENTS_FILE}",
            )
    require_unambiguous(files)
    if data.get("apiVersion") not in (None, "v1", "v2"):
        raise ToolError(
            f"{CHART_FILE}: the apiVersion is {data['apiVersion']!r:.40}, which not every Helm reads", hint="write v2"
        )
    name, version = data.get("name"), data.get("version")
    if not isinstance(name, str) or len(name) > _NAME_LIMIT or not _NAME.fullmatch(name):
        raise ToolError(
            f"{CHART_FILE}: {name!r} is not a chart name",
            hint=f"use at most {_NAME_LIMIT} lower-case letters, digits and dashes",
        )
    if not isinstance(version, str) or not is_chart_version(version):
        raise ToolError(f"{CHART_FILE}: {version!r} is not a SemVer 2 version", hint='for example: "1.4.0"')
    if len(version) > _VERSION_LIMIT:
        raise ToolError(
            f"{CHART_FILE}: the version {version[:32]}… has {len(version)} characters",
            hint=f"use at most {_VERSION_LIMIT}: no registry has longer tags",
        )
    return ChartFile(name, version, text, data)


def find_overriding_keys(requirements: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of a requirements.yaml that Helm would take for keys of Chart.yaml, dependencies left out."""
    known = {key.casefold() for key in CHART_KEYS}
    return tuple(key for key in requirements if key.casefold() in known and key != "dependencies")


def _read_unambiguous(files: Mapping[str, bytes], name: str) -> tuple[str, dict[str, Any]]:
    try:
        text = files[name].decode("utf-8-sig")
        data = parse_mapping(text)
    except (UnicodeDecodeError, YamlError) as error:
        where = f"line {error.line}: " if isinstance(error, YamlError) and error.line else ""
        raise ToolError(f"{name} cannot be read: {where}{error}") from error
    line = find_merge_key(text)
    if line:
        raise ToolError(
            f"{name}: line {line}: << merges another mapping, which YAML readers treat differently",
            hint="write out the keys that it stands for",
        )
    # An index repeats what a Chart.yaml says, beside where the archive is and its digest.
    mistaken = find_mistaken_chart_key(data, INDEX_KEYS)
    if mistaken is not None:
        raise ToolError(f"{name}: {mistaken}", hint=f"write {mistaken.meant}, or leave it out")
    return text, data


def stamp_chart_file(chart: ChartFile, annotations: Mapping[str, str]) -> str:
    """Return the text of Chart.yaml with exactly `annotations` as its build annotations.

    Raises ToolError where its own annotations are not keys with values.
    """
    wanted = chart.plain_data
    own = wanted.get("annotations") or {}
    if not isinstance(own, Mapping):
        raise ToolError(f"{CHART_FILE}: annotations is {own!r:.100}", hint="write keys with their values, such as a: b")
    if annotations:
        wanted["annotations"] = {**annotations, **own}
    text = _edit_lines(chart.text, annotations)
    try:
        if parse_mapping(text) == wanted:
            return text
    except YamlError:
        pass
    # Flow style, anchors or the like: correct beats pretty.
    return dump_mapping(wanted)


def _edit_lines(text: str, annotations: Mapping[str, str]) -> str:
    old = re.compile(r"\s+[\"']?(?:" + "|".join(map(re.escape, sorted(BUILD_ANNOTATIONS))) + r")[\"']?:")
    lines = [line for line in text.splitlines() if not old.match(line)]
    header = next((n for n, line in enumerate(lines) if re.fullmatch(r"annotations:\s*(#.*)?", line)), None)
    if header is None and any(re.match(r"[\"']?annotations[\"']?\s*:", line) for line in lines):
        return ""  # Written on one line: not for line-wise editing.
    if header is None:
        header = len(lines)
        lines.append("annotations:")
    below = next((line for line in lines[header + 1 :] if line.strip() and not line.lstrip().startswith("#")), "")
    indent = " " * (len(below) - len(below.lstrip())) or "  "
    new = [f"{indent}{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in annotations.items()]
    if not new and not below.startswith(" "):
        del lines[header]
    lines[header + 1 : header + 1] = new
    return "\n".join(lines) + "\n"


def _without_build_annotations(data: Mapping[str, Any]) -> dict[str, Any]:
    plain = dict(data)
    annotations = plain.pop("annotations", None)
    if isinstance(annotations, dict):
        annotations = {key: value for key, value in annotations.items() if key not in BUILD_ANNOTATIONS}
    if annotations:
        plain["annotations"] = annotations
    return plain
