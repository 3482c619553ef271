"""Causes from exit codes, signals and last lines, as programs really print them."""

from __future__ import annotations

import signal
import string
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_runtime import causes, data_causes
from trainchart_runtime.classify import ERROR_LIMIT, Diagnosis, Ending, classify, identify_failure
from trainchart_runtime.termination import parse_failures

NO_ERROR = "no error was printed; the last line: "
HEAD = 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    work()\n'
ABORTED = "Collective ops is aborted by: "
UNAVAILABLE = f"tensorflow.python.framework.errors_impl.UnavailableError: {ABORTED}recvmsg:Connection reset by peer"
OTHER_CLASSES = (
    "tensorflow.python.framework.errors_impl.InvalidArgumentError: {{function_node __wrapped__CollectiveBcastSend_"
    "device_/job:worker/replica:0/task:0/device:CPU:0}} Collective ops is aborted by: Shape mismatch in the collective "
    "instance 101. Op at device /job:worker/replica:0/task:0/device:CPU:0 expected shape [32,10] but another member in "
    "the group expected shape [32,9]. This is likely due to different input shapes at different members of the "
    "collective op."
)
NOISE = "\n2026-05-01 10:00:00.1: W tensorflow/core: UNAVAILABLE: Socket closed"
SESSION = "I0000 00:00:1795472519.158445   29638 coordination_service.cc:221] Initializing CoordinationService\n"
ROUNDING = "I0000 00:00:1795491096.429803    2663 port.cc:153] You may see floating-point round-off errors.\n"
PER_REPLICA = "ValueError: Attempt to convert a value (PerReplica:{\n  0: <tf.Tensor: shape=(1,)>\n})"
NOT_PER_WORKER = (
    "ValueError: To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_d"
)
BUNDLE = "TensorBundle at /c/ckpt-1 shard 0 (240000 bytes)"
CHECKSUM = "Checksum does not match: stored 2984810448 vs. calculated on the restored bytes 3786776787 [Op:RestoreV2]"
NO_FILES = "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for /c/ckpt-1"
NO_KERAS = "Please ensure the file is an accessible `.keras` zip file."
HTTP_RESPONSE = "Error executing an HTTP request: HTTP response code"
NO_BUCKET = "Error executing an HTTP request: libcurl code 7 meaning 'Could not connect to server'"
NOT_IN = "ImportError: cannot import name 'get_session' from "
KERAS_3 = HEAD + '  File "/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in handler\n'
KERAS_2 = KERAS_3.replace("/keras/", "/tf_keras/")
ON_BATCH = (
    HEAD + '  File "/lib/python3.11/keras/src/backend/tensorflow/trainer.py", line 865, in reduce_per_replica\n'
    "ValueError: Invalid reduction dimension 0 for input with 0 dimensions. for '{{node Sum_2}} = Sum[T=DT_FLOAT]"
)
OTHER_SHAPE = (
    "ValueError: Received incompatible tensor with shape (8, 4) when attempting to restore variable with shape (8, 6) "
    "and name a/kernel:0."
)
OTHER_SHAPES = (
    "a.InvalidArgumentError: {{function_node __wrapped__IteratorGetNext_output_types_1_device_/job:localhost/"
    "replica:0/task:0/device:CPU:0}} Cannot batch tensors with different shapes in component 0. First element had "
    "shape [28,28] and element 5 had shape [32,32]. [Op:IteratorGetNext] name: "
)
NOT_ADDED = (
    "a.InvalidArgumentError: Cannot add tensor to the batch: number of elements does not match. Shapes are: "
    "[tensor]: [32,32], [batch]: [28,28] [Op:IteratorGetNext] name: "
)
WRAPPED = "a.InvalidArgumentError: {{function_node __wrapped__Op_device_/job:localhost/replica:0/device:CPU:0}} "
OTHER_RANKS = (
    "All elements in a batch must have the same rank as the padded shape for component0: expected rank 1 but got "
    "element with rank 2 [Op:IteratorGetNext] name: "
)
MISMATCHES = (
    "Feature: x (data type: float) is required but could not be found. [Op:ParseExampleV2]",
    "Could not parse example input, value: 'garbage' [Op:ParseExampleV2]",
    "Key: x.  Data types don't match. Data type: int64 but expected type: float [Op:ParseExampleV2]",
    "Key: x.  Can't parse serialized Example: Some float_list slice was not parsed. [Op:ParseExampleV2]",
    "Expect 2 fields but have 3 in record 0 [Op:DecodeCSV]",
    "StringToNumberOp could not correctly convert string: abc [Op:StringToNumber] name: ",
    "Received a label value of 12 which is outside the valid range of [0, 2).  Label values: 12 [Op:Sparse] name: ",
    "indices[0] = 9 is not in [0, 4) [Op:GatherV2]",
)
FROM_GENERATOR = (
    f"{WRAPPED}TypeError: `generator` yielded an element of shape (3,) where an element of shape (2,) was expected.\n"
    'Traceback (most recent call last):\n\n  File "script_ops.py", line 269, in __call__\n    ret = func(*args)\n'
    "TypeError: `generator` yielded an element of shape (3,) where an element of shape (2,) was expected."
)
OTHER_INPUT = (
    "ValueError: Exception encountered when calling Sequential.call().\n\n\x1b[1mInput 0 with name 'None' of layer "
    "'dense' is incompatible with the layer: expected axis -1 of input shape to have value 4, but received input with "
    "shape (2, 3)\x1b[0m"
)
NO_IMAGE = "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required. [Op:DecodeJpeg]"
NO_FILE = "/none/x.csv; No such file or directory [Op:IteratorGetNext] name: "
NO_MATCH = (
    "a.InvalidArgumentError: Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: b'No files "
    "matched pattern: /none/*.tfrecord'"
)
NO_ATTRIBUTE = "AttributeError: module 'tensorflow"
SYNTAX = "  File \"/app/train.py\", line 12\n    f(\n     ^\nSyntaxError: '(' was never closed"
THREADS = (
    "F0000 00:00:1795.8 29 env.cc:98] Check failed: ret == 0 (11 vs. 0)Thread tf_ creation via pthread_create() failed."
)
BUSY = "BlockingIOError: [Errno 11] Resource temporarily unavailable"
HDF5 = "unable to lock file, errno = 11, error message = 'Resource temporarily unavailable')"
FORK = '  File "/lib/python3.11/subprocess.py", line 1885, in _execute_child\n    self.pid = _fork_exec(\n'
FLOCK = '  File "/app/save.py", line 9, in save\n    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n'
REFUSED = "[Errno 111] Connection refused"
MAX_RETRIES = (
    "requests.exceptions.ConnectionError: HTTPConnectionPool(host='a', port=80): Max retries exceeded with url: /b "
    "(Caused by NewConnectionError('<urllib3.connection.HTTPConnection object>: Failed to establish a new connection:"
)
OPEN_FILES = "[Errno 24] Too many open files"
ALL = "ModuleNotFoundError: No module named "


