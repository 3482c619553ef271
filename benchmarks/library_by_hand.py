"""The network of library_case.py under every strategy without the library, as TensorFlow's guides write such loops.

`python -m benchmarks.library_by_hand` plays the role that its environment gives it, as library_case.py does, and the
leader prints the same marks. Nothing is saved, reported or recovered here: that is what the library is compared with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from benchmarks.library_case import (
    CLASSES,
    IMAGE_SHAPE,
    LEARNING_RATE,
    SETTINGS,
    build_model,
    build_optimizer,
    print_mark,
    read_examples,
    split_processor,
)
from trainchart_training import Hyperparameters, Shard
from trainchart_training.hyperparameters import parse_hyperparameters
from trainchart_training.place import (
    BETWEEN_GRAPH_ASYNC,
    BETWEEN_GRAPH_SYNC,
    CHIEF,
    IN_GRAPH,
    MIRRORED,
    MULTI_WORKER_MIRRORED,
    PARAMETER_SERVER,
    PS,
    SINGLE,
    WORKER,
    Place,
    read_place,
)

v1 = tf.compat.v1
_STEPS_AT_ONCE = 10
"""Given to a worker of parameter-server, as many as the library gives."""


def _train_replicas(place: Place, every: int) -> None:
    """single, mirrored and multi-worker-mirrored: one call of a tf.function for all steps between two marks."""
    strategy = {
        SINGLE: tf.distribute.get_strategy,
        MIRRORED: lambda: tf.distribute.MirroredStrategy([item.name for item in tf.config.list_logical_devices("CPU")]),
        MULTI_WORKER_MIRRORED: tf.distribute.MultiWorkerMirroredStrategy,
    }[place.strategy]()
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        train_on_batch = _build_step(replicas)
    batches = iter(
        strategy.distribute_datasets_from_function(
            lambda context: _batches(
                Shard(context.input_pipeline_id, context.num_input_pipelines), replicas // context.num_input_pipelines
            )
        )
    )

    @tf.function
    def train(iterator: Any) -> Any:
        total = 0.0
        for _ in tf.range(every):
            total += strategy.reduce("SUM", strategy.run(train_on_batch, args=next(iterator)), axis=None)
        return total

    step = 0
    while True:
        float(train(batches))
        step += every
        if place.is_leader:
            print_mark(step)


def _train_by_coordinator(place: Place, every: int) -> None:
    """parameter-server: the chief gives the workers some steps at a time, and waits before each mark."""
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        train_on_batch = _build_step(1)

    @tf.function
    def train(iterator: Any) -> Any:
        total = 0.0
        for _ in tf.range(_STEPS_AT_ONCE):
            total += strategy.run(train_on_batch, args=next(iterator))
        return total

    batches = iter(coordinator.create_per_worker_dataset(lambda: _batches(Shard(0, 1), 1)))
    step = 0
    while True:
        losses = [coordinator.schedule(train, args=(batches,)) for _ in range(every // _STEPS_AT_ONCE)]
        coordinator.join()
        sum(coordinator.fetch(losses))
        step += every
        print_mark(step)


def _build_step(replicas: int) -> Callable[[Any, Any], Any]:
    """Return one replica's part of a step."""
    model, optimizer = build_model(SETTINGS), build_optimizer(SETTINGS)
    optimizer.build(model.trainable_variables)
    compute = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    examples = SETTINGS.batch_size * replicas

    def train_on_batch(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = compute(labels, model(images, training=True)) / examples
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    return train_on_batch


def _train_sessions(place: Place, every: int) -> None:
    """Both between-graph strategies, in every worker, and in-graph in the chief: one session.run for a step."""
    me = f"/job:{place.task_type}/task:{place.task_index}"
    config = v1.ConfigProto()
    config.experimental.share_cluster_devices_in_session = True
    if place.strategy != IN_GRAPH:
        config.device_filters.extend([f"/job:{PS}", me])
    server = v1.train.Server(
        tf.train.ClusterSpec(place.cluster), job_name=place.task_type, task_index=place.task_index, config=config
    )
    towers = range(place.workers) if place.strategy == IN_GRAPH else (place.task_index,)
    setter = v1.train.replica_device_setter(ps_tasks=1, ps_device=f"/job:{PS}", worker_device=me)
    hooks = []
    with tf.Graph().as_default(), v1.device(setter):
        step = v1.train.get_or_create_global_step()
        weights = _make_weights()
        losses, initializers = [], []
        for index in towers:
            with tf.device(f"/job:{WORKER}/task:{index}"):
                batches = v1.data.make_initializable_iterator(_batches(Shard(index, place.workers), 1))
                initializers.append(batches.initializer)
                losses.append(_tower_loss(*batches.get_next(), weights))
        optimizer = v1.train.GradientDescentOptimizer(LEARNING_RATE)
        if place.strategy == BETWEEN_GRAPH_SYNC:
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, place.workers, place.workers)
            hooks.append(optimizer.make_session_run_hook(place.is_leader))
        loss = tf.add_n(losses) / len(losses)
        train = optimizer.minimize(loss, global_step=step, colocate_gradients_with_ops=True)
        session = v1.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=place.is_leader,
            scaffold=v1.train.Scaffold(local_init_op=tf.group(v1.local_variables_initializer(), *initializers)),
            hooks=hooks,
            config=config,
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            log_step_count_steps=None,
        )
        reached, mark = 0, 0
        # Within the graph: a session that has lost a ps, or thinks so after a pause, makes another one.
        while True:
            _, reached, _ = session.run([train, step, loss])
            if place.is_leader and reached >= mark + every:
                mark = int(reached)
                print_mark(mark)


