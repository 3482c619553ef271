"""Models that the tests of this folder share."""

from __future__ import annotations

from pathlib import Path

import pytest

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
