"""What the code does with a flag, where neither its name nor its help says what it names. Pure; serves script.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainchart.scaffold.flag import Declaration, split_words
from trainchart.scaffold.folder_flags import KERAS_MODULES, SPLITS
from trainchart.scaffold.modules import Module
from trainchart.scaffold.python_literal import called_name, is_joining, type_name

_READERS = {
    *("open", "GFile", "listdir", "scandir", "walk", "glob", "isdir", "isfile", "exists", "list_files", "imread"),
    *("read_csv", "read_parquet", "read_json", "read_pickle", "loadtxt", "genfromtxt", "load_from_disk", "File"),
    *("TFRecordDataset", "TextLineDataset", "image_dataset_from_directory", "text_dataset_from_directory"),
    *("audio_dataset_from_directory", "flow_from_directory"),
}
"""Functions whose first argument is a path."""
_DOWNLOADS = {"utils.get_file", *(f"{module}.load_data" for module in KERAS_MODULES)}
"""Functions of Keras that take the name of a file in its own folder, by the end of their dotted names."""


def mark_uses(declarations: Sequence[Declaration], modules: Sequence[Module]) -> list[Declaration]:
    """Return the flags of a program with what its code shows: --data in os.path.join(args.data, "train") is a path."""
    calls = [node for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    paths = {_find_name(call.args[0]) for call in calls if call.args and _reads_path(call)}
    downloads = {name for call in calls for name in _find_downloaded(call)}
    marked = []
    for flag in declarations:
        name = flag.option.lstrip("-").replace("-", "_")
        is_path = name in paths and SPLITS.issuperset(split_words(name))
        marked.append(replace(flag, is_path=flag.is_path or is_path, is_download=name in downloads))
    return marked


def _reads_path(call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_numpy = called_name(call) == "load" and type_name(owner) in ("np", "numpy")
    return is_numpy or is_joining(call) or called_name(call) in _READERS


def _find_downloaded(call: ast.Call) -> Iterator[str]:
    if ".".join(ast.unparse(call.func).split(".")[-2:]) in _DOWNLOADS:
        given = [keyword.value for keyword in call.keywords if keyword.arg in ("path", "fname")]
        yield from map(_find_name, [*call.args[:1], *given])


def _find_name(node: ast.expr) -> str:
    """Return the name of a flag in args.data, data or args["data"]; empty for other expressions."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return type_name(node)
