"""The values of a chart as one tree of documented nodes: values.yaml, the README table and checks walk the same one."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trainchart.plan.chart_plan import ChartPlan
from trainchart.spec.section import Section
from trainchart.spec.settings import POD_SETTINGS, EveryPodSettings


@dataclass(frozen=True)
class ValueNode:
    """One key of values.yaml: a leaf has a value, a section has children."""

    path: tuple[str, ...]
    description: str
    value: Any = None
    children: tuple[ValueNode, ...] = ()
    is_section: bool = False
    is_unset: bool = False
    """Whether values.yaml leaves the key out: it has no value, or that of `value`, until the user sets it."""

    @property
    def key(self) -> str:
        return self.path[-1]


class _Field(NamedTuple):
    """What a section says of one of its fields."""

    name: str
    key: str
    description: str
    default: Any


_FIRST = ("image", "hyperparameters", "roles", "volumes", "run", "command", "args")


def build_value_tree(plan: ChartPlan) -> tuple[ValueNode, ...]:
    """Return the top-level keys of the plan's values in the order of values.yaml: what users change first is first.

    Pod settings stand at the top level, where they hold for all pods. Below a role, the run controller or TensorBoard
    only those are in the tree that have a value there.
    """
    descriptions: dict[tuple[str, ...], str] = {
        ("hyperparameters", name): parameter.description or f"Hyperparameter {name}."
        for name, parameter in plan.spec.hyperparameters.items()
    }
    unset = [name for name, parameter in plan.spec.hyperparameters.items() if parameter.default is None]
    nodes = [
        _with_unset(node, unset, descriptions) if node.key == "hyperparameters" and unset else node
        for node in _nodes_of_section(plan.values, (), descriptions)
    ]
    return tuple(sorted(nodes, key=lambda node: _FIRST.index(node.key) if node.key in _FIRST else len(_FIRST)))


def _with_unset(node: ValueNode, names: list[str], descriptions: Mapping[tuple[str, ...], str]) -> ValueNode:
    """Return the section with the keys that have no value behind those that have one."""
    unset = (ValueNode((*node.path, name), descriptions[(*node.path, name)], is_unset=True) for name in names)
    return ValueNode(node.path, node.description, children=(*node.children, *unset), is_section=True)


def walk_leaves(nodes: tuple[ValueNode, ...]) -> Iterator[ValueNode]:
    """Yield every node that is no section, in order."""
    for node in nodes:
        if node.is_section:
            yield from walk_leaves(node.children)
        else:
            yield node


def _nodes_of_section(
    section: Section, path: tuple[str, ...], descriptions: Mapping[tuple[str, ...], str]
) -> Iterator[ValueNode]:
    may_be_unset = bool(path) and isinstance(section, EveryPodSettings)
    for field in _list_fields(type(section)):
        value = getattr(section, field.name)
        is_unset = may_be_unset and value == field.default
        if is_unset and field.key in POD_SETTINGS:
            continue
        description = field.description or (type(value).__doc__ if isinstance(value, Section) else "") or ""
        node = _node(value, (*path, field.key), " ".join(description.split()), descriptions)
        yield dataclasses.replace(node, is_unset=True) if is_unset else node


@functools.cache
def _list_fields(section: type[Section]) -> tuple[_Field, ...]:
    """Return a section's own fields before those it inherits: what is special to it comes first."""
    names = [name for cls in section.__mro__ for name in inspect.get_annotations(cls) if name in section.model_fields]
    fields = [(name, section.model_fields[name]) for name in names]
    return tuple(
        _Field(name, field.alias or name, field.description or "", field.get_default(call_default_factory=True))
        for name, field in fields
    )


def _node(
    value: Any, path: tuple[str, ...], description: str, descriptions: Mapping[tuple[str, ...], str]
) -> ValueNode:
    if isinstance(value, Section):
        children = tuple(_nodes_of_section(value, path, descriptions))
        return ValueNode(path, description, children=children, is_section=True)
    if isinstance(value, dict) and value and _holds_entries(value, path):
        children = tuple(
            _node(entry, (*path, name), descriptions.get((*path, name), _entry_title(path, name)), descriptions)
            for name, entry in value.items()
        )
        return ValueNode(path, description, children=children, is_section=True)
    return ValueNode(path, description, value=value)


def _holds_entries(value: dict[str, Any], path: tuple[str, ...]) -> bool:
    """Tell mappings whose keys the chart fixes (roles, volumes, hyperparameters) from free-form ones."""
    return path == ("hyperparameters",) or all(isinstance(entry, Section) for entry in value.values())


def _entry_title(path: tuple[str, ...], name: str) -> str:
    return {"roles": f"Pods of the role {name}.", "volumes": f"The folder {name}."}.get(path[-1], "")
