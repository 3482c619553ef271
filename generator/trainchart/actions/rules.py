"""What `trainchart rules` tells: every check rule as data, and as the page docs/checks.md."""

from __future__ import annotations

from trainchart.check.registry import RULES, find_rules
from trainchart.check.rule import Rule, Scope
from trainchart.errors import UsageError

_PAGE = """# Checks

`trainchart check` checks a chart (a folder or an archive), or plain manifests, against these rules. Third-party
charts are judged more leniently where a rule is only our style: the column *third-party* says how bad
a finding there can be.
`trainchart rules ID` explains one rule.

Objects of kinds that Kubernetes does not define are checked too: their names and labels, and the pod templates of
well-known kinds (TFJob, PyTorchJob, MPIJob, JobSet, RayCluster, Volcano's Job, …) by all rules about pods. Their other
fields are not checked; the summary and the JSON name these kinds.

## Accept a finding

A waiver always gives its reason. A comment on the line, or on the line above it, waives findings of that line. On the
first five lines of a file, or anywhere in a template, it waives those of the whole file:

    # trainchart: ignore[yaml-style] kept as the vendor wrote it
    {{- /* trainchart: ignore[labels] this object is read by name only */}}

In plain manifests, a comment inside an object waives the findings of that object. `.trainchart-check.yaml` holds the
waivers of a chart, or of a folder of manifests; `path` (a pattern) and `until` may be left out:

    waivers:
      - rule: images-pinned
        path: templates/debug.yaml
        reason: the debug image is rebuilt every night
        until: 2027-01-31

Waivers that give no reason, have expired, name no rule or silence nothing are findings of the rule `waivers`, and so is
a `.trainchart-check.yaml` that cannot be read.

## Rules

| rule | ours | third-party | applies to | why |
|---|---|---|---|---|
"""


def list_rules(rule_id: str | None = None) -> tuple[Rule, ...]:
    """Return all rules, or the one asked for. Raises UsageError for an id that there is not."""
    if rule_id is None:
        return RULES
    try:
        return find_rules((rule_id,))
    except KeyError as error:
        raise UsageError(str(error.args[0]), hint="trainchart rules lists all of them") from error


def dump_rules_page(rules: tuple[Rule, ...] = RULES) -> str:
    """Return the text of docs/checks.md."""
    rows = []
    for rule in rules:
        others = "—" if rule.scope is Scope.trainings else str(rule.others)
        why = f"[{rule.why}]({_link(rule.source)})"
        rows.append(f"| `{rule.id}` | {rule.severity} | {others} | {rule.scope.value} | {why} |")
    return _PAGE + "\n".join(rows) + "\n"


def _link(source: str) -> str:
    return source if source.startswith("https://") else source.removeprefix("docs/")
