"""The graphs of the strategies with sessions compute what a single process computes; worker and ps are this process."""

from __future__ import annotations

import concurrent.futures
import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.free_ports import find_free_port
from tests.training.small_training import TRAINING, Settings
from trainchart_training import Shard, Training
from trainchart_training.place import BETWEEN_GRAPH_ASYNC, BETWEEN_GRAPH_SYNC, CHIEF, IN_GRAPH, PS, WORKER, Place

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]
_STEPS = 6
_PS = 2
_SETTINGS = Settings(shuffle_buffer=0, clip_norm=0.5)


def _embed_words(settings: Settings) -> Any:
    """A model with sparse gradients, and with statistics that a step changes beside its gradients."""
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((3,), dtype="int32"),
            layers.Embedding(20, 4),
            layers.Flatten(),
            layers.BatchNormalization(),
            layers.Dense(1),
        ]
    )


def _read_words(split: str, shard: Shard, settings: Settings) -> Any:
    import numpy as np
    import tensorflow as tf

    words = np.random.default_rng(3).integers(0, 20, (200, 3)).astype("int32")[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((words, words.sum(axis=1, keepdims=True).astype("float32") / 30))


def test_words_are_looked_up_in_a_graph() -> None:
    graph = _start(BETWEEN_GRAPH_ASYNC, _plain, model=_look_words_up)
    graph.begin()
    assert graph.run(_STEPS) > 0


def _look_words_up(settings: Settings) -> Any:
    import keras

    words = keras.Input((3,), dtype="int32")
    known = keras.layers.IntegerLookup(vocabulary=list(range(20)))(words)
    return keras.Model(words, keras.layers.Dense(1)(keras.ops.cast(known, "float32")))


def _plain(settings: Settings) -> Any:
    import keras

    return keras.optimizers.SGD(0.1, momentum=0.9)


def _scaled(settings: Settings) -> Any:
    import keras

    return keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01, use_ema=True), initial_scale=1024.0)


@pytest.mark.parametrize("optimizer", [_plain, _scaled])
def test_a_worker_with_ps_computes_what_a_process_computes_alone(optimizer: Callable[[Settings], Any]) -> None:
    import tensorflow as tf

    from trainchart_training.leading.stop import StopRequest
    from trainchart_training.strategies.replicas import ReplicaRunner

    graph = _start(BETWEEN_GRAPH_ASYNC, optimizer)
    alone = ReplicaRunner(_training(optimizer), _SETTINGS, Place(), StopRequest(30))

    for runner in (graph, alone):
        runner.begin()
        assert runner.run(_STEPS) > 0
        runner.collect()

    assert graph.step == alone.step == _STEPS
    assert set(graph.devices()) == {f"/job:ps/task:{index}" for index in range(_PS)}
    for mine, theirs in zip(alone.state.saved_variables, graph.state.saved_variables, strict=True):
        tf.debugging.assert_near(tf.cast(mine, tf.float32), tf.cast(theirs, tf.float32), 1e-4, 1e-5)


def test_an_optimizer_works_where_its_weights_lie() -> None:
    """Whatever the optimizer computes of a gradient, and keeps of it, no weight makes another way over the network."""
    from trainchart_training.strategies.graph import build_graph

    cluster = {WORKER: ["127.0.0.1:1"], PS: [f"127.0.0.1:{port}" for port in (2, 3, 4)]}
    graph = build_graph(TRAINING, Settings(), Place(BETWEEN_GRAPH_ASYNC, WORKER, 0, cluster)).graph

    updates = [operation for operation in graph.get_operations() if is_update(operation)]
    # Two kernels and two biases, each with two moments that Adam keeps; and the count of its updates.
    assert len(updates) == 4 * 3 + 1
    for update in updates:
        variable, value = update.inputs
        assert value.device == variable.device, update.name
    assert {update.inputs[0].device for update in updates} == {f"/job:ps/task:{index}" for index in range(3)}


