"""Model specs on disk: find them, read and resolve them, and render their charts."""

from __future__ import annotations

import functools
import os
import posixpath
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainchart import __version__
from trainchart.actions.support.packs import read_packs
from trainchart.actions.support.project import Project, project_of
from trainchart.archive.lock import (
    LOCK_FILE,
    Source,
    build_lock,
    dump_lock,
    hash_content,
    hash_tree,
)
from trainchart.errors import Problem, SpecError
from trainchart.host.clock import utc_today
from trainchart.host.files import read_text
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.packs.locks import LockedPath, drop_waived, require_allowed
from trainchart.packs.pack import Pack
from trainchart.packs.rules import require_rules
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.layers import BUILTIN_LAYER
from trainchart.plan.misfits import require_fit
from trainchart.plan.resolve import resolve
from trainchart.render.chart import FAMILY, RenderedChart, render_chart
from trainchart.render.narrow import narrow_files, narrow_schema
from trainchart.render.schema import KUBERNETES_VERSION, ApiDefinitions, Schema, render_values_schema
from trainchart.resources import read_builtin_defaults, read_family
from trainchart.spec.document import Document, parse_document

CHART_KIND = "Chart"
"""Kind of the specs of charts that are no trainings."""
SPEC_LIMIT = 1024 * 1024
"""Bytes; no spec is as large as this."""


@dataclass(frozen=True)
class LocatedModel:
    """A model spec that was read and resolved, and where its code lies."""

    spec: Path
    text: str
    plan: ChartPlan
    schema: Schema
    """The JSON Schema of the chart's values."""
    code: Path
    real_code: Path
    """The same without links, inside the project: what goes into an image is read there, whatever `code` becomes."""
    packs: tuple[Pack, ...]
    """The layers between the built-in defaults and the spec, the weakest first."""
    locks: tuple[LockedPath, ...]
    """What packs lock, without what they waive for the model today."""

    @property
    def name(self) -> str:
        return self.plan.name


@dataclass(frozen=True)
class Program:
    """What a model's command starts, in words, and the files of the code folder one of which it is."""

    title: str
    files: tuple[str, ...]


def load_model(spec: Path, strategy: str = "") -> LocatedModel:
    """Read and resolve a model spec, with another `strategy` than it names if one is given.

    Raises:
        ToolError: the file, or a pack, cannot be read.
        SpecError, PlanError: what it or a pack says is wrong; every problem with its line.
    """
    project = project_of(spec)
    text = read_text(spec, limit=SPEC_LIMIT)
    document = parse_document(text, file=str(spec), layer="model spec")
    if document.tree.get("kind") == CHART_KIND:
        raise SpecError(
            f"{spec} is the spec of a chart of the family {document.tree.get('family')}, not of a model",
            hint="this command needs training code, which charts of families do not have",
        )
    return resolve_model(spec, text, document, project, read_packs(project), strategy)


def resolve_model(
    spec: Path, text: str, document: Document, project: Project, packs: tuple[Pack, ...], strategy: str = ""
) -> LocatedModel:
    """Return the model of a spec that was read, with another `strategy` than it names if one is given.

    Raises:
        SpecError, PlanError: what it or a pack says is wrong; every problem with its line.
    """
    if strategy:
        document = document.with_value("strategy", strategy)
    plan, schema, locks = resolve_with_schema(document, packs)
    code = project.folder / plan.spec.code.path
    return LocatedModel(spec, text, plan, schema, code, _require_inside(project.folder, code, plan), packs, locks)


def resolve_spec(document: Document, packs: tuple[Pack, ...] = ()) -> ChartPlan:
    """Return the plan of a spec on the built-in defaults and `packs`, the weakest first.

    Raises:
        SpecError, PlanError: what it says is wrong; every problem with its line.
    """
    return resolve_with_schema(document, packs)[0]


def resolve_with_schema(
    document: Document, packs: tuple[Pack, ...]
) -> tuple[ChartPlan, Schema, tuple[LockedPath, ...]]:
    """Return the plan of a spec as `resolve_spec` does, the schema of its chart's values, and the locks that hold."""
    layers = [read_defaults(), *(layer for pack in packs for layer in pack.layers)]
    plan = resolve(document, layers)
    today = utc_today()
    locks = drop_waived((lock for pack in packs for lock in pack.policy.locks), plan.name, today)
    require_allowed(plan.name, plan.spec.model_dump(by_alias=True, exclude_none=True), plan.origins, locks)
    require_rules(plan, (rule for pack in packs for rule in pack.policy.rules), today)
    schema = narrow_schema(build_values_schema(plan), plan, locks)
    require_fit(plan, schema)
    return plan, schema, locks


