"""The use cases `trainchart suspend`, `resume`, `stop` and `rerun`: a value changed, with the chart that Helm keeps."""

from __future__ import annotations

from dataclasses import dataclass

from trainchart.actions.cluster_access import Place, open_cluster
from trainchart.cluster import kubernetes_api
from trainchart.cluster.control import Change, Verb, decide_change
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.helm_record import HelmRecordError, HelmRelease, choose_record, parse_release
from trainchart.cluster.kubernetes_api import KubernetesApi
from trainchart.cluster.releases import read_training
from trainchart.errors import ClusterError, Conflict, NotFound
from trainchart.host.helm_upgrade import HelmUpgrade, run_upgrade
from trainchart.reports.report import Report


@dataclass(frozen=True)
class Controlled:
    """What was done about a release."""

    report: Report
    """As it was found."""
    change: Change


def control_release(place: Place, release: str, verb: Verb) -> Controlled:
    """Change what a release's values ask its run controller for.

    :raises Conflict: where the run's state, the chart or another helm command forbids it; nothing is changed then.
    :raises NotFound: where Helm does not know the release.
    """
    api, namespace = open_cluster(place)
    report = diagnose(*read_training(api, namespace, release))
    installed = read_installed(api, report.key.release, report.key.namespace)
    change = decide_change(verb, report, installed)
    if change.refusal:
        raise Conflict(change.refusal, hint=change.hint)
    if change.sets:
        upgrade = HelmUpgrade(
            release=report.key.release,
            namespace=namespace,
            context=place.context,
            files=installed.files,
            sets=change.sets,
            description=f"trainchart {verb}",
        )
        run_upgrade(upgrade)
    return Controlled(report, change)


def read_installed(api: KubernetesApi, name: str, namespace: str) -> HelmRelease:
    """Return what Helm keeps of the release `name`. Raises ClusterError of the kind that fits."""
    labels = f"owner=helm,name={name}"
    # Where HELM_DRIVER says so, Helm keeps ConfigMaps.
    records = api.list_objects(kubernetes_api.SECRETS, namespace, labels=labels) or api.list_objects(
        kubernetes_api.CONFIG_MAPS, namespace, labels=labels
    )
    try:
        record = choose_record(records)
        if record is None:
            raise NotFound(
                f"Helm does not know the release {name} in namespace {namespace}: something else applied its manifests",
                hint="set run.desiredState, or another run.id for a new run, where the manifests come from",
            )
        return parse_release(record)
    except HelmRecordError as error:
        kind = Conflict if "another helm command" in str(error) else ClusterError
        raise kind(
            f"cannot use what Helm keeps of {name}: {error}", hint=f"see: helm history {name} -n {namespace}"
        ) from error
