"""Say from Python's own words that a file of the program was imported in place of a module of the same name. Pure."""

from __future__ import annotations

import re
import sys
from typing import Sequence

_LIBRARIES = {"absl", "google", "grpc", "h5py", "keras", "numpy", "pandas", "PIL", "requests", "scipy", "tensorflow"}
_STANDARD = frozenset(getattr(sys, "stdlib_module_names", sys.builtin_module_names))
"""Pythons before 3.10 do not know the names of their modules."""
_NOT_A_PACKAGE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)\.\w+'; '\1' is not a package")
_CONSIDER = re.compile(r"\(consider renaming '.+' since it has the same name as ")
"""Python 3.13 and later finds it out itself."""
_IMPORT = re.compile(
    r"^ImportError: cannot import name '\w+' from (?:partially initialized module )?'(\w+)' ?.*\((/[^()]+)\)$"
)
_NO_ATTRIBUTE = re.compile(r"^AttributeError: (?:partially initialized )?module '(\w+)' has no attribute '(\w+)'")
_OF_TENSORFLOW = {"Module", "Variable", "__version__", "config", "constant", "data", "distribute", "function", "keras"}
"""What the program's own tensorflow.py lacks first, and every TensorFlow 2 has."""
_FRAME = re.compile(r'^\s*(?:\| )?File "([^"]+)", line \d+')
_INSTALLED = re.compile(r"/(site|dist)-packages/|/lib(64)?/python[\d.]+/|^<frozen ")


def is_shadowed(error: str, lines: Sequence[str]) -> bool:
    """Say whether the exception line `error`, of a traceback in `lines`, comes from a file with a module's name."""
    if _NOT_A_PACKAGE.match(error) or _CONSIDER.search(error):
        return True
    is_of_library = bool(_INSTALLED.search(_find_last_file(error, lines)))
    imported = _IMPORT.match(error)
    if imported:
        is_known = is_of_library or imported.group(1) in _STANDARD | _LIBRARIES
        return is_known and not _INSTALLED.search(imported.group(2))
    missing = _NO_ATTRIBUTE.match(error)
    if not missing:
        return False
    if missing.group(1) == "tensorflow":
        return missing.group(2) in _OF_TENSORFLOW
    # A program may misspell an attribute of a standard module; Python and installed libraries do not.
    return missing.group(1) in _STANDARD and is_of_library


def _find_last_file(error: str, lines: Sequence[str]) -> str:
    """Return the file in which the traceback that ends in `error` ends; "" where none is shown."""
    above = lines[: list(lines).index(error)] if error in lines else ()
    return next((found.group(1) for line in reversed(above) for found in [_FRAME.match(line)] if found), "")
