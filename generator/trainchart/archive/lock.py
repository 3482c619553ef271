"""trainchart.lock.yaml: what made a generated chart, so that drift and upgrades follow from one file.

The lock lies in the chart folder and is kept out of archives by .helmignore, so that it does not change the
identity of the chart.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, dump_mapping, parse_mapping

LOCK_FILE = "trainchart.lock.yaml"
WAIVER_FILE = ".trainchart-check.yaml"
"""Waivers of findings: the one file in a generated chart that its authors write."""
_FORMAT = 1
_PLAIN_HASH = re.compile("[0-9be]*+[acdf][0-9a-f]*+")
"""Needs no quotes: other digits alone may be a number."""
_HEADER = "# Written by `trainchart generate`: what this chart was made from. Do not edit.\n"


@dataclass(frozen=True)
class Source:
    """Something a chart was made from: the path or name it goes by, and the sha256 of its content."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Lock:
    """What made a chart, and the sha256 of every file it was made of."""

    generator: str
    """Version of trainchart."""
    spec: Source
    """By its file and the folder that it lies in."""
    family: Source
    """The template family and the hash of all its files."""
    layers: tuple[Source, ...]
    """Packs between the built-in defaults and the spec, the weakest first, as NAME@VERSION."""
    files: Mapping[str, str]
    image: str = ""
    """The image that the spec names by digest, with its tag: a content tag is the hash of all that it was made of."""


def name_locked_model(lock: Lock) -> str:
    """Return the word that names the spec of a chart on a command line: its model, or its path outside of models/."""
    path = PurePosixPath(lock.spec.name)
    return shlex.quote(path.stem if path.parent.name == "models" else str(path))


def incomplete_chart(chart: str, missing: Sequence[str], lock: Lock) -> ToolError:
    """Return the error about a generated chart folder that lacks files which it cannot be used without."""
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return ToolError(
        f"{chart} is not complete: {missing[0]}{others} {'are' if others else 'is'} missing",
        hint=restore_hint(missing, lock),
    )


def restore_hint(missing: Sequence[str], lock: Lock) -> str:
    """Return how to get files of a chart back."""
    return f"trainchart generate {name_locked_model(lock)} writes {'them' if len(missing) > 1 else 'it'} again"


class DriftKind(enum.StrEnum):
    changed = "changed"
    missing = "missing"
    added = "added"


@dataclass(frozen=True)
class Drift:
    """A file that is not as `trainchart generate` left it."""

    path: str
    kind: DriftKind


def hash_content(content: bytes) -> str:
    """Return the sha256 of one file in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def hash_tree(files: Mapping[str, bytes]) -> str:
    """Return one sha256 for paths and contents of several files, whatever their order."""
    listing = "".join(_list_file(path, content) for path, content in sorted(files.items()))
    # Names of files are bytes; those that are no UTF-8 come as surrogates.
    return hash_content(listing.encode(errors="surrogateescape"))


def _list_file(path: str, content: bytes) -> str:
    line = f"{hash_content(content)}  {path}"
    # A path of two lines must not look like two files.
    return ("\\" + line.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in line else line) + "\n"


def build_lock(
    *,
    generator: str,
    spec: Source,
    family: Source,
    layers: tuple[Source, ...] = (),
    files: Mapping[str, bytes],
    image: str = "",
) -> Lock:
    """Return the lock of a chart of `files` (relative path → content), the lock itself left out."""
    hashes = {path: hash_content(content) for path, content in sorted(files.items()) if path != LOCK_FILE}
    return Lock(generator=generator, spec=spec, family=family, layers=layers, files=hashes, image=image)


def dump_lock(lock: Lock) -> str:
    """Return the text of the lock file."""
    above = dump_mapping(
        {
            "format": _FORMAT,
            "generator": lock.generator,
            "spec": _dump_source(lock.spec),
            "family": _dump_source(lock.family),
            "layers": [_dump_source(layer) for layer in lock.layers],
            **({"image": lock.image} if lock.image else {}),
        }
    )
    files = "".join(_dump_file(path, sha256) for path, sha256 in sorted(lock.files.items()))
    return _HEADER + above + (f"files:\n{files}" if files else "files: {}\n")


def _dump_file(path: str, sha256: str) -> str:
    """Return the entry of one file, as dump_mapping gives it: that takes most of the time of a lock."""
    if not _PLAIN_HASH.fullmatch(sha256):
        return textwrap.indent(dump_mapping({path: sha256}), "  ")
    return f"  {_dump_path(path)}{sha256}\n"


@functools.lru_cache(4096)
def _dump_path(path: str) -> str:
    """Return the key of a file with its colon: charts have the same files."""
    return textwrap.indent(dump_mapping({path: ""}), "  ").strip(" ").removesuffix("''\n")


def parse_lock(text: str) -> Lock:
    """Return the lock that `text` holds.

    Raises ToolError where it is damaged or of a newer format, or its spec is not one of the project.
    """
    try:
        data = parse_mapping(text)
        if data.get("format") != _FORMAT:
            raise ToolError(
                f"{LOCK_FILE} has format {data.get('format')!r}, but this trainchart reads {_FORMAT}",
                hint="generate the chart again, or use a newer trainchart",
            )
        return Lock(
            generator=str(data["generator"]),
            spec=_require_in_project(_parse_source(data["spec"])),
            family=_parse_source(data["family"]),
            layers=tuple(_parse_source(layer) for layer in data["layers"]),
            files={str(path): str(digest) for path, digest in data["files"].items()},
            image=str(data.get("image", "")),
        )
    except (YamlError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{LOCK_FILE} is damaged: {error}", hint="generate the chart again") from error


def find_drift(lock: Lock, files: Mapping[str, bytes]) -> list[Drift]:
    """Return the files that differ from what `lock` remembers, sorted by path; waivers are no drift."""
    found = []
    for path in sorted({*lock.files, *files} - {LOCK_FILE, WAIVER_FILE}):
        if path not in files:
            found.append(Drift(path, DriftKind.missing))
        elif path not in lock.files:
            found.append(Drift(path, DriftKind.added))
        elif hash_content(files[path]) != lock.files[path]:
            found.append(Drift(path, DriftKind.changed))
    return found


def _dump_source(source: Source) -> dict[str, str]:
    return {"name": source.name, "sha256": source.sha256}


def _require_in_project(spec: Source) -> Source:
    path = PurePosixPath(spec.name)
    if path.is_absolute() or ".." in path.parts:
        raise ToolError(
            f"{LOCK_FILE}: spec.name: {spec.name!r} is outside the project", hint="generate the chart again"
        )
    return spec


def _parse_source(data: Mapping[str, Any]) -> Source:
    return Source(str(data["name"]), str(data["sha256"]))
