"""The files of a new pack and of a project file, commented for those who read them first. Pure."""

from __future__ import annotations

_PROJECT = """\
# What the models of this repository have in common.
apiVersion: trainchart/v1
kind: Project

# Packs whose defaults apply to every model, the lowest precedence first. A model's spec overrides all of them.
extends:
  - {pack}
"""
_PACK = """\
apiVersion: trainchart/v1
kind: Pack
name: {name}
version: 0.1.0
description: Defaults of all models.
"""
_DEFAULTS = """\
# Defaults for model specs: all keys of a model spec, except those that belong to one model.
# A list replaces the list of the layer below; with a plus after the key, such as tolerations+, it is added to it.
# A key "*" under roles or volumes applies to each one of a model. For example:
#
# volumes:
#   "*":
#     storageClass: cephfs
# roles:
#   worker:
#     nodeSelector: {node-pool: gpu}
# strategies:
#   parameter-server:
#     roles: {ps: {memory: 4Gi}}
"""


def render_pack(name: str) -> dict[str, str]:
    """Return the files of a new pack by their path in it."""
    return {"defaults.yaml": _DEFAULTS, "pack.yaml": _PACK.format(name=name)}


def render_project_file(pack: str) -> str:
    """Return a project file that names one `pack` by its path."""
    return _PROJECT.format(pack=pack)
