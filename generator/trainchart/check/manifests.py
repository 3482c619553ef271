"""Plain manifests, as people write them for kubectl: the objects in YAML files, each with its line.

What charts render to is parsed where it is rendered; its lines are nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainchart.errors import Problem, ToolError
from trainchart.kubernetes_yaml import YamlError, parse_objects
from trainchart.rendering import Manifest


def parse_plain_manifests(texts: Mapping[str, str], name: str) -> tuple[Manifest, ...]:
    """Return the objects in `texts` by path, in their order; `name` is what the user called them all.

    Raises:
        ToolError: something is no YAML or no object; every such place with its file and line.
    """
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    for path, text in texts.items():
        file = "/".join(filter(None, (name.rstrip("/"), path)))
        try:
            for found in parse_objects(text):
                if isinstance(found.value, dict):
                    manifests.append(Manifest(path, found.value, found.line))
                else:
                    problems.append(Problem("is not a Kubernetes object", where=f"{file}:{found.line}"))
        except YamlError as error:
            where = f"{file}:{error.line}" if error.line else file
            problems.append(Problem(f"is not YAML: {error.message}", where=where))
    if problems:
        raise ToolError(f"{name} does not hold Kubernetes objects", problems=tuple(problems))
    return tuple(manifests)