def diagnose(code=None, by_signal=None, text="", command=("python", "train.py"), **flags):
    diagnosis = classify(Ending(code, by_signal, text.splitlines(), command, **flags))
    return diagnosis.cause.name, diagnosis.error


@pytest.mark.parametrize(
    ("cause", "code", "text", "error"),
    [
        ("succeeded", 0, HEAD + "ValueError: shown, but survived", ""),
        ("peer-lost", 1, HEAD + UNAVAILABLE, UNAVAILABLE),
        ("peer-lost", 1, HEAD + "ConnectionResetError: [Errno 104] Connection reset by peer", "ConnectionReset"),
        ("peer-missing", 1, HEAD + "a.DeadlineExceededError: Barrier timed out. Id: WaitForAllTasks", "a.Dead"),
        ("peer-lost", 75, "chief: ps is gone, error 14", "chief: ps is gone"),
        ("peer-unresolvable", 1, HEAD + "a.UnavailableError: errors resolving ghost.tf:2222: [getaddrinfo]", "a.Un"),
        ("peer-unresolvable", 1, HEAD + "socket.gaierror: [Errno -2] Name or service not known", "socket.gai"),
        ("needs-keras-2", 1, HEAD + "ValueError: Argument(s) not recognized: {'lr': 0.1}", "ValueError: Arg"),
        ("needs-keras-2", 1, HEAD + "ValueError: Invalid filepath extension for saving. Please add", "ValueError: Inv"),
        ("needs-keras-2", 1, HEAD + "AttributeError: `LSTMCell` is not available with Keras 3.", "AttributeError: `L"),
        ("needs-keras-2", 1, HEAD + "ValueError: The filepath provided must end in `.keras` (Keras", "ValueError: The"),
        ("needs-keras-2", 1, HEAD + "AttributeError: 'Mean' object has no attribute 'reset_states'. Did", "Attri"),
        ("needs-keras-2", 1, HEAD + "ModuleNotFoundError: No module named 'keras.utils.np_utils'", "ModuleNot"),
        ("needs-keras-2", 1, HEAD + "ImportError: cannot import name 'A' from 'tensorflow.python.keras.layers'", "Imp"),
        ("needs-keras-2", 1, HEAD + "ImportError: cannot import name 'A' from 'keras.preprocessing.image'", "Imp"),
        ("keras-missing", 1, HEAD + "ImportError: Keras cannot be imported. Check that it is installed.", "Import"),
        (
            "download-failed",
            1,
            HEAD + "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>",
            "url",
        ),
        (
            "download-failed",
            1,
            HEAD
            + "Exception: URL fetch failure on https://example.com/a.npz: None -- [Errno -3] Temporary failure in name"
            " resolution",
            "Exception: URL fetch",
        ),
        (
            "storage-failed",
            1,
            HEAD + "a.AbortedError: All 10 retry attempts failed. The last failure: Error executing an HTTP request: "
            "libcurl code 6 meaning 'Couldn't resolve host name'",
            "a.Aborted",
        ),
        ("out-of-memory", 1, HEAD + "MemoryError", "MemoryError"),
        ("out-of-memory", 1, HEAD + "tf.errors_impl.ResourceExhaustedError: OOM when allocating tensor", "tf.err"),
        ("machine-limit", 1, HEAD + "RuntimeError: can't start new thread", "RuntimeError"),
        ("machine-limit", 1, HEAD + "BlockingIOError: [Errno 11] Resource temporarily unavailable", "BlockingIO"),
        ("machine-limit", 1, HEAD + FORK + BUSY, "BlockingIO"),
        ("file-locked", 1, HEAD + FLOCK + BUSY, "BlockingIO"),
        ("file-locked", 1, HEAD + FLOCK + "    ~~~~~^^^^^\n" + BUSY, "BlockingIO"),
        ("file-locked", 1, HEAD + "BlockingIOError: [Errno 11] Unable to synchronously create file (" + HDF5, "Block"),
        ("file-locked", 1, HEAD + "OSError: Unable to open file (" + HDF5.replace("11", "35"), "OSError"),
        (
            "file-locked",
            1,
            HEAD + "OSError: Unable to create file (unable to truncate a file which is already open)",
            "OS",
        ),
        ("file-locked", 1, HEAD + "sqlite3.OperationalError: database is locked", "sqlite3"),
        ("checkpoint-mismatch", 1, HEAD + OTHER_SHAPE, "ValueError: Received incompatible tensor"),
        (
            "checkpoint-mismatch",
            1,
            HEAD + "ValueError: A total of 2 objects could not be loaded. Ex",
            "ValueError: A t",
        ),
        ("checkpoint-mismatch", 1, HEAD + "e.NotFoundError: Restoring from checkpoint failed. This is most", "e.NotF"),
        (
            "checkpoint-mismatch",
            1,
            HEAD + "ValueError: Layer a weight shape (8, 6) is not compatible with provided weight shape (8, 4).",
            "ValueError: Layer",
        ),
        (
            "checkpoint-mismatch",
            1,
            "error: the checkpoint of step 7 in /checkpoints belongs to another model: a",
            "error",
        ),
        ("program-error", 1, HEAD + "KeyError: 'worker-1 not found in the list'", "KeyError"),
        ("open-files", 1, HEAD + "OSError: [Errno 24] Too many open files: '/data/x'", "OSError"),
        ("open-files", 1, HEAD + f"urllib.error.URLError: <urlopen error {OPEN_FILES}>", "urllib"),
        (
            "open-files",
            1,
            HEAD + f"requests.exceptions.ConnectionError: Max retries exceeded with url: / ({OPEN_FILES})",
            "requ",
        ),
        ("machine-limit", 1, HEAD + "OSError: [Errno 23] Too many open files in system: '/data/x'", "OSError"),
        ("file-watches", 1, HEAD + "OSError: [Errno 24] inotify instance limit reached", "OSError"),
        ("file-watches", 1, HEAD + "OSError: [Errno 28] inotify watch limit reached", "OSError"),
        ("file-watches", 1, HEAD + "OSError: inotify_add_watch: [Errno 28] No space left on device", "OSError"),
        ("file-watches", 1, HEAD + "OSError: inotify_init1 failed: Too many open files", "OSError"),
        ("machine-limit", 1, "libgomp: Thread creation failed: Resource temporarily unavailable", "libgomp"),
        ("out-of-memory", 1, HEAD + "OSError: [Errno 12] Cannot allocate memory", "OSError"),
        ("disk-full", 1, HEAD + "OSError: [Errno 28] No space left on device: '/x'", "OSError"),
        ("disk-full", 1, HEAD + "a.ResourceExhaustedError: /ckpt/x; No space left on device [Op:SaveV2]", "a.Res"),
        # As TensorFlow 2.21, Keras 3 and h5py end for files that were cut, changed or removed.
        ("checkpoint-damaged", 1, HEAD + "IndexError: Read less bytes than requested", "IndexError"),
        ("checkpoint-damaged", 1, HEAD + "a.OpError: file is too short to be an sstable", "a.OpError"),
        ("checkpoint-damaged", 1, HEAD + "a.OpError: not an sstable (bad magic number)", "a.OpError"),
        ("checkpoint-damaged", 1, HEAD + "a.OpError: block checksum mismatch", "a.OpError"),
        ("checkpoint-damaged", 1, HEAD + "a.OpError: /c/ckpt-1.data-00000-of-00001; No such file", "a.OpError"),
        ("checkpoint-damaged", 1, HEAD + "ValueError: Invalid checkpoint state loaded from /c", "ValueError"),
        ("checkpoint-damaged", 1, HEAD + f"a.DataLossError: {BUNDLE}: {CHECKSUM}", "a.DataLossError"),
        ("checkpoint-damaged", 1, HEAD + f"a.NotFoundError: Error when restoring at /c/ckpt-1: {NO_FILES}", "a.Not"),
        ("checkpoint-damaged", 1, HEAD + f"ValueError: File not found: filepath=/m.keras. {NO_KERAS}", "ValueError"),
        ("checkpoint-damaged", 1, HEAD + "zipfile.BadZipFile: Bad CRC-32 for file 'config.json'", "zipfile.BadZ"),
        ("checkpoint-damaged", 1, HEAD + "OSError: Unable to synchronously open file (truncated file: eof)", "OSE"),
        ("checkpoint-damaged", 1, HEAD + "OSError: Unable to open file (file signature not found)", "OSError"),
        ("access-refused", 1, HEAD + "urllib.error.HTTPError: HTTP Error 403: Forbidden", "urllib.error.HTTPError"),
        ("access-refused", 1, HEAD + "urllib.error.HTTPError: HTTP Error 401: Unauthorized", "urllib.error.HTTP"),
        ("access-refused", 1, HEAD + "Exception: URL fetch failure on https://a/b: 403 -- Forbidden", "Exception"),
        ("access-refused", 1, HEAD + "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url", "req"),
        ("access-refused", 1, HEAD + f"a.PermissionDeniedError: {HTTP_RESPONSE} 403 with body", "a.Permission"),
        ("access-refused", 1, HEAD + 'StoreError: GET http://s/a: 401 {"error": "invalid_token"}', "StoreError"),
        ("access-refused", 1, HEAD + "app.ApiError: the access Token has expired", "app.ApiError"),
        ("access-refused", 1, HEAD + "app.ApiError: 403 Forbidden", "app.ApiError"),
        ("access-refused", 1, HEAD + "app.ApiError: store answered with status 401", "app.ApiError"),
        ("access-refused", 1, HEAD + "app.ApiError: HTTP 403: not yours", "app.ApiError"),
        ("access-refused", 1, HEAD + "app.ApiError: your credentials have expired", "app.ApiError"),
        ("access-refused", 1, HEAD + "g.RefreshError: ('invalid_grant: Bad Request', {})", "g.RefreshError"),
        ("program-error", 1, HEAD + "ValueError: exit status: 4010", "ValueError"),
        ("service-unreachable", 1, HEAD + "OSError: [Errno 113] No route to host", "OSError"),
        ("service-unreachable", 1, HEAD + "OSError: [Errno 101] Network is unreachable", "OSError"),
        ("service-unreachable", 1, HEAD + "ConnectionRefusedError: [Errno 111] Connection refused", "ConnectionRef"),
        ("service-unreachable", 1, HEAD + "TimeoutError: timed out", "TimeoutError: timed out"),
        ("service-unreachable", 1, HEAD + "TimeoutError: [Errno 110] Connection timed out", "TimeoutError: [Errno"),
        ("service-unreachable", 1, HEAD + "urllib.error.URLError: <urlopen error timed out>", "urllib.error.URLError"),
        ("service-unreachable", 1, HEAD + f"urllib.error.URLError: <urlopen error {REFUSED}>", "urllib.error.URLError"),
        ("service-unreachable", 1, HEAD + "urllib.error.URLError: <urlopen error [Errno 113] No route to host>", "url"),
        ("service-unreachable", 1, HEAD + f"{MAX_RETRIES} [Errno 111] Connection refused'))", "requests.exceptions"),
        ("service-unreachable", 1, HEAD + "requests.exceptions.ReadTimeout: host='a': Read timed out.", "requests.exc"),
        ("download-failed", 1, HEAD + f"{MAX_RETRIES} [Errno -2] Name or service not known'))", "requests.exceptions"),
        ("download-failed", 1, HEAD + "Exception: URL fetch failure on https://a/b: None -- timed out", "Exception"),
        ("download-failed", 1, HEAD + "a.DownloadError: Failed to get url https://a/b: timed out", "a.DownloadError"),
        ("program-error", 1, HEAD + "TimeoutError", "TimeoutError"),
        ("program-error", 1, HEAD + "ValueError: expected 401 classes, token 403 is unknown", "ValueError"),
        ("access-refused", 1, HEAD + "botocore.exceptions.ClientError: An error occurred (AccessDenied)", "botocore"),
        ("download-failed", 1, HEAD + "urllib.error.HTTPError: HTTP Error 404: Not Found", "urllib.error.HTTPError"),
        ("download-failed", 1, HEAD + "urllib.error.HTTPError: HTTP Error 503: Unavailable", "urllib.error.HTTP"),
        ("data-damaged", 1, HEAD + "EOFError: Compressed file ended before the end-of-stream marker", "EOFError"),
        ("data-damaged", 1, HEAD + "zlib.error: Error -3 while decompressing data: invalid block type", "zlib.error"),
        ("data-damaged", 1, HEAD + "OSError: image file is truncated (3 bytes not processed)", "OSError"),
        ("data-damaged", 1, HEAD + "a.DataLossError: corrupted record at 4711 [Op:IteratorGetNext]", "a.DataLoss"),
        ("data-damaged", 1, HEAD + "a.DataLossError: truncated record at 9' failed with Read less", "a.DataLoss"),
        ("data-damaged", 1, "12:00:00 error: chief 0: the training data is damaged: /a: inflate() failed", "12:00:00"),
        ("permission-denied", 1, HEAD + "PermissionError: [Errno 13] Permission denied: '/data/x'", "Permission"),
        (
            "peer-lost",
            1,
            HEAD + "tensorflow.python.framework.errors_impl.InvalidArgumentError: /job:ps/task:0 unknown device. It is "
            "possible that some remote workers have been restarted.",
            "tensorflow",
        ),
        (
            "peer-lost",
            1,
            HEAD + "tensorflow.python.framework.errors_impl.InvalidArgumentError: Unable to find a context_id "
            "matching the specified one (42). Perhaps the worker was restarted, or the context was GC'd?",
            "tensorflow",
        ),
        (
            "peer-lost",
            1,
            HEAD + "tensorflow.python.framework.errors_impl.FailedPreconditionError: Device /job:worker/task:1 current "
            "incarnation doesn't match with the one used in the group.",
            "tensorflow",
        ),
        (
            "peer-lost",
            1,
            HEAD + "tensorflow.python.framework.errors_impl.InvalidArgumentError: Unable to find the relevant tensor "
            "remote_handle: Op ID: 1, Output num: 0. One possible cause is that the tensor was accessed after deletion",
            "tensorflow",
        ),
        (
            "certificate-refused",
            1,
            HEAD + "urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
            "certificate has expired (_ssl.c:992)>",
            "urllib",
        ),
        ("peer-lost", 1, HEAD + "AbortedError: Session handle is not found: 5d0e.", "AbortedError"),
        (
            "storage-failed",
            1,
            HEAD + "OSError: [Errno 116] Stale file handle: '/c/ckpt-1.index'",
            "OSError: [Errno 116]",
        ),
        ("storage-failed", 1, HEAD + "OSError: [Errno 107] Transport endpoint is not connected: '/c'", "OSError: [E"),
        (
            "storage-failed",
            1,
            HEAD + "tf.errors_impl.UnavailableError: /c/ckpt-1.index; Host is down",
            "tf.errors_impl",
        ),
        ("storage-failed", 1, HEAD + f"tf.errors_impl.UnavailableError: {HTTP_RESPONSE} 503", "tf.errors_impl"),
        (
            "storage-failed",
            1,
            "12:00:00 error: worker 0: cannot save step 20 in gs://b/a: " + NO_BUCKET,
            "12:00:00 error",
        ),
        ("program-error", 1, HEAD + "OSError: [Errno 107] Transport endpoint is not connected", "OSError: [Errno 107]"),
        ("read-only", 1, HEAD + "OSError: [Errno 30] Read-only file system: '/data/x'", "OSError"),
        ("read-only", 1, "mkdir: cannot create directory '/data/x': Read-only file system", "mkdir: "),
        ("wrong-architecture", 126, "cannot start '/app/train': Exec format error", "cannot start"),
        ("wrong-architecture", 126, "bash: /app/train: cannot execute binary file: Exec format error", "bash"),
        ("module-missing", 1, HEAD + ALL + "'tensorflow'", ALL + "'tensorflow'"),
        ("port-in-use", 1, HEAD + "OSError: [Errno 98] Address already in use", "OSError"),
        ("port-in-use", 1, HEAD + "tf.errors_impl.UnknownError: Could not start gRPC server", "tf.err"),
        ("syntax-error", 1, '  File "/app/train.py", line 1\n    def\n       ^\nSyntaxError: invalid syntax', "Syntax"),
        ("syntax-error", 1, SYNTAX, "SyntaxError: '(' was never closed (/app/train.py, line 12)"),
        ("syntax-error", 1, HEAD + SYNTAX, "SyntaxError: '(' was never closed (/app/train.py, line 12)"),
        ("syntax-error", 1, HEAD + "IndentationError: unexpected indent", "IndentationError"),
        ("program-missing", 2, "python: can't open file '/app/train.py': [Errno 2] No such file", "python: can't"),
        ("program-missing", 1, "/usr/local/bin/python3: No module named mnist", "/usr/local/bin"),
        ("program-missing", 127, "sh: 1: train: not found", "sh: 1: train: not found"),
        ("program-missing", 126, "sh: 1: ./train: Permission denied", "sh: 1"),
        ("bad-arguments", 2, "usage: train [-h]\ntrain: error: unrecognized arguments: --lr", "train: error"),
        ("bad-arguments", 1, "FATAL Flags parsing error: Unknown command line flag 'x'", "FATAL Flags"),
        (
            "bad-arguments",
            2,
            "working\nerror: hyperparameter 'x' is not known; use one of y",
            "error: hyperparameter",
        ),
        ("bad-arguments", 2, "12:00:00 error: worker 0: hyperparameter backupWorkers: 2 of 2", "error: worker 0"),
        ("program-exit", 2, "error: early words\nlater words", "error: early"),
        ("program-exit", 1, SESSION + "12:00:00 error: chief 0: another model's checkpoint", "12:00:00 error"),
        ("program-exit", 143, ROUNDING + "12:00:00 stopped on request at step 50", "12:00:00 stopped"),
        ("workers-differ", 1, HEAD + OTHER_CLASSES, "tensorflow.python.framework.errors_impl.InvalidArgumentError: C"),
        ("workers-differ", 1, HEAD + OTHER_CLASSES.replace(ABORTED, 2 * ABORTED), "tensorflow.python.framework.err"),
        ("examples-differ", 1, HEAD + OTHER_SHAPES, "a.InvalidArgumentError: Cannot batch"),
        ("examples-differ", 1, HEAD + NOT_ADDED, "a.InvalidArgumentError: Cannot add"),
        ("examples-differ", 1, HEAD + WRAPPED + OTHER_RANKS, "a.InvalidArgumentError: All elements"),
        *(("data-mismatch", 1, HEAD + WRAPPED + words, f"a.InvalidArgumentError: {words[:8]}") for words in MISMATCHES),
        ("data-mismatch", 1, HEAD + FROM_GENERATOR, "TypeError: `generator` yielded an element of shape (3,)"),
        ("data-mismatch", 1, HEAD + OTHER_INPUT, "ValueError: Input 0 with name 'None' of layer 'dense'"),
        ("data-damaged", 1, HEAD + WRAPPED + NO_IMAGE, "a.InvalidArgumentError: Unknown image"),
        ("file-missing", 1, HEAD + WRAPPED.replace("InvalidArgument", "NotFound") + NO_FILE, "a.NotFoundError: /none"),
        ("file-missing", 1, HEAD + NO_MATCH, "a.InvalidArgumentError: Expected 'tf.Tensor(False"),
        ("file-missing", 1, HEAD + "FileNotFoundError: [Errno 2] No such file or directory: 'x.csv'", "FileNotFound"),
        ("file-missing", 1, HEAD + "FileNotFoundError: [Errno 2] No such file or directory: 'psm_1.csv'", "FileNot"),
        (
            "shared-memory-lost",
            1,
            HEAD + "FileNotFoundError: [Errno 2] No such file or directory: '/psm_ba46d402'",
            "F",
        ),
        ("peer-lost", 1, HEAD + OTHER_SHAPES.replace("Cannot", f"{ABORTED}Cannot"), "a.InvalidArgumentError: Coll"),
        ("no-terminal", 1, HEAD + "EOFError: EOF when reading a line", "EOFError"),
        ("no-terminal", 1, HEAD + "bdb.BdbQuit", "bdb.BdbQuit"),
        (
            "bad-arguments",
            1,
            "F0000 00:00:17.4  26 flags_from_env.cc:234] Unknown flag in TF_XLA_FLAGS: --a",
            "F0",
        ),
        ("program-error", 1, HEAD + "KeyError: 'x'", "KeyError: 'x'"),
        ("keras-fit", 1, KERAS_3 + PER_REPLICA, "ValueError: Attempt"),
        ("keras-fit", 1, KERAS_3 + NOT_PER_WORKER + "ataset.", "ValueError: To use this"),
        ("keras-fit", 1, HEAD + "AttributeError: module 'keras.utils' has no attribute 'experimental'", "Attribute"),
        ("keras-fit", 1, ON_BATCH, "ValueError: Invalid reduction"),
        ("program-error", 1, ON_BATCH.replace("/keras/", "/tf_keras/"), "ValueError: Invalid reduction"),
        ("program-error", 1, KERAS_2 + PER_REPLICA, "ValueError: Attempt"),
        ("program-error", 1, HEAD + NOT_PER_WORKER + "ataset.", "ValueError: To use this"),
        ("needs-tensorflow-1", 1, HEAD + ALL + "'tensorflow.examples'", ALL),
        ("needs-tensorflow-1", 1, HEAD + ALL + "'tensorflow.models'", ALL),
        ("needs-tensorflow-1", 1, HEAD + NOT_IN + "'tensorflow' (/lib/python3.11/tensorflow/__init__.py)", NOT_IN),
        ("needs-tensorflow-1", 1, HEAD + NOT_IN + "'keras.backend' (/lib/keras/backend/__init__.py)", NOT_IN),
        (
            "needs-tensorflow-1",
            1,
            HEAD
            + "AttributeError: module 'keras.backend' has no attribute 'set_session'. Did you mean: 'set_epsilon'?",
            "AttributeError: module 'keras.backend'",
        ),
        (
            "needs-keras-2",
            1,
            HEAD + "AttributeError: module 'keras._tf_keras.keras.backend' has no attribute 'placeholder'",
            "AttributeError: module 'keras._tf_keras.keras.backend'",
        ),
        (
            "needs-keras-2",
            1,
            HEAD
            + "ImportError: cannot import name 'function' from 'tensorflow.keras.backend' (/lib/keras/__init__.py)",
            "ImportError: cannot import name 'function'",
        ),
        ("needs-tensorflow-1", 1, HEAD + ALL + "'tensorflow_estimator'", ALL),
        ("module-missing", 1, HEAD + ALL + "'tensorflow_examples'", ALL),
        ("needs-tensorflow-1", 1, HEAD + ALL + "'tensorflow.contrib'", ALL),
        ("module-missing", 1, HEAD + ALL + "'tensorflow.nonsense'", ALL),
        ("needs-tensorflow-1", 1, HEAD + NO_ATTRIBUTE + "' has no attribute 'app'", NO_ATTRIBUTE),
        ("needs-tensorflow-1", 1, HEAD + NO_ATTRIBUTE + "' has no attribute 'set_random_seed'", NO_ATTRIBUTE),
        ("needs-tensorflow-1", 1, HEAD + NO_ATTRIBUTE + "._api.v2.train' has no attribute 'AdamOptimizer'", "Attr"),
        ("needs-tensorflow-1", 1, HEAD + NO_ATTRIBUTE + ".compat.v1' has no attribute 'estimator'", "Attribute"),
        ("needs-tensorflow-1", 1, HEAD + "AttributeError: 'X' has no attribute 'make_one_shot_iterator'", "Attr"),
        ("needs-tensorflow-1", 1, HEAD + "RuntimeError: tf.placeholder() is not compatible with eager execution.", "R"),
        ("program-error", 1, HEAD + "KeyboardInterrupt", "KeyboardInterrupt"),
        ("program-error", 1, HEAD + "my.module.CustomError", "my.module.CustomError"),
        ("program-exit", 3, "working\nnothing to see", "nothing to see"),
        ("program-exit", 2, "no usage text", "no usage text"),
        (
            "bad-arguments",
            2,
            "Usage: train.py [OPTIONS] COMMAND [ARGS]...\n\nCommands:\n  fit\n  train",
            "Usage: train.py [OPTIONS] COMMAND [ARGS]...",
        ),
        (
            "bad-arguments",
            2,
            " Usage: train.py [OPTIONS]\n╭─ Error ──────────────╮\n│ No such option: --l │\n╰─────────────────────╯",
            "No such option: --l",
        ),
        ("program-exit", 1, "", ""),
    ],
)
def test_cause_of_an_exit(cause, code, text, error):
    found, said = diagnose(code, None, text)
    assert found == cause
    assert said.removeprefix(NO_ERROR).startswith(error) and bool(said) == bool(error)


