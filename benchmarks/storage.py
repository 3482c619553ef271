"""Checkpoints on GlusterFS, CephFS and a local disk, beside the same files copied with cp in the same run."""

from __future__ import annotations

import json
import statistics
import sys

from benchmarks.generator import ROOT
from benchmarks.measure import Row
from benchmarks.own_cluster import own_cluster
from tests.cluster.testcluster.config import INSIDE
from tests.cluster.testcluster.ingredients import tell
from tests.cluster.testcluster.servers import plan_server, start_server, stop_server
from tests.cluster.testcluster.servers.plan import CONTROL_PLANE, find_mounts

SERVERS = {"GlusterFS": "glusterfs", "CephFS": "cephfs"}
LOCAL = "local disk"
NOTE = (
    "The library's save and restore, and `cp` of the same files from and to memory. Files are written with fsync, and "
    "read by a different client from the one that wrote them, and not from its cache. GlusterFS keeps three copies "
    "(bricks), Ceph three (OSDs), all on the disk of the one machine that also trains: compare each with the `cp` "
    "beside it, not one storage with another."
)


def measure_storage(rounds: int) -> list[Row]:
    """Measure on a cluster that is started for it, with its storage servers."""
    places = {LOCAL: [str(INSIDE / "local")] * 2}
    servers = [plan_server(name) for name in SERVERS.values()]
    with own_cluster() as site:
        try:
            for server in servers:
                tell(f"Starting {server.name} ...")
                start_server(server, site.cluster, site.access)
            for shown, name in SERVERS.items():
                mounts = find_mounts(name)
                places[shown] = [str(mounts[where][1] / "benchmark") for where in (CONTROL_PLANE, "node1")]
            for folder, _ in places.values():
                site.cluster.run_inside(["mkdir", folder])
            argv = [sys.executable, str(ROOT / "benchmarks" / "storage_case.py"), str(rounds), json.dumps(places)]
            output = site.cluster.run_inside(["env", "TF_CPP_MIN_LOG_LEVEL=3", *argv]).stdout
        finally:
            for server in servers:
                stop_server(server, site.cluster, site.access)
    found = json.loads(output.splitlines()[-1])
    return make_rows(found["seconds"], found["bytes"])


def make_rows(seconds: dict[str, dict[str, list[float]]], size: int) -> list[Row]:
    """Make the table from the seconds by storage and by what was done."""
    rows = []
    for storage, taken in seconds.items():
        middle = {what: statistics.median(values) for what, values in taken.items()}
        for own, peer in (("save", "cp there"), ("restore", "cp back")):
            rows.append(Row(f"{storage}: {own} {size / 1e6:.0f} MB", middle[own], "s"))
            rows.append(Row(f"{storage}: {peer}", middle[peer], "s"))
            neighbours = [mine / other for mine, other in zip(taken[own], taken[peer], strict=True)]
            spread = f"between {min(neighbours):.2g} and {max(neighbours):.2g}"
            rows.append(Row("ratio in each round, median", statistics.median(neighbours), "× cp", note=spread))
    return [*rows, Row("", 0, "", note=NOTE)]
