"""Runs trainchart's command line within the test's own process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from trainchart.cli.app import app
from trainchart.errors import TrainchartError


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=True)


def refuse(*arguments: str) -> TrainchartError:
    """Return the error with which a command refuses."""
    error = invoke(*arguments).exception
    assert isinstance(error, TrainchartError), error
    return error
