"""Where faults happen: one cluster, reached from below (its processes) and from above (its API)."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from ..access import Access, CommandFailed
from ..cluster import Cluster
from .fault import AwaitPort, Inside, Kubectl, RunComponent, StartComponent, Step, StopComponent

_POLL_SECONDS = 0.1
_PORT_SECONDS = 20


@dataclass(frozen=True)
class Site:
    """A cluster of the tests' own, with an administrator's access to it."""

    cluster: Cluster
    access: Access

    def perform(self, step: Step) -> None:
        """Perform a step; the errors are those of Cluster, its control socket and Access."""
        match step:
            case Inside(argv, node):
                self.cluster.run_inside(argv, node=node)
            case StopComponent(name):
                self.cluster.stop_component(name)
            case StartComponent(name):
                self.cluster.start_component(name)
            case RunComponent(component):
                self.cluster.run_component(component)
            case Kubectl(arguments, text, retry_seconds):
                self._run_kubectl(arguments, text, retry_seconds)
            case AwaitPort(port):
                self._await_port(port)

    def _run_kubectl(self, arguments: tuple[str, ...], text: str | None, retry_seconds: float) -> None:
        deadline = time.monotonic() + retry_seconds
        while True:
            try:
                self.access.kubectl(*arguments, text=text)
                return
            except CommandFailed:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_POLL_SECONDS)

    def _await_port(self, port: int) -> None:
        deadline = time.monotonic() + _PORT_SECONDS
        while True:
            try:
                socket.create_connection((self.cluster.config.address, port), timeout=_PORT_SECONDS).close()
                return
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_POLL_SECONDS)
