"""From the role of this process to the function that plays it, and from TensorFlow's errors to exit codes."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

import tensorflow as tf

from mnist.chief import train
from mnist.errors import EXIT_PEER_LOST, FILE_ERRORS, TrainingError, describe_error, is_peer_lost
from mnist.evaluate import evaluate
from mnist.settings import Settings

log = logging.getLogger(__name__)


def run_task(settings: Settings) -> NoReturn:
    """Play this process's part to its end, and end the process with the exit code that says how it went."""
    # Below ERROR there is nothing but a remark about "retracing" at every checkpoint, which is normal.
    tf.get_logger().setLevel(logging.ERROR)
    tf.get_logger().propagate = False
    play = {"chief": train, "evaluator": evaluate}.get(settings.task.type, serve)
    try:
        _leave(play(settings))
    except (TrainingError, FileNotFoundError) as error:
        log.error("error: %s", error)
        _leave(1)
    except FILE_ERRORS as error:
        log.error("error: %s", describe_error(error))
        _leave(1)
    except tf.errors.OpError as error:
        if not is_peer_lost(error):
            raise
        log.error("lost a ps, and the variables with it: %s", describe_error(error))
        _leave(EXIT_PEER_LOST)


def serve(settings: Settings) -> int:
    """Hold variables (ps) or compute (worker) until a signal ends the process.

    No handler for SIGTERM: it would never run, since join() does not return to Python, and nothing is to be saved.
    """
    task = settings.task
    server = tf.distribute.Server(
        tf.train.ClusterSpec(task.cluster), job_name=task.type, task_index=task.index, protocol="grpc"
    )
    log.info("%s %d: listening at %s", task.type, task.index, server.target)
    server.join()
    return 0


def _leave(code: int) -> NoReturn:
    """End the process now: an orderly shutdown of Python takes a second more, or waits for a lost peer."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
