"""Text that programs print, made fit to be shown on a terminal and to be searched.

A terminal obeys what it is sent: a program's output can set its title and clipboard, clear it, or turn a line around.
"""

from __future__ import annotations

import re
from typing import Any

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
"""Control sequences, control strings such as the one for the clipboard, and short escapes (ECMA-48)."""
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""All control characters but the tab, what turns the direction of writing or ends a line, and halves of characters."""

_WARNING = re.compile(r"warn|error|exception|traceback|fatal|critical|no such file", re.IGNORECASE)
INFORMATION = re.compile(r"^(I\d{4} \d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: I )")
"""TensorFlow's lines of level INFO: of a coordination service that begins, and of errors from rounding."""
_USUAL = "All log messages before absl::InitializeLog()"
"""TensorFlow prints this warning at each start."""


_LOST_LOG = re.compile(
    r"unable to retrieve container logs for \S+|failed to (?:try resolving symlinks in path|open log file) .*",
    re.IGNORECASE,
)
"""How a kubelet answers, in place of a log that is not on its node any more, with the status of success."""


def is_lost_log(line: str) -> bool:
    """Return whether a line is the kubelet's, which has no log to give: the only one of its answer, without a time."""
    return _LOST_LOG.fullmatch(line.strip()) is not None


def clean(text: str) -> str:
    """Return one line of text without whatever a terminal would obey instead of showing it."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text)) if not text.isprintable() else text


_CREDENTIALS = re.compile(
    r"(?P<kept>\bbearer[ ]+|\bbasic[ ]+(?=[a-z+/]*[0-9=])|\b[a-z][a-z0-9+.-]{0,30}://[^\s/?#:@]*:)"
    r"(?P<secret>(?<=:)[^\s/?#@]+(?=@)|(?<= )[\w.~+/-]{6,}=*)",
    re.IGNORECASE,
)
"""Of an Authorization header, and of an address with a password."""


def hide_credentials(text: str) -> str:
    """Return an error's line with *** in place of tokens and passwords: it goes into records, Events and webhooks."""
    return _CREDENTIALS.sub(lambda found: f"{found['kept']}***", text)


def visible_line(line: str) -> str:
    """Return what is left to see of a line that overwrites itself, as progress bars do, cleaned."""
    shown = [part for part in map(clean, line.split("\r")) if part]
    return shown[-1] if shown else ""


_ATTEMPT_ENDED = re.compile(r"\battempt \d+ ended after ")


def last_line(text: str) -> str:
    """Return the line that says most of the end of a log, which a kubelet passes on of what was killed.

    That is what the launcher said of the end of its program, or why Python could not start, or else the last line that
    has something to see.
    """
    lines = [line for line in map(visible_line, text.split("\n")) if line.strip()]
    ends = [line for line in lines if _ATTEMPT_ENDED.search(line) or line.startswith("Fatal Python error: ")]
    return (ends or lines or [""])[-1].strip()


def is_warning(line: str) -> bool:
    """Say whether a line of a log warns, or tells of an error."""
    return bool(_WARNING.search(line)) and _USUAL not in line and not INFORMATION.match(line)


_MESSAGE_READ = 8192


def cut_message(message: Any) -> str:
    """Return the part of a Kubernetes API message that is read: others may write megabytes, the kubelet 4 KiB."""
    return str(message or "")[:_MESSAGE_READ]


def shorten(text: str, limit: int) -> str:
    """Return text of at most `limit` characters: cut between words where it has any, with "…" in place of the rest."""
    if len(text) <= limit:
        return text
    head, _, rest = text[: limit - 1].rpartition(" ")
    # A word that is most of the text is cut all the same.
    return (head if len(head) > len(rest) else text[: limit - 1]) + "…"
