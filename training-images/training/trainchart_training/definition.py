"""What a program defines: functions for model, data, optimizer and loss, and nothing about where they run.

Pure; TensorFlow's types are named in words only, so that importing this costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart_training.hyperparameters import Hyperparameters

TRAIN = "train"
TEST = "test"


@dataclass(frozen=True)
class Shard:
    """The part of the examples that one reader takes: every `count`-th one from `index` on."""

    index: int
    count: int


class Hook:
    """Called in the leader while it trains; derive from it and override what is wanted."""

    def begin(self, model: Any, step: int) -> None:
        """Training begins, or goes on, at `step`."""

    def logged(self, step: int, values: Mapping[str, float]) -> None:
        """`values` (loss, examples per second) were reported."""

    def saved(self, step: int, path: str) -> None:
        """A checkpoint is complete; `path` is TensorFlow's prefix of its files."""

    def end(self, model: Any, step: int) -> None:
        """The last step is saved; `model` holds its weights, in this process.

        Called again where the process dies before it returns, or fails.
        """


@dataclass(frozen=True)
class Training:
    """One model and how it is trained. `settings` below is an instance of `hyperparameters`."""

    model: Callable[[Any], Any]
    """settings → Keras model that begins with keras.Input, so that its weights exist when it is returned."""
    examples: Callable[[str, Shard, Any], Any]
    """("train" or "test", shard, settings) → finite tf.data.Dataset of single (features, targets)."""
    optimizer: Callable[[Any], Any]
    """settings → Keras optimizer; a Keras schedule as its learning rate counts the updates of all workers."""
    loss: Callable[[Any, Any], Any]
    """(targets, outputs) → loss of every example, or their mean: any Keras loss."""
    metrics: Callable[[], Sequence[Any]] = tuple
    """() → Keras metrics, measured on the test examples."""
    hyperparameters: type[Hyperparameters] = Hyperparameters
    step: Callable[[Any, Any, Any], tuple[Any, Sequence[Any]]] | None = None
    """(model, features, targets) → loss, gradients of model.trainable_variables: what a step computes, your own way.

    Without it, the gradients of `loss`. Applying them stays the strategy's part."""
    augment: Callable[[Any, Any], tuple[Any, Any]] | None = None
    """(features, targets) of a training batch → the batch to train on."""
    serve: Callable[[Any, Any], Mapping[str, Any]] | None = None
    """(model, features) → the named outputs of the exported model.

    Without it `outputs`, as the model gives them; the model's own names where it gives a dictionary, and `outputs_0`,
    `outputs_1`, … where it gives a list."""
    input_name: str = "inputs"
    """Name of the exported model's input, where the features are one tensor; `inputs_0`, … where they are a tuple."""
    hooks: Sequence[Hook] = ()

    def __post_init__(self) -> None:
        """Refuse, where it was written, what is no function, hook or class of hyperparameters."""
        for part in ("model", "examples", "optimizer", "loss", "metrics"):
            self._check_function(part)
        for part in ("step", "augment", "serve"):
            if getattr(self, part) is not None:
                self._check_function(part)
        if not (isinstance(self.hooks, Sequence) and all(isinstance(hook, Hook) for hook in self.hooks)):
            raise TypeError(
                f"Training: hooks must be a list of objects of classes derived from Hook, not {self.hooks!r:.80}"
            )
        if not (isinstance(self.hyperparameters, type) and issubclass(self.hyperparameters, Hyperparameters)):
            raise TypeError(
                "Training: hyperparameters must be a class derived from Hyperparameters, not "
                f"{self.hyperparameters!r:.80}"
            )

    def _check_function(self, part: str) -> None:
        value = getattr(self, part)
        # A Keras loss can be called only once it is made.
        if not callable(value) or (part == "loss" and isinstance(value, type)):
            raise TypeError(f"Training: {part} must be a function, not {value!r:.80}")
