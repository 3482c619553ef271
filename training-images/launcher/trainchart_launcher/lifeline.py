"""Ends a process together with the one that started it, so that no kill of a local run leaves a training behind.

Linux only, and only where the environment asks for it: in a pod the end of a container does the same. Run as
`python -c STUB FOLDER PARENT COMMAND...` it becomes COMMAND, which is then tied to the process PARENT.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from typing import List, Sequence

_PR_SET_PDEATHSIG = 1
_STUB = "import sys; sys.path.insert(0, sys.argv[1]); from trainchart_launcher.lifeline import main; main()"
_EXIT_NOT_STARTED = 126


def tie_to_parent(parent: int) -> None:
    """Have this process killed when the thread that started it ends; die now if `parent` has ended already."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def tie_command(command: Sequence[str]) -> List[str]:
    """Return a command line that runs `command` as a process that ends with this one.

    A command that does not exist is returned as it is, so that starting it fails as it should.
    """
    if sys.platform != "linux" or not sys.executable or not shutil.which(command[0]):
        return list(command)
    # A process of its own for the moment before exec: a launcher with threads must not run Python in a fork.
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [sys.executable, "-I", "-S", "-c", _STUB, folder, str(os.getpid()), *command]


def main() -> None:
    """Become the command in the arguments, tied to the process that they name."""
    tie_to_parent(int(sys.argv[2]))
    command = sys.argv[3:]
    # What Python has set for itself must not reach the program.
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as err:
        from trainchart_launcher.refused_start import describe_refused_start

        print(describe_refused_start(command[0], err), file=sys.stderr)
        sys.exit(_EXIT_NOT_STARTED)
