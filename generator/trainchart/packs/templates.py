"""The templates of a pack as its files: which paths they may have, and the blocks that they were written against.

What they say is read where they are rendered (render/layers.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainchart.errors import Problem, SpecError

TEMPLATES = "templates"
"""Folder of the templates, in a pack as in a chart."""
BASES = "bases"
"""Folder of what their overrides were written against, by the same paths."""
SIZE_LIMIT = 128 * 1024
"""Bytes of a folder; what a chart's release may hold is not much more."""
_PATH = re.compile(r"([A-Za-z0-9][\w.-]*/)*(\w[\w.-]*\.(yaml|tpl)|NOTES\.txt)", re.ASCII)
_HINT = "use NAME.yaml, or _NAME.tpl for a file that only defines named templates"


@dataclass(frozen=True)
class PackTemplates:
    """Templates that a pack adds to charts, or changes blocks of."""

    title: str
    """Name and version of the pack."""
    place: str
    """What its files are called in messages."""
    accept: str
    """The command that says that overrides fit the blocks below them; empty where the pack cannot be changed."""
    files: tuple[tuple[str, str], ...]
    """Path in the chart, and text."""
    bases: tuple[tuple[str, str], ...]
    """Path in the chart, and the blocks below as they were when the overrides were written."""


def parse_templates(files: Mapping[str, bytes], title: str, place: str, path: str) -> PackTemplates | None:
    """Return the templates among the files of a pack; None where it has none.

    `path` is where the pack lies on this machine.

    Raises:
        SpecError: paths that no template can have, more than SIZE_LIMIT, or what is not UTF-8; each with its file.
    """
    problems = tuple(_find_problems(files, place))
    if problems:
        raise SpecError(f"the templates of pack {title} are not valid", problems=problems)
    templates = {
        name: content.decode("utf-8-sig") for name, content in files.items() if name.startswith(f"{TEMPLATES}/")
    }
    bases = {
        f"{TEMPLATES}/{name.removeprefix(f'{BASES}/')}": content.decode("utf-8-sig")
        for name, content in files.items()
        if name.startswith(f"{BASES}/")
    }
    if not templates and not bases:
        return None
    accept = "" if path.endswith(".tgz") else f"trainchart pack accept {shlex.quote(path)}"
    return PackTemplates(title, place, accept, tuple(sorted(templates.items())), tuple(sorted(bases.items())))


def base_path(template: str) -> str:
    """Return where the pack keeps the blocks that its `template` overrides."""
    return f"{BASES}/{template.removeprefix(f'{TEMPLATES}/')}"


def _find_problems(files: Mapping[str, bytes], place: str) -> Iterator[Problem]:
    for folder in (TEMPLATES, BASES):
        found = {name: content for name, content in files.items() if name.split("/")[0] == folder}
        if sum(map(len, found.values())) > SIZE_LIMIT:
            yield Problem(f"more than {SIZE_LIMIT // 1024} KiB", f"{place}/{folder}", "keep large files out of charts")
        for name, content in found.items():
            if not _PATH.fullmatch(name.removeprefix(f"{folder}/")):
                yield Problem("not a valid template name", f"{place}/{name}", _HINT)
            try:
                is_text = "\0" not in content.decode()
                line = 1
            except UnicodeDecodeError as error:
                is_text = False
                line = content.count(b"\n", 0, error.start) + 1
            if not is_text:
                yield Problem("not UTF-8 text", f"{place}/{name}:{line}", "save the file as UTF-8")
