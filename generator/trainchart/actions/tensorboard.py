"""The use case `trainchart tensorboard`: one TensorBoard over local runs."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.run_lookup import RunAddress, find_local_run
from trainchart.errors import ToolError, UsageError
from trainchart.host.browser import open_in_browser
from trainchart.host.python_server import require_free
from trainchart.local.io.processes import Guardian
from trainchart.local.io.release_folder import RESULT_FILE, RUN_FILE, read_record
from trainchart.local.io.run_report import find_runs
from trainchart.local.io.tensorboard import TensorBoard, require_installed
from trainchart.local.plan import POD_MARK


@dataclass(frozen=True)
class LocalRequest:
    """The local runs that are to be shown."""

    runs: Sequence[str]
    """None: the run that was started last."""
    runs_folder: Path
    shows_all: bool


def find_local_runs(request: LocalRequest) -> list[Path] | None:
    """Return the folders of the local runs that are meant; None where releases on a cluster are.

    Raises:
        ToolError: there is no such run, or some are local and others are not.
    """
    if request.shows_all:
        runs = find_runs(request.runs_folder)
        if not runs:
            find_local_run(RunAddress("", Place(), request.runs_folder))  # says what is missing
        return runs
    names = tuple(dict.fromkeys(request.runs)) or ("",)
    found = [find_local_run(RunAddress(name, Place(), request.runs_folder)) for name in names]
    missing = [name for name, run in zip(names, found, strict=True) if run is None]
    if not missing:
        return [run for run in found if run is not None]
    if len(missing) < len(found):
        raise UsageError(
            f"{missing[0]} is not a local run, but others are",
            hint="one TensorBoard shows runs of one place; --namespace always means releases on a cluster",
        )
    return None


def show_local(runs: Sequence[Path], port: int, show: Callable[[str], None], *, opens_browser: bool) -> NoReturn:
    """Run TensorBoard over local runs, show its address, and wait until it ends by itself, which is an error.

    Raises:
        ToolError, NotInTime: what open_local says, or TensorBoard has ended.
    """
    with open_local(runs, port) as server:
        show(server.url)
        if opens_browser:
            open_in_browser(server.url)
        server.watch()


@contextmanager
def open_local(runs: Sequence[Path], port: int) -> Iterator[TensorBoard]:
    """Run TensorBoard over local runs, also those that go on, each under its name; it ends with this block.

    Raises:
        ToolError: TensorBoard is not installed or does not start, a port is taken, or no run writes summaries.
    """
    require_installed()
    require_free(port, "--port")
    with tempfile.TemporaryDirectory(prefix="trainchart-tensorboard-") as made:
        folder, own = Path(made, "runs").absolute(), Path(made, "tmp").absolute()  # TMPDIR may be relative
        folder.mkdir()
        own.mkdir()
        for run in runs:
            for name, events in _name_folders(run):
                (folder / name).symlink_to(events, target_is_directory=True)
        if not any(folder.iterdir()):
            names = ", ".join(run.name for run in runs)
            raise ToolError(f"nothing for TensorBoard in {names}", hint="docs/launcher.md says where summaries go")
        mark = f"tensorboard-{os.getpid()}-{secrets.token_hex(4)}"
        guardian = Guardian(mark, os.environ)
        try:
            server = TensorBoard(folder, port, {POD_MARK: mark, "TMPDIR": str(own)})
            try:
                guardian.watch(server.pid)
                server.await_address()
                yield server
            finally:
                server.kill()
        finally:
            guardian.close()


def _name_folders(run: Path) -> Iterator[tuple[str, Path]]:
    """Yield the folders with summaries of a run, and the names under which TensorBoard shows them."""
    folders = read_record(run / RESULT_FILE).get("folders")
    written = folders.get("tensorboard") if isinstance(folders, dict) else None
    found = [each for each in written if isinstance(each, str)] if isinstance(written, list) else []
    usual = read_record(run / RUN_FILE).get("tensorboard")
    if not found and isinstance(usual, str):
        found = [usual]
    paths = [Path(each) for each in found if each.startswith("/") and "\0" not in each]
    for number, path in enumerate(paths, 1):
        yield (run.name if number == 1 else f"{run.name}-{number}"), _find_moved(path, run)


def _find_moved(path: Path, run: Path) -> Path:
    """Return where a recorded path below the folder of a run is now: the runs may have been moved or copied."""
    if path.exists() or run.name not in path.parts:
        return path
    index = len(path.parts) - 1 - path.parts[::-1].index(run.name)
    moved = run.absolute().joinpath(*path.parts[index + 1 :])
    return moved if moved.exists() else path
