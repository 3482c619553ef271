"""Parses `--kill POD@TIME`: the failure that a user injects into a local run. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trainchart.errors import Problem, ToolError, TrainchartError, UsageError

_FORM = re.compile(r"(?P<label>[a-z][a-z0-9-]*)@(?P<amount>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class KillRequest:
    label: str
    after_seconds: float
    """Counted from the start of the run, whatever restarts until then."""
    text: str
    """As the user wrote it."""

    def explain_miss(self, run_seconds: float) -> str:
        """Return why the kill was not done, in a run that took so long."""
        if run_seconds < self.after_seconds:
            return f"--kill {self.text} had no effect: the run ended before that, after {run_seconds:.1f} s"
        return f"--kill {self.text} had no effect: {self.label} had ended by then"


def parse_kills(texts: Sequence[str], labels: Collection[str]) -> tuple[KillRequest, ...]:
    """Parse all requests, sorted by time; `labels` are the pods there are.

    Raises:
        UsageError: a request is not POD@TIME.
        ToolError: a request names a pod that does not exist. Both errors have one problem for each bad request.
    """
    problems = []
    requests = []
    refusal: type[TrainchartError] = ToolError
    for text in texts:
        match = _FORM.fullmatch(text.strip())
        if match is None:
            refusal = UsageError
            problems.append(Problem(f"--kill {text!r} is not POD@TIME", hint="for example `--kill worker-1@20s`"))
        elif match["label"] not in labels:
            problems.append(
                Problem(f"--kill {text!r}: there is no pod {match['label']!r}", hint=f"pods: {', '.join(labels)}")
            )
        else:
            requests.append(KillRequest(match["label"], float(match["amount"]) * _SECONDS[match["unit"]], match[0]))
    if problems:
        raise refusal("the failures to inject do not match this run", problems=tuple(problems))
    return tuple(sorted(requests, key=lambda request: request.after_seconds))