@dataclass(frozen=True)
class _Weights:
    """Made where replica_device_setter puts variables, which a device named by a tower would override."""

    kernels: Sequence[Any]
    matrices: Sequence[Any]
    biases: Sequence[Any]


def _make_weights() -> _Weights:
    return _Weights(
        kernels=[_variable("kernel1", (3, 3, 1, 16)), _variable("kernel2", (3, 3, 16, 32))],
        matrices=[_variable("matrix1", (800, 64)), _variable("matrix2", (64, CLASSES))],
        biases=[_variable(f"bias{size}", (size,)) for size in (16, 32, 64, CLASSES)],
    )


def _tower_loss(images: Any, labels: Any, weights: _Weights) -> Any:
    values = tf.reshape(images, (-1, *IMAGE_SHAPE))
    for kernel, bias in zip(weights.kernels, weights.biases[:2], strict=True):
        values = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(values, kernel, 1, "VALID"), bias))
        values = tf.nn.max_pool2d(values, 2, 2, "VALID")
    values = tf.reshape(values, (-1, 800))
    values = tf.nn.relu(tf.matmul(values, weights.matrices[0]) + weights.biases[2])
    logits = tf.matmul(values, weights.matrices[1]) + weights.biases[3]
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _variable(name: str, shape: Sequence[int]) -> Any:
    initializer = v1.zeros_initializer() if name.startswith("bias") else v1.glorot_uniform_initializer()
    return v1.get_variable(name, shape, initializer=initializer, use_resource=True)


def _batches(shard: Shard, replicas: int) -> Any:
    examples = read_examples("train", shard, SETTINGS).shuffle(SETTINGS.shuffle_buffer).repeat()
    return examples.batch(SETTINGS.batch_size, drop_remainder=True).prefetch(2 * replicas)


_LOOPS: Mapping[str, Callable[[Place, int], None]] = {
    SINGLE: _train_replicas,
    MIRRORED: _train_replicas,
    MULTI_WORKER_MIRRORED: _train_replicas,
    PARAMETER_SERVER: _train_by_coordinator,
    BETWEEN_GRAPH_ASYNC: _train_sessions,
    BETWEEN_GRAPH_SYNC: _train_sessions,
    IN_GRAPH: _train_sessions,
}


def main() -> None:
    place = read_place(os.environ)
    settings = parse_hyperparameters(os.environ["TRAINCHART_HYPERPARAMETERS"], Hyperparameters)
    split_processor(place.strategy)
    is_server = place.task_type == PS or (place.task_type == WORKER and CHIEF in place.cluster)
    if is_server:
        tf.distribute.Server(
            tf.train.ClusterSpec(place.cluster), job_name=place.task_type, task_index=place.task_index
        ).join()
    _LOOPS[place.strategy](place, settings.log_steps)


if __name__ == "__main__":
    main()
