"""Finds an own script's code: the folder that goes into the image, and how Python runs the script from there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath

from trainchart.actions.support.project import find_project
from trainchart.errors import ToolError
from trainchart.host.files import read_bytes, refuse_pipe
from trainchart.host.time_limit import TookTooLong, time_limit
from trainchart.images.requirements import (
    OWN_TENSORFLOW_FILE,
    REQUIREMENTS_FILE,
    decode_requirements,
    parse_requirements,
)
from trainchart.scaffold.copies import describe_copies, uses_training_library
from trainchart.scaffold.known_libraries import KNOWN_MODULES
from trainchart.scaffold.modules import imported_names, parse_module
from trainchart.scaffold.script import CodeFolder, ScriptFacts, read_script

READ_SECONDS = 30.0
"""Processor time for a script and the modules that it imports; those of people take one."""
_SUFFIXES = ("", ".py", ".pyw")


@dataclass(frozen=True)
class OwnCode:
    """An own script, which stays where it is."""

    script: Path
    folder: Path
    """What becomes code.path, absolute."""
    path: str
    """The same as the spec has it."""
    program: tuple[str, ...]

    def read(self, strategy: str) -> ScriptFacts:
        """Read the script and what it imports from its folder; `strategy` overrides what they show."""
        folder = CodeFolder(self._load, self._has_path, self._find_below, frozenset(list_packages(self.folder)))
        try:
            with time_limit(READ_SECONDS):
                return read_script(read_bytes(self.script), str(self.script), self._module, folder, strategy)
        except TookTooLong as error:
            raise ToolError(
                f"{self.script} takes too long to read: trainchart gave up after {READ_SECONDS:g} seconds",
                hint="look for constants that grow in each line, or thousands of flags; without --from-script, init "
                "writes a spec to complete by hand",
            ) from error

    def describe_copies(self, strategy: str, started: str) -> str:
        """Return why the script does not fit `strategy`, as `describe_copies` does of scaffold/copies.py."""
        content = read_bytes(self.script)
        return describe_copies(self._module, str(self.script), content, self._load, started, strategy)

    def uses_training_library(self) -> bool:
        """Return whether the script trains with the training library."""
        return uses_training_library(self._module, str(self.script), read_bytes(self.script), self._load)

    @property
    def _module(self) -> str:
        return self.program[-1] if "-m" in self.program else self.script.stem

    def _load(self, name: str) -> tuple[str, bytes] | None:
        base = self.folder.joinpath(self._find_below(name), *name.split("."))
        for path in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if path.is_file() and path.resolve() != self.script.resolve():
                return (PurePosixPath(self.path) / path.relative_to(self.folder)).as_posix(), read_bytes(path)
        return None

    def _find_below(self, name: str) -> str:
        """Return the folder right below the code's that holds a module which Python does not bring along."""
        if not name or _is_library(name) or _holds(self.folder, name):
            return ""
        folders = sorted(folder for folder in self.folder.iterdir() if folder.is_dir())
        return next((folder.name for folder in folders if (folder / f"{name}.py").is_file()), "")

    def _has_path(self, path: str) -> bool:
        return not path.startswith(("/", "~")) and path.strip("./") != "" and (self.folder / path).exists()


def list_packages(folder: Path) -> Iterator[str]:
    """Yield the packages that the lists of a code folder name, in the form in which names are compared.

    Raises:
        PlanError: a list is not UTF-8.
    """
    for file in (REQUIREMENTS_FILE, OWN_TENSORFLOW_FILE):
        if (folder / file).is_file():
            text = decode_requirements(read_bytes(folder / file), file)
            yield from (requirement.name for requirement in parse_requirements(text))


def locate_code(script: Path) -> OwnCode:
    """Return where the code of `script` is: its own folder, or the one that its package lies in.

    Raises:
        ToolError: the script is not Python, or is outside of the current folder.
    """
    refuse_pipe(script)
    if script.is_dir() and (script / "__main__.py").is_file():
        script = script / "__main__.py"
    if script.suffix == ".ipynb":
        raise ToolError(
            f"{script} is a notebook, not a script", hint=f"export it first: jupyter nbconvert --to script {script}"
        )
    if script.suffix not in _SUFFIXES:
        raise ToolError(
            f"{script} is not a Python script", hint="--from-script takes the .py file that starts the training"
        )
    resolved, project = script.resolve(), find_project().folder.resolve()
    folder = _find_root(resolved, project, parse_module(read_bytes(script), str(script)))
    if not folder.is_relative_to(project):
        raise ToolError(
            f"{script} is outside {project}, where models/ will be",
            hint="start init in a folder above the code: all of code.path goes into the image",
        )
    path = folder.relative_to(project).as_posix()
    program: tuple[str, ...]
    if folder == resolved.parent and script.name != "__main__.py":
        # Python takes a name that begins with a dash for an option.
        program = ("python", f"./{resolved.name}" if resolved.name.startswith("-") else resolved.name)
    else:
        parts = resolved.relative_to(folder).with_suffix("").parts
        program = ("python", "-m", ".".join(parts[:-1] if parts[-1] == "__main__" and len(parts) > 1 else parts))
    return OwnCode(script, folder, path, program)


def _find_root(script: Path, project: Path, tree: ast.Module) -> Path:
    """Return the folder from which Python finds what the script imports: above its package where it has one."""
    level = max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
    if script.name == "__main__.py" and (script.parent / "__init__.py").is_file():
        level = max(level, 1)
    root = script.parents[min(level, len(script.parents) - 1)]
    if level:
        while (root / "__init__.py").is_file() and root != root.parent:
            root = root.parent
    wanted = {module.partition(".")[0] for module, _ in imported_names(tree) if module}
    above = [folder for folder in (root, *root.parents) if folder.is_relative_to(project)]
    for name in wanted:
        if not _holds(script.parent, name):
            found = next((folder for folder in above if _holds(folder, name)), None)
            if found is not None and root.is_relative_to(found):
                root = found
    return root


def _holds(folder: Path, module: str) -> bool:
    """Tell whether Python, started in `folder`, finds `module` there."""
    base = folder / module
    if base.with_name(f"{module}.py").is_file() or (base / "__init__.py").is_file():
        return True
    return base.is_dir() and any(base.glob("*.py")) and not _is_library(module)


def _is_library(module: str) -> bool:
    """Tell whether Python has a module of its own, which goes before a plain folder of that name."""
    module = module.partition(".")[0]
    here = find_project().folder.resolve()
    places = [place for place in sys.path if Path(place).resolve() not in (here, Path.cwd())]
    found = None if module in KNOWN_MODULES else PathFinder.find_spec(module, places)
    return module in KNOWN_MODULES or (found is not None and found.origin is not None)
