"""The graphs of between-graph-async, between-graph-sync and in-graph: TensorFlow's first way of distributing.

A graph is built from the same functions of the program as everywhere else; only where its parts lie differs. Variables
lie on the ps, in turn (on the chief where in-graph has none); a worker reads its examples and computes its gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainchart_training.definition import Shard, Training
from trainchart_training.errors import SettingsError
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.place import BETWEEN_GRAPH_SYNC, CHIEF, IN_GRAPH, PS, WORKER, Place
from trainchart_training.saving.state import TrainingState, count_updates_at_once, create_state, unwrap
from trainchart_training.strategies.batches import build_batches
from trainchart_training.strategies.step import build_gradients, clip

v1 = tf.compat.v1


@dataclass(frozen=True)
class TrainingGraph:
    """What a session of this process needs to know of its graph."""

    graph: Any
    variables: Sequence[Any]
    """The state's variables as TensorFlow knows them, in the order of what is saved."""
    is_ready: Any
    """Variable that says that all others have been set, and that the training can go on with them."""
    is_alive: Any
    """Tensor that says that no variable is without a value."""
    train: Sequence[Any]
    """What does one more step: tensors with the step of the training after it and this process's loss, and the rest."""
    join: Sequence[Any]
    """Operations with which this process joins the training, the variables being there."""
    lead: Sequence[Any]
    """Operations with which the leader joins instead, one after the other."""
    leftovers: Sequence[tuple[Any, Any]]
    """In between-graph-sync, for every weight: how many gradients wait on its ps, and the operation that drops them."""
    queue_runner: Any
    """Applies the gradients in the leader of between-graph-sync; None elsewhere."""


def build_graph(training: Training, settings: Hyperparameters, place: Place) -> TrainingGraph:
    """Return the graph of the process at `place`, a worker or a chief."""
    graph = tf.Graph()
    me = f"/job:{place.task_type}/task:{place.task_index}"
    towers = range(place.workers) if place.strategy == IN_GRAPH else (place.task_index,)
    keeper = PS if place.cluster.get(PS) else CHIEF
    # Variables are made outside of the towers; replica_device_setter gives them to the keepers in turn.
    setter = v1.train.replica_device_setter(
        ps_tasks=len(place.cluster[keeper]), ps_device=f"/job:{keeper}", worker_device=me
    )
    with graph.as_default(), v1.device(setter):
        with tf.variable_creator_scope(_VariableNames()):
            state = create_state(training, settings)
            count_updates_at_once(state.optimizer)
        is_ready = tf.Variable(False, trainable=False, name="is_ready")
        losses, gradients, initializers, effects = [], [], [], []
        for index in towers:
            device = f"/job:{WORKER}/task:{index}"
            with tf.device(device):
                iterator = _make_iterator(training, settings, Shard(index, place.workers), state.step)
                examples = iterator.get_next()
            (loss, parts), others = _inline(_on(device), build_gradients(training, state), *examples)
            losses.append(loss)
            gradients.append(parts)
            initializers.append(iterator.initializer)
            effects += others
        # Of layers that look words up.
        initializers.append(v1.tables_initializer())
        optimizer = _KerasOptimizer(state, settings.clip_norm, me)
        sync = _make_synchronous(optimizer, settings, place)
        weights = [item.value for item in state.model.trainable_variables]
        pairs = [
            (_mean(parts, weight, is_dense=sync is not None), weight)
            for *parts, weight in zip(*gradients, weights, strict=True)
        ]
        variables = [*map(unwrap, state.saved_variables)]
        with tf.device(me):
            is_alive = tf.reduce_all([item.is_initialized() for item in (*variables, is_ready)])
            loss = tf.add_n(losses) / len(losses)
            step, applied = _apply(optimizer, sync, pairs, state.step)
        tokens = [sync.get_init_tokens_op()] if sync else []
        leftovers = _find_leftovers(sync) if sync else []
    return TrainingGraph(
        graph=graph,
        variables=variables,
        is_ready=is_ready,
        is_alive=is_alive,
        train=[step, loss, effects + applied],
        join=[*initializers, *([sync.local_step_init_op] if sync else [])],
        lead=[*initializers, *([sync.chief_init_op] if sync else []), *tokens],
        leftovers=leftovers,
        queue_runner=sync.get_chief_queue_runner() if sync and place.is_leader else None,
    )


