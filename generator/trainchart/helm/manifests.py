"""From rendered text to Kubernetes objects, in one order for every engine. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from trainchart.errors import Problem, RenderError
from trainchart.helm.rendering import Manifest
from trainchart.kubernetes_yaml import YamlError, parse_objects, require_few_nodes


def parse_manifests(texts: Mapping[str, str], chart: str) -> tuple[Manifest, ...]:
    """Return the objects in rendered texts by template path. Raises RenderError for what is not an object."""
    try:
        require_few_nodes(texts.values())
    except YamlError as error:
        raise RenderError(f"what chart {chart} renders to is too large: {error.message}", hint="split it") from error
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    for source, text in texts.items():
        try:
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
    if problems:
        raise RenderError(f"chart {chart} does not render", problems=tuple(problems))
    # Helm sorts the documents of one file by kind, so their order in the file is not to be had from it.
    return tuple(sorted(manifests, key=lambda manifest: (manifest.source, manifest.kind, manifest.name)))
