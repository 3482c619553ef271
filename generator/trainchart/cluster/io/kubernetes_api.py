"""The one door to a Kubernetes API. Owner of lightkube, and of httpx2, which lightkube speaks HTTP with.

lightkube reads credentials and keeps the connection. Answers stay the JSON that they are: its typed models drop what
they do not know. Whatever goes wrong below leaves here as a ClusterError of one of the kinds that a user must tell
apart (not found, unauthorized, forbidden, conflict, unreachable), the foreign error chained and its text cut short.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx2
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ConfigError
from lightkube.core.generic_client import BasicRequest, GenericSyncClient

from trainchart.cluster.io.api_stream import ApiStream
from trainchart.cluster.io.kubeconfig import Entry, require_files
from trainchart.cluster.io.newest_lines import NewestLines
from trainchart.errors import ClusterError, Conflict, Forbidden, NotFound, TooLong, Unauthorized, Unreachable
from trainchart.host.deadline import read_until, run_within
from trainchart.json_documents import parse_json

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 20.0
ANSWER_SECONDS = 300.0
"""An answer must be whole within it, however slowly it drips; a credential plug-in may ask its user meanwhile."""
ANSWER_LIMIT = 64 * 1024 * 1024
"""Bytes of an answer: a page of a list, or a log; a node keeps 10 MiB of a log unless it is set to keep more."""
LIST_LIMIT = 256 * 1024 * 1024
"""Bytes of all pages of a list."""
_LIST_SECONDS = 600.0
_PAGE = 500
"""Objects asked for at once, as kubectl does."""
PAGES_LIMIT = 1000
"""Half a million objects."""
_TEXT_LIMIT = 300
_EXEC_VERSION = "client.authentication.k8s.io/v1"
_EXEC_REQUEST = {"apiVersion": _EXEC_VERSION, "kind": "ExecCredential", "spec": {"interactive": False}}


class Kind(NamedTuple):
    """A kind of object as the API's paths name it."""

    api: str
    plural: str


CLAIMS = Kind("api/v1", "persistentvolumeclaims")
CLUSTER_ROLES = Kind("apis/rbac.authorization.k8s.io/v1", "clusterroles")
CLUSTER_ROLE_BINDINGS = Kind("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings")
CONFIG_MAPS = Kind("api/v1", "configmaps")
DEPLOYMENTS = Kind("apis/apps/v1", "deployments")
EVENTS = Kind("api/v1", "events")
JOBS = Kind("apis/batch/v1", "jobs")
NAMESPACES = Kind("api/v1", "namespaces")
NETWORK_POLICIES = Kind("apis/networking.k8s.io/v1", "networkpolicies")
NODES = Kind("api/v1", "nodes")
PODS = Kind("api/v1", "pods")
POD_METRICS = Kind("apis/metrics.k8s.io/v1beta1", "pods")  # of an add-on, such as metrics-server
PERSISTENT_VOLUMES = Kind("api/v1", "persistentvolumes")
POD_AUTOSCALERS = Kind("apis/autoscaling/v2", "horizontalpodautoscalers")
ROLES = Kind("apis/rbac.authorization.k8s.io/v1", "roles")
ROLE_BINDINGS = Kind("apis/rbac.authorization.k8s.io/v1", "rolebindings")
SECRETS = Kind("api/v1", "secrets")
SERVICES = Kind("api/v1", "services")
SELF_REVIEWS = Kind("apis/authentication.k8s.io/v1", "selfsubjectreviews")
SERVICE_ACCOUNTS = Kind("api/v1", "serviceaccounts")
STATEFUL_SETS = Kind("apis/apps/v1", "statefulsets")
STORAGE_CLASSES = Kind("apis/storage.k8s.io/v1", "storageclasses")
QUOTAS = Kind("api/v1", "resourcequotas")
VERTICAL_AUTOSCALERS = Kind("apis/autoscaling.k8s.io/v1", "verticalpodautoscalers")  # of an add-on


