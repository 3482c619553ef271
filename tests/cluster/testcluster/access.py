"""What tests do with a cluster through its API, their own or somebody's: commands, reads, and waiting with a reason.

Owner of lightkube in the tests. Commands that a user would type are run with the real kubectl and helm; reads that are
repeated go through lightkube, since a kubectl process costs a tenth of a second of CPU.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.client import Client
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Event, Pod

from .config import GO_SETTINGS

Value = TypeVar("Value")
_POLL_SECONDS = 0.2
_NOT_YET = (404, 429, 500, 503, 504)
"""Answers for what does not exist yet, and of a server that has no time."""
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


class CommandFailed(Exception):
    """A command of the user's exited with an error; the message holds what it printed."""


class NotInTime(Exception):
    """What a test waited for did not come."""


@dataclass(frozen=True)
class Access:
    """A way into a cluster as one user."""

    kubeconfig: Path
    context: str | None
    programs: tuple[Path, ...]
    """Folders that are put in front of PATH; kubectl is in one of them."""
    direct_host: str = ""
    """Host that no proxy leads to, since only this machine knows it."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment in which kubectl, helm and trainchart reach the cluster as this user."""
        path = os.pathsep.join([*map(str, self.programs), os.environ["PATH"]])
        # Helm keeps state in the user's home; tests neither see it nor leave any.
        state = {f"HELM_{name}_HOME": str(self.kubeconfig.parent / "helm") for name in ("CACHE", "CONFIG", "DATA")}
        direct = keep_direct(os.environ, self.direct_host)
        # A plain xterm: what is printed does not depend on where the tests run.
        plain = {"KUBECONFIG": str(self.kubeconfig), "PATH": path, "NO_COLOR": "1"}
        return {**os.environ, **GO_SETTINGS, **state, **direct, **plain}

    def client(self) -> Client:
        """Return a lightkube client as this user."""
        return Client(config=KubeConfig.from_file(self.kubeconfig).get(context_name=self.context), trust_env=False)

    def run(
        self, argv: Sequence[str | Path], *, text: str | None = None, check: bool = True, timeout_seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a user's command; CommandFailed with its output if it exits with an error and `check` is set."""
        done = subprocess.run(
            [str(word) for word in argv],
            input=text,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=timeout_seconds,
        )
        if check and done.returncode != 0:
            raise CommandFailed(f"{argv} exited with {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = True) -> str:
        """Run kubectl and return what it printed."""
        context = [f"--context={self.context}"] if self.context else []
        return self.run(["kubectl", *context, *arguments], text=text, check=check).stdout

    def wait_for_log(self, pod: str, *, namespace: str) -> str:
        """Return what a pod printed once it has ended well."""

        def has_ended(client: Client) -> bool:
            status = client.get(Pod, pod, namespace=namespace).status
            assert status is None or status.phase != "Failed", pod
            return status is not None and status.phase == "Succeeded"

        self.wait_for(has_ended, f"the end of pod {pod}", namespace=namespace)
        return self.kubectl("logs", pod, "-n", namespace)

    def wait_for(
        self, read: Callable[[Client], Value | None], what: str, *, namespace: str, deadline_seconds: float = 60
    ) -> Value:
        """Return the first value of `read` that is neither None nor False; NotInTime after the deadline.

        An object that does not exist yet counts as None, and so does a server that has no time now.
        """
        client = self.client()
        deadline = time.monotonic() + deadline_seconds
        while True:
            value = _read(client, read)
            if value is not None and value is not False:
                return value
            if time.monotonic() > deadline:
                raise NotInTime(f"{what}: not within {deadline_seconds:.0f} s in namespace {namespace}")
            time.sleep(_POLL_SECONDS)


def keep_direct(environment: Mapping[str, str], host: str) -> dict[str, str]:
    """Return the variables that let programs reach a host past the proxies of this environment; none where it has none.

    Both spellings, since every library has its own favourite.
    """
    if not host or not any(environment.get(name) for name in _PROXIES):
        return {}
    kept = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    return dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(filter(None, (kept, host))))


def describe(client: Client, namespace: str, start: str = "") -> str:
    """Describe what goes on in a namespace: pods with states, last events, last lines of every container.

    With `start`, only of pods and objects whose names start like this.
    """
    try:
        return _describe(client, namespace, start)
    # Of any library below: a test that fails while it keeps the API server down must not take the others with it.
    except Exception as error:
        return f"the cluster cannot be asked: {type(error).__name__}: {error}"


def _describe(client: Client, namespace: str, start: str) -> str:
    lines = []
    for pod in client.list(Pod, namespace=namespace):
        assert pod.metadata is not None
        if not str(pod.metadata.name).startswith(start):
            continue
        status = pod.status
        containers = status.containerStatuses or [] if status else []
        states = [f"{c.name}: restarts {c.restartCount}, {c.state and c.state.to_dict()}" for c in containers]
        lines.append(f"pod {pod.metadata.name} {status and status.phase} on {pod.spec and pod.spec.nodeName} {states}")
        for container in containers:
            log = _read_log(client, str(pod.metadata.name), namespace, str(container.name))
            lines += [f"    {line}" for line in log]
    events = [event for event in client.list(Event, namespace=namespace) if event.type != "Normal"]
    events = [event for event in events if str(event.involvedObject.name).startswith(start)]
    lines += [f"event {e.involvedObject.name} {e.reason}: {e.message}" for e in events[-15:]]
    return "\n".join(lines)


def _read_log(client: Client, pod: str, namespace: str, container: str) -> list[str]:
    try:
        lines = client.log(pod, namespace=namespace, container=container, tail_lines=15)
        return [f"{container}: {line.rstrip()[:300]}" for line in lines]
    # A node that does not answer says nothing for ten seconds, and then the client raises an error of its own.
    except Exception as error:
        return [f"{container}: no log: {type(error).__name__}: {error}"]


def _read(client: Client, read: Callable[[Client], Value | None]) -> Value | None:
    try:
        return read(client)
    except ApiError as error:
        if error.status.code in _NOT_YET:
            return None
        raise
