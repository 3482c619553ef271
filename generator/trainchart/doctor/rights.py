"""What an account may do, from the rules that the API server lists for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trainchart.cluster.snapshot import Object, items_of
from trainchart.doctor.result import FAILED, OK, UNKNOWN, Result
from trainchart_runtime.run.judge import list_names

CHECK = "rights"
HELM_VERBS = ("get", "create", "patch", "delete")
"""What helm install, upgrade and uninstall do with each kind of object."""
_SECRETS = ("get", "list", "create", "update", "delete")
"""What Helm does with the Secrets that it keeps releases in."""
_READS = (("", "pods", "list"), ("", "pods/log", "get"), ("apps", "statefulsets", "list"), ("", "events", "list"))
"""What status, why and logs do."""


def check_rights(kinds: Iterable[tuple[str, str]], rules: Sequence[Object], *, is_complete: bool) -> Iterator[Result]:
    """Yield which rights the caller lacks for (group, plural) `kinds`, those of Helm and of trainchart included."""
    wanted = [(group, plural, verb) for group, plural in kinds for verb in HELM_VERBS]
    wanted += [("", "secrets", verb) for verb in _SECRETS]
    lacking = [each for each in dict.fromkeys(wanted) if not _allows(rules, *each)]
    if lacking and is_complete:
        words = list_names([_word(*each) for each in lacking])
        yield Result(
            CHECK,
            FAILED,
            f"you are not allowed to {words}",
            "ask an administrator for these permissions in the namespace",
        )
    elif lacking:
        words = list_names([_word(*each) for each in lacking])
        yield Result(
            CHECK, UNKNOWN, f"the API server does not say whether you may {words}", "kubectl auth can-i VERB KIND"
        )
    reads = [each for each in _READS if not _allows(rules, *each)]
    if reads and is_complete:
        words = list_names([_word(*each) for each in reads])
        yield Result(CHECK, UNKNOWN, f"status, why and logs will know less: you are not allowed to {words}")
    elif not lacking:
        yield Result(CHECK, OK, "you may install, upgrade, look at and uninstall the release")


def _allows(rules: Sequence[Object], group: str, plural: str, verb: str) -> bool:
    return any(
        _has(rule, "apiGroups", group) and _has(rule, "resources", plural) and _has(rule, "verbs", verb)
        for rule in rules
        if not rule.get("resourceNames")
    )


def _has(rule: Object, key: str, wanted: str) -> bool:
    found = rule.get(key)
    return isinstance(found, list) and (wanted in found or "*" in found)


def _word(group: str, plural: str, verb: str) -> str:
    return f"{verb} {plural}{f'.{group}' if group else ''}"


def read_rules(review: Object) -> tuple[Sequence[Object], bool]:
    """Return the rules in the answer of a SelfSubjectRulesReview, and whether they are all."""
    status = review.get("status")
    found = status if isinstance(status, dict) else {}
    return items_of(found, "resourceRules"), not found.get("incomplete")
