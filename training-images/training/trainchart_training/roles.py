"""From the role of this process to what it does, and from errors to log lines and exit codes."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import tempfile
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from trainchart_training.definition import Training
from trainchart_training.errors import (
    EXIT_BAD_SETTINGS,
    EXIT_FAILED,
    EXIT_PEER_LOST,
    PeerLost,
    SettingsError,
    TrainingError,
)
from trainchart_training.hyperparameters import Hyperparameters, parse_hyperparameters
from trainchart_training.place import (
    BETWEEN_GRAPH_ASYNC,
    BETWEEN_GRAPH_SYNC,
    EVALUATOR,
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

if TYPE_CHECKING:
    from trainchart_training.leading.stop import StopRequest
    from trainchart_training.strategies.runner import Runner

log = logging.getLogger(__name__)

_BETWEEN_GRAPH = (BETWEEN_GRAPH_ASYNC, BETWEEN_GRAPH_SYNC)


def train(training: Training) -> NoReturn:
    """Play this process's part in `training`, as its environment says, and end the process when that is over.

    Exit code 0: trained (or served) to the end. 1: cannot go on. 2: a wrong setting. 75: another process was lost,
    start this one again. 128 + n: stopped by signal n, the checkpoint saved.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the program prints stands in the log where it was printed, and an error after it.
        sys.stdout.reconfigure(line_buffering=True)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # It waits for a statement of Python's to end, which a server's never does.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    place = None
    try:
        place = read_place(os.environ)
        settings = parse_hyperparameters(os.environ.get("TRAINCHART_HYPERPARAMETERS", ""), training.hyperparameters)
    except SettingsError as error:
        who = f"{place}: " if place else ""
        print(f"error: {who}{error}", file=sys.stderr)
        _leave(EXIT_BAD_SETTINGS)
    _start_log()
    place = _with_folders(place)
    log.info("%s of %s: loading TensorFlow; %s", place, place.strategy, settings)
    _leave(_guard(training, settings, place))


def _guard(training: Training, settings: Hyperparameters, place: Place) -> int:
    """Play the role and return its exit code; every failure becomes one line that names the role."""
    from trainchart_training.failures import describe_error, is_data_damaged, is_peer_lost

    try:
        return _play(training, settings, place)
    except SettingsError as error:
        log.error("error: %s: %s", place, error)
        return EXIT_BAD_SETTINGS
    except PeerLost as error:
        log.error("%s cannot continue and has to be started again: %s", place, error)
        return EXIT_PEER_LOST
    except TrainingError as error:
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        log.error("error: %s: %s", place, error)
        return EXIT_FAILED
    except Exception as error:
        # Without peers, it is the storage or the name service that is unavailable.
        if place.strategy not in (SINGLE, MIRRORED) and is_peer_lost(error):
            log.error("%s cannot continue: it lost a %s: %s", place, _describe_peers(place), describe_error(error))
            return EXIT_PEER_LOST
        if is_data_damaged(error):
            from trainchart_training.records import find_damaged_file

            log.info("data is damaged, looking for the file: %s", describe_error(error))
            file = find_damaged_file()
            what = f"the training data is damaged: {file}" if file else "the data that is read is damaged"
            log.error("error: %s: %s: %s", place, what, describe_error(error))
            return EXIT_FAILED
        traceback.print_exc()
        log.error("error: %s: %s", place, describe_error(error))
        return EXIT_FAILED


def _describe_peers(place: Place) -> str:
    """Return what a process at `place` cannot do without."""
    if place.strategy == MULTI_WORKER_MIRRORED:
        return "worker"
    return "worker or ps" if place.strategy == IN_GRAPH else "ps, and the variables with it"


def _play(training: Training, settings: Hyperparameters, place: Place) -> int:
    import tensorflow as tf

    # Below ERROR there is nothing but remarks about "retracing" and deprecation.
    tf.get_logger().setLevel(logging.ERROR)
    tf.get_logger().propagate = False
    tf.debugging.set_log_device_placement(settings.log_device_placement)
    _check_scheme(place.checkpoints_dir)
    if place.task_type == EVALUATOR:
        from trainchart_training.leading.evaluation import evaluate
        from trainchart_training.saving.run_folder import RunFolder

        RunFolder(place).begin()
        return evaluate(training, settings, place)
    if place.task_type == PS or (place.task_type == WORKER and place.strategy in (PARAMETER_SERVER, IN_GRAPH)):
        return _serve(place)
    return _compute(training, settings, place)


