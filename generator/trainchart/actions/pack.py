"""Start a pack, and check packs apart from the models that use them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.support.models import resolve_spec
from trainchart.actions.support.packs import read_pack_folder, read_packs
from trainchart.actions.support.project import find_project
from trainchart.errors import PlanError, Problem, SpecError, ToolError, UsageError
from trainchart.host.new_files import write_new_files
from trainchart.packs.pack import Pack
from trainchart.packs.probe import make_probes
from trainchart.packs.project_file import PROJECT_FILE
from trainchart.scaffold.model_name import is_model_name
from trainchart.scaffold.pack_text import render_pack, render_project_file

PACKS = Path("packs")
"""Folder of new packs."""


@dataclass(frozen=True)
class NewPack:
    """The files of a pack that was started."""

    name: str
    files: tuple[Path, ...]
    next: str
    """What is left to do for models to use it."""


def init_pack(name: str) -> NewPack:
    """Write packs/<name>/ into the project, and a project file that names it where there is none.

    Raises:
        UsageError: the name is not one that a pack can have.
        ToolError: a file is there already.
    """
    if not is_model_name(name):
        raise UsageError(
            f"{name!r} cannot be a pack's name: lower-case letters, digits and dashes, at most 40, a letter first",
            hint="for example platform or acme-ml",
        )
    project = find_project()
    place = PACKS / name
    files = {project.folder / place / path: text.encode() for path, text in render_pack(name).items()}
    file = project.folder / PROJECT_FILE
    if project.file is None:
        files[file] = render_project_file(place.as_posix()).encode()
        todo = f"set defaults in {project.folder / place / 'defaults.yaml'}, then: trainchart generate"
    else:
        todo = f"add {place.as_posix()} to extends in {file}"
    write_new_files(files)
    return NewPack(name, tuple(files), todo)


def check_packs(folders: tuple[Path, ...]) -> tuple[Pack, ...]:
    """Return the packs in `folders`, or without any those of the project, checked for every strategy.

    Raises:
        SpecError: a pack, or what it builds on, is not valid; every problem with its line.
        ToolError: a pack is not there, or the project names none.
    """
    if folders:
        chains = [read_pack_folder(folder) for folder in folders]
        checked = tuple(chain[-1] for chain in chains)
    else:
        checked = read_packs(find_project())
        chains = [checked[: number + 1] for number in range(len(checked))]
    if not checked:
        hint = "start one with trainchart pack init NAME, or name the folder of a pack"
        raise ToolError(f"no {PROJECT_FILE} here or above names a pack", hint=hint)
    problems = dict.fromkeys(problem for chain in chains for problem in _find_problems(chain))
    if problems:
        raise SpecError("packs are not valid", problems=tuple(problems))
    return checked


def _find_problems(chain: tuple[Pack, ...]) -> list[Problem]:
    """Return what is wrong with the last pack of `chain`, over the others, for a model of any strategy."""
    defaults = chain[-1].defaults
    if defaults is None:
        return []
    file = str(defaults.origins[()].file)
    found: list[Problem] = []
    for probe in make_probes(defaults):
        try:
            resolve_spec(probe, chain)
        except (SpecError, PlanError) as error:
            found += [problem for problem in error.problems if problem.where.startswith(f"{file}:")]
    return found
