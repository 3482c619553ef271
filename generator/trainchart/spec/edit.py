"""Changes single values in the text of a model spec: every other character, comments included, stays as it is.

Writing the loaded tree again would lay out lists and quotes its own way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from yaml import MappingNode, ScalarNode, YAMLError

from trainchart.errors import SpecError
from trainchart.spec.document import compose, parse_document


def set_texts(text: str, section: str, values: Mapping[str, str], *, file: str) -> str:
    """Return the spec `text` with `values` as texts in its mapping `section`; a new key follows those of `values`.

    Raises SpecError where that section is written in a way that cannot be changed in place: an alias, a merge, nothing.
    """
    changed = text
    after = ""
    for key, value in values.items():
        changed = _set_text(changed, section, key, value, after) or _refuse(section, values, file)
        after = key
    changed_section = parse_document(changed, file=file, layer="model spec").tree.get(section)
    if not isinstance(changed_section, dict) or any(changed_section.get(key) != value for key, value in values.items()):
        _refuse(section, values, file)
    return changed


def set_version(text: str, version: str, *, file: str) -> str:
    """Return the spec `text` with this `version`; where it has none, it follows the name. Raises SpecError."""
    try:
        root = compose(text)
    except YAMLError:
        root = None
    present, name = _below(root, "version"), _below(root, "name")
    changed = ""
    if isinstance(present, ScalarNode):
        start, end = present.start_mark.index, present.end_mark.index
        # A version has two dots, so that no reader takes it for a number.
        changed = text[:start] + (json.dumps(version) if present.style else version) + text[end:]
    elif present is None and isinstance(root, MappingNode) and isinstance(name, ScalarNode):
        end = name.end_mark.index
        if not root.flow_style:
            line_end = text.find("\n", end)
            end = len(text) if line_end < 0 else line_end
        changed = f"{text[:end]}{', ' if root.flow_style else chr(10)}version: {version}{text[end:]}"
    if not changed or parse_document(changed, file=file, layer="model spec").tree.get("version") != version:
        raise SpecError(f"version cannot be changed in {file}", hint=f"set it there by hand: version: {version}")
    return changed


def _refuse(section: str, values: Mapping[str, str], file: str) -> str:
    lines = ", ".join(f"{key}: {json.dumps(value)}" for key, value in values.items())
    raise SpecError(f"{section} cannot be changed in {file}", hint=f"write it there yourself: {section}: {{{lines}}}")


def _set_text(text: str, section: str, key: str, value: str, after: str) -> str:
    """Return the text with one value set; empty where the place for it cannot be told."""
    try:
        root = compose(text)
    except YAMLError:
        return ""
    mapping = _below(root, section)
    if not isinstance(mapping, MappingNode) or not mapping.value:
        return ""
    written = json.dumps(value)
    present = _below(mapping, key)
    if present is not None:
        is_written_here = isinstance(present, ScalarNode) and present.style not in ("|", ">")
        start, end = present.start_mark.index, present.end_mark.index
        return text[:start] + written + text[end:] if is_written_here else ""
    if mapping.flow_style:
        before = _below(mapping, after) or mapping.value[-1][1]
        end = before.end_mark.index
        return f"{text[:end]}, {key}: {written}{text[end:]}"
    first = mapping.value[0][0].start_mark
    neighbour = _below(mapping, after)
    if neighbour is None:
        return f"{text[: first.index]}{key}: {written}\n{' ' * first.column}{text[first.index :]}"
    line_end = text.find("\n", neighbour.end_mark.index)
    end = len(text) if line_end < 0 else line_end
    return f"{text[:end]}\n{' ' * first.column}{key}: {written}{text[end:]}"


def _below(node: object, key: str) -> ScalarNode | MappingNode | None:
    if isinstance(node, MappingNode):
        for name, value in node.value:
            if isinstance(name, ScalarNode) and name.value == key:
                return value if isinstance(value, (ScalarNode, MappingNode)) else None
    return None