@dataclass(frozen=True)
class KubernetesApi:
    """Reads from one cluster as one user, and makes and removes what is tried out there."""

    client: GenericSyncClient
    server: str

    def list_objects(
        self, kind: Kind, namespace: str, *, labels: str = "", fields: str = ""
    ) -> tuple[dict[str, Any], ...]:
        """Return all objects of a kind; an empty namespace means every one.

        Raises:
            ClusterError: the request failed; the subclass says how.
        """
        place = f"namespaces/{namespace}/" if namespace else ""
        where = f"in namespace {namespace}" if namespace else "in all namespaces"
        found: list[dict[str, Any]] = []
        params = {"limit": str(_PAGE), "labelSelector": labels, "fieldSelector": fields}
        what = f"list {kind.plural} {where}"
        size, end = 0, time.monotonic() + _LIST_SECONDS
        for _ in range(PAGES_LIMIT):
            body = self._read(f"{kind.api}/{place}{kind.plural}", params, what)
            size += len(body)
            if size > LIST_LIMIT or time.monotonic() > end:
                break
            page = self._parse_page(body, what)
            items = page.get("items")
            found += [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
            metadata = page.get("metadata")
            token = metadata.get("continue") if isinstance(metadata, dict) else None
            if not token:
                return tuple(found)
            params["continue"] = str(token)
        raise TooLong(
            f"cannot {what}: the list of {self.server} has not ended after {PAGES_LIMIT} pages, {LIST_LIMIT} bytes "
            f"or {_LIST_SECONDS:.0f} seconds",
            hint="a broken proxy may be in front of it; try the same with kubectl",
        )

    def read_log(
        self,
        pod: str,
        namespace: str,
        container: str,
        *,
        since: str = "",
        is_previous: bool = False,
        tail: int = 0,
        newest: int = 0,
    ) -> list[str]:
        """Return the lines of a container's log, each with its time before it.

        `since` is a time in RFC 3339, from whose whole second on lines come; `tail` 0 means all. With `newest`, long
        lines are cut, and only the last `newest` characters are returned: the API's `limitBytes` would drop these.
        """
        params = {"container": container, "timestamps": "true", "sinceTime": since}
        params |= {"previous": "true" if is_previous else "", "tailLines": str(tail or "")}
        path = f"api/v1/namespaces/{namespace}/pods/{pod}/log"
        log = NewestLines(newest) if newest else None
        body = self._read(path, params, f"read the log of {pod}", log)
        if log:
            return log.take()
        return body.decode(errors="replace").removesuffix("\n").split("\n") if body else []

    def read_bytes(self, path: str, what: str) -> bytes:
        """Return what is at a path, such as that of a pod's proxy. Raises ClusterError."""
        return self._read(path, {}, what)

    def create_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Create a namespace.

        Raises:
            ClusterError: the request failed; the subclass says how.
        """
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}
        path = f"{NAMESPACES.api}/{NAMESPACES.plural}"
        self._request(BasicRequest("POST", path, data=document), f"create namespace {name}")

    def delete_namespace(self, name: str) -> None:
        """Have a namespace deleted with all that is in it, which takes Kubernetes a while.

        Raises:
            ClusterError: the request failed; the subclass says how.
        """
        path = f"{NAMESPACES.api}/{NAMESPACES.plural}/{name}"
        self._request(BasicRequest("DELETE", path), f"delete namespace {name}")

    def read_version(self) -> tuple[int, int]:
        """Return major and minor version of the API server.

        Raises:
            ClusterError: the request failed; the subclass says how.
        """
        what = "read the version of Kubernetes"
        body = self._read("version", {}, what)
        found = self._parse_page(body, what)
        numbers = [re.match(r"\d+", str(found.get(key))) for key in ("major", "minor")]
        if not all(numbers):
            raise self._nonsense(what, body)
        major, minor = (int(number[0]) for number in numbers if number)
        return major, minor

    def read_object(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        """Return one object of a namespace.

        Raises:
            ClusterError: the request failed; the subclass says how.
        """
        what = f"read {kind.plural}/{name} in namespace {namespace}"
        return self._parse_page(self._read(f"{kind.api}/namespaces/{namespace}/{kind.plural}/{name}", {}, what), what)

    def list_resources(self, api: str) -> tuple[dict[str, Any], ...]:
        """Return the kinds of objects of a group and version, such as apis/apps/v1, as its discovery lists them.

        Raises:
            ClusterError: the request failed; the subclass says how. NotFound where the cluster has no such group.
        """
        what = f"list the kinds of {api}"
        found = self._parse_page(self._read(api, {}, what), what).get("resources")
        return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()

    def create_object(
        self, kind: Kind, namespace: str, document: Mapping[str, Any], *, is_trial: bool = False
    ) -> dict[str, Any]:
        """Create an object and return it as the API server has completed it; a trial leaves nothing.

        An empty namespace is for kinds that belong to none.

        Raises:
            ClusterError: the request failed; the subclass says how.
        """
        metadata = document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else ""
        what = f"create {kind.plural}/{name or ''}" + (f" in namespace {namespace}" if namespace else "")
        place = f"namespaces/{namespace}/" if namespace else ""
        params = {"dryRun": "All"} if is_trial else {}
        asked = BasicRequest("POST", f"{kind.api}/{place}{kind.plural}", params=params, data=dict(document))
        return self._parse_page(self._request(asked, what), what)

    def delete_object(self, kind: Kind, namespace: str, name: str) -> None:
        """Have an object deleted with all that it owns.

        Raises:
            ClusterError: the request failed; the subclass says how.
        """
        path = f"{kind.api}/namespaces/{namespace}/{kind.plural}/{name}"
        asked = BasicRequest("DELETE", path, params={"propagationPolicy": "Background"})
        self._request(asked, f"delete {kind.plural}/{name}")

    def open_stream(self, path: str, params: Mapping[str, Any], headers: Mapping[str, str], what: str) -> ApiStream:
        """Have a connection upgraded, and return it as a stream of bytes.

        Raises:
            ClusterError: the request failed, or was answered without an upgrade; the subclass says how.
        """
        with _converted(what, self.server):
            asked = BasicRequest("GET", path, params=dict(params), headers=dict(headers))
            response = self.client.send(self.client.build_adapter_request(asked), stream=True)
            if response.status_code == 101:
                return ApiStream(response.extensions["network_stream"], response.close, f"cannot {what}: {self.server}")
            try:
                body = response.read()
            finally:
                response.close()
        raise _refusal(response.status_code, body, what, self.server)

    def _parse_page(self, body: bytes, what: str) -> dict[str, Any]:
        try:
            document = parse_json(body)
        except ValueError as error:
            raise self._nonsense(what, body) from error
        if not isinstance(document, dict):
            raise self._nonsense(what, body)
        return document

    def _read(self, path: str, params: Mapping[str, str], what: str, log: NewestLines | None = None) -> bytes:
        given = {key: value for key, value in params.items() if value}
        return self._request(BasicRequest("GET", path, params=given), what, log)

    def _request(self, asked: BasicRequest, what: str, log: NewestLines | None = None) -> bytes:
        with _converted(what, self.server):
            request = self.client.build_adapter_request(asked)
            # Some KiB of gzip may hold gigabytes.
            request.headers["Accept-Encoding"] = "identity"
            status, body = run_within(ANSWER_SECONDS, lambda end: self._exchange(request, what, end, log))
        if status >= 400:
            raise _refusal(status, body, what, self.server)
        return body

    def _exchange(self, request: httpx2.Request, what: str, end: float, log: NewestLines | None) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request; `log` receives the body of a successful one."""
        response = self.client.send(request, stream=True)
        body, size = bytearray(), 0
        add = log.add if log and response.status_code < 400 else body.extend
        try:
            for part in read_until(end, response.iter_raw()):
                add(part)
                size += len(part)
                if size > ANSWER_LIMIT:
                    raise TooLong(
                        f"cannot {what}: {self.server} answers with more than {ANSWER_LIMIT} bytes",
                        hint="request less, such as fewer log lines (--tail) or a single namespace",
                    )
        finally:
            response.close()
        return response.status_code, bytes(body)

    def _nonsense(self, what: str, body: bytes) -> ClusterError:
        return ClusterError(
            f"cannot {what}: {self.server} does not respond like a Kubernetes API: {_shorten(body)}",
            hint="check the server of the kubeconfig's context; a proxy or a login page may be in front of it",
        )


def connect(entry: Entry) -> KubernetesApi:
    """Return a door to the cluster of a kubeconfig's context; nothing is asked yet."""
    server = str(entry.cluster["server"])
    user = dict(entry.user)
    require_files(entry)
    if isinstance(user.get("exec"), Mapping):
        user["exec"] = _as_known_exec(user["exec"])
    document = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": entry.namespace}}],
        "clusters": [{"name": "it", "cluster": dict(entry.cluster)}],
        "users": [{"name": "it", "user": user}],
    }
    with _converted(f"use the context {entry.context_name!r}", server):
        proxy = entry.cluster.get("proxy-url")
        # Only the kubeconfig counts, but a proxy of the environment stands between many people and their clusters.
        timeout = httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
        params = ConnectionParams(timeout=timeout, trust_env=True, proxy=proxy)
        config = KubeConfig.from_dict(document).get()
        return KubernetesApi(GenericSyncClient(params, config=config), server)


