"""How training fails on purpose, and how TensorFlow's errors are told apart and shortened."""

from __future__ import annotations

import re

import tensorflow as tf

EXIT_PEER_LOST = 75
"""EX_TEMPFAIL: another process went away and took state along; starting this one again helps."""


FILE_ERRORS = (
    tf.errors.FailedPreconditionError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
)
"""A folder that is missing, full or closed to us: the message says it all, where in the program it happened nothing."""


class TrainingError(Exception):
    """Training cannot go on, and starting it again will not help by itself; the message is one line."""


def is_peer_lost(error: tf.errors.OpError) -> bool:
    """Say whether `error` means that a ps (or all that it held) is gone."""
    if isinstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)):
        return True
    # A ps that is back before anybody noticed: it answers, but knows nothing of us.
    return any(sign in error.message for sign in ("unknown device", "Unable to find the relevant tensor remote_handle"))


_NOISE = re.compile(r"Graph execution error|Detected at|File |<stack traces|\d+ root error")


def describe_error(error: tf.errors.OpError) -> str:
    """Return, in one line, the part of TensorFlow's message that a person can use."""
    # The cause stands below the lines that say where in the program's graph it happened, and is sometimes numbered.
    lines = [line.strip().removeprefix("(0) ") for line in error.message.splitlines()]
    text = next((line for line in lines if line and not _NOISE.match(line)), error.message)
    text = re.sub(r"\{\{.*?\}\} | \[Op:\w+\].*", "", text)
    peer = re.search(r"remote target (/job:\w+)/replica:0(/task:\d+)", error.message)
    return text[:300] + (f" (at {peer[1]}{peer[2]})" if peer else "")
