"""trainchart.yaml, the file that makes a folder a project: the packs of its models, and where specs and charts are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from trainchart.packs.section_file import parse_section
from trainchart.packs.source import PackSource
from trainchart.spec.section import Section


def _inside(path: str) -> str:
    """Refuse what is not a folder below the project."""
    if path.startswith("/") or "\\" in path or {"", ".", ".."} & set(path.split("/")):
        raise ValueError(f"{path!r} is not a folder of the project; write a relative path, such as models")
    return path


Folder = Annotated[str, AfterValidator(_inside)]


class ProjectFile(Section):
    """What the models of a repository have in common."""

    api_version: Literal["trainchart/v1"]
    """Version of the format."""
    kind: Literal["Project"]
    """Kind of file."""
    extends: list[PackSource] = Field(default_factory=list)
    """Packs of all models, the weakest first."""
    models: Folder = "models"
    """Folder of the model specs."""
    charts: Folder = "charts"
    """Folder of the generated charts."""


def parse_project_file(text: str, file: str) -> ProjectFile:
    """Return the project file that `text` holds.

    Raises:
        SpecError: not YAML, or unknown keys, missing keys and wrong types, each with its line.
    """
    return parse_section(text, file, ProjectFile, "project file")
