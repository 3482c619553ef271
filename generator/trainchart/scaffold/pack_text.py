"""The files of a new pack and of a project file, commented for those who read them first. Pure."""

from __future__ import annotations

_PROJECT = """\
# What the models of this repository have in common.
apiVersion: trainchart/v1
kind: Project

# Packs whose defaults hold for every model, the weakest first. What a model's spec says wins over all of them.
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
# What a model's spec need not say: the keys of a model spec, without those that name a model.
# A list replaces the list of the layer below; with a plus behind the key, such as tolerations+, it is added to it.
# A key "*" under roles or volumes holds for each that a model has. For example:
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
