"""Start a model: write its spec, a script that trains at once, and the schema for editors; all or nothing."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from trainchart.actions.support.family_charts import find_families
from trainchart.actions.support.models import read_defaults
from trainchart.actions.support.new_models import NAME_RULE, render_schema_file, require_chart, require_new
from trainchart.actions.support.own_script import locate_code
from trainchart.actions.support.packs import read_packs
from trainchart.actions.support.project import find_project, write_new_in_project
from trainchart.errors import Problem, SpecError, UsageError
from trainchart.host.files import read_text
from trainchart.packs.pack import Pack
from trainchart.placeholder import REGISTRY
from trainchart.plan.layers import BUILTIN_LAYER, merge_layers
from trainchart.plan.strategies import find_strategy
from trainchart.plan.typed import suggest_word
from trainchart.resources import read_script_template
from trainchart.scaffold.chart_text import render_chart_spec
from trainchart.scaffold.model_name import is_model_name, suggest_model_name
from trainchart.scaffold.script import read_script
from trainchart.scaffold.spec_text import NewModel, render_spec
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.document import parse_document

CODE = Path("training")
"""Folder of the scripts that init writes, one folder a model."""
SCRIPT = "train.py"


@dataclass(frozen=True)
class InitRequest:
    """What the user asked for; empty texts mean "decide"."""

    name: str
    strategy: str = ""
    image: str = ""
    script: Path | None = None
    """An own script to read the flags from; without one, a script is written."""


@dataclass(frozen=True)
class NewFiles:
    """What was written, and what the user should know about it."""

    name: str
    strategy: str
    files: tuple[Path, ...]
    notes: tuple[str, ...]
    next: str
    """The command that trains it."""


def init_model(request: InitRequest) -> NewFiles:
    """Write models/<name>.yaml and what it needs into the project, which is the current folder where there is none.

    Raises:
        UsageError: the name is not one a model can have, the image is not one, or there is no such strategy.
        ToolError: a file already exists, or the script cannot be read.
    """
    project = find_project()
    _require_name(request.name, project.models)
    if request.strategy:
        find_strategy(request.strategy)
    schema, schema_text = render_schema_file(project.models)
    files: dict[Path, bytes] = {}
    program: tuple[str, ...]
    if request.script is None:
        strategy = request.strategy or "single"
        text, folder = read_script_template(), CODE / request.name
        facts = read_script(text, SCRIPT)
        files[project.folder / folder / SCRIPT] = text.encode()
        code_path, program = folder.as_posix(), ("python", SCRIPT)
    else:
        code = locate_code(request.script)
        facts = code.read(request.strategy)
        strategy = facts.strategy
        code_path, program = code.path, code.program
    image = request.image or f"{REGISTRY}/{request.name}"
    spec = project.models / f"{request.name}.yaml"
    model = NewModel(request.name, strategy, image, code_path, program, facts)
    _require_generates(render_spec(model), spec)
    spec_text = render_spec(replace(model, decided=_find_decided(render_spec(model), spec, read_packs(project))))
    notes = list(facts.notes)
    if request.script is not None and (copies := code.describe_copies(strategy, spec_text)):
        notes.append(f"{copies}; see strategies in the documentation, or use --strategy single")
    if project.folder != Path():
        notes.append(f"this is part of the project {project.folder.resolve()}")
    if schema.is_file() and read_text(schema) != schema_text:
        notes.append(f"{schema} is from another version; to update it: trainchart schema > {shlex.quote(str(schema))}")
    elif not schema.is_file():
        files[schema] = schema_text.encode()
    # The spec comes last: what names the model is there only when all of it is.
    files[spec] = spec_text.encode()
    write_new_in_project(files, project.folder)
    run = f"trainchart run {request.name}" + "".join(f" --set hyperparameters.{name}=VALUE" for name in facts.required)
    run += " --claim data=FOLDER" if facts.reads_data else ""
    first = [f"complete code.command in {spec}"] * facts.lacks_arguments
    first += ["fix what the notes name"] * facts.has_obstacles
    run = f"{' and '.join(first)}, then: {run}" if first else run
    return NewFiles(request.name, strategy, tuple(files), tuple(notes), run)


@dataclass(frozen=True)
class NewChart:
    """The spec of a chart that was started."""

    name: str
    family: str
    file: Path


def init_chart(name: str, family: str) -> NewChart:
    """Write the spec of a chart of a family into the project's folder of models.

    Raises:
        UsageError: the name is not one a chart can have, or there is no such family.
        ToolError: the file already exists.
    """
    project = find_project()
    _require_name(name, project.models)
    families = find_families(read_packs(project))
    if family not in families:
        raise UsageError(f"unknown family {family}", hint=suggest_word(family, list(families)))
    found = families[family]
    file = project.models / f"{name}.yaml"
    text = render_chart_spec(name, family, found.description, found.values.tree[VALUES_KEY])
    write_new_in_project({file: text.encode()}, project.folder)
    return NewChart(name, family, file)


def _require_name(name: str, models: Path) -> None:
    if is_model_name(name):
        require_new(name, models)
        return
    suggestion = suggest_model_name(name)
    raise UsageError(
        f"{name!r} cannot be a model's name: {NAME_RULE}",
        hint=f"try {suggestion}" if suggestion else "for example mnist or my-model-2",
    )


def _find_decided(text: str, spec: Path, packs: tuple[Pack, ...]) -> frozenset[str]:
    """Return the dotted keys of a spec of which a pack says something, too: the spec would beat it."""
    if not packs:
        return frozenset()
    layers = [read_defaults(), *(layer for pack in packs for layer in pack.layers)]
    # Only merged: what a pack locks, the spec is about to leave out.
    overridden = merge_layers(layers, parse_document(text, file=str(spec), layer="model spec")).overridden
    return frozenset(
        ".".join(map(str, path))
        for path, settings in overridden.items()
        if any(setting.origin.layer != BUILTIN_LAYER for setting in settings)
    )


def _require_generates(text: str, spec: Path) -> None:
    """Refuse here what generate would refuse later: an image or a flag that no spec, or no chart, can hold."""
    try:
        require_chart(parse_document(text, file=str(spec), layer="model spec"))
    except SpecError as error:
        problems = tuple(Problem(problem.message, hint=problem.hint) for problem in error.problems)
        raise UsageError("a model spec cannot express these settings", problems=problems) from error
