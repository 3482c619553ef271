"""How a training fails on purpose: two kinds of errors, and the exit codes that a launcher understands.

SettingsError   before anything is started: a variable or hyperparameter is wrong
TrainingError   training cannot go on, and starting it again will not help by itself
"""

from __future__ import annotations

EXIT_FAILED = 1
EXIT_BAD_SETTINGS = 2
EXIT_PEER_LOST = 75
"""EX_TEMPFAIL: another process went away; starting this one again helps, and the launcher does so at once."""
NOT_FINITE_HINT = "try a smaller learning rate, and look for such numbers in the examples"


class SettingsError(ValueError):
    """A setting is missing or wrong; the message is one line that names it."""


class TrainingError(Exception):
    """Training cannot go on; the message is one line, and the cause is a user's own error where there is one."""


class PeerLost(Exception):
    """Another process of this training went away or is to stop, and this one can only begin again."""
