"""How large and how deep YAML may be, decided from its events before anything is built of it.

Of foreign text, some megabytes take minutes and gigabytes otherwise, or the stack of libyaml. Its reader is
kubernetes_yaml.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import yaml

# libyaml is about ten times faster; the pure Python loader is the fall-back where a wheel lacks it.
FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
NODE_LIMIT = 500_000
"""Keys, values and collections, of one text or of all objects of a chart: no author writes so many, and they take
some seconds and 300 MiB."""


_HANDLES_LIMIT = 100
"""libyaml compares each %TAG directive with all before it."""


class TooManyNodes(yaml.YAMLError):
    """YAML holds more than some limit."""


def refuse_many_nodes(texts: tuple[str, ...], limit: int) -> None:
    """Refuse texts of too many nodes or tag handles, which need much time and memory. Raises TooManyNodes."""
    if any(text.count("%TAG") > _HANDLES_LIMIT for text in texts):
        raise TooManyNodes(f"it holds more than {_HANDLES_LIMIT} %TAG directives")
    # The shortest spelling of a node is half a character or more, as in `? ?`: five nodes.
    if 2 * sum(map(len, texts)) <= limit:
        return
    nodes = (event for text in texts for event in _events(text) if isinstance(event, yaml.NodeEvent))
    if next(islice(nodes, limit, None), None) is not None:
        raise TooManyNodes(f"it holds more than {limit} keys and values")


def _events(text: str) -> Iterator[yaml.Event]:
    """Yield the events of a text up to where it is not YAML; the loader says what is wrong."""
    with suppress(yaml.YAMLError):
        yield from yaml.parse(text, Loader=FastLoader)


_DEPTH_LIMIT = 1000
"""Collections within each other. libyaml before 0.2.6 counts none, and goes down until its stack is full."""
_INDENTED = re.compile(rf"^[ \t?:-]{{{_DEPTH_LIMIT}}}", re.MULTILINE)
"""What a line without brackets needs in order to be that deep: its indentation, or collections that begin on it."""


def refuse_deep_nesting(text: str) -> None:
    """Refuse collections within collections without end. Raises yaml.YAMLError."""
    if text.count("[") + text.count("{") < _DEPTH_LIMIT and not _INDENTED.search(text):
        return
    if _find_deep(text, _DEPTH_LIMIT):
        raise yaml.YAMLError("it is nested too deeply")


def find_nested_deep(text: str, limit: int) -> int:
    """Return the first line of YAML where more than `limit` collections are open; 0 without one.

    Where it is not YAML, brackets are counted, whatever they stand in.
    """
    if text.count("[") + text.count("{") < limit and not re.search(rf"(?m)^[ \t?:-]{{{limit}}}", text):
        return 0
    try:
        return _find_deep(text, limit)
    except yaml.YAMLError:
        depth = 0
        for found in re.finditer(r"[\[\]{}]", text):
            depth = depth + 1 if found[0] in "[{" else max(0, depth - 1)
            if depth > limit:
                return text.count("\n", 0, found.start()) + 1
        return 0


def _find_deep(text: str, limit: int) -> int:
    depth = 0
    for event in yaml.parse(text, Loader=FastLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > limit:
            return event.start_mark.line + 1 if event.start_mark else 1
    return 0
