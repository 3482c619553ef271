"""The use case `trainchart doctor`: can this cluster run this chart? It tries, and leaves nothing behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.doctor_probes import Cluster, choose_needs, examine_by_pods
from trainchart.actions.support.given_values import merge_values, read_overrides
from trainchart.actions.support.target import open_target
from trainchart.check.objects import called, is_hook, mapping_at
from trainchart.check.sources import VALUES_FILE
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import Kind, KubernetesApi
from trainchart.cluster.io.queues import LOCAL_QUEUES
from trainchart.cluster.queues import find_queue
from trainchart.cluster.snapshot import Object, Unreadable, has_ended, name_of, section
from trainchart.doctor import admission, quota, rights, storage
from trainchart.doctor.admission import Trial
from trainchart.doctor.cluster_results import check_gpus, judge_version, word_fit
from trainchart.doctor.needs import PodGroup, find_groups, make_group
from trainchart.doctor.packing import judge_fit
from trainchart.doctor.result import FAILED, OK, UNKNOWN, Result
from trainchart.doctor.room import Room, read_room
from trainchart.doctor.storage import Need
from trainchart.errors import ClusterError, Conflict, Forbidden, NotFound, Unauthorized, Unreachable
from trainchart.helm.io.choose import find_engine
from trainchart.helm.io.inputs import require_release_name
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart_runtime.contract import INSTANCE_LABEL
from trainchart_runtime.run.judge import list_names

_NOT_FOUND = "not found"
_CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True)
class Request:
    """What is to be examined, and where."""

    target: str
    """A chart folder, a chart archive, a model spec file, or the name of a model in models/."""
    place: Place = field(default_factory=Place)
    release: str = ""
    values: tuple[Path, ...] = ()
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    set_jsons: tuple[str, ...] = ()
    engine: str = ""
    probes: bool = True
    """Whether pods are started that try volumes, images and network."""
    seconds: int = 300
    """How long these pods may take, the pull of the image included."""


def examine(request: Request, tell: Callable[[str], None]) -> Iterator[Result]:
    """Yield the results of all checks, each when it is known; `tell` gets a line when something takes longer.

    Raises:
        ClusterError: the cluster cannot be reached, or does not know who asks.
        RenderError, ToolError: the chart does not render with these values, or is not there.
    """
    with open_target(request.target, "") as target:
        release = request.release or target.chart_name
        require_release_name(release)
        api, namespace = open_cluster(request.place)
        overrides, engine = (
            read_overrides(request.values, request.sets, request.set_strings, request.set_jsons),
            find_engine(request.engine or "auto"),
        )
        rendering = engine.render(target.chart, release=release, namespace=namespace, overrides=overrides)
        takes_over = _takes_claims_over(target.chart, merge_values(engine, overrides))
    version = api.read_version()
    yield judge_version(version)
    missing = _find_missing_namespace(api, namespace)
    if missing:
        yield missing
        return
    needs, groups = storage.find_needs(rendering), find_groups(rendering)
    claims, classes = _list(api, kubernetes_api.CLAIMS, namespace), _list(api, kubernetes_api.STORAGE_CLASSES, "")
    own = _list_own_pods(api, namespace, release)
    cluster = Cluster(api, namespace, version, claims or (), classes, _read_room(api, own))
    kinds = _Kinds(api)
    trials = list(_try_objects(cluster, rendering, kinds))
    yield from _examine_admission(cluster, rendering, kinds, trials)
    pods = [_try_pod(api, namespace, group) for group in groups]
    yield from admission.check_pods(pods)
    yield from admission.check_sidecars(groups, pods)
    complete = admission.complete_groups(groups, pods)
    # A claim that is there is refused by a full quota before its name is looked at.
    there = {trial.name for trial in trials if trial.is_there} | {f"{_CLAIM} {name_of(each)}" for each in claims or ()}
    manifests = [each for each in rendering.manifests if called(each) not in there]
    yield from _examine_quota(cluster, complete, needs, manifests, [make_group(pod) for pod in own])
    yield from _examine_room(cluster, complete)
    yield from _examine_queue(cluster, rendering)
    if claims is None:
        yield Result(
            storage.CHECK,
            UNKNOWN,
            "you are not allowed to list the claims of the namespace, so they are not checked",
        )
        found: list[Result] = []
    else:
        is_installed = any(name.startswith("StatefulSet ") for name in there)
        found = list(storage.check_claims(needs, claims, classes, version, is_kept_used=takes_over or is_installed))
    yield from found
    if request.probes:
        usable = choose_needs(needs, found)
        yield from examine_by_pods(cluster, request.seconds, complete, usable, rendering, tell)


def _takes_claims_over(chart: Path, given: Mapping[str, Any]) -> bool:
    """Say whether the values let a release go on from claims that an earlier one has left."""
    with suppress(YamlError):
        own = parse_mapping(read_chart_files(chart).get(VALUES_FILE, b"").decode(errors="replace"))
        for values in (given, own):
            found = mapping_at(values, "run").get("resume")
            if found is not None:
                return bool(found != "never")
    return False


def _list_own_pods(api: KubernetesApi, namespace: str, release: str) -> tuple[Object, ...]:
    """Return the pods that an installed release of this name has; none where they may not be listed."""
    try:
        pods = api.list_objects(kubernetes_api.PODS, namespace, labels=f"{INSTANCE_LABEL}={release}")
    except Forbidden:
        return ()
    return tuple(pod for pod in pods if not has_ended(pod))


def _find_missing_namespace(api: KubernetesApi, namespace: str) -> Result | None:
    try:
        found = api.list_objects(kubernetes_api.NAMESPACES, "", fields=f"metadata.name={namespace}")
    except Forbidden:
        return None
    if not found:
        return Result(
            "namespace",
            FAILED,
            f"there is no namespace {namespace}",
            f"create it: kubectl create namespace {namespace}",
        )
    if section(found[0], "metadata").get("deletionTimestamp"):
        return Result("namespace", FAILED, f"the namespace {namespace} is being deleted", "wait, or name another: -n")
    return None


def _list(api: KubernetesApi, kind: Kind, namespace: str) -> tuple[Object, ...] | None:
    """Return the objects of a kind; None where this user may not list them."""
    try:
        return api.list_objects(kind, namespace)
    except Forbidden:
        return None


def _read_room(api: KubernetesApi, own: Sequence[Object]) -> Room | Unreadable:
    """Return what is free on the nodes; what the installed release itself holds counts as free."""
    try:
        nodes, pods = api.list_objects(kubernetes_api.NODES, ""), api.list_objects(kubernetes_api.PODS, "")
    except Forbidden as error:
        return Unreadable("nodes and their pods", "forbidden", error.message)
    uids = {section(pod, "metadata").get("uid") for pod in own}
    return read_room(nodes, [pod for pod in pods if section(pod, "metadata").get("uid") not in uids])


def _try_objects(cluster: Cluster, rendering: Rendering, kinds: _Kinds) -> Iterator[Trial]:
    """Have the API server admit every object of the release but hooks; a kind that it does not know is no trial."""
    roles = {each.name for each in rendering.manifests if each.kind == "Role"}
    for manifest in rendering.manifests:
        kind = None if is_hook(manifest) else kinds.find(manifest)
        if kind is not None:
            trial = _try_object(cluster, manifest, kind)
            is_bound = manifest.kind == "RoleBinding" and mapping_at(manifest.document, "roleRef").get("name") in roles
            # On trial, the Role of the same release does not exist, and only those who may bind any are not asked.
            yield replace(trial, refusal="") if is_bound and _NOT_FOUND in trial.refusal else trial


def _examine_admission(
    cluster: Cluster, rendering: Rendering, kinds: _Kinds, trials: Sequence[Trial]
) -> Iterator[Result]:
    manifests = [each for each in rendering.manifests if not is_hook(each)]
    known = {called(each): found for each in manifests if (found := kinds.find(each)) is not None}
    unknown = sorted(
        {f"{each.document.get('apiVersion')} {each.kind}" for each in manifests if called(each) not in known}
    )
    if unknown:
        yield Result(
            admission.OBJECTS,
            FAILED,
            f"the cluster does not know {list_names(unknown)}",
            "install what provides this kind, or leave the objects out",
        )
    yield from admission.check_objects(trials)
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": cluster.namespace},
    }
    kind = Kind("apis/authorization.k8s.io/v1", "selfsubjectrulesreviews")
    rules, is_complete = rights.read_rules(cluster.api.create_object(kind, "", review))
    named = [(_group_of(each), known[called(each)][0].plural) for each in manifests if _is_namespaced(known, each)]
    yield from rights.check_rights(dict.fromkeys(named), rules, is_complete=is_complete)


def _is_namespaced(known: Mapping[str, tuple[Kind, bool]], manifest: Manifest) -> bool:
    return called(manifest) in known and known[called(manifest)][1]


class _Kinds:
    """Finds the paths of kinds by the discovery of the API server, each group asked once."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._known: dict[str, tuple[Mapping[str, Any], ...]] = {}

    def find(self, manifest: Manifest) -> tuple[Kind, bool] | None:
        """Return the kind of an object and whether it belongs to a namespace; None where the cluster has no such."""
        version = str(manifest.document.get("apiVersion"))
        path = f"apis/{version}" if "/" in version else f"api/{version}"
        if path not in self._known:
            try:
                self._known[path] = self._api.list_resources(path)
            except NotFound:
                self._known[path] = ()
        found = (each for each in self._known[path] if each.get("kind") == manifest.kind)
        own = next((each for each in found if "/" not in str(each.get("name"))), None)
        return None if own is None else (Kind(path, str(own.get("name"))), bool(own.get("namespaced")))


