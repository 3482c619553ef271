"""Entry of the zipapp: `python3 controller.pyz`, configured by its environment alone.

The signal handler comes first: as PID 1 a process without a handler ignores SIGTERM. A controller that is told to
stop leaves at once and touches nothing: the next one goes on from the record.
"""

from __future__ import annotations

import os
import signal
import sys

EXIT_BUG = 70
"""EX_SOFTWARE: the controller itself failed; a new one may do better."""
EXIT_STOPPED = 143


def main() -> None:
    """Run the controller and leave the process with its exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: os._exit(EXIT_STOPPED))
    try:
        code = _run()
    except Exception:
        import traceback

        traceback.print_exc()
        code = EXIT_BUG
    sys.stderr.flush()
    # Not sys.exit: the thread that watches pods may hang in a read.
    os._exit(code)


def _run() -> int:
    from trainchart_controller.console import print_line
    from trainchart_controller.control import Controller
    from trainchart_controller.settings import ContractError, read_settings
    from trainchart_runtime.contract import EXIT_CONFIG

    try:
        settings = read_settings(os.environ)
    except ContractError as err:
        print_line(str(err))
        return EXIT_CONFIG
    run_id = settings.plan.run_id
    print_line(f"controlling run {run_id!r} of release {settings.release!r}")
    return Controller(settings).run()


if __name__ == "__main__":
    main()
