"""Reads lists of Python packages, as pip takes them: the model's, and the one that TensorFlow comes from. Pure.

Only what decides about an image is read: names, versions, and whether there are hashes. pip reads the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainchart.errors import PlanError, Problem

REQUIREMENTS_FILE = "requirements.txt"
"""File of the code folder with the packages that the model needs beside TensorFlow."""
OWN_TENSORFLOW_FILE = "requirements-tensorflow.txt"
"""File of the code folder with another TensorFlow than ours, each package with its hashes."""
_TENSORFLOW = frozenset(
    f"{name}{flavour}" for name in ("tensorflow", "tf-nightly") for flavour in ("", "-cpu", "-gpu", "-cpu-aws")
)
"""Packages that all install the folder tensorflow/, over each other."""
_HINT = (
    f"write {OWN_TENSORFLOW_FILE} into the code folder, with uv pip compile --generate-hashes; "
    "see images in the documentation"
)
_PATH_OPTION = re.compile(r"\s*(?:-[rcef]\s*|--(?:requirement|constraint|editable|find-links)[\s=]\s*)(.+)")
"""Options of pip with a path or an address."""
_LOCAL_ADDRESS = re.compile(r"@\s*file:(?!/)(\S+)")
"""A package by its name and the address of a file beside the list."""
_ARCHIVE = re.compile(r"\.(?:whl|zip|tgz|tar(?:\.\w+)?)(?:\[.*\])?$", re.IGNORECASE)
_WHEEL = re.compile(r"/([A-Za-z0-9_.]+)-([^-/\s]+)(?:-[^-/\s]+)*\.whl\b")
"""Name and version in the address or path of a wheel."""
_NAME = re.compile(
    r"\s*+([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*+(?:\[[^\]]*\])?\s*+"
    r"(?:(\()?\s*+===?\s*+([A-Za-z0-9]+(?:[.!+_-][A-Za-z0-9]+)*)\s*+(?(2)\))\s*+(?=;|--?[A-Za-z]|$))?"
)
"""A package by its name, and its version where that is exact: alone, without wildcards."""
_ELSEWHERE = re.compile(
    r"\s*(?:[-/$]|(?:[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^\]]*\])?\s*@\s*)?(?:[A-Za-z][A-Za-z0-9+.-]*:|\$))"
)
"""What says more than a name does: options of pip, paths of the base image, addresses."""
_LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://([^\s/?#]+)@")
"""Scheme and login of an address."""
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")
"""An environment variable, as pip takes it."""


@dataclass(frozen=True)
class Requirement:
    """One package of a list."""

    name: str
    """In the form in which names are compared."""
    version: str
    """Empty where the list leaves it open, be it by a wildcard."""
    is_hashed: bool
    line: int


def decode_requirements(content: bytes, file: str) -> str:
    """Return a list as text. Raises PlanError where it is not UTF-8: what pip makes of it depends on the machine."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"{file} is not UTF-8: {error.reason} at byte {error.start}", hint="save it again") from error


def parse_requirements(text: str) -> tuple[Requirement, ...]:
    """Return the packages that a list names; options of pip, and what has no name, are left out."""
    found = []
    for line, entry in _join_lines(text):
        match = None if entry.lstrip().startswith("-") else _NAME.match(entry)
        if match:
            found.append(Requirement(_normalize(match[1]), match[3] or "", "--hash=" in entry, line))
    return tuple(found)


def require_no_logins(text: str, file: str) -> None:
    """Refuse a list with a login in an address, in comments too: the image holds the list. Raises PlanError.

    The user of an address of SSH, as git@, is no secret. A variable is refused because the build has none: it could
    only come from the base image, which is no better place for a secret.
    """
    problems = [
        Problem(_describe_login(login), f"{file}:{number}")
        for number, line in enumerate(text.splitlines(), start=1)
        for scheme, login in _LOGIN.findall(line)
        if ":" in login or not scheme.lower().endswith("ssh")
    ]
    if problems:
        raise PlanError(
            f"{file} would bring passwords or tokens into the image, where everyone who pulls it can read them",
            hint="remove them, and pass the index and its login to pip with --pip-config, which is a build secret",
            problems=tuple(problems),
        )


def require_no_files(text: str, file: str) -> None:
    """Refuse a list that leads to files beside it: pip finds none where the image is built. Raises PlanError."""
    found = [(line, path) for line, entry in _join_lines(text) if (path := _find_path(entry))]
    if found:
        raise PlanError(
            f"{file} refers to files of the code folder, but pip gets only this list",
            hint="list the packages themselves, as uv pip compile does, or their addresses; see images in the "
            "documentation",
            problems=tuple(Problem(f"names {path}", f"{file}:{line}") for line, path in found),
        )


def require_no_tensorflow(text: str) -> None:
    """Refuse a model's list with a TensorFlow in it, which pip would lay over the image's own. Raises PlanError."""
    found = [(line, name) for line, name, _ in _list_named(text) if name in _TENSORFLOW]
    if found:
        raise PlanError(
            "the model's packages would replace the TensorFlow of the image, or parts of it",
            hint=f"leave it out: framework.tensorflow and framework.flavour name it, or {OWN_TENSORFLOW_FILE}",
            problems=tuple(Problem(f"names {name}", f"{REQUIREMENTS_FILE}:{line}") for line, name in found),
        )


