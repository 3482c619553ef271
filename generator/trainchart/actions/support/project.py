"""The project that the current folder lies in: where names of models are looked up, and where charts and runs go.

A project is a folder with a trainchart.yaml and all below; without such a file, a folder with a models/ that holds a
spec. Paths that users type start from the current folder; only names and defaults start from the project.
"""

from __future__ import annotations

import difflib
import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainchart.errors import ToolError
from trainchart.host.files import read_bytes, read_text, refuse_pipe
from trainchart.name_order import natural_key

if TYPE_CHECKING:
    from trainchart.packs.project_file import ProjectFile

PROJECT_FILE = "trainchart.yaml"
MODELS = "models"
NO_PROJECT = "there is no models/ with a spec, here or in a folder above: go to the folder that holds yours"
"""The hint where a model is named outside of a project."""
SUFFIXES = (".yaml", ".yml")
_MARK = "trainchart/"
"""Stands in the apiVersion of every model spec: other tools keep YAML in folders called models, too."""
_FILE_LIMIT = 1024 * 1024
"""Bytes; no project file is as large as this."""


@dataclass(frozen=True)
class Project:
    """A folder with models, and what its project file says."""

    folder: Path
    file: ProjectFile | None
    """None where there is no project file."""

    @property
    def models(self) -> Path:
        """The folder of the model specs."""
        return self.folder / (self.file.models if self.file else MODELS)

    @property
    def charts(self) -> Path:
        """The folder of the generated charts."""
        return self.folder / (self.file.charts if self.file else "charts")


def find_project() -> Project:
    """Return the project that this folder is in, by its path from here; without one, this folder.

    Raises:
        SpecError: the project file is not valid.
        ToolError: it belongs to another user.
    """
    here = Path.cwd()
    above = [Path(*[".."] * steps) for steps in range(len(here.parents) + 1)]
    for folder in above:
        if (folder / PROJECT_FILE).is_file():
            return _read_project(folder)
    with_models = (folder for folder in above if any(_is_spec(path) for path in _list_yaml(folder / MODELS)))
    found = next(with_models, Path())
    if found != Path():
        _require_own(found / MODELS)
    return Project(found, None)


def project_of(spec: Path) -> Project:
    """Return the project of a spec, from whose folder the paths in it start; its folder is absolute.

    It is the nearest folder upwards with a project file; without one, the folder that holds models/, or else the spec.

    Raises:
        SpecError: the project file is not valid.
        ToolError: it belongs to another user.
    """
    folder = spec.absolute().parent
    for above in (folder, *folder.parents):
        if (above / PROJECT_FILE).is_file():
            return _read_project(above.resolve())
    return Project((folder.parent if folder.name == MODELS else folder).resolve(), None)


def name_from_here(path: Path) -> Path:
    """Return an absolute path as users write it: from this folder, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _read_project(folder: Path) -> Project:
    # Imported where it is needed: most projects have no such file, and commands without one start sooner.
    from trainchart.packs.project_file import parse_project_file

    path = name_from_here(folder / PROJECT_FILE)
    _require_own(path)
    return Project(folder, parse_project_file(read_text(path, limit=_FILE_LIMIT), str(path)))


def _require_own(path: Path) -> None:
    """Refuse a project file, or models/, that another user may have put above: they say which code runs.

    Raises:
        ToolError: it is another user's.
    """
    file, folder, user = path.stat(), path.parent.stat(), os.geteuid()
    is_foreign = file.st_uid not in (0, user) and user != 0
    is_planted = file.st_uid != user and bool(folder.st_mode & stat.S_IWOTH)
    if is_foreign or is_planted:
        raise ToolError(
            f"{path.absolute()} belongs to another user, and would decide what runs here",
            hint="move your project out of that folder, or copy it to make it yours; or change into that folder first",
        )


def require_in_project(path: Path, project: Path) -> None:
    """Refuse a path that only a link brings out of the folder of a project: the user did not name what is written to.

    Raises:
        ToolError: it lies outside, though its name lies inside.
    """
    project = project.resolve()
    named = Path(os.path.abspath(path))  # noqa: PTH100  # Path.resolve would follow the very link
    target = Path(os.path.realpath(path))
    is_named = project in (each.resolve() for each in named.parents)
    if is_named and not target.is_relative_to(project):
        raise ToolError(
            f"{path} leads to {target}, outside the project {project}",
            hint="remove the link, or name the folder that you mean",
        )


def write_new_in_project(files: Mapping[Path, bytes], project: Path) -> None:
    """Write new files of a project, all or none. Raises ToolError: one is there already, or a link leads outside."""
    from trainchart.host.new_files import write_new_files

    for path in files:
        require_in_project(path, project)
    write_new_files(files)


def list_specs() -> tuple[Path, ...]:
    """Return all spec files of the project, by name."""
    return _list_yaml(find_project().models)


def find_spec(model: str) -> Path:
    """Return the spec file that a path, or the name of a model in the project, means; it need not be there."""
    if model.endswith(SUFFIXES):
        return Path(model)
    usual, other = (find_project().models / f"{model}{suffix}" for suffix in SUFFIXES)
    return other if other.is_file() and not usual.is_file() else usual


def locate_specs(models: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the spec files that `models` (names or paths) mean; without any, all of models/.

    Raises:
        ToolError: there is no such model, or none at all.
    """
    if not models:
        found = list_specs()
        if not found:
            raise ToolError(
                f"there is no model spec in {find_project().models.name}/, here or in a folder above",
                hint="go to the folder that holds yours, start a model with trainchart init NAME, or name a spec file",
            )
        return found
    return tuple(_locate(model) for model in models)


def suggest_model(model: str) -> str:
    """Return the hint for a model that is not there: the one that was meant, or those that are."""
    known = {path.stem.lower(): path.stem for path in list_specs()}
    close = difflib.get_close_matches(model.lower(), known, n=1)
    if close:
        return f"did you mean {known[close[0]]}?"
    return f"models here: {', '.join(known.values())}" if known else ""


def _locate(model: str) -> Path:
    path = find_spec(model)
    refuse_pipe(path)
    if not path.is_file():
        raise ToolError(
            f"there is no model spec {path}", hint=suggest_model(path.stem) or f"{NO_PROJECT}; or name a spec file"
        )
    return path


def name_model(spec: Path) -> str:
    """Return the word that names a spec on a command line: the model where that finds it, else the path."""
    found = find_spec(spec.stem)
    is_found = found.is_file() and found.resolve() == spec.resolve()
    return shlex.quote(spec.stem if is_found else str(name_from_here(spec)))


def _list_yaml(folder: Path) -> tuple[Path, ...]:
    try:
        found = [path for path in folder.iterdir() if path.suffix in SUFFIXES]
    except OSError:
        return ()
    return tuple(sorted(found, key=lambda path: natural_key(path.name)))


def _is_spec(path: Path) -> bool:
    try:
        return _MARK.encode() in read_bytes(path)
    except ToolError:
        return False
