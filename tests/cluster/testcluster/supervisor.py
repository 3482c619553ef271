"""Start, stop and watch the cluster's processes; runs as the first process of their namespaces.

Owner of process handling inside the cluster. A component that ends by itself is an error that shows its own last
lines, wherever somebody waits for something.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from .components import Component
from .network import in_namespace

_POLL_SECONDS = 0.05
_SHOWN_LINES = 10


class ComponentDied(Exception):
    """A component ended though nobody stopped it."""


class NotInTime(Exception):
    """What was waited for did not come; the message names it and shows logs."""


class Supervisor:
    """The processes of one cluster, by the name of their component."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._components: dict[str, Component] = {}
        logs.mkdir(exist_ok=True)

    def start(self, component: Component) -> None:
        """Start a component; what it prints is appended to its log."""
        prefix = in_namespace(component.node) if component.node else ()
        with self._log(component.name).open("ab") as log:
            self._processes[component.name] = subprocess.Popen(
                [*prefix, *component.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
            )
        self._components[component.name] = component

    def restart(self, name: str) -> None:
        """Start a stopped component again."""
        self.start(self._components[name])

    def stop(self, name: str, number: int = signal.SIGKILL, deadline_seconds: float = 10) -> None:
        """End a component and wait until it is gone; kill it when it takes longer."""
        process = self._processes.pop(name)
        process.send_signal(number)
        try:
            process.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def known(self) -> list[str]:
        """Return the names of all components, stopped ones too."""
        return list(self._components)

    def started(self) -> list[str]:
        """Return the names of those that nobody has stopped, whether they live or not."""
        return list(self._processes)

    def raise_for_dead(self) -> None:
        """Raise ComponentDied with the last lines of a component that ended by itself."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None:
                raise ComponentDied(f"{name} ended with {code}; its last lines:\n{self.read_tail(name)}")

    def read_tail(self, name: str) -> str:
        """Return the last lines of a component's log."""
        lines = self._log(name).read_text(errors="replace").splitlines() if self._log(name).exists() else []
        return "\n".join(f"  {line[:400]}" for line in lines[-_SHOWN_LINES:])

    def wait_until(
        self, met: Callable[[], bool], what: str, deadline_seconds: float, suspects: tuple[str, ...]
    ) -> None:
        """Wait for a condition while every component lives; the error shows the logs of the suspects."""
        deadline = time.monotonic() + deadline_seconds
        while not met():
            self.raise_for_dead()
            if time.monotonic() > deadline:
                logs = "\n".join(f"{name}:\n{self.read_tail(name)}" for name in suspects)
                raise NotInTime(f"{what}: not within {deadline_seconds:.0f} s\n{logs}")
            time.sleep(_POLL_SECONDS)

    def reap_orphans(self) -> None:
        """Collect what ended and has no other parent left, as the first process of a namespace must."""
        own = {process.pid for process in self._processes.values()}
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in own:
                return
            os.waitpid(ended.si_pid, 0)

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"
