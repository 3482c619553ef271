"""Name the peers that a task needs and that do not answer, for as long as they do not.

TensorFlow waits for a missing peer in silence and for ever. One connection per peer and attempt; once all
have answered the thread ends. It only reports: nothing is started later or stopped because of it.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import List, Optional, Sequence, Tuple

from trainchart_launcher.console import print_line
from trainchart_launcher.status import WaitingPeer

FIRST_LOOK_SECONDS = 1.0
"""Starting together, the peers are not up earlier either."""
_CONNECT_SECONDS = 1.0
_ROUND_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 30.0
_REPORT_SECONDS = (10.0, 20.0, 30.0)
_REPORT_EVERY_SECONDS = 60.0
_NAMED = 5


class PeerWatch:
    """Watches a set of "host:port" addresses in the background until each has answered once."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._started_at = time.monotonic()
        self._waiting: Tuple[Tuple[str, str], ...] = tuple((address, "not asked yet") for address in addresses)
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
        pause, reports = FIRST_LOOK_SECONDS, 0
        while self._waiting and not self._stop.wait(pause):
            began = time.monotonic()
            self._look(began + _ROUND_SECONDS)
            now = time.monotonic()
            if self._waiting and not self._stop.is_set() and now - self._started_at >= _report_at(reports):
                reports += 1
                print_line(describe_waiting(self.waiting()))
            # Looking for a thousand missing peers must not take time from the program.
            pause = min(max(FIRST_LOOK_SECONDS, 10 * (now - began)), _LONGEST_PAUSE_SECONDS)
        if reports and not self._waiting:
            print_line(f"all peers have answered after {time.monotonic() - self._started_at:.0f} s")

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
        return "name does not resolve"
    except ConnectionRefusedError:
        return "refuses connections"
    except socket.timeout:
        return "does not answer"
    except (OSError, ValueError) as err:
        return str(err)


def describe_waiting(peers: Sequence[WaitingPeer]) -> str:
    """Return one line that names the first few peers and counts the rest."""
    named = ", ".join(f"{peer.address} ({peer.reason})" for peer in peers[:_NAMED])
    more = f" and {len(peers) - _NAMED} more" if len(peers) > _NAMED else ""
    return f"waiting for {len(peers)} peers since {peers[0].seconds:.0f} s: {named}{more}"


def _report_at(reports: int) -> float:
    if reports < len(_REPORT_SECONDS):
        return _REPORT_SECONDS[reports]
    return _REPORT_SECONDS[-1] + (reports - len(_REPORT_SECONDS) + 1) * _REPORT_EVERY_SECONDS