def require_versions(text: str) -> None:
    """Refuse a model's list that leaves a version open, or that pip cannot read. Raises PlanError.

    The image would hold what was the newest on the day of the build, under the same tag each time.
    """
    found = [
        (line, " ".join(entry.partition(" --")[0].split()))
        for line, entry in _join_lines(text)
        if not _ELSEWHERE.match(entry) and not ((match := _NAME.match(entry)) and match[3])
    ]
    if found:
        raise PlanError(
            f"{REQUIREMENTS_FILE} does not pin every package exactly",
            hint="write NAME==VERSION, as uv pip compile does, or NAME @ ADDRESS; see images in the documentation",
            problems=tuple(
                Problem(f"{shown!r} is not a package with its exact version", f"{REQUIREMENTS_FILE}:{line}")
                for line, shown in found
            ),
        )


def require_no_replacements(text: str, image: str) -> None:
    """Refuse a model's list with other versions of what the list `image` installs. Raises PlanError.

    pip would lay them over the image's, which TensorFlow was resolved with.
    """
    held: dict[str, list[str]] = {}
    for requirement in parse_requirements(image):
        held.setdefault(requirement.name, []).append(requirement.version)
    problems = [
        Problem(
            f"brings {name} {version or 'from an address'}, and the image has {' or '.join(held[name])}",
            f"{REQUIREMENTS_FILE}:{line}",
        )
        for line, name, version in _list_named(text)
        if name in held and _shorten(version) not in map(_shorten, held[name])
    ]
    if problems:
        raise PlanError(
            "the model's packages would replace some of those that TensorFlow needs",
            hint=f"leave them out: the image has them; to use different ones, add {OWN_TENSORFLOW_FILE}",
            problems=tuple(problems),
        )


def require_tensorflow(text: str, version: str, file: str) -> None:
    """Refuse a list for TensorFlow whose packages lack hashes, or that has another TensorFlow. Raises PlanError."""
    requirements = parse_requirements(text)
    bare = [requirement for requirement in requirements if not (requirement.version and requirement.is_hashed)]
    if bare:
        raise PlanError(
            f"{file} does not pin every package exactly",
            hint=_HINT,
            problems=tuple(
                Problem(f"{requirement.name} has no exact version with hashes", f"{file}:{requirement.line}")
                for requirement in bare
            ),
        )
    versions = sorted({requirement.version for requirement in requirements if requirement.name in _TENSORFLOW})
    if versions != [version]:
        raise PlanError(
            f"the model spec requires TensorFlow {version}; {file} has {' and '.join(versions) or 'none'}",
            hint=_HINT,
        )


def _list_named(text: str) -> list[tuple[int, str, str]]:
    """Return line, name and version of the packages of a list, those of wheels in addresses and paths included."""
    found = []
    names = {requirement.line: requirement for requirement in parse_requirements(text)}
    for line, entry in _join_lines(text):
        versions = {names[line].name: names[line].version} if line in names else {}
        if wheel := _WHEEL.search(entry):
            versions[_normalize(wheel[1])] = wheel[2]
        found += [(line, name, version) for name, version in versions.items()]
    return found


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _shorten(version: str) -> str:
    """Return a version without the zeros at its end, which mean nothing."""
    return re.sub(r"(\.0)+$", "", version)


def _describe_login(login: str) -> str:
    """Say what is wrong with the login of an address, without any of it but the names of variables."""
    variables = _VARIABLE.findall(login)
    if variables:
        return f"an address needs {' and '.join(variables)}, but the build has no such variable"
    return "an address contains a password or a token"


def _find_path(entry: str) -> str:
    """Return the relative path that an entry leads to; empty for packages by name, addresses, and absolute paths.

    Those may be there already: in the base image.
    """
    if local := _LOCAL_ADDRESS.search(entry):
        return local[1]
    option = _PATH_OPTION.match(entry)
    word = re.split(r"[\s;]", (option[1] if option else entry).strip(" \t\"'"))[0]
    if "://" in word or word.startswith(("/", "$", "-")):
        return ""
    return word if option or "/" in word or word.startswith(".") or _ARCHIVE.search(word) else ""


def _join_lines(text: str) -> list[tuple[int, str]]:
    """Return the entries of a list, each with the line it begins on: without comments, lines that go on joined."""
    entries: list[tuple[int, str]] = []
    goes_on = False
    for number, line in enumerate(text.splitlines(), start=1):
        is_comment = line.lstrip().startswith("#")
        # As pip does: the comment at the end of a line that goes on is one to the end of the last of them.
        body = f" {line}" if is_comment else line.removesuffix("\\")
        if goes_on:
            first, before = entries[-1]
            entries[-1] = (first, f"{before}{body}")
        else:
            entries.append((number, body))
        goes_on = line.endswith("\\") and not is_comment
    bare = [(number, re.sub(r"(^|\s)#.*$", "", entry)) for number, entry in entries]
    return [(number, entry) for number, entry in bare if entry.strip()]
