"""Keeps two pods from training the same task: an owner file on the checkpoint volume, claimed, watched and released.

A pod that was force-deleted may live on, on a node that is unreachable, and still write checkpoints. Its successor
puts its own name into the owner file and waits until the other must have seen it. Times are this process's own
monotonic ones; clocks of two nodes are never compared. All reading and writing is done by a thread, so that storage
that hangs stops no signal. What this protects against, and what not: docs/fencing.md.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from typing import Optional

from trainchart_launcher.claim import Owner, dump_owner, parse_owner, resolve_wait
from trainchart_launcher.console import print_line
from trainchart_launcher.files import read_file, replace_file
from trainchart_launcher.settings import Settings
from trainchart_launcher.signals import Signals
from trainchart_launcher.state import read_owner_id, write_owner_id
from trainchart_runtime.io.files import SpecialFileError

_FILE_LIMIT = 4096
_CHECKS_UNTIL_PAUSED = 2
_CHECKS_UNTIL_LOST = 60
"""Storage may fail over for minutes; a program that waits longer holds its GPUs for nothing."""
_RELEASE_SECONDS = 0.5


class Fence:
    """One pod's claim on its task. A thread looks after the owner file; the main thread asks and acts."""

    def __init__(self, path: str, settings: Settings, signals: Signals) -> None:
        self.rival = ""
        """Who has taken over; "" while no pod has."""
        self.lost_storage = ""
        """Why the program had to end because it was not known any more who owns its task."""
        self.is_paused = False
        """The program stands still, because it is not known who owns its task."""
        self._path = path
        self._settings = settings
        self._signals = signals
        self._check_seconds = settings.fence_seconds
        self._me = Owner(
            id=os.urandom(8).hex(),
            pod=settings.cluster.pod_name(settings.task),
            pod_uid=settings.pod_uid,
            node=settings.node_name,
            check_seconds=settings.fence_seconds,
            since=time.time(),
        )
        self._seen_at = time.monotonic()
        """When the last look began that left no doubt."""
        self._patient_since = self._seen_at
        self._trouble = "no answer"
        self._is_held = False
        self._is_off = False
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True, name="fence")
        self._thread.start()

    # --- asked by the main thread ------------------------------------------------------------------------

    def may_start(self) -> bool:
        """Return whether a program may start now."""
        return self._is_off or (self._is_held and not self.rival and not self._is_silent())

    def pause_seconds(self) -> float:
        """Return how long the main thread may sleep before it has to ask again."""
        if self._is_off:
            return 3600.0
        if self.is_paused or self.rival:
            return self._check_seconds
        remaining = self._seen_at + _CHECKS_UNTIL_PAUSED * self._check_seconds - time.monotonic()
        return remaining + 0.01 if remaining > 0 else self._check_seconds

    def begin(self) -> None:
        """Prepare for the next start: the storage has its whole time again."""
        self.is_paused = False
        self.lost_storage = ""
        self._patient_since = time.monotonic()

    def is_decided(self) -> bool:
        """Return whether the wait for a start is over: a program may start now, or never."""
        self.lost_storage = self._explain_lost_storage()
        return self.may_start() or bool(self.rival or self.lost_storage)

    def must_end(self) -> bool:
        """Pause the program while it is not known who owns its task; return whether it has to end."""
        if self.rival:
            return True
        if self._is_off or not self._is_silent():
            if self.is_paused:
                self.is_paused = False
                self._signals.send_group(signal.SIGCONT)
                print_line("the checkpoint storage responds again: the program continues")
            return False
        if not self.is_paused:
            self.is_paused = True
            self._signals.send_group(signal.SIGSTOP)
            print_line(f"cannot read {self._path} ({self._trouble}): program paused so that two pods cannot write")
        self.lost_storage = self._explain_lost_storage()
        return bool(self.lost_storage)

    def describe_silence(self) -> str:
        """Return why it is not known who owns the task; "" where it is."""
        return f"cannot read {self._path}: {self._trouble}" if not self._is_off and self._is_silent() else ""

    def release(self) -> None:
        """Let a successor start without waiting; the program must have ended."""
        self._ending.set()
        self._thread.join(_RELEASE_SECONDS)

    def _explain_lost_storage(self) -> str:
        limit = _CHECKS_UNTIL_LOST * self._check_seconds
        if self._is_off or time.monotonic() - max(self._seen_at, self._patient_since) <= limit:
            return ""
        return f"cannot read {self._path} for more than {limit:.0f} s: {self._trouble}"

    def _is_silent(self) -> bool:
        return time.monotonic() - self._seen_at > _CHECKS_UNTIL_PAUSED * self._check_seconds

    # --- done by the thread ------------------------------------------------------------------------------

    def _keep(self) -> None:
        try:
            self._claim()
        except OSError as err:
            # A pod that cannot write here cannot disturb any checkpoints.
            self._is_off = True
            if os.path.isdir(os.path.dirname(os.path.dirname(os.path.dirname(self._path)))):
                print_line(f"nothing keeps a second pod from writing checkpoints: cannot write {self._path}: {err}")
        self._signals.wake()
        while not (self._is_off or self.rival) and not self._ending.wait(self._check_seconds):
            self._look()
        if self._is_held and not self.rival:
            self._remove()

    def _claim(self) -> None:
        own_id = read_owner_id(self._settings)
        if own_id:
            self._me = self._me._replace(id=own_id)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        while True:
            began = time.monotonic()
            if self._create():
                break
            found = self._read()
            if found is None:
                continue
            if found.id == self._me.id:
                break
            if own_id and found.id:
                # A pod takes over only once in its life; a pod that came later is its successor.
                self._lose(found)
                return
            if not self._take_over(found):
                return
            began = self._seen_at
            break
        self._seen_at = began
        self._is_held = True
        write_owner_id(self._settings, self._me.id)

    def _take_over(self, former: Owner) -> bool:
        """Put our name over another's and wait until it must have noticed; False if something came between."""
        self._write()
        wait_seconds = resolve_wait(self._check_seconds, former)
        print_line(
            f"{former} owns the checkpoints of this task and has not released them: if it still lives it is a zombie; "
            f"waiting {wait_seconds:.1f} s until it must have stopped"
        )
        self._signals.wake()
        until = time.monotonic() + wait_seconds
        while time.monotonic() < until or self._is_silent():
            remaining = until - time.monotonic()
            if self._ending.wait(min(self._check_seconds, remaining) if remaining > 0 else self._check_seconds):
                return False
            self._look()
            if self.rival:
                return False
        return True

    def _look(self) -> None:
        began = time.monotonic()
        try:
            found = self._read()
        except OSError as err:
            self._trouble = err.strerror or str(err)
            return
        if found is not None and found.id and found.id != self._me.id:
            self._lose(found)
            return
        self._seen_at = began
        if found is None or not found.id:
            self._restore(is_absent=found is None)
        self._signals.wake()

    def _restore(self, is_absent: bool) -> None:
        """Write our name again after the file was removed or damaged: no pod does that to take over."""
        try:
            if is_absent:
                os.makedirs(os.path.dirname(self._path), exist_ok=True)
                self._create()
            else:
                self._write()
        except OSError:
            # Full or read-only: no other pod can write a name either.
            pass

    def _lose(self, successor: Owner) -> None:
        self.rival = f"{successor} has taken over"
        self._signals.wake()

    def _remove(self) -> None:
        try:
            found = self._read()
            if found is not None and found.id == self._me.id:
                os.unlink(self._path)
        except OSError:
            # The successor waits a little longer.
            pass

    def _read(self) -> Optional[Owner]:
        """Return the owner, None without one; raises OSError where the storage does not tell."""
        for is_last in (False, True):
            try:
                return parse_owner(read_file(self._path, _FILE_LIMIT))
            except SpecialFileError:
                # No storage that fails, but something that another pod has put there: damage, to be replaced.
                return Owner()
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as err:
                # NFS answers so once when the file was replaced under its name.
                if is_last or err.errno != errno.ESTALE:
                    raise
        return None

    def _create(self) -> bool:
        """Write our name where there is none; False if there is one. Of two that try, one succeeds."""
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(handle, "wb") as file:
            file.write(dump_owner(self._me))
        return True

    def _write(self) -> None:
        """Put our name in the place of another's, whole or not at all."""
        replace_file(self._path, dump_owner(self._me))
