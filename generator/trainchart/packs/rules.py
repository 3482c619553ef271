"""Rules of packs: what every object of a chart, or every model spec, must satisfy, in CEL. Pure.

The same expression is evaluated where charts are checked and, by a ValidatingAdmissionPolicy (admission.py), by the API
server. So it uses the names of such policies: `object`, and the variables that are defined here for both.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from trainchart.errors import PlanError, Problem
from trainchart.packs.expressions import evaluate, require_boolean
from trainchart.packs.kinds import POD_KINDS, RESOURCES
from trainchart.packs.waivers import PackWaiver, find_waiver
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.typed import find_origin
from trainchart.spec.document import Origin, Path
from trainchart.spec.section import Line, Section

VARIABLES: Mapping[str, str] = {
    "pod": (
        "has(dyn(object.spec).jobTemplate) ? dyn(object.spec).jobTemplate.spec.template.spec"
        " : has(dyn(object.spec).template) ? dyn(object.spec).template.spec : dyn(object.spec)"
    ),
    "containers": (
        "variables.pod.containers + variables.pod.?initContainers.orValue([])"
        " + variables.pod.?ephemeralContainers.orValue([])"
    ),
}
"""What `variables.NAME` is, in CEL, for objects that are pods or make some. Not all kinds have all fields: `dyn`."""
OF_OBJECTS = ("object", "variables")
OF_SPECS = ("release", "spec")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_PATH_OF_SPEC = re.compile(r"\bspec((?:\.[A-Za-z]+)+)")
_LINK = re.compile(r"https?://[!-~]+")
_LABELLED = ("CronJob", "DaemonSet", "Deployment", "Ingress", "Job", "PersistentVolumeClaim", "Service", "StatefulSet")
"""Kinds that people create. Helm's own Secrets and what the cluster adds to a namespace have no such labels."""


class RuleFile(Section):
    """One rule as policy.yaml writes it."""

    expression: Annotated[str, Field(min_length=1)]
    """CEL that is true of what is allowed."""
    message: Annotated[Line, Field(min_length=1)]
    """What the rule demands, for users who broke it."""
    over: Literal["objects", "spec"] = "objects"
    """Whether it looks at each object of a chart, or at the completed model spec."""
    kinds: list[str] = Field(default_factory=list)
    """Kinds of the objects; those that are pods or make some, unless set."""
    severity: Literal["error", "warning"] = "error"
    """Whether an object that breaks the rule is refused or only reported."""
    link: Line = ""
    """Address of a page that says more."""


class Requirements(Section):
    """Common rules, for which no expression needs to be written."""

    labels: list[str] = Field(default_factory=list)
    """Labels that workloads, services and claims need."""
    registries: list[str] = Field(default_factory=list)
    """Registries, or repositories in them, that all images must come from."""
    digests: bool = False
    """Whether all images are named by digest."""
    limits: list[str] = Field(default_factory=list)
    """Resources, such as memory, that every container must limit."""
    devices: list[str] = Field(default_factory=list)
    """The extended resources, such as nvidia.com/gpu, that containers may have."""
    storage_classes: list[str] = Field(default_factory=list)
    """The storage classes of which claims may ask for storage."""
    forbidden: list[Annotated[str, Field(pattern=r"^[a-zA-Z]+$")]] = Field(default_factory=list)
    """Fields of pods, such as hostNetwork, that may not be set."""
    gpus_per_release: Annotated[int, Field(ge=0)] | None = None
    """The most GPUs that all pods of a release may have."""


