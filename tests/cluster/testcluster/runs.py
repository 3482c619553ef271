"""Runs as their controllers record them: what tests read, and what they wait for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lightkube.core.client import Client
from lightkube.resources.apps_v1 import StatefulSet
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Pod

from trainchart_runtime.cluster import ROLES

from .images.plan import RUNTIME_IMAGE
from .releases import Release

CONTROLLED = {
    "tensorboard": {"enabled": False},
    "run": {"controller": {"enabled": True, "image": RUNTIME_IMAGE, "cpu": "10m"}},
}
"""Values of a release with a run controller from the small image, and nothing beside the training."""
TINY = {"cpu": "10m", "cpuLimit": "1", "memory": "64Mi", "shmSize": "16Mi"}
"""What a role asks for whose program is a few lines of Python."""
ENDED = ("Succeeded", "Failed", "Stopped")


def read_state(release: Release, client: Client) -> dict[str, Any] | None:
    """Return the record of a release's run; None before there is one."""
    found = client.get(ConfigMap, f"{release.name}-{release.chart.name}-state", namespace=release.namespace)
    state = json.loads((found.data or {}).get("state.json", "null"))
    assert state is None or isinstance(state, dict)
    return state


def wait_for_phase(release: Release, *phases: str, deadline_seconds: float = 90, **fields: Any) -> dict[str, Any]:
    """Wait until the record names one of `phases`, with these values in other fields, and return it."""

    def read(client: Client) -> dict[str, Any] | None:
        state = read_state(release, client)
        is_there = state and state["phase"] in phases and all(state[key] == value for key, value in fields.items())
        return state if is_there else None

    what = f"{release.name} {' or '.join(phases)} {fields or ''}"
    return release.access.wait_for(read, what, namespace=release.namespace, deadline_seconds=deadline_seconds)


def find_jobs(release: Release, client: Client) -> dict[str, Job]:
    """Return the jobs of a release: its run controllers'."""
    jobs = client.list(Job, namespace=release.namespace, labels=release.selector)  # type: ignore[arg-type]
    return {str(job.metadata.name): job for job in jobs if job.metadata}


def wait_for_job(release: Release, condition: str, *, deadline_seconds: float = 60) -> None:
    """Wait until the only Job of a release is `Complete` or `Failed`."""

    def read(client: Client) -> bool:
        (job,) = find_jobs(release, client).values()
        conditions = (job.status and job.status.conditions) or []
        return any(each.type == condition and each.status == "True" for each in conditions)

    what = f"a Job that is {condition}"
    release.access.wait_for(read, what, namespace=release.namespace, deadline_seconds=deadline_seconds)


def read_replicas(release: Release, client: Client) -> dict[str, int]:
    """Return how many pods every StatefulSet of the release is told to have."""
    sets = client.list(StatefulSet, namespace=release.namespace, labels=release.selector)  # type: ignore[arg-type]
    return {str(each.metadata.name): each.spec.replicas or 0 for each in sets if each.metadata and each.spec}


def training_pods(release: Release, client: Client) -> Mapping[str, Pod]:
    """Return the pods that train, by name."""
    return {name: pod for role in ROLES for name, pod in release.pods(client, role).items()}
