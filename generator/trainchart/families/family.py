"""A family: its files, read and checked. Like a pack, it is data; nothing of it is ever executed. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from trainchart.archive.lock import hash_tree
from trainchart.errors import Problem, SpecError
from trainchart.families.schemas import find_schema_problems
from trainchart.packs.section_file import parse_section_document
from trainchart.packs.templates import TEMPLATES, PackTemplates, parse_templates
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.document import Document
from trainchart.spec.section import Line, Section

FAMILY_FILE = "family.yaml"
README = "README.md"
CI = "ci"
FILES = "files"
TESTS = "tests"
SIZE_LIMIT = 512 * 1024
"""Bytes of all files; what a chart's release may hold is not much more."""
_KNOWN = (FAMILY_FILE, README, TEMPLATES, FILES, CI, TESTS)
_FILE = re.compile(r"files/\w[\w.-]*\.(yaml|json|txt)", re.ASCII)


class FamilyFile(Section):
    """What a family is."""

    api_version: Literal["trainchart/v1"]
    """Version of the format."""
    kind: Literal["Family"]
    """Kind of file."""
    description: Line
    """What its charts are for."""
    values: dict[str, Any]
    """The values of its charts: a JSON Schema for each, with description and default."""


@dataclass(frozen=True)
class Family:
    """One kind of chart."""

    name: str
    """The name of its folder."""
    title: str
    """The name, and what brings it."""
    place: str
    """What its files are called in messages."""
    description: str
    values: Document
    """The JSON Schemas of the values by key, below `values`, with the place of each."""
    templates: PackTemplates
    """The files of its charts that are templates, and those that templates read."""
    ci: Mapping[str, bytes]
    """Sets of values that charts are checked with, by path in the chart."""
    tests: Mapping[str, str]
    """Specs of charts that the family is tested with, by the place of each."""
    sha256: str
    """Of all files of the family, names and contents."""


def parse_family(files: Mapping[str, bytes], name: str, place: str, source: str) -> Family:
    """Return the family of these files (path within the family → content), which `source` brings.

    Raises:
        SpecError: a file is missing, unknown or wrong; every problem with its file and line.
    """
    if FAMILY_FILE not in files:
        raise SpecError(f"{place} is not a family: it has no {FAMILY_FILE}", hint="see docs/families.md")
    unknown = tuple(_find_unknown(files, place))
    if unknown:
        raise SpecError(f"{place} contains files that are not part of a family", problems=unknown)
    if sum(map(len, files.values())) > SIZE_LIMIT:
        hint = "keep large files out of charts"
        raise SpecError(f"{place} has more than {SIZE_LIMIT // 1024} KiB", hint=hint)
    texts = {path: _decode(content, f"{place}/{path}") for path, content in files.items()}
    title = f"{name} of {source}"
    about, values = parse_section_document(
        texts[FAMILY_FILE], f"{place}/{FAMILY_FILE}", FamilyFile, "family", f"family {title}"
    )
    problems = tuple(find_schema_problems(values))
    if problems:
        raise SpecError(f"the values of family {title} are not valid", problems=problems)
    templates = parse_templates(files, title, place, place)
    own = templates.files if templates is not None else ()
    others = ((path, text) for path, text in sorted(texts.items()) if path == README or path.startswith(f"{FILES}/"))
    return Family(
        name,
        title,
        place,
        about.description,
        Document({VALUES_KEY: values.tree[VALUES_KEY]}, values.origins),
        PackTemplates(title, place, "", (*own, *others), ()),
        {path: content for path, content in files.items() if path.startswith(f"{CI}/")},
        {f"{place}/{path}": text for path, text in texts.items() if path.startswith(f"{TESTS}/")},
        hash_tree(files),
    )


def _find_unknown(files: Mapping[str, bytes], place: str) -> Iterator[Problem]:
    for path in sorted(files):
        top = path.split("/")[0]
        if top not in _KNOWN:
            close = difflib.get_close_matches(top, _KNOWN, n=1)
            hint = f"did you mean {close[0]}?" if close else f"a family has {', '.join(_KNOWN)}"
            yield Problem(f"unknown file or folder {top}", f"{place}/{path}", hint)
        elif top == CI and not (path.count("/") == 1 and path.endswith("-values.yaml")):
            yield Problem("not a set of values", f"{place}/{path}", f"use {CI}/NAME-values.yaml")
        elif top == FILES and not _FILE.fullmatch(path):
            yield Problem(
                "not a file that templates can read", f"{place}/{path}", f"use {FILES}/NAME.yaml, .json or .txt"
            )
        elif top == TESTS and not (path.count("/") == 1 and path.endswith(".yaml")):
            yield Problem("not a spec", f"{place}/{path}", f"use {TESTS}/NAME.yaml")


def _decode(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{where}:{line}: not UTF-8 text", hint="save the file as UTF-8") from error
