"""Write the charts of model specs: read, resolve, render, and write whole folders or nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainchart.actions.support.hand_edits import find_edits, is_generated, list_differing_files
from trainchart.actions.support.known_charts import GeneratedChart, hash_chart_inputs, remember_chart
from trainchart.actions.support.models import LocatedModel, find_program, load_model, render_model
from trainchart.actions.support.own_script import OwnCode, list_packages
from trainchart.actions.support.parallel import map_parallel
from trainchart.actions.support.project import name_from_here, name_model, project_of, require_in_project
from trainchart.actions.support.specs import load_specs, render_spec
from trainchart.archive.lock import WAIVER_FILE
from trainchart.errors import ChecksFailed, PlanError, Problem, SpecError, ToolError
from trainchart.host.clock import utc_today
from trainchart.host.files import read_bytes, tidy_tree, write_tree
from trainchart.host.result_cache import hash_listing
from trainchart.local.io.code_index import remember_code
from trainchart.render.chart import RenderedChart

if TYPE_CHECKING:
    from trainchart.actions.support.specs import LocatedSpec

_LEGACY = "TF_USE_LEGACY_KERAS"
_LEGACY_VALUES = ("1", "true", "True")
"""As TensorFlow reads them."""
_LEGACY_HINT = (
    "list tf_keras with the version of TensorFlow in requirements.txt of the code folder (see images in the "
    "documentation); for local runs, install it in their Python"
)
_COPIES_HINT = (
    "set strategy: single, or write it for this strategy, or for all (see strategies and training in the documentation)"
)
_UNKEPT = "the volume checkpoints, which the spec does not have: what it saves is lost with its pod"
_UNKEPT_HINT = "add to the spec: volumes: {checkpoints: {size: 5Gi, mountPath: /checkpoints}}"
_MANY = 20
"""Charts; fewer are made sooner than other processes start."""
_AT_ONCE = 10
"""Charts that a process gets at once: it reads their packs and code folders once."""


@dataclass(frozen=True)
class PreparedChart:
    """A chart that was rendered and not written yet."""

    located: LocatedSpec
    rendered: RenderedChart
    inputs: str
    """Hash of all that it follows from; empty for one that is not remembered."""


def prepare_charts(
    specs: tuple[Path, ...], charts: Path, texts: Mapping[Path, str] | None = None
) -> list[PreparedChart]:
    """Read, complete and render `specs`, many on all cores; `texts` are read in place of what is on disk."""
    given = dict(texts or {})
    if len(specs) <= _MANY:
        return _prepare_some((specs, charts, given))
    tasks = [(specs[start : start + _AT_ONCE], charts, given) for start in range(0, len(specs), _AT_ONCE)]
    return [chart for some in map_parallel(_prepare_some, tasks, are_many=True) for chart in some]


def _prepare_some(task: tuple[tuple[Path, ...], Path, Mapping[Path, str]]) -> list[PreparedChart]:
    specs, charts, texts = task
    prepared = []
    # Models may share a large code folder.
    hash_folder = functools.cache(hash_listing)
    for located in load_specs(specs, texts):
        # Before the code is looked at: what changes from here on makes another hash.
        inputs = _hash_inputs(located, charts, hash_folder)
        prepared.append(PreparedChart(located, render_spec(located), inputs))
    return prepared


def write_charts(
    specs: tuple[Path, ...], charts: Path, *, overwrite: bool, beside: Mapping[Path, str]
) -> list[GeneratedChart]:
    """Generate the charts of `specs`, as `generate_charts` does, whatever was generated before.

    `beside` has the names of the charts that other specs of the same call give.
    """
    prepared = prepare_charts(specs, charts)
    require_one_spec_each([*beside.items(), *((each.located.spec, each.rendered.name) for each in prepared)])
    if not overwrite:
        require_unedited(prepared, charts)
    return [write_chart(each, charts) for each in prepared]


def _hash_inputs(located: LocatedSpec, charts: Path, hash_folder: Callable[[Path], str]) -> str:
    """Return the hash by which the chart will be known; empty for one that is not remembered."""
    if not isinstance(located, LocatedModel):
        return ""
    packs = tuple(pack.sha256 for pack in located.packs)
    return hash_chart_inputs(located.spec, located.text, charts, located.code, packs, hash_folder)


def require_unedited(prepared: Iterable[PreparedChart], charts: Path) -> None:
    """Refuse to replace charts in `charts` that were edited. Raises ChecksFailed with every file."""
    problems = [
        found
        for each in prepared
        for found in find_edits(charts / each.rendered.name, each.rendered.files, each.located)
    ]
    refuse_edits(problems)


def refuse_edits(problems: Sequence[Problem]) -> None:
    """Refuse to discard edits, if there are any. Raises ChecksFailed with all of them."""
    if problems:
        raise ChecksFailed(
            "these files were changed by hand, and generate would discard that",
            hint="move the changes into the model spec, or discard them with --overwrite",
            problems=tuple(problems),
        )


def require_one_spec_each(names: Iterable[tuple[Path, str]]) -> None:
    """Refuse several specs of one chart, of which the last would win. Raises SpecError."""
    specs: dict[str, list[Path]] = {}
    for spec, name in names:
        specs.setdefault(name, []).append(spec)
    problems = tuple(
        Problem(f"{' and '.join(map(str, own))} both give the chart {name}", hint="give one of them another name")
        for name, own in specs.items()
        if len(own) > 1
    )
    if problems:
        raise SpecError("two specs would write the same chart", problems=problems)


def write_chart(prepared: PreparedChart, charts: Path) -> GeneratedChart:
    """Write a chart into its folder in one step; untouched where nothing changes. Raises ToolError."""
    located, rendered = prepared.located, prepared.rendered
    folder = charts / rendered.name
    require_in_project(folder, project_of(located.spec).folder)
    changed = list_differing_files(folder, rendered.files)
    is_new = not is_generated(folder)
    if changed:
        write_tree(folder, {**_read_waivers(folder), **rendered.files}, is_ours=is_generated)
    else:
        tidy_tree(folder)
    if isinstance(located, LocatedModel):
        return _remember_model(located, rendered, prepared.inputs, charts, changed, is_new=is_new)
    return GeneratedChart(rendered.name, rendered.version, folder, None, changed, (), is_new=is_new)


def _remember_model(
    model: LocatedModel, rendered: RenderedChart, inputs: str, charts: Path, changed: tuple[str, ...], *, is_new: bool
) -> GeneratedChart:
    """Return the chart that was written, and remember it and its code."""
    folder = charts / rendered.name
    remember_code(model.plan.spec.image.repository, model.code)
    controller = model.plan.values.run.controller
    is_exposed = controller.enabled and not controller.image
    notes = _notes(model)
    chart = GeneratedChart(rendered.name, rendered.version, folder, model.code, changed, notes, is_exposed, is_new)
    remember_chart(
        chart,
        rendered.files,
        spec=model.spec,
        inputs=inputs,
        charts=charts,
        authored=frozenset({WAIVER_FILE}),
        repository=model.plan.spec.image.repository,
        packs=tuple(pack.path for pack in model.packs),
        day=utc_today() if any(pack.policy.waivers for pack in model.packs) else None,
    )
    return chart


def render_model_to(spec: Path, charts: Path, strategy: str = "") -> GeneratedChart:
    """Generate the chart of `spec`, or with another strategy, into a scratch folder, remembering nothing."""
    model = load_model(spec, strategy)
    rendered = render_model(model)
    folder = charts / rendered.name
    write_tree(folder, rendered.files, is_ours=is_generated)
    return GeneratedChart(rendered.name, rendered.version, folder, model.code, tuple(rendered.files), _notes(model))


def _notes(model: LocatedModel) -> tuple[Problem, ...]:
    """Return what the author of a model should know of: of the plan, and of code that does not fit it."""
    return (*model.plan.notes, *_find_lacking_keras(model), *_find_misfits(model))


def _find_lacking_keras(model: LocatedModel) -> Iterator[Problem]:
    """Yield a note where the spec asks TensorFlow for Keras 2, and the lists of packages do not name it."""
    spec = model.plan.spec
    places: dict[tuple[str, ...], Mapping[str, object]] = {
        ("env",): spec.env,
        **{("roles", name, "env"): role.env for name, role in spec.roles.items()},
    }
    asking = [(*path, _LEGACY) for path, env in places.items() if str(env.get(_LEGACY)) in _LEGACY_VALUES]
    # A list that cannot be read is refused where the image is built.
    with suppress(ToolError, PlanError):
        if asking and "tf-keras" not in list_packages(model.code):
            yield Problem(
                f"{_LEGACY} needs tf_keras, which images do not have", str(model.plan.origins[asking[0]]), _LEGACY_HINT
            )


def _find_misfits(model: LocatedModel) -> Iterator[Problem]:
    program, spec = find_program(model), model.plan.spec
    file = next((file for file in program.files if (model.code / file).is_file()), "") if program else ""
    if not file:
        return
    script = name_from_here(model.code / file)
    command = model.plan.values.command
    code = OwnCode(script, model.code, spec.code.path, tuple(command[: 3 if command[1] == "-m" else 2]))
    where = str(model.plan.origins["code", "command"])
    with suppress(ToolError):  # a script that is not Python says so itself when it starts
        what = code.describe_copies(spec.strategy, model.text)
        if what:
            yield Problem(what, where, _COPIES_HINT)
        if "checkpoints" not in spec.volumes and code.uses_training_library():
            yield Problem(f"{script} saves to {_UNKEPT}", where, _UNKEPT_HINT)


def require_up_to_date(specs: tuple[Path, ...], charts: Path) -> None:
    """Compare the charts on disk with what their specs give now.

    Raises:
        ChecksFailed: names every file that differs, and says which were changed by hand.
    """
    problems: list[Problem] = []
    edited: list[str] = []
    is_more = False
    for located in load_specs(specs):
        rendered = render_spec(located)
        folder = charts / rendered.name
        if not folder.exists():
            problems.append(Problem("this chart has not been generated yet", str(folder)))
            is_more = True
            continue
        edits = {found.where: found for found in find_edits(folder, rendered.files, located)}
        if edits:
            edited.append(name_model(located.spec))
        elif list_differing_files(folder, rendered.files):
            is_more = True
        for path in list_differing_files(folder, rendered.files):
            where = str(folder / path)
            problems.append(edits.get(where, Problem("differs from what the model spec gives", where)))
    if problems:
        names = " ".join(edited)
        hint = "run trainchart generate"
        if edited:
            hint = f"move changes made by hand into the model spec, then run: trainchart generate {names} --overwrite"
            hint += "; then trainchart generate, for the others" if is_more else ""
        raise ChecksFailed("charts are not up to date", hint=hint, problems=tuple(problems))


def _read_waivers(folder: Path) -> dict[str, bytes]:
    """Return the waivers of the chart, which belong to its authors and stay."""
    path = folder / WAIVER_FILE
    return {WAIVER_FILE: read_bytes(path)} if path.is_file() else {}