def _group_of(manifest: Manifest) -> str:
    group, _, version = str(manifest.document.get("apiVersion")).partition("/")
    return group if version else ""


def _try_object(cluster: Cluster, manifest: Manifest, kind: tuple[Kind, bool]) -> Trial:
    place, is_namespaced = kind
    own_namespace = str(mapping_at(manifest.document, "metadata").get("namespace") or cluster.namespace)
    namespace = own_namespace if is_namespaced else ""
    return _try(cluster.api, place, namespace, manifest.document, called(manifest))


def _try_pod(api: KubernetesApi, namespace: str, group: PodGroup) -> Trial:
    document = {**group.pod, "metadata": {**mapping_at(group.pod, "metadata"), "name": "trainchart-doctor"}}
    return _try(api, kubernetes_api.PODS, namespace, document, group.name)


def _try(api: KubernetesApi, kind: Kind, namespace: str, document: Object, name: str) -> Trial:
    """Have the API server admit an object on trial."""
    try:
        return Trial(name, api.create_object(kind, namespace, document, is_trial=True))
    except (Unauthorized, Unreachable):
        raise
    except Conflict as error:
        return Trial(name, None, _drop_request(error.message), is_there=True)
    except ClusterError as error:
        return Trial(name, None, _drop_request(error.message))


