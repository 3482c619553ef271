"""A stand-in for ChartMuseum, written from its README: it cannot be had from any package registry.

What is proved against it is that trainchart speaks the documented API, not that ChartMuseum behaves so.
"""

from __future__ import annotations

import email.parser
import email.policy
import hashlib
import io
import json
import tarfile
from http.server import BaseHTTPRequestHandler
from threading import Lock
from typing import Any
from urllib.parse import unquote

import yaml

from trainchart.archive.chart_metadata import read_metadata
from trainchart.kubernetes_yaml import parse_mapping


class Museum:
    """What is kept: entries by name and version, and files by name."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.entries: dict[tuple[str, str], dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}

    def add(self, chart: bytes, provenance: bytes | None) -> tuple[int, dict[str, Any]]:
        try:
            with tarfile.open(fileobj=io.BytesIO(chart)) as archive:
                names = [name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/Chart.yaml")]
                content = archive.extractfile(names[0])
                assert content is not None
                # The real one reads it with Helm's own library.
                entry = read_metadata(parse_mapping(content.read().decode()))
        except (tarfile.TarError, OSError, IndexError) as error:
            return 400, {"error": str(error)}
        key = (entry["name"], entry["version"])
        file = f"{key[0]}-{key[1]}.tgz"
        with self.lock:
            if key in self.entries:
                return 409, {"error": "file already exists"}
            self.files[file] = chart
            if provenance is not None:
                self.files[f"{file}.prov"] = provenance
            digest = hashlib.sha256(chart).hexdigest()
            self.entries[key] = entry | {
                "urls": [f"charts/{file}"],
                "created": "2026-01-01T00:00:00Z",
                "digest": digest,
                "deprecated": entry.get("deprecated", False),
            }
        return 201, {"saved": True}

    def versions(self, name: str) -> list[dict[str, Any]]:
        with self.lock:
            return [entry for (chart, _), entry in self.entries.items() if chart == name]

    def index(self) -> str:
        names = sorted({name for name, _ in self.entries})
        return yaml.safe_dump({"apiVersion": "v1", "entries": {name: self.versions(name) for name in names}})


class MuseumHandler(BaseHTTPRequestHandler):
    """The routes of a server with one tenant."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    @property
    def museum(self) -> Museum:
        return self.server.museum  # type: ignore[attr-defined,no-any-return]

    def do_GET(self) -> None:
        parts = unquote(self.path).strip("/").split("/")
        match parts:
            case ["index.yaml"]:
                self._answer(200, self.museum.index().encode(), "text/yaml")
            case ["charts", file]:
                content = self.museum.files.get(file)
                self._json(404, {"error": "not found"}) if content is None else self._answer(200, content, "")
            case ["api", "charts", name]:
                found = self.museum.versions(name)
                self._json(200, found) if found else self._json(404, {"error": "chart not found"})
            case ["api", "charts", name, version]:
                entry = self.museum.entries.get((name, version))
                self._json(404, {"error": "improper constraint"}) if entry is None else self._json(200, entry)
            case _:
                self._answer(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/api/charts":
            self._json(404, {"error": "not found"})
            return
        content_type = self.headers.get("Content-Type", "")
        if not content_type.startswith("multipart/form-data"):
            self._json(*self.museum.add(body, None))
            return
        head = f"Content-Type: {content_type}\r\n\r\n".encode()
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        fields = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in form.iter_parts()  # type: ignore[attr-defined]
        }
        self._json(*self.museum.add(fields["chart"], fields.get("prov")))

    def _json(self, status: int, value: Any) -> None:
        self._answer(status, json.dumps(value).encode(), "application/json")

    def _answer(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type or "application/gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
