"""One measurement of benchmarks/gpu.py, in a process of its own: TensorFlow sets up its devices once in a process.

`python -m benchmarks.gpu_case CASE` with a Case as JSON prints its Result as JSON. Needs TensorFlow and the training
library, and nothing else of this project.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu import FLOAT16, FLOAT32, Case, Result
from trainchart_training import Hyperparameters, Shard, Training
from trainchart_training.place import MIRRORED, Place

EXAMPLES = 2048
CLASSES = 10
_MIB = 1024**2


@dataclass(frozen=True)
class Work(Hyperparameters):
    """A network and batches that keep a GPU busy."""

    batch_size: int = 256
    shuffle_buffer: int = 0
    steps: int = 50
    rounds: int = 5
    width: int = 64
    """Filters of the first convolutions, and pixels of an image's side."""
    policy: str = FLOAT32


_REHEARSAL: dict[str, Any] = {"batch_size": 8, "steps": 2, "rounds": 1, "width": 8}


def build_model(work: Work) -> Any:
    import keras

    layers = keras.layers
    keras.mixed_precision.set_global_policy(work.policy)
    # Bytes, which are a quarter of floats on their way to the GPU.
    parts: list[Any] = [keras.Input((work.width, work.width, 3), dtype="uint8"), layers.Rescaling(1 / 255)]
    for factor in (1, 2, 4):
        convolutions = [layers.Conv2D(work.width * factor, 3, padding="same", activation="relu") for _ in range(2)]
        parts += [*convolutions, layers.BatchNormalization(), layers.MaxPooling2D()]
    # The last layer in full precision, as Keras' guide says.
    return keras.Sequential([*parts, layers.GlobalAveragePooling2D(), layers.Dense(CLASSES, dtype=FLOAT32)])


def read_examples(split: str, shard: Shard, work: Work) -> Any:
    import numpy as np
    import tensorflow as tf

    generator = np.random.default_rng(1)
    images = generator.integers(0, 256, (EXAMPLES, work.width, work.width, 3), "uint8")[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((images, generator.integers(0, CLASSES, len(images))))


def build_optimizer(work: Work) -> Any:
    import keras

    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    return keras.optimizers.LossScaleOptimizer(optimizer) if work.policy == FLOAT16 else optimizer


def measure_case(case: Case) -> Result:
    """Train as `mirrored` does, also on one device, and return the median round."""
    import keras

    from trainchart_training.leading.stop import StopRequest
    from trainchart_training.strategies.replicas import ReplicaRunner

    _choose_devices(case)
    work = Work(policy=case.policy, **(_REHEARSAL if case.is_rehearsal else {}))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    training = Training(build_model, read_examples, build_optimizer, loss)
    runner = ReplicaRunner(training, work, Place(MIRRORED), StopRequest(30))
    runner.begin()
    runner.run(work.steps)
    seconds = []
    for _ in range(work.rounds):
        begun = time.perf_counter()
        runner.run(work.steps)
        seconds.append(time.perf_counter() - begun)
    rate = work.steps * runner.examples_per_step / sorted(seconds)[len(seconds) // 2]
    return Result(rate) if case.is_rehearsal else Result(rate, _read_peak_mib(), _read_taken_mib())


def _choose_devices(case: Case) -> None:
    """Leave as many devices to see as the case wants, of what this machine has."""
    import tensorflow as tf

    if case.is_rehearsal:
        tf.config.set_visible_devices([], "GPU")
        logical = [tf.config.LogicalDeviceConfiguration()] * case.devices
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
        return
    chosen = tf.config.list_physical_devices("GPU")[: case.devices]
    tf.config.set_visible_devices(chosen, "GPU")
    for gpu in chosen:
        tf.config.experimental.set_memory_growth(gpu, case.has_growth)


def _read_peak_mib() -> float:
    import tensorflow as tf

    return float(tf.config.experimental.get_memory_info("GPU:0")["peak"]) / _MIB


def _read_taken_mib() -> float | None:
    """Return what nvidia-smi says: TensorFlow counts its tensors, not the memory that it holds for them."""
    argv = ["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        return float(done.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(measure_case(Case(**json.loads(sys.argv[1]))))))
