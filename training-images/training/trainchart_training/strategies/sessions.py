"""Runs the graphs: the leader's loop drives GraphRunner, every other worker follows it.

The ps hold the variables of all. The leader sets them, from a checkpoint or new, and copies them into a state of its
own to save. Where it comes back and the ps still hold them, the training goes on with them: nothing is rolled back.
"""

from __future__ import annotations

import concurrent.futures
import logging
import math
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trainchart_training.definition import Training
from trainchart_training.errors import NOT_FINITE_HINT, PeerLost, TrainingError
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.leading.progress import describe_number, write_progress
from trainchart_training.leading.stop import StopRequest
from trainchart_training.place import BETWEEN_GRAPH_SYNC, IN_GRAPH, Place
from trainchart_training.saving.state import create_state, find_device, find_infinite_weight
from trainchart_training.strategies.graph import TrainingGraph, build_graph, session_config, v1
from trainchart_training.strategies.runner import keep_to_the_end

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2


class GraphRunner:
    """The leader's side. `state` is a copy of the variables in this process."""

    def __init__(self, training: Training, settings: Hyperparameters, place: Place, stop: StopRequest) -> None:
        self.state = create_state(training, settings)
        self.examples_per_step = settings.batch_size * _batches_per_step(settings, place)
        self._stop = stop
        self._graph = build_graph(training, settings, place)
        self._session = open_session(place, settings, self._graph)
        self._train = self._session.make_callable(self._graph.train)
        # Returns when all that hold a part of the graph have answered.
        self._session.run(self._graph.is_alive)
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._step = 0

    @property
    def step(self) -> int:
        return self._step

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_asked

    def begin(self) -> bool:
        graph, session = self._graph, self._session
        has_joined = is_ready(session, graph)
        if has_joined:
            self.collect()
            if weight := find_infinite_weight(self.state):
                raise PeerLost(f"the ps have kept {weight}, which is not finite")
        else:
            self._set(graph.variables, [variable.numpy() for variable in self.state.saved_variables])
            self._drop_leftovers()
        self._step = int(self.state.step.numpy())
        for operation in graph.lead:
            session.run(operation)
        if graph.queue_runner:
            graph.queue_runner.create_threads(session, tf.train.Coordinator(), daemon=True, start=True)
        if not has_joined:
            self._set([graph.is_ready], [True])
        return has_joined

    def run(self, steps: int) -> float:
        future = self._thread.submit(self._run, self._step + steps)
        if not self._stop.wait(future):
            return math.nan
        loss = future.result()
        if not math.isfinite(loss):
            self.collect()
        return loss

    def collect(self) -> None:
        values = self._session.run(self._graph.variables)
        for variable, value in zip(self.state.saved_variables, values, strict=True):
            variable.assign(value)
        self._step = int(self.state.step.numpy())
        if find_infinite_weight(self.state):
            # No task may go on with them: the others leave, and the next leader begins with the last checkpoint.
            self._set([self._graph.is_ready], [False])

    def devices(self) -> Sequence[str]:
        return [find_device(variable) for variable in self._graph.variables]

    def agree(self, is_wanted: bool) -> bool:
        return is_wanted

    def _run(self, target: int) -> float:
        """Run until the training has reached `target`, with whatever the other workers add; return the mean loss."""
        losses: list[float] = []
        while self._step < target and not self._stop.is_asked:
            step, loss, _ = self._train()
            self._step = int(step)
            losses.append(float(loss))
        return sum(losses) / len(losses) if losses else math.nan

    def _drop_leftovers(self) -> None:
        """Drop the gradients of other weights that wait on the ps: they would become part of the next step."""
        counts = self._session.run([count for count, _ in self._graph.leftovers])
        self._session.run([drop for number, (_, drop) in zip(counts, self._graph.leftovers, strict=True) if number])

    def _set(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        with self._graph.graph.as_default():
            initializers = [variable.initializer for variable in variables]
        # An initializer assigns its second input, whatever that is.
        feed = {initializer.inputs[1]: value for initializer, value in zip(initializers, values, strict=True)}
        self._session.run(initializers, feed)


def follow(training: Training, settings: Hyperparameters, place: Place) -> int:
    """Compute gradients beside the leader until the training has reached its last step; return 0.

    Raise PeerLost where the leader has given the weights up.
    """
    graph = build_graph(training, settings, place)
    session = open_session(place, settings, graph)
    log.info("waiting for the leader")
    while not is_ready(session, graph):
        time.sleep(_POLL_SECONDS)
    for operation in graph.join:
        session.run(operation)
    log.info("joined the training")
    step, every, train = 0, settings.log_steps, session.make_callable([graph.is_ready, *graph.train])
    started, losses = time.monotonic(), []
    while step < settings.max_steps:
        goes_on, step, loss, _ = train()
        if not goes_on:
            raise PeerLost("the leader has found weights that are not finite")
        losses.append(float(loss))
        if len(losses) == every or step >= settings.max_steps:
            rate = len(losses) * settings.batch_size / (time.monotonic() - started)
            mean = sum(losses) / len(losses)
            if not math.isfinite(mean):
                raise TrainingError(f"the loss is {mean} at step {step}: {NOT_FINITE_HINT}")
            log.info("step %d/%d  loss %s  %.0f examples/s here", step, settings.max_steps, describe_number(mean), rate)
            write_progress(place.progress_file, int(step), rate, {"loss": mean})
            started, losses = time.monotonic(), []
    return 0


def open_session(place: Place, settings: Hyperparameters, graph: TrainingGraph) -> Any:
    """Start this process's server, which others may reach, and return a session on it."""
    cluster = tf.train.ClusterSpec(place.cluster)
    config = session_config(place, settings)
    server = v1.train.Server(cluster, job_name=place.task_type, task_index=place.task_index, config=config)
    log.info("listening at %s, waiting for the others", server.target)
    session = v1.Session(server.target, graph=graph.graph, config=config)
    # Closing it waits for processes that may be gone.
    keep_to_the_end(session)
    return session


def is_ready(session: Any, graph: TrainingGraph) -> bool:
    """Say whether the leader has set all variables and no ps has lost one since."""
    return bool(session.run(graph.is_alive)) and bool(session.run(graph.is_ready))


def _batches_per_step(settings: Hyperparameters, place: Place) -> int:
    if place.strategy == IN_GRAPH:
        return place.workers
    return place.workers - settings.backup_workers if place.strategy == BETWEEN_GRAPH_SYNC else 1