def is_update(operation: Any) -> bool:
    """Say whether an operation changes a variable in a step; what sets it at first has its name."""
    return bool(re.match("Assign(Add|Sub)?VariableOp", operation.type)) and operation.name.startswith("import")


@pytest.mark.parametrize("is_wanted", [True, False])
def test_no_tuner_of_a_worker_holds_up_a_chief_that_comes_back(is_wanted: bool) -> None:
    import tensorflow as tf
    from tensorflow.core.framework.dataset_options_pb2 import Options

    from trainchart_training.strategies.graph import build_graph

    def read(split: str, shard: Shard, settings: Settings) -> Any:
        options = tf.data.Options()
        options.autotune.enabled = True
        dataset = TRAINING.examples(split, shard, settings)
        return dataset.with_options(options) if is_wanted else dataset

    cluster = {CHIEF: ["a:1"], WORKER: ["b:1", "b:2"], PS: ["c:1"]}
    graph = build_graph(replace(TRAINING, examples=read), Settings(), Place(IN_GRAPH, CHIEF, 0, cluster)).graph

    options = [item.get_attr("serialized_options") for item in graph.get_operations() if item.type == "OptionsDataset"]
    assert [Options.FromString(item).autotune_options.enabled for item in options] == [is_wanted] * 2


def test_who_comes_back_does_not_begin_the_same_examples_again() -> None:
    first = []
    for step in (0, 0, 5):
        graph = _start(BETWEEN_GRAPH_ASYNC, _plain, settings=replace(_SETTINGS, shuffle_buffer=200))
        graph.state.step.assign(step)
        graph.begin()
        first.append(graph.run(1))
    assert first[0] == first[1] != first[2]


def test_weights_that_are_not_finite_are_given_up() -> None:
    """What the ps have kept is gone on with, but not what can never be trained again."""
    from trainchart_training.errors import PeerLost
    from trainchart_training.leading.stop import StopRequest
    from trainchart_training.strategies.sessions import GraphRunner, follow

    def run_away(settings: Settings) -> Any:
        import keras

        return keras.optimizers.SGD(1e30)

    training, settings = _training(run_away), replace(_SETTINGS, clip_norm=0.0, max_steps=10**6, log_steps=10**6)
    leader = Place(BETWEEN_GRAPH_ASYNC, WORKER, 0, _start_ps(workers=2))
    graph = GraphRunner(training, settings, leader, StopRequest(30))
    restored = [variable.numpy() for variable in graph.state.saved_variables]
    assert graph.begin() is False
    first = graph.run(1)
    assert graph.begin() is True
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        follower = thread.submit(follow, training, settings, replace(leader, task_index=1))
        deadline = time.monotonic() + 30
        while graph.step < 2 and time.monotonic() < deadline:
            graph.collect()
        assert math.isnan(graph.run(_STEPS))
        with pytest.raises(PeerLost, match="not finite"):
            follower.result()
    for variable, value in zip(graph.state.saved_variables, restored, strict=True):
        variable.assign(value)
    assert graph.begin() is False
    assert graph.run(1) == first


def test_a_leader_joins_no_weights_that_are_not_finite() -> None:
    """Somebody died before it could say so, and the checkpoint is to be gone on with."""
    from trainchart_training.errors import PeerLost

    graph = _start(BETWEEN_GRAPH_ASYNC, _plain)
    restored = [variable.numpy() for variable in graph.state.saved_variables]
    assert graph.begin() is False
    graph._set(graph._graph.variables[:1], [restored[0] * math.nan])
    with pytest.raises(PeerLost, match="not finite"):
        graph.begin()
    # It begins again, and the others have left.
    for variable, value in zip(graph.state.saved_variables, restored, strict=True):
        variable.assign(value)
    assert graph.begin() is False
    assert graph.run(_STEPS) > 0