def _drop_request(message: str) -> str:
    """Return what the API server says, without what it was asked to do."""
    return message.removeprefix("cannot ").partition(": ")[2] or message


def _examine_quota(
    cluster: Cluster,
    groups: Sequence[PodGroup],
    needs: Sequence[Need],
    manifests: Sequence[Manifest],
    held: Sequence[PodGroup],
) -> Iterator[Result]:
    quotas = _list(cluster.api, kubernetes_api.QUOTAS, cluster.namespace)
    if quotas is None:
        yield Result(quota.CHECK, UNKNOWN, "you are not allowed to list the ResourceQuotas of the namespace")
        return
    there = set(map(name_of, cluster.claims))
    missing = [need for need in needs if need.claim not in there]
    yield from quota.check_quotas(quotas, groups, missing, cluster.classes or (), manifests, held)


def _examine_room(cluster: Cluster, groups: Sequence[PodGroup]) -> Iterator[Result]:
    room = cluster.room
    if isinstance(room, Unreadable):
        yield Result(
            "fit",
            UNKNOWN,
            "it is not known whether there are nodes for the pods: you are not allowed to list nodes and the pods "
            "of all namespaces",
        )
        return
    yield from check_gpus(groups, room)
    yield word_fit(judge_fit(groups, room, cluster.namespace, random.Random(0)), groups, room)


def _examine_queue(cluster: Cluster, rendering: Rendering) -> Iterator[Result]:
    name = find_queue(tuple(each.document for each in rendering.manifests if each.kind == "StatefulSet"))
    if not name:
        return
    try:
        found = cluster.api.list_objects(LOCAL_QUEUES, cluster.namespace, fields=f"metadata.name={name}")
    except NotFound:
        yield Result(
            "queue", FAILED, "run.queue is set, but the cluster has no Kueue", "install Kueue, or leave run.queue empty"
        )
    except Forbidden as error:
        yield Result("queue", UNKNOWN, error.message, error.hint)
    else:
        is_there = bool(found)
        what = "exists" if is_there else f"does not exist in {cluster.namespace}"
        yield Result(
            "queue",
            OK if is_there else FAILED,
            f"the LocalQueue {name} {what}",
            "" if is_there else "kubectl get localqueues lists those of the namespace: name one in run.queue",
        )
