"""What was edited by hand in a generated chart, as a diff, and the place where the same change belongs. Pure.

Edits are never merged: `generate --check`, `check` and `verify` refuse a chart that does not follow from its spec, so a
merged chart could not be published.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainchart.archive.chart_file import CHART_FILE
from trainchart.compare.defaults import find_changed_defaults
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart.packs.templates import TEMPLATES
from trainchart.render.templates import read_texts

_LINES_SHOWN = 20
_SETTINGS_SHOWN = 5
_WIDTH = 110
_OF_A_PACK = "in a pack (see Templates in docs/packs.md)"
_OUT = "keep your own files out of the chart's folder"
_FOLLOWS = {
    "values.schema.json": "the schema follows from hyperparameters in {spec}, and from locked in a pack's policy.yaml",
    "README.md": "the README follows from description, hyperparameters and volumes in {spec}",
    ".helmignore": "keep files that Helm must not see out of the chart's folder",
}


@dataclass(frozen=True)
class ChartSource:
    """What a chart is generated from."""

    spec: str
    """The file of its spec."""
    family: str = ""
    """The family of the chart; empty for the chart of a model."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """The templates of a model's chart, by path."""


@dataclass(frozen=True)
class Edit:
    """A file of a generated chart that was edited or added by hand."""

    path: str
    present: str
    base: str | None
    """Its generated text; None if no copy is left."""
    made: str | None
    """The text that is generated now; None for an added file."""


def describe_diff(edit: Edit) -> str:
    """Return what was edited in lines of a diff, each indented; empty for a file that was added."""
    if edit.made is None and edit.base is None:
        return ""
    start = edit.base if edit.base is not None else edit.made or ""
    lines = list(difflib.unified_diff(start.splitlines(), edit.present.splitlines(), n=1, lineterm=""))[2:]
    shown = [f"    | {line[:_WIDTH]}" for line in lines[:_LINES_SHOWN]]
    if len(lines) > _LINES_SHOWN:
        shown.append(f"    | … and {len(lines) - _LINES_SHOWN} more lines")
    against = "" if edit.base is not None else " (compared with what is generated now)"
    return f"{against}:\n" + "\n".join(shown) if shown else against


def suggest_place(edit: Edit, source: ChartSource) -> str:
    """Return where the edit belongs."""
    if edit.path.startswith(f"{TEMPLATES}/") and source.family:
        return f"change the templates of the family {source.family}"
    if edit.made is None and edit.base is None:
        return _place_added(edit.path, source.spec)
    if edit.path in ("values.yaml", CHART_FILE):
        return _place_values(edit, source)
    if edit.path.startswith(f"{TEMPLATES}/"):
        return _place_template(edit, source.templates.get(edit.path, ""))
    follows = _OUT if source.family else _FOLLOWS.get(edit.path, _OUT)
    return follows.format(spec=source.spec)


def _place_added(path: str, spec: str) -> str:
    if path.startswith(f"{TEMPLATES}/"):
        return f"move it to {path} {_OF_A_PACK}, or put its objects into extraManifests in {spec}"
    return _OUT


def _place_values(edit: Edit, source: ChartSource) -> str:
    spec = source.spec
    start = edit.base if edit.base is not None else edit.made or ""
    try:
        changes = list(find_changed_defaults(parse_mapping(start), parse_mapping(edit.present)))
    except YamlError:
        return f"set the same keys in {spec}"
    if not changes:
        return f"comments follow from {spec}: write your comments there"
    settings = [f"{_spec_key(edit.path, change.path, source)}: {_spell(change.after)}" for change in changes]
    more = f", and {len(settings) - _SETTINGS_SHOWN} more" if len(settings) > _SETTINGS_SHOWN else ""
    # Compared with what is generated now, it is not known which of these are edits.
    which = "set" if edit.base is not None else "set those that you changed"
    return f"{which} in {spec}: {', '.join(settings[:_SETTINGS_SHOWN])}{more}"


def _spec_key(file: str, path: str, source: ChartSource) -> str:
    """Return the key of a spec that gives a key of a chart's file."""
    if file == CHART_FILE:
        return "image.tag" if path == "appVersion" else path
    if source.family:
        return f"values.{path}"
    top, _, rest = path.partition(".")
    if top == "hyperparameters" and rest:
        return f"{path}.default"
    return f"code.{path}" if top == "command" else path


def _spell(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _place_template(edit: Edit, template: str) -> str:
    found = _find_blocks(edit, read_texts(template))
    if found:
        return f"override {_join('the block', found)} of {edit.path} {_OF_A_PACK}"
    return f"no block of {edit.path} contains these lines: use a value of the spec, or add a template {_OF_A_PACK}"


def _find_blocks(edit: Edit, blocks: Mapping[str, str]) -> Sequence[str]:
    """Return the blocks of the chart template that hold each place that was edited; none where one lies outside."""
    start = (edit.base if edit.base is not None else edit.made or "").splitlines()
    lines = {name: {line.strip() for line in text.splitlines() if line.strip()} for name, text in blocks.items()}
    found: list[str] = []
    matcher = difflib.SequenceMatcher(None, start, edit.present.splitlines(), autojunk=False)
    for tag, first, last, _, _ in matcher.get_opcodes():
        if tag == "equal":
            continue
        # What is only added lies behind the line before it.
        touched = {line.strip() for line in start[first:last] or start[max(0, first - 1) : first]} - {""}
        fitting = [name for name, own in lines.items() if touched and touched <= own]
        if not fitting:
            return ()
        # Of blocks in each other, the innermost is the smallest.
        found.append(min(fitting, key=lambda name: len(lines[name])))
    return tuple(dict.fromkeys(found))


def _join(what: str, names: Iterable[str]) -> str:
    listed = list(names)
    return f"{what}{'s' * (len(listed) > 1)} {', '.join(listed)}"
