"""The rule that templates give the same objects every time: nothing random, nothing that asks the clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import NOTES_FILE, chart_templates, without_comments

_ACTION = re.compile(r'\{\{(?:"(?:\\.|[^"\\\n])*"|`[^`]*`|(?!\}\}).)*\}\}', re.DOTALL)
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`')
_LOOKUP = re.compile(r"(?<![\w.$])lookup(?!\w)")
_FUNCTION = re.compile(
    # Not after a dot, a dollar or a letter: .Values.now and $now are values.
    r"(?<![\w.$])(?:rand(?:AlphaNum|Alpha|Numeric|Ascii|Bytes|Int)|uuidv4|shuffle|now|ago|htpasswd|bcrypt|encryptAES"
    r"|genPrivateKey|genCA(?:WithKey)?|genSelfSignedCert(?:WithKey)?|genSignedCert(?:WithKey)?)(?!\w)"
)


def check_repeatable(given: CheckInput) -> Iterator[Finding]:
    """Find functions in templates that give something else at every rendering; the notes may use them.

    A template that looks up what is in the cluster makes something new only where there is nothing.
    """
    for file, text in chart_templates(given):
        if file == NOTES_FILE:
            continue
        plain = without_comments(text)
        if any(_LOOKUP.search(_without_texts(action[0])) for action in _ACTION.finditer(plain)):
            continue
        for action in _ACTION.finditer(plain):
            for match in _FUNCTION.finditer(_without_texts(action[0])):
                yield Finding(
                    f"{match[0]} gives something else at every rendering, so every upgrade changes the object",
                    path=file,
                    line=plain.count("\n", 0, action.start() + match.start()) + 1,
                    hint="take it from a value or an existing Secret",
                )


def _without_texts(action: str) -> str:
    return _TEXT.sub(lambda quoted: " " * len(quoted[0]), action)


RULES = (
    Rule(
        "repeatable",
        "What is random or asks the clock changes with every upgrade: pods restart and passwords no longer fit.",
        check_repeatable,
        "https://helm.sh/docs/howto/charts_tips_and_tricks/",
        others=Severity.warning,
        scope=Scope.charts,
    ),
)