@pytest.mark.parametrize(
    ("cause", "number", "text"),
    [
        ("killed", signal.SIGKILL, "MemoryError"),
        ("killed", signal.SIGTERM, ""),
        ("crashed", signal.SIGSEGV, "Fatal Python error: Segmentation fault"),
        ("crashed", signal.SIGABRT, "F tensorflow/core/x.cc:1] Check failed: a == b"),
        ("bus-error", signal.SIGBUS, ""),
        ("crashed", signal.SIGFPE, ""),
        ("crashed", signal.SIGILL, "no such instruction"),
        ("out-of-memory", signal.SIGABRT, "terminate called after throwing an instance of 'std::bad_alloc'"),
        ("machine-limit", signal.SIGABRT, THREADS),
        ("open-files", signal.SIGABRT, f"F0000 a.cc:1] Check failed: {OPEN_FILES}"),
        ("machine-limit", signal.SIGABRT, "terminate called\n  what():  Resource temporarily unavailable"),
        ("peer-lost", signal.SIGABRT, "F0 client.cc] Terminating process: the coordination service reports task 1"),
    ],
)
def test_cause_of_a_signal(cause, number, text):
    assert diagnose(None, number, text)[0] == cause


@pytest.mark.parametrize(
    ("cause", "call", "error"),
    [
        ("program-error", "raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("program-error", "stop(step)", "KeyboardInterrupt: enough"),
        ("program-error", "os.kill(os.getpid(), signal.SIGINT)", "KeyboardInterrupt"),
        ("program-error", "signal.raise_signal(signal.SIGINT)\n    ^^^^^^^", "KeyboardInterrupt"),
        ("killed", "time.sleep(60)", "KeyboardInterrupt"),
    ],
)
def test_an_interrupt_is_of_the_program_where_it_says_so(cause, call, error):
    text = HEAD + f'  File "train.py", line 9, in <module>\n    {call}\n{error}'
    assert diagnose(None, signal.SIGINT, text) == (cause, error)


def test_what_the_launcher_did_itself_comes_first():
    assert diagnose(0, stopped=True) == ("terminated", "")
    assert diagnose(1, None, HEAD + "KeyError: 1", stopped=True) == ("terminated", "")
    assert diagnose(0, stalled=True) == ("no-progress", "")
    assert diagnose(None, signal.SIGTERM, HEAD + "KeyError: 1", stalled=True) == ("no-progress", "KeyError: 1")


def test_a_lost_claim_explains_whatever_end_the_program_has():
    assert diagnose(None, signal.SIGKILL, superseded_by="pod b") == ("superseded", "pod b")
    assert diagnose(0, superseded_by="pod b", lost_storage="no answer") == ("superseded", "pod b")
    assert diagnose(None, signal.SIGKILL, lost_storage="no answer") == ("storage-lost", "no answer")
    assert diagnose(0, stopped=True, superseded_by="pod b") == ("terminated", "")


def test_logged_trouble_does_not_hide_the_exception():
    assert diagnose(1, None, HEAD + "ValueError: bad shape" + NOISE) == ("program-error", "ValueError: bad shape")


@pytest.mark.parametrize("noise", ["Exception ignored in: <function Pool.__del__>", "Error in atexit._run_exitfuncs:"])
def test_tracebacks_of_the_interpreter_going_down_are_noise(noise):
    text = HEAD + UNAVAILABLE + f"\n{noise}\n" + HEAD + "AttributeError: 'NoneType' object"
    assert diagnose(1, None, text) == ("peer-lost", UNAVAILABLE)


@pytest.mark.parametrize(
    ("link", "root"),
    [
        ("During handling of the above exception, another exception occurred:", ""),
        ("The above exception was the direct cause of the following exception:", " (from KeyError: 'a')"),
    ],
)
def test_a_peer_lost_inside_a_chain_counts(link, root):
    text = HEAD + UNAVAILABLE + f"\n\n{link}\n\n" + HEAD + "RuntimeError: training step failed"
    assert diagnose(1, None, text) == ("peer-lost", UNAVAILABLE)
    plain = HEAD + "KeyError: 'a'" + f"\n\n{link}\n\n" + HEAD + "RuntimeError: training step failed"
    assert diagnose(1, None, plain) == ("program-error", f"RuntimeError: training step failed{root}")


def test_an_earlier_traceback_that_was_survived_does_not_count():
    text = HEAD + UNAVAILABLE + "\nretrying\n" + HEAD + "ValueError: 7"
    assert diagnose(1, None, text) == ("program-error", "ValueError: 7")


@pytest.mark.parametrize(
    "below",
    [
        "\nDetected at node a defined at (most recent call last):\n<stack traces unavailable>\ntoo hot\n\t [[a]]",
        'Detected at node a/Assert defined at (most recent call last):\n  File "/app/train.py", line 3\n\ntoo hot',
        "2 root error(s) found.\n  (0) too hot\n\t [[{{node a/Assert}}]]\n  (1) too hot",
    ],
)
def test_reason_of_a_graph_error_is_below_its_location(below):
    text = HEAD + "a.errors_impl.InvalidArgumentError: Graph execution error:\n" + below
    assert diagnose(1, None, text) == ("program-error", "a.errors_impl.InvalidArgumentError: too hot")
    assert diagnose(1, None, HEAD + "a.InvalidArgumentError: Graph execution error:")[1].endswith("execution error:")


def test_the_reason_of_several_errors_is_that_of_the_first() -> None:
    text = f"{HEAD}a.UnavailableError: 2 root error(s) found.\n  (0) UNAVAILABLE: Socket closed\n  (1) CANCELLED: x"
    assert diagnose(1, None, text) == (
        "peer-lost",
        "a.UnavailableError: 2 root error(s) found. UNAVAILABLE: Socket closed",
    )


@pytest.mark.parametrize("start", ["", "Graph execution error:\n\nDetected at node 'q' defined at\nNode: 'q'\n"])
def test_reason_of_another_tasks_error_is_in_the_next_line(start: str) -> None:
    reason = "From /job:ps/replica:0/task:0:\nFIFOQueue 'sync_token_q' is closed.\n\t [[{{q}}]]"
    text = f"{HEAD}a.CancelledError: {start}{reason}"
    expected = "a.CancelledError: From /job:ps/replica:0/task:0: FIFOQueue 'sync_token_q' is closed."
    assert diagnose(1, None, text) == ("peer-lost", expected)


@pytest.mark.parametrize(
    "error",
    [
        'in user code:\n\n    File "/app/train.py", line 7, in train_step  *\n        f(x)\n\n    KeyError: too hot',
        "Exception encountered when calling Net.call().\n\n\x1b[1mtoo hot\x1b[0m\n\nArguments received",
        'in user code:\n\n    File "/app/a.py", line 7  *\n        f(x)\n\n'
        "    KeyError: Exception encountered when calling Net.call().\n    \n    \x1b[1mtoo hot\x1b[0m",
    ],
)
def test_the_reason_of_an_error_in_a_step_of_keras_stands_below(error):
    assert diagnose(1, None, HEAD + "KeyError: " + error) == ("program-error", "KeyError: too hot")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("headings", [1, 100])
def test_errors_that_name_ever_more_errors_take_no_time(headings):
    linked = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    text = linked.join([HEAD + "KeyError: in user code:"] * headings) + "\n    E: in user code:" * 2500
    assert diagnose(1, None, text) == ("program-error", "E: in user code:")


def test_what_a_program_says_below_its_traceback_explains_it():
    said = "error: chief 0: the program's function model failed: KeyError: 'x'"
    assert diagnose(1, None, HEAD + f"KeyError: 'x'\n12:00:01 {said}\n") == ("program-error", said)
    # The cause is still that of the exception.
    full = HEAD + "OSError: [Errno 28] No space left on device\nerror: cannot save step 20"
    assert diagnose(1, None, full) == ("disk-full", "error: cannot save step 20")
    assert diagnose(1, None, HEAD + "KeyError: 'x'\nerror: shown\nbye")[1] == "KeyError: 'x'"


def test_missing_module_of_the_program_is_a_missing_program():
    text = HEAD + ALL + "'mnist.train'"
    assert diagnose(1, None, text, ("python", "-m", "mnist.train"))[0] == "program-missing"
    assert diagnose(1, None, text, ("python", "-m", "other.train"))[0] == "module-missing"


@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        (" [Op:IteratorGetNext] name: ", ""),
        ("[Op:IteratorGetNext] name:", ""),
        (" [Op:MatMul] name: dense_1", " [Op:MatMul] name: dense_1"),
        (" [Op:RestoreV2]", " [Op:RestoreV2]"),
    ],
)
def test_empty_name_of_an_operation_is_dropped(tail, kept):
    _, error = diagnose(1, None, f"{HEAD}a.InvalidArgumentError: In[0] and In[1] differ{tail}")
    assert error == f"a.InvalidArgumentError: In[0] and In[1] differ{kept}"


