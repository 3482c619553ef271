"""Plain manifests, as people write them for kubectl: the objects in YAML files, each with its line.

What charts render to is parsed where it is rendered; its lines are in no file. Files that configure a tool look like
objects and lie beside them, but no cluster ever sees them: they are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from trainchart.errors import Problem, ToolError
from trainchart.helm.rendering import Manifest
from trainchart.kubernetes_yaml import YamlError, parse_objects, require_few_nodes

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")
_TOOL_GROUPS = ("audit.k8s.io", "config.k8s.io", "k3d.io", "kind.x-k8s.io", "kubeadm.k8s.io", "skaffold")


def parse_plain_manifests(texts: Mapping[str, str], name: str) -> tuple[Manifest, ...]:
    """Return the objects in `texts` by path, in their order; `name` is what the user called them all.

    Raises:
        ToolError: something is no YAML or no object, every such place with its file and line; or it is all too large.
    """
    try:
        require_few_nodes(texts.values())
    except YamlError as error:
        raise ToolError(
            f"{name} is too large: {error.message}", hint="check parts of it, such as a folder each"
        ) from error
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    for path, text in texts.items():
        file = "/".join(filter(None, (name.rstrip("/"), path)))
        try:
            for found in parse_objects(text):
                if isinstance(found.value, dict) and _is_of_a_tool(found.value, PurePosixPath(file).name):
                    continue
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


def _is_of_a_tool(document: Mapping[str, Any], file: str) -> bool:
    """Tell whether this is the configuration of a tool: of kubectl, kustomize, kubeadm, kind, a kubelet, …"""
    api_version, kind = str(document.get("apiVersion", "")), document.get("kind")
    group = api_version.partition("/")[0]
    return (
        (file in _KUSTOMIZATIONS and kind in (None, "Kustomization", "Component"))
        or (api_version, kind) == ("v1", "Config")
        or group in _TOOL_GROUPS
        or group.endswith(".config.k8s.io")
    )
