"""Looks at releases through the Kubernetes API, and finds the one that is asked for. Objects are found by labels only.

What may not be read becomes Unreadable and the look goes on; what cannot be reached ends it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from trainchart.cluster.helm_record import DEPLOYED, FAILED, PENDING
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import Kind, KubernetesApi
from trainchart.cluster.pod_deleters import Rights
from trainchart.cluster.snapshot import (
    CONTROLLER,
    Object,
    Objects,
    Snapshot,
    Unreadable,
    drop_damaged,
    find_trainings,
    leave_out_damaged,
    listed,
    name_of,
)
from trainchart.errors import ClusterError, Forbidden, NotFound, TooLong
from trainchart.name_order import natural_key
from trainchart.reports.report import TrainingKey
from trainchart_runtime.contract import COMPONENT_LABEL, INSTANCE_LABEL, TRAINING_LABEL

_ADMISSION_POLICIES = Kind("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies")
_ADMISSION_WEBHOOKS = Kind("apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations")
_VOLUMES_READ = 8
"""Each takes a request."""
_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?")
_NAMES_SHOWN = 8
_TRAINING_PODS = f"{TRAINING_LABEL}=true"
_WARNINGS = "type!=Normal"


def look_at_all(api: KubernetesApi, namespace: str) -> Snapshot:
    """Return everything of trainchart in a namespace, or with an empty one in the cluster; events left out.

    Raises:
        Forbidden: the user may not list the trainings.
    """
    owned = f"{COMPONENT_LABEL}={CONTROLLER},{INSTANCE_LABEL}"
    seen = Snapshot(
        now=time.time(),
        sets=_list_sets(api, namespace),
        pods=_list(api, kubernetes_api.PODS, namespace, _TRAINING_PODS),
        records=_list(api, kubernetes_api.CONFIG_MAPS, namespace, owned),
        jobs=_list(api, kubernetes_api.JOBS, namespace, owned),
    )
    return leave_out_damaged(seen)


def look_at_release(api: KubernetesApi, namespace: str, release: str) -> Snapshot:
    """Return what is there of a release; of others too where they have no labels, such as events."""
    labels = f"{INSTANCE_LABEL}={release}"
    seen = Snapshot(
        now=time.time(),
        sets=_list(api, kubernetes_api.STATEFUL_SETS, namespace, labels),
        pods=_list(api, kubernetes_api.PODS, namespace, labels),
        records=_list(api, kubernetes_api.CONFIG_MAPS, namespace, labels),
        jobs=_list(api, kubernetes_api.JOBS, namespace, labels),
        events=_list(api, kubernetes_api.EVENTS, namespace, "", fields=_WARNINGS),
    )
    return leave_out_damaged(seen)


def read_events(api: KubernetesApi, namespace: str) -> Objects:
    """Return the warnings of a namespace."""
    return drop_damaged(_list(api, kubernetes_api.EVENTS, namespace, "", fields=_WARNINGS))


def read_events_about(api: KubernetesApi, namespace: str, pod: str) -> Objects:
    """Return all Events about a pod, not only warnings."""
    return drop_damaged(_list(api, kubernetes_api.EVENTS, namespace, "", fields=f"involvedObject.name={pod}"))


def read_policies(api: KubernetesApi, namespace: str) -> Objects:
    """Return the NetworkPolicies of a namespace."""
    return _list(api, kubernetes_api.NETWORK_POLICIES, namespace, "")


def read_autoscalers(api: KubernetesApi, namespace: str) -> Objects:
    """Return the autoscalers of a namespace, as far as its cluster knows such kinds."""
    return _list_known(api, (kubernetes_api.POD_AUTOSCALERS, kubernetes_api.VERTICAL_AUTOSCALERS), namespace)


def read_admission(api: KubernetesApi) -> Objects:
    """Return the admission policies and webhook configurations that may refuse pods."""
    return _list_known(api, (_ADMISSION_POLICIES, _ADMISSION_WEBHOOKS), "")


def _list_known(api: KubernetesApi, kinds: Sequence[Kind], namespace: str) -> Objects:
    """Return the objects of several kinds, of which the cluster may not know all."""
    found: list[Object] = []
    for kind in kinds:
        try:
            objects = _list(api, kind, namespace, "")
        except NotFound:
            continue
        if isinstance(objects, Unreadable):
            return objects
        found += objects
    return tuple(found)


def read_claims(api: KubernetesApi, namespace: str) -> Objects:
    """Return the volume claims of a namespace."""
    return _list(api, kubernetes_api.CLAIMS, namespace, "")


def read_nodes(api: KubernetesApi) -> Objects:
    """Return the nodes of the cluster."""
    return _list(api, kubernetes_api.NODES, "", "")


def read_services(api: KubernetesApi, namespace: str) -> Objects:
    """Return the Services of a namespace."""
    return _list(api, kubernetes_api.SERVICES, namespace, "")


def read_volumes(api: KubernetesApi, names: Sequence[str]) -> Objects:
    """Return the PersistentVolumes of these names, of which only the first few are read."""
    found: list[Object] = []
    for name in names[:_VOLUMES_READ]:
        objects = _list(api, kubernetes_api.PERSISTENT_VOLUMES, "", "", fields=f"metadata.name={name}")
        if isinstance(objects, Unreadable):
            return objects
        found += objects
    return tuple(found)


def read_namespace(api: KubernetesApi, namespace: str) -> Objects:
    """Return a namespace, alone."""
    return _list(api, kubernetes_api.NAMESPACES, "", "", fields=f"metadata.name={namespace}")


def read_network_objects(api: KubernetesApi, namespace: str, release: str) -> dict[str, Objects]:
    """Return by their kind the objects of a release that decide who reaches its pods."""
    labels = f"{INSTANCE_LABEL}={release}"
    return {
        "Service": _list(api, kubernetes_api.SERVICES, namespace, labels),
        "NetworkPolicy": _list(api, kubernetes_api.NETWORK_POLICIES, namespace, labels),
    }


def read_rights(api: KubernetesApi, namespace: str, account: str) -> dict[str, Objects]:
    """Return by kind the objects that give a run controller its rights: all have the name of its account."""
    kinds = {
        "ServiceAccount": kubernetes_api.SERVICE_ACCOUNTS,
        "Role": kubernetes_api.ROLES,
        "RoleBinding": kubernetes_api.ROLE_BINDINGS,
    }
    return {name: _list(api, kind, namespace, "", fields=f"metadata.name={account}") for name, kind in kinds.items()}


def read_rights_of_all(api: KubernetesApi, namespace: str) -> Rights:
    """Return the roles that count in a namespace, and who has them."""
    return Rights(
        roles=_list(api, kubernetes_api.ROLES, namespace, ""),
        role_bindings=_list(api, kubernetes_api.ROLE_BINDINGS, namespace, ""),
        cluster_roles=_list(api, kubernetes_api.CLUSTER_ROLES, "", ""),
        cluster_role_bindings=_list(api, kubernetes_api.CLUSTER_ROLE_BINDINGS, "", ""),
    )


def read_unfinished_upgrade(api: KubernetesApi, namespace: str, release: str) -> tuple[Objects, Objects]:
    """Return Helm's records of the revisions of a release that are being made or failed, and of the installed one."""
    labels = f"owner=helm,name={release}"
    wanted = f"{labels},status in ({','.join((*PENDING, FAILED))})"
    unfinished = _list_records(api, kubernetes_api.SECRETS, namespace, wanted)
    if not listed(unfinished):
        # A record holds the whole chart: none is fetched without need.
        return unfinished, ()
    return unfinished, _list_records(api, kubernetes_api.SECRETS, namespace, f"{labels},status={DEPLOYED}")


