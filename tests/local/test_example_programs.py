"""The example training programs, started directly: no chart, no launcher, TF_CONFIG on loopback ports."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.free_ports import find_free_port

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
DEADLINE_SECONDS = 120.0
for _name in ("mnist", "digits"):
    sys.path.append(str(EXAMPLES / _name))

from digits.hyperparameters import SettingsError, parse_hyperparameters  # noqa: E402
from digits.progress import write_progress  # noqa: E402
from digits.settings import Hyperparameters  # noqa: E402
from mnist.data import Digits, read_digits, split_digits  # noqa: E402


class Programs:
    """Starts example programs that share one folder, and leaves none behind."""

    def __init__(self, folder: Path) -> None:
        self.checkpoints = folder / "checkpoints"
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        module: str,
        name: str,
        hyperparameters: Mapping[str, Any],
        config: Mapping[str, Any] | None = None,
        evaluators: int = 0,
    ) -> subprocess.Popen[bytes]:
        """Start `python -m module`; its output is added to the log called `name`."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("TRAINCHART_", "TF_"))}
        environment |= {
            "TRAINCHART_CHECKPOINTS_DIR": str(self.checkpoints),
            "TRAINCHART_TENSORBOARD_DIR": str(self._folder / "logs"),
            "TRAINCHART_PROGRESS_FILE": str(self._folder / f"{name}.json"),
            "TRAINCHART_HYPERPARAMETERS": json.dumps(hyperparameters),
            "TRAINCHART_EVALUATORS": str(evaluators),
        }
        if config:
            environment["TF_CONFIG"] = json.dumps(config)
        with (self._folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=EXAMPLES / module.split(".")[0],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._started.append(child)
        return child

    def log(self, name: str) -> str:
        path = self._folder / f"{name}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def progress(self, name: str) -> dict[str, Any]:
        path = self._folder / f"{name}.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def finish(self, child: subprocess.Popen[bytes], name: str) -> int:
        """Wait for `child` to end and return its exit code."""
        wait_until(lambda: child.poll() is not None, lambda: f"{name} does not end:\n{self.log(name)}")
        return child.returncode

    def stop_all(self) -> None:
        for child in self._started:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            child.wait()


def wait_until(condition: Callable[[], bool], explain: Callable[[], str]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(explain())
        time.sleep(0.02)


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    started = Programs(tmp_path)
    yield started
    started.stop_all()


def make_cluster() -> dict[str, list[str]]:
    """Return a cluster of one chief, worker and ps on ports of its own."""
    return {task_type: [f"127.0.0.1:{find_free_port()}"] for task_type in ("chief", "worker", "ps")}


# --- pure parts ------------------------------------------------------------------------------------------


def test_split_is_disjoint_and_complete() -> None:
    # Every fake digit carries its own number in its pixels, so that it can be recognised after the split.
    numbers = np.arange(5000)
    images = np.zeros((5000, 28, 28), dtype=np.uint8)
    images[:, 0, 0], images[:, 0, 1] = numbers // 256, numbers % 256
    training, held_out = split_digits(Digits(images, (numbers % 10).astype(np.uint8)))

    def number(digits: Digits) -> set[int]:
        return set((digits.images[:, 0, 0].astype(int) * 256 + digits.images[:, 0, 1]).tolist())

    assert len(training) == 4000
    assert len(held_out) == 1000
    assert number(training) | number(held_out) == set(range(5000))
    assert not number(training) & number(held_out)


def test_split_of_real_digits_is_stratified_and_never_changes() -> None:
    training, held_out = split_digits(read_digits())
    assert np.bincount(training.labels).tolist() == [400] * 10
    assert np.bincount(held_out.labels).tolist() == [100] * 10
    # Accuracies of different versions are comparable only while these are the same digits.
    assert hashlib.sha256(held_out.images.tobytes()).hexdigest()[:16] == "0624a47a398bf880"


def test_both_examples_read_the_same_digits() -> None:
    # Each example is the whole content of its image, so they cannot import from a place that they share.
    mnist, digits = (EXAMPLES / example / example / "data.py" for example in ("mnist", "digits"))
    assert mnist.read_bytes() == digits.read_bytes()


def test_hyperparameters_are_read_by_their_camel_case_names() -> None:
    parsed = parse_hyperparameters('{"learningRate": 1, "epochs": 7, "seed": 0}', Hyperparameters)
    assert parsed == Hyperparameters(learning_rate=1.0, epochs=7, seed=0)
    assert parse_hyperparameters("", Hyperparameters) == Hyperparameters()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"epochs": "many"}', "hyperparameter epochs: expected a whole number of at least 1, got 'many'"),
        ('{"epochs": 0}', "hyperparameter epochs: expected a whole number of at least 1, got 0"),
        ('{"batchSize": 64.5}', "hyperparameter batchSize: expected a whole number of at least 1, got 64.5"),
        ('{"batchSize": true}', "hyperparameter batchSize: expected a whole number of at least 1, got True"),
        ('{"seed": -1}', "hyperparameter seed: expected a whole number of at least 0, got -1"),
        ('{"learningRate": 0}', "hyperparameter learningRate: expected a number above 0, got 0"),
        ('{"learningRate": NaN}', "hyperparameter learningRate: expected a number above 0, got nan"),
        (
            '{"learning_rate": 0.1}',
            "hyperparameter 'learning_rate' is not known; use one of learningRate, epochs",
        ),
        ("[1]", "TRAINCHART_HYPERPARAMETERS: expected a JSON object, got [1]"),
        ("{", "TRAINCHART_HYPERPARAMETERS is not JSON: Expecting property name"),
    ],
)
def test_wrong_hyperparameters_are_named(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(message)}"):
        parse_hyperparameters(text, Hyperparameters)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("mnist.train", "error: worker 0: hyperparameter batchSize"),
        ("digits.train", "digits.train: hyperparameter batchSize"),
    ],
)
def test_wrong_settings_end_the_program_with_one_line(module: str, message: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", module],
        cwd=EXAMPLES / module.split(".")[0],
        env={**os.environ, "TRAINCHART_HYPERPARAMETERS": '{"batchSize": "big"}'},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    # TensorFlow may have its say before.
    assert ended.stderr.splitlines()[-1] == f"{message}: expected a whole number of at least 1, got 'big'"
    assert "Traceback" not in ended.stderr


def test_progress_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    write_progress(str(path), 10, 1234.56, {"loss": 0.5})
    with path.open(encoding="utf-8") as reader_of_the_first:
        write_progress(str(path), 20, 99.0, {"loss": 0.25})
        first = json.load(reader_of_the_first)
    assert first == {"step": 10, "examples_per_second": 1234.6, "metrics": {"loss": 0.5}}
    assert json.loads(path.read_text(encoding="utf-8"))["step"] == 20
    assert [item.name for item in tmp_path.iterdir()] == ["progress.json"]


# --- real training ---------------------------------------------------------------------------------------


@pytest.mark.tensorflow
def test_mnist_cluster_survives_a_stop_and_a_lost_ps(programs: Programs) -> None:
    cluster = make_cluster()

    def start(role: str, max_steps: int = 100_000) -> subprocess.Popen[bytes]:
        config = {"cluster": cluster, "task": {"type": role, "index": 0}}
        wanted = {"maxSteps": max_steps, "checkpointSteps": 1000, "logSteps": 10}
        return programs.start("mnist.train", role, wanted, config)

    chief, ps = start("chief"), start("ps")
    start("worker")
    wait_until(lambda: programs.progress("chief").get("step", 0) >= 20, lambda: programs.log("chief"))
    chief.send_signal(signal.SIGTERM)
    assert programs.finish(chief, "chief") == 128 + signal.SIGTERM
    reached = programs.progress("chief")["step"]
    assert (programs.checkpoints / f"ckpt-{reached}.index").exists()

    chief = start("chief")
    wait_until(lambda: programs.progress("chief")["step"] > reached, lambda: programs.log("chief"))
    assert f"restored step {reached} " in programs.log("chief")
    ps.kill()
    assert programs.finish(chief, "chief") == 75
    assert "lost a ps, and the variables with it" in programs.log("chief")

    start("ps")
    # A ps that is still starting counts as lost: the chief ends with 75 and, as in a pod, is started again.
    for _ in range(5):
        ending = programs.finish(start("chief", max_steps=reached + 20), "chief")
        if ending != 75:
            break
    assert ending == 0
    assert programs.progress("chief")["step"] == reached + 20
    assert (programs.checkpoints / "saved_model" / "saved_model.pb").exists()


@pytest.mark.tensorflow
def test_mnist_alone_is_evaluated_exported_and_not_trained_twice(programs: Programs) -> None:
    wanted = {"maxSteps": 120, "checkpointSteps": 60}
    # With an evaluator to come, the program leaves measuring to it.
    alone = programs.start("mnist.train", "alone", wanted, evaluators=1)
    assert programs.finish(alone, "alone") == 0
    # The evaluator and the chief that has nothing left to do need nothing of each other.
    settled = {"chief": ["localhost:1"], "ps": ["localhost:2"]}
    evaluator = programs.start("mnist.train", "evaluator", wanted, {"cluster": settled, "task": {"type": "evaluator"}})
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}
    again = programs.start("mnist.train", "again", wanted, {"cluster": cluster, "task": {"type": "chief"}})
    assert programs.finish(evaluator, "evaluator") == 0
    assert programs.finish(again, "again") == 0
    assert "nothing left to do" in programs.log("again")

    assert re.findall(r"step (\d+)  accuracy", programs.log("evaluator")) == ["0", "60", "120"]
    final = programs.progress("evaluator")
    assert final["step"] == 120
    assert final["metrics"]["accuracy"] > 0.6
    evaluations = json.loads((programs.checkpoints / "evaluations.json").read_text(encoding="utf-8"))
    assert evaluations["120"] == final["metrics"]

    import tensorflow as tf

    serve = tf.saved_model.load(str(programs.checkpoints / "saved_model")).signatures["serving_default"]
    _, held_out = split_digits(read_digits())
    probabilities = serve(images=tf.constant(held_out.images))["probabilities"].numpy()
    assert probabilities.shape == (1000, 10)
    accuracy = float(np.mean(probabilities.argmax(axis=1) == held_out.labels))
    assert accuracy == pytest.approx(final["metrics"]["accuracy"], abs=0.002)


@pytest.mark.tensorflow
def test_digits_trains_resumes_and_exports(programs: Programs, tmp_path: Path) -> None:
    assert programs.finish(programs.start("digits.train", "digits", {"epochs": 1}), "digits") == 0
    assert programs.progress("digits")["step"] == 63
    assert programs.finish(programs.start("digits.train", "digits", {"epochs": 2}), "digits") == 0
    assert "restored epoch 1 from" in programs.log("digits")
    assert programs.log("digits").count("epoch 1/") == 1
    final = programs.progress("digits")
    assert final["step"] == 126
    assert final["metrics"]["accuracy"] > 0.8
    assert (programs.checkpoints / "saved_model" / "saved_model.pb").exists()
    assert list((tmp_path / "logs" / "digits").glob("events.out.tfevents.*"))
