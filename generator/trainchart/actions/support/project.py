"""The project that the current folder lies in: where names of models are looked up, and where charts and runs go.

Paths that users type start from the current folder; only names and defaults start from the project.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.host.files import read_bytes, refuse_pipe
from trainchart.reports.text import natural_key

MODELS = "models"
NO_PROJECT = "there is no models/ with a spec, here or in a folder above: go to the folder that holds yours"
"""The hint where a model is named outside of a project."""
SUFFIXES = (".yaml", ".yml")
_MARK = "trainchart/"
"""Stands in the apiVersion of every model spec: other tools keep YAML in folders called models, too."""


def find_project() -> Path:
    """Return the nearest folder upwards whose models/ holds a spec, seen from here; without one, this folder."""
    here = Path.cwd()
    for steps, folder in enumerate((here, *here.parents)):
        if any(_is_spec(path) for path in _list_yaml(folder / MODELS)):
            return Path(*[".."] * steps)
    return Path()


def list_specs() -> tuple[Path, ...]:
    """Return all spec files of the project, by name."""
    return _list_yaml(find_project() / MODELS)


def find_spec(model: str) -> Path:
    """Return the spec file that a path, or the name of a model in the project, means; it need not be there."""
    if model.endswith(SUFFIXES):
        return Path(model)
    usual, other = (find_project() / MODELS / f"{model}{suffix}" for suffix in SUFFIXES)
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
                f"there is no model spec in {MODELS}/, here or in a folder above",
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


def project_of(spec: Path) -> Path:
    """Return the folder that paths in a spec start from: the one that holds models/."""
    folder = spec.absolute().parent
    return (folder.parent if folder.name == MODELS else folder).resolve()


def _locate(model: str) -> Path:
    path = find_spec(model)
    refuse_pipe(path)
    if not path.is_file():
        raise ToolError(
            f"there is no model spec {path}", hint=suggest_model(path.stem) or f"{NO_PROJECT}; or name a spec file"
        )
    return path


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
