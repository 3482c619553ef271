"""Releases of the example charts in a test's namespace: values for a small cluster, what Helm does, and their pods."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from lightkube.core.client import Client
from lightkube.models.core_v1 import ContainerStatus
from lightkube.resources.core_v1 import Pod

from trainchart.actions.support.chart_folder import render_model_to
from trainchart_runtime.termination import Termination, parse_termination

from .access import Access
from .config import REGISTRY_HOST

IDLE = {"command": ["python3", "-c", "import signal; signal.pause()"], "tensorboard": {"enabled": False}}
"""Values of pods that cost nothing, for tests that ask what becomes of a release and not of its training."""
PROJECT = Path(__file__).resolve().parents[3]
SMALL = {"cpu": "100m", "cpuLimit": "2", "memory": "1Gi"}
"""What a role asks for, so that a whole release fits on two small nodes, and still starts quickly."""
TRAINING_GROUP = 1000
"""The charts' fsGroup."""
TRAINING_SECONDS = 180
"""Deadline for a few hundred steps on a busy machine."""


def make_values(model: str, roles: tuple[str, ...], **hyperparameters: Any) -> dict[str, Any]:
    """Make values of an example model: images of the tests' registry, shared storage, small pods, no run controller."""
    return {
        "run": {"controller": {"enabled": False}},
        "image": {"repository": f"{REGISTRY_HOST}/ml/{model}"},
        "hyperparameters": hyperparameters,
        "volumes": {"checkpoints": {"storageClass": "shared", "size": "1Gi"}},
        "roles": {role: dict(SMALL) for role in roles},
        "tensorboard": {"cpuLimit": "2"},
    }


def merge_values(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with changes laid over them, mapping by mapping, as Helm does with several value files."""
    merged = dict(values)
    for key, change in changes.items():
        old = merged.get(key)
        merged[key] = merge_values(old, change) if isinstance(old, dict) and isinstance(change, Mapping) else change
    return merged


def mnist_values(**hyperparameters: Any) -> dict[str, Any]:
    """Values of charts/mnist: parameter server, two workers, an evaluator, and a few hundred steps."""
    settings = {"maxSteps": 300, "checkpointSteps": 100, **hyperparameters}
    return make_values("mnist", ("chief", "worker", "ps", "evaluator"), **settings)


def make_mnist_chart(folder: Path, strategy: str, roles: Mapping[str, Mapping[str, Any]]) -> Path:
    """Make the chart of models/mnist.yaml with another strategy and its roles in `folder`; return where it is."""
    spec = yaml.safe_load((PROJECT / "models" / "mnist.yaml").read_text())
    shutil.copytree(PROJECT / spec["code"]["path"], folder / "code")
    code = {**spec["code"], "path": "code"}
    file = folder / "mnist.yaml"
    file.write_text(yaml.safe_dump({**spec, "strategy": strategy, "roles": roles, "code": code}))
    return render_model_to(file, folder).chart


def digits_values(**hyperparameters: Any) -> dict[str, Any]:
    """Values of charts/digits: one process."""
    return make_values("digits", ("worker",), **hyperparameters)


@dataclass(frozen=True)
class Release:
    """A release of a chart; nothing is installed before a method says so."""

    access: Access
    namespace: str
    name: str
    chart: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    helm: str | Path = "helm"
    """Program to use; helm 4 is the one on PATH."""

    @property
    def selector(self) -> dict[str, str]:
        """Labels of everything that belongs to the release."""
        return {"app.kubernetes.io/instance": self.name, "app.kubernetes.io/name": self.chart.name}

    def install(self, *arguments: str) -> str:
        """Install and return what helm printed, NOTES included."""
        return self._helm("install", *arguments)

    def upgrade(self, *arguments: str) -> str:
        """Upgrade with the release's values and chart."""
        return self._helm("upgrade", *arguments)

    def template(self, *arguments: str) -> str:
        """Render the manifests without a cluster."""
        return self._helm("template", *arguments)

    def uninstall(self) -> str:
        """Uninstall, without waiting for the pods to end."""
        return self.access.run([self.helm, "uninstall", self.name, *self._where]).stdout

    def _helm(self, verb: str, *arguments: str) -> str:
        argv = [self.helm, verb, self.name, self.chart, *self._where, "--values=-", *arguments]
        return self.access.run(argv, text=json.dumps(self.values)).stdout

    @property
    def _where(self) -> list[str]:
        context = [f"--kube-context={self.access.context}"] if self.access.context else []
        return [f"--namespace={self.namespace}", *context]

    def pods(self, client: Client, component: str | None = None) -> dict[str, Pod]:
        """Return the release's pods by name, those of one role if it is named."""
        labels: dict[str, str] = dict(self.selector)
        if component:
            labels["app.kubernetes.io/component"] = component
        found = client.list(Pod, namespace=self.namespace, labels=labels)  # type: ignore[arg-type]
        return {str(pod.metadata.name): pod for pod in found if pod.metadata}

    def wait_until_running(self, count: int, deadline_seconds: float = 60) -> dict[str, Pod]:
        """Wait until this many pods run every container, and return them."""

        def read(client: Client) -> dict[str, Pod] | None:
            pods = self.pods(client)
            running = [pod for pod in pods.values() if all(status.started for status in container_statuses(pod))]
            return pods if len(pods) == len(running) == count else None

        what = f"{count} running pods of {self.name}"
        return self.access.wait_for(read, what, namespace=self.namespace, deadline_seconds=deadline_seconds)

    def wait_until_succeeded(self, pod: str, deadline_seconds: float = TRAINING_SECONDS) -> Termination:
        """Wait until a pod's program has succeeded, and return what its launcher says about it."""

        def read(client: Client) -> Termination | None:
            termination = read_termination(client.get(Pod, pod, namespace=self.namespace))
            return termination if termination and termination.succeeded else None

        what = f"success of {pod}"
        return self.access.wait_for(read, what, namespace=self.namespace, deadline_seconds=deadline_seconds)


def copy_chart(chart: Path, folder: Path, version: str) -> Path:
    """Copy a chart into `folder` as its next version; the program's version stays, since no image was built."""
    copy = Path(shutil.copytree(chart, folder / version / chart.name))
    file = copy / "Chart.yaml"
    text, changed = re.subn(r"^version: .*$", f"version: {version}", file.read_text(), flags=re.MULTILINE)
    assert changed == 1
    file.write_text(text)
    return copy


def list_objects(access: Access, namespace: str) -> set[str]:
    """List everything in a namespace, of whatever kind the API server knows, as `kind/name`; but no events."""
    kinds = ",".join(_list_kinds(access))
    return set(access.kubectl("get", kinds, f"--namespace={namespace}", "--output=name").split())


@functools.cache
def _list_kinds(access: Access) -> list[str]:
    kinds = access.kubectl("api-resources", "--verbs=list", "--namespaced", "--output=name").split()
    return [kind for kind in kinds if not kind.startswith("events")]


def container_statuses(pod: Pod) -> list[ContainerStatus]:
    """Return the statuses of a pod's containers; before there are any, one of a container that has not started."""
    statuses = list(pod.status.containerStatuses or []) if pod.status else []
    return statuses or [ContainerStatus(name="", image="", imageID="", ready=False, restartCount=0, started=False)]


def read_termination(pod: Pod) -> Termination | None:
    """Return what the launcher said about the last program that ended in a pod's training container, if one has."""
    for status in container_statuses(pod):
        for state in (status.state, status.lastState):
            if state and state.terminated and status.name == "training":
                return parse_termination(state.terminated.message or "")
    return None