def session_config(place: Place, settings: Hyperparameters) -> Any:
    """Return the session's configuration: a worker between graphs sees the ps and itself.

    So one that is away does not hold up the others. In-graph, the chief needs them all.
    """
    config = v1.ConfigProto(log_device_placement=settings.log_device_placement)
    # Functions of a graph may touch variables of other processes.
    config.experimental.share_cluster_devices_in_session = True
    if place.strategy != IN_GRAPH:
        config.device_filters.extend([f"/job:{PS}", f"/job:{place.task_type}/task:{place.task_index}"])
    return config


def _make_iterator(training: Training, settings: Hyperparameters, shard: Shard, step: Any) -> Any:
    """Return an iterator over a worker's batches, to be initialized by the task that begins or comes back."""
    with tf.device(step.device):
        begun = tf.identity(step.read_value())
    # The seed holds the step, so that who comes back does not begin the same examples again.
    batches = build_batches(training, settings, shard, begun + (settings.seed + shard.index))
    return v1.data.make_initializable_iterator(batches)


class _VariableNames:
    """Names variables by number.

    Processes find each other's variables by name, and Keras' names depend on what else a process has built.
    """

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, create_next: Callable[..., Any], **arguments: Any) -> Any:
        self._count += 1
        # The slash at the end keeps TensorFlow from putting Keras' own names before it.
        return create_next(**{**arguments, "name": f"variables/{self._count}/"})


class _KerasOptimizer(tf.compat.v1.train.Optimizer):  # type: ignore[misc]
    """A Keras optimizer in the shape that SyncReplicasOptimizer wants, which wraps optimizers of TensorFlow 1 only."""

    def __init__(self, state: TrainingState, clip_norm: float, device: str) -> None:
        super().__init__(use_locking=False, name="KerasOptimizer")
        self._state = state
        self._clip_norm = clip_norm
        self._device = device

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        # This runs before the gradients are there, and waits for them: nor must anything be counted before.
        with tf.control_dependencies(self.apply(list(grads_and_vars), at_once=True)):
            return global_step.assign_add(1, read_value=False)

    def apply(self, pairs: Sequence[Any], *, at_once: bool = False) -> list[Any]:
        """Return the operations that apply gradients to variables, on the devices where these are.

        `at_once`: nothing is changed before all gradients are there, neither the optimizer's count of its updates nor
        weights that it lets decay. Else each variable waits for its own gradient alone.
        """
        state, norm = self._state, self._clip_norm
        gradients = [gradient for gradient, _ in pairs]
        if norm:
            place = _beside_inputs(self._device)
            gradients, _ = _inline(place, lambda *parts: clip(parts, norm, state.optimizer), *gradients)

        def apply(*parts: Any) -> tuple[()]:
            sent = [_send(part, unwrap(item)) for part, (_, item) in zip(parts, pairs, strict=True)]
            with tf.control_dependencies([tf.group(sent)] if at_once else []):
                state.optimizer.apply(sent, state.model.trainable_variables)
            return ()

        return _inline(_beside_inputs(state.step.device), apply, *gradients)[1]

    def variables(self) -> list[Any]:
        return [item.value for item in self._state.optimizer.variables]


def _inline(place: Callable[[Any], str], function: Callable[..., Any], *arguments: Any) -> tuple[Any, list[Any]]:
    """Return what `function` returns, as a part of this graph, and the operations that do the rest of its work.

    `place` says where an operation is done, as far as it says nothing itself.

    A tf.function, because Keras relies on its statements being run in order; but not a call of one, which would begin
    when the last of its inputs has come from wherever that is.
    """
    with v1.device(None):
        concrete = tf.function(function).get_concrete_function(*arguments)
    given = [*tf.nest.flatten(arguments, expand_composites=True), *concrete.captured_inputs]
    # What is returned is an Identity, that waits for everything else in the function.
    results = [output.op.inputs[0] if output.op.type == "Identity" else output for output in concrete.outputs]
    effects = [operation for operation in concrete.graph.control_outputs if operation.type != "ReadVariableOp"]
    with v1.device(None), v1.device(place):
        imported = tf.graph_util.import_graph_def(
            _unbundle(concrete.graph.as_graph_def()),
            input_map={inner.name: outer for inner, outer in zip(concrete.inputs, given, strict=True)},
            return_elements=[item.name for item in (*results, *effects)],
        )
    count = len(results)
    returned = tf.nest.pack_sequence_as(concrete.structured_outputs, imported[:count], expand_composites=True)
    return returned, imported[count:]


