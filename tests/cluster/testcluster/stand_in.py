"""Releases whose pods run stand_in_program.py instead of TensorFlow: their values, and what the pods say.

Starting one costs a twentieth of a TensorFlow, for tests that ask what pods get and whom they reach.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightkube.core.client import Client
from lightkube.core.exceptions import ApiError

from trainchart_runtime.contract import TF_CONFIG

from .access import Access
from .releases import PROJECT, Release, make_values, merge_values

FOLDER = "/stand-in"
ROLES = {"mnist": ("chief", "worker", "ps", "evaluator"), "mnist-classic": ("worker", "ps"), "digits": ("worker",)}
PROGRAM = Path(__file__).with_name("stand_in_program.py")


@dataclass(frozen=True)
class Peer:
    """What a pod found behind one address of its TF_CONFIG."""

    address: str = ""
    """Number to which the name resolved; empty if it did not."""
    pod: str = ""
    """Name by which the other side introduced itself; empty if nobody answered."""
    error: str = ""


@dataclass(frozen=True)
class Report:
    """The last that one stand-in has said."""

    given: Mapping[str, Any] = field(default_factory=dict)
    """As `_describe_given` of the program says; empty before it has started."""
    peers: Mapping[str, Peer] = field(default_factory=dict)
    """Task → what was found there, for every other task of TF_CONFIG."""
    files: tuple[str, ...] = ()
    """Names in the checkpoints' folder, where every pod leaves its own."""

    @property
    def tf_config(self) -> Mapping[str, Any]:
        config: Mapping[str, Any] = json.loads(self.given["program"]["environment"][TF_CONFIG])
        return config

    @property
    def met(self) -> dict[str, str]:
        """Task → pod, for the peers that have answered."""
        return {task: peer.pod for task, peer in self.peers.items() if peer.pod}

    @property
    def is_complete(self) -> bool:
        """Whether the program has started and every peer has answered."""
        if not self.given:
            return False
        has_peers = TF_CONFIG in self.given["program"]["environment"]
        return len(self.met) == len(self.peers) and bool(self.peers) == has_peers


def plan_stand_ins(
    access: Access, namespace: str, name: str, model: str, changes: Mapping[str, Any] | None = None
) -> Release:
    """Plan a release of an example model with the stand-in as its program, small enough for a dozen on two nodes."""
    program = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _config_map_name(name)},
        "data": {"program.py": PROGRAM.read_text()},
    }
    values = {
        "command": ["python3", f"{FOLDER}/program.py"],
        "extraManifests": [program],
        "extraVolumes": [{"name": "stand-in", "configMap": {"name": _config_map_name(name)}}],
        "extraVolumeMounts": [{"name": "stand-in", "mountPath": FOLDER, "readOnly": True}],
        "tensorboard": {"enabled": False},
        "roles": {role: {"cpu": "10m", "memory": "64Mi", "shmSize": "16Mi"} for role in ROLES[model]},
    }
    values = merge_values(merge_values(make_values(model, ROLES[model]), values), changes or {})
    return Release(access, namespace, name, PROJECT / "charts" / model, values)


def parse_report(lines: Iterable[str]) -> Report:
    """Parse the log of a pod; lines of the launcher and half a last line are passed over."""
    said: dict[str, Any] = {}
    for line in lines:
        start = line.find('{"stand-in"')
        if start >= 0 and line.rstrip().endswith("}}"):
            said.update(json.loads(line[start:])["stand-in"])
    seen = said.get("seen", {})
    peers = {task: Peer(**found) for task, found in seen.get("peers", {}).items()}
    return Report(said.get("given", {}), peers, tuple(seen.get("files", ())))


def read_report(release: Release, pod: str, client: Client) -> Report:
    """Return what a pod has said up to now: nothing where its container has not started."""
    try:
        return parse_report(client.log(pod, namespace=release.namespace, container="training"))
    except ApiError as error:
        if error.status.code in (400, 404):
            return Report()
        raise


def wait_for_reports(release: Release, count: int, deadline_seconds: float = 90) -> dict[str, Report]:
    """Wait until so many pods of a release say what they were given and that every peer has answered."""
    done: dict[str, Report] = {}

    def read(client: Client) -> dict[str, Report] | None:
        pods = release.pods(client)
        for pod in pods:
            if pod not in done:
                report = read_report(release, pod, client)
                if report.is_complete:
                    done[pod] = report
        return done if len(pods) == len(done) == count else None

    what = f"{count} pods of {release.name} that reach all peers"
    return release.access.wait_for(read, what, namespace=release.namespace, deadline_seconds=deadline_seconds)


def _config_map_name(release: str) -> str:
    return f"{release}-stand-in"
