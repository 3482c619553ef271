"""Small trainings whose processes are killed and started again at any moment, and what the others say of it.

Every strategy with several processes is here as users write it with TensorFlow alone, without what a launcher does.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

from trainchart_runtime.classify import Diagnosis, Ending, classify

Addresses = Mapping[str, list[str]]

WIDTH = 512
"""Numbers per variable: enough that a step sends more than one packet."""


def train_with_coordinator(cluster: Addresses, role: str, index: int, folder: Path) -> None:
    """Train with ParameterServerStrategy and a ClusterCoordinator."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if role != "chief":
        tf.distribute.Server(resolver.cluster_spec(), role, index, protocol="grpc").join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = [tf.Variable(tf.zeros([WIDTH])) for _ in range(4)]
        step = tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(weights=weights, step=step), str(folder), 2)
    manager.restore_or_initialize()
    examples = coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.from_tensors(tf.ones([WIDTH])).repeat())
    batches = iter(examples)

    @tf.function
    def train(batches: Any) -> Any:
        def replica(batch: Any) -> Any:
            for each in weights:
                each.assign_add(batch)
            return step.assign_add(1)

        return strategy.run(replica, (next(batches),))

    while True:
        for _ in range(10):
            coordinator.schedule(train, (batches,))
        coordinator.join()
        print("step", step.numpy(), flush=True)
        manager.save(step.numpy())


def train_in_step(cluster: Addresses, role: str, index: int, folder: Path) -> None:
    """Train with MultiWorkerMirroredStrategy."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = [tf.Variable(tf.zeros([WIDTH]), aggregation=tf.VariableAggregation.MEAN) for _ in range(4)]
        step = tf.Variable(0, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    checkpoint = tf.train.Checkpoint(weights=weights, step=step)
    manager = tf.train.CheckpointManager(checkpoint, str(folder), 2)
    checkpoint.restore(tf.train.latest_checkpoint(str(folder)))
    examples = tf.data.Dataset.from_tensors(tf.ones([WIDTH])).repeat().batch(8)
    batches = iter(strategy.experimental_distribute_dataset(examples))

    @tf.function
    def train(batches: Any) -> Any:
        def replica(batch: Any) -> Any:
            for each in weights:
                each.assign_add(tf.reduce_mean(batch, 0))
            step.assign_add(1)
            return tf.reduce_sum(batch)

        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica, (next(batches),)), axis=None)

    while True:
        train(batches)
        print("step", step.numpy(), flush=True)
        if index == 0 and step.numpy() % 20 == 0:
            manager.save(step.numpy())


def train_graph_alone(cluster: Addresses, role: str, index: int, folder: Path) -> None:
    """Train between graphs with a MonitoredTrainingSession, asynchronously."""
    _train_between_graphs(cluster, role, index, folder, in_step=False)


def train_graph_in_step(cluster: Addresses, role: str, index: int, folder: Path) -> None:
    """Train between graphs with a SyncReplicasOptimizer."""
    _train_between_graphs(cluster, role, index, folder, in_step=True)


def _train_between_graphs(cluster: Addresses, role: str, index: int, folder: Path, *, in_step: bool) -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    server = tf.train.Server(tf.train.ClusterSpec(dict(cluster)), role, index)
    if role == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=dict(cluster), worker_device=f"/job:worker/task:{index}")):
        step = tf.train.get_or_create_global_step()
        weights = [tf.get_variable(f"weights{number}", [WIDTH]) for number in range(4)]
        loss = tf.add_n([tf.reduce_sum(tf.square(each - 1.0)) for each in weights])
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        if in_step:
            workers = len(cluster["worker"])
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
        train = optimizer.minimize(loss, step)
    hooks = [optimizer.make_session_run_hook(index == 0)] if in_step else []
    with tf.train.MonitoredTrainingSession(
        server.target, index == 0, str(folder), hooks=hooks, save_checkpoint_steps=50, max_wait_secs=60
    ) as session:
        while True:
            _, done = session.run([train, step])
            if done % 10 == 0:
                print("step", done, flush=True)


def train_in_one_graph(cluster: Addresses, role: str, index: int, folder: Path) -> None:
    """Train from one client whose graph spans all tasks, in a plain session."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    server = tf.train.Server(tf.train.ClusterSpec(dict(cluster)), role, index)
    if role != "chief":
        server.join()
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
        weights = tf.get_variable("weights", [WIDTH])
    gradients = []
    for number in range(len(cluster["worker"])):
        with tf.device(f"/job:worker/task:{number}"):
            gradients += tf.gradients(tf.reduce_sum(tf.square(weights - 1.0)), weights)
    with tf.device("/job:ps/task:0"):
        train = tf.group(weights.assign_sub(0.01 * tf.add_n(gradients)), step.assign_add(1))
        saver = tf.train.Saver()
    with tf.Session(server.target) as session:
        latest = tf.train.latest_checkpoint(str(folder))
        if latest:
            saver.restore(session, latest)
        else:
            session.run(tf.global_variables_initializer())
        while True:
            session.run(train)
            done = session.run(step)
            if done % 10 == 0:
                print("step", done, flush=True)
            if done % 50 == 0:
                saver.save(session, str(folder / "model"), done)


