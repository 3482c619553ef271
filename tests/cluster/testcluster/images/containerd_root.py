"""A containerd's root folder with all images imported and unpacked, prepared once and copied by hard links per node.

Safe to share: containers write into fresh upper folders of overlay mounts, never into a snapshot below; blobs are
read only; garbage collection unlinks. Only containerd's databases change in place, so those are real copies.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.cluster.testcluster.images.tool import ImageBuildError, last_lines, run_tool, start_tool

DATABASES = ("io.containerd.metadata.v1.bolt/meta.db", "io.containerd.snapshotter.v1.overlayfs/metadata.db")
"""Files that containerd changes in place, relative to its root."""
_BLOBS = Path("io.containerd.content.v1.content/blobs/sha256")
_START_SECONDS = 30
_CONFIG = """version = 2
root = "{root}"
state = "{scratch}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
address = "{scratch}/socket"
"""


def copy_containerd_root(source: Path, target: Path) -> None:
    """Copy a prepared root to `target`, which must not exist yet; its parent must.

    Files become hard links (a third of a second); on another file system than the cache's, they are copied.
    """
    linked = source.stat().st_dev == target.parent.stat().st_dev
    subprocess.run(["cp", "-al" if linked else "-a", source, target], check=True)
    for database in DATABASES if linked else ():
        copy = target / f"{database}.copy"
        shutil.copy2(source / database, copy)
        copy.replace(target / database)


def import_images(root: Path, archive: Path, scratch: Path, log: Path) -> None:
    """Import and unpack an OCI archive into a containerd root that no containerd uses; `scratch` has a short path."""
    config = scratch / "config.toml"
    config.write_text(_CONFIG.format(root=root, scratch=scratch))
    daemon = start_tool(("containerd", "--config", str(config)), os.environ, log)
    try:
        _wait_for_socket(scratch / "socket", daemon, log)
        ctr = ("ctr", "--address", f"{scratch}/socket", "--namespace", "k8s.io")
        run_tool((*ctr, "images", "import", str(archive)), os.environ, log)
    finally:
        _stop(daemon)


def read_held_blobs(root: Path) -> frozenset[str]:
    """Return the digests of the blobs in a containerd root."""
    return frozenset(blob.name for blob in (root / _BLOBS).iterdir()) if (root / _BLOBS).exists() else frozenset()


def link_held_blobs(root: Path, blobs: Path) -> None:
    """Replace the blobs of a containerd root by hard links to those of the same name in the folder `blobs`."""
    for digest in read_held_blobs(root):
        if (blobs / digest).exists() and not (blobs / digest).samefile(root / _BLOBS / digest):
            os.link(blobs / digest, root / _BLOBS / f"{digest}.new")
            (root / _BLOBS / f"{digest}.new").replace(root / _BLOBS / digest)


def _wait_for_socket(socket: Path, daemon: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not socket.exists():
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise ImageBuildError(f"containerd did not start:\n{last_lines(log)}")
        time.sleep(0.02)


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    """End containerd in good order: the signal goes to the daemon itself, the child of `unshare`."""
    if daemon.poll() is None:
        for child in Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGTERM)
    try:
        daemon.wait(timeout=_START_SECONDS)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
