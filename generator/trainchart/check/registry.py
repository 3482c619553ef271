"""Every check rule with its id and the reason it exists. Adding a rule means adding one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainchart.check.finding import CheckInput, Finding
from trainchart.check.rules import files, helm, hosts, kubernetes, labels, names, values


@dataclass(frozen=True)
class Rule:
    """A check: its id in findings, why it matters, and the pure function that does it."""

    id: str
    why: str
    check: Callable[[CheckInput], Iterable[Finding]]


RULES = (
    Rule("helm-lint", "helm lint --strict is what chart repositories ask for first.", helm.check_lint),
    Rule(
        "renders",
        "A chart must install with its own values and with every ci/*-values.yaml.",
        helm.check_renders,
    ),
    Rule("values-schema", "A closed, correct schema refuses a typo at install.", values.check_values_schema),
    Rule(
        "kubernetes-schema",
        "An unknown or mistyped field is refused by the API server.",
        kubernetes.check_schemas,
    ),
    Rule(
        "objects-unique",
        "Two objects of one kind and name overwrite each other.",
        kubernetes.check_unique_objects,
    ),
    Rule("no-namespace", "The release decides the namespace, not the chart.", kubernetes.check_no_namespace),
    Rule(
        "entries-unique",
        "Server-side apply refuses a repeated name or port.",
        kubernetes.check_unique_entries,
    ),
    Rule("names-fit", "A StatefulSet with a name over 52 characters never starts a pod.", names.check_names_fit),
    Rule("releases-apart", "Two releases in one namespace must not share objects.", names.check_releases_apart),
    Rule(
        "stable-selectors",
        "A chart version in an immutable field breaks every upgrade.",
        labels.check_no_version,
    ),
    Rule("hosts-match", "TF_CONFIG must name the pods that exist, by names that resolve.", hosts.check_hosts),
    Rule("lock-drift", "Generated files that were edited are lost at the next generation.", files.check_drift),
    Rule("keys-unique", "A key written twice silently loses its first value.", files.check_unique_keys),
)