@pytest.mark.parametrize("words", [ABORTED, 2 * ABORTED])
def test_shapes_stay_in_an_error_that_is_cut(words):
    _, error = diagnose(1, None, HEAD + OTHER_CLASSES.replace(ABORTED, words))
    kept = parse_failures([{"number": 1, "at": 1, "cause": "workers-differ", "exitCode": 1, "error": error}])[0].error
    assert "expected shape [32,10] but another member in the group expected shape [32,9]" in kept


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["error", "1", "error 1.", "1 root error"])
def test_long_lines_of_one_word_take_no_time(piece):
    text = "\n".join([f" {piece * (16_000 // len(piece))}!"] * 20)
    assert diagnose(1, None, text)[0] == "program-exit"
    assert diagnose(1, None, f"{HEAD}KeyError: {text}")[0] == "program-error"


@pytest.mark.timeout(60)
def test_a_line_of_a_megabyte_is_searched_once():
    _, error = diagnose(1, None, HEAD + "ValueError: " + "a." * 700_000)
    assert error.startswith("ValueError: a.a.") and len(error) == ERROR_LIMIT


def test_the_error_line_is_cut():
    _, error = diagnose(1, None, HEAD + "ValueError: " + "x" * 5000)
    assert len(error) == ERROR_LIMIT


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (r"ValueError: Invalid header value b'Bearer abc123\n'", r"ValueError: Invalid header value b'Bearer ***\n'"),
        ("KeyError: 'authorization: bearer eyJhbGciOi.J9-_x=='", "KeyError: 'authorization: bearer ***'"),
        ("ValueError: b'Basic YWRhOnNlY3JldA=='", "ValueError: b'Basic ***'"),
        ("OSError: postgres://ada:se:cret@db:5432/x refused", "OSError: postgres://ada:***@db:5432/x refused"),
        ("ValueError: http://:p@h", "ValueError: http://:***@h"),
    ],
)
def test_no_credentials_are_in_an_error(error, shown):
    assert diagnose(1, None, HEAD + error)[1] == shown


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: the bearer of basic optimizers is not known",
        "OSError: http://db:5432/a@b refused",
        "ValueError: grpc://worker-0:2222, expected basic types",
        "RuntimeError: bearer x",
    ],
)
def test_other_words_of_an_error_are_kept(error):
    assert diagnose(1, None, HEAD + error)[1] == error


