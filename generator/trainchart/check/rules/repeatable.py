"""The rule that templates give the same objects every time: nothing random, nothing that asks the clock."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.randomness import find_random_calls
from trainchart.check.rule import Rule, Scope


def check_repeatable(given: CheckInput) -> Iterator[Finding]:
    """Find functions in templates that give something else at every rendering; the notes may use them.

    A template that looks up what is in the cluster makes something new only where there is nothing.
    """
    for call in find_random_calls(given):
        if call.is_guarded:
            yield Finding(
                f"{call.function} returns something different each time helm template runs, where lookup finds nothing",
                path=call.path,
                line=call.line,
                severity=Severity.info,
            )
        else:
            yield Finding(
                f"{call.function} returns something different for every rendering, so every upgrade changes the object",
                path=call.path,
                line=call.line,
                hint="take it from a value or an existing Secret",
            )


RULES = (
    Rule(
        "repeatable",
        "Values that are random or depend on the time change with every upgrade: pods restart and passwords no "
        "longer match.",
        check_repeatable,
        "https://helm.sh/docs/howto/charts_tips_and_tricks/",
        others=Severity.warning,
        scope=Scope.charts,
    ),
)
