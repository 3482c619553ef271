"""What a controller does whose plan was replaced: nothing, until the release has its plan again.

A successful upgrade removes it with its Job. After one that failed, a rollback leaves the Job as it is, and a
controller that had ended would not come back.
"""

from __future__ import annotations

import time
from typing import Callable

from trainchart_controller.api import ApiError, NotFound
from trainchart_controller.console import print_line
from trainchart_controller.release import Release, Superseded
from trainchart_runtime.run.state import StateError

_LOOK_SECONDS = 5.0


def await_rollback(release: Release, look: Callable[[float], None], seconds: float) -> bool:
    """Wait until a release has this controller's plan again; return False if that takes longer than `seconds`.

    `look` takes in for so many seconds what the threads of the controller report.
    """
    print_line("this controller does nothing unless a rollback returns to its plan")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        look(min(_LOOK_SECONDS, seconds / 10))
        try:
            release.read_state()
        except NotFound:
            if _is_removed(release):
                return False
            continue  # a rollback creates the record again
        except (Superseded, ApiError):
            continue
        except StateError:
            pass  # the controller meets it again, and reports it
        print_line("the release has this controller's plan again, so the controller continues")
        return True
    return False


def _is_removed(release: Release) -> bool:
    try:
        return release.is_job_gone()
    except ApiError:
        return False
