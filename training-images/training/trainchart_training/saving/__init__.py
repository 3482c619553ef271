"""The state of a training, its checkpoints, and which of them stay."""
