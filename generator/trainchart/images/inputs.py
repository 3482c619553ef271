"""What an image is made of, and the hash of it: files of a build context, and build arguments. Pure.

The same inputs have the same hash on every machine, whatever their order, age, owner and umask.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainchart.errors import PlanError, Problem
from trainchart.images.ignore import IgnoreRules

_SECRETS = (
    *(".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *(".netrc", ".pypirc", "pip.conf", ".git-credentials", ".npmrc", "kubeconfig", "*.kubeconfig", "credentials.json"),
)
"""Names of files that hold passwords or keys, hardly ever anything else."""
_SECRET_FOLDERS = (".ssh", ".aws", ".gnupg", ".docker", ".kube", ".azure", ".gcloud")
_LARGEST_KEY_FILE = 64 * 1024
"""Bytes; larger files are data."""
_NEWLINE = rb"(?:\r?\n|(?:\\r)?\\n)[ \t]*"
"""The end of a line, also as it is written inside a string, and how far the next one is indented."""
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[ \t]*"
    rb"%b(?:[A-Za-z-]+: [^\n\\]*%b|%b)*[A-Za-z0-9+/=]{32}" % ((_NEWLINE,) * 3)
)
"""A private key in PEM: code that only mentions its first line has no base64 on the next one."""


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
    """Refuse code that looks as if it held passwords or keys: an image gives them to whoever can pull it.

    A line with `!` in .dockerignore says that a file is meant. Raises PlanError with all of them.
    """
    problems = [
        Problem("would be in the image" if is_secret(file.path) else "holds a private key", file.path)
        for file in code
        if (is_secret(file.path) or holds_key(file.content)) and not rules.demands(file.path)
    ]
    if problems:
        raise PlanError(
            "the code folder holds files that look like passwords or keys, which whoever pulls the image would have",
            hint="name them in .dockerignore and give them to the pods as a Secret; a line `!NAME` means that one",
            problems=tuple(problems),
        )


def is_secret(path: str) -> bool:
    """Tell whether a path is one that holds passwords or keys."""
    *folders, name = path.split("/")
    return bool(set(folders) & set(_SECRET_FOLDERS)) or any(fnmatch.fnmatchcase(name, secret) for secret in _SECRETS)


def holds_key(content: bytes) -> bool:
    """Tell whether a file holds a private key, in PEM or as Google's for a service account, whatever its name."""
    if len(content) > _LARGEST_KEY_FILE:
        return False
    return _PRIVATE_KEY.search(content) is not None or _is_service_account(content)


def _is_service_account(content: bytes) -> bool:
    if b'"service_account"' not in content:
        return False
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return False
    is_account = isinstance(document, dict) and document.get("type") == "service_account"
    return is_account and "PRIVATE KEY-----" in str(document.get("private_key"))


def _hash(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        content = line.encode()
        # Where one line ends and the next begins matters, and a path may hold a newline.
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()