def _as_known_exec(plugin: Mapping[str, Any]) -> dict[str, Any]:
    """Return a credential plug-in's section as lightkube 1.0 takes it.

    It refuses version v1, whose answer is that of v1beta1, and does not tell the plug-in which version is meant. This
    can go when it knows v1.
    """
    section = dict(plugin)
    if section.get("apiVersion") == _EXEC_VERSION:
        section["apiVersion"] = f"{_EXEC_VERSION}beta1"
        request = {"name": "KUBERNETES_EXEC_INFO", "value": json.dumps(_EXEC_REQUEST)}
        given = section.get("env") or ()
        section["env"] = [*given, request] if isinstance(given, list | tuple) else given
    return section


@contextmanager
def _converted(what: str, server: str) -> Iterator[None]:
    """Turn what lightkube, httpx2, ssl and credential plug-ins raise into our errors."""
    try:
        yield
    except (httpx2.TimeoutException, TimeoutError) as error:
        late = "complete its answer" if isinstance(error, TimeoutError) else "respond"  # of run_within
        raise Unreachable(f"cannot {what}: {server} did not {late} in time", hint=_reach_hint()) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise Unreachable(f"cannot {what}: {server}: {_shorten(str(error))}", hint=_reach_hint()) from error
    except ConfigError as error:
        raise ClusterError(
            f"cannot {what}: {_shorten(str(error))}", hint="try the same context with kubectl"
        ) from error
    except FileNotFoundError as error:
        missing = error.filename or "a file or program that the kubeconfig names"
        raise ClusterError(
            f"cannot {what}: {missing} is not there", hint="try the same context with kubectl"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError, ImportError) as error:
        # Certificates that do not load, fields of a wrong type, a credential plug-in that prints no token.
        words = f"{type(error).__name__}: {error}"
        raise ClusterError(f"cannot {what}: {_shorten(words)}", hint="try the same context with kubectl") from error