KILLED_FOR_MEMORY = {"memory_kills": 1, "memory_limit_mib": 512}


def test_a_kill_for_memory_explains_a_sigkill_only():
    said = "the kernel killed the program for memory; the container's limit is 512 MiB"
    assert diagnose(None, signal.SIGKILL, **KILLED_FOR_MEMORY) == ("out-of-memory", said)
    assert diagnose(137, None, **KILLED_FOR_MEMORY) == ("out-of-memory", said)
    assert diagnose(0, None, **KILLED_FOR_MEMORY) == ("succeeded", "")
    assert diagnose(None, signal.SIGKILL, stopped=True, **KILLED_FOR_MEMORY) == ("terminated", "")
    for code, by_signal in ((9, None), (None, signal.SIGSEGV)):
        assert diagnose(code, by_signal, **KILLED_FOR_MEMORY)[0] in ("program-exit", "crashed")


@pytest.mark.parametrize(
    "harmless",
    [
        "prefetching batch 16",
        "epoch 3: mean_absolute_error: 0.12, squared error: 0.5, error=1e-3",
        "validation finished: 0 errors, 0 failed",
        "WARNING:tensorflow:the cache cannot be used",
        "W0000 00:00:1795472519.158445   29638 cache.cc:221] Failed to open the cache",
        "2026-05-01 10:00:00.1: W tensorflow/core: error of rounding",
        "/app/data.py:3: FutureWarning: this raises an exception in the next version",
        "2026-05-01 10:00:00 INFO trainer: error handler installed",
    ],
)
@pytest.mark.parametrize("code", [3, -signal.SIGSEGV])
def test_harmless_line_is_not_the_error_of_a_program(code, harmless):
    ended = (None, -code) if code < 0 else (code, None)
    assert diagnose(*ended, f"starting\n{harmless}")[1] == NO_ERROR + harmless
    for complaint in (
        "ERROR trainer: the shards differ in size",
        "2026-05-01 10:00:00,123 CRITICAL giving up",
        "train: cannot read /data/shard-7: corrupt",
        "terminate called after throwing an instance of 'std::runtime_error'",
        "Error: 3 shards differ",
        "the loader ended with error 5",
        "Segmentation fault (core dumped)",
        "ValueError: the shards differ",
        "F0000 00:00:1795472519.158445   29638 run.cc:221] Check: n == m",
    ):
        assert diagnose(*ended, f"{complaint}\n{harmless}\n{harmless}\n")[1] == complaint


