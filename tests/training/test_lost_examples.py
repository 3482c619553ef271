"""Batches that end: those of a worker end with a task that is lost, and others end for want of examples."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.free_ports import find_free_port

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]

PROGRAM = """
import json, os, sys
import tensorflow as tf
from tests.training.small_training import TRAINING, Settings
from trainchart_training.leading.stop import StopRequest
from trainchart_training.strategies import coordinator

cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
servers = [tf.distribute.Server(cluster, role, 0, protocol="grpc") for role in ("worker", "ps")]
endless = coordinator.build_batches
coordinator.build_batches = lambda *given, **named: endless(*given, **named).take(int(sys.argv[1]))
runner = coordinator.CoordinatorRunner(TRAINING, Settings(), StopRequest(5))
runner.begin()
try:
    for _ in range(3):
        runner.run(10)
except Exception as error:
    print(type(error).__name__, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(("batches", "error"), [(15, "PeerLost"), (0, "OutOfRangeError")])
def test_batches_end_with_a_lost_task_or_without_examples(batches: int, error: str) -> None:
    cluster = {role: [f"127.0.0.1:{find_free_port()}"] for role in ("chief", "worker", "ps")}
    config = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(batches)],
        env=os.environ | {"TF_CONFIG": config},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.split() == [error], done.stderr[-2000:]