Program = Callable[[Addresses, str, int, Path], None]


class Training(NamedTuple):
    """A strategy, by a program and how many of each role it has."""

    program: Program
    roles: Mapping[str, int]
    leader: tuple[str, int]


TRAININGS = {
    "parameter-server": Training(train_with_coordinator, {"chief": 1, "worker": 2, "ps": 2}, ("chief", 0)),
    "multi-worker-mirrored": Training(train_in_step, {"worker": 3}, ("worker", 0)),
    "between-graph-async": Training(train_graph_alone, {"ps": 2, "worker": 2}, ("worker", 0)),
    "between-graph-sync": Training(train_graph_in_step, {"ps": 2, "worker": 2}, ("worker", 0)),
    "in-graph": Training(train_in_one_graph, {"chief": 1, "worker": 2, "ps": 1}, ("chief", 0)),
}


class Death(NamedTuple):
    """How a process ended that nobody killed."""

    task: str
    killed: str
    """What was killed last before."""
    diagnosis: Diagnosis
    lines: list[str]


class Group:
    """The processes of one training."""

    def __init__(self, training: Training, folder: Path) -> None:
        self._training = training
        self._folder = folder
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tensorflow", "tensorflow.compat.v1"])
        ports = _find_ports(sum(training.roles.values()))
        self._cluster = {
            role: [f"127.0.0.1:{ports.pop()}" for _ in range(number)] for role, number in training.roles.items()
        }
        self.tasks = [(role, index) for role, number in training.roles.items() for index in range(number)]
        self._processes: dict[tuple[str, int], ForkServerProcess] = {}
        self._starts: dict[tuple[str, int], int] = {}

    def start(self, task: tuple[str, int]) -> None:
        """Start a task, which must not be running."""
        self._starts[task] = self._starts.get(task, -1) + 1
        checkpoints = self._folder / "checkpoints"
        arguments = (self._training.program, self._cluster, task, checkpoints, self._log(task))
        process = self._context.Process(target=_run, args=arguments, daemon=True)
        process.start()
        self._processes[task] = process

    def kill(self, task: tuple[str, int]) -> None:
        """End a task as the kernel does."""
        self._processes[task].kill()
        self._processes[task].join()

    def pause(self, task: tuple[str, int], seconds: float) -> None:
        """Let a task stand still, as on a machine that is busy with something else."""
        pid = self._processes[task].pid
        assert pid is not None
        with suppress(ProcessLookupError):  # it may have lost its own peer just now
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)

    def find_ended(self) -> Iterator[tuple[tuple[str, int], Ending]]:
        """Yield the tasks that have ended, and how."""
        for task, process in self._processes.items():
            if process.exitcode is not None:
                code = process.exitcode
                lines = self._log(task).read_text(errors="replace").splitlines()[-500:]
                yield task, Ending(code if code >= 0 else None, -code if code < 0 else None, lines)

    def count_steps(self) -> int:
        """Return how many steps the leading task has told since its last start."""
        log = self._log(self._training.leader)
        return log.read_text(errors="replace").count("step ") if log.exists() else 0

    def stop(self) -> None:
        """End all."""
        for process in self._processes.values():
            process.kill()
            process.join()

    def _log(self, task: tuple[str, int]) -> Path:
        return self._folder / f"{task[0]}-{task[1]}.{self._starts[task]}.log"


def _find_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _run(program: Program, cluster: Addresses, task: tuple[str, int], folder: Path, log: Path) -> None:
    """Run one task, in a process of its own."""
    role, index = task
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ["TF_CONFIG"] = json.dumps({"cluster": dict(cluster), "task": {"type": role, "index": index}})
    try:
        program(cluster, role, index, folder)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


@contextmanager
def open_group(name: str, folder: Path) -> Iterator[Group]:
    """Yield a training whose processes all run, and end them."""
    group = Group(TRAININGS[name], folder)
    try:
        for task in group.tasks:
            group.start(task)
        yield group
    finally:
        group.stop()


def hurt(group: Group, kills: int, chance: random.Random, longest_wait: float) -> Iterator[Death]:
    """Kill tasks at random moments and start them again, and yield how others ended."""
    killed = "nobody"
    for _ in range(kills):
        wait = time.monotonic() + chance.uniform(0, longest_wait)
        while time.monotonic() < wait:
            yield from start_ended_again(group, killed)
            time.sleep(0.2)
        victims = chance.sample(group.tasks, 2 if chance.random() < 0.2 else 1)
        killed = " and ".join(f"{role}-{index}" for role, index in victims)
        if chance.random() < 0.1:
            group.pause(victims[0], chance.uniform(1, 4))
        for victim in victims:
            group.kill(victim)
        time.sleep(chance.choice([0, 0, 0.3, 2]))
        for victim in victims:
            group.start(victim)


def start_ended_again(group: Group, killed: str) -> Iterator[Death]:
    """Start the tasks again that have ended, as a launcher does, and yield how they ended."""
    for (role, index), ending in list(group.find_ended()):
        yield Death(f"{role}-{index}", killed, classify(ending), list(ending.lines))
        group.start((role, index))
