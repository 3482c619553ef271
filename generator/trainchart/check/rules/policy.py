"""The rule that asks the packs of the project what they demand of objects."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import called
from trainchart.check.pod_templates import kubernetes_kind
from trainchart.check.rule import Rule
from trainchart.check.sources import chart_file
from trainchart.helm.rendering import Manifest

_TRIALS = "ci/"
"""Values that show that a chart renders, and are not installed."""


def check_policy(given: CheckInput) -> Iterator[Finding]:
    """Find objects that break the rules of packs."""
    chart = str(chart_file(given).get("name", "")) if given.is_chart else ""
    for label, rendering in given.renderings() if given.pack_rules else ():
        if not label.startswith(_TRIALS):
            for manifest in rendering.manifests:
                yield from _judge(given, manifest, chart, label)


def _judge(given: CheckInput, manifest: Manifest, chart: str, label: str) -> Iterator[Finding]:
    # Imported where it is needed: without packs, nothing of them is.
    from trainchart.packs.rules import judge_object
    from trainchart.packs.waivers import find_waiver

    for rule in given.pack_rules:
        if rule.rule.over != "objects" or kubernetes_kind(manifest) not in rule.kinds:
            continue
        broken = judge_object(rule, manifest.document)
        if not broken:
            continue
        severity, about = Severity(rule.rule.severity), rule.demand
        waiver = find_waiver(rule.waivers, chart)
        if waiver is not None and waiver.holds_on(given.today):
            severity, about = Severity.info, str(waiver)
        elif waiver is not None:
            about += f"; {waiver.ended}"
        message = f"{called(manifest)}: {broken}"
        yield Finding(message, manifest.source, manifest.line, severity, hint=about, values=label)


RULES = (
    Rule(
        "pack-policy",
        "The project's packs require this of all charts, and clusters may enforce it.",
        check_policy,
        "https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/",
        is_waivable=False,
    ),
)
