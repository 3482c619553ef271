"""What Helm's messages mean, in short: pure text work shared by both engines.

Helm wraps errors in layers of Go ("error calling include: template: …"). Here only the innermost place and
the last message survive; a schema refusal becomes one problem per value (schema_refusals.py).
"""

from __future__ import annotations

import re

from trainchart.errors import Problem, RenderError, UsageError
from trainchart.helm.asked import Asked
from trainchart.helm.schema_refusals import DAMAGED, find_refusals

_FILE = r"(?<![\w.-])[\w.-]+/(?P<place>(?:templates|charts)/[^\s:()\"]{1,1000}"
_PLACES = (re.compile(_FILE + r":\d+(?::\d+)?)"), re.compile(_FILE + ")"))
"""Where in a template: with the line, else the file alone; Helm names the outermost place first."""
_EXECUTING = re.compile(r"^executing \"[^\"]*\" at <(?P<expression>.*?)>: (?P<message>.*)$", re.DOTALL)
_NOISE = re.compile(
    r"^(?:Error: |INSTALLATION FAILED: |failed to load values: |error converting YAML to JSON: |yaml: |"
    r"error unmarshaling JSON: |while decoding JSON: |json: )+"
)
_AFTER_COMMA = ('key "', '" has no value')
_NOT_READ = re.compile(r"failed parsing --set")
_NO_VALUES = re.compile(r"cannot load values\.yaml: (?:cannot unmarshal yaml document: )?(?P<reason>.*)", re.DOTALL)
_ADVICE = "Use --debug flag to render out invalid YAML"


def render_error(raw: str, chart: str, asked: Asked | None = None) -> RenderError | UsageError:
    """Turn Helm's failure text into an error about the chart called `chart`, of which `asked` knows the schema.

    Where it is not the chart but an option that cannot be read, that is a UsageError.
    """
    # Warnings about kube configuration, symbolic links and the like come before the error.
    _, _, message = f"\n{raw}".rpartition("\nError: ")
    text = _NOISE.sub("", _without_advice(message or raw).strip())
    if _NOT_READ.match(text):
        return UsageError(_one_line(text), hint=explain_comma(text))
    if damaged := _NO_VALUES.match(text):
        reason = _one_line(_NOISE.sub("", damaged["reason"]))
        return RenderError(f"values.yaml of chart {chart} does not contain keys with values: {reason}", hint=DAMAGED)
    problems = find_refusals(text, asked or Asked())
    if problems:
        return RenderError(f"the values do not match the schema of chart {chart}", problems=problems)
    places = next((found for pattern in _PLACES if (found := list(pattern.finditer(text)))), None)
    if places is None:
        return RenderError(f"chart {chart} does not render: {_one_line(text)}", hint=explain_comma(text))
    message, hint = _template_message(text[places[-1].end() :], text)
    return RenderError(
        f"chart {chart} does not render", problems=(Problem(message, where=places[-1]["place"], hint=hint),)
    )


def explain_comma(message: str) -> str:
    """Return the hint on a set expression in which a comma of the value was taken for the end of it; "" for others."""
    before, after = _AFTER_COMMA
    for line in message.split("\n"):
        start, end = line.find(before) + len(before), line.rfind(after)
        if before in line and start <= end:
            part = line[start:end]
            return f"a comma starts the next KEY=VALUE: write \\,{part} for one in a string, or --set-json for a list"
    return ""


def clean_lint_message(text: str, asked: Asked | None = None) -> str:
    """Return one lint message on one line, without Helm's advice."""
    problems = find_refusals(text, asked or Asked())
    if problems:
        return "; ".join(problem.message for problem in problems)
    return _one_line(_without_advice(text))


def _without_advice(text: str) -> str:
    before, found, after = text.rpartition(_ADVICE)
    return before.rstrip("\n") if found and not after.strip() else text


def _template_message(after_place: str, text: str) -> tuple[str, str]:
    if "YAML parse error" in text:
        return f"renders to invalid YAML: {_NOISE.sub('', after_place.lstrip(': '))}", ""
    message = re.sub(r"^[):\s]+", "", after_place).rstrip()
    if match := _EXECUTING.match(_join_lines(message, " ")):
        hint = "a value that this template reads is not set" if "nil pointer" in match["message"] else ""
        return f"{match['expression']}: {match['message'].strip()}", hint
    return message, ""


def _one_line(text: str) -> str:
    return _join_lines(text, "; ")


def _join_lines(text: str, separator: str) -> str:
    return separator.join(line for each in text.split("\n") if (line := each.strip()))
