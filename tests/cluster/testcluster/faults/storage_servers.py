"""Faults of the storage servers: processes that hold copies of the data are killed and come back. Pure."""

from __future__ import annotations

from ..servers import ceph, glusterfs
from .fault import Change, Fault, Inside, StartComponent, StopComponent


def kill_bricks(*numbers: int) -> Fault:
    """Kill bricks of GlusterFS with -9: of three, one costs nothing, and without two nothing can be written."""
    start = Inside((*glusterfs.CLI, "volume", "start", glusterfs.VOLUME, "force"))
    changes = [
        Change(Inside(("sh", "-c", f'kill -9 "$(cat {glusterfs.pid_file(number)})"')), (start,)) for number in numbers
    ]
    return Fault(f"bricks {numbers} killed", tuple(changes))


def kill_osds(*numbers: int) -> Fault:
    """Kill OSDs of Ceph with -9: of three, one costs nothing, and without two every access waits."""
    names = [ceph.osd_component(number) for number in numbers]
    clean = Change(Inside(("true",)), (Inside(ceph.AWAIT_CLEAN),))
    kills = (Change(StopComponent(name), (StartComponent(name),)) for name in names)
    # Undone in reverse, so that the wait comes after the last start.
    return Fault(f"OSDs {numbers} killed", (clean, *kills))
