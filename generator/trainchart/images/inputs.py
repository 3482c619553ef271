"""What an image is made of, and the hash of it: files of a build context, and build arguments. Pure.

The same inputs have the same hash on every machine, whatever their order, age, owner and umask.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainchart.errors import PlanError, Problem
from trainchart.images.ignore import IGNORE_FILE, IgnoreRules
from trainchart.secret_files import find_secret


@dataclass(frozen=True)
class ContextFile:
    """One file of a build context; `path` is relative to the context's folder."""

    path: str
    content: bytes
    is_executable: bool = False


def hash_files(files: Iterable[ContextFile]) -> str:
    """Return the sha256 of files: of their paths, their contents, and whether they are programs."""
    return _hash(
        f"{hashlib.sha256(file.content).hexdigest()} {int(file.is_executable)} {file.path}"
        for file in sorted(files, key=lambda file: file.path)
    )


def hash_mapping(values: Mapping[str, str]) -> str:
    """Return the sha256 of names and their values: of build arguments, or of parts and their own hashes."""
    return _hash(f"{name}={value}" for name, value in sorted(values.items()))


def require_no_secrets(code: Iterable[ContextFile], rules: IgnoreRules) -> None:
    """Refuse code that looks as if it held passwords or keys: an image gives them to everyone who can pull it.

    A line with `!` in .dockerignore says that a file is meant. Raises PlanError with all of them.
    """
    found = [(file.path, find_secret(file.path, file.content)) for file in code if not rules.demands(file.path)]
    problems = [
        Problem(secret.reason, f"{path}:{secret.line}" if secret.line else path)
        for path, secret in found
        if secret is not None
    ]
    if problems:
        raise PlanError(
            "the code folder holds files that look like passwords or keys, which everyone who pulls the image can read",
            hint=f"name them in {IGNORE_FILE} and give them to the pods as a Secret; a line `!NAME` allows that one",
            problems=tuple(problems),
        )


def _hash(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        content = line.encode()
        # Where one line ends and the next begins matters, and a path may hold a newline.
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()
