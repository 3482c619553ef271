"""Train one model under every strategy: write model, data, optimizer and loss, and call train().

    from trainchart_training import Hyperparameters, Shard, Training, train

docs/training.md shows a whole program. Nothing here imports TensorFlow before train() is called.
"""

import os

# TensorFlow reads this when it is first imported: without it every process prints a dozen lines about its build.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from trainchart_training.definition import Hook, Shard, Training
from trainchart_training.errors import SettingsError, TrainingError
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.roles import train

__all__ = ["Hook", "Hyperparameters", "SettingsError", "Shard", "Training", "TrainingError", "train"]
