"""Generate charts from model specs: read, resolve, render, and write whole folders or nothing."""

from __future__ import annotations

import functools
import os
import posixpath
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainchart import __version__
from trainchart.actions.own_script import OwnCode
from trainchart.actions.project import MODELS, NO_PROJECT, find_spec, list_specs, suggest_model
from trainchart.archive.lock import (
    LOCK_FILE,
    DriftKind,
    Source,
    build_lock,
    dump_lock,
    find_drift,
    hash_content,
    hash_tree,
    parse_lock,
)
from trainchart.check.waivers import WAIVER_FILE
from trainchart.errors import ChecksFailed, Problem, SpecError, ToolError
from trainchart.host.files import read_bytes, read_text, read_tree, refuse_pipe, write_tree
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.local.code_index import remember_code
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.layers import BUILTIN_LAYER
from trainchart.plan.resolve import resolve
from trainchart.render.chart import FAMILY, RenderedChart, render_chart
from trainchart.render.schema import KUBERNETES_VERSION
from trainchart.resources import read_builtin_defaults, read_family
from trainchart.spec.document import Document, parse_document

_COPIES_HINT = "train it as single, write it for the strategy (docs/strategies.md), or for all (docs/training.md)"
_EDITS = {DriftKind.changed: "was changed by hand since it was generated", DriftKind.added: "was added by hand"}


@dataclass(frozen=True)
class LocatedModel:
    """A model spec that was read and resolved, and where its code lies."""

    spec: Path
    text: str
    plan: ChartPlan
    code: Path


@dataclass(frozen=True)
class Program:
    """What a model's command starts, in words, and the files of the code folder one of which it is."""

    title: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class GeneratedChart:
    """A chart on disk; `changed` tells which of its files were not there, or not so, before."""

    name: str
    version: str
    chart: Path
    code: Path
    changed: tuple[str, ...]
    notes: tuple[Problem, ...]
    """What the author should know of, such as a role that the strategy does not have."""
    gives_image_the_token: bool = False
    """Whether the run controller, the only pod with a token, runs the training image."""


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


def load_model(spec: Path, strategy: str = "") -> LocatedModel:
    """Read and resolve a model spec, with another `strategy` than it names if one is given.

    Raises:
        ToolError: the file cannot be read.
        SpecError, PlanError: what it says is wrong; every problem with its line.
    """
    text = read_text(spec)
    document = parse_document(text, file=str(spec), layer="model spec")
    if strategy:
        document = document.with_value("strategy", strategy)
    plan = resolve(document, [read_defaults()])
    project = _project_folder(spec)
    code = project / plan.spec.code.path
    _require_inside(project, code, plan)
    return LocatedModel(spec, text, plan, code)


@functools.cache
def read_defaults() -> Document:
    """Return the built-in layer of defaults."""
    name, text = read_builtin_defaults()
    return parse_document(text, file=name, layer=BUILTIN_LAYER)


def render_model(model: LocatedModel) -> RenderedChart:
    """Return all files of the model's chart, the lock included."""
    require_code(model)
    family = read_family(FAMILY)
    chart = render_chart(model.plan, family, read_definitions(KUBERNETES_VERSION))
    image = model.plan.spec.image
    lock = build_lock(
        generator=__version__,
        spec=Source(f"{model.spec.parent.name}/{model.spec.name}", hash_content(model.text.encode())),
        family=Source(FAMILY, hash_tree({path: text.encode() for path, text in family.items()})),
        files=chart.files,
        image=f"{image.repository}:{image.tag}@{image.digest}" if image.digest else "",
    )
    return RenderedChart(chart.name, chart.version, {**chart.files, LOCK_FILE: dump_lock(lock).encode()})


def generate_charts(specs: tuple[Path, ...], charts: Path, *, overwrite: bool) -> list[GeneratedChart]:
    """Generate the charts of `specs` into folders of `charts`, by name; untouched where nothing changes.

    Raises:
        ChecksFailed: files were edited or added by hand, and `overwrite` is off; nothing is written then.
        ToolError: a folder cannot be written, or holds something that is not a generated chart.
    """
    models = [(model, render_model(model)) for model in map(load_model, specs)]
    if not overwrite:
        problems = [found for _, rendered in models for found in _find_edits(charts / rendered.name, rendered.files)]
        if problems:
            raise ChecksFailed(
                "these files were changed by hand, and generate would discard that",
                hint="move the changes into the model spec, or run generate with --overwrite to discard them",
                problems=tuple(problems),
            )
    return [_write_chart(model, rendered, charts) for model, rendered in models]


