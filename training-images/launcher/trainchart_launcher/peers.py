"""Name the peers that a task needs and that do not answer, for as long as they do not.

TensorFlow waits for a missing peer silently and forever. One connection per peer and attempt; once all
have answered, the program gets a minute to connect to one of them, and the thread ends. It only reports: nothing is
started later or stopped because of it.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Callable, List, Optional, Sequence, Tuple

from trainchart_launcher.console import print_line
from trainchart_launcher.status import WaitingPeer
from trainchart_runtime.contract import PEER_REFUSES, PEER_SILENT, PEER_UNASKED, PEER_UNRESOLVED

FIRST_LOOK_SECONDS = 1.0
"""Starting together, the peers are not up earlier either."""
_CONNECT_SECONDS = 1.0
_ROUND_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 30.0
_FIRST_REPORT_SECONDS = 10.0
_REPORT_EVERY_SECONDS = 60.0
"""The longest pause between two reports: each is twice as long as the one before."""
_CONNECTED_AFTER_SECONDS = 60.0
"""The time that a program has for its imports and data, once all peers have answered."""
_NAMED = 5
_SOCKETS = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = "01"


class PeerWatch:
    """Watches a set of "host:port" addresses in the background until each has answered once.

    `own` is the address at which the program itself answers; `has_step` says whether it has reported a step.
    """

    def __init__(self, addresses: Sequence[str], own: str, has_step: Callable[[], bool]) -> None:
        self._started_at = time.monotonic()
        self._addresses = tuple(addresses)
        self._own = own
        self._has_step = has_step
        self._waiting: Tuple[Tuple[str, str], ...] = tuple((address, PEER_UNASKED) for address in addresses)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="peers")

    def start(self) -> None:
        if self._waiting:
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def waiting(self) -> List[WaitingPeer]:
        """Return the peers that have not answered yet."""
        seconds = time.monotonic() - self._started_at
        return [WaitingPeer(address, reason, seconds) for address, reason in self._waiting]

    def _watch(self) -> None:
        pause, is_reported = FIRST_LOOK_SECONDS, False
        gap, report_at = _FIRST_REPORT_SECONDS, self._started_at + _FIRST_REPORT_SECONDS
        while self._waiting and not self._stop.wait(pause):
            began = time.monotonic()
            self._look(began + _ROUND_SECONDS)
            now = time.monotonic()
            if self._waiting and not self._stop.is_set() and now >= report_at:
                # From now on: a round may take longer than several pauses.
                gap, report_at, is_reported = min(2 * gap, _REPORT_EVERY_SECONDS), now + gap, True
                print_line(describe_waiting(self.waiting()))
            # Looking for a thousand missing peers must not take time from the program.
            pause = min(max(FIRST_LOOK_SECONDS, 10 * (now - began)), _LONGEST_PAUSE_SECONDS)
        if is_reported and not self._waiting:
            print_line(f"all peers have answered after {time.monotonic() - self._started_at:.0f} s")
        is_stopped = self._stop.wait(_CONNECTED_AFTER_SECONDS)
        # A program that makes steps needs no connection, or has had one.
        if not (is_stopped or self._has_step()) and count_connections([self._own, *self._addresses]) == 0:
            print_line(describe_no_connection(self._addresses, time.monotonic() - self._started_at))

    def _look(self, deadline: float) -> None:
        asked: List[Tuple[str, str]] = []
        unasked = list(self._waiting)
        while unasked and time.monotonic() < deadline and not self._stop.is_set():
            address, _ = unasked.pop(0)
            reason = ask_peer(address)
            if reason:
                asked.append((address, reason))
        # The next round begins with those that this one had no time for.
        self._waiting = (*unasked, *asked)


def ask_peer(address: str) -> Optional[str]:
    """Return None if something accepts connections at "host:port", else what is wrong in a few words."""
    host, _, port = address.rpartition(":")
    try:
        # As bytes: for text Python would load its IDNA tables.
        with socket.create_connection((host.strip("[]").encode(), int(port)), _CONNECT_SECONDS):  # type: ignore[arg-type]
            return None
    except socket.gaierror:
        return PEER_UNRESOLVED
    except ConnectionRefusedError:
        return PEER_REFUSES
    except socket.timeout:
        return PEER_SILENT
    except (OSError, ValueError) as err:
        return str(err)


def describe_waiting(peers: Sequence[WaitingPeer]) -> str:
    """Return one line that names the first few peers and counts the rest."""
    named = _name_some([f"{peer.address} ({peer.reason})" for peer in peers])
    return f"waiting for {len(peers)} peer{'s' * (len(peers) != 1)} for {peers[0].seconds:.0f} s: {named}"


def describe_no_connection(addresses: Sequence[str], seconds: float) -> str:
    """Return one line that names the peers which answer and to which the program does not connect."""
    return (
        f"no connection to any peer for {seconds:.0f} s, though they answer: {_name_some(addresses)}. The program "
        "has not reached its strategy or server, or its environment (for example a proxy) keeps TensorFlow from "
        "connecting"
    )


def count_connections(addresses: Sequence[str]) -> Optional[int]:
    """Count this network's connections that have the port of one of the addresses at either end; None if unknown."""
    try:
        ports = {f"{int(address.rpartition(':')[2]):04X}" for address in addresses}
        lines = [line.split() for path in _SOCKETS if os.path.exists(path) for line in _read_lines(path)]
    except (OSError, ValueError):
        return None
    ends = [{fields[1][-4:], fields[2][-4:]} for fields in lines if fields[3] == _ESTABLISHED]
    return sum(not ports.isdisjoint(pair) for pair in ends) if lines else None


def _read_lines(path: str) -> List[str]:
    with open(path) as file:
        return file.readlines()[1:]


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
