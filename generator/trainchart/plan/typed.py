"""Plain data to a closed section: every unknown key, missing key and wrong type at once, each with its line. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trainchart.errors import Problem
from trainchart.plan.layers import BUILTIN_LAYER
from trainchart.spec.document import Origin, Path
from trainchart.spec.section import Section, section_of

_UNION_MEMBERS = ("str", "int", "float", "bool")
"""What pydantic appends to the path of a value that fits no member of a union."""
Kind = TypeVar("Kind", bound=Section)


def check_types(
    tree: Mapping[str, Any], origins: Mapping[Path, Origin], kind: type[Kind], known: Mapping[Path, Problem]
) -> tuple[Kind | None, tuple[Problem, ...]]:
    """Return `tree` as a section of that `kind`, or None and what is wrong with it, in the order of the lines.

    `known` are problems that were found before; where there are some, there is no section.
    """
    problems = list(known.values())
    try:
        section = kind.model_validate(tree)
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems += [_problem(kind, detail, origins) for detail in details if _path(detail) not in known]
        return None, _distinct(problems)
    return (None, _distinct(problems)) if problems else (section, ())


def _problem(kind: type[Section], detail: ErrorDetails, origins: Mapping[Path, Origin]) -> Problem:
    """Turn one of pydantic's findings into what, where and the next action."""
    # Imported where it is needed: it imports all of the spec's model, which takes 40 ms.
    from trainchart.plan.wording import expect, expect_mapping, expect_member
    from trainchart.spec.settings import useful_choices

    path = _path(detail)
    member_of_union = detail["loc"][-1:] and detail["loc"][-1] in _UNION_MEMBERS
    spelling = origins[path].spelling if path in origins else ""
    where = str(find_origin(origins, path))
    key = ".".join(str(part) for part in path)
    given = detail["input"]
    if member_of_union:
        return Problem(f"{key}: {_shorten(given)} is not accepted", where, expect_member(key, given, spelling))
    match detail["type"]:
        case "model_type" | "dict_type":
            return Problem(f"{key}: {_shorten(given)} is not accepted", where, expect_mapping(key, given, spelling))
        case "extra_forbidden":
            return Problem(f"unknown key {key}", where, suggest_word(str(path[-1]), _known_keys(kind, path[:-1])))
        case "string_type" if spelling:
            # YAML reads a version of fewer than three numbers as a number.
            text = ".".join([*spelling.split("."), "0", "0"][:3]) if key == "version" else spelling
            return Problem(f"{key}: {spelling} is not a string", where, f'quote it: "{text}"')
        case "missing":
            return Problem(f"{key} is missing", where, _describe(kind, path))
        case "literal_error":
            expected = detail["ctx"]["expected"].replace("'", "")
            options = useful_choices(str(path[-1]), map(str.strip, expected.replace(" or ", ", ").split(",")))
            known, close = f"known here: {', '.join(sorted(options))}", suggest_word(str(given), options)
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


def _section_at(kind: type[Section], path: Path) -> type[Section] | None:
    """Return the section type whose keys stand at `path`, if it is a closed one."""
    section: type[Section] | None = kind
    for part in path:
        if section is None:
            return None
        field = next((f for f in section.model_fields.values() if f.alias == part), None)
        if field is None:
            continue  # an entry of a mapping, such as the name of a role
        section = section_of(field.annotation)
    return section


def _known_keys(kind: type[Section], path: Path) -> list[str]:
    section = _section_at(kind, path)
    return [field.alias or "" for field in section.model_fields.values()] if section else []


def _describe(kind: type[Section], path: Path) -> str:
    section = _section_at(kind, path[:-1])
    field = next((f for f in section.model_fields.values() if f.alias == path[-1]), None) if section else None
    if field is None:
        return ""
    about = (field.description or "").split("\n")[0]
    choices = ", ".join(map(str, get_args(field.annotation))) if get_origin(field.annotation) is Literal else ""
    return f"{about} Choose one: {choices}." if choices else about


def suggest_word(word: str, known: list[str]) -> str:
    """Name the closest of the known words, and otherwise all of them."""
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f"did you mean {lowered[close[0]]}?"
    return f"known here: {', '.join(sorted(known))}" if known else ""


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
