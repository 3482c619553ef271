"""Images without content, pushed to a registry of a test: nothing runs them, they only have to be there."""

from __future__ import annotations

import base64
import hashlib
import json
import urllib.request
from typing import Any

from tests.repositories.chart_servers import PASSWORD, USER

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"


def push_image(host: str, path: str, tag: str, content: str = "") -> str:
    """Push an image and return its digest; other `content` gives another digest."""
    config = json.dumps({"content": content}).encode()
    blob = {"digest": _digest(config), "size": len(config), "mediaType": "application/vnd.oci.image.config.v1+json"}
    start = _send("POST", f"http://{host}/v2/{path}/blobs/uploads/", b"")
    place = str(start.headers["Location"])
    place = place if place.startswith("http") else f"http://{host}{place}"
    _send("PUT", f"{place}{'&' if '?' in place else '?'}digest={blob['digest']}", config)
    return _put_manifest(host, path, tag, MANIFEST_TYPE, {"config": blob, "layers": []})


def push_index(host: str, path: str, tag: str, *digests: str) -> str:
    """Push an index of platforms that lists images of the same repository, and return its digest."""
    platforms = [{"mediaType": MANIFEST_TYPE, "digest": digest, "size": 1} for digest in digests]
    return _put_manifest(host, path, tag, INDEX_TYPE, {"manifests": platforms})


def _put_manifest(host: str, path: str, tag: str, media_type: str, said: dict[str, Any]) -> str:
    manifest = json.dumps({"schemaVersion": 2, "mediaType": media_type, **said}).encode()
    _send("PUT", f"http://{host}/v2/{path}/manifests/{tag}", manifest, media_type)
    return _digest(manifest)


def _send(method: str, url: str, body: bytes, media_type: str = "application/octet-stream") -> Any:
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    headers = {"Content-Type": media_type, "Authorization": f"Basic {login}"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method)) as answer:
        return answer


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
