"""Processes are killed at any moment, hundreds of times: what TensorFlow says of it in the others is understood."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.training.restarted_peers import TRAININGS, Death, hurt, open_group, start_ended_again
from trainchart_runtime import causes

pytestmark = [pytest.mark.tensorflow, pytest.mark.long, pytest.mark.timeout(1500)]

KILLS = 60
LONGEST_WAIT_SECONDS = 5.0
"""Between two kills: as long as a process takes to start, to find the others and to make some steps."""


def is_end_of_examples(death: Death) -> bool:
    """Say whether a worker's examples ended with the death of a task, which TensorFlow words as any other end of them.

    The training library knows that its batches never end; of other programs, the restart counts.
    """
    is_rare_end = death.diagnosis.error.endswith("OutOfRangeError: End of sequence")
    return is_rare_end and death.diagnosis.cause is causes.PROGRAM_ERROR


@pytest.mark.parametrize("strategy", sorted(TRAININGS))
def test_errors_after_a_kill_have_causes_and_training_goes_on(strategy: str, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with open_group(strategy, tmp_path) as group:
        deaths: list[Death] = list(hurt(group, KILLS, random.Random(seed), LONGEST_WAIT_SECONDS))
        if strategy == "between-graph-sync":
            # Its queue stays closed until the ps that holds it starts anew.
            for task in (task for task in group.tasks if task[0] == "ps"):
                group.kill(task)
                group.start(task)
        deadline = time.monotonic() + 180
        while group.count_steps() < 3 and time.monotonic() < deadline:
            deaths += start_ended_again(group, "nobody any more")
            time.sleep(0.5)
        assert group.count_steps() >= 3
    for death in deaths:
        print(f"{death.task}, after {death.killed} was killed: {death.diagnosis.cause.name}: {death.diagnosis.error}")
    # MonitoredTrainingSession takes the end of SyncReplicasOptimizer's queue for the end of the data.
    known = {causes.PEER_LOST, causes.SUCCEEDED} if strategy == "between-graph-sync" else {causes.PEER_LOST}
    unknown = [death for death in deaths if death.diagnosis.cause not in known and not is_end_of_examples(death)]
    assert not unknown, "\n\n".join("\n".join(death.lines[-30:]) for death in unknown)