def _unbundle(definition: Any) -> Any:
    """Return a graph's definition whose operations take their inputs past each IdentityN.

    Keras ties all gradients into one, as if it had replicas to add up. It would lie on one ps, and every other ps would
    get its gradients by way of that.
    """
    bundles = {node.name: node.input for node in definition.node if node.op == "IdentityN"}
    for node in definition.node:
        for position, tensor in enumerate(node.input):
            name, _, output = tensor.partition(":")
            if name in bundles:
                node.input[position] = bundles[name][int(output or 0)]
    return definition


def _send(gradient: Any, variable: Any) -> Any:
    """Return `gradient` on the device of its variable."""
    with tf.device(variable.device):
        if isinstance(gradient, tf.IndexedSlices):
            # A constant for the shape, which need not be sent.
            return tf.IndexedSlices(
                tf.identity(gradient.values), tf.identity(gradient.indices), tf.constant(variable.shape.as_list())
            )
        return tf.identity(gradient)


def _on(device: str) -> Callable[[Any], str]:
    """Return what places operations on `device`, but variables' reads and updates where the variables lie."""
    return lambda operation: "" if _find_variables(operation) else _complete(operation.device, device)


def _beside_inputs(default: str) -> Callable[[Any], str]:
    """Return what places operations where their first input comes from, and on `default` where there is none.

    So what is computed of a gradient that was sent to a ps, or of a variable that lies there, is computed there.
    """

    def find_origin(value: Any) -> str:
        return value.device or next((handle.device for handle in _find_variables(value.op)), "")

    def place(operation: Any) -> str:
        if _find_variables(operation):
            return ""
        return _complete(operation.device, next(filter(None, map(find_origin, operation.inputs)), default))

    return place


def _find_variables(operation: Any) -> list[Any]:
    """Return the variables that an operation reads or updates.

    TensorFlow itself places it beside them, and takes a device that contradicts that for an error.
    """
    return [value for value in operation.inputs if value.dtype == tf.resource]


def _complete(device: str, default: str) -> str:
    """Return `device` with all that it leaves open as `default` has it."""
    return str(tf.DeviceSpec.from_string(default).make_merged_spec(tf.DeviceSpec.from_string(device)).to_string())


def _make_synchronous(optimizer: _KerasOptimizer, settings: Hyperparameters, place: Place) -> Any:
    if place.strategy != BETWEEN_GRAPH_SYNC:
        return None
    wanted = place.workers - settings.backup_workers
    if wanted < 1:
        raise SettingsError(
            f"hyperparameter backupWorkers: {settings.backup_workers} of {place.workers} workers leave none to wait for"
        )
    return v1.train.SyncReplicasOptimizer(optimizer, wanted, place.workers)


def _find_leftovers(sync: Any) -> list[tuple[Any, Any]]:
    """Return how many gradients each accumulator of `sync` holds, and the operation that empties it."""
    found = []
    for accumulator, device in sync._accumulator_list:
        with tf.device(device):
            found.append((accumulator.num_accumulated(), accumulator.take_grad(1).op))
    return found


def _apply(optimizer: _KerasOptimizer, sync: Any, pairs: Sequence[Any], step: Any) -> tuple[Any, list[Any]]:
    """Return the step of the training with the gradients of `pairs`, and the operations that give them to it."""
    if sync:
        applied = [sync.apply_gradients(pairs, step)]
        # Read where the token lay, as soon as it is taken: once it is here is another way to the ps.
        *_, take_token = (item for item in step.graph.get_operations() if item.type == "QueueDequeueV2")
        with tf.control_dependencies([take_token]), tf.device(step.device):
            return tf.identity(step.read_value()), applied
    applied = optimizer.apply(pairs)
    # Counted where it lies: coming back here first would be another way to the ps.
    with tf.control_dependencies(applied), tf.device(step.device):
        return tf.identity(step.assign_add(1, read_value=True)), applied


def _mean(gradients: Sequence[Any], variable: Any, *, is_dense: bool) -> Any:
    """Return the mean of the towers' gradients, on the device of their variable: there it is on its way already.

    What is sparse stays so where there is one tower, unless it must be dense: SyncReplicasOptimizer divides each row
    of sparse gradients by how many workers had that row, and not by how many there are.
    """
    if len(gradients) == 1 and not (is_dense and isinstance(gradients[0], tf.IndexedSlices)):
        return gradients[0]
    with tf.device(variable.device):
        parts = [tf.convert_to_tensor(_send(part, variable)) for part in gradients]
        return tf.add_n(parts) / len(parts) if len(parts) > 1 else parts[0]
