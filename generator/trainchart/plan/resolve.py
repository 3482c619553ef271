"""Spec and layers of defaults to a ChartPlan: merge, check types, fit to the strategy, refuse what cannot work. Pure.

Every problem of a stage is reported at once, each with the line that caused it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trainchart.chart_version import is_chart_version
from trainchart.errors import PlanError, Problem, SpecError
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.fit import fit_to_strategy
from trainchart.plan.impossible import find_impossibilities
from trainchart.plan.layers import BUILTIN_LAYER, Merged, merge_layers
from trainchart.plan.references import find_shell_references, find_unfilled
from trainchart.plan.spelling import find_misread, section_of
from trainchart.plan.wording import expect, expect_member
from trainchart.spec.document import Document, Origin, Path
from trainchart.spec.model import ModelSpec
from trainchart.spec.section import Section
from trainchart.spec.values import SharedValues, Values
from trainchart_runtime.cluster import ROLES

_UNION_MEMBERS = ("str", "int", "float", "bool")
"""What pydantic appends to the path of a value that fits no member of a union."""


def resolve(spec: Document, defaults: Sequence[Document]) -> ChartPlan:
    """Fill `spec` from `defaults` (weakest first) and decide everything a chart needs.

    Raises:
        SpecError: unknown keys, missing keys, wrong types.
        PlanError: a combination that cannot train.
    """
    merged = merge_layers(defaults, spec)
    model, notes = fit_to_strategy(_check_types(merged), merged.origins)
    problems = [
        Problem(found.message, str(find_origin(merged.origins, found.path)), found.hint)
        for found in (*find_impossibilities(model), *find_unfilled(model))
    ]
    if problems:
        raise PlanError(f"{model.name} cannot be trained as specified", problems=tuple(problems))
    roles = tuple(role for role in ROLES if role in model.roles)
    model = model.model_copy(update={"roles": {role: model.roles[role] for role in roles}})
    notes = (*notes, *find_shell_references(model))
    placed = tuple(Problem(note.message, str(find_origin(merged.origins, note.path))) for note in notes)
    return ChartPlan(model, _values(model), roles, merged.origins, placed)


def _check_types(merged: Merged) -> ModelSpec:
    misread = {
        path: Problem(message, str(find_origin(merged.origins, path)), hint)
        for path, message, hint in find_misread(merged.tree, merged.origins)
    }
    try:
        model = ModelSpec.model_validate(merged.tree)
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems = [_problem(detail, merged) for detail in details if _path(detail) not in misread]
        raise SpecError("the model spec is not valid", problems=_distinct([*misread.values(), *problems])) from error
    if misread:
        raise SpecError("the model spec is not valid", problems=_distinct(misread.values()))
    if not is_chart_version(model.version):
        where = str(find_origin(merged.origins, ("version",)))
        problem = Problem(f"version {model.version!r} is not a SemVer version", where, 'for example version: "0.1.0"')
        raise SpecError("the model spec is not valid", problems=(problem,))
    return model


def _values(model: ModelSpec) -> Values:
    shared = {name: getattr(model, name) for name in SharedValues.model_fields}
    hyperparameters = {
        name: parameter.default for name, parameter in model.hyperparameters.items() if parameter.default is not None
    }
    return Values.model_construct(**shared, command=model.code.command, hyperparameters=hyperparameters)


def _problem(detail: ErrorDetails, merged: Merged) -> Problem:
    """Turn one of pydantic's findings into what, where and the next action."""
    path = _path(detail)
    member_of_union = detail["loc"][-1:] and detail["loc"][-1] in _UNION_MEMBERS
    spelling = merged.origins[path].spelling if path in merged.origins else ""
    where = str(find_origin(merged.origins, path))
    key = ".".join(str(part) for part in path)
    given = detail["input"]
    if member_of_union:
        return Problem(f"{key}: {_shorten(given)} is not accepted", where, expect_member(key, given, spelling))
    match detail["type"]:
        case "model_type" | "dict_type":
            return Problem(f"{key}: {_shorten(given)} is not accepted", where, "expected a mapping of keys to values")
        case "extra_forbidden":
            return Problem(f"unknown key {key}", where, _suggest(str(path[-1]), _known_keys(path[:-1])))
        case "string_type" if spelling:
            # YAML reads a version of fewer than three numbers as a number.
            text = ".".join([*spelling.split("."), "0", "0"][:3]) if key == "version" else spelling
            return Problem(f"{key}: {spelling} is not a text", where, f'quote it: "{text}"')
        case "missing":
            return Problem(f"{key} is missing", where, _describe(path))
        case "literal_error":
            expected = detail["ctx"]["expected"].replace("'", "")
            options = [option.strip() for option in expected.replace(" or ", ", ").split(",")]
            known, close = f"known here: {', '.join(sorted(options))}", _suggest(str(given), options)
            hint = close if close == known else f"{close} {known}"
            return Problem(f"{key}: {given!r} is not known", where, hint)
        case "value_error":
            return Problem(f"{key}: {detail['ctx']['error']}", where)
        case _:
            shown = f"{key}: {_shorten(given)} is not accepted"
            return Problem(shown, where, expect(detail["type"], key, given, detail.get("ctx") or {}, detail["msg"]))


def _path(detail: ErrorDetails) -> Path:
    """Return where in the spec a finding of pydantic is, without what pydantic adds for keys and unions."""
    path = tuple(part for part in detail["loc"] if part != "[key]")
    return path[:-1] if path[-1:] and path[-1] in _UNION_MEMBERS else path


def _distinct(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Drop repeats: a value of a union type is reported once per member."""
    kept: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        kept.setdefault((problem.message, problem.where), problem)
    return tuple(sorted(kept.values(), key=lambda problem: _place(problem.where)))


def _place(where: str) -> tuple[str, int, int]:
    file, line, column = where.rsplit(":", 2)
    return file, int(line), int(column)


def find_origin(origins: Mapping[Path, Origin], path: Path) -> Origin:
    """Return the origin of `path`, or of the closest thing above it that a user wrote: defaults are not at fault."""
    while path and (path not in origins or origins[path].layer == BUILTIN_LAYER):
        path = path[:-1]
    return origins[path]


def _section_at(path: Path) -> type[Section] | None:
    """Return the section type whose keys stand at `path`, if it is a closed one."""
    section: type[Section] | None = ModelSpec
    for part in path:
        if section is None:
            return None
        field = next((f for f in section.model_fields.values() if f.alias == part), None)
        if field is None:
            continue  # an entry of a mapping, such as the name of a role
        section = section_of(field.annotation)
    return section


def _known_keys(path: Path) -> list[str]:
    section = _section_at(path)
    return [field.alias or "" for field in section.model_fields.values()] if section else []


def _describe(path: Path) -> str:
    section = _section_at(path[:-1])
    field = next((f for f in section.model_fields.values() if f.alias == path[-1]), None) if section else None
    if field is None:
        return ""
    about = (field.description or "").split("\n")[0]
    choices = ", ".join(map(str, get_args(field.annotation))) if get_origin(field.annotation) is Literal else ""
    return f"{about} Choose one: {choices}." if choices else about


def _suggest(word: str, known: list[str]) -> str:
    """Name the closest of the known words, and otherwise all of them."""
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f"did you mean {lowered[close[0]]}?"
    return f"known here: {', '.join(sorted(known))}" if known else ""


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
