"""Says which ServiceAccounts may delete a run's pods, and which pods use them, where pods are deleted again. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from trainchart.cluster.snapshot import Object, Objects, items_of, listed, name_of, namespace_of, owner_of, section
from trainchart.reports.report import Report
from trainchart_runtime.pod_causes import POD_DELETED
from trainchart_runtime.run.judge import list_names

_OFTEN = 2
_SHOWN = 4
"""Accounts, and pods of each."""
_OF_THE_CLUSTER = "kube-system"
"""What Kubernetes itself runs may delete any pod, and hardly ever is what deletes these."""
_OF_CRON_JOB = re.compile(r"^Job (.+)-\d{8}$")
"""A Job is named by its CronJob and the minute of its time."""
_DELETES = {"delete", "deletecollection", "*"}


class Rights(NamedTuple):
    """Who has which rights in a namespace; what may not be read is Unreadable."""

    roles: Objects
    role_bindings: Objects
    cluster_roles: Objects
    cluster_role_bindings: Objects


def loses_pods(report: Report) -> bool:
    """Say whether pods of a run that is not over have been deleted more than once."""
    deleted = Counter(each.pod for each in report.incidents if each.cause == POD_DELETED.name)
    return not report.is_over and max(deleted.values(), default=0) >= _OFTEN


def find_deleters(report: Report, own_account: str, rights: Rights, pods: Objects) -> Iterator[str]:
    """Yield which ServiceAccounts, other than that of the run's controller, may delete pods, and what uses them.

    `pods` are those of the namespace.
    """
    namespace = report.key.namespace
    found: dict[tuple[str, str], str] = {}
    for binding in (*listed(rights.role_bindings), *listed(rights.cluster_role_bindings)):
        if _grants_deletion(binding, rights):
            kind = "RoleBinding" if namespace_of(binding) else "ClusterRoleBinding"
            for account in _find_accounts(binding):
                if account[0] != _OF_THE_CLUSTER and account != (namespace, own_account):
                    found.setdefault(account, f"{kind} {name_of(binding)}")
    told = [_describe(account, by, namespace, listed(pods)) for account, by in sorted(found.items())]
    # One that pods of the namespace use is likelier than one that may do so from elsewhere.
    told.sort(key=lambda words: "used by" not in words)
    if told:
        more = f", and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        yield (
            f"these ServiceAccounts may delete pods in {namespace}: {list_names(told[:_SHOWN])}{more}. Check first "
            "whether a program that uses them deletes the run's pods"
        )


def _find_accounts(binding: Object) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of the ServiceAccounts that a binding names."""
    for subject in items_of(binding, "subjects"):
        if subject.get("kind") == "ServiceAccount":
            yield str(subject.get("namespace") or namespace_of(binding)), str(subject.get("name"))


def _grants_deletion(binding: Object, rights: Rights) -> bool:
    role = section(binding, "roleRef")
    if role.get("kind") == "Role":
        known: Iterable[Object] = listed(rights.roles)
    else:
        known = listed(rights.cluster_roles)
    return any(name_of(each) == role.get("name") and _deletes_pods(each) for each in known)


def _deletes_pods(role: Object) -> bool:
    """Say whether a role may delete any pods; the right to delete one by its name does not count."""
    for rule in items_of(role, "rules"):
        groups, resources, verbs = (set(_words(rule, key)) for key in ("apiGroups", "resources", "verbs"))
        is_about_pods = groups & {"", "*"} and resources & {"pods", "*"}
        if is_about_pods and verbs & _DELETES and not _words(rule, "resourceNames"):
            return True
    return False


def _words(rule: Object, key: str) -> list[str]:
    found = rule.get(key)
    return [str(word) for word in found] if isinstance(found, list) else []


def _describe(account: tuple[str, str], by: str, namespace: str, pods: Sequence[Object]) -> str:
    name = account[1] if account[0] == namespace else "/".join(account)
    users = [pod for pod in pods if section(pod, "spec").get("serviceAccountName") == account[1]]
    makers = (_OF_CRON_JOB.sub(r"CronJob \1", owner_of(pod)) for pod in users)
    owners = list(dict.fromkeys(maker or f"pod {name_of(pod)}" for maker, pod in zip(makers, users, strict=True)))
    used = f", used by {', '.join(owners[:_SHOWN])}" if owners and account[0] == namespace else ""
    return f"{name} ({by}{used})"
