"""Runs whose pods write down what they do, in a folder that tests read and steer them by, also after their end.

All releases of a namespace share one claim, and a pod of the test's own mounts it. The nodes of the tests' cluster have
one clock, so the times of different pods can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .access import Access
from .images.plan import RUNTIME_IMAGE
from .pods import dump_objects, plan_claim
from .releases import PROJECT, TRAINING_GROUP, Release, digits_values, merge_values, mnist_values
from .runs import CONTROLLED, TINY
from .scheduled_pods import ScheduledPod

_CLAIM = _READER = "shared"
_PROGRAM = """
import json, os, signal, time
os.umask(0)
folder, pod, task = os.environ["TRACE_FOLDER"], os.environ["TRAINCHART_POD_NAME"], os.environ["TASK_TYPE"]
workers = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {}).get("worker", [])
rate = os.environ.get("TRAINCHART_HP_LEARNING_RATE", "")
os.makedirs(folder, exist_ok=True)
trace = os.open(folder + "/trace", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def say(what):
    node, uid = os.environ["TRAINCHART_NODE_NAME"], os.environ["TRAINCHART_POD_UID"]
    # At once: a signal may come in the middle of a print, and its handler says something, too.
    os.write(trace, f"{time.time()} {pod} {uid} {node} {rate} {len(workers)} {what}\\n".encode())
def stop(*_):
    if task == "chief":
        # Saving takes its time, and says that it has to be given that.
        time.sleep(0.5)
        say("saved")
    say("stopped")
    os._exit(1)
signal.signal(signal.SIGTERM, stop)
say("started")
ends = folder + ("/end" if task == "chief" or "digits" in pod else "/end-" + task)
while not os.path.exists(ends):
    say("trains")
    time.sleep(0.1)
say("done")
"""


@dataclass(frozen=True)
class Line:
    """What one pod did at one time."""

    at: float
    pod: str
    uid: str
    node: str
    rate: str
    """The learning rate that it was given."""
    workers: int
    """How many workers its cluster has."""
    what: str
    """started, trains, saved, stopped, done."""


@dataclass(frozen=True)
class Traces:
    """The folder of one namespace; `prepare` makes it."""

    access: Access
    namespace: str

    def prepare(self, node: str = "") -> None:
        """Make the claim and the pod that reads it, on a node if one is named, and wait until it does."""
        spec = {"securityContext": {**_SECURITY, "fsGroup": TRAINING_GROUP}}
        pod = ScheduledPod(_READER, node=node, claim=_CLAIM, spec=spec)
        objects = dump_objects(plan_claim(_CLAIM, "shared", "ReadWriteMany"), pod.manifest())
        self.access.kubectl("apply", "-n", self.namespace, "-f", "-", text=objects)
        self.access.kubectl("wait", f"pod/{_READER}", "-n", self.namespace, "--for=condition=Ready", "--timeout=60s")

    def plan(self, name: str, changes: Mapping[str, Any], model: str = "mnist") -> Release:
        """Plan a release that traces itself: chief, two workers and a ps, or the single process of charts/digits."""
        role = {**TINY, "saveWaitSeconds": 0, "stopGraceSeconds": 15}
        values = {
            "command": ["python3", "-c", _PROGRAM],
            "env": {"TRACE_FOLDER": f"/checkpoints/{name}"},
            "volumes": {"checkpoints": {"existingClaim": _CLAIM}},
            "roles": {"chief": role, "worker": role, "ps": role, "evaluator": {"replicas": 0}},
        }
        if model == "digits":
            values["roles"] = {"worker": role}
        base = digits_values() if model == "digits" else mnist_values()
        values = merge_values(merge_values(merge_values(base, CONTROLLED), values), changes)
        return Release(self.access, self.namespace, name, PROJECT / "charts" / model, values)

    def read(self, release: Release) -> list[Line]:
        """Return what the pods of a release have done up to now, in the order of time."""
        text = self._run("cat", f"/volume/{release.name}/trace", check=False)
        lines = [line.split(" ") for line in text.splitlines(keepends=True) if line.endswith("\n")]
        found = [
            Line(float(at), pod, uid, node, rate, int(workers), what.strip())
            for at, pod, uid, node, rate, workers, what in lines
        ]
        return sorted(found, key=lambda line: line.at)

    def end(self, release: Release, file: str = "end") -> None:
        """Let the leading task of a release come to its end, or those of a role by `end-ROLE`."""
        self._run("touch", f"/volume/{release.name}/{file}")

    def _run(self, *argv: str, check: bool = True) -> str:
        return self.access.kubectl("exec", _READER, "-n", self.namespace, "--", *argv, check=check)


def leave_slowly(seconds: int) -> dict[str, Any]:
    """Return values of pods that take so long to stop, whatever their program does."""
    container = {
        "name": "slow",
        "image": RUNTIME_IMAGE,
        "command": ["sleep", "infinity"],
        "lifecycle": {"preStop": {"sleep": {"seconds": seconds}}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {kind: {"cpu": "10m", "memory": "16Mi"} for kind in ("requests", "limits")},
    }
    return {"extraContainers": [container]}


_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "runAsGroup": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}
