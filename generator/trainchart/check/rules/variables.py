"""Rules about references `$(NAME)` in containers: what Kubernetes cannot fill in stays text, and nothing tells so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from trainchart.check.finding import Finding, Severity
from trainchart.check.objects import Container, Pods, find_pods, list_at, mappings_at
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Rendering
from trainchart.variables import explain_text, find_references
from trainchart_runtime import contract

_OF_SERVICES = re.compile(r"KUBERNETES_.*|.*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_.*)?)")
"""Variables that Kubernetes adds for Services."""
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
"""What is called so is hardly a command of a shell, as in $(date)."""

_CIRCLE = "no order helps: write out the value of one of them"


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
    graph = {name: _references(value) for name, value in entries}
    before: set[str] = set()
    told: set[str] = set()
    for name, value in entries:
        for wanted in _references(value):
            # What envFrom brings stands before all of env, and may have this name as well.
            if wanted not in names - before or list_at(container.document, "envFrom"):
                continue
            way = _find_way(graph, wanted, name)
            if wanted == name:
                yield f"{name} refers to itself: $({name}) stays text", ""
            elif not way:
                what = f"{name} refers to {wanted}, which is defined after it: $({wanted}) stays text"
                yield what, f"put {wanted} before {name}"
            elif not told & {*way}:
                told |= {*way}
                circle = " → ".join((name, *way))
                yield f"variables refer to each other in a circle: {circle}: $({wanted}) stays text", _CIRCLE
        before.add(name)


def _references(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(reference) for reference in find_references(text)))


def _find_way(graph: Mapping[str, tuple[str, ...]], start: str, goal: str) -> tuple[str, ...]:
    """Return the shortest way from one variable to another along references, both included; empty without one."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    for way in ways:
        if way[-1] == goal:
            return way
        for name in graph.get(way[-1], ()):
            if name not in seen:
                seen.add(name)
                ways.append((*way, name))
    return ()


def _unknown(container: Container) -> Iterator[tuple[str, str]]:
    if list_at(container.document, "envFrom"):
        return
    names = {name for name, _ in _entries(container)}
    texts = [(name, value) for name, value in _entries(container)]
    words = [str(word) for field in ("command", "args") for word in list_at(container.document, field)]
    if contract.LAUNCHER_PATH not in words:  # it fills in more than Kubernetes does
        texts += [("the command", word) for word in words]
    for where, text in texts:
        for wanted in _references(text):
            if wanted not in names and _VARIABLE.fullmatch(wanted) and not _OF_SERVICES.fullmatch(wanted):
                yield f"there is no variable {wanted} for $({wanted}) in {where}", explain_text(wanted)


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
        "A reference to a variable that the container does not have reaches the program as plain text.",
        check_names,
        "https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/",
        severity=Severity.warning,
        others=Severity.info,
    ),
)
