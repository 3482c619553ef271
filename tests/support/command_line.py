"""The command line as a user calls it: in a process of its own, or within the test, which takes a tenth of the time."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from trainchart.cli.app import main


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(folder / ".data"), "NO_COLOR": "1"}


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `trainchart` in `folder` within this process; not for commands that start others or heed signals."""
    output, errors = io.StringIO(), io.StringIO()
    code: object = None
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, _environment(folder)),
        mock.patch.object(sys, "argv", ["trainchart", *arguments]),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def start(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `trainchart` in `folder` as a process of its own."""
    command = [sys.executable, "-m", "trainchart", *arguments]
    return subprocess.run(command, cwd=folder, env=_environment(folder), capture_output=True, text=True)
