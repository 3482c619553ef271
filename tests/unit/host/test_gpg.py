"""Signatures by a real gpg: which hold, and which text they are about."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.repositories.chart_servers import find_server
from trainchart.archive.provenance import read_clear_text, stated_digest
from trainchart.errors import ToolError
from trainchart.host.gpg import SignedText, check_signed_text, clear_sign

ARCHIVE = "demo-1.0.0.tgz"
STATEMENT = f"name: demo\n\n...\nfiles:\n  {ARCHIVE}: sha256:genuine\n"
THEN, LATER = "20260101T000000", "20260201T000000"
"""When the keys are made, and when they sign; one of them lasts until March."""
_Gpg = Callable[..., bytes]


@pytest.fixture(scope="module")
def gpg() -> Iterator[_Gpg]:
    """Runs gpg in a home with three keys; its path is short, since gpg's agent listens there."""
    program = find_server("gpg")
    with tempfile.TemporaryDirectory(prefix="gpg-") as folder:
        environment = {**os.environ, "GNUPGHOME": folder}

        def run(*arguments: str | Path, at: str = LATER) -> bytes:
            command = [program, "--batch", "--yes", "--faked-system-time", at, *map(str, arguments)]
            done = subprocess.run(command, env=environment, capture_output=True)
            assert done.returncode == 0, done.stderr.decode()
            return done.stdout

        try:
            for name, until in (("lasting", "never"), ("ended", "20260301T000000"), ("revoked", "never")):
                run("--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", until, at=THEN)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("GNUPGHOME", folder)
                yield run
        finally:
            subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=True)


@pytest.fixture
def sign(gpg: _Gpg, tmp_path: Path) -> Callable[[str], bytes]:
    def sign(key: str) -> bytes:
        (tmp_path / "statement").write_text(STATEMENT)
        return gpg("--local-user", key, "--output", "-", "--clear-sign", tmp_path / "statement")

    return sign


@pytest.fixture(params=["own keys", "keyring"])
def keyring(request: pytest.FixtureRequest, gpg: _Gpg, tmp_path: Path) -> Callable[[], Path | None]:
    """Gives whose keys count: one's own, or those of a file, as they are by then."""

    def export() -> Path | None:
        if request.param == "own keys":
            return None
        (tmp_path / "keyring").write_bytes(gpg("--export"))
        return tmp_path / "keyring"

    return export


def revoke(gpg: _Gpg, key: str) -> None:
    listed = gpg("--with-colons", "--list-keys", key).decode()
    fingerprint = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))
    made = Path(os.environ["GNUPGHOME"], "openpgp-revocs.d", f"{fingerprint}.rev")
    # A colon keeps what gpg has made in advance from being imported by mistake.
    made.write_text(made.read_text().replace(":-----BEGIN", "-----BEGIN"))
    gpg("--import", made)


def test_which_signatures_hold(gpg: _Gpg, sign: Callable[[str], bytes], keyring: Callable[[], Path | None]) -> None:
    signed = {key: sign(key) for key in ("lasting", "ended")}
    held = check_signed_text(signed["lasting"], keyring())
    assert (held.problem, stated_digest(held.text, ARCHIVE)) == ("", "sha256:genuine")
    # gpg itself ends with 0 in these cases, and helm verify refuses them.
    assert check_signed_text(signed["ended"], keyring()).problem == "the key that made it has expired"
    changed = check_signed_text(signed["lasting"].replace(b"genuine", b"other"), keyring())
    assert "BAD signature" in changed.problem
    assert "[GNUPG:]" not in changed.problem
    for other in (b"", b"nothing at all", STATEMENT.encode()):
        assert check_signed_text(other, keyring()).problem == "it contains no clear-signed text"


def test_only_clear_signed_text_counts(
    gpg: _Gpg, sign: Callable[[str], bytes], keyring: Callable[[], Path | None], tmp_path: Path
) -> None:
    """Helm takes no other; packets that are compressed would unpack to any size."""
    (tmp_path / "statement").write_text(STATEMENT)
    (tmp_path / "large").write_bytes(bytes(64 * 1024**2))
    message = gpg("--local-user", "lasting", "--armor", "--output", "-", "--sign", tmp_path / "statement")
    bomb = gpg("--output", "-", "--compress-algo", "zip", "--store", tmp_path / "large")
    for signed in (message, bomb):
        assert check_signed_text(signed, keyring()) == SignedText("", "it contains no clear-signed text")
    armored = gpg("--armor", "--output", "-", "--compress-algo", "zip", "--store", tmp_path / "large")
    packets = armored.split(b"\n\n", 1)[1].rsplit(b"\n-----", 1)[0]
    hidden = re.sub(rb"(?s)(BEGIN PGP SIGNATURE-----\n\n).*(\n-----END)", rb"\1" + packets + rb"\2", sign("lasting"))
    found = check_signed_text(hidden, keyring())
    assert found.problem and len(found.text) <= 17 * 1024**2


def test_a_key_that_was_revoked(gpg: _Gpg, keyring: Callable[[], Path | None], tmp_path: Path) -> None:
    name = f"revoked-{tmp_path.name}"
    gpg("--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never", at=THEN)
    (tmp_path / "statement").write_text(STATEMENT)
    signed = gpg("--local-user", name, "--output", "-", "--clear-sign", tmp_path / "statement")
    assert check_signed_text(signed, keyring()).problem == ""
    revoke(gpg, name)
    assert check_signed_text(signed, keyring()).problem == "the key that made it was revoked"


def test_what_nobody_has_signed_is_not_believed(
    sign: Callable[[str], bytes], keyring: Callable[[], Path | None]
) -> None:
    """gpg skips what stands before the text that it verifies, also where that looks like such a text."""
    forged = STATEMENT.replace("genuine", "forged")
    before = f"x-----BEGIN PGP SIGNED MESSAGE-----\n\n{forged}\n-----BEGIN PGP SIGNATURE-----x\n\n".encode()
    both = before + sign("lasting")
    assert stated_digest(read_clear_text(both), ARCHIVE) == "sha256:forged"
    held = check_signed_text(both, keyring())
    assert (held.problem, stated_digest(held.text, ARCHIVE)) == ("", "sha256:genuine")


def test_a_text_of_three_parts_states_no_digest() -> None:
    """Helm reads the second part."""
    assert stated_digest(STATEMENT, ARCHIVE) == "sha256:genuine"
    assert stated_digest(f"{STATEMENT}\n...\nfiles:\n  {ARCHIVE}: sha256:other\n", ARCHIVE) == ""
    assert stated_digest("name: demo\n", ARCHIVE) == ""


@pytest.mark.parametrize("key", ["nobody", "ended", "--help"])
def test_a_key_that_cannot_sign(gpg: _Gpg, key: str) -> None:
    with pytest.raises(ToolError, match="gpg cannot sign with the key"):
        clear_sign(STATEMENT, key)


def test_without_gpg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    signed = b"-----BEGIN PGP SIGNED MESSAGE-----\n-----END PGP SIGNATURE-----"
    for call in (lambda: clear_sign("", "a"), lambda: check_signed_text(signed, None)):
        with pytest.raises(ToolError, match="gpg does not run") as caught:
            call()
        assert "install GnuPG" in caught.value.hint


def test_a_gpg_that_fails_silently_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpg").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="cannot sign with the key 'lasting': exit code 1"):
        clear_sign("text", "lasting")
