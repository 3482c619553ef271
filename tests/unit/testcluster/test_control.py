"""The keeper answers whatever it is asked: a cluster must not end because of one request."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.testcluster import control, keeper
from tests.cluster.testcluster.components import Component
from tests.cluster.testcluster.supervisor import Supervisor


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path)
    yield supervisor
    for name in supervisor.started():
        supervisor.stop(name)


def ask(supervisor: Supervisor, line: bytes) -> dict[str, Any]:
    """Send one line to the keeper and return what it says."""
    ours, its = socket.socketpair()
    with ours, its:
        ours.sendall(line)
        ours.shutdown(socket.SHUT_WR)
        control.serve(its, lambda request: keeper.answer(supervisor, request))
        answer = json.loads(ours.recv(65536))
    assert isinstance(answer, dict)
    return answer


def test_a_component_is_stopped_once_and_started_again(supervisor: Supervisor) -> None:
    supervisor.start(Component("etcd", ("sleep", "600")))
    stop, start = (json.dumps({"do": verb, "component": "etcd"}).encode() for verb in ("stop", "start"))

    assert ask(supervisor, stop) == {}
    assert ask(supervisor, stop) == {"error": "etcd is stopped already"}
    assert ask(supervisor, start) == {}
    assert ask(supervisor, b'{"do": "check"}') == {}
    assert ask(supervisor, stop) == {}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"do": "start", "component": "ectd"}', "no component 'ectd'; there are "),
        (b'{"do": "dance"}', "unknown request 'dance'"),
        (b'{"do": "run", "description": {"name": "x", "argv": ["/nowhere"]}}', "FileNotFoundError: "),
        (b"", "JSONDecodeError: "),
    ],
    ids=["unknown component", "unknown request", "missing program", "killed before it asked"],
)
def test_what_cannot_be_done_is_answered(supervisor: Supervisor, line: bytes, error: str) -> None:
    assert ask(supervisor, line)["error"].startswith(error)


def test_who_asked_and_is_gone_harms_nobody(supervisor: Supervisor) -> None:
    ours, its = socket.socketpair()
    with its:
        ours.sendall(b'{"do": "check"}\n')
        ours.close()
        control.serve(its, lambda request: keeper.answer(supervisor, request))