@pytest.mark.parametrize("flags", [{}, {"stalled": True}], ids=["failed", "stalled"])
def test_a_killed_helper_is_mentioned_and_never_cut_off(flags):
    for text, begin in (
        (HEAD + "ValueError: " + "x" * 5000, "ValueError: xxx"),
        ("", "(the kernel killed 3 processes"),
    ):
        _, error = diagnose(1, None, text, memory_kills=3, **flags)
        assert error.startswith(begin) and len(error) <= ERROR_LIMIT
        assert error.endswith(
            "of the container for memory; the container has no limit of its own, so its node ran short)"
        )


def test_every_failure_can_be_explained():
    for name, cause in causes.CAUSES.items():
        assert cause.name == name
        assert cause.sentence.endswith(".")
        assert cause.hint.endswith(".") or cause is causes.SUCCEEDED


line = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from([*HEAD.splitlines(), UNAVAILABLE, ALL])


@given(st.integers(1, 255), st.lists(line, max_size=12), st.lists(st.text(string.printable), max_size=3))
def test_any_output_gets_a_cause_that_is_no_success(code, lines, command):
    diagnosis = classify(Ending(code, None, lines, command))
    assert diagnosis.cause.name in causes.CAUSES
    assert diagnosis.cause not in (causes.SUCCEEDED, causes.TERMINATED)
    assert "\n" not in diagnosis.error or any("\n" in line for line in lines)


