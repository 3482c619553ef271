"""Read the small YAML files that are one closed section: the project file, and a pack's own files."""

from __future__ import annotations

from typing import TypeVar

from trainchart.errors import SpecError
from trainchart.plan.typed import check_types
from trainchart.spec.document import Document, parse_document
from trainchart.spec.section import Section

Kind = TypeVar("Kind", bound=Section)


def parse_section(text: str, file: str, kind: type[Kind], title: str) -> Kind:
    """Return the section that `text` holds; `title` says what `file` is.

    Raises:
        SpecError: not YAML, or unknown keys, missing keys and wrong types, each with its line.
    """
    return parse_section_document(text, file, kind, title, title)[0]


def parse_section_document(text: str, file: str, kind: type[Kind], title: str, layer: str) -> tuple[Kind, Document]:
    """Return the section as `parse_section` does, and the document with the origins of its keys, of that `layer`."""
    hint = f"a {title} starts with apiVersion: trainchart/v1 and kind: {kind.__name__.removesuffix('File')}"
    document = parse_document(text, file=file, layer=layer, hint=hint)
    section, problems = check_types(document.tree, document.origins, kind, {})
    if section is None:
        raise SpecError(f"the {title} is not valid", problems=problems)
    return section, document
