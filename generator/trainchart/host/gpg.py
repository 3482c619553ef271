"""The gpg program: signs texts with a key of the user's, and checks such signatures."""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.host.git import lower_limit

_TIMEOUT_SECONDS = 120.0
_WORDS_KEPT = 600
_PRINT_LIMIT = 16 * 1024**2
"""Bytes that gpg may write: it unpacks whatever it is given."""
_BEGIN = re.compile(rb"(?m)^-----BEGIN PGP SIGNED MESSAGE-----[ \t]*\r?\n")
_END = re.compile(rb"(?m)^-----END PGP SIGNATURE-----")
_HASH = "SHA512"
_STATUS = "[GNUPG:]"
"""Begins the lines that gpg writes for programs: https://github.com/gpg/gnupg/blob/master/doc/DETAILS."""
_REASONS = {
    "EXPSIG": "it has expired",
    "EXPKEYSIG": "the key that made it has expired",
    "REVKEYSIG": "the key that made it was revoked",
}


@dataclass(frozen=True)
class SignedText:
    """What gpg has looked at, which need not be all that its file holds, and why its signature does not hold."""

    text: str
    problem: str
    """Empty where the signature holds."""


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
        reason = _words(done) or f"exit code {done.returncode}"
        raise ToolError(
            f"gpg cannot sign with the key {key!r}: {reason}", hint="see your keys with: gpg --list-secret-keys"
        )
    return done.stdout


def check_signed_text(signed: bytes, keyring: Path | None) -> SignedText:
    """Return the text that a file of clear-signed text holds, and whether its signature does.

    `keyring` is a file of public keys, as `gpg --export` writes it; without one, the user's keys count. As for helm, a
    key that has expired since, or was revoked, signs nothing, and only clear-signed text counts. Raises ToolError where
    gpg is missing.
    """
    begin = _BEGIN.search(signed)
    end = _END.search(signed, begin.end()) if begin is not None else None
    if begin is None or end is None:
        return SignedText("", "it contains no clear-signed text")
    with tempfile.TemporaryDirectory(prefix="trainchart-") as folder:
        path = Path(folder, "signed")
        path.write_bytes(signed[begin.start() : end.end()] + b"\n")
        program = ["gpgv", "--keyring", str(keyring.absolute())] if keyring is not None else ["gpg", "--batch"]
        verify = [] if keyring is not None else ["--verify"]
        done = _run([*program, "--status-fd", "2", "--output", "-", *verify, str(path)], "")
    return SignedText(done.stdout.decode(errors="replace"), _find_problem(done))


def _find_problem(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return why a signature does not hold; gpg and gpgv end with 0 also where the key does not count any more."""
    lines = done.stderr.decode(errors="replace").splitlines()
    said = {line.split()[1] for line in lines if line.startswith(f"{_STATUS} ")}
    found = [reason for word, reason in _REASONS.items() if word in said]
    if found or (done.returncode == 0 and "GOODSIG" in said):
        return ", ".join(found)
    return _words(done) or "gpg finds none"


def _run(argv: list[str], stdin: str) -> subprocess.CompletedProcess[bytes]:
    # What it prints goes into files, whose size can be limited.
    limit = partial(lower_limit, resource.RLIMIT_FSIZE, _PRINT_LIMIT)
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(
                argv,
                input=stdin.encode(),
                stdout=printed,
                stderr=said,
                timeout=_TIMEOUT_SECONDS,
                check=False,
                preexec_fn=limit,  # takes no lock
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolError(f"{argv[0]} does not run: {error}", hint="install GnuPG 2: https://gnupg.org") from error
        for file in (printed, said):
            file.seek(0)
        return subprocess.CompletedProcess(argv, done.returncode, printed.read(), said.read())


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").splitlines()
    # At its first start it tells which files it has made.
    words = (line for line in lines if not line.startswith(_STATUS) and not line.endswith(" created"))
    return " ".join(" ".join(words).split())[-_WORDS_KEPT:]
