"""Reads a training script without running it: its flags, and the strategy that it is written for. Pure.

What cannot be told by reading becomes a note for the user, never a guess.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from trainchart.plan.strategies import STRATEGIES
from trainchart.scaffold.absl_flags import find_absl
from trainchart.scaffold.argparse_flags import find_argparse
from trainchart.scaffold.cautions import find_cautions, find_obstacles, refuse_other_frameworks
from trainchart.scaffold.click_flags import find_click
from trainchart.scaffold.copies import PLACE
from trainchart.scaffold.environment_reads import find_environment_reads
from trainchart.scaffold.fire_flags import find_fire, find_fire_command
from trainchart.scaffold.flag import NAMES_COMMAND, NEEDS_ONE, Declaration, Flag, NotReadableError, to_camel_case
from trainchart.scaffold.flag_uses import mark_uses
from trainchart.scaffold.folder_flags import (
    DATA,
    DATA_DIR,
    LOG_FOLDER,
    LOGS,
    fill_folder,
    folder_kinds,
    makes_data,
    names_folder,
    names_profile,
)
from trainchart.scaffold.foreign_packages import find_foreign_packages, plain_imports
from trainchart.scaffold.library_settings import find_settings
from trainchart.scaffold.modules import Load, Module, imported_names, read_modules
from trainchart.scaffold.place_flags import (
    PS_HOSTS,
    TASK_TYPE,
    WORKER_HOSTS,
    explain_unfilled,
    fill_place,
    fill_places,
    may_be_size,
    shown_roles,
)
from trainchart.scaffold.python_literal import called_name
from trainchart.secret_names import holds_login, is_secret_name

_STRATEGIES: Mapping[str, str] = {
    "ParameterServerStrategy": "parameter-server",
    "ParameterServerStrategyV2": "parameter-server",
    "ClusterCoordinator": "parameter-server",
    "MultiWorkerMirroredStrategy": "multi-worker-mirrored",
    "CollectiveAllReduceStrategy": "multi-worker-mirrored",
    "SyncReplicasOptimizer": "between-graph-sync",
    "replica_device_setter": "between-graph-async",
    "MirroredStrategy": "mirrored",
}
"""Names in a script → the strategy they show, from the one that says most to the one that says least."""
_ONE_PROCESS = ("single", "mirrored")
_REQUIRED = "it is required, so the script does not start until code.command gives it a value"
_SECRET = (
    "a secret does not belong in values; put it into a Secret, name it in env as {valueFrom: {secretKeyRef: …}}, "
    "and add %s=$(NAME) to code.command"
)
_PATH = "a pod finds there only what the image contains, and can write only below its volumes and /tmp"
_SAME_NAME = "is left to the script: another flag has the same name in camelCase"
_READS_DATA = "reads the volume data; for a local run: --claim data=FOLDER"
_MAKES_DATA = (
    "may stay empty according to its help, and then no data is read: to read some, add the volume data to the "
    "spec and set hyperparameters.%s to its mountPath"
)
_LACKING = re.compile(rf"{re.escape(_REQUIRED)}|{NAMES_COMMAND}|{NEEDS_ONE}")
"""What is told of arguments without which the script does not start."""


@dataclass(frozen=True)
class ScriptFacts:
    """What reading a script tells."""

    flags: tuple[Flag, ...]
    references: Mapping[str, str]
    """Option → what the command gives it: the pod's place in the cluster, and folders."""
    strategy: str
    notes: tuple[str, ...]
    """What the user should know: flags left at their defaults and why, and what was assumed."""
    required: tuple[str, ...] = ()
    """Hyperparameters without which the script does not start, and that have no value yet."""
    command: str = ""
    """The word after the script that names which of its functions runs."""
    lacks_arguments: bool = False
    """Whether the script needs arguments beside those, which only the author can give."""
    has_obstacles: bool = False
    """Whether a note says what fails in every pod until something is changed."""

    @property
    def reads_data(self) -> bool:
        """Whether a flag names a folder of data, which the volume `data` then holds."""
        return any(DATA_DIR in value for value in self.references.values())


@dataclass(frozen=True)
class CodeFolder:
    """What the folder of the code holds, asked for by those who read the script."""

    load: Load = lambda name: None
    has_path: Callable[[str], bool] = lambda path: False
    """Whether a path, seen from the folder of the code, is there, and so in the image."""
    find_below: Callable[[str], str] = lambda name: ""
    """Name of a module → the folder in the code that holds it, where the script does not find it by itself."""
    listed: frozenset[str] | None = None
    """The packages that the lists in it name, in the form in which names are compared; None where none was read."""

    def has_module(self, name: str) -> bool:
        """Tell whether a module or package of that name is part of the code."""
        return bool(self.load(name) or self.find_below(name)) or self.has_path(name)


