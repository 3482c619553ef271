"""The command line as a user calls it: in a process of its own, or within the test, which takes a tenth of the time."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from trainchart.cli.app import main


def make_environment(folder: Path) -> dict[str, str]:
    """Return the environment of this process, without colours and with data of the user in `folder`."""
    return {**os.environ, "XDG_DATA_HOME": str(folder / ".data"), "NO_COLOR": "1"}


def call(
    folder: Path, *arguments: str | Path, environment: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `trainchart` in `folder` within this process; not for commands that start others or heed signals."""
    words = list(map(str, arguments))
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    code: object = None
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, make_environment(folder) if environment is None else environment, clear=True),
        mock.patch.object(sys, "argv", ["trainchart", *words]),
        mock.patch.object(sys, "stdin", given),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, _text(output), _text(errors))


def _text(written: io.TextIOWrapper) -> str:
    written.flush()
    written.seek(0)
    return written.read()


def start(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `trainchart` in `folder` as a process of its own."""
    command = [sys.executable, "-m", "trainchart", *arguments]
    return subprocess.run(command, cwd=folder, env=make_environment(folder), capture_output=True, text=True)
