"""References to variables in what a container gets: `$(NAME)` as Kubernetes and the launcher fill them in. Pure.

Shared by the plan, which refuses references that stay text, by checks and by local runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# The rule of k8s.io/kubernetes/third_party/forked/golang/expansion: "$$" is an escaped dollar sign.
# Without a bracket that closes it, all that follows is text: it is read once, not again for each reference.
_REFERENCE = re.compile(r"\$(?:(?P<escape>\$)|\((?P<name>[^)]*)(?P<end>\)|\Z))")
_NAME = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]*?)(?P<mark>[?+*-]?)")

_OF_IMAGES = {"HOME", "HOSTNAME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LIBRARY_PATH", "LOGNAME", "PATH", "PWD"}
_OF_IMAGES |= {"PYTHONPATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}


@dataclass(frozen=True)
class Reference:
    """A `$(NAME)`, perhaps with one of the marks that the launcher knows."""

    name: str
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.name}{self.mark}"


def find_references(text: str) -> Iterator[Reference]:
    """Yield the references in `text`; what is escaped, or could not be a name, as in $(date +%s), is text."""
    for match in _REFERENCE.finditer(text):
        named = _NAME.fullmatch(match["name"]) if match["end"] else None
        if named:
            yield Reference(named["name"], named["mark"])


def is_of_image(name: str) -> bool:
    """Tell whether a variable is one that images and their shells set, of which Kubernetes knows nothing."""
    return name in _OF_IMAGES


def explain_text(name: str) -> str:
    """Return what to write instead of a reference that stays text."""
    if is_of_image(name):
        return (
            f"Kubernetes does not know what the image sets: write the value of {name} out, or $$({name}) for the text"
        )
    return f"$$({name}) for the text itself"


def expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Replace every `$(NAME)` that is known, leave unknown ones alone and turn `$$` into `$`."""

    def replace(match: re.Match[str]) -> str:
        if match["escape"]:
            return "$"
        if not match["end"]:
            return match[0].replace("$$", "$")
        return variables.get(match["name"], match[0])

    return _REFERENCE.sub(replace, text)
