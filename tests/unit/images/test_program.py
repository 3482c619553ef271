"""Running a builder: it is over when its caller is, whatever it thinks of that."""

from __future__ import annotations

import os

import pytest

from trainchart.images.builders import Step
from trainchart.images.io import program


def test_a_builder_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_GRACE_SECONDS", 0.2)
    heard: list[int] = []

    def interrupt(line: str) -> None:
        heard.append(int(line))
        raise KeyboardInterrupt

    deaf = Step("build", ("sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done"))
    with pytest.raises(KeyboardInterrupt):
        program.run_step(deaf, os.environ, interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(heard[0], 0)
