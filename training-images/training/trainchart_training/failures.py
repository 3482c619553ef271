"""TensorFlow's errors: which of them mean that a peer is gone, and the one line in them that a person can use."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainchart_training.errors import TrainingError

_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
_LOST_SIGNS = (
    # A process that is back before its peers noticed: it answers, but knows nothing of us.
    "unknown device",
    "Unable to find the relevant tensor remote_handle",
    "Collective ops is aborted",
    # The same in graphs, where variables are found by name.
    "Error while reading resource variable",
    "Could not find variable",
    "Attempting to use uninitialized value",
    "does not exist. (Could not find resource",
    "GraphHandle",
)
_PLAIN_WORDS = (
    ("Shape mismatch in the collective", "the workers' models or examples have different shapes"),
    (
        "Could not find callback with key=pyfunc",
        "a Python function or generator of the examples cannot be called from another process:"
        " read them with TensorFlow's own functions",
    ),
)
"""What TensorFlow says of errors that no other try avoids, and what a person can do something with."""
_PATH = re.compile(r"(^|\s)/(?!job:)\S*; ")
"""The start of what TensorFlow says of a file that the system calls of this machine could not read or write."""


def is_peer_lost(error: BaseException) -> bool:
    """Say whether `error` means that another process (or all that it held) is gone."""
    if not isinstance(error, tf.errors.OpError):
        return False
    if any(sign in error.message for sign, _ in _PLAIN_WORDS):
        return False
    if any(sign in error.message for sign in _LOST_SIGNS):
        return True
    return isinstance(error, _LOST) and not _names_file(error.message)


def _names_file(message: str) -> bool:
    """Say whether `message` is about a file: a storage, too, can be unavailable."""
    schemes = [scheme for scheme in tf.io.gfile.get_registered_schemes() if scheme]
    return bool(_PATH.search(message)) or any(f"{scheme}://" in message for scheme in schemes)


def is_end_of_examples(error: BaseException) -> bool:
    """Say whether `error` means that the dataset that a step reads has ended."""
    return isinstance(error, tf.errors.OutOfRangeError) and "End of sequence" in error.message


def is_data_damaged(error: BaseException) -> bool:
    """Say whether `error` means that a file of examples cannot be read as what it claims to be."""
    return isinstance(error, tf.errors.DataLossError)


_NOISE = re.compile(
    r"Graph execution error|Exception encountered when calling|Detected at|File |<stack traces|\d+ root error|=+$|node "
    r"|Traceback|([A-Z_]+: )?From /job:\S+$"
)
_BOLD = re.compile(r"\x1b\[\d*m")
_WHERE = re.compile(r"in user code:|^ *File \".*\n.*$|^Arguments received by (.|\n)*", re.MULTILINE)
"""Lines around the cause of an error in a function that TensorFlow or Keras calls: the traceback has them too."""
_NUMBERS = re.compile(r"\[[-+\d.e,\s\[\]]{80,}\]")
"""The content of a tensor, where Keras repeats it."""


def describe_error(error: BaseException) -> str:
    """Return, in one line, the part of the error's message that a person can use."""
    if not isinstance(error, tf.errors.OpError):
        # Keras writes several lines, some of them bold.
        words = _NUMBERS.sub("[…]", _WHERE.sub("", _BOLD.sub("", str(error)))).split()
        # TensorFlow makes errors in functions that it traces exceptions of its own, and names the original inside.
        kind = [] if "in user code:" in str(error) else [f"{type(error).__name__}:"]
        return " ".join([*kind, *words])[:400]
    # The cause stands below the lines that say where in the program's graph it happened, and is sometimes numbered.
    lines = [line.strip().removeprefix("(0) ") for line in _BOLD.sub("", error.message).splitlines()]
    text = next((line for line in lines if line and not _NOISE.match(line)), error.message)
    text = re.sub(r"\{\{.*?\}\} | \[Op:\w+\].*", "", text)
    peer = re.search(r"remote target (/job:\w+)/replica:0(/task:\d+)", error.message)
    # Of an object store, what was to be read or written stands in a line of its own.
    place = next((f" {line}" for line in lines if re.match(r"when .*\w://", line) and line not in text), "")
    plain = next((f"{words}: " for sign, words in _PLAIN_WORDS if sign in error.message), "")
    return plain + text[:300] + place[:200] + (f" (at {peer[1]}{peer[2]})" if peer else "")


def show(value: object) -> str:
    """Return `value` for an error message of one line, cut short."""
    return " ".join(repr(value).split())[:80]


def call_program(name: str, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Return what the program's `function` returns; its error becomes a TrainingError that names it."""
    try:
        return function(*arguments, **named)
    except TrainingError:
        raise
    except Exception as error:
        if is_peer_lost(error) or is_data_damaged(error):
            raise
        raise TrainingError(f"the program's function {name} failed: {describe_error(error)}") from error


def make_part(name: str, kind: type, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the program's `function` makes; raise TrainingError unless it is a `kind`."""
    part = call_program(name, function, *arguments)
    if not isinstance(part, kind):
        wanted = kind.__name__.removesuffix("V2")
        raise TrainingError(f"the program's function {name} returned {show(part)}, which is not of type {wanted}")
    return part
