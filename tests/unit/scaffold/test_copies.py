"""Scripts that train a copy of their own in every pod, and those that do not, or of which none can tell."""

from __future__ import annotations

import pytest

from trainchart.scaffold.copies import describe_copies

LOOP = "import tensorflow as tf\nfrom absl import app\nfor step in range(9):\n    tf.GradientTape()\n"
MIRRORED = LOOP + "strategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n    pass\n"


def describe(text: str, strategy: str = "multi-worker-mirrored", started: str = "python train.py") -> str:
    return describe_copies("train", "train.py", text.encode(), {}.get, started, strategy)


@pytest.mark.parametrize("strategy", ["multi-worker-mirrored", "parameter-server", "between-graph-async", "in-graph"])
def test_a_plain_loop_trains_copies(strategy: str) -> None:
    says = f"train.py does not use {strategy}: each pod trains a copy of its own"
    assert describe(LOOP, strategy).startswith(says)
    assert describe('"""A distributed strategy."""\n' + LOOP, strategy).startswith(says)
    assert describe(
        MIRRORED.replace("with strategy.scope():\n    pass", "run()").replace("strategy =", "s ="), strategy
    )


def test_a_plain_loop_trains_on_one_device() -> None:
    assert describe(LOOP, "mirrored").endswith("it trains on one device")


@pytest.mark.parametrize(
    "text",
    [
        MIRRORED.replace("Mirrored", "MultiWorkerMirrored"),
        LOOP + "cluster = json.loads(os.environ['TF_CONFIG'])",
        LOOP + "rank = os.environ.get('TASK_INDEX')",
        LOOP + "tf.train.Server(cluster)",
        LOOP + "from tensorflow import distribute",
        LOOP + "import our_loops",
        "import trainchart_training as training\n" + LOOP,
        "print('no TensorFlow at all')",
    ],
)
def test_what_may_be_distributed_is_left_alone(text: str) -> None:
    assert describe(text) == ""


def test_a_place_may_be_in_the_command() -> None:
    assert describe(LOOP, started="python train.py --rank=$(TASK_INDEX)") == ""
    assert describe(LOOP, "single") == ""
    assert describe(MIRRORED, "mirrored") == ""
