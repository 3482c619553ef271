"""What others can ask while the program lives: its present status, and its missing peers, as HTTP pages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Mapping, Optional

from trainchart_launcher.console import print_line
from trainchart_launcher.peers import PeerWatch
from trainchart_launcher.settings import Settings
from trainchart_launcher.signals import Signals
from trainchart_launcher.state import StepWatch, read_progress
from trainchart_launcher.status import Status, dump_status, render_metrics
from trainchart_runtime.cluster import needed_peers
from trainchart_runtime.contract import USE_QUERY
from trainchart_runtime.io.pages import Guard, serve_pages
from trainchart_runtime.metrics_text import CONTENT_TYPE

if TYPE_CHECKING:
    from trainchart_launcher.cgroup import MemoryKills
    from trainchart_launcher.fence import Fence
    from trainchart_launcher.throttle_watch import ThrottleWatch
    from trainchart_launcher.use import UseWatch
    from trainchart_runtime.throttling import Throttling


class Report:
    """The pod's status, kept by the supervisor and read by the status page's threads."""

    def __init__(self, settings: Settings, signals: Signals, fence: Optional[Fence]) -> None:
        self._settings = settings
        self._signals = signals
        self._fence = fence
        task = settings.task
        self._status = Status(task.task_type, task.task_index, settings.run_id, since=time.time())
        self._peers: Optional[PeerWatch] = None
        self._memory_kills: Optional[MemoryKills] = None
        self._seen_kills, self._memory_kill, self._killed_at = 0, "", 0.0
        self._use: Optional[UseWatch] = None
        self._throttle_watch: Optional[ThrottleWatch] = None
        self._is_served = False

    def update(self, **changes: Any) -> None:
        """Replace fields of the status; a new `state` also renews `since`."""
        if "state" in changes:
            changes["since"] = time.time()
        self._status = self._status._replace(**changes)

    def serve(self) -> None:
        """Open the status page, once in this process's life."""
        if self._is_served:
            return
        self._is_served = True
        cluster = self._settings.cluster
        own = cluster.address(self._settings.task, cluster.status_port)
        host, _, port = self._settings.addresses.get(own, f":{cluster.status_port}").rpartition(":")
        pages = {
            # What is used is measured for those who ask for it, and not for the run controller's looks.
            "/status": (
                "application/json",
                lambda query: self._render(dump_status, self._read_use() if query == USE_QUERY else None),
            ),
            "/metrics": (CONTENT_TYPE, lambda query: self._render(render_metrics)),
        }
        try:
            # The network may let in any client. A pod's uid is known to itself and to those who may read pods.
            serve_pages(host.strip("[]"), int(port), pages, Guard(("/status",), self._settings.pod_uid))
        except OSError as err:
            print_line(f"no status page: port {port} cannot be used: {err}")

    def watch_peers(self) -> None:
        """Look for the peers of a new attempt."""
        self.stop_watching()
        cluster, addresses = self._settings.cluster, self._settings.addresses
        tasks = (self._settings.task, *needed_peers(cluster, self._settings.task))
        own, *needed = (cluster.address(task, cluster.port) for task in tasks)
        self._peers = PeerWatch(
            [addresses.get(address, address) for address in needed],
            addresses.get(own, own),
            StepWatch(self._settings).has_step,
        )
        self._peers.start()

    def watch_memory(self, memory_kills: MemoryKills) -> None:
        """Look for processes of a new attempt that the kernel kills for memory, each time someone asks."""
        self._seen_kills, self._memory_kill, self._killed_at = 0, "", 0.0
        self._memory_kills = memory_kills

    def stop_watching(self) -> None:
        self._memory_kills = None
        if self._peers:
            self._peers.stop()
        self._peers = None

    def measure_throttling(self) -> Optional[Throttling]:
        """Return how the container was throttled of late; None where it has no CPU limit, or that is not known."""
        if self._throttle_watch is None:
            from trainchart_launcher.throttle_watch import ThrottleWatch

            self._throttle_watch = ThrottleWatch()
        return self._throttle_watch.measure()

    def _note_memory_kills(self) -> None:
        """Look whether the kernel has killed more processes; their parent may wait for them in silence."""
        seen = self._memory_kills.peek() if self._memory_kills else 0
        if seen > self._seen_kills:
            from trainchart_launcher.cgroup import read_limit_mib
            from trainchart_runtime.classify import describe_memory_kills

            self._seen_kills, self._killed_at = seen, time.time()
            words = describe_memory_kills(seen, read_limit_mib())
            stamp = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self._killed_at))
            self._memory_kill = f"{words} (seen at {stamp})"
            print_line(f"{self._settings.task}: {words}")

    def _read_use(self) -> Mapping[str, Any]:
        """Return what the container uses; nothing where that cannot be found out, which no reader must suffer from."""
        try:
            if self._use is None:
                from trainchart_launcher.use import UseWatch

                self._use = UseWatch()
            return self._use.read()
        except Exception:
            return {}

    def _render(self, render: Any, use: Optional[Mapping[str, Any]] = None) -> str:
        self._note_memory_kills()
        peers, status = self._peers, self._status._replace(use=use, throttling=self.measure_throttling())
        if self._memory_kills:
            status = status._replace(memory_kill=self._memory_kill, memory_killed_at=self._killed_at)
        if self._fence:
            status = status._replace(silent_storage=self._fence.describe_silence())
        if self._signals.stop_signal:
            status = status._replace(state="stopping")
        elif self._fence and self._fence.is_paused:
            status = status._replace(state="paused")
        return str(render(status, read_progress(self._settings), peers.waiting() if peers else []))
