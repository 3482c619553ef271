"""The life of a run on a real cluster, beside the same processes started and restarted by hand.

charts/mnist with a chief, two workers and a parameter server, by turns in pods and by hand, on one machine.
"""

from __future__ import annotations

import itertools
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightkube.resources.core_v1 import Pod

from benchmarks.generator import ROOT
from benchmarks.measure import Row, program, time_by_turns
from benchmarks.own_cluster import RequestCount, controller_memory, make_namespace, own_cluster, wait_for
from benchmarks.training import (
    CHIEF,
    HYPERPARAMETERS,
    ByHand,
    InPods,
    Training,
    read_pod_report,
    wait_for_next_chief,
    wait_until_computing,
)
from tests.cluster.testcluster.faults import Site
from tests.cluster.testcluster.ingredients import tell
from tests.cluster.testcluster.releases import Release, merge_values, mnist_values, read_termination
from tests.cluster.testcluster.runs import CONTROLLED

PODS, BY_HAND = "in pods", "by hand"
VICTIMS = ("worker-1", "ps-0", CHIEF)
_KILLS = 3
_QUIET_SECONDS = 120.0
_BETWEEN_KILLS_SECONDS = 2.0
_FINITE = {"maxSteps": 400}


@dataclass
class Samples:
    """Everything measured, in seconds unless named otherwise."""

    starts: dict[str, list[float]] = field(default_factory=lambda: {PODS: [], BY_HAND: []})
    kills: dict[tuple[str, str], list[list[float]]] = field(default_factory=dict)
    """Contender and victim → round → first, second and third kill."""
    ends: list[float] = field(default_factory=list)
    lost_steps: list[int] = field(default_factory=list)
    memory_mib: list[float] = field(default_factory=list)
    requests_per_minute: float = 0.0
    looks: dict[str, float] = field(default_factory=dict)
    """By command that looks at a running release."""


def measure_lifecycle(rounds: int) -> list[Row]:
    """Measure on a cluster that is started for it: about four minutes a round."""
    with own_cluster() as site, tempfile.TemporaryDirectory() as folder:
        return make_rows(Sampler(site, Path(folder)).run(rounds))


class Sampler:
    """Takes the samples, contenders by turns."""

    def __init__(self, site: Site, folder: Path) -> None:
        self._site = site
        self._folder = folder
        self._namespace = make_namespace(site, "benchmark")
        self._numbers = itertools.count(1)
        self._samples = Samples()

    def run(self, rounds: int) -> Samples:
        """Take the samples of so many rounds; a start of each contender before is not counted."""
        requests = RequestCount(self._site.access)
        requests.begin(self._namespace)
        for training in (self._plan_pods(), self._plan_by_hand()):
            try:
                self._time_start(training)
            finally:
                training.end()
        for number, victim in itertools.product(range(1, rounds + 1), VICTIMS):
            tell(f"round {number} of {rounds}: killing {victim}, by hand and in pods ...")
            self._run_by_hand(victim)
            self._run_in_pods(victim)
        for number in range(1, rounds + 1):
            tell(f"round {number} of {rounds}: training to the end ...")
            self._run_to_the_end()
        tell("counting requests ...")
        quiet = self._plan_pods()
        self._time_start(quiet)
        time.sleep(_BETWEEN_KILLS_SECONDS)
        self._samples.requests_per_minute = requests.per_minute(_QUIET_SECONDS)
        self._samples.memory_mib.append(controller_memory(self._site, quiet.release))
        tell("asking for the status ...")
        self._samples.looks = self._time_looks(quiet.release)
        quiet.end()
        return self._samples

    def _time_looks(self, release: Release) -> dict[str, float]:
        """Return how long commands take from start to end that look at a running release."""
        access = self._site.access
        where = ["--namespace", self._namespace]
        commands = {
            "status": [str(Path(sys.executable).with_name("trainchart")), "status", release.name, *where],
            "kubectl": ["kubectl", "get", "pods", *where],
        }
        return time_by_turns(
            {name: program(command, environment=access.environment) for name, command in commands.items()}
        )

    def _run_by_hand(self, victim: str) -> None:
        training = self._plan_by_hand()
        try:
            self._samples.starts[BY_HAND].append(self._time_start(training))
            self._kill(BY_HAND, training, victim)
        finally:
            training.end()

    def _run_in_pods(self, victim: str) -> None:
        training = self._plan_pods()
        self._samples.starts[PODS].append(self._time_start(training))
        self._kill(PODS, training, victim)
        if victim.startswith("worker"):
            self._samples.lost_steps.append(self._preempt_chief(training))
        self._samples.memory_mib.append(controller_memory(self._site, training.release))
        training.end()

    def _run_to_the_end(self) -> None:
        training = self._plan_pods(**_FINITE)
        training.begin()
        self._samples.ends.append(self._time_end(training))
        training.end()

    def _plan_pods(self, **hyperparameters: Any) -> InPods:
        values = merge_values(mnist_values(**{**HYPERPARAMETERS, **hyperparameters}), CONTROLLED)
        changes = {
            "roles": {"evaluator": {"replicas": 0}},
            "volumes": {"checkpoints": {"keep": False}},
            # What this one kills, and a failure of its own on a slow machine.
            "run": {"maxRestarts": 2 * _KILLS},
        }
        name = f"exp{next(self._numbers)}"
        chart = ROOT / "charts" / "mnist"
        return InPods(
            self._site, Release(self._site.access, self._namespace, name, chart, merge_values(values, changes))
        )

    def _plan_by_hand(self) -> ByHand:
        return ByHand(self._folder / f"run{next(self._numbers)}")

    def _time_start(self, training: Training) -> float:
        begun = training.begin()
        return wait_for(training.read_report, "the first steps").at - begun

    def _kill(self, contender: str, training: Training, victim: str) -> None:
        taken = []
        for _ in range(_KILLS):
            time.sleep(_BETWEEN_KILLS_SECONDS)
            taken.append(_time_kill(training, victim))
        self._samples.kills.setdefault((contender, victim), []).append(taken)

    def _preempt_chief(self, training: InPods) -> int:
        """Delete the chief's pod and return how many of the steps that it had reported its successor lacks."""
        time.sleep(_BETWEEN_KILLS_SECONDS)
        launcher, program = training.find_launcher(CHIEF), training.find_program(CHIEF)
        last = training.read_report()
        assert launcher is not None
        assert last is not None
        pod, namespace = training.name_pod(CHIEF), training.release.namespace
        self._site.access.kubectl("delete", "pod", pod, f"--namespace={namespace}", "--wait=false")
        while program is not None and program.is_running():
            last = read_pod_report(launcher) or last
            time.sleep(0.01)
        wait_for_next_chief(training, program)
        log = "".join(self._site.access.client().log(pod, namespace=namespace, container="training"))
        restored = re.search(r"restored step (\d+)", log)
        assert restored, log
        return max(0, last.step - int(restored[1]))

    def _time_end(self, training: InPods) -> float:
        """Return the seconds from the end of the chief's program until no training pod is left."""
        client, chief = self._site.access.client(), training.name_pod(CHIEF)
        labels: dict[str, Any] = {**training.release.selector, "trainchart/training": "true"}
        left: set[str] = set()
        finished = 0.0
        for change, pod in client.watch(Pod, namespace=training.release.namespace, labels=labels, server_timeout=180):
            assert pod.metadata is not None
            name = str(pod.metadata.name)
            left = left - {name} if change == "DELETED" else left | {name}
            termination = read_termination(pod)
            if name == chief and termination and termination.succeeded:
                finished = finished or termination.finished_at
            if finished and not left:
                return time.time() - finished
        raise TimeoutError(f"{chief} and its peers: not gone within 180 s, left are {left}")


