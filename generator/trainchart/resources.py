"""Files that ship with trainchart: chart templates, built-in defaults, Dockerfiles and what else goes into images.

In a wheel they lie inside the package, in a checkout at the top level of the repository.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parent.parent


def read_builtin_defaults() -> tuple[str, str]:
    """Return the built-in layer of defaults: (name for messages, YAML text)."""
    path = _PACKAGE / "plan" / "defaults.yaml"
    return "trainchart/plan/defaults.yaml", path.read_text(encoding="utf-8")


@cache
def chart_templates_folder() -> Path:
    """Return the folder with one folder per chart family."""
    packaged = _PACKAGE / "_resources" / "chart-templates"
    return packaged if packaged.is_dir() else _CHECKOUT / "chart-templates"


@cache
def read_family(family: str) -> Mapping[str, str]:
    """Return the files of a chart family: path relative to the family's folder -> text."""
    folder = chart_templates_folder() / family
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def list_families() -> tuple[str, ...]:
    """Return the names of the families besides that of models."""
    return tuple(sorted(path.parent.name for path in chart_templates_folder().glob("*/family.yaml")))


def list_code_folders() -> tuple[Path, ...]:
    """Return the folders of everything that decides what trainchart makes: its packages, and the chart templates."""
    return (_PACKAGE, _package_folder("trainchart_runtime"), chart_templates_folder())


@cache
def read_console_files(folder: str) -> Mapping[str, bytes]:
    """Return the files of the console's `static` or `templates`: path relative to that folder -> content."""
    root = _PACKAGE / "console" / folder
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def read_image_source(path: str) -> bytes:
    """Return a Dockerfile, or what it copies, by path in the repository: training-images/tensorflow/Dockerfile."""
    packaged = _PACKAGE / "_resources" / path
    return (packaged if packaged.is_file() else _CHECKOUT / path).read_bytes()


def read_package(name: str) -> Mapping[str, bytes]:
    """Return the files of one of the packages that go into images, as it is installed here or checked out."""
    folder = _package_folder(name)
    paths = [*folder.rglob("*.py"), *folder.rglob("py.typed")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(paths)}


def _package_folder(name: str) -> Path:
    found = importlib.util.find_spec(name)
    assert found is not None and found.origin is not None, f"{name} belongs to trainchart"
    return Path(found.origin).parent


def read_script_template() -> str:
    """Return the training script that a new model starts with."""
    return (_PACKAGE / "scaffold" / "train.py.txt").read_text(encoding="utf-8")
