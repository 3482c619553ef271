"""The words by which the last line of a program names its cause.

Data only; classify.py looks for them.
"""

from __future__ import annotations

import re
from typing import Sequence, Tuple

from trainchart_runtime import causes, data_causes
from trainchart_runtime.cause import Cause

# The order decides: a full disk and a name that does not resolve arrive as ResourceExhausted and Unavailable.
CAUSES_BY_WORDS: Sequence[Tuple["re.Pattern[str]", Cause]] = (
    # The system says that no space is left, or that too many files are open, where watches are meant.
    (
        re.compile(
            r"\binotify (instance|watch) limit reached"
            r"|\binotify_(init1?|add_watch)\b.*(Too many open files|No space left on device)"
        ),
        causes.FILE_WATCHES,
    ),
    (re.compile(r"No space left on device|Disk quota exceeded|\bENOSPC\b"), causes.DISK_FULL),
    (
        re.compile(
            r"(corrupted|truncated) record at \d|the training data is damaged|ReadError: unexpected end of data"
            r"|Compressed file ended before the end-of-stream|BadGzipFile: |Error -[35] while decompressing data"
            r"|image file is truncated|cannot identify image|Unknown image file format|EOF: reading array data"
            r"|pickle data was truncated|Parquet magic bytes not found"
        ),
        data_causes.DATA_DAMAGED,
    ),
    (
        re.compile(
            r"Received incompatible tensor with shape .* restore variable|\bobjects could not be loaded\b"
            r"|not compatible with provided weight shape|Restoring from checkpoint failed|\bnot found in checkpoint\b"
            r"|Unresolved object in checkpoint|checkpoint of step \d+ in .* belongs to another model"
            r"|(Shape|Weight count) mismatch (in|for) layer|Layer count mismatch when loading weights"
            r"|Assign requires shapes of both tensors to match"
        ),
        data_causes.CHECKPOINT_MISMATCH,
    ),
    (
        re.compile(
            r"Read less bytes than requested|Checksum does not match: stored|block checksum mismatch"
            r"|not an sstable|too short to be an sstable|\.data-\d{5}-of-\d{5}; No such file"
            r"|Unsuccessful TensorSliceReader constructor|Invalid checkpoint state loaded from"
            r"|an accessible `\.keras` zip file|Unable to (synchronously )?open file \((truncated|file signature)"
            r"|\bBadZipFile\b"
        ),
        data_causes.CHECKPOINT_DAMAGED,
    ),
    # Whatever was to be opened: the errors of downloads, name resolution and connections wrap it.
    (re.compile(r"Too many open files(?! in system)"), causes.OPEN_FILES),
    (re.compile(r"message larger than max"), causes.MESSAGE_TOO_LARGE),
    (re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"), causes.CERTIFICATE_REFUSED),
    (
        re.compile(
            r"HTTP Error 40[13]\b|\b40[13] Client Error\b|URL fetch failure on .*: 40[13]\b|HTTP response code 40[13]\b"
            r"|\b(AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|RequestExpired)\b"
            r"|^grpc\.\S+: (UNAUTHENTICATED|PERMISSION_DENIED)\b"
            # What programs make of answers themselves; OAuth's own words.
            r"|\b40[13] (Unauthorized|Forbidden)\b|\binvalid_(token|grant)\b|(?i:\bexpired (access )?token\b)"
            r"|(?i:\b(token|signature|credentials?) (has |have |is |are )?(been )?expired\b)"
            r"|(?i:\b(HTTP|status)( status)?( code)?[ :=]+40[13]\b)"
        ),
        causes.ACCESS_REFUSED,
    ),
    # TensorFlow's words for a bucket without an answer are those for a lost peer.
    (
        re.compile(
            r"Error executing an HTTP request: (libcurl code \d|HTTP response code (408|429|5\d\d))"
            r"|Stale file handle|\bESTALE\b|Input/output error|Remote I/O error"
            # With a file: sockets say so, too.
            r"|; (Transport endpoint is not connected|Cannot send after transport endpoint shutdown|Host is down)"
            r"|\[Errno (107|108|112)\] [\w ]+: b?['\"]"
        ),
        causes.STORAGE_FAILED,
    ),
    # Libraries for any HTTP request: it may have been to a service, and no download.
    (
        re.compile(
            r"\bURLError: <urlopen error (\[Errno (101|110|111|113)\]|.*timed out)"
            r"|^requests\.exceptions\.\w+: .*(\[Errno (101|110|111|113)\]|timed out)"
        ),
        causes.SERVICE_UNREACHABLE,
    ),
    (
        re.compile(
            r"URL fetch failure on|\burllib\.error\.(URL|HTTP|ContentTooShort)Error\b|Max retries exceeded with url"
            r"|^requests\.exceptions\.|\blibcurl code \d|\bDownloadError\b|LocalEntryNotFoundError"
        ),
        causes.DOWNLOAD_FAILED,
    ),
    (
        re.compile(
            r"errors resolving|getaddrinfo|gaierror|DNS resolution failed|[Nn]ame resolution"
            r"|Name or service not known|nodename nor servname"
        ),
        causes.PEER_UNRESOLVABLE,
    ),
    (
        # TensorFlow's server says no more than that it cannot start; the address stands in the line before.
        re.compile(r"[Aa]ddress already in use|\bEADDRINUSE\b|Could not start gRPC server"),
        causes.PORT_IN_USE,
    ),
    (re.compile(r"Barrier timed out"), causes.PEER_MISSING),
    # Workers whose models differ are not lost.
    (re.compile(r"Shape mismatch in the collective"), causes.WORKERS_DIFFER),
    (
        re.compile(
            r"UnavailableError|Collective ops is aborted|Connection reset by peer|Socket closed"
            r"|failed to connect to all addresses|[Cc]oordination ?[Ss]ervice|missing heartbeats"
            r"|heartbeat timeout"
            # What is left of a peer that has been started again in the meantime.
            r"|workers? (was|were|has|have)( been)? restarted|find a context_id matching|\bincarnation\b"
            r"|Session handle is not found|Unable to find the relevant tensor remote_handle"
            # Closed by the side that lost it; where the queue of one's own input ends, the error is another.
            r"|CancelledError: From /job:\S+ \w*Queue '\w+' is closed"
        ),
        causes.PEER_LOST,
    ),
    (
        re.compile(
            r"Cannot batch tensors with different shapes|Cannot add tensor to the batch: number of elements"
            r"|All elements in a batch must have the same rank|Attempted to pad to a smaller size than the input"
        ),
        data_causes.EXAMPLES_DIFFER,
    ),
    (
        re.compile(
            r"\bFeature: .* is required but could not be found|\bKey: .*\.  (Data types don't|Can't parse|Number of)"
            r"|Could not parse example input|Expect \d+ fields but have \d+ in record|StringToNumberOp could not"
            r"|`generator` yielded an element of|Received a label value of|indices\[[\d, ]*\] = \S+ is not in \["
            r"|is incompatible with the layer: expected|Input to (reshape is a tensor with|DecodeRaw has length)"
        ),
        data_causes.DATA_MISMATCH,
    ),
    (
        re.compile(
            r"\bNo route to host\b|\bNetwork is unreachable\b|\b(EHOSTUNREACH|ENETUNREACH)\b|^ConnectionRefusedError\b"
            # A socket's words: those of queues and futures are others.
            r"|^(TimeoutError|socket\.timeout): (timed out|\[Errno 110\])"
        ),
        causes.SERVICE_UNREACHABLE,
    ),
    (
        re.compile(
            # Servers that speak gRPC say so of quotas too.
            r"\bMemoryError\b|ResourceExhaustedError|^(?!grpc\.).*RESOURCE_EXHAUSTED|std::bad_alloc|out of memory"
            r"|Cannot allocate memory"
        ),
        causes.OUT_OF_MEMORY,
    ),
    (
        re.compile(
            r"^ModuleNotFoundError: No module named 'tensorflow"
            r"(\.(contrib|examples|estimator|models|python|tensorboard)|_estimator)"
            r"|module 'tensorflow[\w.]*' has no attribute"
            r"|cannot import name '\w+' from 'tensorflow(?!\.(python\.)?keras)"
            r"|(has no attribute|cannot import name) '[gs]et_session'"
            r"|has no attribute 'make_(one_shot|initializable)_iterator'"
            r"|(when|not (compatible|supported) with) eager execution|The Session graph is empty"
        ),
        causes.TENSORFLOW_1,
    ),
    (
        re.compile(
            r"Invalid filepath extension for saving|must end in `\.(keras|weights\.h5)`|Keras 3 only supports V3"
            r"|(is not available with|is not supported in) Keras 3|Argument\(s\) not recognized: \{'(lr|decay)'"
            r"|KerasTensor cannot be used as input to a TensorFlow function"
            r"|has no attribute '(reset_states|(fit|evaluate|predict)_generator)'"
            r"|module 'keras[\w.]*\.backend' has no attribute|No module named '(tensorflow\.)?keras\."
            r"|cannot import name '\w+' from '(tensorflow\.(python\.)?)?keras\."
        ),
        causes.KERAS_2,
    ),
    (re.compile(r"module 'keras[\w.]*' has no attribute 'experimental'|\bDatasetCreator\b"), causes.KERAS_FIT),
    (re.compile(r"^ImportError: Keras cannot be imported"), causes.KERAS_MISSING),
    # Before the limits: HDF5 and SQLite pass on the system's words, which for a lock are those for too many processes.
    (re.compile(r"unable to (lock file|truncate a file which is already)|database is locked"), causes.FILE_LOCKED),
    (
        re.compile(
            r"[Tt]hread creation (via pthread_create\(\) )?failed|pthread_create(\(\))? failed|can't start new thread"
            r"|unable to create (new )?(native )?thread|Resource temporarily unavailable|Too many open files"
            r"|unable to allocate necessary resources for OMP thread"
        ),
        causes.MACHINE_LIMIT,
    ),
    (re.compile(r"^EOFError: EOF when reading a line|^bdb\.BdbQuit\b"), causes.NO_TERMINAL),
    (re.compile(r"\] Unknown flag in \w+: "), causes.BAD_ARGUMENTS),
    (re.compile(r"^(SyntaxError|IndentationError|TabError)\b"), causes.SYNTAX_ERROR),
    (re.compile(r"Read-only file system|\bEROFS\b"), causes.READ_ONLY),
    (re.compile(r"^PermissionError\b|Permission denied"), causes.PERMISSION_DENIED),
    (re.compile(r"^(ModuleNotFoundError|ImportError)\b.*No module named"), causes.MODULE_MISSING),
    (re.compile(r"^FileNotFoundError\b.*'/psm_[0-9a-f]{6,}'"), causes.SHARED_MEMORY_LOST),
    (
        re.compile(r"^FileNotFoundError\b|NotFoundError: .*; No such file or directory|No files matched pattern"),
        data_causes.FILE_MISSING,
    ),
)
