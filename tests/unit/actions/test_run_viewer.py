"""How the release that shows the volumes of others is removed."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

import trainchart.actions.support.run_viewer as run_viewer
from trainchart.errors import ToolError

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_second_signal_does_not_end_the_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(run_viewer, "run_uninstall", lambda *_: seen.extend(map(signal.getsignal, NUMBERS)))
    run_viewer._uninstall("tensorboard-1", "team", "", print, "helm uninstall tensorboard-1")
    assert seen == [signal.SIG_IGN] * 3


def test_a_failed_removal_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> None:
        raise ToolError("helm uninstall exited with 1: no answer")

    monkeypatch.setattr(run_viewer, "run_uninstall", fail)
    told: list[str] = []
    run_viewer._uninstall("tensorboard-1", "team", "", told.append, "helm uninstall tensorboard-1")
    assert len(told) == 1 and "to remove it: helm uninstall tensorboard-1" in told[0]
