"""References `$(NAME)` that would reach the program as text: in env, where Kubernetes fills them in. Pure.

What Kubernetes cannot fill in, it leaves as it is and says nothing, so a spec that holds such a reference is refused.
"""

from __future__ import annotations

import difflib
import graphlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from trainchart.plan.impossible import Impossibility
from trainchart.spec.document import Path
from trainchart.spec.model import ModelSpec
from trainchart.spec.settings import RoleSettings
from trainchart.variables import Reference, find_references
from trainchart_runtime import contract

_OF_LAUNCHER = (
    contract.TF_CONFIG,
    contract.STRATEGY,
    contract.EVALUATORS,
    contract.HYPERPARAMETERS,
    contract.PROGRESS_FILE,
    contract.ATTEMPT,
    contract.CLASSIC_TASK_TYPE,
    contract.CLASSIC_TASK_INDEX,
    *(role.upper() + contract.CLASSIC_HOSTS_SUFFIX for role in ("chief", "ps", "worker")),
)


def find_unfilled(spec: ModelSpec) -> Iterator[Impossibility]:
    """Yield every reference that neither Kubernetes nor the launcher could fill in, each once."""
    found: dict[tuple[Path, str], Impossibility] = {}
    for role, settings in spec.roles.items():
        for item in _environment(spec, role, settings):
            found.setdefault((item.path, item.message), item)
    yield from found.values()


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
                    path, f"{role} has no variable {reference} for {name}", _advise(reference, spec, known)
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
        yield contract.LOG_DIR
    if not settings.gpus:
        yield "NVIDIA_VISIBLE_DEVICES"


def _advise(reference: Reference, spec: ModelSpec, known: Collection[str]) -> str:
    later = {*_OF_LAUNCHER, *(contract.hyperparameter_variable(name) for name in spec.hyperparameters)}
    if reference.name in later:
        return f"the launcher sets {reference.name} after env is filled in: name it in the command"
    close = _closest(reference.name, known)
    return f"did you mean $({close})?" if close else _escape(reference)


def _closest(name: str, known: Collection[str]) -> str:
    """Return the known name that was probably meant, if any; what all our names begin with does not count."""
    prefix = next(prefix for prefix in (contract.HYPERPARAMETER_PREFIX, "TRAINCHART_", "") if name.startswith(prefix))
    rests = {other.removeprefix(prefix): other for other in sorted(known) if other.startswith(prefix)}
    close = difflib.get_close_matches(name.removeprefix(prefix), rests, n=1)
    return rests[close[0]] if close else ""


def _escape(reference: Reference) -> str:
    return f"write $$({reference}) for the text $({reference})"
