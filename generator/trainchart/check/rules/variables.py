"""Rules about references `$(NAME)` in containers: what Kubernetes cannot fill in stays text, and nothing tells so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from trainchart.check.finding import Finding, Severity
from trainchart.check.objects import Container, Pods, find_pods, list_at, mappings_at
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Rendering
from trainchart.variables import find_references
from trainchart_runtime import contract

_OF_SERVICES = re.compile(r"KUBERNETES_.*|.*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_.*)?)")
"""Variables that Kubernetes adds for Services."""
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
"""What is called so is hardly a command of a shell, as in $(date)."""


@for_each_rendering
def check_order(rendering: Rendering) -> Iterator[Finding]:
    """Find variables that refer to themselves, or to one that stands behind them."""
    yield from _look(rendering, _disorder, Severity.error)


@for_each_rendering
def check_names(rendering: Rendering) -> Iterator[Finding]:
    """Find references to variables that the container does not have."""
    yield from _look(rendering, _unknown, Severity.warning)


def _look(
    rendering: Rendering, find: Callable[[Container], Iterator[tuple[str, str]]], severity: Severity
) -> Iterator[Finding]:
    for pods in find_pods(rendering):
        for container in pods.containers:
            for problem, hint in find(container):
                yield _finding(pods, container, problem, hint, severity)


def _finding(pods: Pods, container: Container, problem: str, hint: str, severity: Severity) -> Finding:
    return Finding(
        f"{pods.called}: {container.where}: {problem}",
        path=pods.manifest.source,
        line=pods.manifest.line,
        hint=hint,
        severity=severity,
    )


def _disorder(container: Container) -> Iterator[tuple[str, str]]:
    entries = list(_entries(container))
    names = {name for name, _ in entries}
    before: set[str] = set()
    for name, value in entries:
        for wanted in dict.fromkeys(str(reference) for reference in find_references(value)):
            # What envFrom brings stands before all of env, and may have this name as well.
            if wanted in names - before and not list_at(container.document, "envFrom"):
                where = "itself" if wanted == name else f"{wanted}, which is defined after it"
                yield (
                    f"{name} refers to {where}: $({wanted}) stays text",
                    f"put {wanted} before {name}" * (wanted != name),
                )
        before.add(name)


def _unknown(container: Container) -> Iterator[tuple[str, str]]:
    if list_at(container.document, "envFrom"):
        return
    names = {name for name, _ in _entries(container)}
    texts = [(name, value) for name, value in _entries(container)]
    words = [str(word) for field in ("command", "args") for word in list_at(container.document, field)]
    if contract.LAUNCHER_PATH not in words:  # it fills in more than Kubernetes does
        texts += [("the command", word) for word in words]
    for where, text in texts:
        for wanted in dict.fromkeys(str(reference) for reference in find_references(text)):
            if wanted not in names and _VARIABLE.fullmatch(wanted) and not _OF_SERVICES.fullmatch(wanted):
                yield f"there is no variable {wanted} for $({wanted}) in {where}", f"$$({wanted}) for the text itself"


def _entries(container: Container) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the environment, in order; a value from elsewhere holds no references."""
    for entry in mappings_at(container.document, "env"):
        yield str(entry.get("name")), str(entry.get("value") or "")


RULES = (
    Rule(
        "variables-ordered",
        "Kubernetes fills in $(NAME) only from variables that are defined earlier; other references are left as text.",
        check_order,
        "https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/",
    ),
    Rule(
        "variables-known",
        "A reference to a variable that the container does not have reaches the program as text.",
        check_names,
        "https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/",
        severity=Severity.warning,
        others=Severity.info,
    ),
)