def _reach_hint() -> str:
    return "nothing is known about the release; check the network, and the context with kubectl cluster-info"


_QUOTA_WORDS = "exceeded quota"
_QUOTA_HINT = "free what the quota counts (kubectl describe quota shows it), or have the quota raised"
"""The API server answers 403 here, too, though no right is missing."""


def _refusal(status: int, body: bytes, what: str, server: str) -> ClusterError:
    message = f"cannot {what}: {_read_message(body) or f'HTTP {status}'}"
    if status == 401:
        return Unauthorized(message, hint="log in again: the credentials of the kubeconfig's context are not accepted")
    if status == 403:
        if _QUOTA_WORDS in message:
            return Forbidden(message, hint=_QUOTA_HINT)
        return Forbidden(message, hint="ask for this permission, or use a context that has it (--context)")
    if status == 404:
        return NotFound(message)
    if status in (409, 410):
        return Conflict(message, hint="try again")
    if status in (429, 500, 502, 503, 504):
        return Unreachable(f"{message} (HTTP {status} of {server})", hint="try again")
    return ClusterError(f"{message} (HTTP {status} of {server})")


def _read_message(body: bytes) -> str:
    """Return the message of a Status object, else the start of whatever came."""
    try:
        document = parse_json(body)
    except ValueError:
        return _shorten(body)
    message = document.get("message") if isinstance(document, dict) else None
    return _shorten(message) if isinstance(message, str) else _shorten(body)


def _shorten(text: str | bytes) -> str:
    if isinstance(text, bytes):
        text = text[: 4 * _TEXT_LIMIT].decode(errors="replace")
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_LIMIT else f"{line[:_TEXT_LIMIT]}…"
