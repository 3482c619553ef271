"""Causes in what a program reads: its data and its checkpoints. Data only; classify.py picks one."""

from __future__ import annotations

from trainchart_runtime.cause import RESTART_IN_PLACE, RESTART_NEVER, Cause

EXAMPLES_DIFFER = Cause(
    "examples-differ",
    "The examples of one batch have different shapes.",
    "The error names both shapes, and may name the example by its place in the batch (element 5 is the sixth). Correct "
    "or drop that example, or give all of them one shape before batch() in the input pipeline: resize, crop or pad "
    "them (padded_batch pads). A restarted program fails at the same example.",
    RESTART_IN_PLACE,
)
FILE_MISSING = Cause(
    "file-missing",
    "A file or folder that the program needs does not exist where it looks.",
    "The error names it. Check that the data is there, that its volume is mounted where the program looks "
    "(volumes.NAME.mountPath, subPath), and how the path is spelled; a relative path begins at workingDir. If the "
    "error names a program, such as git, install it in the image.",
    RESTART_IN_PLACE,
)
DATA_DAMAGED = Cause(
    "data-damaged",
    "A data file that the program reads is damaged or truncated.",
    "Copy the file from its source again, and compare size and checksum; or leave it out. The error, or the output "
    "before it, may name the file; read_tfrecords of the training library always names it.",
    RESTART_NEVER,
)
DATA_MISMATCH = Cause(
    "data-mismatch",
    "The data is not what the program expects: a field, shape, type or value of it does not fit.",
    "The error names it: compare how the data was written, and which data the volume holds, with what the program "
    "reads (names and types of features, columns, size of images, number of classes, vocabulary), and correct or drop "
    "what does not fit. A restarted program fails at the same record.",
    RESTART_IN_PLACE,
)
CHECKPOINT_DAMAGED = Cause(
    "checkpoint-damaged",
    "A checkpoint, or another file that the program reads, is damaged, truncated or missing.",
    "Restore the file from a copy, or stop using the newest checkpoint: from a pod that mounts the claim, edit the "
    "file `checkpoint` in its folder so that it names the previous one. Without that file, the training starts from "
    "the beginning.",
    RESTART_IN_PLACE,
)
CHECKPOINT_MISMATCH = Cause(
    "checkpoint-mismatch",
    "The checkpoint that the program reads belongs to another model, or to other hyperparameters of this one.",
    "The error names what differs. Use the hyperparameters and the version of the code with which the checkpoint was "
    "written, or train from the beginning in another folder: another claim, or another volumes.NAME.subPath.",
    RESTART_NEVER,
)
LOST_FILES = (FILE_MISSING.name, CHECKPOINT_DAMAGED.name)
"""Causes of programs that had made steps whose files something else may have deleted."""
