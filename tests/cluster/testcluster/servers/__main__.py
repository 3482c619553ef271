"""Storage servers by hand, in the cluster that `make cluster-up` has started."""

from __future__ import annotations

import argparse
import sys
import time

from ..access import Access
from ..cluster import CHECKOUT, find_clusters
from .running import NAMES, ServerError, plan_server, start_server, stop_server


def main() -> int:
    """Start or stop one server and say what happened."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.testcluster.servers", description=__doc__)
    parser.add_argument("command", choices=("start", "stop"))
    parser.add_argument("server", choices=NAMES)
    parser.add_argument("cluster", nargs="?", help="which cluster, where several of this checkout run")
    given = parser.parse_args()
    own = [one for one in find_clusters() if given.cluster == one.config.name or one.started_by == str(CHECKOUT)]
    found = [one for one in own if given.cluster in (None, one.config.name)]
    if len(found) != 1:
        print(f"{len(found)} clusters fit; start one with: make cluster-up, or name one", file=sys.stderr)
        return 1
    cluster, server = found[0], plan_server(given.server)
    admin = Access(cluster.kubeconfig, None, (cluster.programs,), cluster.config.address)
    start = time.monotonic()
    try:
        {"start": start_server, "stop": stop_server}[given.command](server, cluster, admin)
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{given.command} of {server.name}: {time.monotonic() - start:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
