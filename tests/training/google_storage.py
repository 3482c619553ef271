"""A stand-in for Google Cloud Storage: what TensorFlow's file system gs:// asks of it, and no more.

TensorFlow knows no other address than Google's own, so this is a proxy that answers for these names itself. A program
by itself, because TensorFlow holds Python's lock while it waits for some answers:

    python google_storage.py CERTIFICATE      # for HOSTS, with its key; prints the port
"""

from __future__ import annotations

import json
import re
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

HOSTS = ("www.googleapis.com", "storage.googleapis.com")
BUCKET = re.compile(r"/storage/v1/b/[^/]+(/storageLayout)?")
LISTING = re.compile(r"/storage/v1/b/([^/]+)/o")
OBJECT = re.compile(r"/storage/v1/b/([^/]+)/o/([^/]+)")
COPY = re.compile(r"/storage/v1/b/([^/]+)/o/([^/]+)/rewriteTo/b/([^/]+)/o/([^/]+)")
UPLOAD = re.compile(r"/upload/storage/v1/b/([^/]+)/o")


class Storage(ThreadingHTTPServer):
    """Keeps objects by "bucket/name"."""

    daemon_threads = True

    def __init__(self, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(certificate)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Storage

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
        self.close_connection = False

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if found := OBJECT.fullmatch(parts.path):
            content = self.server.objects.get(_key(*found.groups()))
            if content is None:
                self._answer(404)
            else:
                facts = {"size": str(len(content)), "generation": "1", "updated": "2026-01-01T00:00:00.000Z"}
                self._answer_json(facts)
        elif found := LISTING.fullmatch(parts.path):
            self._answer_json(self._list(found[1], **dict(parse_qsl(parts.query))))
        elif BUCKET.fullmatch(parts.path):
            self._answer_json({"hierarchicalNamespace": {"enabled": False}})
        else:
            self._read(unquote(parts.path[1:]))

    def do_POST(self) -> None:
        body, parts = self._read_body(), urlsplit(self.path)
        if found := COPY.fullmatch(parts.path):
            self.server.objects[_key(found[3], found[4])] = self.server.objects[_key(found[1], found[2])]
            self._answer_json({"done": True})
        elif found := UPLOAD.fullmatch(parts.path):
            query = dict(parse_qsl(parts.query))
            if query["uploadType"] == "media":
                self.server.objects[_key(found[1], query["name"])] = body
            self._answer(200, headers={"Location": f"https://{HOSTS[0]}/{found[1]}/{query['name']}"})
        else:
            self._answer(400)

    def do_PUT(self) -> None:
        """Take the content of an upload that was announced."""
        self.server.objects[unquote(self.path[1:])] = self._read_body()
        self._answer_json({"generation": "1"})

    def do_DELETE(self) -> None:
        found = OBJECT.fullmatch(urlsplit(self.path).path)
        removed = self.server.objects.pop(_key(*found.groups()), None) if found else None
        self._answer(404 if removed is None else 204)

    def _list(self, bucket: str, prefix: str = "", delimiter: str = "", **_options: str) -> dict[str, Any]:
        start = _key(bucket, prefix)
        below = [key[len(start) :] for key in sorted(self.server.objects) if key.startswith(start)]
        folders = {name.split(delimiter)[0] for name in below if delimiter and delimiter in name}
        files = [name for name in below if not delimiter or delimiter not in name]
        return {
            "items": [{"name": prefix + name} for name in files],
            "prefixes": [f"{prefix}{name}{delimiter}" for name in sorted(folders)],
        }

    def _read(self, key: str) -> None:
        """Send the bytes of an object that are asked for, as many as there are."""
        content = self.server.objects.get(key)
        first, last = (int(number) for number in re.findall(r"\d+", self.headers["Range"]))
        if content is None or first >= len(content):
            self._answer(404 if content is None else 416)
        else:
            self._answer(206, content[first : last + 1])

    def _read_body(self) -> bytes:
        """Return what was sent: an upload states a length, and comes in chunks nevertheless."""
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"] or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _answer_json(self, body: object) -> None:
        self._answer(200, json.dumps(body).encode())

    def _answer(self, code: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


def _key(bucket: str, name: str) -> str:
    return f"{bucket}/{unquote(name)}"


if __name__ == "__main__":
    storage = Storage(Path(sys.argv[1]))
    print(storage.server_address[1], flush=True)
    storage.serve_forever()
