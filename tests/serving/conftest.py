"""Models that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.running import Running, running, wait_until
from tests.serving.small_models import copy_version, save_half


@pytest.fixture(scope="session")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version that answers 0.5 x + 2; not to be changed."""
    return save_half(tmp_path_factory.mktemp("half") / "1")


@pytest.fixture(scope="session")
def third(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version that answers 3 x + 2; not to be changed."""
    return save_half(tmp_path_factory.mktemp("third") / "1", 3.0)


@pytest.fixture
def base(tmp_path: Path, half: Path) -> Path:
    """The folder of a model with one version."""
    base = tmp_path / "models"
    base.mkdir()
    copy_version(half, base / "1")
    return base


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, half: Path, third: Path) -> Iterator[Running]:
    """A server of versions 1 (0.5 x + 2) and 2 (3 x + 2)."""
    base = tmp_path_factory.mktemp("served")
    copy_version(half, base / "1")
    copy_version(third, base / "2")
    with running(base, "--latest_versions=2", "--max_request_bytes=100000") as server:
        wait_until(lambda: '"LOADING"' not in server.ask("GET", "/v1/models/half").text, "both versions")
        yield server
