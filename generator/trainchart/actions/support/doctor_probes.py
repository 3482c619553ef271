"""Tries a cluster with pods for `trainchart doctor`: volumes, images, network and clocks."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trainchart.check.objects import find_images
from trainchart.cluster.io import probe
from trainchart.cluster.io.kubernetes_api import CLAIMS, NETWORK_POLICIES, KubernetesApi
from trainchart.cluster.snapshot import Object, Unreadable, name_of, section
from trainchart.doctor import storage
from trainchart.doctor.needs import PodGroup
from trainchart.doctor.probe import Probe, make_probe, own, plan_volumes
from trainchart.doctor.probe_results import Network, is_over, judge_probe
from trainchart.doctor.refusals import find_open_nodes
from trainchart.doctor.result import FAILED, UNKNOWN, WARNING, Result
from trainchart.doctor.room import Room
from trainchart.doctor.storage import Need, find_class
from trainchart.errors import Conflict, Forbidden, NotFound
from trainchart.helm.rendering import Rendering
from trainchart_runtime.run.judge import list_names

_PODS = 2
"""Of a probe, where there are so many nodes."""


@dataclass(frozen=True)
class Cluster:
    """What was read of a cluster before anything is tried."""

    api: KubernetesApi
    namespace: str
    version: tuple[int, int]
    claims: Sequence[Object]
    classes: Sequence[Object] | None
    """None where they may not be listed."""
    room: Room | Unreadable


def choose_needs(needs: Sequence[Need], results: Sequence[Result]) -> list[Need]:
    """Return the claims that can be tried: those without a failure so far."""
    failed = {each.subject for each in results if each.outcome == FAILED}
    return [need for need in needs if need.claim not in failed]


def examine_by_pods(
    cluster: Cluster,
    seconds: int,
    groups: Sequence[PodGroup],
    needs: Sequence[Need],
    rendering: Rendering,
    tell: Callable[[str], None],
) -> Iterator[Result]:
    """Yield what pods find that are like those of the largest role; all that they need goes when they have told.

    Raises:
        ClusterError: the cluster cannot be reached any more.
    """
    training = [group for group in groups if group.is_training and group.spec.get("containers")]
    if not training:
        return
    largest = max(training, key=lambda group: group.count)
    nodes = _name_open_nodes(largest, cluster.room)
    open_nodes = _PODS if nodes is None else len(nodes)
    shared: list[Need] = []
    alone: list[Need] = []
    for need in needs:
        known = {name_of(each): each for each in cluster.claims}
        if need.made is not None and need.claim in known:
            need = replace(need, made=None)
        elif need.made is not None and (reason := _find_risk(need, cluster.classes)):
            yield Result(storage.CHECK, UNKNOWN, f"the claim {need.claim} was not tried: {reason}", "", need.claim)
            continue
        (alone if _serves_one_node(need, known) else shared).append(need)
    about = _read_network(cluster, largest, rendering)
    images = find_images(rendering)
    if open_nodes < 1:
        yield Result("probe", UNKNOWN, f"no node can take the pods of {largest.name}, so nothing was tried with pods")
        return
    if open_nodes == 1 and len(training) + largest.count > 2:
        yield Result("probe", WARNING, "only one node can take the pods: the network between nodes was not tried")
    plans = [(shared, min(_PODS, open_nodes), images), *([(alone, 1, ())] if alone else [])]
    for chosen, count, pulled in plans:
        name = f"trainchart-doctor-{secrets.token_hex(3)}"
        volumes = plan_volumes(name, chosen, training)
        planned = make_probe(
            name, largest, volumes, pulled, probe.read_program(), nodes=nodes or (), count=count, seconds=seconds
        )
        tell(f"trying volumes, images and network with {count} pods ({name}) …")
        yield from _run_probe(cluster, planned, seconds, about)


def _find_risk(need: Need, classes: Sequence[Object] | None) -> str:
    """Return why a trial of a claim might leave a volume; "" where it would not."""
    if classes is None:
        return "you are not allowed to read its StorageClass, which may keep volumes, so the trial might leave one"
    made_by = find_class(need, classes)
    keeps = made_by is not None and made_by.get("reclaimPolicy") == "Retain"
    return "its class keeps volumes, so the trial would leave one" if keeps else ""


def _read_network(cluster: Cluster, group: PodGroup, rendering: Rendering) -> Network:
    """Return what decides what a probe can say about the network."""
    try:
        others = cluster.api.list_objects(NETWORK_POLICIES, cluster.namespace)
    except Forbidden:
        others = ()
    return Network(
        has_policy=any(each.kind == "NetworkPolicy" for each in rendering.manifests),
        has_others=bool(others),
        is_host=bool(group.spec.get("hostNetwork")),
    )


def _name_open_nodes(group: PodGroup, room: Room | Unreadable) -> list[str] | None:
    """Return the nodes that take pods of a group; None where the nodes are not known."""
    if isinstance(room, Unreadable):
        return None
    return [room.nodes[number].name for number in find_open_nodes(group, room)]


def _serves_one_node(need: Need, known: Mapping[str, Object]) -> bool:
    modes = need.modes if need.made is not None else section(known.get(need.claim, {}), "spec").get("accessModes") or []
    return not {"ReadWriteMany", "ReadOnlyMany"} & set(modes)


def _run_probe(cluster: Cluster, planned: Probe, seconds: int, network: Network) -> Iterator[Result]:
    api, namespace = cluster.api, cluster.namespace
    try:
        job = probe.create(api, namespace, planned.job)
    except (Forbidden, Conflict, NotFound) as error:
        yield Result("probe", UNKNOWN, f"nothing was tried with pods: {error.message}", error.hint)
        return
    try:
        for document in planned.owned:
            probe.create(api, namespace, own(document, job))
        pods, events = probe.watch(
            api,
            namespace,
            planned.name,
            seconds,
            lambda pods, events, passed: is_over(planned, pods, events, passed, seconds),
        )
        claims = _list_claims(api, namespace)
        results = judge_probe(planned, pods, events, network, claims=claims, classes=cluster.classes or ())
        # Two pods that fail alike are told once.
        yield from dict.fromkeys(results)
    except (Forbidden, Conflict, NotFound) as error:
        yield Result("probe", UNKNOWN, f"nothing was tried with pods: {error.message}", error.hint)
    finally:
        left = probe.remove(api, namespace, planned.name)
    if left:
        yield Result("probe", WARNING, f"not removed yet: {list_names(left)}", f"kubectl delete job {planned.name}")


def _list_claims(api: KubernetesApi, namespace: str) -> Sequence[Object]:
    """Return the claims as they are now, those of a probe included; none where they may not be listed."""
    try:
        return api.list_objects(CLAIMS, namespace)
    except Forbidden:
        return ()
