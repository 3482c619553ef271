"""Lets the launcher see where a program waits: at a signal, the stacks of its threads are written to a file in memory.

Python imports this in training images at the start of every program (trainchart.pth in the Dockerfile). It must cost
nothing, and never keep a program from starting. The launcher finds the file among those that the process has open,
and sends the signal only to a process with that file: others would end by it.
"""

import os


def register() -> None:
    """Write the stacks at the signal from now on; where the system does not allow it, do nothing."""
    import faulthandler
    import fcntl
    import signal

    try:
        file = os.memfd_create("trainchart-stacks")
        # The launcher empties it each time: it counts as memory of the container.
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        faulthandler.register(signal.SIGRTMIN + 9, file=file, all_threads=True)
    except (AttributeError, OSError, RuntimeError, ValueError):
        pass


# Only programs that the launcher starts have it.
if "TRAINCHART_ATTEMPT" in os.environ:
    register()
