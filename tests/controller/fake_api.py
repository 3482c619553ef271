"""A small API server for the run controller's tests: the objects of one release, watches, and every kind of trouble.

It speaks TLS on 127.0.0.1 and holds pods, the scale of StatefulSets, one ConfigMap, one Job and Events. There is no
controller behind it: pods come and go as the test says, except that a set scaled down loses its pods if asked to.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.controller.fake_queue import GROUP, FakeQueue
from trainchart_runtime import causes
from trainchart_runtime.cause import Cause
from trainchart_runtime.termination import Termination, dump_termination

NAMESPACE = "team-a"
STATE_NAME = "exp1-mnist-state"
STATE_PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{STATE_NAME}"
PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
SETS_PATH = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
JOB_NAME = "exp1-mnist-controller-0a1b2c3d"
JOB_PATH = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{JOB_NAME}"
SERVICE_PATH = f"/api/v1/namespaces/{NAMESPACE}/services/exp1-mnist"
EVENTS_PATH = f"/api/v1/namespaces/{NAMESPACE}/events"

RUN_SETTINGS: dict[str, Any] = {
    "maxRestarts": 3,
    "startDeadlineSeconds": 1800,
    "evaluatorGraceSeconds": 600,
    "activeDeadlineSeconds": 0,
    "desiredState": "running",
    "onChange": "restart-group",
    "forceDeleteLostPods": False,
    "objects": ["Service exp1-mnist"],
    "selector": {"app.kubernetes.io/instance": "exp1", "app.kubernetes.io/name": "mnist"},
}
"""What a chart tells its controller in TRAINCHART_RUN_SETTINGS."""
CONFIGMAP_LIMIT = 1_048_576
"""Bytes of data that the real API server accepts."""


def make_pod(task: str, cause: Cause | None = None, *, run_id: str = "run-1", **fields: Any) -> dict[str, Any]:
    """A running pod of release exp1; with a cause, its launcher has ended before with these words."""
    task_type, _, ordinal = task.partition("-")
    status: dict[str, Any] = {"name": "training", "restartCount": 0, "state": {"running": {}}}
    if cause:
        code = 0 if cause is causes.SUCCEEDED else 1
        words = Termination(cause.name, code, task_type, int(ordinal), run_id, finished_at=1.0, **fields)
        terminated = {"exitCode": code, "reason": "Completed", "message": dump_termination(words).decode()}
        status = {**status, "restartCount": 1, "lastState": {"terminated": terminated}}
    return {
        "metadata": make_metadata(task),
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "training", "env": [{"name": "TRAINCHART_RUN_ID", "value": run_id}]}],
        },
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def make_metadata(task: str, uid: str = "") -> dict[str, Any]:
    """Metadata of a pod as its StatefulSet makes it."""
    set_name = f"exp1-mnist-{task.rpartition('-')[0]}"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set_name, "uid": set_uid(set_name)}
    return {
        "name": f"exp1-mnist-{task}",
        "uid": uid or f"uid-{task}",
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }


def set_uid(set_name: str) -> str:
    return f"uid-{set_name}"


@dataclass
class Fault:
    """Answers that are errors: to so many requests whose method and path (with query) match."""

    method: str
    path: str
    status: int
    times: int
    headers: dict[str, str] = field(default_factory=dict)


class FakeApi:
    """The server; change what it holds through its methods, from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Condition()
        self.token = "first-token"
        self.requests: list[tuple[str, str]] = []
        """Method and path with query, in the order of arrival."""
        self.replicas: dict[str, int] = {}
        self.events: list[dict[str, Any]] = []
        self.warnings: list[dict[str, Any]] = []
        """Events that others have made."""
        self.revisions: dict[str, str] = {}
        """Set → revision of the pods that it would make now."""
        self.backoff_limits: list[int] = []
        """What the controller's Job was told, the last one last."""
        self.failed_controllers = 0
        """Pods of the controller's Job that have failed."""
        self.faults: list[Fault] = []
        self.is_mute = False
        """Watches stay open and say nothing."""
        self.deleted: list[tuple[str, int | None]] = []
        """Pods that were deleted, and the grace that they were given."""
        self.removes_pods = True
        """A set scaled to 0 loses its pods at once."""
        self.job_uid = "uid-job"
        """Of the controller's Job; empty where it is gone."""
        self.has_service = True
        self.service_selector: dict[str, str] = dict(RUN_SETTINGS["selector"])
        self.page_size = 1000
        self.pod_logs: dict[tuple[str, str], bytes] = {}
        """Pod and whether of its container before ("true" or "false") → log."""
        self._version = 100
        self._oldest = 0
        self._pods: dict[str, dict[str, Any]] = {}
        self._log: list[tuple[int, str, dict[str, Any]]] = []
        metadata = {"name": STATE_NAME, "uid": "5a3e", "resourceVersion": "100"}
        self._state: dict[str, Any] = {"metadata": {**metadata, "annotations": {"trainchart/plan": "plan-1"}}}
        self._watches: list[tuple[Any, object]] = []
        self.queue = FakeQueue(self.lock, self._next_version)
        self.admitted: dict[str, Any] = {}
        """Pod → the last change of it."""
        self._write_service_account()
        self._server = _Server(("127.0.0.1", 0), _make_handler(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "ca.crt", folder / "server.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_address[1]

    @contextlib.contextmanager
    def serve(self) -> Iterator[FakeApi]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.break_watches()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    # --- what a test does ---------------------------------------------------------------------------------
    def put_pod(self, pod: dict[str, Any]) -> None:
        with self.lock:
            name = pod["metadata"]["name"]
            self._change("MODIFIED" if name in self._pods else "ADDED", pod)
            self._pods[name] = pod

    def remove_pod(self, name: str) -> None:
        with self.lock:
            self._change("DELETED", self._pods.pop(name))

    def state(self) -> dict[str, Any]:
        """Return the recorded state; empty before there is one, and where it is damaged."""
        with self.lock:
            text = self._state.get("data", {}).get("state.json")
        found: dict[str, Any] = {}
        with contextlib.suppress(ValueError):
            found = json.loads(text or "{}")
        return found

    def make_state_immutable(self) -> None:
        """Do what a patch of the record with `immutable: true` does."""
        with self.lock:
            self._state["immutable"] = True

    def put_state(self, text: str) -> None:
        """Write the record as somebody else."""
        with self.lock:
            self._version += 1
            self._state["data"] = {**self._state.get("data", {}), "state.json": text}
            self._state["metadata"]["resourceVersion"] = str(self._version)

    def logs(self) -> dict[str, Any]:
        """Return the last lines that were kept."""
        with self.lock:
            found: dict[str, Any] = json.loads(self._state.get("data", {}).get("logs.json", "{}"))
        return found

    def record_keys(self) -> list[str]:
        """Return the keys of the record."""
        with self.lock:
            return sorted(self._state.get("data", {}))

    def delete_state(self) -> None:
        """Delete the record."""
        with self.lock:
            self._state = {}

    def fill_state(self) -> None:
        """Write another key into the record, which fills it."""
        with self.lock:
            size = sum(map(len, self._state["data"].values()))
            self._state["data"]["junk"] = "x" * (CONFIGMAP_LIMIT - size - 20)

    def put_chart_record(self, plan: str) -> None:
        """Write the record as the chart renders it, which holds no state."""
        with self.lock:
            self._version += 1
            metadata = {"name": STATE_NAME, "uid": "5a3f", "resourceVersion": str(self._version)}
            self._state = {"metadata": {**metadata, "annotations": {"trainchart/plan": plan}}}

    def put_plan(self, plan: str) -> None:
        """Give the release another plan, as an upgrade does."""
        with self.lock:
            self._version += 1
            self._state["metadata"]["annotations"]["trainchart/plan"] = plan
            self._state["metadata"]["resourceVersion"] = str(self._version)

    def break_watches(self) -> None:
        """Cut every open watch."""
        with self.lock:
            for connection, _ in self._watches:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._watches.clear()
            self.lock.notify_all()

    def cut_watches_in_the_middle(self) -> None:
        """Cut every open watch in the middle of an event."""
        with self.lock:
            self._change("CUT", {"metadata": {}})

    def expire_versions(self) -> None:
        """Forget all changes so far: a watch from an older resourceVersion gets 410."""
        with self.lock:
            self._version += 1
            self._oldest = self._version

    def fail(self, method: str, path: str, status: int, times: int = 1, **headers: str) -> None:
        with self.lock:
            self.faults.append(Fault(method, path, status, times, headers))

    def seen(self, method: str, path: str) -> int:
        """Return how many requests came whose path holds `path`."""
        with self.lock:
            return sum(method == asked and path in where for asked, where in self.requests)

    def wait_for(self, condition: Any, what: str, seconds: float = 60.0) -> None:
        """Wait until `condition()` is true."""
        with self.lock:
            assert self.lock.wait_for(condition, seconds), f"not reached: {what}; requests: {self.requests[-12:]}"

    # --- what a request does ------------------------------------------------------------------------------
    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Return status, answer and headers of a request that is no watch."""
        with self.lock:
            self.requests.append((method, path))
            self.lock.notify_all()
            for fault in self.faults:
                if fault.times and fault.method == method and fault.path in path:
                    fault.times -= 1
                    return fault.status, {"message": f"fault {fault.status}"}, fault.headers
            if token != f"Bearer {self.token}":
                return 401, {"message": "Unauthorized"}, {}
            status, answer = self._route(method, path, body)
            self.lock.notify_all()
            return status, answer, {}

    def answer_log(self, path: str, token: str) -> tuple[int, bytes]:
        """Return status and text of a pod's log."""
        status, answer, _ = self.answer("LOG", path, token, None)
        where = urlsplit(path)
        query = parse_qs(where.query)
        key = where.path.removeprefix(f"{PODS_PATH}/").removesuffix("/log"), query["previous"][0]
        if status == 401 or key not in self.pod_logs:
            return (status if status == 401 else 400), json.dumps(answer).encode()
        lines = self.pod_logs[key].splitlines(keepends=True)
        return 200, b"".join(lines[-int(query["tailLines"][0]) :])

    def _route(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        where = urlsplit(path)
        if where.path.startswith(GROUP):
            return self.queue.route(method, path, body)
        name = where.path.removeprefix(f"{SETS_PATH}/").removesuffix("/scale")
        if (method, where.path) == ("GET", PODS_PATH):
            return self._list(list(self._pods.values()), parse_qs(where.query))
        if where.path == STATE_PATH and method == "APPLY":
            return self._apply_state(body)
        if where.path == STATE_PATH and not self._state:
            return 404, {"message": "no record"}
        if (method, where.path) == ("GET", STATE_PATH):
            return 200, self._state
        if (method, where.path) == ("GET", JOB_PATH):
            return (200, {"metadata": {"uid": self.job_uid}}) if self.job_uid else (404, {"message": "no Job"})
        if (method, where.path) == ("GET", SERVICE_PATH):
            return (
                (200, {"spec": {"selector": self.service_selector}})
                if self.has_service
                else (404, {"message": "no Service"})
            )
        if (method, where.path) == ("PATCH", STATE_PATH):
            return self._patch_state(body)
        if (method, where.path) == ("PATCH", JOB_PATH):
            self.backoff_limits.append(body["spec"]["backoffLimit"])
            return 200, {
                "kind": "Job",
                "metadata": {"uid": self.job_uid},
                "status": {"failed": self.failed_controllers} if self.failed_controllers else {},
            }
        if (method, where.path) == ("POST", EVENTS_PATH):
            self.events.append(body)
            return 201, body
        if (method, where.path) == ("GET", EVENTS_PATH):
            return self._list(self.warnings, parse_qs(where.query))
        if method == "DELETE" and where.path.startswith(f"{PODS_PATH}/"):
            return self._delete_pod(where.path.removeprefix(f"{PODS_PATH}/"), body)
        if method == "PATCH" and where.path.startswith(f"{PODS_PATH}/"):
            self.admitted[where.path.removeprefix(f"{PODS_PATH}/")] = body
            return 200, {}
        if (method, where.path) == ("PATCH", f"{SETS_PATH}/{name}/scale") and name in self.replicas:
            self._scale(name, body["spec"]["replicas"])
            number = self.replicas[name]
            return 200, {"kind": "Scale", "spec": {"replicas": number} if number else {}}
        if (method, where.path) == ("GET", f"{SETS_PATH}/{name}") and name in self.replicas:
            number = self.replicas[name]
            status = {"observedGeneration": 1, "updateRevision": self.revisions.get(name, f"{name}-1")}
            template = {"spec": {"containers": [{"name": "training", "resources": {"requests": {"cpu": "1"}}}]}}
            spec = {"template": template, **({"replicas": number} if number else {})}
            return 200, {"metadata": {"generation": 1, "uid": set_uid(name)}, "spec": spec, "status": status}
        return 404, {"message": f"no {where.path}"}

    def _list(self, objects: list[dict[str, Any]], query: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        start = int(query.get("continue", ["0"])[0])
        size = min(self.page_size, int(query.get("limit", ["1000"])[0]))
        metadata: dict[str, Any] = {"resourceVersion": str(self._version)}
        if start + size < len(objects):
            metadata["continue"] = str(start + size)
        return 200, {"metadata": metadata, "items": objects[start : start + size]}

    def _delete_pod(self, name: str, options: Any) -> tuple[int, dict[str, Any]]:
        pod = self._pods.get(name)
        if pod is None:
            return 404, {"message": f"no pod {name}"}
        if pod["metadata"].get("uid", "") != options["preconditions"]["uid"]:
            return 409, {"message": "another uid"}
        self.deleted.append((name, options.get("gracePeriodSeconds")))
        self.remove_pod(name)
        return 200, {}

    def _patch_state(self, body: Any) -> tuple[int, dict[str, Any]]:
        if body["metadata"]["resourceVersion"] != self._state["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        if self._state.get("immutable"):
            return 422, {"message": "data: Forbidden: field is immutable when `immutable` is set"}
        kept = {**self._state.get("data", {}), **body["data"]}
        size = sum(map(len, filter(None, kept.values())))
        if size > CONFIGMAP_LIMIT:
            return 422, {"message": f"Too long: may not be more than {CONFIGMAP_LIMIT} bytes"}
        self.put_state(body["data"].pop("state.json"))
        self._state["data"].update(body["data"])
        self._state["data"] = {key: value for key, value in self._state["data"].items() if value is not None}
        return 200, self._state

    def _apply_state(self, body: Any) -> tuple[int, dict[str, Any]]:
        self._version += 1
        metadata = {**body["metadata"], "uid": "5a3f", "resourceVersion": str(self._version)}
        self._state = {**self._state, "metadata": metadata}
        return 201, self._state

    def _scale(self, name: str, replicas: int) -> None:
        self.replicas[name] = replicas
        if replicas == 0 and self.removes_pods:
            for pod in [pod for pod in self._pods if pod.rpartition("-")[0] == name]:
                self.remove_pod(pod)

    # --- watches ------------------------------------------------------------------------------------------
    def open_watch(self, connection: Any, path: str) -> Iterator[dict[str, Any]]:
        """Yield the events of one watch until it is cut."""
        query = parse_qs(urlsplit(path).query)
        position = int(query["resourceVersion"][0])
        key = (connection, object())
        with self.lock:
            self._watches.append(key)
            self.lock.notify_all()
            if position < self._oldest:
                yield {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
                return
            while True:
                if not self.is_mute:
                    log = self.queue.log if GROUP in path else self._log
                    for version, kind, pod in [entry for entry in log if entry[0] > position]:
                        position = version
                        yield {"type": kind, "object": pod}
                if key not in self._watches:
                    return
                self.lock.wait()

    def end_watches(self) -> None:
        """End every watch in good order, after a bookmark."""
        with self.lock:
            self._change("BOOKMARK", {"kind": "Pod", "metadata": {}})
            self._watches.clear()
            self.lock.notify_all()

    def open_watches(self) -> int:
        return len(self._watches)

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    def _change(self, kind: str, pod: dict[str, Any]) -> None:
        self._version += 1
        pod["metadata"]["resourceVersion"] = str(self._version)
        self._log.append((self._version, kind, pod))
        self.lock.notify_all()

    def _write_service_account(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fake-api")])
        now = datetime.datetime.now(datetime.UTC)
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(names, critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        (self.folder / "ca.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (self.folder / "server.key").write_bytes(private)
        self.rotate_token(self.token)

    def rotate_token(self, token: str) -> None:
        """Accept this token alone from now on, and put it where a pod finds it."""
        with self.lock:
            (self.folder / "token").write_text(token)
            self.token = token


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Controllers that are killed, or refuse our certificate, are part of the tests; bugs of this file are not.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _make_handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            self.request.do_handshake()
            super().setup()

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            token = self.headers.get("Authorization", "")
            if "watch=1" in self.path:
                self._stream(token)
                return
            if "/log?" in self.path:
                status, text = api.answer_log(self.path, token)
                self._send_bytes(status, text, {})
                return
            is_apply = self.headers.get("Content-Type") == "application/apply-patch+yaml"
            status, answer, headers = api.answer("APPLY" if is_apply else self.command, self.path, token, body)
            self._send(status, answer, headers)

        def _send(self, status: int, answer: dict[str, Any], headers: dict[str, str]) -> None:
            self._send_bytes(status, json.dumps(answer).encode(), headers)

        def _send_bytes(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _stream(self, token: str) -> None:
            # A watch passes the same gate as any request.
            status, answer, headers = api.answer("GET", self.path, token, None)
            if status != 200:
                self._send(status, answer, headers)
                return
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in api.open_watch(self.connection, self.path):
                line = json.dumps(event).encode() + b"\n"
                if event["type"] == "CUT":
                    self.wfile.write(b"%x\r\n%s" % (len(line), line[:20]))
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

    for method in ("GET", "PATCH", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler._respond)
    return Handler