def read_revisions(api: KubernetesApi, namespace: str, release: str) -> Objects:
    """Return Helm's records of all revisions of a release, which hold its chart each."""
    labels = f"owner=helm,name={release}"
    secrets = _list_records(api, kubernetes_api.SECRETS, namespace, labels)
    maps = () if listed(secrets) else _list_records(api, kubernetes_api.CONFIG_MAPS, namespace, labels)
    return maps if listed(maps) else secrets


def _list_records(api: KubernetesApi, kind: Kind, namespace: str, labels: str) -> Objects:
    """Return Helm's records; each has up to a MiB, and without a limit of its history Helm keeps all."""
    try:
        return _list(api, kind, namespace, labels)
    except TooLong as error:
        return Unreadable(kind.plural, "too large", error.message)


def read_config_maps(api: KubernetesApi, namespace: str, names: Sequence[str]) -> tuple[Object, ...]:
    """Return the ConfigMaps of these names, as far as they are there and may be read."""
    return _read_named(api, kubernetes_api.CONFIG_MAPS, namespace, names)


def read_secrets(api: KubernetesApi, namespace: str, names: Sequence[str]) -> tuple[Object, ...]:
    """Return the Secrets of these names, as far as they are there and may be read."""
    return _read_named(api, kubernetes_api.SECRETS, namespace, names)


