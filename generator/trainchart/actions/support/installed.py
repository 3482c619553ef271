"""Reads what Helm keeps of releases on a cluster: of one by its name, or of many at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trainchart.cluster.gitops import GitOpsOwner
from trainchart.cluster.helm_record import HelmRecordError, HelmRelease, choose_record, parse_release
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.snapshot import Object, label
from trainchart.errors import ClusterError, Conflict, Forbidden, NotFound, TooLong

_AT_ONCE = 50
"""Releases that one request asks for: their names are in its address, and a record has up to a MiB."""
_UNKNOWN = "Helm did not install it: something else applied its manifests"


def read_installed(api: KubernetesApi, name: str, namespace: str, owner: GitOpsOwner | None = None) -> HelmRelease:
    """Return what Helm keeps of a release, which `owner` applies. Raises ClusterError of the kind that fits."""
    labels = f"owner=helm,name={name}"
    # Where HELM_DRIVER says so, Helm keeps ConfigMaps.
    records = api.list_objects(kubernetes_api.SECRETS, namespace, labels=labels) or api.list_objects(
        kubernetes_api.CONFIG_MAPS, namespace, labels=labels
    )
    try:
        record = choose_record(records)
        if record is None:
            other = owner.name if owner else "something else"
            raise NotFound(
                f"Helm does not know the release {name} in namespace {namespace}: {other} applied its manifests",
                hint="set run.desiredState, or another run.id for a new run, where the manifests come from",
            )
        return parse_release(record)
    except HelmRecordError as error:
        kind = Conflict if "another helm command" in str(error) else ClusterError
        raise kind(
            f"cannot use Helm's record of {name}: {error}", hint=f"see: helm history {name} -n {namespace}"
        ) from error


def read_all_installed(api: KubernetesApi, namespace: str, names: Collection[str]) -> Mapping[str, HelmRelease | str]:
    """Return what Helm keeps of the releases `names`, or in words why that is not known."""
    try:
        records = _list_records(api, namespace, sorted(names))
    except (Forbidden, TooLong) as error:
        return dict.fromkeys(names, error.message)
    return {name: _parse([record for record in records if label(record, "name") == name]) for name in names}


def _list_records(api: KubernetesApi, namespace: str, names: list[str]) -> list[Object]:
    """Return the records of the newest revisions, which lie in Secrets, or by HELM_DRIVER in ConfigMaps."""
    found: list[Object] = []
    for start in range(0, len(names), _AT_ONCE):
        for kind in (kubernetes_api.SECRETS, kubernetes_api.CONFIG_MAPS):
            missing = set(names[start : start + _AT_ONCE]) - {label(record, "name") for record in found}
            if missing:
                labels = f"owner=helm,status!=superseded,name in ({','.join(sorted(missing))})"
                found += api.list_objects(kind, namespace, labels=labels)
    return found


def _parse(records: list[Object]) -> HelmRelease | str:
    try:
        record = choose_record(records)
        return _UNKNOWN if record is None else parse_release(record)
    except HelmRecordError as error:
        return f"cannot use Helm's record: {error}"