NAN = Diagnosis(causes.PROGRAM_ERROR, "ValueError: loss is NaN at step 120")


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (NAN.error, NAN.error),
        ("TypeError: <A object at 0x7f01> is not a tensor", "TypeError: <A object at 0x7f02> is not a tensor"),
        ("F0000 00:00:1795.5   29 a.cc:1] Check failed", "F0000 00:00:1799.1   31 a.cc:1] Check failed"),
        ("2026-05-01 10:00:00.1: E tensorflow/a: bad", "2026-05-01 10:00:09.4: E tensorflow/a: bad"),
        ("10:00:00 error: chief 0: bad", "10:00:12 error: chief 0: bad"),
        ("RuntimeError: process 31 failed", "RuntimeError: process 75 failed"),
        ("RuntimeError: no answer (pid=31, Thread-2)", "RuntimeError: no answer (pid=75, Thread-9)"),
        ("OSError: cannot read /proc/31/maps", "OSError: cannot read /proc/7512/maps"),
        ("ValueError: bad file /tmp/tmpab12_xyz/a", "ValueError: bad file /tmp/tmpq7zz0abc/a"),
        ("ValueError: no result in 1.25 s", "ValueError: no result in 12.5 s"),
        (f"KeyError: 'run-{uuid.UUID(int=1)}'", f"KeyError: 'run-{uuid.UUID(int=2**100)}'"),
    ],
)
def test_same_failure_is_known_again(error, again):
    known = identify_failure(Diagnosis(causes.PROGRAM_ERROR, error), None, 1.0)
    assert known and known == identify_failure(Diagnosis(causes.PROGRAM_ERROR, again), None, 1.0)


