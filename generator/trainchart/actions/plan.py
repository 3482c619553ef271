"""Show what a spec resolves to: the whole plan, or where one of its values comes from."""

from __future__ import annotations

import difflib
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.models import load_model, render_model
from trainchart.actions.support.project import locate_specs
from trainchart.check.objects import mapping_at
from trainchart.check.sources import KUBERNETES_DEFINITIONS
from trainchart.errors import Problem, ToolError
from trainchart.json_documents import parse_json, resolve_reference
from trainchart.kubernetes_yaml import parse_mapping
from trainchart.plan.chart_plan import dump_plan
from trainchart.spec.document import Origin, Path


@dataclass(frozen=True)
class Explanation:
    """One key of the completed spec, its value, and the layer, file and line that set it."""

    key: str
    value: Any
    origin: Origin | None
    """None for what no layer sets: the empty default of a pass-through field."""


def read_plan(model: str) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Return the resolved plan of a model (name or spec file) as plain data, and what its author should know."""
    plan = load_model(locate_specs((model,))[0]).plan
    return dump_plan(plan), plan.notes


def explain_key(model: str, key: str) -> tuple[Explanation, ...]:
    """Return every leaf at or below `key` (dotted, empty for all) of a model's completed spec.

    Raises:
        ToolError: the spec has no such key.
    """
    plan = load_model(locate_specs((model,))[0]).plan
    leaves = dict(_leaves(plan.spec.model_dump(by_alias=True, exclude_none=True), ()))
    wanted = tuple(key.split(".")) if key else ()
    found = [path for path in leaves if tuple(str(part) for part in path[: len(wanted)]) == wanted]
    if not found:
        known = sorted({".".join(str(part) for part in path[:n]) for path in leaves for n in range(1, len(path) + 1)})
        close = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {close[0]}?" if close else "trainchart plan shows all keys"
        raise ToolError(f"{plan.name} has no key {key}", hint=hint)
    return tuple(
        Explanation(".".join(str(part) for part in path), leaves[path], plan.origins.get(path)) for path in found
    )


def list_values(target: str) -> dict[str, tuple[str, ...]]:
    """Return the dotted keys of all values of a chart (folder or archive) or of a model's chart, each with its choices.

    Raises:
        TrainchartError: there is neither, or it cannot be read.
    """
    path = pathlib.Path(target)
    is_chart = path.suffix == ".tgz" or (path / "Chart.yaml").is_file()
    files = read_chart_files(path) if is_chart else render_model(load_model(locate_specs((target,))[0])).files
    values = parse_mapping(files["values.yaml"].decode())
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
