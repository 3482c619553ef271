"""Notes, inside a program of a local run, each path that it writes to and that it could not write to in a pod.

Python imports a module of this name at its start; the folder comes first on PYTHONPATH in local runs only. Standard
library of Python 3.8, for every Python that runs a training. writes.py reads the notes. Audit events tell what Python
writes; TensorFlow writes natively, so its own few functions for that are wrapped.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_NOTES_LIMIT = 100
_WRITING = os.O_WRONLY | os.O_RDWR
_CACHES = ("/__pycache__", "/.cache/", "/.config/", "/.keras/", "/.local/", "/.nv/")
"""Folders that libraries fill if they can, and do without where they cannot."""
_OF_EVERY_POD = ("/tmp", "/dev", "/proc")
_PATH_POSITIONS = {"open": 0, "os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1}
"""Which argument of an audit event is the path that is written: https://docs.python.org/3/library/audit_events.html"""
_TENSORFLOW = {
    "tensorflow.python.lib.io._pywrap_file_io": ("CreateDir", "RecursivelyCreateDir", "WritableFile"),
    "tensorflow.python.ops.summary_ops_v2": ("create_file_writer_v2",),
}
"""Functions of TensorFlow's modules whose first argument is a path that is written."""


class _Watch:
    def __init__(self, notes: str, writable: Sequence[str], read_only: Sequence[str]) -> None:
        self._notes = notes
        self._writable = tuple(writable)
        self._read_only = tuple(read_only)
        self._seen: set[str] = set()
        self._unwrapped = dict(_TENSORFLOW)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take in one audit event."""
        if event == "import":
            self._wrap_tensorflow()
        elif event not in _PATH_POSITIONS or (event == "open" and not _is_writing(arguments[2])):
            return
        elif not _will_fail(event, arguments):
            self._hear_path(arguments[_PATH_POSITIONS[event]], is_folder=event == "os.mkdir")

    def _hear_path(self, written: Any, *, is_folder: bool) -> None:
        """Note a path that the program writes; whatever goes wrong here must not reach the program."""
        try:
            name = os.fsdecode(written)
            path = os.path.abspath(name)
            stem, suffix = os.path.splitext(path)
            path = stem if len(suffix) == len(".tmp") + 32 and suffix.startswith(".tmp") else path  # TensorFlow's way
            if "://" not in name and self._is_refused(path) and not (is_folder and os.path.isdir(path)):
                self._note(_find_first_made(path) if is_folder else path)
        except (OSError, TypeError, ValueError):
            pass

    def _wrap_tensorflow(self) -> None:
        for module in [module for module in self._unwrapped if module in sys.modules]:
            found = vars(sys.modules[module])
            if all(name in found for name in self._unwrapped[module]):
                found.update({name: self._wrap(found[name]) for name in self._unwrapped.pop(module)})

    def _wrap(self, write: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(write)
        def noted(*arguments: Any, **options: Any) -> Any:
            self._hear_path(arguments[0] if arguments else options.get("logdir"), is_folder=True)
            return write(*arguments, **options)

        return noted

    def _is_refused(self, path: str) -> bool:
        if _is_below(path, self._writable) or any(cache in path + "/" for cache in _CACHES):
            return False
        return _is_below(path, self._read_only) or not _is_below(path, _OF_EVERY_POD)

    def _note(self, path: str) -> None:
        if _is_below(path, self._seen) or len(self._seen) >= _NOTES_LIMIT:
            return  # a folder stands for what is in it
        self._seen.add(path)
        descriptor = os.open(self._notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # One line of UTF-8, whatever the name holds.
            line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path)
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)


def _is_writing(flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & _WRITING)


def _will_fail(event: str, arguments: tuple[Any, ...]) -> bool:
    """Tell whether what an audit event announces cannot be: nothing is written then, and a program may go on."""
    try:
        path = os.path.abspath(os.fsdecode(arguments[_PATH_POSITIONS[event]]))
        if event == "open" and not arguments[2] & os.O_CREAT:
            return not os.path.lexists(path)
        if event == "open" and arguments[2] & os.O_EXCL and os.path.lexists(path):
            return True
        is_moved = event in ("os.rename", "os.link") and set(arguments[2:]) <= {-1}  # else it is seen from a folder
        return (is_moved and not os.path.lexists(arguments[0])) or not os.path.isdir(os.path.dirname(path))
    except (OSError, TypeError, ValueError):
        return False


def _find_first_made(folder: str) -> str:
    """Return the outermost folder that comes into being when `folder` is made."""
    while not os.path.isdir(os.path.dirname(folder)):
        folder = os.path.dirname(folder)
    return folder


def _is_below(path: str, folders: Collection[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _start() -> None:
    """Begin to watch where the local run asks for it."""
    notes = os.environ.get("TRAINCHART_LOCAL_WRITES")
    if notes:
        lists = (os.environ.get(f"TRAINCHART_LOCAL_{name}", "").split(os.pathsep) for name in ("WRITABLE", "READ_ONLY"))
        writable, read_only = ([folder for folder in folders if folder] for folders in lists)
        sys.addaudithook(_Watch(notes, [notes, *writable], read_only).hear)


def _import_next() -> None:
    """Import the sitecustomize that Python would have found without this one."""
    from importlib import machinery, util

    ours = os.path.dirname(os.path.abspath(__file__))
    spec = machinery.PathFinder.find_spec(__name__, [entry for entry in sys.path if os.path.abspath(entry) != ours])
    if spec and spec.loader:
        sys.modules[__name__] = module = util.module_from_spec(spec)
        spec.loader.exec_module(module)


_start()
_import_next()