@dataclass(frozen=True)
class PackRule:
    """A rule, its name, and where it is written."""

    name: str
    rule: RuleFile
    origin: Origin
    waivers: tuple[PackWaiver, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the objects that it looks at."""
        return tuple(self.rule.kinds) or POD_KINDS

    @property
    def demand(self) -> str:
        """Who demands it, and where one can read why."""
        link = f"; see {self.rule.link}" if self.rule.link else ""
        return f"the rule {self.name} of {self.origin.layer} ({self.origin}){link}"


def make_rules(
    requirements: Requirements,
    rules: Mapping[str, RuleFile],
    origins: Mapping[Path, Origin],
    waivers: Mapping[str, tuple[PackWaiver, ...]],
) -> tuple[PackRule, ...]:
    """Return all rules of a policy, the common ones first. `origins` are those of the file's keys."""
    written = [(name, rule, origins["requires", key]) for key, name, rule in _common_rules(requirements)]
    written += [(name, rule, origins["rules", name]) for name, rule in rules.items()]
    return tuple(PackRule(name, rule, origin, waivers.get(name, ())) for name, rule, origin in written)


def find_rule_problems(rules: Iterable[PackRule]) -> Iterator[Problem]:
    """Yield what is wrong with rules: names, kinds, links and expressions that do not hold together."""
    names: set[str] = set()
    for rule in rules:
        where = str(rule.origin)
        if not _NAME.fullmatch(rule.name):
            yield Problem(
                f"rules: {rule.name!r} is not a valid rule name", where, "use lower-case letters, digits and dashes"
            )
        if rule.name in names:
            yield Problem(f"rules: {rule.name} is also the name of a rule of requires", where, "choose another name")
        names.add(rule.name)
        if rule.rule.link and not _LINK.fullmatch(rule.rule.link):
            yield Problem(
                f"rules.{rule.name}.link: {rule.rule.link!r} is not a URL", where, "use a URL that starts with https://"
            )
        yield from _find_misplaced(rule, where)
        variables = OF_SPECS if rule.rule.over == "spec" else OF_OBJECTS
        try:
            require_boolean(rule.rule.expression, variables)
        except ValueError as error:
            hint = f"use CEL with {' and '.join(variables)}; see docs/packs.md"
            yield Problem(f"rules.{rule.name}.expression: {error}", where, hint)


def _find_misplaced(rule: PackRule, where: str) -> Iterator[Problem]:
    for kind in rule.rule.kinds:
        if kind not in RESOURCES:
            close = difflib.get_close_matches(kind, RESOURCES, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(RESOURCES)}"
            yield Problem(f"rules.{rule.name}.kinds: unknown kind {kind}", where, hint)
    if rule.rule.over == "spec" and (rule.rule.kinds or rule.rule.severity != "error"):
        what = f"rules.{rule.name}: kinds and severity apply only to rules over objects"
        yield Problem(what, where, "remove kinds and severity, or over")
    makes_pods = set(rule.kinds) <= set(POD_KINDS)
    if rule.rule.over == "objects" and "variables." in rule.rule.expression and not makes_pods:
        what = f"rules.{rule.name}: only pods and workloads have variables"
        yield Problem(what, where, f"use object, or limit kinds to: {', '.join(POD_KINDS)}")


def judge_object(rule: PackRule, document: Mapping[str, Any]) -> str:
    """Return how an object of one of the rule's kinds breaks the rule; empty where it does not."""
    try:
        variables = _variables_of(document) if document.get("kind") in POD_KINDS else {}
        is_allowed = evaluate(rule.rule.expression, {"object": document, "variables": variables})
    except ValueError as error:
        return f"{rule.rule.message} (the rule cannot be evaluated: {error})"
    return "" if is_allowed else rule.rule.message


def require_rules(plan: ChartPlan, rules: Iterable[PackRule], today: date) -> None:
    """Hold a completed spec against the rules over specs that are not waived for it on `today`.

    Raises:
        PlanError: names every rule that it breaks, the line of the spec that the rule is about, and the rule's own.
    """
    problems = [problem for rule in rules if rule.rule.over == "spec" for problem in _judge_spec(plan, rule, today)]
    if problems:
        raise PlanError(f"the spec of {plan.name} breaks rules of packs", problems=tuple(problems))


def _judge_spec(plan: ChartPlan, rule: PackRule, today: date) -> Iterator[Problem]:
    waiver = find_waiver(rule.waivers, plan.name)
    if waiver is not None and waiver.holds_on(today):
        return
    variables = {"spec": plan.spec.model_dump(by_alias=True, exclude_none=True), "release": _count(plan)}
    try:
        problem = "" if evaluate(rule.rule.expression, variables) else rule.rule.message
    except ValueError as error:
        problem = f"{rule.rule.message} (the rule cannot be evaluated: {error})"
    if problem:
        named = _PATH_OF_SPEC.search(rule.rule.expression)
        path = tuple(named[1].strip(".").split(".")) if named else ()
        ended = f"; {waiver.ended}" if waiver is not None else ""
        yield Problem(problem, str(find_origin(plan.origins, path)), f"{rule.demand}{ended}")


def _count(plan: ChartPlan) -> dict[str, int]:
    roles = [plan.spec.roles[role] for role in plan.roles]
    return {
        "gpus": sum(role.replicas * role.gpus for role in roles),
        "pods": sum(role.replicas for role in roles),
    }


def _variables_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `VARIABLES` say of an object. Raises ValueError where it has no pod."""
    spec: Any = document.get("spec")
    try:
        if "jobTemplate" in spec:
            spec = spec["jobTemplate"]["spec"]
        pod = spec["template"]["spec"] if "template" in spec else spec
        further = [entry for field in ("initContainers", "ephemeralContainers") for entry in pod.get(field) or ()]
        return {"pod": pod, "containers": [*pod["containers"], *further]}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("the object has no pod") from error


def _common_rules(wanted: Requirements) -> Iterator[tuple[str, str, RuleFile]]:
    """Yield the key of each requirement that is made, and the name and rule that it stands for."""
    registries = [registry.rstrip("/") + "/" for registry in wanted.registries]
    containers = "variables.containers.all(c, {})"
    resources = "c.?resources.?limits.orValue({})"
    texts = {
        "labels": (
            f"{_list(wanted.labels)}.all(l, l in object.metadata.?labels.orValue({{}}))",
            f"workloads, services and claims need the labels {_words(wanted.labels)}",
        ),
        "registries": (
            containers.format(f"{_list(registries)}.exists(r, c.image.startsWith(r))"),
            f"images must come from {_words(registries, 'or')}",
        ),
        "digests": (containers.format("c.image.matches('@sha256:[0-9a-f]{64}$')"), "images must be named by digest"),
        "limits": (
            containers.format(f"{_list(wanted.limits)}.all(r, r in {resources})"),
            f"containers must have limits for {_words(wanted.limits)}",
        ),
        "devices": (
            containers.format(f"{resources}.all(r, !r.contains('/') || r in {_list(wanted.devices)})"),
            f"containers can use only {_words(wanted.devices)} as extended resources",
        ),
        "storage_classes": (
            f"object.spec.?storageClassName.orValue('') in {_list(wanted.storage_classes)}",
            f"claims must use the storage class {_words(wanted.storage_classes, 'or')}",
        ),
        "forbidden": (
            " && ".join(f"!has(variables.pod.{field})" for field in wanted.forbidden),
            f"pods must not set {_words(wanted.forbidden, 'or')}",
        ),
        "gpus_per_release": (
            f"release.gpus <= {wanted.gpus_per_release}",
            f"a release can have at most {wanted.gpus_per_release} GPUs",
        ),
    }
    kinds = {"labels": _LABELLED, "storage_classes": ("PersistentVolumeClaim",)}
    for name, (expression, message) in texts.items():
        if getattr(wanted, name) not in ([], False, None):
            rule = RuleFile(
                expression=expression,
                message=message,
                over="spec" if name == "gpus_per_release" else "objects",
                kinds=list(kinds.get(name, ())),
            )
            yield to_camel(name), name.replace("_", "-"), rule


def _list(texts: Iterable[str]) -> str:
    """Return a list in CEL, whose texts are written as those of JSON."""
    return json.dumps(list(texts), ensure_ascii=False)


def _words(texts: list[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
