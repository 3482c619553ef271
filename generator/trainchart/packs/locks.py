"""Locked values: what a pack decides for good, whatever stronger layers, values files and --set say.

A lock names a path of the spec, such as roles.*.gpus, and what it may be: one value, one of several, or a range. It is
held against the completed spec here, and against values in the chart's schema (render/narrow.py). The values of a
chart of a family are below `values`, in its spec and in the paths of its locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import Field
from pydantic.fields import FieldInfo

from trainchart.errors import PlanError, Problem, SpecError
from trainchart.packs.waivers import PackWaiver, find_waiver
from trainchart.plan.layers import ANY_ENTRY
from trainchart.plan.typed import find_origin, suggest_word
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.document import Document, Origin, Path
from trainchart.spec.model import ModelSpec
from trainchart.spec.section import TEXT_MAPS, JsonSchema, Line, PassThrough, Section, section_of
from trainchart.spec.settings import EVERY_POD_SETTINGS, POD_SETTINGS, PodSettings
from trainchart_runtime.cluster import ROLES

_OF_ONE_MODEL = ("apiVersion", "kind", "name", "code", "hyperparameters")
OF_ROLES = POD_SETTINGS | {"args"}
"""What a role may set for itself, in place of the top level."""
UNSET: Mapping[str, Any] = {**PodSettings().model_dump(by_alias=True), "args": []}
"""What such a setting is where it is not set."""


class Lock(Section):
    """What a locked path may be."""

    value: Any = None
    """The only value, which is also the pack's default."""
    enum: Annotated[list[Any], Field(min_length=1)] | None = None
    """The values of which it is one."""
    minimum: int | None = None
    """The smallest number."""
    maximum: int | None = None
    """The largest number."""
    message: Line = ""
    """Why, or whom to ask."""

    @property
    def allowed(self) -> list[Any] | None:
        """The allowed values; None for a range."""
        return [self.value] if "value" in self.model_fields_set else self.enum

    def allows(self, value: Any) -> bool:
        """Return whether a value of the completed spec is allowed."""
        if self.allowed is not None:
            return any(_is_same(value, allowed) for allowed in self.allowed)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and not (
            (self.minimum is not None and value < self.minimum) or (self.maximum is not None and value > self.maximum)
        )

    def __str__(self) -> str:
        if self.allowed is not None:
            return " or ".join(map(str, self.allowed))
        bounds = (("at least", self.minimum), ("at most", self.maximum))
        return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


@dataclass(frozen=True)
class LockedPath:
    """A lock, the path that it holds for, and where it is written."""

    path: tuple[str, ...]
    lock: Lock
    origin: Origin
    waivers: tuple[PackWaiver, ...] = ()

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def is_one_value(self) -> bool:
        """Whether there is nothing to choose."""
        return "value" in self.lock.model_fields_set

    def places(self) -> Iterator[tuple[str, ...]]:
        """Yield all paths that the lock holds for: a pod setting may be set for a role or another pod, too."""
        yield self.path
        if self.path[0] in OF_ROLES:
            yield ("roles", ANY_ENTRY, *self.path)
        if self.path[0] in EVERY_POD_SETTINGS:
            yield ("run", "controller", *self.path)
            yield ("tensorboard", *self.path)

    def is_left_out(self, place: tuple[str, ...], value: Any) -> bool:
        """Whether `value` of a role or another pod means that it has what the top level says."""
        return place != self.path and len(self.path) == 1 and value == UNSET.get(self.path[0])


def make_locks(
    locked: Mapping[str, Lock], origins: Mapping[Path, Origin], waivers: Mapping[str, tuple[PackWaiver, ...]]
) -> tuple[LockedPath, ...]:
    """Return the locks of a policy. `origins` are those of the file's keys.

    Raises:
        SpecError: unknown paths, and locks that no value can satisfy, each with its line.
    """

    def make(key: str, lock: Lock) -> LockedPath:
        path, kind = _find_path(key)
        _require_sense(key, lock, kind)
        return LockedPath(path, lock, origins["locked", key], waivers.get(key, ()))

    return _make_all(locked, {key: origins["locked", key] for key in locked}, make)