def _write_chart(model: LocatedModel, rendered: RenderedChart, charts: Path) -> GeneratedChart:
    folder = charts / rendered.name
    _require_in_project(folder, model.spec)
    changed = _differences(folder, rendered.files)
    if changed:
        write_tree(folder, {**_read_waivers(folder), **rendered.files}, is_ours=_is_generated)
    remember_code(model.plan.spec.image.repository, model.code)
    controller = model.plan.values.run.controller
    is_exposed = controller.enabled and not controller.image
    return GeneratedChart(rendered.name, rendered.version, folder, model.code, changed, _notes(model), is_exposed)


def render_model_to(spec: Path, charts: Path, strategy: str = "") -> GeneratedChart:
    """Generate the chart of `spec`, or with another strategy, into a scratch folder, remembering nothing."""
    model = load_model(spec, strategy)
    rendered = render_model(model)
    folder = charts / rendered.name
    write_tree(folder, rendered.files, is_ours=_is_generated)
    return GeneratedChart(rendered.name, rendered.version, folder, model.code, tuple(rendered.files), _notes(model))


def _require_in_project(folder: Path, spec: Path) -> None:
    """Refuse a folder that only a link brings out of the project: nobody named what would be written to."""
    models = Path(os.path.abspath(spec)).parent  # noqa: PTH100  # Path.resolve would follow the very link
    project = models.parent if models.name == MODELS else models
    named = Path(os.path.abspath(folder))  # noqa: PTH100
    target = Path(os.path.realpath(folder))
    if named.is_relative_to(project) and not target.is_relative_to(os.path.realpath(project)):
        raise ToolError(
            f"{folder} leads to {target}, outside the project {project}",
            hint="remove the link, or name the folder that is meant with --output",
        )


def _notes(model: LocatedModel) -> tuple[Problem, ...]:
    """Return what the author of a model should know of: of the plan, and of code that does not fit the strategy."""
    program, spec = find_program(model), model.plan.spec
    file = next((file for file in program.files if (model.code / file).is_file()), "") if program else ""
    if not file:
        return model.plan.notes
    script = _name_from_here(model.code / file)
    command = model.plan.values.command
    code = OwnCode(script, model.code, spec.code.path, tuple(command[: 3 if command[1] == "-m" else 2]))
    with suppress(ToolError):  # a script that is not Python says so itself when it starts
        what = code.describe_copies(spec.strategy, model.text)
        if what:
            where = str(model.plan.origins["code", "command"])
            return (*model.plan.notes, Problem(what, where, _COPIES_HINT))
    return model.plan.notes


def _name_from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def require_up_to_date(specs: tuple[Path, ...], charts: Path) -> None:
    """Compare the charts on disk with what their specs give now.

    Raises:
        ChecksFailed: names every file that differs, and says which were changed by hand.
    """
    problems: list[Problem] = []
    are_edited = False
    for spec in specs:
        rendered = render_model(load_model(spec))
        folder = charts / rendered.name
        edits = {found.where: found for found in _find_edits(folder, rendered.files)}
        are_edited = are_edited or bool(edits)
        for path in _differences(folder, rendered.files):
            where = str(folder / path)
            problems.append(edits.get(where, Problem("differs from what the model spec gives", where)))
    if problems:
        discard = "move changes made by hand into the model spec, then run: trainchart generate --overwrite"
        hint = discard if are_edited else "run trainchart generate"
        raise ChecksFailed("charts are not up to date", hint=hint, problems=tuple(problems))


def _locate(model: str) -> Path:
    path = find_spec(model)
    refuse_pipe(path)
    if not path.is_file():
        raise ToolError(
            f"there is no model spec {path}", hint=suggest_model(path.stem) or f"{NO_PROJECT}; or name a spec file"
        )
    return path


