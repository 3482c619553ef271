"""values.yaml of a chart, as far as Helm 3 and 4 read it differently. Pure."""

from __future__ import annotations

import re

from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, parse_documents

_MARKER = re.compile(r"(?:\A|[\n\r\x85\u2028\u2029])(?:---|\.\.\.)")
"""What starts or ends a document. Most values files have none and are not parsed."""

_DIRECTIVE = re.compile(r"\ufeff?(?:[ \t]*(?:#[^\n\r\x85\u2028\u2029]*)?[\n\r\x85\u2028\u2029])*(%[^\n\r]{1,40})")
"""The first directive, such as `%YAML 1.1`: only blank lines and comments may stand before it."""


def describe_helm_difference(text: str) -> str:
    """Return why Helm 3 and 4 would read a values.yaml differently: a directive, or more documents than the first.

    Empty if they read the same; documents that are empty make no difference.

    Raises:
        YamlError: it cannot be parsed.
    """
    documents = parse_documents(text, drop_empty=False)
    if directive := _DIRECTIVE.match(text):
        return f"begins with the directive {directive[1]!r}: Helm 3 follows it, Helm 4 refuses the chart"
    if all(document is None for document in documents[1:]):
        return ""
    return f"holds {len(documents)} YAML documents: Helm 3 reads only the first, Helm 4 reads all"


def require_one_document(content: bytes, path: str) -> None:
    """Raise ToolError for a values.yaml of several documents, one with a directive, or one that cannot be parsed."""
    text = content.decode("utf-8-sig", errors="replace")
    if not _MARKER.search(text):
        return
    try:
        problem = describe_helm_difference(text)
    except YamlError as error:
        line = f"line {error.line}: " if error.line else ""
        raise ToolError(f"{path} cannot be read: {line}{error}", hint="fix the YAML") from error
    if problem:
        raise ToolError(f"{path} {problem}", hint="write one document without directives")
