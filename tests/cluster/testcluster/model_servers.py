"""Releases of a model server beside the training whose export they serve."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from lightkube.core.client import Client
from lightkube.resources.apps_v1 import Deployment

from .access import Access
from .images.plan import SERVING_IMAGE
from .pods import dump_objects, plan_pod
from .releases import PROJECT, TRAINING_GROUP, Release, make_mnist_chart, make_values, merge_values
from .runs import CONTROLLED, wait_for_phase

SPEC = PROJECT / "chart-templates" / "model-server" / "tests" / "digits-prod.yaml"
CLAIM = "exp-7-mnist-checkpoints"
"""Where the spec above takes its export from."""
SECONDS = 120


def train_export(access: Access, namespace: str, folder: Path) -> str:
    """Train the release whose export is served; return the content hash of the export."""
    chart = make_mnist_chart(folder, "single", {"worker": {}})
    values = merge_values(make_values("mnist", ("worker",), maxSteps=40, checkpointSteps=40), CONTROLLED)
    trained = Release(access, namespace, "exp-7", chart, values)
    trained.install()
    wait_for_phase(trained, "Succeeded", deadline_seconds=SECONDS)
    command = "sha256sum /volume/saved_model/SHA256SUMS"
    pod = plan_pod("hashes", command, claim=CLAIM, fs_group=TRAINING_GROUP, is_read_only=True)
    access.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(pod))
    return "sha256:" + access.wait_for_log("hashes", namespace=namespace).split()[0]


def install_server(access: Access, namespace: str, folder: Path, content: str, **values: Any) -> Release:
    """Install the release `digits`, which serves that export as version 40, and wait for its pods."""
    (folder / "models").mkdir()
    shutil.copy(SPEC, folder / "models" / "digits-prod.yaml")
    subprocess.run([sys.executable, "-m", "trainchart", "generate"], cwd=folder, check=True, capture_output=True)
    repository, _, tag = SERVING_IMAGE.rpartition(":")
    common = {
        "image": {"repository": repository, "tag": tag},
        "model": {"version": 40, "content": content},
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
    }
    chart = folder / "charts" / "digits-prod"
    release = Release(access, namespace, "digits", chart, merge_values(common, values))
    release.install()
    wait_for_rollout(release, 40)
    return release


def wait_for_rollout(release: Release, version: int, deadline_seconds: float = SECONDS) -> None:
    """Wait until all pods serve a version, and no other pod is left."""

    def is_done(client: Client) -> bool:
        found = client.get(Deployment, release.name, namespace=release.namespace)
        assert found.spec and found.spec.replicas and found.spec.template.metadata
        annotations = found.spec.template.metadata.annotations or {}
        status = found.status
        return (
            annotations["trainchart/version"] == str(version)
            and status is not None
            and found.metadata is not None
            and (status.observedGeneration or 0) >= (found.metadata.generation or 0)
            and status.updatedReplicas == status.availableReplicas == status.replicas == found.spec.replicas
        )

    what = f"{release.name} with version {version}"
    release.access.wait_for(is_done, what, namespace=release.namespace, deadline_seconds=deadline_seconds)


def wait_for_pods(release: Release, number: int, deadline_seconds: float = SECONDS) -> None:
    """Wait until as many pods serve, and no other pod is left."""

    def is_done(client: Client) -> bool:
        status = client.get(Deployment, release.name, namespace=release.namespace).status
        return status is not None and status.availableReplicas == status.replicas == number

    what = f"{number} pods of {release.name}"
    release.access.wait_for(is_done, what, namespace=release.namespace, deadline_seconds=deadline_seconds)