def _make_all(
    locked: Mapping[str, Lock], origins: Mapping[str, Origin], make: Callable[[str, Lock], LockedPath]
) -> tuple[LockedPath, ...]:
    """Return what `make` makes of each lock. Its ValueErrors hold message and hint, and become one SpecError."""
    locks: list[LockedPath] = []
    problems: list[Problem] = []
    for key, lock in locked.items():
        try:
            locks.append(make(key, lock))
        except ValueError as error:
            what, _, hint = str(error).partition("\n")
            problems.append(Problem(what, str(origins[key]), hint))
    problems += [
        Problem(f"{locked.key} is part of {above.key}, which is also locked", str(locked.origin), "keep one of them")
        for above in locks
        for locked in locks
        if locked is not above and locked.path[: len(above.path)] == above.path
    ]
    if problems:
        raise SpecError("the policy is not valid", problems=tuple(problems))
    return tuple(locks)


def make_family_locks(
    family: str,
    locked: Mapping[str, Lock],
    origins: Mapping[Path, Origin],
    waivers: Mapping[str, tuple[PackWaiver, ...]],
) -> tuple[LockedPath, ...]:
    """Return the locks on the values of a family. Which values it has is known only where a chart is made.

    Raises:
        SpecError: a lock that no value can satisfy, with its line.
    """

    def make(key: str, lock: Lock) -> LockedPath:
        name = family_lock_name(family, key)
        _require_sense(name, lock, int)
        return LockedPath((VALUES_KEY, *key.split(".")), lock, origins["families", family, key], waivers.get(name, ()))

    return _make_all(locked, {key: origins["families", family, key] for key in locked}, make)


def family_lock_name(family: str, key: str) -> str:
    """Return what waivers call a lock on a value of a family."""
    return f"families.{family}.{key}"


def drop_waived(locks: Iterable[LockedPath], model: str, today: date) -> tuple[LockedPath, ...]:
    """Return the locks without those that are waived for a model on `today`."""
    waivers = ((locked, find_waiver(locked.waivers, model)) for locked in locks)
    return tuple(locked for locked, waiver in waivers if waiver is None or not waiver.holds_on(today))


def make_locked_defaults(locks: tuple[LockedPath, ...], layer: str) -> Document | None:
    """Return the layer of defaults that locks of one value are; None where there is none."""
    tree: dict[str, Any] = {}
    origins: dict[Path, Origin] = {}
    for locked in locks:
        if locked.is_one_value:
            origins.setdefault((), Origin(layer, locked.origin.file, 1))
            node = tree
            for depth, part in enumerate(locked.path[:-1]):
                node = node.setdefault(part, {})
                origins[locked.path[: depth + 1]] = locked.origin
            node[locked.path[-1]] = locked.lock.value
            origins |= {(*locked.path, *below): locked.origin for below in _paths_in(locked.lock.value)}
    return Document(tree, origins) if tree else None


def require_allowed(
    name: str, tree: Mapping[str, Any], origins: Mapping[Path, Origin], locks: tuple[LockedPath, ...]
) -> None:
    """Hold a completed spec against the locks.

    Raises:
        PlanError: names every value that a lock does not allow, where it is set and where it is locked.
    """
    problems = [
        Problem(
            f"{'.'.join(map(str, path))}: {value!r} is not allowed, only {locked.lock}",
            str(find_origin(origins, path)),
            _explain(locked, name),
        )
        for locked in locks
        for place in locked.places()
        for path, value in find_values(tree, place)
        if not locked.lock.allows(value) and not locked.is_left_out(place, value)
    ]
    if problems:
        raise PlanError(f"the spec of {name} breaks rules of packs", problems=tuple(problems))


def _explain(locked: LockedPath, model: str) -> str:
    """Say who locks it, why, and that a waiver has ended."""
    waiver = find_waiver(locked.waivers, model)
    about = f"{locked.origin.layer} locks {locked.key} ({locked.origin})"
    about += f": {locked.lock.message}" if locked.lock.message else ""
    return about + (f"; {waiver.ended}" if waiver is not None else "")


