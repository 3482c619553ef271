"""Start a program in a process group of its own, and end that group without leaving any process behind."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from typing import Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainchart_launcher.signals import FORWARDED, send_to_group
from trainchart_runtime import contract

_PIPE_BYTES = 1 << 20
"""A program that writes in bursts should not wait for the launcher."""
_F_SETPIPE_SZ = 1031


class Child(NamedTuple):
    """A running program: its process (also the group's number) and the reading ends of its output."""

    pid: int
    stdout: int
    stderr: int


def start_child(command: Sequence[str], environ: Mapping[str, str]) -> Child:
    """Start `command`; raises OSError where the system refuses, FileNotFoundError where it does not exist.

    posix_spawn is what subprocess would use, without the milliseconds of importing it.
    """
    environ = dict(environ)
    if environ.pop(contract.LOCAL_PARENT, ""):
        from trainchart_launcher.lifeline import tie_command

        command = tie_command(command)
    stdout_read, stdout_write = _open_pipe()
    stderr_read, stderr_write = _open_pipe()
    try:
        pid = os.posix_spawnp(
            command[0],
            list(command),
            environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stdout_write, 1),
                (os.POSIX_SPAWN_DUP2, stderr_write, 2),
            ],
            setpgroup=0,
            # Python ignores SIGPIPE and SIGXFSZ, which a program must not inherit.
            setsigdef=[*FORWARDED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ],
        )
    except BaseException:
        os.close(stdout_read)
        os.close(stderr_read)
        raise
    finally:
        os.close(stdout_write)
        os.close(stderr_write)
    return Child(pid, stdout_read, stderr_read)


def reap(halted: Optional[Dict[int, bool]] = None) -> Dict[int, int]:
    """Collect every child that has ended: process → wait status. As PID 1 these may be any process's orphans.

    `halted` is told which others have been halted by a signal since the last call (True), or go on (False).
    """
    ended: Dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if not (os.WIFSTOPPED(status) or os.WIFCONTINUED(status)):
            ended[pid] = status
        elif halted is not None:
            halted[pid] = os.WIFSTOPPED(status)


def end_group(group: int, deadline: Optional[float], sleep: Callable[[float], None]) -> None:
    """End what is left of a group whose leader has ended: politely until `deadline` if there is one.

    `deadline` is a time.monotonic(). The group's number cannot be reused while it has members.
    """
    if deadline is not None and send_to_group(group, signal.SIGTERM):
        while time.monotonic() < deadline and send_to_group(group, 0):
            sleep(0.02)
            reap()
    send_to_group(group, signal.SIGKILL)
    reap()


def _open_pipe() -> Tuple[int, int]:
    read_end, write_end = os.pipe()
    try:
        fcntl.fcntl(write_end, _F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        # Not Linux, or the user's pipe budget is spent: the small pipe works too.
        pass
    return read_end, write_end
