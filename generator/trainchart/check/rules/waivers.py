"""The rule about waivers themselves. What ran out or silences nothing is told by the runner, which alone knows."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding
from trainchart.check.rule import Rule
from trainchart.check.waivers import parse_waivers

WAIVERS_RULE = "waivers"


def check_waivers(given: CheckInput) -> Iterator[Finding]:
    """Find waivers without a reason, and those that cannot be read."""
    _, problems = parse_waivers(given.files, given.objects())
    yield from problems


RULES = (
    Rule(
        WAIVERS_RULE,
        "A waiver without a reason, or after its expiry date, hides a fault from the next reader.",
        check_waivers,
        "docs/checks.md",
    ),
)
