"""What goes wrong on storage that can be reached: a full quota, and a folder that was exchanged on its server.

A training of one process meets them where the provisioner mounts the file systems; it has no pod.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from trainchart_runtime.classify import Diagnosis, Ending, classify

from .cluster import Cluster
from .releases import PROJECT
from .servers.plan import CONTROL_PLANE, find_mounts

_PROGRAM = """
import hashlib, subprocess, sys
sys.path.insert(0, sys.argv[1])
from dataclasses import replace
from tests.training.small_training import TRAINING
from trainchart_training import Hook, train
class Meet(Hook):
    model = None
    def begin(self, model, step):
        self.model = model
        self.tell("began", step)
    def saved(self, step, path):
        # The first one is saved before the training begins.
        if self.model is not None:
            self.tell("saved", step)
    def logged(self, step, values):
        if step == 40:
            subprocess.run(["sh", "-ec", sys.argv[2]], check=True)
    def tell(self, what, step):
        content = b"".join(weight.tobytes() for weight in self.model.get_weights())
        print(what, step, hashlib.sha256(content).hexdigest(), flush=True)
train(replace(TRAINING, hooks=[Meet()]))
"""


@dataclass(frozen=True)
class Meeting:
    """A fault that a training meets at step 40, in shell commands; `folder` is where it trains."""

    folder: str
    prepare: str
    inflict: str
    mend: str
    remove: str
    cause: str
    words: str


def plan_meeting(storage: str) -> Meeting:
    """Plan the fault that a storage can really have."""
    mounts = find_mounts(storage)
    here, other = str(mounts[CONTROL_PLANE][1]), str(mounts["node1"][1])
    if storage == "cephfs":
        limit = f"setfattr -n ceph.quota.max_bytes -v {{}} {here}/limited"
        return Meeting(
            folder=f"{here}/limited/checkpoints",
            prepare=f"mkdir -p {here}/limited/checkpoints",
            inflict=limit.format(1),
            mend=limit.format(0),
            remove=f"rm -r {here}/limited",
            cause="disk-full",
            words="Disk quota exceeded",
        )
    place = "/run/trainchart-exchanged"
    mount = f"mount --bind {here}/exchanged {place}"
    return Meeting(
        folder=f"{place}/checkpoints",
        prepare=f"mkdir -p {here}/exchanged/checkpoints {place}; {mount}",
        # As when a volume comes back from a copy while a pod has it mounted.
        inflict=f"cp -a {other}/exchanged {other}/copy; rm -r {other}/exchanged; mv {other}/copy {other}/exchanged",
        # A client believes for a second what it knows of names.
        mend=f"umount --lazy {place}; for _ in 1 2 3 4 5; do ! {mount} || exit 0; sleep 1; done; exit 1",
        remove=f"umount --lazy {place}; rmdir {place}; rm -r {here}/exchanged",
        cause="storage-failed",
        words="Stale file handle",
    )


def train(cluster: Cluster, folder: str, steps: int, command: str) -> tuple[int, list[str]]:
    """Train in a folder of the cluster; return exit code and output."""
    settings = json.dumps({"maxSteps": steps, "checkpointSteps": 20, "logSteps": 20})
    variables = [
        f"TRAINCHART_CHECKPOINTS_DIR={folder}",
        "TRAINCHART_TENSORBOARD_DIR=/tmp",
        f"TRAINCHART_HYPERPARAMETERS={settings}",
    ]
    argv = ["env", *variables, sys.executable, "-c", _PROGRAM, str(PROJECT), command]
    done = cluster.run_inside(argv, check=False)
    return done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()]


def diagnose(lines: Sequence[str]) -> Diagnosis:
    """Return what a launcher says of a program that ended with exit code 1 and these lines."""
    return classify(Ending(1, None, lines, ("python", "train.py")))


def find_digest(lines: Sequence[str], what: str, step: int) -> str:
    """Return the digest of the weights that were told at a step."""
    found = (re.fullmatch(rf"{what} {step} (\w+)", line) for line in lines)
    return next((match[1] for match in found if match), "")
