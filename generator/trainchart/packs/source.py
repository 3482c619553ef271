"""Where a pack comes from: one entry of `extends`, as a path or with the words of a chart's dependencies."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from trainchart.spec.section import Section

_PATH = ("path",)
_REPOSITORY = ("repository", "name", "version")
_REMOTE = ("oci://", "http://", "https://", "chartmuseum+http://", "chartmuseum+https://")


class PackSource(Section):
    """A pack to build on. A text alone is a path."""

    path: str = ""
    """Folder or archive (.tgz) of the pack, seen from the file that names it."""
    repository: str = ""
    """Chart repository or registry that has the pack: oci://HOST/PATH, https://HOST/PATH or file:///PATH."""
    name: str = ""
    """Name of the pack in that repository."""
    version: str = ""
    """Exact version of the pack in that repository."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_one_kind(self) -> PackSource:
        given = {name for name, value in self if value}
        if given not in ({*_PATH}, {*_REPOSITORY}):
            raise ValueError("expected a path, or repository with name and version")
        if self.repository and "://" not in self.repository:
            raise ValueError(f"{self.repository!r} is not an address: write oci://, https:// or file:///ABSOLUTE/PATH")
        return self

    @property
    def is_remote(self) -> bool:
        """Whether the pack has to be fetched."""
        return not self.path

    @property
    def is_on_this_machine(self) -> bool:
        """Whether its repository is a folder here, however its scheme is written."""
        return not self.repository.casefold().startswith(_REMOTE)

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"{self.repository}/{self.name}:{self.version}"
