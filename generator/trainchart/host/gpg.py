"""The gpg program: signs texts with a key of the user's, and checks such signatures."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from trainchart.errors import ToolError

_TIMEOUT_SECONDS = 120.0
_WORDS_KEPT = 600
_HASH = "SHA512"


def clear_sign(text: str, key: str, *, passphrase: str | None = None) -> bytes:
    """Return `text` with the signature of the key that `key` names (fingerprint, id or part of the user id).

    Without `passphrase`, gpg's agent asks for it where the key has one. Raises ToolError where gpg cannot sign.
    """
    argv = ["--batch", "--local-user", key, "--digest-algo", _HASH, "--clear-sign"]
    if passphrase is not None:
        argv = ["--pinentry-mode", "loopback", "--passphrase-fd", "0", *argv]
    with tempfile.TemporaryDirectory(prefix="trainchart-") as folder:
        path = Path(folder, "text")
        path.write_text(text, encoding="utf-8")
        done = _run(["gpg", *argv, "--output", "-", str(path)], f"{passphrase}\n" if passphrase is not None else "")
    if done.returncode != 0:
        raise ToolError(
            f"gpg cannot sign with the key {key!r}: {_words(done)}", hint="see your keys with: gpg --list-secret-keys"
        )
    return done.stdout


def find_bad_signature(signed: bytes, keyring: Path | None) -> str:
    """Return why the signature of a signed text does not hold; empty where it does.

    `keyring` is a file of public keys, as `gpg --export` writes it; without one, the user's keys count.
    Raises ToolError where gpg is missing.
    """
    with tempfile.TemporaryDirectory(prefix="trainchart-") as folder:
        path = Path(folder, "signed")
        path.write_bytes(signed)
        if keyring is not None:
            argv = ["gpgv", "--keyring", str(keyring.absolute()), str(path)]
        else:
            argv = ["gpg", "--batch", "--verify", str(path)]
        done = _run(argv, "")
    return "" if done.returncode == 0 else _words(done)


def _run(argv: list[str], stdin: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(argv, input=stdin.encode(), capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{argv[0]} does not run: {error}", hint="install GnuPG 2: https://gnupg.org") from error


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join(done.stderr.decode(errors="replace").split())[-_WORDS_KEPT:]
