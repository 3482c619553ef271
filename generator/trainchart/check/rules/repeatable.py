"""The rule that templates give the same objects every time: nothing random, nothing that depends on time or build."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.randomness import find_build_readers, find_random_calls
from trainchart.check.rule import Rule, Scope


def check_repeatable(given: CheckInput) -> Iterator[Finding]:
    """Find what in templates gives something else at every rendering or build; the notes may use such functions.

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
    for path, line in find_build_readers(given):
        yield Finding(
            "the template reads the build annotations trainchart/…, so each build of the same content installs "
            "different objects",
            path=path,
            line=line,
            hint="use a value instead",
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
