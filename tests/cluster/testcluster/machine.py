"""Look at this machine: what `choice.py` decides by."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import psutil

from .cache_folder import find_cache
from .choice import NEEDED_PROGRAMS, NETWORK_PLUGINS, Machine, Named, Nowhere, Own, choose_cluster, parse_rights


def find_choice(context: str | None) -> Named | Own | Nowhere:
    """Choose the cluster of a test run here, with the option --kube-context as given."""
    return choose_cluster(context, os.environ, _look())


def find_obstacle() -> str:
    """Return why this machine cannot run a cluster of the tests' own, in a line; empty where it can."""
    choice = choose_cluster(None, {}, _look())
    return choice.reason if isinstance(choice, Nowhere) else ""


def _look() -> Machine:
    return Machine(
        system=platform.system(),
        is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
        has_rights=parse_rights(_read("/proc/self/status"), _read("/proc/self/uid_map")),
        found_programs=frozenset(name for name in NEEDED_PROGRAMS if shutil.which(name)),
        has_network_plugins=Path(NETWORK_PLUGINS).is_dir(),
        has_go=shutil.which("go") is not None,
        cache_file_system=_find_file_system(find_cache(os.environ, "")),
        has_bridge_filter=Path("/proc/sys/net/bridge/bridge-nf-call-iptables").exists(),
    )


def _read(path: str) -> str:
    """Return what a file of /proc says; nothing where there is no /proc."""
    return Path(path).read_text() if Path(path).exists() else ""


def _find_file_system(path: Path) -> str:
    """Return the kind of file system that a path is or would be on; nothing where that cannot be seen."""
    found = ""
    depth = 0
    for mount in psutil.disk_partitions(all=True):
        point = Path(mount.mountpoint)
        # Of two at one place, the later one hides the earlier.
        if path.resolve().is_relative_to(point) and len(point.parts) >= depth:
            found, depth = mount.fstype, len(point.parts)
    return found
