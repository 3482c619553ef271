"""Entry point of `trainchart` and `python -m trainchart`: light, so that Ctrl-C is quiet while the rest is imported."""

from __future__ import annotations

import gc
import os
import sys

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""With Python's 700, a short command spends a sixth of its time looking for garbage among imported modules."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        from trainchart.cli.app import main as run
        from trainchart.host.library_output import separate_stderr
    except KeyboardInterrupt:
        sys.exit(130)
    separate_stderr()
    try:
        run()
    finally:
        gc.freeze()  # what is left need not be searched at the exit


if __name__ == "__main__":
    # `python -m` looks for modules in the current folder first, which another user may have filled.
    if sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109  # pathlib would be looked for there, too
        del sys.path[0]
    main()
