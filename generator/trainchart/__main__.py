"""Entry point of `trainchart` and `python -m trainchart`: light, so that Ctrl-C is quiet while the rest is imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from trainchart.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
