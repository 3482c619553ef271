"""Entry point of `trainchart` and `python -m trainchart`: light, so that Ctrl-C is quiet while the rest is imported."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line."""
    try:
        from trainchart.cli.app import main as run
        from trainchart.host.library_output import separate_stderr
    except KeyboardInterrupt:
        sys.exit(130)
    separate_stderr()
    run()


if __name__ == "__main__":
    # `python -m` looks for modules in the current folder first, which another user may have filled.
    if sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109  # pathlib would be looked for there, too
        del sys.path[0]
    main()
