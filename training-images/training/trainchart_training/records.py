"""TFRecord files: shared out among the readers of a training, and looked through when one is damaged."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf

from trainchart_training.definition import Shard
from trainchart_training.errors import TrainingError

_LOOK_SECONDS = 60.0
_LOOK_RECORDS = 1000
"""Between two looks at the clock."""
_compressions: dict[str, str] = {}
"""How every file is compressed that this process has asked for; TensorFlow's errors do not name files."""


def read_tfrecords(pattern: str, shard: Shard) -> Any:
    """Return the shard's records, as bytes, from the files that match `pattern`; compressed ones end in `.gz`.

    Whole files where there are enough for every shard to have one, else each shard's part of the records.
    """
    files = sorted(tf.io.gfile.glob(pattern))
    if not files:
        raise TrainingError(f"no file matches {pattern}: expected TFRecord files there")
    compressions = {name: "GZIP" if name.endswith(".gz") else "" for name in files}
    if len({*compressions.values()}) > 1:
        raise TrainingError(f"some files of {pattern} end in .gz and some do not: expected all or none")
    _compressions.update(compressions)
    by_file = len(files) >= shard.count
    mine = files[shard.index :: shard.count] if by_file else files
    records = tf.data.TFRecordDataset(mine, compression_type=compressions[files[0]])
    return records if by_file else records.shard(shard.count, shard.index)


def find_damaged_file() -> str:
    """Return the first damaged one of the files that this process has asked for, or ""; reads for a minute at most."""
    deadline = time.monotonic() + _LOOK_SECONDS
    for name, compression in _compressions.items():
        try:
            records = tf.data.TFRecordDataset(name, compression_type=compression)
            for _ in records.map(lambda _: 0).batch(_LOOK_RECORDS):
                if time.monotonic() > deadline:
                    return ""
        except tf.errors.DataLossError:
            return name
        except tf.errors.OpError:
            continue
    return ""
