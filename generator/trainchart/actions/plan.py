"""Show what a spec resolves to: the whole plan, or where one of its values comes from."""

from __future__ import annotations

import difflib
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.models import LocatedModel, load_model
from trainchart.actions.support.project import locate_specs
from trainchart.actions.support.specs import load_spec, render_spec
from trainchart.check.objects import mapping_at
from trainchart.check.sources import KUBERNETES_DEFINITIONS, VALUES_FILE
from trainchart.errors import Problem, ToolError
from trainchart.json_documents import parse_json, resolve_reference
from trainchart.kubernetes_yaml import parse_mapping
from trainchart.plan.chart_plan import dump_plan
from trainchart.plan.layers import Setting
from trainchart.spec.document import Origin, Path

_ALIKE = 0.7
"""How alike two keys have to be, of 1, for one to be a typo of the other."""


@dataclass(frozen=True)
class Explanation:
    """One key of the completed spec, its value, and the layer, file and line that set it."""

    key: str
    value: Any
    origin: Origin | None
    """None for what no layer sets: the empty default of a pass-through field."""
    overridden: tuple[Setting, ...]
    """What weaker layers say, the strongest first."""


def read_plan(model: str) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Return the resolved plan of a model (name or spec file) as plain data, and what its author should know."""
    plan = load_model(locate_specs((model,))[0]).plan
    return dump_plan(plan), plan.notes


def explain_key(model: str, key: str) -> tuple[Explanation, ...]:
    """Return every leaf at or below `key` (dotted, empty for all) of a model's completed spec, or of a chart's values.

    Raises:
        ToolError: the spec has no such key.
    """
    located = load_spec(locate_specs((model,))[0])
    settings: Mapping[str, Any]
    if isinstance(located, LocatedModel):
        settings = located.plan.spec.model_dump(by_alias=True, exclude_none=True)
        origins, overridden = located.plan.origins, located.plan.overridden
    else:
        settings, origins, overridden = located.values.tree, located.values.origins, located.values.overridden
    leaves = dict(_leaves(settings, ()))
    wanted = tuple(key.split(".")) if key else ()
    # The key of a label may hold dots.
    found = [path for path in leaves if not key or f"{'.'.join(map(str, path))}.".startswith(f"{key}.")]
    if not found:
        raise ToolError(f"{located.name} has no key {key}", hint=_suggest_key(wanted, leaves))
    return tuple(
        Explanation(".".join(map(str, path)), leaves[path], origins.get(path), overridden.get(path, ()))
        for path in found
    )


def _suggest_key(wanted: tuple[str, ...], leaves: Iterable[Path]) -> str:
    """Return the hint for an unknown key: the close one beside it, the same name elsewhere, or all beside it."""
    known = {tuple(map(str, path[:length])) for path in leaves for length in range(1, len(path) + 1)}
    depth = next(length for length in range(len(wanted), -1, -1) if not length or wanted[:length] in known)
    above, name = wanted[:depth], wanted[depth]
    beside = sorted({path[depth] for path in known if len(path) > depth and path[:depth] == above})
    close = difflib.get_close_matches(name, beside, n=1, cutoff=_ALIKE)
    if close:
        return f"did you mean {'.'.join((*above, close[0]))}?"
    same = sorted(".".join(path) for path in known if path[-1] == name)
    if same and not above:
        return f"did you mean {same[0]}?"
    place = f"below {'.'.join(above)}" if above else "at the top"
    return f"known {place}: {', '.join(beside)}" if beside else f"{'.'.join(above)} is a single value"


def list_values(target: str) -> dict[str, tuple[str, ...]]:
    """Return the dotted keys of all values of a chart (folder or archive) or of a model's chart, each with its choices.

    Raises:
        TrainchartError: there is neither, or it cannot be read.
    """
    path = pathlib.Path(target)
    is_chart = path.suffix == ".tgz" or (path / "Chart.yaml").is_file()
    files = read_chart_files(path) if is_chart else render_spec(load_spec(locate_specs((target,))[0])).files
    values = parse_mapping(files[VALUES_FILE].decode())
    schema = parse_json(files.get("values.schema.json", b"{}"))
    keys = [leaf for leaf, _ in _leaves(values, ())] + list(_optional_keys(values, schema, schema, ()))
    return {".".join(map(str, key)): _choices(key, schema) for key in keys}


def _optional_keys(section: Any, schema: Any, root: Mapping[str, Any], path: Path) -> Iterator[Path]:
    """Yield the keys below `path` that the schema knows and values.yaml leaves out: what a role may set for itself."""
    known = mapping_at(resolve_reference(schema, root, until=KUBERNETES_DEFINITIONS), "properties")
    for key, below in known.items() if isinstance(section, Mapping) else ():
        if key in section:
            yield from _optional_keys(section[key], below, root, (*path, key))
        elif path:
            yield (*path, key)


def _choices(path: Path, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words that a schema allows at `path`; none where it allows others."""
    node = schema
    for part in path:
        below = mapping_at(node, "properties", str(part)) or mapping_at(node, "additionalProperties")
        node = mapping_at(resolve_reference(below, schema))
    return ("true", "false") if node.get("type") == "boolean" else tuple(map(str, node.get("enum", ())))


def _leaves(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, node