def _project_folder(spec: Path) -> Path:
    """Return the folder that paths in a spec start from: the one that holds models/."""
    folder = spec.absolute().parent
    return (folder.parent if folder.name == MODELS else folder).resolve()


def list_own_specs(spec: Path) -> frozenset[Path]:
    """Return the absolute paths of `spec` and, where it lies in models/, of the specs beside it."""
    folder = spec.absolute().parent
    beside = (*folder.glob("*.yaml"), *folder.glob("*.yml")) if folder.name == MODELS else ()
    return frozenset(path.resolve() for path in (spec, *beside))


def _require_inside(project: Path, code: Path, plan: ChartPlan) -> None:
    """Refuse code that a link brings in from outside the project. Raises SpecError."""
    # Path.resolve raises for links that lead round in a circle; such code is not there, which is said elsewhere.
    target = Path(os.path.realpath(code))
    if target.is_relative_to(project):
        return
    what = f"code.path: {plan.spec.code.path!r} leads to {target}, outside the project {project}"
    hint = "all of code.path goes into the image: move the code into the project in place of the link"
    problem = Problem(what, str(plan.origins["code", "path"]), hint)
    raise SpecError("the training code is outside the project", problems=(problem,))


def require_code(model: LocatedModel) -> None:
    """Refuse a spec whose code is not there: it would only be noticed when the image starts. Raises SpecError."""
    where = str(model.plan.origins["code", "path"])
    if not model.code.is_dir():
        raise SpecError(
            "the training code is not there",
            problems=(Problem(f"code.path: there is no folder {model.code}", where, "paths start where models/ is"),),
        )
    program = find_program(model)
    if program and not any((model.code / file).is_file() for file in program.files):
        where = str(model.plan.origins["code", "command"])
        problem = Problem(f"code.command: there is no {program.title} in {model.code}", where, "check the spelling")
        raise SpecError("the training code is not there", problems=(problem,))


def find_program(model: LocatedModel) -> Program | None:
    """Return the script or module of the code folder that a Python command names; None where that cannot be told."""
    program, *arguments = model.plan.values.command
    if PurePosixPath(program).name not in ("python", "python3") or not arguments:
        return None
    if arguments[0] == "-m" and len(arguments) > 1:
        top = arguments[1].split(".")[0]
        if not (model.code / top).is_dir() and not (model.code / f"{top}.py").is_file():
            return None  # a module of the image's own Python, such as a library
        path = arguments[1].replace(".", "/")
        return Program(f"module {arguments[1]}", (f"{path}.py", f"{path}/__main__.py"))
    script = PurePosixPath(posixpath.normpath(arguments[0]))
    if script.suffix != ".py" or script.is_absolute():
        return None
    return Program(f"script {script}", (str(script),))


def _differences(folder: Path, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the paths whose content on disk is not as in `files`."""
    if not folder.is_dir():
        return tuple(files)
    present = read_tree(folder)
    every = {*present, *files} - {WAIVER_FILE}
    return tuple(sorted(path for path in every if present.get(path) != files.get(path)))


def _find_edits(folder: Path, files: Mapping[str, bytes]) -> list[Problem]:
    """Return what writing `files` would discard of a generated chart: what was edited or added since.

    A file that is gone is written again, and one that is edited to what is generated now loses nothing.
    """
    if not _is_generated(folder):
        return []
    present = read_tree(folder)
    discarded = {path for path in _differences(folder, files) if path in present}
    try:
        lock = parse_lock(present[LOCK_FILE].decode(errors="replace"))
    except ToolError as error:
        # What the files were is not known, so each that would change may hold somebody's work.
        found = [Problem(error.message, str(folder / LOCK_FILE))]
        return found + [
            Problem("may be changed by hand", str(folder / path)) for path in sorted(discarded - {LOCK_FILE})
        ]
    drift = [found for found in find_drift(lock, present) if found.path in discarded]
    return [Problem(_EDITS[found.kind], str(folder / found.path)) for found in drift]


def _read_waivers(folder: Path) -> dict[str, bytes]:
    """Return the waivers of the chart, which belong to its authors and stay."""
    path = folder / WAIVER_FILE
    return {WAIVER_FILE: read_bytes(path)} if path.is_file() else {}


def _is_generated(folder: Path) -> bool:
    return (folder / LOCK_FILE).is_file()
