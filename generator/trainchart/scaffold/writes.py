"""Where a program writes what is lost with its pod, or what a pod cannot write. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from trainchart.scaffold.folder_flags import is_path
from trainchart.scaffold.modules import Module
from trainchart.scaffold.python_literal import Arguments, called_name

_WRITERS: Mapping[str, tuple[str, int]] = {
    "ModelCheckpoint": ("filepath", 0),
    "CheckpointManager": ("directory", 1),
    "TensorBoard": ("log_dir", 0),
    "CSVLogger": ("filename", 0),
    "BackupAndRestore": ("backup_dir", 0),
    "create_file_writer": ("logdir", 0),
    "FileWriter": ("logdir", 0),
    "save_weights": ("filepath", 0),
    "save_model": ("filepath", 1),
    "savefig": ("fname", 0),
    "makedirs": ("name", 0),
    "mkdir": ("path", 0),
    "save": ("filepath", 0),
    "export": ("filepath", 0),
    "savez": ("file", 0),
    "to_csv": ("path_or_buf", 0),
    "FileHandler": ("filename", 0),
}
_SECOND: Mapping[str, tuple[str, int]] = {
    "saved_model.save": ("export_dir", 1),
    "saver.save": ("save_path", 1),
}
"""Calls, by the end of their dotted name, that take first what they save."""
_KEPT = ("ModelCheckpoint", "CheckpointManager", "BackupAndRestore", "save_weights", "save_model", "save", "export")
"""What writes a result of the training, which no user wants below /tmp."""
_WORDS = ("save", "export", "save_model")
"""Names that others use as well, for what is not a path."""
_PATHS = ("Path", "PosixPath")
_HANDLED = re.compile(r".*(copy|move|upload|rename|replace|remove|unlink|rmtree|archive|put)", re.IGNORECASE)
_MOST_NOTES = 5
_ELSEWHERE = (
    "writes where a pod cannot, or where it is lost: write below TRAINCHART_CHECKPOINTS_DIR or "
    "TRAINCHART_TENSORBOARD_DIR, which are in the environment"
)
_BELOW_TMP = (
    "is lost with the pod, and shared between local runs: write below TRAINCHART_CHECKPOINTS_DIR, which is in the "
    "environment"
)


def find_writes(module: Module) -> Iterator[str]:
    """Yield notes on what the program writes outside of the folders that a run keeps."""
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    handled = {path for call in calls for path in _find_handled(call, module)}
    found: dict[str, str] = {}
    for call in calls:
        name, path = called_name(call), _read_target(call, module)
        if not path or "://" in path:
            continue
        is_temporary = path == "/tmp" or path.startswith("/tmp/")
        if is_temporary and (name not in _KEPT or path in handled):
            continue
        if is_path(path) or name not in _WORDS or "." in path or _is_certain(call):
            says = _BELOW_TMP if is_temporary else _ELSEWHERE
            found.setdefault(path, f"{module.file}:{call.lineno}: {name}({path!r}) {says}")
    yield from list(found.values())[:_MOST_NOTES]


def _read_target(call: ast.Call, module: Module) -> str:
    """Return the path that a call writes to, empty where it writes none or where that cannot be told."""
    name, arguments = called_name(call), Arguments(call, module.constants)
    second = next((place for end, place in _SECOND.items() if _ends_with(call, end)), None)
    path = None
    if second:
        path = arguments.plain(*second)
    elif name in _WRITERS:
        path = arguments.plain(*_WRITERS[name])
    elif name == "open" and set(arguments.text("mode", 1)) & set("wax"):
        path = arguments.plain("file", 0)
    elif name in ("write_text", "write_bytes") and isinstance(call.func, ast.Attribute):
        return _read_path(call.func.value, module)
    return path if isinstance(path, str) else ""


def _read_path(node: ast.expr, module: Module) -> str:
    """Return the path that `Path("a", "b")` or `Path("a") / "b"` is, empty where that cannot be told."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        parts = [_read_path(node.left, module), _read_text(node.right, module)]
    elif isinstance(node, ast.Call) and called_name(node) in _PATHS:
        parts = [_read_text(argument, module) for argument in node.args]
    else:
        return ""
    return "/".join(parts) if all(parts) else ""


def _read_text(node: ast.expr, module: Module) -> str:
    return Arguments(ast.Call(node, [node], []), module.constants).text("", 0)


def _is_certain(call: ast.Call) -> bool:
    """Tell whether a call writes a model, so that even a word such as "out" is a folder."""
    is_method = isinstance(call.func, ast.Attribute) and called_name(call) == "export"
    return is_method or any(_ends_with(call, end) for end in _SECOND)


def _ends_with(call: ast.Call, end: str) -> bool:
    return bool(re.search(rf"(^|[._]){re.escape(end)}$", ast.unparse(call.func)))


def _find_handled(call: ast.Call, module: Module) -> Iterator[str]:
    """Yield the paths that the program itself copies elsewhere, or removes."""
    if _HANDLED.match(called_name(call)):
        yield from (_read_text(argument, module) or _read_path(argument, module) for argument in call.args)