def _check_scheme(folder: str) -> None:
    """Raise SettingsError for a URI that TensorFlow, and what the program has imported, can do nothing with."""
    import tensorflow as tf

    scheme, separator, _ = folder.partition("://")
    known = tf.io.gfile.get_registered_schemes()
    if separator and scheme not in known:
        names = ", ".join(f"{name}://" for name in sorted(known) if name)
        raise SettingsError(
            f"TRAINCHART_CHECKPOINTS_DIR: TensorFlow {tf.__version__} has no file system for {folder}, only for {names}"
        )


def _serve(place: Place) -> int:
    """Hold variables (ps) or compute for a chief (worker) until a signal ends the process.

    No handler for SIGTERM: it would never run, since join() does not return to Python, and nothing is to be saved.
    """
    import tensorflow as tf

    server = tf.distribute.Server(
        tf.train.ClusterSpec(place.cluster), job_name=place.task_type, task_index=place.task_index, protocol="grpc"
    )
    log.info("%s: listening at %s", place, server.target)
    server.join()
    return 0


def _compute(training: Training, settings: Hyperparameters, place: Place) -> int:
    """Train as the leader, or as one of the workers that run a loop of their own."""
    from trainchart_training.leading.leader import Leader
    from trainchart_training.leading.rehearsal import rehearse
    from trainchart_training.leading.stop import StopRequest
    from trainchart_training.saving.checkpoints import Checkpoints
    from trainchart_training.saving.run_folder import RunFolder

    # Before all else: the end of another model's training, or of an earlier run's, is not the end of this one.
    folder = RunFolder(place)
    oldest = folder.begin()
    checkpoints = Checkpoints(place.checkpoints_dir)
    last = checkpoints.find_last(settings.max_steps, settings.early_stop_evaluations > 0)
    if last is not None:
        # Started again after the end, because its pod was moved, say: the others may be gone for good.
        why = " (it did not improve; earlyStopEvaluations: 0 continues)" if last.step < settings.max_steps else ""
        whose = f" that {folder.former} has begun there" if folder.former else ""
        log.info(
            "nothing left to do: step %d in %s is the end of the training%s%s",
            *(last.step, place.checkpoints_dir, whose, why),
        )
        return 0
    is_new = not checkpoints.steps()
    if place.strategy != MULTI_WORKER_MIRRORED:
        rehearse(training, settings, place, is_new)
    if place.strategy in _BETWEEN_GRAPH and not place.is_leader:
        from trainchart_training.strategies.sessions import follow

        return follow(training, settings, place)
    stop = StopRequest(place.stop_grace_seconds)
    runner = _open_runner(training, settings, place, stop)
    if place.strategy == MULTI_WORKER_MIRRORED:
        # Not before: TensorFlow connects the workers before it computes anything, or not at all.
        rehearse(training, settings, place, is_new)
    stop.listen()
    return Leader(training, settings, place, runner, stop, folder, oldest).run()


def _open_runner(training: Training, settings: Hyperparameters, place: Place, stop: StopRequest) -> Runner:
    """Return the strategy at work; waits for the processes that it cannot begin without."""
    if place.strategy == PARAMETER_SERVER:
        from trainchart_training.strategies.coordinator import CoordinatorRunner

        return CoordinatorRunner(training, settings, stop)
    if place.strategy in (*_BETWEEN_GRAPH, IN_GRAPH):
        from trainchart_training.strategies.sessions import GraphRunner

        return GraphRunner(training, settings, place, stop)
    from trainchart_training.strategies.replicas import ReplicaRunner

    return ReplicaRunner(training, settings, place, stop)


def _start_log() -> None:
    """Print this package's lines from INFO on; TensorFlow's own, hundreds at that level, from WARNING on."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    ours = logging.getLogger("trainchart_training")
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    ours.propagate = False


def _with_folders(place: Place) -> Place:
    """Fill in the folders that are not named: a fresh one, since this process then trains alone."""
    checkpoints = place.checkpoints_dir or tempfile.mkdtemp(prefix="training-")
    return replace(place, checkpoints_dir=checkpoints, log_dir=place.log_dir or f"{checkpoints}/logs")


def _leave(code: int) -> NoReturn:
    """End the process now: an orderly shutdown of Python takes a second more, or waits for a lost peer."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