def read_script(
    content: bytes | str, file: str, name: str = "__main__", folder: CodeFolder | None = None, strategy: str = ""
) -> ScriptFacts:
    """Read a script, and the modules of its code that it imports.

    `file` is its name for messages, `name` the one it has as a module; `strategy` overrides what it shows.

    Raises:
        ToolError: it is not Python, or trains with another framework than TensorFlow.
    """
    folder = folder or CodeFolder()
    modules = read_modules(name, file, content, folder.load)
    refuse_other_frameworks(modules)
    sources = [(module, declaration) for module in modules for declaration in _find_declarations(module)]
    declarations = mark_uses([declaration for _, declaration in sources], modules)
    found = list(zip((module for module, _ in sources), declarations, strict=True))
    kinds, places = folder_kinds(declarations), fill_places(declarations)
    is_alone = strategy in ("", "single") and _is_alone(modules, declarations, places)
    sorting = _Sorting(folder, is_alone, is_one_process=strategy in _ONE_PROCESS)
    for (module, declaration), kind, place in zip(found, kinds, places, strict=True):
        sorting.add(module.file, declaration, kind, place)
    notes = list(sorting.notes())
    shown, mentioned = _find_strategy(modules, sorting.references, declarations)
    if len(mentioned) > 1 and not strategy:
        notes.append(f"{file} mentions {', '.join(mentioned)}: taken for {shown}; --strategy overrides it")
    notes += _find_missing_roles(found, strategy or shown)
    notes += _find_misplaced(modules, folder)
    notes += _find_beside(modules, PurePosixPath(*name.split(".")[:-1]), folder)
    if folder.listed is not None:
        imported = {name for module in modules for name, _ in plain_imports(module.tree)}
        own = {name for name in imported if folder.has_module(name)}
        notes += find_foreign_packages(modules, own, folder.listed)
    obstacles = list(find_obstacles(modules, strategy or shown))
    notes += [*obstacles, *find_cautions(modules, bool(found))]
    return ScriptFacts(
        tuple(sorting.flags.values()),
        sorting.references,
        strategy or shown,
        tuple(notes),
        tuple(sorting.required),
        "".join(find_fire_command(module.tree) for module in modules),
        any(map(_LACKING.search, notes)),
        bool(obstacles),
    )


@dataclass
class _Sorting:
    """The flags of a program: hyperparameters, what the command fills in, and what the user should know of them."""

    folder: CodeFolder
    is_alone: bool
    """Whether the program knows of no other tasks."""
    is_one_process: bool
    """Whether it is to run as one task, which has no place to be told."""
    flags: dict[str, Flag] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    told: list[tuple[str, str, str]] = field(default_factory=list)
    """The place of a flag, its option, and what is told of it."""

    def notes(self) -> Iterator[str]:
        """Yield one note for all flags of which the same is told."""
        for says in dict.fromkeys(says for _, _, says in self.told):
            (where, option), *others = [(place, flag) for place, flag, other in self.told if other == says]
            also = f" (also {', '.join(dict.fromkeys(flag for _, flag in others))})" if others else ""
            yield f"{where}: {option} {says}{also}"

    def add(self, file: str, declaration: Declaration, kind: str, place: str | None) -> None:
        """Sort one flag; `kind` is what its folder holds, `place` what `fill_place` says of it."""
        option = declaration.option
        if to_camel_case(option) in self.flags or option in self.references:
            says = "" if option in self.references else _SAME_NAME
        elif place and self.is_one_process and not declaration.is_required:
            says = ""  # The program's own default is right; hosts would be empty.
        elif place:
            self.references[option], says = place, ""
        elif place is not None and not (self.is_alone and may_be_size(declaration)):
            says = _leave(declaration, explain_unfilled(declaration))
        elif declaration.kind == "string" and is_secret_name(option):
            says = _leave(declaration, _SECRET % option)
        elif self._is_filled(declaration, kind):
            self.references[option] = fill_folder(declaration, kind, self.references.values())
            says = _READS_DATA if kind == DATA else ""
        else:
            says = self._add_hyperparameter(declaration, kind)
        if says:
            self.told.append((f"{file}:{declaration.line}", option, says))

    def _is_filled(self, declaration: Declaration, kind: str) -> bool:
        """Tell whether the command fills in the folder of a flag."""
        # Where two flags name a folder of logs, a program may refuse both together.
        is_second_log = kind == LOGS and declaration.default is None and LOG_FOLDER in self.references.values()
        is_second_log = is_second_log and not names_profile(declaration.option)
        is_shipped = kind == DATA and self._is_shipped(declaration.default)
        if not kind or is_shipped or is_second_log or not declaration.is_readable:
            return False
        return kind != DATA or not makes_data(declaration)

    def _add_hyperparameter(self, declaration: Declaration, kind: str) -> str:
        """Add a flag to the hyperparameters, and return what is told of it."""
        name = to_camel_case(declaration.option)
        try:
            flag = declaration.read()
        except NotReadableError as error:
            return _leave(declaration, str(error))
        default = flag.hyperparameter.default
        if holds_login(str(default)):
            return _leave(declaration, _SECRET % declaration.option)
        self.flags[name] = flag
        if declaration.is_required and (default in (None, "") or flag.form == "switch"):
            self.required.append(name)
            return f"is required: give hyperparameters.{name} a default in the spec, or set it"
        if kind == DATA and makes_data(declaration):
            return _MAKES_DATA % name
        if names_folder(declaration) and not self._is_shipped(default):
            return f"is {default!r} by default: {_PATH}"
        return ""

    def _is_shipped(self, default: object) -> bool:
        return isinstance(default, (str, PurePosixPath)) and self.folder.has_path(str(default))


