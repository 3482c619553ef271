"""Entry of the zipapp: `python3 launcher.pyz -- PROGRAM ARGUMENTS...`.

Signal handlers come first: as PID 1 a process without a handler ignores SIGTERM, and would hold its pod, with
all GPUs, for the whole grace period.
"""

from __future__ import annotations

import os
import sys

EXIT_BUG = 70
"""EX_SOFTWARE: the launcher itself failed."""


def main() -> None:
    """Run the launcher and leave the process with its exit code."""
    _forget_foreign_paths()
    from trainchart_launcher.signals import Signals

    signals = Signals()
    signals.install()
    try:
        from trainchart_launcher.supervise import launch
        from trainchart_runtime import contract

        parent = os.environ.get(contract.LOCAL_PARENT)
        if parent:
            from trainchart_launcher.lifeline import tie_to_parent

            tie_to_parent(int(parent))

        code = launch(sys.argv[1:], os.environ, signals)
    except BaseException:
        import traceback

        traceback.print_exc()
        signals.kill_group()
        code = EXIT_BUG
    # Not sys.exit: a thread may hang in a write to a log that is not read.
    os._exit(code)


def _forget_foreign_paths() -> None:
    """Leave PYTHONPATH to the program: training code may hold a json.py that is not Python's own."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    foreign = {os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    sys.path[:] = [entry for entry in sys.path if entry == ours or os.path.abspath(entry) not in foreign]


if __name__ == "__main__":
    main()
