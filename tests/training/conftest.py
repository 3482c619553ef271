"""What the tests of the training library in this process share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.small_training import Trainer
from tests.training.strategy_runs import StrategyRun


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Trainer]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield Trainer(tmp_path)
    signal.alarm(0)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def run(tmp_path: Path) -> StrategyRun:
    return StrategyRun(tmp_path)
