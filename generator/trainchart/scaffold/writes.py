"""Where a program writes what is lost with its pod, or what a pod cannot write. Pure."""

from __future__ import annotations

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import PurePosixPath

from trainchart.scaffold.flag import NotReadableError
from trainchart.scaffold.folder_flags import is_path
from trainchart.scaffold.modules import Module
from trainchart.scaffold.python_literal import Arguments, Constants, called_name, is_joining, read_value

_TARGETS: Mapping[tuple[str, int], str] = {
    ("backup_dir", 0): "BackupAndRestore",
    ("buf", 0): "to_html to_markdown to_latex",
    ("cache_dir", -1): "get_file",
    ("checkpoint_dir", 0): "CheckpointSaverHook",
    ("checkpoint_dir", 2): "MonitoredTrainingSession",
    ("database", 0): "sqlite3.connect",
    ("directory", 1): "CheckpointManager",
    ("dst", 1): "shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move os.rename os.replace",
    ("excel_writer", 0): "to_excel",
    ("export_dir", 1): "saved_model.save",
    ("extract_dir", 1): "unpack_archive",
    ("fid", 0): "tofile",
    ("file", 0): "savez savez_compressed np.save numpy.save write_image write_html",
    ("filename", -1): "basicConfig",
    ("filename", 0): "CSVLogger FileHandler RotatingFileHandler TimedRotatingFileHandler WatchedFileHandler cache "
    "write_file imwrite shelve.open",
    ("filename", 1): "urlretrieve joblib.dump",
    ("filepath", 0): "ModelCheckpoint save_weights save export",
    ("filepath", 1): "save_model",
    ("fname", 0): "savefig imsave savetxt",
    ("log_dir", 0): "TensorBoard SummaryWriter",
    ("logdir", 0): "create_file_writer FileWriter profiler.experimental.start Supervisor",
    ("name", 0): "makedirs MakeDirs",
    ("output_dir", 2): "SummarySaverHook",
    ("path", 0): "mkdir extractall TFRecordWriter to_pickle to_parquet to_feather to_orc to_stata",
    ("path_or_buf", 0): "to_csv to_json to_hdf",
    ("save_path", 1): "saver.save",
    ("to_file", 1): "plot_model",
}
"""The argument that is written to, by keyword and place → the calls, by their name or the end of their dotted name."""
_WRITERS = {name: place for place, names in _TARGETS.items() for name in names.split()}
_DEFAULTS = {"TensorBoard": "logs", "SummaryWriter": "runs", "plot_model": "model.png"}
"""Calls → where they write if they are not told."""
_OPENERS = ("open", "Open", "GFile", "FastGFile", "File", "ZipFile")
"""Calls that take a path and then a mode, which says whether they write."""
_METHODS = ("write_text", "write_bytes", "mkdir", "touch", "open")
"""Methods of a Path that write to it."""
_KEPT = (
    *("ModelCheckpoint", "CheckpointManager", "BackupAndRestore", "MonitoredTrainingSession", "CheckpointSaverHook"),
    *("save_weights", "save_model", "save", "export", "export_saved_model"),
)
"""What writes a result of the training, which no user wants below /tmp."""
_WORDS = ("save", "export", "save_model", "cache", "to_json")
"""Names that others use as well, for what is not a path."""
_HANDLED = re.compile(r".*(copy|move|upload|rename|replace|remove|unlink|rmtree|archive|put)", re.IGNORECASE)
_MOST_NAMED = 20
_ELSEWHERE = (
    "writes where a pod cannot, or where it is lost: write below TRAINCHART_CHECKPOINTS_DIR or "
    "TRAINCHART_TENSORBOARD_DIR, which are in the environment"
)
_BELOW_TMP = (
    "is lost with the pod, and shared between local runs: write below TRAINCHART_CHECKPOINTS_DIR, which is in the "
    "environment"
)


def find_writes(module: Module) -> Iterator[str]:
    """Yield notes on what the program writes outside of the folders that a run keeps, one for each remedy."""
    constants = _find_constants(module)
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda call: call.lineno)
    handled = {path for call in calls for path in _find_handled(call, constants)}
    found: dict[str, tuple[str, str, int]] = {}
    for call in calls:
        name, path = called_name(call), _read_target(call, constants)
        text = str(path)
        if not text or "://" in text or text.startswith(":"):
            continue
        is_temporary = text == "/tmp" or text.startswith("/tmp/")
        if is_temporary and (name not in _KEPT or text in handled):
            continue
        if is_path(path) or name not in _WORDS or "." in text or _is_certain(call):
            says = _BELOW_TMP if is_temporary else _ELSEWHERE
            found.setdefault(text, (says, f"{name}({text!r})", call.lineno))
    for says in dict.fromkeys(says for says, _, _ in found.values()):
        (first, line), *others = [(shown, line) for other, shown, line in found.values() if other == says]
        yield f"{module.file}:{line}: {first} {says}{_list_others(others)}"


