"""From rendered text to Kubernetes objects, in one order for every engine. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainchart.errors import Problem, RenderError
from trainchart.helm.rendering import Manifest
from trainchart.kubernetes_yaml import YamlError, parse_objects, require_few_nodes

_OBJECTS_LIMIT = 5000
"""Of a chart; a hundred are many, and rules look at each of them."""


def parse_manifests(texts: Mapping[str, str], chart: str) -> tuple[Manifest, ...]:
    """Return the objects in rendered texts by template path. Raises RenderError for what is not an object."""
    try:
        require_few_nodes(texts.values())
    except YamlError as error:
        raise RenderError(
            f"the rendered chart {chart} is too large: {error.message}", hint="split the chart"
        ) from error
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    for source, text in texts.items():
        try:
            if text.startswith("\ufeff"):  # Kubernetes reads it behind Helm's line about the source
                raise YamlError("a byte order mark (U+FEFF) before the first key: remove it", 1)
            objects = parse_objects(text)
        except YamlError as error:
            where = f"{source}:{error.line}" if error.line else source
            problems.append(Problem(f"renders to invalid YAML: {error.message}", where=where))
            continue
        for found in objects:
            if isinstance(found.value, dict):
                manifests.append(Manifest(source, found.value))
            else:
                problems.append(Problem("renders to something that is not a Kubernetes object", where=source))
    if len(manifests) > _OBJECTS_LIMIT:
        large = f"the rendered chart {chart} is too large: it holds more than {_OBJECTS_LIMIT} objects"
        raise RenderError(large, hint="split the chart")
    if problems:
        raise RenderError(f"chart {chart} does not render", problems=tuple(problems))
    # Helm sorts the documents of one file by kind, so their order in the file is not to be had from it.
    return tuple(sorted(manifests, key=lambda manifest: (manifest.source, manifest.kind, manifest.name)))


_SEPARATOR = re.compile(r"(?:^|(?<![\t\n\f\r ])[\t\n\f\r ]*\n)---[\t\n\f\r ]*")


def separate_as_helm(text: str) -> str:
    """Return a rendered text as Helm takes it apart: where a document begins, Helm drops the spaces.

    Lines keep their numbers as far as possible. Source: pkg/release/v1/util/manifest.go.
    """
    begin = len(text) - len(text.lstrip())
    lead = "\n" * text.count("\n", 0, begin)

    def separate(found: re.Match[str]) -> str:
        before, _, after = found[0].partition("---")
        return "\n" * before.count("\n") + "---" + "\n" * max(after.count("\n"), 1)

    return lead + _SEPARATOR.sub(separate, text.strip()) + "\n"


_DOCUMENT = re.compile(r"^---\n# Source: (?P<source>.+)\n", re.MULTILINE)


def split_by_source(text: str) -> dict[str, str]:
    """Return what Helm has rendered, by the path of its template, which starts with the chart's name."""
    texts: dict[str, str] = {}
    for mark, part in sections(_DOCUMENT, text):
        source = mark["source"]
        texts[source] = f"{texts[source]}---\n{part}" if source in texts else part
    return texts


def sections(mark: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each match of `mark` with the text up to the next one."""
    marks = list(mark.finditer(text))
    ends = [following.start() for following in marks[1:]] + [len(text)]
    for found, end in zip(marks, ends, strict=False):
        yield found, text[found.end() : end]
