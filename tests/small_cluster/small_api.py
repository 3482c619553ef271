"""A small API server for the program's tests: it lists the objects that a test puts there, by their labels.

Plain HTTP on 127.0.0.1. It can refuse what a test says, answer nonsense, and be away; it changes nothing by itself. It
can know users by their tokens.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.small_cluster.cluster_objects import NAMESPACE

METRICS = "podmetrics"
"""Key of what the metrics API knows, whose plural is that of pods; without it, there is no such API."""


@dataclass
class SmallApi:
    """What the server holds and how it answers; a test changes it at any time."""

    objects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Plural → objects."""
    logs: dict[str, str] = field(default_factory=dict)
    """Pod → log with times."""
    refused: dict[str, int] = field(default_factory=dict)
    """Plural, or a whole path → status code of every answer about it."""
    raw: tuple[int, str, bytes] | None = None
    """Status, content type and body of every answer, for servers that are no API."""
    users: dict[str, str] = field(default_factory=dict)
    """Token → user; no other token is accepted. Empty: every request is answered."""
    allowed: dict[str, str] = field(default_factory=dict)
    """User → the only namespace that the user may read."""
    senders: list[str] = field(default_factory=list)
    """User of each request, where users are known."""
    encoding: str = ""
    """Content-Encoding that every answer states."""
    requests: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    """Accept-Encoding of each request."""
    port: int = 0
    page_size: int = 500

    def write_kubeconfig(self, path: Path, **user: Any) -> Path:
        """Write a kubeconfig with one context, whose namespace is that of the objects."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "small",
            "clusters": [{"name": "small", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "me", "user": user or {"token": "secret-token"}}],
            "contexts": [{"name": "small", "context": {"cluster": "small", "user": "me", "namespace": NAMESPACE}}],
        }
        path.write_text(json.dumps(document))
        return path

    def answer(self, path: str, authorization: str = "") -> tuple[int, str, bytes]:
        self.requests.append(path)
        if self.raw is not None:
            return self.raw
        user = self.users.get(authorization.removeprefix("Bearer "), "")
        self.senders.append(user)
        if self.users and not user:
            return _json(401, {"kind": "Status", "message": "Unauthorized", "code": 401})
        where = urlsplit(path)
        if where.path.endswith("/selfsubjectreviews"):
            return _json(201, {"status": {"userInfo": {"username": user}}})
        query = {key: values[0] for key, values in parse_qs(where.query).items()}
        parts = where.path.strip("/").split("/")
        if parts[-1] == "log":
            return self._answer_log(parts[-2], query)
        plural = METRICS if "metrics.k8s.io" in parts else parts[-1]
        if plural == METRICS and plural not in self.objects:
            return 404, "text/plain", b"404 page not found\n"
        if code := self.refused.get(plural) or self.refused.get(where.path):
            return _json(code, {"kind": "Status", "message": f"{plural} is forbidden: not for you", "code": code})
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
        if self.allowed.get(user, namespace) != namespace:
            return _json(403, {"kind": "Status", "message": f"User {user} cannot list {plural}", "code": 403})
        found = [
            each
            for each in self.objects.get(plural, ())
            if namespace in ("", each["metadata"].get("namespace")) and _matches(each, query.get("labelSelector", ""))
        ]
        start = int(query.get("continue", 0))
        page = found[start : start + self.page_size]
        more = start + self.page_size < len(found)
        return _json(200, {"items": page, "metadata": {"continue": str(start + self.page_size)} if more else {}})

    def _answer_log(self, pod: str, query: dict[str, str]) -> tuple[int, str, bytes]:
        name = f"{pod}.previous" if query.get("previous") else pod
        if "logs" in self.refused:
            return _json(self.refused["logs"], {"message": "pods/log is forbidden: not for you"})
        if name not in self.logs:
            return _json(400, {"message": f"container of {pod} is waiting to start"})
        lines = [line for line in self.logs[name].splitlines() if line >= query.get("sinceTime", "")[:19]]
        return 200, "text/plain", "".join(f"{line}\n" for line in lines).encode()


def _json(code: int, document: dict[str, Any]) -> tuple[int, str, bytes]:
    return code, "application/json", json.dumps(document).encode()


def _matches(each: dict[str, Any], selector: str) -> bool:
    """Say whether labels fit a selector made of `a=b`, `a!=b`, `a` and `a in (b,c)`."""
    labels = each["metadata"].get("labels") or {}
    rest = selector
    while rest:
        name, _, after = rest.partition(" in (")
        if after and "," not in name:
            values, _, rest = after.partition(")")
            if labels.get(name) not in values.split(","):
                return False
            rest = rest.removeprefix(",")
            continue
        term, _, rest = rest.partition(",")
        if "!=" in term:
            name, _, value = term.partition("!=")
            if labels.get(name) == value:
                return False
            continue
        name, is_equal, value = term.partition("=")
        if name not in labels or (is_equal and labels[name] != value):
            return False
    return True


@contextmanager
def serve_small_api() -> Iterator[SmallApi]:
    """Serve an API that holds nothing yet."""
    api = SmallApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            api.accepted.append(self.headers.get("Accept-Encoding", ""))
            code, kind, body = api.answer(self.path, self.headers.get("Authorization", ""))
            self.send_response(code)
            if api.encoding:
                self.send_header("Content-Encoding", api.encoding)
            if kind:
                self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
