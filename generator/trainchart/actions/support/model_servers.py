"""Reads the releases of model servers on a cluster: what Helm keeps of them, their pods, and what these count."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainchart.check.objects import mapping_at
from trainchart.cluster.helm_record import HelmRecordError, HelmRelease, choose_record, parse_release
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.pod_exec import read_output
from trainchart.cluster.snapshot import Object, label, namespace_of
from trainchart.errors import ClusterError, Conflict, NotFound
from trainchart.name_order import natural_key
from trainchart.promotion.history import find_installed
from trainchart.promotion.rollout import Requests, count_requests
from trainchart.promotion.servers import ServerState, read_servers
from trainchart.serving.chart_server import FAMILY
from trainchart_runtime.contract import COMPONENT_LABEL, INSTANCE_LABEL

_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?")
_CONTAINER = "server"
_PORT = 8501
_MOST_PODS = 16
"""Pods whose requests are counted: each takes a moment."""
_PATHS = {"trainchart": "metrics", "tensorflow-serving": "monitoring/prometheus/metrics"}
_READ = "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], timeout=10).read())"


def read_revisions(api: KubernetesApi, namespace: str, name: str) -> tuple[HelmRelease, ...]:
    """Return the revisions of a release that Helm keeps, one of which is installed.

    Raises:
        NotFound: Helm knows no such release.
        Conflict: another helm command changes it.
        ClusterError: the records cannot be read.
    """
    if not _RELEASE_NAME.fullmatch(name):
        raise NotFound(f"{name!r} is not a valid release name", hint=f"see: helm list -n {namespace}")
    labels = f"owner=helm,name={name}"
    # Where HELM_DRIVER says so, Helm keeps ConfigMaps.
    records = api.list_objects(kubernetes_api.SECRETS, namespace, labels=labels) or api.list_objects(
        kubernetes_api.CONFIG_MAPS, namespace, labels=labels
    )
    try:
        if choose_record(records) is None:
            raise NotFound(f"Helm knows no release {name} in namespace {namespace}", hint=_hint(api, namespace, name))
        revisions = tuple(map(parse_release, records))
    except HelmRecordError as error:
        kind = Conflict if "another helm command" in str(error) else ClusterError
        raise kind(
            f"cannot use Helm's record of {name}: {error}", hint=f"see: helm history {name} -n {namespace}"
        ) from error
    if find_installed(revisions) is None:
        raise Conflict(
            f"no revision of {name} is installed: the last one is {revisions[-1].status}",
            hint=f"see: helm history {name} -n {namespace}",
        )
    return revisions


def list_servers(api: KubernetesApi, namespace: str) -> list[tuple[str, str]]:
    """Return namespace and name of the releases that are model servers; an empty namespace means every one."""
    found = _list_deployments(api, namespace)
    return sorted({(namespace_of(each), label(each, INSTANCE_LABEL)) for each in found})


def look_at_servers(api: KubernetesApi, namespace: str) -> list[ServerState]:
    """Return what the model servers of a namespace serve; an empty one means every namespace. Raises ClusterError."""
    return read_servers(_list_deployments(api, namespace))


def look_at_server(api: KubernetesApi, namespace: str, name: str) -> ServerState:
    """Return what a model server serves.

    Raises:
        NotFound: there is no such server.
        ClusterError: it cannot be read.
    """
    found = read_servers(_list_deployments(api, namespace, f",{INSTANCE_LABEL}={name}"))
    if not found:
        raise NotFound(f"there is no model server {name} in namespace {namespace}")
    return found[0]


def _list_deployments(api: KubernetesApi, namespace: str, more: str = "") -> Sequence[Object]:
    return api.list_objects(kubernetes_api.DEPLOYMENTS, namespace, labels=f"{COMPONENT_LABEL}={FAMILY}{more}")


def _hint(api: KubernetesApi, namespace: str, name: str) -> str:
    """Return where a server of that name is, or which ones there are, as far as this user may see."""
    for place in ("", namespace):
        try:
            servers = list_servers(api, place)
        except ClusterError:
            continue
        elsewhere = [found for found, release in servers if release == name]
        if elsewhere:
            return (
                f"it is in {', '.join(elsewhere)}; pods can only mount claims of their own namespace, so the server "
                "and the release with the export must be in the same namespace"
            )
        here = sorted((release for found, release in servers if found == namespace), key=natural_key)
        if here:
            return f"model servers there: {', '.join(here[:8])}"
    return f"install one first: trainchart init NAME --family {FAMILY}; see docs/serving.md"


def read_user(api: KubernetesApi) -> str:
    """Return who the API server takes this user for; "unknown" where it does not say."""
    document = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        found = api.create_object(kubernetes_api.SELF_REVIEWS, "", document)
    except ClusterError:
        return "unknown"
    return str(mapping_at(found, "status", "userInfo").get("username") or "unknown")


def read_deployment(api: KubernetesApi, namespace: str, name: str) -> tuple[Object, Sequence[Object]]:
    """Return the Deployment of a server, and its pods. Raises ClusterError."""
    deployment = api.read_object(kubernetes_api.DEPLOYMENTS, namespace, name)
    labels = mapping_at(deployment, "spec", "selector", "matchLabels")
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return deployment, api.list_objects(kubernetes_api.PODS, namespace, labels=selector)


class RequestReader:
    """Reads what the pods of a server count.

    By a program in the pod, since the chart's NetworkPolicy keeps the API server's proxy out; by that proxy where there
    is no Python in the image, or no right to run programs there.
    """

    def __init__(self, api: KubernetesApi, namespace: str, program: str) -> None:
        self._api, self._namespace = api, namespace
        self._path = _PATHS.get(program, _PATHS["trainchart"])
        self._ways = [self._run_in, self._ask_proxy]
        self._has_worked = False

    def read(self, pods: Sequence[str]) -> Requests:
        """Return what the pods count together, of many the first ones.

        Raises:
            ClusterError: neither way leads there.
        """
        while True:
            try:
                pages = [self._ways[0](pod) for pod in sorted(pods)[:_MOST_PODS]]
            except ClusterError:
                if self._has_worked or len(self._ways) == 1:
                    raise
                self._ways.pop(0)
                continue
            self._has_worked = True
            return sum((count_requests(page.decode(errors="replace")) for page in pages), Requests())

    def _run_in(self, pod: str) -> bytes:
        command = ("python3", "-c", _READ, f"http://localhost:{_PORT}/{self._path}")
        what = f"read the metrics of {pod}"
        return b"".join(read_output(self._api, self._namespace, pod, _CONTAINER, command, what))

    def _ask_proxy(self, pod: str) -> bytes:
        path = f"api/v1/namespaces/{self._namespace}/pods/{pod}:{_PORT}/proxy/{self._path}"
        return self._api.read_bytes(path, f"read the metrics of {pod}")
