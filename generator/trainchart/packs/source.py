"""Where a pack comes from: one entry of `extends`, as a path or with the words of a chart's dependencies."""

from __future__ import annotations

import re
from typing import Any

from pydantic import model_validator

from trainchart.spec.section import Section

_PATH = {"path"}
_REPOSITORY = {"repository", "name", "version"}
_GIT = {"git", "ref"}
_FOLDER = {"folder"}
_GIT_ADDRESS = re.compile(r"(https?|ssh|file)://[^\s-]\S*|[\w.][\w.-]*@[\w.][\w.-]*:\S+", re.ASCII)
_LOGIN = re.compile(r"(?!ssh:)[\w+]+://[^/?#]*@|ssh://[^/?#]*:[^/?#]*@", re.ASCII | re.IGNORECASE)
"""In an address; the name of a user of ssh alone is no secret."""
_GIT_REF = re.compile(r"\w[\w./+-]*", re.ASCII)
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
    git: str = ""
    """Git repository that has the pack: https://HOST/PATH, ssh://HOST/PATH, USER@HOST:PATH or file:///PATH."""
    ref: str = ""
    """Tag, branch or commit in that Git repository."""
    folder: str = ""
    """Folder of the pack in that Git repository. Default: the top."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_one_kind(self) -> PackSource:
        given = {name for name, value in self if value}
        if given - _FOLDER not in (_PATH, _REPOSITORY, _GIT) or (_FOLDER & given and "git" not in given):
            raise ValueError("expected a path, or repository with name and version, or git with ref")
        if _LOGIN.match(self.git) or _LOGIN.match(self.repository):
            raise ValueError("an address must not contain a user name or password: locks and messages show it")
        if self.repository and "://" not in self.repository:
            raise ValueError(f"{self.repository!r} is not an address: write oci://, https:// or file:///ABSOLUTE/PATH")
        if self.git and not _GIT_ADDRESS.fullmatch(self.git):
            raise ValueError(f"{self.git!r} is not an address: write https://, ssh:// or file:///ABSOLUTE/PATH")
        if self.ref and not _GIT_REF.fullmatch(self.ref):
            raise ValueError(f"{self.ref!r} is not a tag, branch or commit")
        if ".." in self.folder.split("/") or self.folder.startswith("/"):
            raise ValueError(f"{self.folder!r} is not a folder in the Git repository")
        return self

    @property
    def is_remote(self) -> bool:
        """Whether the pack has to be fetched."""
        return not self.path

    @property
    def is_on_this_machine(self) -> bool:
        """Whether its repository is a folder here, however its scheme is written."""
        if self.git:
            return self.git.casefold().startswith("file:")
        return not self.repository.casefold().startswith(_REMOTE)

    def __str__(self) -> str:
        if self.path:
            return self.path
        if self.git:
            return f"git+{self.git}@{self.ref}" + (f"#{self.folder}" if self.folder else "")
        return f"{self.repository}/{self.name}:{self.version}"
