"""The use case `trainchart import`: a model spec from what another tool was given, and a list of what is missing."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainchart.actions.support.new_models import NAME_RULE, render_schema_file, require_chart, require_new
from trainchart.actions.support.own_script import locate_code
from trainchart.actions.support.packs import read_packs
from trainchart.actions.support.project import Project, find_project, write_new_in_project
from trainchart.errors import PlanError, Problem, SpecError, ToolError, UsageError
from trainchart.host.files import read_text
from trainchart.importing.convert import Choices, Tree, build_tree
from trainchart.importing.detect import read_trainings
from trainchart.importing.ledger import Carried, LeftOut
from trainchart.importing.prune import drop_refused
from trainchart.importing.spec_text import render_imported
from trainchart.importing.training import Training
from trainchart.packs.pack import Pack
from trainchart.plan.strategies import find_strategy
from trainchart.scaffold.model_name import is_model_name, suggest_model_name
from trainchart.secret_files import find_secret_content
from trainchart.spec.document import parse_document

STANDARD_INPUT = Path("-")
_INPUT_LIMIT = 4 * 1024 * 1024
"""Bytes; no manifest that a user writes is as large."""
_MOST_ROUNDS = 50
_MOST_SCRIPTS = 1000
_MOST_TRAININGS = 100


@dataclass(frozen=True)
class ImportRequest:
    """What the user asked for; empty texts mean "decide"."""

    file: Path
    """"-" for standard input."""
    name: str = ""
    strategy: str = ""
    image: str = ""
    runtime_image: str = ""
    code: Path | None = None
    """Folder that holds the training code, where the user has it."""


@dataclass(frozen=True)
class ImportedModel:
    """A model spec that was written, and what became of the input."""

    name: str
    kind: str
    strategy: str
    spec: Path
    carried: tuple[Carried, ...]
    left: tuple[LeftOut, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Imported:
    """What was written, and the next command."""

    models: tuple[ImportedModel, ...]
    files: tuple[Path, ...]
    next: str


@dataclass(frozen=True)
class _Draft:
    model: ImportedModel
    text: str


def import_models(request: ImportRequest) -> Imported:
    """Write models/<name>.yaml for each training of the input.

    Raises:
        UsageError: a name is not one a model can have, or the input cannot be expressed as a model spec.
        ToolError: the input cannot be read or holds no training, or a file already exists.
    """
    project = find_project()
    if request.strategy:
        find_strategy(request.strategy)
    text = _read_input(request.file)
    shown = "standard input" if request.file == STANDARD_INPUT else str(request.file)
    trainings = read_trainings(text, shown)
    names = _choose_names(trainings, request.name)
    packs = read_packs(project)
    choices = Choices(
        "",
        request.strategy,
        request.image,
        request.runtime_image,
        has_runtime_image=any(_names_runtime_image(layer.tree) for pack in packs for layer in pack.layers),
        **_find_code(request, project),
    )
    drafts = [
        _draft(training, replace(choices, name=name), project, packs)
        for training, name in zip(trainings, names, strict=True)
    ]
    files: dict[Path, bytes] = {}
    schema, schema_text = render_schema_file(project.models)
    if not schema.is_file():
        files[schema] = schema_text.encode()
    files |= {draft.model.spec: draft.text.encode() for draft in drafts}
    for name in names:
        require_new(name, project.models)
    write_new_in_project(files, project.folder)
    command = "run" if request.code else "generate"
    return Imported(tuple(draft.model for draft in drafts), tuple(files), f"trainchart {command} {names[0]}")


def _read_input(file: Path) -> str:
    if file != STANDARD_INPUT:
        return read_text(file, limit=_INPUT_LIMIT)
    content = sys.stdin.buffer.read(_INPUT_LIMIT + 1)
    if len(content) > _INPUT_LIMIT:
        raise ToolError(f"standard input holds more than {_INPUT_LIMIT} bytes", hint="import one file at a time")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolError("standard input is not UTF-8 text", hint="save the input as UTF-8") from error


def _choose_names(trainings: Sequence[Training], wanted: str) -> list[str]:
    """Return the name of each model. Raises UsageError."""
    if len(trainings) > _MOST_TRAININGS:
        raise UsageError(
            f"the input holds {len(trainings)} training jobs, and at most {_MOST_TRAININGS} are imported at once",
            hint="split the file",
        )
    if wanted and len(trainings) > 1:
        shown = ", ".join(training.name or "without a name" for training in trainings[:5])
        raise UsageError(
            f"the input holds {len(trainings)} training jobs ({shown}), and --name can name only one",
            hint="leave --name out: each model is named after its training job",
        )
    names = [wanted or suggest_model_name(training.name) for training in trainings]
    for name, training in zip(names, trainings, strict=True):
        if not is_model_name(name):
            shown = wanted or training.name
            what = f"{shown[:60]!r} cannot be a model's name" if shown else f"the {training.kind} has no name"
            raise UsageError(
                f"{what}: {NAME_RULE}",
                hint="choose one with --name",
            )
        if names.count(name) > 1:
            raise UsageError(
                f"several training jobs of the input would be called {name}",
                hint="import them one at a time, with --name",
            )
    return names


def _draft(training: Training, choices: Choices, project: Project, packs: tuple[Pack, ...]) -> _Draft:
    """Return the spec of one training of the input."""
    name, shown = choices.name, training.ledger.origin.file
    # What a ledger holds is about one try; the code may lead to another one.
    untouched = copy.deepcopy(training) if choices.code else training
    tree = build_tree(training, choices)
    found = "" if choices.strategy else _read_strategy(tree, choices, project)
    if found and found != tree["strategy"]:
        training = untouched
        tree = build_tree(training, replace(choices, strategy=found))
        training.ledger.note(f"the strategy is {found}, which the code in {choices.code} uses")
    spec = project.models / f"{name}.yaml"
    source = f"the {training.kind} in {shown}"
    spec_text = _require_generates(tree, spec, source, packs, training)
    if secret := find_secret_content(str(spec), spec_text.encode()):
        training.ledger.note(f"{spec}:{secret.line} {secret.reason}: remove it, and use a Secret in env instead")
    ledger = training.ledger
    model = ImportedModel(
        name, training.kind, tree["strategy"], spec, tuple(ledger.carried), tuple(ledger.left), tuple(ledger.notes)
    )
    return _Draft(model, spec_text)


def _names_runtime_image(layer: Any) -> bool:
    run = layer.get("run") if isinstance(layer, dict) else None
    controller = run.get("controller") if isinstance(run, dict) else None
    return isinstance(controller, dict) and bool(controller.get("image"))


def _find_code(request: ImportRequest, project: Project) -> dict[str, Any]:
    """Return what the choices say of the folder of the code. Raises ToolError where it is not in the project."""
    if request.code is None:
        return {}
    folder = request.code.resolve()
    if not folder.is_dir():
        raise ToolError(
            f"{request.code} is not a folder", hint="--code takes the folder that holds the training script"
        )
    root = project.folder.resolve()
    if not folder.is_relative_to(root):
        raise ToolError(
            f"{request.code} is outside {root}, where models/ will be",
            hint="start import in a folder above the code: all of code.path goes into the image",
        )
    found = sorted(path for pattern in ("*.py", "*/*.py") for path in folder.glob(pattern))[:_MOST_SCRIPTS]
    scripts = {path.name: path.relative_to(folder).as_posix() for path in reversed(found)}
    return {"code": folder.relative_to(root).as_posix(), "scripts": scripts}


def _read_strategy(tree: Tree, choices: Choices, project: Project) -> str:
    """Return the strategy that the script of the command shows; empty where there is none to read."""
    command = tree["code"]["command"]
    script = next((word for word in command if word in choices.scripts.values()), "")
    if not script:
        return ""
    strategy = locate_code(project.folder / choices.code / script).read("").strategy
    return "" if strategy == "single" else strategy


def _require_generates(tree: Tree, spec: Path, source: str, packs: tuple[Pack, ...], training: Training) -> str:
    """Return the text of a spec that generate accepts: what it would refuse is taken out, and noted.

    Raises:
        UsageError: what is refused is needed for any spec.
    """
    for _ in range(_MOST_ROUNDS):
        text = render_imported(tree, source)
        document = None
        try:
            document = parse_document(text, file=str(spec), layer="model spec")
            require_chart(document, packs)
            return text
        except (SpecError, PlanError) as error:
            if document is None or not drop_refused(tree, document, error.problems, training.ledger):
                problems = tuple(Problem(problem.message, hint=problem.hint) for problem in error.problems)
                raise UsageError(
                    f"a model spec cannot express the {training.kind} {training.name}: {error.message}",
                    problems=problems,
                ) from error
    raise UsageError(f"a model spec cannot express the {training.kind} {training.name}")
