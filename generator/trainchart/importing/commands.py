"""The program of a container, as `code.command`: its place in the cluster and its secrets come from elsewhere. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from trainchart.importing.environment import refer_to_secret, tell_secret
from trainchart.importing.ledger import Ledger, Place
from trainchart.importing.shell import SHELLS, ShellProgram, fill_variables, find_script, find_variables, read_script
from trainchart.scaffold.flag import Declaration, refuse, to_camel_case
from trainchart.scaffold.place_flags import explain_unfilled, fill_place
from trainchart.secret_names import is_secret_name
from trainchart_runtime import contract
from trainchart_runtime.cluster import ROLES

UNKNOWN_PROGRAM = ("python", "/replace/with/the/program/of/the/image.py")
"""Stands for the entrypoint of an image, which only the image knows."""
_PROGRAM = re.compile(r"python[0-9.]*|env|exec|" + "|".join(SHELLS) + r"|.*/.+|.+\.(sh|py)")
_PLACE_VALUE = re.compile(r"[0-9]+|[\w.-]+:[0-9]+(,[\w.-]+:[0-9]+)*|" + "|".join(ROLES) + r"|master|.*\$.*")
_TF_CONFIG = re.compile(r"TF_CONFIG\s*=")


@dataclass
class RoleCommand:
    """What one role runs."""

    words: list[str]
    folder: str = ""
    env: dict[str, Any] = field(default_factory=dict)
    """Variables beside the container's own."""
    is_known: bool = True
    """Whether the input says what the program is."""
    has_place_flags: bool = False
    """Whether flags tell it its place in the cluster."""


def read_command(
    container: Mapping[str, Any], place: Place, env: Mapping[str, Any], model: str, ledger: Ledger
) -> RoleCommand:
    """Return the program of a container; `env` is what its variables become."""
    command = ledger.texts(container.get("command"), (*place, "command"))
    args = ledger.texts(container.get("args"), (*place, "args"))
    is_known = bool(command) or bool(args and _PROGRAM.fullmatch(args[0]))
    found = RoleCommand([*command, *args], is_known=is_known)
    if not is_known:
        found.words = [*UNKNOWN_PROGRAM, *args]
    for key in ("command", "args"):
        if container.get(key):
            ledger.carry((*place, key), "code.command")
    script = find_script(found.words)
    if script is not None:
        _take_apart(script, found, (*place, "command" if command else "args"), env, model, ledger)
    _fill_places(found, ledger)
    _hide_secrets(found, place, model, ledger)
    return found


def _take_apart(
    script: str, found: RoleCommand, place: Place, env: Mapping[str, Any], model: str, ledger: Ledger
) -> None:
    """Replace a shell and its script by the program that it starts, where that is all it does."""
    program = read_script(script)
    known = {*env, *contract.PROGRAM_VARIABLES}
    if program is not None and (words := _resolve(program, known, found)) is not None:
        found.words, found.folder = words, program.folder
        for name in filter(is_secret_name, found.env):
            found.env[name] = refer_to_secret(model, name)
            ledger.leave(place, f"the value of {name} looks like a secret", tell_secret(model, name))
        if "TF_CONFIG" in program.variables:
            ledger.carry(place, "the launcher, which sets TF_CONFIG in every pod")
        return
    if _TF_CONFIG.search(script):
        ledger.leave(
            place,
            "the shell script is kept, and sets TF_CONFIG itself, so its tasks do not find those of the run",
            "remove that from code.command: the launcher sets TF_CONFIG, PS_HOSTS, WORKER_HOSTS, TASK_TYPE, TASK_INDEX",
        )


def _resolve(program: ShellProgram, known: set[str], found: RoleCommand) -> list[str] | None:
    """Return the program's words without the shell's variables; None where one of them needs the shell."""
    constants = {
        name: value.strip("'\"") for name, value in program.variables.items() if not re.search(r"[$`\\]", value)
    }
    words: list[str] = []
    given = list(program.words)
    for number, word in enumerate(given):
        names = find_variables(word)
        option = _option_of(given, number)
        if all(name in known or name in constants for name in names):
            words.append(fill_variables(word))
        elif option and _place_of(option, word.partition("=")[2] if word.startswith("-") else word):
            words.append(word)
        else:
            return None
    found.env |= {name: value for name, value in constants.items() if name not in known}
    return words


def _option_of(words: list[str], number: int) -> str:
    """Return the flag that the word at `number` gives a value to; empty where it gives none."""
    word = words[number]
    if re.match(r"--?[A-Za-z][\w.-]*=", word):
        return word.partition("=")[0]
    before = words[number - 1] if number else ""
    return before if re.fullmatch(r"--[A-Za-z][\w.-]*", before) and not word.startswith("--") else ""


