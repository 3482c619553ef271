"""Whether the signature of a chart archive holds, and is about that archive."""

from __future__ import annotations

import hashlib
from pathlib import Path

from trainchart.archive.provenance import stated_digest
from trainchart.host.gpg import check_signed_text


def find_signature_problem(archive: bytes, filename: str, signature: bytes, keyring: Path | None = None) -> str:
    """Return why the .prov file `signature` says nothing about an archive of that name; empty where it does.

    `keyring` is a file of public keys; without one, the user's keys count. Raises ToolError where gpg is missing.
    """
    signed = check_signed_text(signature, keyring)
    if signed.problem:
        return f"the signature is not valid: {signed.problem}"
    # Of the text that gpg has verified: what else the file holds is not signed.
    stated, digest = stated_digest(signed.text, filename), f"sha256:{hashlib.sha256(archive).hexdigest()}"
    return "" if stated == digest else f"it signs {stated or 'no archive of this name'}, but the archive is {digest}"