def find_values(tree: Any, pattern: tuple[str, ...], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of everything in `tree` that `pattern`, with * for any key, names."""
    if not pattern:
        yield path, tree
    elif isinstance(tree, Mapping):
        for key in tree if pattern[0] == ANY_ENTRY else [pattern[0]] if pattern[0] in tree else []:
            yield from find_values(tree[key], pattern[1:], (*path, key))


def _find_path(key: str) -> tuple[tuple[str, ...], Any]:
    """Return the parts of a dotted key, and the type of what it names. Raises ValueError with message and hint."""
    section: type[Section] = ModelSpec
    rest = key.split(".")
    parts: list[str] = []
    while True:
        part = rest.pop(0)
        field = next((field for field in section.model_fields.values() if field.alias == part), None)
        if field is None:
            known = [field.alias or "" for field in section.model_fields.values()]
            raise ValueError(f"unknown key {'.'.join((*parts, part))}\n{suggest_word(part, known)}")
        if not parts and part in _OF_ONE_MODEL:
            raise ValueError(f"{part} belongs to one model\nremove it from the policy")
        parts.append(part)
        below = section_of(field.annotation)
        if below is None:
            return _end(parts, rest, field), Any if rest else field.annotation
        if below is not field.annotation and rest:
            parts.append(_require_entry(part, rest.pop(0)))
        if not rest:
            raise ValueError(f"{key} is a section\nlock its keys, such as {key}.{next(iter(below.model_fields))}")
        _require_top(tuple(parts), rest[0])
        section = below


def _end(parts: list[str], rest: list[str], field: FieldInfo) -> tuple[str, ...]:
    """Return the whole path, where `rest` goes on in a free-form mapping. Raises ValueError."""
    name = ".".join(parts)
    marks = [mark for mark in field.metadata if isinstance(mark, JsonSchema)]
    is_merged = any(isinstance(mark, PassThrough) and mark.merge for mark in marks)
    if not rest:
        if is_merged:
            raise ValueError(
                f"{name} is merged with values of other layers\nlock single keys, such as {name}.runAsNonRoot"
            )
        return tuple(parts)
    is_text_map = any(mark.schema in TEXT_MAPS and not isinstance(mark, PassThrough) for mark in marks)
    if is_text_map or (is_merged and len(rest) == 1):
        return (*parts, ".".join(rest))  # the key of a label may hold dots
    hint = f"lock {name}.{rest[0]} itself" if is_merged else f"lock {name} itself"
    raise ValueError(f"{_key(parts, rest)} cannot be locked by itself\n{hint}")


def _key(parts: Iterable[str], rest: Iterable[str]) -> str:
    return ".".join((*parts, *rest))


def _require_top(above: tuple[str, ...], name: str) -> None:
    """Refuse a lock of what the top level can set for the same pods. Raises ValueError."""
    is_inherited = (above[0] == "roles" and name in OF_ROLES) or (
        above in (("run", "controller"), ("tensorboard",)) and name in EVERY_POD_SETTINGS
    )
    if is_inherited:
        raise ValueError(
            f"{'.'.join((*above, name))} can also be set by {name}\nlock {name}, which applies to every pod"
        )


def _require_entry(section: str, name: str) -> str:
    if section == "roles" and name not in (ANY_ENTRY, *ROLES):
        raise ValueError(f"unknown role {name}\nknown here: *, {', '.join(ROLES)}")
    return name


def _require_sense(key: str, lock: Lock, kind: Any) -> None:
    """Refuse a lock that says nothing, says two things, or that --set could pass by. Raises ValueError."""
    said = [str(name) for name in ("value", "enum") if name in lock.model_fields_set]
    if lock.minimum is not None or lock.maximum is not None:
        said.append("range")
    if "value" in said and lock.value is None:
        raise ValueError(f'{key}: a value is missing\nto lock an empty value, write "", [] or {{}}')
    if len(said) != 1:
        raise ValueError(f"{key}: expected value, or enum, or minimum and maximum\nset exactly one of them")
    if said == ["range"] and kind is not int:
        raise ValueError(f"{key} is not an integer, so it has no range\nlist the allowed values under enum")
    if lock.minimum is not None and lock.maximum is not None and lock.minimum > lock.maximum:
        raise ValueError(f"{key}: minimum {lock.minimum} is above maximum {lock.maximum}")


def _is_same(one: Any, other: Any) -> bool:
    return (type(one) is type(other) and bool(one == other)) or (
        isinstance(one, int | float)
        and isinstance(other, int | float)
        and not isinstance(one, bool)
        and not isinstance(other, bool)
        and one == other
    )


def _paths_in(node: Any) -> Iterator[Path]:
    yield ()
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from ((key, *path) for path in _paths_in(value))
