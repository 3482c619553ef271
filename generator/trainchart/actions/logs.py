"""The use case `trainchart logs`: a local run if there is one, else a release on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainchart.actions.support.cluster_logs import read_cluster_logs
from trainchart.actions.support.local_logs import read_local_logs
from trainchart.actions.support.log_filter import LogsFilter
from trainchart.actions.support.run_lookup import RunAddress, find_local_run
from trainchart.reports.log_line import LogLine


def read_logs(address: RunAddress, wanted: LogsFilter, note: Callable[[str], None]) -> Iterator[LogLine]:
    """Yield the lines asked for, oldest first; `note` is called with what is missing.

    Raises:
        ToolError: there is no such run, pod or failure.
        ClusterError: the cluster cannot be read.
    """
    folder = find_local_run(address)
    if folder is not None:
        return read_local_logs(folder, wanted, note)
    if not address.place.context and not address.place.namespace:
        note(f"note: no local run {address.name} in {address.runs_folder}; looking on the cluster")
    return read_cluster_logs(address.place, address.name, wanted, note)
