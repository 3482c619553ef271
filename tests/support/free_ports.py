"""Ports for the programs that tests start: no other test gets them meanwhile, and no connection of this machine."""

from __future__ import annotations

from collections import deque

from trainchart.local.io.ports import PortReservation, reserve_ports

_KEPT = 100
"""Reservations at a time; each is an open file, and one test needs a few."""
_reservations: deque[PortReservation] = deque()


def find_free_port() -> int:
    """Return a port of loopback where nobody listens, reserved for as long as any test may want it."""
    while len(_reservations) >= _KEPT:
        _reservations.popleft().close()
    _reservations.append(reserve_ports(["any"]))
    return _reservations[-1].ports["any"]
