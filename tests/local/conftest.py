"""What tests of the examples share: train a checked-in chart as local processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def train_chart(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return the function that runs charts/<name> with an example's code and returns the result trainchart prints."""

    def train(
        name: str, code: str, *arguments: str, meanwhile: Callable[[subprocess.Popen[str]], None] | None = None
    ) -> dict[str, Any]:
        with subprocess.Popen(
            [
                *(sys.executable, "-m", "trainchart", "run", str(ROOT / "charts" / name)),
                *("--code", str(ROOT / "examples" / code), "--quiet", "--format", "json", *arguments),
            ],
            cwd=tmp_path,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            try:
                if meanwhile:
                    meanwhile(running)
                out, err = running.communicate()
            except BaseException:
                running.kill()
                raise
        assert running.returncode == 0, err[-3000:]
        result: dict[str, Any] = json.loads(out)
        return result

    return train
