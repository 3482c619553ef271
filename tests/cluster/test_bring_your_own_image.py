"""image.injectLauncher: an image that has never heard of trainchart, of another Debian and Python, is run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.models.core_v1 import ContainerState, ContainerStatus

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.images.plan import FOREIGN_IMAGE
from tests.cluster.testcluster.releases import PROJECT, Release, container_statuses, digits_values, merge_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY, training_pods, wait_for_job, wait_for_phase

pytestmark = pytest.mark.cluster

PROGRAM = """
import json, os, pathlib, sys
files = sorted(str(path) for path in pathlib.Path("/opt").rglob("*"))
print(json.dumps({"python": list(sys.version_info[:2]), "files": files, "task": os.environ["TASK_TYPE"]}))
"""
"""Tells where it is, and ends; the image has no code of its own, and no TensorFlow."""
REPOSITORY, _, TAG = FOREIGN_IMAGE.rpartition(":")


def foreign_values(**image: Any) -> dict[str, Any]:
    values = merge_values(digits_values(), CONTROLLED)
    changes = {
        "image": {"repository": REPOSITORY, "tag": TAG, **image},
        "command": ["python3", "-c", PROGRAM],
        "workingDir": "/tmp",
        # The image names no user, so its own would be root.
        "podSecurityContext": {"runAsUser": 4711},
        "roles": {"worker": TINY},
    }
    return merge_values(values, changes)


def test_an_image_without_trainchart_is_run_to_its_verdict(admin: Access, namespace: str) -> None:
    release = Release(admin, namespace, "own", PROJECT / "charts" / "digits", foreign_values(injectLauncher=True))
    release.install()

    verdict = wait_for_phase(release, "Succeeded", "Failed")["verdict"]

    assert verdict["result"] == "Succeeded"
    (told,) = [json.loads(line) for line in verdict["lines"] if line.startswith("{")]
    assert told["python"] == [3, 13], "the image of the test is to have another Python than the training images"
    assert told["files"] == ["/opt/trainchart", "/opt/trainchart/launcher.pyz"], "nothing else of ours is in the image"
    assert told["task"] == "worker"
    wait_for_job(release, "Complete")
    assert not training_pods(release, admin.client())


def test_without_injection_the_launcher_is_missed_by_name(admin: Access, namespace: str) -> None:
    """What the test above rests on: this image has no launcher of its own."""
    values = merge_values(foreign_values(), {"run": {"controller": {"enabled": False}}})
    release = Release(admin, namespace, "none", PROJECT / "charts" / "digits", values)
    release.install()

    def read(client: Client) -> str | None:
        states = [
            s for pod in release.pods(client).values() for each in container_statuses(pod) for s in states_of(each)
        ]
        return next((state.terminated.message for state in states if state.terminated), None)

    message = admin.wait_for(read, "a container that has ended", namespace=namespace)
    assert "can't open file '/opt/trainchart/launcher.pyz'" in message


def states_of(status: ContainerStatus) -> list[ContainerState]:
    return [state for state in (status.state, status.lastState) if state]
