"""Finds what a program imports and no training image has, unless the code lists it. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from trainchart.scaffold.known_libraries import IMAGE_MODULES, LIBRARIES, PACKAGES
from trainchart.scaffold.modules import Module


def plain_imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the packages that are imported at the top of a module, so always and not only tried."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0], node.lineno


def find_foreign_packages(modules: tuple[Module, ...], own: Collection[str], listed: Collection[str]) -> Iterator[str]:
    """Yield a note on the packages that the image needs.

    `own` are modules of the code; `listed` are packages that its lists name, in the form in which names are compared.
    """
    found: dict[str, str] = {}
    for module in [module for module in modules if module.is_certain]:
        for name, line in (*plain_imports(module.tree), *_find_legacy_keras(module.tree)):
            is_known = name in LIBRARIES or name in PACKAGES
            package = PACKAGES.get(name, name)
            # An unknown module may be part of any package of the list.
            is_listed = re.sub(r"[-_.]+", "-", package).lower() in listed or (bool(listed) and not is_known)
            if name not in IMAGE_MODULES and name not in own and not is_listed:
                found.setdefault(package, f"{module.file}:{line}")
    if found:
        yield (
            f"{next(iter(found.values()))}: images have TensorFlow and its own packages only: list "
            f"{', '.join(sorted(found))}, and what they need, in requirements.txt of the code folder, with exact "
            "versions (see images in the documentation)"
        )


def _find_legacy_keras(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield tf_keras where a program asks TensorFlow for it: os.environ["TF_USE_LEGACY_KERAS"] = "1"."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value == "TF_USE_LEGACY_KERAS":
            yield "tf_keras", node.lineno