def test_gradients_of_weights_that_were_given_up_are_dropped() -> None:
    """A worker has sent them, and waits for the step that a new leader begins."""
    graph = _start(BETWEEN_GRAPH_SYNC, _plain)
    sent = [item for item in graph._graph.graph.get_operations() if item.type.endswith("AccumulatorApplyGradient")]
    assert len(sent) == len(graph.state.model.trainable_variables)
    for send in sent:
        _, step, gradient = send.inputs
        value = gradient.dtype.as_numpy_dtype(math.nan)
        graph._session.run(send, {step: 0, gradient: np.full(gradient.shape, value)})
    assert graph.begin() is False
    assert graph.run(_STEPS) > 0


def test_the_mean_of_sparse_gradients_is_that_of_all_workers() -> None:
    """Two gradients a step, both of one worker: of two batches, that a process alone has as one of double size."""
    import tensorflow as tf

    from trainchart_training.leading.stop import StopRequest
    from trainchart_training.strategies.replicas import ReplicaRunner
    from trainchart_training.strategies.sessions import GraphRunner

    def embed(settings: Settings) -> Any:
        import keras

        layers = keras.layers
        return keras.Sequential(
            [keras.Input((3,), dtype="int32"), layers.Embedding(20, 4), layers.Flatten(), layers.Dense(1)]
        )

    def read_two_batches(split: str, shard: Shard, settings: Settings) -> Any:
        return _read_words(split, Shard(0, 1), settings).take(32)

    def begin_slowly(settings: Settings) -> Any:
        """The first step changes nothing: it may have three gradients, as a worker begins before it needs a token."""
        import keras

        return keras.optimizers.SGD(keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.0, 0.1]))

    settings = replace(_SETTINGS, clip_norm=0.0, batch_size=16)
    training = replace(_training(begin_slowly, embed), examples=read_two_batches)
    graph = GraphRunner(training, settings, Place(BETWEEN_GRAPH_SYNC, WORKER, 0, _start_ps(workers=2)), StopRequest(30))
    graph.begin()
    graph.run(_STEPS)
    alone = ReplicaRunner(training, replace(settings, batch_size=32), Place(), StopRequest(30))
    alone.begin()
    deadline, difference = time.monotonic() + 30, math.inf
    # The ps may still be at the last update, or do one more that was on its way.
    while difference > 1e-5 and time.monotonic() < deadline:
        graph.collect()
        alone.run(graph.step - alone.step)
        pairs = zip(alone.state.saved_variables, graph.state.saved_variables, strict=True)
        distances = (tf.abs(tf.cast(mine, tf.float32) - tf.cast(theirs, tf.float32)) for mine, theirs in pairs)
        difference = max(float(tf.reduce_max(distance)) for distance in distances)
    assert difference <= 1e-5


@pytest.mark.parametrize("optimizer", [_plain, _scaled])
def test_a_worker_alone_trains_in_step(optimizer: Callable[[Settings], Any]) -> None:
    graph = _start(BETWEEN_GRAPH_SYNC, optimizer)
    graph.begin()
    first = graph.run(_STEPS)
    graph.run(20 * _STEPS)
    assert graph.run(_STEPS) < first / 2


def _training(optimizer: Callable[[Settings], Any], model: Callable[[Settings], Any] = _embed_words) -> Training:
    return replace(TRAINING, model=model, examples=_read_words, optimizer=optimizer)


def _start(
    strategy: str,
    optimizer: Callable[[Settings], Any],
    model: Callable[[Settings], Any] = _embed_words,
    settings: Settings = _SETTINGS,
) -> Any:
    """Return a runner whose worker and ps are in this process."""
    from trainchart_training.leading.stop import StopRequest
    from trainchart_training.strategies.sessions import GraphRunner

    place = Place(strategy, WORKER, 0, _start_ps(workers=1))
    return GraphRunner(_training(optimizer, model), settings, place, StopRequest(30))


def _start_ps(workers: int) -> dict[str, list[str]]:
    """Start ps in this process and return their cluster."""
    import tensorflow as tf

    cluster = {
        role: [f"127.0.0.1:{find_free_port()}" for _ in range(count)] for role, count in ((WORKER, workers), (PS, _PS))
    }
    for index in range(_PS):
        tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=PS, task_index=index)
    return cluster
