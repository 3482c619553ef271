"""Real storage servers beside the test cluster: GlusterFS with three bricks, and Ceph with three OSDs.

`glusterfs.py` and `ceph.py` plan them as data, `running.py` starts and stops them in a running cluster. By hand:
`python -m tests.cluster.testcluster.servers start cephfs`.
"""

from .running import find_leftovers, find_missing, plan_server, start_server, stop_server

__all__ = ["find_leftovers", "find_missing", "plan_server", "start_server", "stop_server"]
