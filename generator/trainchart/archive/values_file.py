"""values.yaml of a chart, as far as Helm 3 and 4 read it differently. Pure."""

from __future__ import annotations

import re
from typing import Any

from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, parse_documents

_MARKER = re.compile(r"(?:\A|[\n\r\x85\u2028\u2029])(?:---|\.\.\.)")
"""What starts or ends a document. Most values files have none and are not parsed."""


def describe_extra_documents(documents: tuple[Any, ...]) -> str:
    """Return what is wrong with a values.yaml that has more documents than the first; empty if the others are empty.

    `documents` includes the empty ones.
    """
    if all(document is None for document in documents[1:]):
        return ""
    return f"holds {len(documents)} YAML documents: Helm 3 reads only the first, Helm 4 reads all"


def require_one_document(content: bytes, path: str) -> None:
    """Raise ToolError for a values.yaml of several documents, or one that cannot be parsed."""
    text = content.decode("utf-8-sig", errors="replace")
    if not _MARKER.search(text):
        return
    try:
        problem = describe_extra_documents(parse_documents(text, drop_empty=False))
    except YamlError as error:
        line = f"line {error.line}: " if error.line else ""
        raise ToolError(f"{path} cannot be read: {line}{error}", hint="fix the YAML") from error
    if problem:
        raise ToolError(f"{path} {problem}", hint="merge them into one document")