@pytest.mark.parametrize(
    ("error", "other"),
    [
        ("IndexError: index 5 of 12", "IndexError: index 6 of 12"),
        ("ValueError: bad record 31", "ValueError: bad record 32"),
        ("ValueError: 12 steps are too few", "ValueError: 13 steps are too few"),
    ],
)
def test_failures_with_other_numbers_differ(error, other):
    first, second = (Diagnosis(causes.PROGRAM_ERROR, text) for text in (error, other))
    assert identify_failure(first, None, 1.0) != identify_failure(second, None, 1.0)


def test_workers_that_differ_do_so_at_each_start():
    assert identify_failure(Diagnosis(causes.WORKERS_DIFFER, OTHER_CLASSES), None, 9.0)


def test_examples_that_differ_do_so_at_each_start():
    assert identify_failure(Diagnosis(data_causes.EXAMPLES_DIFFER, OTHER_SHAPES), 40, 9.0)


def test_failures_at_other_steps_differ():
    assert identify_failure(NAN, 120, 1.0) == identify_failure(NAN, 120, 999.0) != identify_failure(NAN, 121, 1.0)


@pytest.mark.parametrize(
    ("cause", "error", "ran_seconds"),
    [
        (causes.KILLED, "", 1.0),
        (causes.PEER_LOST, "UnavailableError: Socket closed", 1.0),
        (causes.STORAGE_LOST, "no answer from /checkpoints", 1.0),
        (causes.NO_PROGRESS, "KeyboardInterrupt", 1.0),
        (causes.PORT_IN_USE, "OSError: [Errno 98] Address already in use", 1.0),
        (causes.PROGRAM_ERROR, "", 1.0),
        (causes.PROGRAM_ERROR, "requests.exceptions.ReadTimeout: HTTPSConnectionPool", 1.0),
        (causes.PROGRAM_ERROR, "tensorflow...AbortedError: worker restarted", 1.0),
        (causes.PROGRAM_ERROR, "OSError: [Errno 116] Stale file handle: '/data'", 1.0),
        # It may have come further each time: it does not report steps.
        (causes.PROGRAM_ERROR, "KeyError: 'x'", 3600.0),
    ],
)
def test_failure_that_may_pass_is_never_the_same(cause, error, ran_seconds):
    assert identify_failure(Diagnosis(cause, error), None, ran_seconds) == ""