def _list_others(others: list[tuple[str, int]]) -> str:
    named = [f"{shown} in line {line}" for shown, line in others[: _MOST_NAMED - 1]]
    if len(others) > len(named):
        named.append(f"{len(others) - len(named)} more")
    return f" (also {', '.join(named)})" if named else ""


def _find_constants(module: Module) -> Constants:
    """Return the plain values of names that the module assigns once, in functions as well."""
    nodes = list(ast.walk(module.tree))
    stored = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    stored.update(node.arg for node in nodes if isinstance(node, ast.arg))
    found = {"__file__": PurePosixPath(module.file).name, **module.constants}
    assigned = [node for node in nodes if isinstance(node, ast.Assign) and len(node.targets) == 1]
    for node in sorted(assigned, key=lambda node: node.lineno):
        target = node.targets[0]
        if isinstance(target, ast.Name) and stored[target.id] == 1:
            with contextlib.suppress(NotReadableError):
                found.setdefault(target.id, read_value(node.value, found))
    return found


def _read_target(call: ast.Call, constants: Constants) -> str | PurePosixPath:
    """Return the path that a call writes to, empty where it writes none or where that cannot be told."""
    name, arguments = called_name(call), Arguments(call, constants)
    if name in _METHODS and isinstance(call.func, ast.Attribute):
        path = _read_start(call.func.value, constants)
        if isinstance(path, PurePosixPath):
            return path if name != "open" or _writes(arguments.text("mode", 0)) else ""
    place = next((_WRITERS[end] for end in _WRITERS if "." in end and _ends_with(call, end)), _WRITERS.get(name))
    if place is None and name in _OPENERS and _writes(arguments.text("mode", 1)):
        place = next((keyword for keyword in ("file", "name", "filename") if arguments.node(keyword)), "file"), 0
    node = arguments.node(*place) if place else None
    if node is None:
        return _DEFAULTS.get(name, "") if not arguments.is_open else ""
    return _read_start(node, constants)


def _writes(mode: str) -> bool:
    return bool(set(mode) & set("wax+"))


def _read_start(node: ast.expr, constants: Constants) -> str | PurePosixPath:
    """Return a path, with … for what of its end cannot be told; empty where its start cannot be."""
    try:
        value = read_value(node, constants)
        return value if isinstance(value, (str, PurePosixPath)) else ""
    except NotReadableError:
        pass
    match node:
        case ast.JoinedStr(values=parts):
            known = takewhile(bool, (_read_plain(part, constants) for part in parts))
            return _leave_open("".join(known))
        case ast.BinOp(left=first, op=ast.Mod() | ast.Add()) | ast.Call(func=ast.Attribute(value=first, attr="format")):
            return _leave_open(re.split("[%{]", str(_read_start(first, constants)))[0])
        case ast.BinOp(left=first, op=ast.Div()):
            start = _read_start(first, constants)
            return start / "…" if isinstance(start, PurePosixPath) else ""
        case ast.Call(args=[first, _, *_]) if is_joining(node):
            start = _read_start(first, constants)
            return PurePosixPath(str(start), "…") if str(start).strip("./") else ""
    return ""


def _read_plain(node: ast.expr, constants: Constants) -> str:
    try:
        return str(read_value(node, constants))
    except NotReadableError:
        return ""


def _leave_open(start: str) -> str:
    return f"{start}…" if start.strip("./") else ""


def _is_certain(call: ast.Call) -> bool:
    """Tell whether a call writes a model, so that even a word such as "out" is a folder."""
    is_method = isinstance(call.func, ast.Attribute) and called_name(call) == "export"
    return is_method or any("." in end and _ends_with(call, end) for end in _WRITERS)


def _ends_with(call: ast.Call, end: str) -> bool:
    return bool(re.search(rf"(^|[._]){re.escape(end)}$", ast.unparse(call.func)))


def _find_handled(call: ast.Call, constants: Constants) -> Iterator[str]:
    """Yield the paths that the program itself copies elsewhere, or removes."""
    if _HANDLED.match(called_name(call)):
        yield from (str(_read_start(argument, constants)) for argument in call.args)
