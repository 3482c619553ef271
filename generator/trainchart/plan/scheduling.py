"""What the API server refuses in fields that choose a pod's node or resolve names, though its schema takes them. Pure.

As in pkg/apis/core/validation of Kubernetes. Specs and rendered pods name these fields alike, so both are held against
the rules here; Helm's part for those who install is templates/_refusals_pods.tpl.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.spec.section import LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN

Problem = tuple[str, str]
"""The field of the pod, and what is wrong with it."""
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_INTEGER = re.compile(r"[-+]?[0-9]+")
_MOST_NAMESERVERS = 3
_MOST_SEARCHES = 32
_LARGEST_WEIGHT = 100


def find_scheduling_problems(pod: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the API server refuses in tolerations, spread constraints, affinity, DNS settings and host aliases."""
    for number, toleration in _entries(pod.get("tolerations")):
        for problem in _toleration_problems(toleration):
            yield "tolerations", f"tolerations[{number}]: {problem}"
    for number, constraint in _entries(pod.get("topologySpreadConstraints")):
        for problem in _spread_problems(constraint):
            yield "topologySpreadConstraints", f"topologySpreadConstraints[{number}]: {problem}"
    for problem in _affinity_problems(_mapping(pod.get("affinity"))):
        yield "affinity", f"affinity.{problem}"
    yield from _dns_problems(pod.get("dnsPolicy"), _mapping(pod.get("dnsConfig")))
    for number, alias in _entries(pod.get("hostAliases")):
        if not _is_address(alias.get("ip")):
            yield "hostAliases", f"hostAliases[{number}]: ip {alias.get('ip')!r} is not an IP address"


def find_expression_problems(expression: Mapping[str, Any], *, of_nodes: bool = False) -> Iterator[str]:
    """Yield what is wrong with an entry of matchExpressions: of label selectors, or of those for nodes."""
    operator, values = expression.get("operator"), expression.get("values")
    count = len(values) if isinstance(values, list) else 0
    compares = of_nodes and operator in ("Gt", "Lt")
    if operator in ("In", "NotIn"):
        if not count:
            yield f"{operator} needs values"
    elif operator in ("Exists", "DoesNotExist"):
        if count:
            yield f"{operator} takes no values"
    elif compares:
        if count != 1 or not isinstance(values, list) or not _INTEGER.fullmatch(str(values[0])):
            yield f"{operator} needs exactly one value, an integer"
    else:
        known = "In, NotIn, Exists or DoesNotExist" + (", Gt or Lt" if of_nodes else "")
        yield f"operator {operator!r} is not {known}"
    for value in values if isinstance(values, list) and not compares else ():
        if isinstance(value, str) and not re.fullmatch(LABEL_VALUE_PATTERN, value):
            yield f"{value!r} is not a valid label value"


def _toleration_problems(toleration: Mapping[str, Any]) -> Iterator[str]:
    key, operator, value = toleration.get("key"), toleration.get("operator") or "Equal", toleration.get("value")
    if not key and operator != "Exists":
        yield f"operator {operator} needs a key; only Exists without a key tolerates every taint"
    if key and isinstance(key, str) and not re.fullmatch(LABEL_KEY_PATTERN, key):
        yield f"{key!r} is not a valid taint key"
    if operator == "Exists" and value:
        yield f"operator Exists takes no value, but has {value!r}; Equal compares values"
    elif operator == "Equal" and isinstance(value, str) and not re.fullmatch(LABEL_VALUE_PATTERN, value):
        yield f"{value!r} is not a valid taint value"
    elif operator in ("Gt", "Lt") and not _INTEGER.fullmatch(str(value)):
        yield f"operator {operator} compares integers, not {value!r}"
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        yield f"tolerationSeconds needs the effect NoExecute, not {toleration.get('effect') or 'none'}"


def _spread_problems(constraint: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(constraint.get("maxSkew"), int) and constraint["maxSkew"] < 1:
        yield f"maxSkew {constraint['maxSkew']} is not 1 or more"
    if not constraint.get("topologyKey"):
        yield "topologyKey is empty"
    if not constraint.get("whenUnsatisfiable"):
        yield "whenUnsatisfiable is empty: DoNotSchedule or ScheduleAnyway"
    domains = constraint.get("minDomains")
    if isinstance(domains, int) and domains < 1:
        yield f"minDomains {domains} is not 1 or more"
    if domains is not None and constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
        yield "minDomains needs whenUnsatisfiable DoNotSchedule"


def _affinity_problems(affinity: Mapping[str, Any]) -> Iterator[str]:
    nodes = _mapping(affinity.get("nodeAffinity"))
    if isinstance(nodes.get(_REQUIRED), Mapping) and not nodes[_REQUIRED].get("nodeSelectorTerms"):
        yield f"nodeAffinity.{_REQUIRED}.nodeSelectorTerms is empty"
    for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        affinities = _mapping(affinity.get(kind))
        for number, weighted in _entries(affinities.get(_PREFERRED)):
            weight = weighted.get("weight")
            if isinstance(weight, int) and not 1 <= weight <= _LARGEST_WEIGHT:
                yield f"{kind}.{_PREFERRED}[{number}]: weight {weight} is not between 1 and {_LARGEST_WEIGHT}"
            if kind != "nodeAffinity" and not _mapping(weighted.get("podAffinityTerm")).get("topologyKey"):
                yield f"{kind}.{_PREFERRED}[{number}].podAffinityTerm: topologyKey is empty"
        for number, term in _entries(affinities.get(_REQUIRED)):
            if not term.get("topologyKey"):
                yield f"{kind}.{_REQUIRED}[{number}]: topologyKey is empty"


def _dns_problems(policy: object, config: Mapping[str, Any]) -> Iterator[Problem]:
    servers, searches = config.get("nameservers"), config.get("searches")
    if policy == "None" and not servers:
        yield "dnsPolicy", "dnsPolicy None needs dnsConfig.nameservers"
    for server in servers if isinstance(servers, list) else ():
        if not _is_address(server):
            yield "dnsConfig", f"dnsConfig.nameservers: {server!r} is not an IP address"
    for field, found, most in (("nameservers", servers, _MOST_NAMESERVERS), ("searches", searches, _MOST_SEARCHES)):
        if isinstance(found, list) and len(found) > most:
            yield "dnsConfig", f"dnsConfig.{field}: {len(found)} entries, but the limit is {most}"
    for number, option in _entries(config.get("options")):
        if not option.get("name"):
            yield "dnsConfig", f"dnsConfig.options[{number}]: name is empty"


def _is_address(text: object) -> bool:
    try:
        ipaddress.ip_address(str(text))
    except ValueError:
        return False
    return True


def _mapping(node: object) -> Mapping[str, Any]:
    return node if isinstance(node, Mapping) else {}


def _entries(node: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    found = node if isinstance(node, list) else []
    return ((number, entry) for number, entry in enumerate(found) if isinstance(entry, Mapping))