def _time_kill(training: Training, victim: str) -> float:
    """Kill a task's program and return the seconds until what it is needed for goes on."""
    program, chief = training.find_program(victim), training.find_program(CHIEF)
    assert program is not None
    begun = time.time()
    program.kill()
    if victim.startswith("worker"):
        # The others go on meanwhile.
        return wait_until_computing(training, victim, program) - begun
    return wait_for_next_chief(training, chief).at - begun


def make_rows(samples: Samples) -> list[Row]:
    """Make the rows of the section."""
    start = {contender: statistics.median(taken) for contender, taken in samples.starts.items()}
    rows = [
        Row(f"four processes started by hand: the first {HYPERPARAMETERS['logSteps']} steps done", start[BY_HAND], "s"),
        Row("the same from `helm install` on", start[PODS], "s"),
        Row("difference, pods minus by hand", start[PODS] - start[BY_HAND], "s", mark=5),
        Row("the chief's exit → every training pod gone", statistics.median(samples.ends), "s", mark=2.5),
    ]
    for victim in VICTIMS:
        role = victim.partition("-")[0]
        again = "it computes again" if role == "worker" else "training again"
        by_hand, in_pods = (samples.kills[contender, victim] for contender in (BY_HAND, PODS))
        every = [statistics.median(itertools.chain(*taken)) for taken in (by_hand, in_pods)]
        third = [statistics.median(taken[-1] for taken in rounds) for rounds in (by_hand, in_pods)]
        rows += [
            Row(f"{role} killed, restarted at once by a shell loop: {again}", every[0], "s"),
            Row(f"{role} killed in its pod: {again}", every[1], "s"),
            Row("difference, pods minus by hand", every[1] - every[0], "s", mark=3),
            Row("difference, pods minus by hand, at the third kill of a run", third[1] - third[0], "s", mark=3),
        ]
    return [
        *rows,
        Row("chief's pod deleted: reported steps lost, at worst", max(samples.lost_steps), "steps", mark=0),
        Row("run controller: resident memory, at most", max(samples.memory_mib), "MiB", mark=64),
        Row(
            "run controller: API requests while the training continues",
            samples.requests_per_minute,
            "a minute",
            mark=10,
        ),
        Row("`kubectl get pods` of the running release", samples.looks["kubectl"] * 1000, "ms"),
        Row("`trainchart status` of it", samples.looks["status"] * 1000, "ms"),
        Row("ratio", samples.looks["status"] / samples.looks["kubectl"], "×", mark=1.5),
    ]
