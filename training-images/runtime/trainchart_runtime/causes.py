"""The closed list of causes why a training program ends: a sentence, a hint and a restart rule for each.

Data only; classify.py picks one. Launcher, run controller, local run and CLI all explain a failure with these
words, so a cause is worded once.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from trainchart_runtime.restart import RESTART_IN_PLACE, RESTART_IN_PLACE_PEER, RESTART_NEVER


class Cause(NamedTuple):
    """Why a program ended: its stable name, one plain sentence, the next action, and the restart rule."""

    name: str
    sentence: str
    hint: str
    restart: str


SUCCEEDED = Cause("succeeded", "The program finished.", "", RESTART_NEVER)
TERMINATED = Cause(
    "terminated",
    "The program was asked to stop and ended.",
    "Nothing to do: the pod was stopped on purpose. Training continues from the last checkpoint.",
    RESTART_NEVER,
)
PEER_LOST = Cause(
    "peer-lost",
    "The program lost its connection to another task of the run.",
    "Look at the task that failed first; this one only followed.",
    RESTART_IN_PLACE_PEER,
)
PEER_UNRESOLVABLE = Cause(
    "peer-unresolvable",
    "The program could not resolve the host name of another task or service.",
    "Check that every pod of the release exists, and that the cluster's DNS answers.",
    RESTART_IN_PLACE_PEER,
)
OUT_OF_MEMORY = Cause(
    "out-of-memory",
    "The program ran out of memory.",
    "Use a smaller batch, or give the role more memory (for a GPU: one with more memory).",
    RESTART_IN_PLACE,
)
KILLED = Cause(
    "killed",
    "The program was killed from outside.",
    "SIGKILL usually means that the pod reached its memory limit: compare its memory use with the limit.",
    RESTART_IN_PLACE,
)
CRASHED = Cause(
    "crashed",
    "The program crashed in native code.",
    "Look for a library that does not fit this machine (CPU instructions, CUDA or driver version).",
    RESTART_IN_PLACE,
)
PROGRAM_MISSING = Cause(
    "program-missing",
    "The program to run does not exist in this image, or cannot be executed.",
    "Check the command of the model spec and that the image contains the code.",
    RESTART_NEVER,
)
MODULE_MISSING = Cause(
    "module-missing",
    "The program needs a Python module that is not installed.",
    "Add the module to the image, or fix the import.",
    RESTART_NEVER,
)
SYNTAX_ERROR = Cause(
    "syntax-error",
    "The program is not valid Python for the interpreter in this image.",
    "Fix the line named in the output, or use an image with a newer Python.",
    RESTART_NEVER,
)
DISK_FULL = Cause(
    "disk-full",
    "There is no space left where the program writes.",
    "Enlarge the volume or the ephemeral-storage limit, or keep fewer checkpoints.",
    RESTART_NEVER,
)
PERMISSION_DENIED = Cause(
    "permission-denied",
    "The program may not read or write a file that it needs.",
    "Write to the checkpoint volume or /tmp only, and check the volume's owner and fsGroup.",
    RESTART_NEVER,
)
NO_PROGRESS = Cause(
    "no-progress",
    "The program made no progress for too long and was ended by the watchdog.",
    "Look for a task that hangs or never came; raise the limit if steps are that slow.",
    RESTART_IN_PLACE,
)
BAD_ARGUMENTS = Cause(
    "bad-arguments",
    "The program refused its command line.",
    "Compare the arguments of the model spec with what the program accepts.",
    RESTART_NEVER,
)
PROGRAM_ERROR = Cause(
    "program-error",
    "The program ended with an exception.",
    "Read the exception and the last lines of the output.",
    RESTART_IN_PLACE,
)
PROGRAM_EXIT = Cause(
    "program-exit",
    "The program ended with an error code of its own.",
    "Read the last lines of the output.",
    RESTART_IN_PLACE,
)
CONTRACT_BROKEN = Cause(
    "contract-broken",
    "The chart and the launcher do not fit together: nothing was started.",
    "Use a launcher of the same trainchart version as the chart, and install the chart unchanged.",
    RESTART_NEVER,
)
CONTAINER_DIED = Cause(
    "container-died",
    "The container ended again and again, and its launcher left no word.",
    "Read the pod's log, and check that the image has Python 3.8 or newer and the launcher (docs/images.md).",
    RESTART_IN_PLACE,
)
START_DEADLINE = Cause(
    "start-deadline",
    "Not every pod of the run was running in time, so all of them were stopped.",
    "Read why the named pods did not start; ask for less, free resources, or raise run.startDeadline.",
    RESTART_NEVER,
)

CAUSES: Mapping[str, Cause] = {
    cause.name: cause
    for cause in (
        SUCCEEDED,
        TERMINATED,
        PEER_LOST,
        PEER_UNRESOLVABLE,
        OUT_OF_MEMORY,
        KILLED,
        CRASHED,
        PROGRAM_MISSING,
        MODULE_MISSING,
        SYNTAX_ERROR,
        DISK_FULL,
        PERMISSION_DENIED,
        NO_PROGRESS,
        BAD_ARGUMENTS,
        PROGRAM_ERROR,
        PROGRAM_EXIT,
        CONTRACT_BROKEN,
        CONTAINER_DIED,
        START_DEADLINE,
    )
}
