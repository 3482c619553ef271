"""References `$(NAME)` that would reach a program as text: in env, commands and the author's own containers. Pure.

Kubernetes fills in what a container's environment holds, the launcher what it adds, both in the command. What neither
knows they leave unchanged and say nothing, so a spec that holds such a reference is refused. `$NAME` is noted: only a
shell fills it in, but a program may do so, too.
"""

from __future__ import annotations

import difflib
import graphlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from trainchart.plan.fit import Note
from trainchart.plan.impossible import Impossibility
from trainchart.spec.document import Path
from trainchart.spec.model import Hyperparameter, ModelSpec
from trainchart.spec.section import PLACEHOLDER_PATTERN, PLACEHOLDERS
from trainchart.spec.settings import EveryPodSettings, RoleSettings
from trainchart.variables import Reference, explain_text, find_references, is_of_image
from trainchart_runtime import contract

_FILLED = {
    "affinity",
    "common_annotations",
    "common_labels",
    "env_from",
    "extra_manifests",
    "extra_volumes",
    "labels",
    "pod_annotations",
    "pod_labels",
    "resource_claims",
}

_SHELL_REFERENCE = re.compile(r"(?<!\$)\$(?:(?P<plain>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\})")
_SHELLS = ("ash", "bash", "busybox", "dash", "fish", "ksh", "sh", "zsh")


def find_shell_references(spec: ModelSpec) -> Iterator[Note]:
    """Yield a note on every `$NAME` of a known variable or hyperparameter that no shell fills in, each once."""
    found: dict[Note, None] = {}
    parameters = {name: contract.hyperparameter_variable(name) for name in spec.hyperparameters}
    for role, settings in spec.roles.items():
        variables = (*contract.PROGRAM_VARIABLES, *parameters.values(), *_set_by_chart(spec, settings))
        known = parameters | {name: name for name in (*variables, *spec.env, *settings.env)}
        texts: list[tuple[Path, object]] = [(("env", name), value) for name, value in spec.env.items()]
        texts += [(("roles", role, "env", name), value) for name, value in settings.env.items()]
        sources = _find_words(spec, role, settings)
        if not any(PurePosixPath(word).name in _SHELLS for _, words in sources for word in words):
            texts += [(path, word) for path, words in sources for word in words]
        for path, text in texts:
            for match in _SHELL_REFERENCE.finditer(str(text)):
                if variable := known.get(match["plain"] or match["braced"]):
                    what = f"the program gets {match[0]} as text; write $({variable})"
                    found[Note(path, f"{'.'.join(map(str, path))}: {what}")] = None
    yield from found


def find_unfilled(spec: ModelSpec) -> Iterator[Impossibility]:
    """Yield every reference that neither Kubernetes nor the launcher could fill in, each once."""
    found: dict[tuple[Path, str], Impossibility] = {}
    for role, settings in spec.roles.items():
        for item in (
            *_environment(spec, role, settings),
            *_command(spec, role, settings),
            *_own_containers(spec, role, settings),
        ):
            found.setdefault((item.path, item.message), item)
    yield from found.values()
    sections: dict[Path, EveryPodSettings] = {("roles", role): settings for role, settings in spec.roles.items()}
    for path, section in {
        (): spec,
        ("run", "controller"): spec.run.controller,
        ("tensorboard",): spec.tensorboard,
        **sections,
    }.items():
        yield from _placeholders(path, section)


def _placeholders(path: Path, section: EveryPodSettings) -> Iterator[Impossibility]:
    """Check texts that the templates fill in themselves: they know the release and its namespace only."""
    for key, value in section.model_dump(by_alias=True, include=_FILLED).items():
        for name in sorted(set(re.findall(PLACEHOLDER_PATTERN, json.dumps(value, default=str)))):
            if name not in PLACEHOLDERS:
                yield Impossibility((*path, key), f"{name} is not known here", f"use {' or '.join(PLACEHOLDERS)}")