def _declare(option: str, value: str) -> Declaration:
    """Return a flag of the command as a program that has such a flag would declare it."""
    kind: Any = "integer" if re.fullmatch(r"-?[0-9]+", value) else "string"
    return Declaration(option, 0, lambda: refuse(""), kind=kind, default=value if value in ROLES else None)


def _place_of(option: str, value: str) -> str:
    """Return what the launcher fills in for a flag that tells a pod its place; empty for other flags."""
    filled = fill_place(_declare(option, value)) or ""
    return filled if _PLACE_VALUE.fullmatch(value) else ""


def _fill_places(found: RoleCommand, ledger: Ledger) -> None:
    """Let the launcher fill in hosts, task type and task index; a lone number may be anything."""
    for number, word in enumerate(found.words):
        option = _option_of(found.words, number)
        is_joined = word.startswith(f"{option}=") if option else False
        value = word.partition("=")[2] if is_joined else word
        filled = _place_of(option, value) if option else ""
        if filled and filled != value:
            found.words[number] = f"{option}={filled}" if is_joined else filled
            found.has_place_flags = True
            ledger.note(f"{option} is {filled}, which the launcher fills in")
        elif option and not filled and fill_place(_declare(option, value)) == "":
            ledger.note(f"{option} keeps its value: {explain_unfilled(_declare(option, value))}")


def _hide_secrets(found: RoleCommand, place: Place, model: str, ledger: Ledger) -> None:
    """Take passwords and tokens out of the command: they come from a Secret."""

    def hide(option: str) -> str:
        variable = re.sub(r"\W", "_", option.strip("-")).upper()
        found.env[variable] = refer_to_secret(model, variable)
        reason = f"the value of {option} looks like a secret, which a chart must not contain"
        ledger.leave((*place, "command"), reason, tell_secret(model, variable))
        return f"$({variable})"

    for number, word in enumerate(found.words):
        option = _option_of(found.words, number)
        if option and is_secret_name(option) and "$" not in word:
            found.words[number] = f"{option}={hide(option)}" if word.startswith(f"{option}=") else hide(option)
        elif " " in word:
            found.words[number] = re.sub(
                r"(?P<option>--?[A-Za-z][\w-]*)(?P<gap>[= ])(?P<value>[^\s$'\"-][^\s$'\";&|]*)",
                lambda match: (
                    f"{match['option']}{match['gap']}{hide(match['option'])}"
                    if is_secret_name(match["option"])
                    else match[0]
                ),
                word,
            )


def is_python_file(word: str) -> bool:
    """Tell whether a word of a command names a script."""
    return PurePosixPath(word).suffix == ".py"


_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?([eE]-?[0-9]{1,2})?")


def lift_hyperparameters(commands: list[list[str]]) -> dict[str, Any]:
    """Make hyperparameters of numbers that all commands give to the same flag, and refer to them in the commands."""
    values: dict[str, set[str]] = {}
    for words in commands:
        for number, word in enumerate(words):
            option = _option_of(words, number)
            value = word.removeprefix(f"{option}=")
            if re.match(r"--[A-Za-z]", option) and not _COUNT.search(option) and _NUMBER.fullmatch(value):
                values.setdefault(option, set()).add(value)
            elif option:
                values.setdefault(option, set()).add("")
    names: dict[str, set[str]] = {}
    for option in values:
        names.setdefault(to_camel_case(option), set()).add(option)
    found: dict[str, Any] = {}
    for option, given in values.items():
        name, value = to_camel_case(option), next(iter(given))
        is_plain = len(given) == 1 and value and len(names[name]) == 1 and re.fullmatch(r"[a-z][A-Za-z0-9]*", name)
        if is_plain and _is_exact(value):
            is_whole = re.fullmatch(r"-?[0-9]+", value)
            found[name] = {
                "type": "integer" if is_whole else "number",
                "default": int(value) if is_whole else float(value),
            }
            for words in commands:
                _refer(words, option, f"$({contract.hyperparameter_variable(name)})")
    return found


_COUNT = re.compile(r"gpus?$|workers?$|replicas?$|hosts?$|ports?$")
"""What the spec sets for roles, and no experiment by itself."""


def _is_exact(value: str) -> bool:
    return abs(float(value)) < 2**53


def _refer(words: list[str], option: str, reference: str) -> None:
    for number, word in enumerate(words):
        if _option_of(words, number) == option:
            words[number] = f"{option}={reference}" if word.startswith(f"{option}=") else reference
