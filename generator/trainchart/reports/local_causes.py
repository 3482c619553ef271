"""The causes that only a run on this machine has; those of all other runs are in trainchart_runtime. Data only."""

from __future__ import annotations

from trainchart_runtime.cause import RESTART_NEVER, Cause
from trainchart_runtime.contract import CHECKPOINTS_DIR, PROGRESS_FILE

RUN_KILLED = "run-killed"
"""Cause of a local run's end: nothing was left that could say how it ended."""
NOTHING_DONE = "nothing-done"
"""Cause of a success without one step, checkpoint or file."""
LAUNCHER_ENDED = "launcher-ended"
"""Cause of a failure that no launcher has explained."""
LOCAL_CAUSES = (
    Cause(
        RUN_KILLED,
        "The process of `trainchart run` was killed, or the machine went down.",
        "trainchart run MODEL --resume --release NAME continues from the last checkpoint.",
        RESTART_NEVER,
    ),
    Cause(
        NOTHING_DONE,
        "The program ended without an error, but made no step, no checkpoint and no other file that outlives the run.",
        f"Save below ${CHECKPOINTS_DIR} and write the step into ${PROGRESS_FILE}. If the training had already "
        "finished, give it more steps.",
        RESTART_NEVER,
    ),
    Cause(LAUNCHER_ENDED, "The launcher ended and left no message.", "Read the pod's log.", RESTART_NEVER),
)
"""Those that only a local run has, beside all others."""