def _find_missing_roles(found: list[tuple[Module, Declaration]], strategy: str) -> Iterator[str]:
    """Yield notes on flags that refuse the role of some pods of the strategy."""
    for module, flag in found:
        missing = [role for role in STRATEGIES[strategy].required if role not in flag.choices]
        if flag.choices and missing and strategy not in _ONE_PROCESS and fill_place(flag) == TASK_TYPE:
            yield (
                f"{module.file}:{flag.line}: {flag.option} takes {', '.join(flag.choices)}, and {strategy} also starts "
                f"{', '.join(missing)}: let it accept that, or choose another --strategy"
            )


def _find_misplaced(modules: tuple[Module, ...], folder: CodeFolder) -> Iterator[str]:
    """Yield a note on imports that work only where the caller has put a folder of the code on Python's path."""
    if any("sys.path" in ast.unparse(module.tree) for module in modules):
        return
    for module in modules:
        for name, _ in imported_names(module.tree, module.package):
            below = folder.find_below(name.partition(".")[0])
            if below:
                yield f"{module.file} imports {name}, which is in {below}/: set env PYTHONPATH: {below} in the spec"
                return


def _find_beside(modules: tuple[Module, ...], place: PurePosixPath, folder: CodeFolder) -> Iterator[str]:
    """Yield notes on files beside a script in `place` that the program names as if it were started there."""
    if place == PurePosixPath() or any("__file__" in ast.unparse(module.tree) for module in modules):
        return
    for module in modules:
        calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
        # What joins paths may put a folder in front of the file.
        named = [text for call in calls if "join" not in called_name(call) for text in call.args]
        for node in named:
            path = node.value if isinstance(node, ast.Constant) else None
            if isinstance(path, str) and PurePosixPath(path).suffix and not folder.has_path(path):
                found = str(place / path)
                if folder.has_path(found):
                    where = f"{module.file}:{node.lineno}"
                    yield f"{where}: {path!r} is not found: the program starts in the code folder, so write {found!r}"


def _find_declarations(module: Module) -> Iterator[Declaration]:
    found = [
        *find_argparse(module.tree, module.constants, PurePosixPath(module.file).name),
        *find_absl(module.tree, module.constants),
        *find_click(module.tree, module.constants),
        *find_fire(module.tree, module.constants),
        *find_settings(module.tree, module.constants),
        *find_environment_reads(module.tree, module.constants),
    ]
    yield from sorted(found, key=lambda declaration: declaration.line)


def _is_alone(modules: tuple[Module, ...], declarations: list[Declaration], places: list[str | None]) -> bool:
    """Tell whether nothing in the program shows that it is one of several tasks."""
    is_placed = any(
        place is not None and not may_be_size(flag) for flag, place in zip(declarations, places, strict=True)
    )
    is_single = _find_strategy(modules, {}, [])[0] in ("single", "mirrored")
    return is_single and not is_placed and not any(PLACE.search(ast.unparse(module.tree)) for module in modules)


def _leave(declaration: Declaration, reason: str) -> str:
    says = f"is left to the script: {reason}"
    return f"{says}; {_REQUIRED}" if declaration.is_required else says


def _find_strategy(
    modules: tuple[Module, ...], references: Mapping[str, str], declarations: list[Declaration]
) -> tuple[str, tuple[str, ...]]:
    """Return the strategy that the names in the program show, and those of tf.distribute that it mentions."""
    nodes = [node for module in modules for node in ast.walk(module.tree)]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    used |= {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {alias.name for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
    shown = tuple(dict.fromkeys(strategy for name, strategy in _STRATEGIES.items() if name in used))
    distribute = tuple(strategy for strategy in shown if not strategy.startswith("between-graph"))
    filled = set(references.values())
    roles = shown_roles(declarations)
    if {"chief", "ps"} <= roles and not shown:
        return "parameter-server", ()
    if (PS_HOSTS in filled or "ps" in roles) and "parameter-server" not in shown:
        return ("between-graph-sync" if "SyncReplicasOptimizer" in used else "between-graph-async"), ()
    if (WORKER_HOSTS in filled or "worker" in roles) and not shown:
        return "multi-worker-mirrored", ()
    return (shown[0] if shown else "single"), distribute