def build_values_schema(plan: ChartPlan) -> Schema:
    """Return the JSON Schema of the values of the plan's chart, with the definitions of Kubernetes."""
    return render_values_schema(plan, read_api_definitions())


@functools.cache
def read_api_definitions() -> ApiDefinitions:
    """Return the schemas of the Kubernetes API that charts describe what they pass through with."""
    return ApiDefinitions(read_definitions(KUBERNETES_VERSION))


@functools.cache
def read_defaults() -> Document:
    """Return the built-in layer of defaults."""
    name, text = read_builtin_defaults()
    return parse_document(text, file=name, layer=BUILTIN_LAYER)


def render_model(model: LocatedModel) -> RenderedChart:
    """Return all files of the model's chart, the lock included."""
    if not (model.plan.spec.image.inject_launcher and not os.path.lexists(model.code)):  # the image is built elsewhere
        require_code(model)
    family = read_family(FAMILY)
    chart = render_plan(model.plan, model.schema, model.packs, model.locks)
    image = model.plan.spec.image
    source = Source(FAMILY, hash_tree({path: text.encode() for path, text in family.items()}))
    named = f"{image.repository}:{image.tag}@{image.digest}" if image.digest else ""
    return add_lock(chart, model.spec, model.text, source, model.packs, named)


def add_lock(
    chart: RenderedChart, spec: Path, text: str, family: Source, packs: tuple[Pack, ...], image: str = ""
) -> RenderedChart:
    """Return a chart with its lock, which says that it was made from a spec of that `text`, a family and packs."""
    path = Path(os.path.abspath(spec))  # noqa: PTH100  # models/ may be a link
    lock = build_lock(
        generator=__version__,
        spec=Source(Path(path.parent.name, path.name).as_posix(), hash_content(text.encode())),
        family=family,
        layers=tuple(Source(f"{pack.name}@{pack.version}", pack.sha256) for pack in packs),
        files=chart.files,
        image=image,
    )
    return RenderedChart(chart.name, chart.version, {**chart.files, LOCK_FILE: dump_lock(lock).encode()})


def render_plan(
    plan: ChartPlan, schema: Schema, packs: tuple[Pack, ...], locks: tuple[LockedPath, ...]
) -> RenderedChart:
    """Return the files of the plan's chart, without a lock file, as its packs and the locks that hold have them.

    Raises:
        SpecError: a template of a pack is wrong.
    """
    templates = tuple(pack.templates for pack in packs if pack.templates is not None)
    chart = render_chart(plan, read_family(FAMILY), schema, templates)
    return RenderedChart(chart.name, chart.version, narrow_files(chart.files, locks))


def list_own_specs(spec: Path) -> frozenset[Path]:
    """Return the absolute paths of `spec` and, where it lies in the project's folder of models, of those beside it."""
    folder = spec.absolute().parent.resolve()
    beside = (*folder.glob("*.yaml"), *folder.glob("*.yml")) if folder == project_of(spec).models.resolve() else ()
    return frozenset(path.resolve() for path in (spec, *beside))


def _require_inside(project: Path, code: Path, plan: ChartPlan) -> Path:
    """Return where code is, without links; SpecError for code that a link brings in from outside the project."""
    # Path.resolve raises for links that lead round in a circle; such code is not there, which is said elsewhere.
    target = Path(os.path.realpath(code))
    if target.is_relative_to(project):
        return target
    what = f"code.path: {plan.spec.code.path!r} leads to {target}, outside the project {project}"
    hint = "all of code.path goes into the image: replace the link with the code itself"
    problem = Problem(what, str(plan.origins["code", "path"]), hint)
    raise SpecError("the training code is outside the project", problems=(problem,))


def require_code(model: LocatedModel) -> None:
    """Refuse a spec whose code is not there: it would only be noticed when the image starts. Raises SpecError."""
    where = str(model.plan.origins["code", "path"])
    if not model.code.is_dir():
        raise SpecError(
            "the training code is not there",
            problems=(
                Problem(f"code.path: there is no folder {model.code}", where, "paths are relative to the project"),
            ),
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
