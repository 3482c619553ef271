"""What a cause is: its name, its words, and what follows.

Data only; causes.py and data_causes.py have those of programs that ended, running_causes.py those of programs that run,
pod_causes.py those of pods.
"""

from __future__ import annotations

from typing import NamedTuple

RESTART_NEVER = "never"
"""Would fail again in the same way, or must not run again."""
RESTART_IN_PLACE = "in-place"
"""The program's own fault: restarted in its pod, counted against the pod's restart budget."""
RESTART_IN_PLACE_PEER = "in-place-peer"
"""Another task went away: restarted in its pod, not counted as this pod's fault."""
RESTART_RECREATED = "recreated"
"""The cluster took the pod away: Kubernetes recreates it, and this is not a failure of the program."""
RESTART_WAITED_FOR = "waited-for"
"""The pod could not be started: Kubernetes goes on trying, and the run waits until its start deadline."""
RESTART_QUEUED = "queued"
"""The run waits in its queue, for which no deadline runs."""
RESTART_GOES_ON = "goes-on"
"""Nothing has failed: the run goes on, and its users should know."""


class Cause(NamedTuple):
    """Why a program ended or a pod cannot run: stable name, one plain sentence, next action, and restart rule."""

    name: str
    sentence: str
    hint: str
    restart: str