def _read_named(api: KubernetesApi, kind: Kind, namespace: str, names: Sequence[str]) -> tuple[Object, ...]:
    found = (_list(api, kind, namespace, "", fields=f"metadata.name={name}") for name in names)
    return tuple(
        each for objects, name in zip(found, names, strict=True) for each in listed(objects) if name_of(each) == name
    )


def read_pods(api: KubernetesApi, namespace: str) -> Objects:
    """Return all pods of a namespace, with an empty one those of all namespaces."""
    return drop_damaged(_list(api, kubernetes_api.PODS, namespace, ""))


def read_training_pods(api: KubernetesApi, namespace: str) -> Objects:
    """Return the training pods of all releases in a namespace, with an empty one in the cluster."""
    return drop_damaged(_list(api, kubernetes_api.PODS, namespace, _TRAINING_PODS))


def read_training(api: KubernetesApi, namespace: str, name: str) -> tuple[TrainingKey, Snapshot]:
    """Return the training that `name` means: RELEASE, or RELEASE/CHART where a release holds several.

    Raises:
        NotFound: there is no such release, or it is not one of trainchart's.
        Forbidden: this user may not read enough to find out.
    """
    release, _, chart = name.partition("/")
    if not _RELEASE_NAME.fullmatch(release) or not _RELEASE_NAME.fullmatch(chart or "any"):
        raise NotFound(f"{name!r} is not a valid release name", hint="see: trainchart list")
    seen = look_at_release(api, namespace, release)
    trainings = {key: own for key, own in find_trainings(seen).items() if chart in ("", key.chart)}
    if len(trainings) == 1:
        return next(iter(trainings.items()))
    if trainings:
        names = ", ".join(map(str, trainings))
        raise NotFound(f"the release {release} holds several training runs", hint=f"name one of them: {names}")
    raise _explain_absence(api, namespace, name, seen)


def _explain_absence(api: KubernetesApi, namespace: str, name: str, seen: Snapshot) -> ClusterError:
    hidden = [each for each in (seen.sets, seen.pods, seen.records) if isinstance(each, Unreadable)]
    if hidden:
        what = ", ".join(each.what for each in hidden)
        return Forbidden(
            f"could not find out whether there is a training {name!r} in namespace {namespace}: {what} "
            f"({hidden[0].reason}): {hidden[0].detail}",
            hint="ask for permission to list them, or use a context that has it (--context)",
        )
    # Events are those of the whole namespace.
    damaged = [each for each in seen.damaged if not each.name.startswith("events/")]
    if damaged:
        return ClusterError(
            f"could not read the release {name!r} in namespace {namespace}: the API server returned {damaged[0]}",
            hint="check the API server in the kubeconfig, and any proxy in front of it",
        )
    if any(listed(each) for each in (seen.sets, seen.pods, seen.records, seen.jobs)):
        return NotFound(
            f"the release {name!r} in namespace {namespace} contains no training run of trainchart",
            hint=f"it is another kind of release, or partly deleted; see: helm status {name} -n {namespace}",
        )
    message = f"there is no training run {name!r} in namespace {namespace}"
    return NotFound(message, hint=_find_alike(api, namespace, name))


def _find_alike(api: KubernetesApi, namespace: str, name: str) -> str:
    """Return where a release of that name is, or what there is instead; as far as this user may see."""
    for place in ("", namespace):
        try:
            keys = list(find_trainings(Snapshot(0, sets=_list_sets(api, place))))
        except ClusterError:
            continue
        elsewhere = sorted({key.namespace for key in keys if key.release == name.partition("/")[0]})
        if elsewhere:
            return f"there is one in: {', '.join(elsewhere)} (name it with -n)"
        here = sorted({key.release for key in keys if key.namespace == namespace}, key=natural_key)
        if here:
            more = f" and {len(here) - _NAMES_SHOWN} more" if len(here) > _NAMES_SHOWN else ""
            return f"training runs there: {', '.join(here[:_NAMES_SHOWN])}{more}"
        return "there is none in this namespace; see: trainchart list -A" if keys or place else ""
    return "see: trainchart list"


def _list_sets(api: KubernetesApi, namespace: str) -> Objects:
    return api.list_objects(kubernetes_api.STATEFUL_SETS, namespace, labels=f"{COMPONENT_LABEL},{INSTANCE_LABEL}")


def _list(api: KubernetesApi, kind: Kind, namespace: str, labels: str, fields: str = "") -> Objects:
    try:
        return api.list_objects(kind, namespace, labels=labels, fields=fields)
    except Forbidden as error:
        return Unreadable(kind.plural, "forbidden", error.message)
