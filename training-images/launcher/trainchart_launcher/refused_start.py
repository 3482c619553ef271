"""Say why the system refuses to start a program: its own words for it do not tell a script from its interpreter.

Loaded only after a refusal. It imports nothing but the standard library, as lifeline.py needs it without site-packages.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional

_HEAD_BYTES = 256
"""As much of a file as Linux itself reads for the name of an interpreter."""
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_ELF = b"\x7fELF"


def describe_refused_start(program: str, err: Exception) -> str:
    """Return the line for `program`, which could not be started because of `err`."""
    path = program if "/" in program else _find_in_path(program)
    reason: Optional[str] = None
    try:
        reason = _explain(path, err) if path and isinstance(err, OSError) else None
    except (OSError, ValueError):
        pass
    if reason:
        found = "" if path == program else f" ({path})"
        return f"cannot start {program!r}{found}: {reason}"
    if isinstance(err, FileNotFoundError):
        where = "" if "/" in program else f" in PATH ({os.environ.get('PATH', '')})"
        return f"cannot start {program!r}: no such program{where}"
    return f"cannot start {program!r}: {err.strerror if isinstance(err, OSError) else err}"


def _find_in_path(program: str) -> str:
    """Return the file or link of that name in PATH; "" where there is none."""
    paths = [os.path.join(folder, program) for folder in os.get_exec_path()]
    found = [path for path in paths if os.path.isfile(path)] or [path for path in paths if os.path.lexists(path)]
    return found[0] if found else ""


def _explain(path: str, err: OSError) -> Optional[str]:
    """Return the reason; None where the system's words say it. Raises OSError where the file cannot be examined."""
    if os.path.islink(path) and not os.path.exists(path):
        return f"it is a link to {os.readlink(path)!r}, which does not exist" if err.errno == errno.ENOENT else None
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return "it is a folder"
    if not stat.S_ISREG(mode):
        return None
    if err.errno == errno.EACCES:
        if os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0):  # Linux only
            return "Permission denied: its volume is mounted without the right to execute files (noexec)"
        if not os.access(path, os.X_OK):
            return f"Permission denied: the file is not executable (mode {stat.S_IMODE(mode):04o})"
    head = _read_head(path)
    if err.errno == errno.ENOEXEC:
        return _explain_format(head)
    interpreter = _find_interpreter(head)
    if err.errno == errno.ENOENT:
        return _explain_missing(head, interpreter)
    if err.errno == errno.EACCES and interpreter:
        return f"Permission denied: its first line names the interpreter {interpreter!r}, which cannot be executed"
    return None


def _explain_missing(head: bytes, interpreter: str) -> str:
    """Return what a file lacks that is there, but whose start fails as if it were not."""
    if interpreter and not os.path.exists(interpreter):
        named = f"its first line names the interpreter {interpreter!r}, which does not exist"
        is_windows = interpreter.endswith("\r")
        return f"{named}: the file has Windows line endings (CRLF)" if is_windows else f"{named} in this image"
    if head.startswith(_ELF):
        return "the file exists, but its dynamic loader does not: it was built for another C library (glibc, musl)"
    return "the file exists, but something that it needs to start does not"


def _explain_format(head: bytes) -> Optional[str]:
    """Return why a file is not a script; None for a binary, such as one for another architecture."""
    if not head:
        return "the file is empty"
    if head.startswith(_BYTE_ORDER_MARKS):
        return "the file begins with a byte order mark (BOM) instead of #!: save it without one"
    if b"\0" in head or _find_interpreter(head):
        return None
    return "its first line names no interpreter, such as #!/bin/sh"


def _find_interpreter(head: bytes) -> str:
    """Return the interpreter that the first line of a script names; "" where it names none."""
    first = head.split(b"\n", 1)[0]
    # Only a blank and a tab end the name: a carriage return is part of it.
    words = first[2:].replace(b"\t", b" ").split(b" ") if first.startswith(b"#!") else []
    return next((os.fsdecode(word) for word in words if word), "")


def _read_head(path: str) -> bytes:
    """Return the first bytes of a file; nothing where it is a pipe without a writer by now."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(handle, _HEAD_BYTES)
    finally:
        os.close(handle)
