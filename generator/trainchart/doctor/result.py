"""What one check of `trainchart doctor` has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

OK = "ok"
WARNING = "warning"
"""It works, or may work, but something is worth knowing before GPUs are taken."""
FAILED = "failed"
"""What was asked for cannot run like this."""
UNKNOWN = "unknown"
"""It could not be found out, mostly for lack of rights."""
OUTCOMES = (OK, WARNING, FAILED, UNKNOWN)


@dataclass(frozen=True)
class Result:
    """The outcome of a check, the reason in one sentence, and what to do about it."""

    check: str
    outcome: str
    message: str
    remedy: str = ""
    subject: str = ""
    """The claim that it is about, where it is about one."""


def has_failed(results: Iterable[Result]) -> bool:
    """Say whether any check has failed."""
    return any(each.outcome == FAILED for each in results)
