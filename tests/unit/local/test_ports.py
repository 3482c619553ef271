"""Ports of runs side by side."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from trainchart.errors import ToolError
from trainchart.local.io import ports
from trainchart.local.io.ports import reserve_ports

ADDRESSES = [f"worker-{index}.exp-7:2222" for index in range(20)]


def test_two_reservations_share_no_port(tmp_path: Path) -> None:
    first = reserve_ports(ADDRESSES, tmp_path / "ports")
    second = reserve_ports(ADDRESSES, tmp_path / "ports")
    assert list(first.ports) == ADDRESSES
    assert len({*first.ports.values(), *second.ports.values()}) == 40
    first.close()
    second.close()


def test_a_closed_reservation_gives_its_ports_back(tmp_path: Path) -> None:
    first = reserve_ports(ADDRESSES[:3], tmp_path / "ports")
    first.close()
    second = reserve_ports(ADDRESSES[:3], tmp_path / "ports")
    assert second.ports == first.ports
    second.close()


def test_a_port_in_use_is_left_alone(tmp_path: Path) -> None:
    probe = reserve_ports(ADDRESSES[:1], tmp_path / "ports")
    probe.close()
    (port,) = probe.ports.values()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        reservation = reserve_ports(ADDRESSES[:1], tmp_path / "ports")
        assert port not in reservation.ports.values()
        reservation.close()


def test_ports_lie_outside_the_ephemeral_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    range_file = tmp_path / "range"
    range_file.write_text("10100\t65000\n")
    monkeypatch.setattr(ports, "_LINUX_RANGE_FILE", range_file)
    reservation = reserve_ports(ADDRESSES, tmp_path / "ports")
    assert all(port < 10100 or port > 65000 for port in reservation.ports.values())
    reservation.close()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ToolError, match="cannot make the folder"):
        reserve_ports(ADDRESSES[:1], tmp_path / "file" / "ports")
