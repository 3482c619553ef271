"""Rules about where pods may stand relative to each other: required affinity, anti-affinity and spread. Pure.

As the scheduler of Kubernetes reads them: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainchart.check.objects import mapping_at, mappings_at, selects
from trainchart.cluster.node_selection import is_selected
from trainchart.cluster.snapshot import Object
from trainchart.doctor.needs import PodGroup
from trainchart.doctor.room import Room

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_APART, _TOGETHER, _SPREAD = "apart", "together", "spread"


@dataclass(frozen=True)
class _Rule:
    kind: str
    key: str
    """The label of nodes whose value names the domain."""
    owner: int
    """The group that it restricts."""
    counted: frozenset[int]
    """Groups whose pods it counts."""
    before: Counter[str]
    """Pods that were there before, by domain."""
    max_skew: int = 0
    min_domains: int = 0
    domains: frozenset[str] = frozenset()
    """All domains that a spread looks at."""


@dataclass
class Standing:
    """How many pods of the groups stand in each domain, while they are being placed."""

    counts: list[Counter[str]]
    """Pods that a rule counts, by its index and the domain."""
    owners: list[Counter[str]] = field(default_factory=list)
    """Pods of the group that a rule restricts, by its index and the domain."""


class TopologyRules:
    """The rules of the groups of a release, and those that pods which are there already impose on them."""

    def __init__(self, groups: Sequence[PodGroup], room: Room, namespace: str) -> None:
        self._room = room
        self._namespace = namespace
        self._groups = groups
        self._rules = tuple(rule for owner in range(len(groups)) for rule in self._read(owner))
        self._closed = [self._find_closed(group) for group in groups]

    @property
    def are_idle(self) -> bool:
        """Whether there is no rule at all, as in most releases."""
        return not self._rules and not any(self._closed)

    def start(self) -> Standing:
        """Return the standing before the first pod is placed."""
        return Standing([Counter(rule.before) for rule in self._rules], [Counter() for _ in self._rules])

    def admit(self, group: int, node: int, standing: Standing) -> bool:
        """Say whether a pod of a group may stand on a node."""
        labels = self._room.nodes[node].labels
        if any(labels.get(key) == domain for key, domain in self._closed[group]):
            return False
        return all(self._admits(number, rule, group, labels, standing) for number, rule in enumerate(self._rules))

    def place(self, group: int, node: int, standing: Standing, change: int = 1) -> None:
        """Note that a pod of a group stands on a node; with a change of -1, that it does not any more."""
        labels = self._room.nodes[node].labels
        for number, rule in enumerate(self._rules):
            domain = labels.get(rule.key)
            if domain is not None and group in rule.counted:
                standing.counts[number][str(domain)] += change
            if domain is not None and group == rule.owner:
                standing.owners[number][str(domain)] += change

    def _admits(self, number: int, rule: _Rule, group: int, labels: Mapping[str, object], standing: Standing) -> bool:
        domain = labels.get(rule.key)
        if (
            rule.kind == _APART
            and group in rule.counted
            and domain is not None
            and standing.owners[number][str(domain)]
        ):
            return False
        if group != rule.owner:
            return True
        counts = standing.counts[number]
        if rule.kind == _APART:
            return domain is None or not counts[str(domain)]
        if domain is None:
            return False
        if rule.kind == _TOGETHER:
            is_first = group in rule.counted and not any(counts.values())
            return is_first or counts[str(domain)] > 0
        least = min((counts[each] for each in rule.domains), default=0)
        if len(rule.domains) < rule.min_domains:
            least = 0
        return counts[str(domain)] + (group in rule.counted) - least <= rule.max_skew

    def _read(self, owner: int) -> Iterator[_Rule]:
        spec = self._groups[owner].spec
        for kind, field_name in ((_APART, "podAntiAffinity"), (_TOGETHER, "podAffinity")):
            for term in mappings_at(spec, "affinity", field_name, _REQUIRED):
                yield self._make(kind, term, owner)
        for constraint in mappings_at(spec, "topologySpreadConstraints"):
            if constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
                yield self._make(_SPREAD, constraint, owner)

    def _make(self, kind: str, term: Object, owner: int) -> _Rule:
        key = str(term.get("topologyKey"))
        spec = self._groups[owner].spec
        eligible = [kind != _SPREAD or is_selected(spec, node.document) for node in self._room.nodes]
        before: Counter[str] = Counter()
        for pod in self._room.pods:
            domain = self._room.nodes[pod.node].labels.get(key)
            if domain is not None and eligible[pod.node] and self._matches(term, pod.labels, pod.namespace):
                before[str(domain)] += 1
        nodes = zip(self._room.nodes, eligible, strict=True)
        domains = (node.labels.get(key) for node, is_eligible in nodes if is_eligible)
        return _Rule(
            kind,
            key,
            owner,
            frozenset(
                number
                for number, group in enumerate(self._groups)
                if self._matches(term, group.labels, self._namespace)
            ),
            before,
            _read_number(term, "maxSkew", 1),
            _read_number(term, "minDomains", 0),
            frozenset(str(domain) for domain in domains if domain is not None),
        )

    def _matches(self, term: Object, labels: Mapping[str, object], namespace: str) -> bool:
        return _selects(term, labels) and _reaches(term, self._namespace, namespace)

    def _find_closed(self, group: PodGroup) -> frozenset[tuple[str, object]]:
        """Return the labels of nodes from which pods that are there already keep a group away."""
        closed = set()
        for pod in self._room.pods:
            for term in mappings_at(pod.spec, "affinity", "podAntiAffinity", _REQUIRED):
                if _selects(term, group.labels) and _reaches(term, pod.namespace, self._namespace):
                    key = str(term.get("topologyKey"))
                    closed.add((key, self._room.nodes[pod.node].labels.get(key)))
        return frozenset((key, domain) for key, domain in closed if domain is not None)


def _selects(term: Object, labels: Mapping[str, object]) -> bool:
    """Say whether the selector of a term matches; none matches nothing, an empty one everything."""
    return isinstance(term.get("labelSelector"), Mapping) and selects(mapping_at(term, "labelSelector"), labels)


def _reaches(term: Object, own: str, other: str) -> bool:
    """Say whether a term of a pod in the namespace `own` is about pods in `other`.

    Labels of namespaces are not looked at: a selector of namespaces counts as one of all.
    """
    named = term.get("namespaces")
    return isinstance(term.get("namespaceSelector"), Mapping) or other in (named or [own])


def _read_number(term: Object, key: str, default: int) -> int:
    found = term.get(key)
    return found if isinstance(found, int) else default
