"""A stand-in for docker: `docker buildx build` and `docker push`, as far as trainchart uses them, in a folder.

tests/contract/test_image_builders.py asks it and the real buildah the same. `make_docker` puts it on a PATH.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import sys
import tarfile
import urllib.request
from pathlib import Path
from urllib.parse import urljoin


def make_docker(folder: Path) -> None:
    """Write a program `docker` into `folder`; it keeps its images there, and notes its arguments in `calls`."""
    program = folder / "docker"
    program.write_text(f'#!/bin/sh\nFAKE_DOCKER={folder} exec {sys.executable} {__file__} "$@"\n')
    program.chmod(0o755)


def main(arguments: list[str], home: Path) -> int:
    """Do what docker would, unless a file in `home` wants something else.

    `fails` holds the words to fail with; `no-buildx` takes that plugin away; `hangs` lets it go on for ever, and then
    holds its process ID.
    """
    with (home / "calls").open("a") as calls:
        calls.write(json.dumps(arguments) + "\n")
    if (home / "fails").exists():
        print((home / "fails").read_text())
        return 1
    if arguments[0] == "buildx" and (home / "no-buildx").exists():
        print("docker: 'buildx' is not a docker command.")
        return 1
    if arguments in (["version"], ["buildx", "version"]):
        return 0
    if (home / "hangs").exists():
        (home / "hangs").write_text(str(os.getpid()))
        print("hanging", flush=True)
        signal.pause()
    if arguments[:2] == ["buildx", "build"]:
        _build(arguments[2:], home)
    elif arguments[0] == "push":
        _push(arguments[1], home)
    else:
        return 125
    return 0


def _build(arguments: list[str], home: Path) -> None:
    *options, context = arguments
    given = [option.removeprefix("--").partition("=")[::2] for option in options]
    told = dict(given)
    labels = dict(value.partition("=")[::2] for name, value in given if name == "label")
    assert Path(told["file"]).is_file()
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        archive.add(context, "app")
    system, architecture = told["platform"].split("/")
    config = {"architecture": architecture, "os": system, "config": {"Labels": labels}}
    image = home / hashlib.sha256(told["tag"].encode()).hexdigest()
    image.mkdir(exist_ok=True)
    (image / "layer").write_bytes(layer.getvalue())
    (image / "config").write_text(json.dumps({**config, "rootfs": {"type": "layers", "diff_ids": []}}))
    print(f"naming to {told['tag']}")


def _push(reference: str, home: Path) -> None:
    image = home / hashlib.sha256(reference.encode()).hexdigest()
    name, _, tag = reference.rpartition(":")
    host, _, repository = name.partition("/")
    base = f"http://{host}/v2/{repository}"
    described = {}
    for part in ("config", "layer"):
        content = (image / part).read_bytes()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        started = _ask("POST", f"{base}/blobs/uploads/", b"", "application/octet-stream")
        place = urljoin(base, started)
        _ask("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", content, "application/octet-stream")
        described[part] = {"digest": digest, "size": len(content)}
    kind = "application/vnd.oci.image."
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{kind}manifest.v1+json",
        "config": {"mediaType": f"{kind}config.v1+json", **described["config"]},
        "layers": [{"mediaType": f"{kind}layer.v1.tar", **described["layer"]}],
    }
    _ask("PUT", f"{base}/manifests/{tag}", json.dumps(manifest).encode(), str(manifest["mediaType"]))


def _ask(method: str, url: str, body: bytes, kind: str) -> str:
    request = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": kind})
    with urllib.request.urlopen(request) as answer:
        return str(answer.headers.get("Location", ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(os.environ["FAKE_DOCKER"])))
