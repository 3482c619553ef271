"""The process that leaves no orphan: waits for the end of a local run and kills whatever that left behind.

Run as `python -m trainchart.local.io.guardian MARK PREFIX` in its own session. Its standard input is a pipe that
only the supervisor holds: end of file means that the supervisor has ended, orderly or by kill -9.
"""

from __future__ import annotations

import signal
import sys

from trainchart.local.io.process_table import kill_sessions


def main() -> None:
    """Read "+SESSION" and "-SESSION" lines until end of file, then kill what is left of the run."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    mark_name, mark_prefix = sys.argv[1:3]
    sessions: set[int] = set()
    for line in sys.stdin:
        session = int(line[1:])
        if line.startswith("+"):
            sessions.add(session)
        else:
            sessions.discard(session)
    kill_sessions(sessions, mark_name, mark_prefix)


if __name__ == "__main__":
    main()
