"""Reserves loopback ports for a run, so that runs side by side never collide.

Ports lie outside the range from which the system gives out ports by itself. A lock file per port, held as
long as the run lives, keeps other runs away, and a trial bind all other processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trainchart.errors import ToolError

_LOWEST, _HIGHEST = 10000, 65535
_LINUX_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_IANA_RANGE = (49152, 65535)
"""RFC 6335's dynamic ports, which macOS uses."""


class PortReservation:
    """Holds the lock files of some ports until it is closed or the process ends."""

    def __init__(self, ports: Mapping[str, int], descriptors: Sequence[int]) -> None:
        self.ports = ports
        self._descriptors = list(descriptors)

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def reserve_ports(addresses: Sequence[str], folder: Path | None = None) -> PortReservation:
    """Reserve one port per address; `folder` holds the lock files (default: one per user).

    Raises:
        ToolError: there are not enough free ports, or the folder is not ours.
    """
    folder = folder or Path(tempfile.gettempdir()) / f"trainchart-{os.getuid()}" / "ports"
    _make_private(folder)
    descriptors: list[int] = []
    ports: dict[str, int] = {}
    candidates = _candidates()
    try:
        for address in addresses:
            ports[address], descriptor = _take_next(candidates, folder)
            descriptors.append(descriptor)
    except BaseException:
        PortReservation({}, descriptors).close()
        raise
    return PortReservation(ports, descriptors)


def _take_next(candidates: Iterator[int], folder: Path) -> tuple[int, int]:
    for port in candidates:
        descriptor = _lock(folder / f"{port}.lock")
        if descriptor is None:
            continue
        if _is_free(port):
            return port, descriptor
        os.close(descriptor)
    raise ToolError("there are not enough free ports on this machine", hint="end other runs, or use fewer replicas")


def _lock(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as err:
        raise ToolError(f"cannot write the port lock {path}: {err.strerror}", hint="set TMPDIR") from err
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _is_free(port: int) -> bool:
    # Programs listen on all addresses, so all of them must be free.
    families = [(socket.AF_INET, "0.0.0.0")] + ([(socket.AF_INET6, "::")] if socket.has_ipv6 else [])
    for family, host in families:
        try:
            probe = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            # The kernel has no IPv6.
            continue
        with probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            with contextlib.suppress(OSError):
                probe.bind((host, port))
                continue
            if family == socket.AF_INET:
                return False
            # An address family without addresses refuses every bind; a taken port is told apart by IPv4.
            with contextlib.suppress(OSError):
                probe.bind((host, 0))
                return False
    return True


def _candidates() -> Iterator[int]:
    """Yield ports outside the ephemeral range, beginning at a place of this process's own."""
    low, high = _read_ephemeral_range()
    usable = [port for port in range(_LOWEST, _HIGHEST + 1) if not low <= port <= high]
    if not usable:
        # A system that gives out every port: locks and binds are all the protection left.
        usable = list(range(_LOWEST, _HIGHEST + 1))
    start = os.getpid() * 97 % len(usable)
    yield from usable[start:]
    yield from usable[:start]


def _read_ephemeral_range() -> tuple[int, int]:
    try:
        low, high = _LINUX_RANGE_FILE.read_text().split()
    except (OSError, ValueError):
        return _IANA_RANGE
    return int(low), int(high)


def _make_private(folder: Path) -> None:
    try:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.stat().st_uid
    except OSError as err:
        raise ToolError(f"cannot make the folder {folder}: {err.strerror}", hint="set TMPDIR") from err
    if owner != os.getuid():
        raise ToolError(f"{folder} belongs to another user", hint="set TMPDIR to your own folder")
