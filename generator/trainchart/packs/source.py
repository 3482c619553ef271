"""Where a pack comes from: one entry of `extends`, as a path or with the words of a chart's dependencies."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from trainchart.spec.section import Section

_PATH = ("path",)
_REPOSITORY = ("repository", "name", "version")
_GIT = ("git", "ref", "folder")


class PackSource(Section):
    """A pack to build on. A text alone is a path."""

    path: str = ""
    """Folder or archive (.tgz) of the pack, seen from the file that names it."""
    repository: str = ""
    """Chart repository or registry that has the pack: oci://HOST/PATH, https://HOST/PATH or a folder."""
    name: str = ""
    """Name of the pack in that repository."""
    version: str = ""
    """Exact version of the pack in that repository."""
    git: str = ""
    """Address of a Git repository that has the pack."""
    ref: str = ""
    """Tag, branch or commit of that Git repository."""
    folder: str = ""
    """Folder of the pack in that Git repository; its root if left out."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_one_kind(self) -> PackSource:
        given = {name for name, value in self if value}
        for required, optional in ((_PATH, ()), (_REPOSITORY, ()), (_GIT[:2], _GIT[2:])):
            if given >= set(required) and given <= {*required, *optional}:
                return self
        raise ValueError("expected a path, or repository with name and version, or git with ref")

    @property
    def is_remote(self) -> bool:
        """Whether the pack has to be fetched."""
        return not self.path

    def __str__(self) -> str:
        if self.path:
            return self.path
        if self.git:
            folder = f" {self.folder}" if self.folder else ""
            return f"{self.git}@{self.ref}{folder}"
        return f"{self.repository}/{self.name}:{self.version}"