def _environment(spec: ModelSpec, role: str, settings: RoleSettings) -> Iterator[Impossibility]:
    env = {**spec.env, **settings.env}
    references = {name: tuple(find_references(value)) for name, value in env.items() if isinstance(value, str)}
    brings_more = bool(settings.env_from or spec.env_from)
    known = {*env, *_set_by_chart(spec, settings)}
    for name, named in references.items():
        path: Path = ("roles", role, "env", name) if name in settings.env else ("env", name)
        for reference in named:
            if reference.name == name and not reference.mark and not brings_more:
                yield Impossibility(path, f"{name} refers to itself: $({name})", _escape(reference))
            elif not is_known(reference, known, brings_more):
                yield Impossibility(
                    path, f"{role} has no variable {reference} for {name}", _advise(reference, spec, known - {name})
                )
    yield from _circle(role, settings, references)


def _circle(
    role: str, settings: RoleSettings, references: Mapping[str, Collection[Reference]]
) -> Iterator[Impossibility]:
    """Yield one circle of variables that refer to each other, if there is any."""
    graph = {
        name: sorted({reference.name for reference in references[name] if reference.name in references} - {name})
        for name in sorted(references)
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        names: list[str] = error.args[1][::-1]
        owner = next((name for name in names if name in settings.env), "")
        path: Path = ("roles", role, "env", owner) if owner else ("env", names[0])
        yield Impossibility(path, f"variables refer to each other in a circle: {' → '.join(names)}")


def _command(spec: ModelSpec, role: str, settings: RoleSettings) -> Iterator[Impossibility]:
    """Check the words of a role's program, which Kubernetes and then the launcher fill in."""
    brings_more = bool(settings.env_from or spec.env_from)
    container = {*spec.env, *settings.env, *_set_by_chart(spec, settings)}
    for path, words in _find_words(spec, role, settings):
        for reference in (reference for word in words for reference in find_references(word)):
            reason, hint = _refuse_word(reference, spec, container, brings_more)
            if reason:
                yield Impossibility(path, f"{'.'.join(map(str, path))}: {reason}", hint)


def _find_words(spec: ModelSpec, role: str, settings: RoleSettings) -> tuple[tuple[Path, list[str]], ...]:
    """Return command and arguments of a role, each with its place in the spec."""
    own: Path = ("roles", role)
    return (
        ((*own, "command"), settings.command) if settings.command else (("code", "command"), spec.code.command),
        ((*own, "args"), settings.args) if settings.args else (("args",), spec.args),
    )


def _refuse_word(
    reference: Reference, spec: ModelSpec, container: Collection[str], brings_more: bool
) -> tuple[str, str]:
    """Return why a reference in the command is wrong, and a hint; empty where it is not."""
    name, shown = reference.name, f"$({reference})"
    hyperparameters = {contract.hyperparameter_variable(key): value for key, value in spec.hyperparameters.items()}
    if name in hyperparameters:
        return _refuse_mark(reference, hyperparameters[name])
    if name in contract.PROGRAM_VARIABLES or (name in container and not reference.mark):
        return "", ""
    if name in container:
        return f"{shown} has a question mark, which only hyperparameters may have", f"write $({name})"
    close = "" if is_of_image(name) else _closest(name, {*contract.PROGRAM_VARIABLES, *hyperparameters, *container})
    is_ours = name.startswith("TRAINCHART_")
    if is_ours or (close and name.isupper() and not brings_more and not name.startswith("KUBERNETES_")):
        known = ", ".join(sorted(hyperparameters)) if name.startswith(contract.HYPERPARAMETER_PREFIX) else ""
        listed = f"the hyperparameters are {known}" if known else _escape(reference)
        hint = f"did you mean $({close}{reference.mark})?" if close else _add_volume(name) or listed
        return f"nothing fills in {shown}", hint
    return "", ""  # a command of a shell, or an image's variable


def _refuse_mark(reference: Reference, parameter: Hyperparameter) -> tuple[str, str]:
    if reference.mark in ("+", "-") and parameter.type != "boolean":
        return f"$({reference}) is for a boolean, and this is of type {parameter.type}", f"write $({reference.name})"
    if not reference.mark and parameter.default is None:
        hint = f"write $({reference.name}?), which omits the argument, or give the hyperparameter a default"
        return f"$({reference}) has no value until an experiment sets one", hint
    return "", ""


def _own_containers(spec: ModelSpec, role: str, settings: RoleSettings) -> Iterator[Impossibility]:
    """Check the author's own containers: they have no variables but those in their own env."""
    for key, own, shared in (
        ("initContainers", settings.init_containers, spec.init_containers),
        ("extraContainers", settings.extra_containers, spec.extra_containers),
    ):
        path: Path = ("roles", role, key) if own else (key,)
        for container in (entry for entry in own or shared if isinstance(entry, dict)):
            for reference in _unfilled_of_ours(container):
                yield Impossibility(
                    path,
                    f"{'.'.join(map(str, path))}: nothing fills in $({reference}) of {container.get('name')}",
                    f"your own container has only its own env: set {reference.name} there",
                )


def _unfilled_of_ours(container: Mapping[str, Any]) -> Iterator[Reference]:
    env = [entry for entry in container.get("env") or [] if isinstance(entry, dict)]
    names = {entry.get("name") for entry in env}
    texts = [*(container.get("command") or []), *(container.get("args") or []), *(entry.get("value") for entry in env)]
    for reference in (reference for text in texts if isinstance(text, str) for reference in find_references(text)):
        if reference.name.startswith("TRAINCHART_") and str(reference) not in names and not container.get("envFrom"):
            yield reference


def is_known(reference: Reference, known: Collection[str], brings_more: bool) -> bool:
    """Tell whether Kubernetes can fill `reference` in; where a whole Secret is taken, any name may be in it."""
    if reference.mark:
        return False
    is_ours = reference.name.startswith("TRAINCHART_")
    return reference.name in known or reference.name.startswith("KUBERNETES_") or (brings_more and not is_ours)


def _set_by_chart(spec: ModelSpec, settings: RoleSettings) -> Iterator[str]:
    """Yield the variables that stand before the user's own in the training container."""
    yield from contract.CONTAINER_VARIABLES
    yield from (contract.volume_variable(name) for name in spec.volumes)
    if spec.log_volume:
        yield contract.TENSORBOARD_DIR
    if not settings.gpus:
        yield "NVIDIA_VISIBLE_DEVICES"


def _advise(reference: Reference, spec: ModelSpec, known: Collection[str]) -> str:
    later = {*contract.PROGRAM_VARIABLES, *(contract.hyperparameter_variable(name) for name in spec.hyperparameters)}
    if reference.name in later:
        return f"the launcher sets {reference.name} after env is filled in: name it in the command"
    close = "" if is_of_image(reference.name) else _closest(reference.name, known)
    return f"did you mean $({close})?" if close else _add_volume(reference.name) or _escape(reference)


def _add_volume(name: str) -> str:
    """Return the hint for the variable of a volume that the spec does not have; empty for any other name."""
    match = re.fullmatch(r"TRAINCHART_([A-Z][A-Z0-9_]*)_DIR", name)
    return f"add a volume {match[1].lower().replace('_', '-')} to volumes" if match else ""


def _closest(name: str, known: Collection[str]) -> str:
    """Return the known name that was probably meant, if any; what all our names begin with does not count."""
    prefix = next(prefix for prefix in (contract.HYPERPARAMETER_PREFIX, "TRAINCHART_", "") if name.startswith(prefix))
    rests = {other.removeprefix(prefix): other for other in sorted(known) if other.startswith(prefix)}
    close = difflib.get_close_matches(name.removeprefix(prefix), rests, n=1, cutoff=0.75)
    return rests[close[0]] if close else ""


def _escape(reference: Reference) -> str:
    return (
        explain_text(reference.name)
        if is_of_image(str(reference))
        else f"write $$({reference}) for the text $({reference})"
    )
