"""Training pods on simulated nodes: the values that put them there, and how their programs end."""

from __future__ import annotations

import time
from typing import Any

from lightkube.core.client import Client
from lightkube.models.core_v1 import ContainerState, ContainerStateTerminated, ContainerStatus
from lightkube.models.core_v1 import PodStatus as Status
from lightkube.resources.core_v1 import PodStatus
from lightkube.types import PatchType

from tests.cluster.testcluster.fake_nodes import SELECTOR, TOLERATION
from tests.cluster.testcluster.releases import merge_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY
from trainchart_runtime import causes
from trainchart_runtime.contract import TRAINING_CONTAINER
from trainchart_runtime.termination import Termination, dump_termination


def _make_fake_values() -> dict[str, Any]:
    where = {"nodeSelector": SELECTOR, "tolerations": [TOLERATION]}
    # Claims of the tests' cluster are on its real nodes.
    volumes = {"checkpoints": {"uri": "gs://bucket/unused"}}
    return merge_values(CONTROLLED, {"volumes": volumes, "roles": {"worker": {**TINY, **where}}})


FAKE_VALUES = _make_fake_values()
"""Values of a release whose training pods only seem to run; its controller is a real one."""


def end_program(client: Client, namespace: str, pod: str) -> None:
    """Let a fake pod's program have succeeded, as its launcher and its kubelet would tell it."""
    message = dump_termination(Termination(causes.SUCCEEDED.name, 0, finished_at=time.time())).decode()
    terminated = ContainerStateTerminated(exitCode=0, reason="Completed", message=message)
    status = ContainerStatus(
        name=TRAINING_CONTAINER,
        image="",
        imageID="",
        ready=False,
        restartCount=0,
        state=ContainerState(terminated=terminated),
    )
    patch = {"status": Status(containerStatuses=[status]).to_dict()}
    # A container is in one state: the merge would leave the other one there.
    patch["status"]["containerStatuses"][0]["state"]["running"] = None
    client.patch(PodStatus, pod, patch, namespace=namespace, patch_type=PatchType.STRATEGIC)
