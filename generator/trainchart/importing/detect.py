"""What kind of input a text is, and its trainings. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainchart.errors import Problem, ToolError
from trainchart.importing.arena import is_arena, read_arena
from trainchart.importing.chart_values import are_chart_values, read_chart_values
from trainchart.importing.ledger import Ledger, LeftOut, Origin, Place
from trainchart.importing.statefulsets import is_training_set, read_stateful_sets
from trainchart.importing.tfjob import KIND as TFJOB
from trainchart.importing.tfjob import read_tfjob
from trainchart.importing.training import Training
from trainchart.kubernetes_yaml import PlacedObject, YamlError, parse_objects_with_lines

ACCEPTED = (
    "a TFJob, an arena submit tfjob command line, values of the chart distributed-tensorflow, or StatefulSets that run "
    "TensorFlow"
)
NODE_LIMIT = 100_000
"""Keys and values of one input: no manifest has as many."""
_OTHER_FRAMEWORKS = {
    "PyTorchJob": "PyTorch",
    "MPIJob": "MPI",
    "MXJob": "MXNet",
    "XGBoostJob": "XGBoost",
    "PaddleJob": "PaddlePaddle",
    "JAXJob": "JAX",
}


def read_trainings(text: str, file: str) -> tuple[Training, ...]:
    """Return the trainings of an input, whose kind its text shows.

    Raises:
        ToolError: it is none of the inputs that can be read, or holds no training.
    """
    if is_arena(text):
        return read_arena(text, file)
    objects = _parse(text, file)
    jobs = [(value, lines) for value, lines in objects if _kind(value) == TFJOB]
    sets = [(value, lines) for value, lines in objects if is_training_set(value.value)]
    if jobs:
        trainings = tuple(read_tfjob(value.value, Ledger(Origin(file, lines))) for value, lines in jobs)
    elif sets:
        trainings = read_stateful_sets([(value.value, lines) for value, lines in sets], file)
    elif len(objects) == 1 and are_chart_values(objects[0][0].value):
        return (read_chart_values(objects[0][0].value, Ledger(Origin(file, objects[0][1]))),)
    else:
        raise _refuse([value.value for value, _ in objects], file)
    read = {id(value) for value, _ in jobs or sets}
    trainings[0].ledger.left.extend(_leave_object(value, file) for value, _ in objects if id(value) not in read)
    return trainings


def _parse(text: str, file: str) -> list[tuple[PlacedObject, dict[Place, int]]]:
    try:
        return list(parse_objects_with_lines(text, node_limit=NODE_LIMIT))
    except YamlError as error:
        where = f"{file}:{error.line}" if error.line else file
        hint = f"expected {ACCEPTED}"
        if "{{" in text:
            hint = "it looks like a template: render it first, for example with helm template or kustomize build"
        problem = Problem(error.message, where)
        raise ToolError(f"{file} cannot be read as YAML", hint=hint, problems=(problem,)) from error


def _kind(value: PlacedObject) -> str:
    return str(value.value.get("kind") or "") if isinstance(value.value, dict) else ""


def _refuse(values: Sequence[Any], file: str) -> ToolError:
    """Return the error for an input that holds no training, with what it holds instead."""
    kinds = [str(value.get("kind") or "")[:60] for value in values if isinstance(value, dict)]
    other = next((kind for kind in kinds if kind in _OTHER_FRAMEWORKS), "")
    if other:
        return ToolError(
            f"{file} holds a {other}, which trains with {_OTHER_FRAMEWORKS[other]}",
            hint=f"trainchart trains TensorFlow programs only: expected {ACCEPTED}",
        )
    named = ", ".join(dict.fromkeys(kind for kind in kinds if kind))
    found = f"it contains {named}" if named else "it is empty" if not values else "it contains no Kubernetes object"
    return ToolError(f"{file} contains no training job that can be imported: {found}", hint=f"expected {ACCEPTED}")


def _leave_object(value: PlacedObject, file: str) -> LeftOut:
    """Return the note on an object beside the trainings."""
    kind = _kind(value) or "an object without a kind"
    metadata = value.value.get("metadata") if isinstance(value.value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    what = f"{kind} {name}" if name else kind
    if kind == "PersistentVolumeClaim":
        reason, remedy = (
            "the claim stays unchanged",
            "volumes of the spec name it with existingClaim; create it as before",
        )
    elif kind in ("Service", "PodGroup", "ConfigMap", "Secret"):
        reason, remedy = (
            "it is not part of the training",
            "the chart has its own headless Service; create what else is needed as before",
        )
    else:
        reason, remedy = "it is not part of the training", "add it to extraManifests if the release needs it"
    return LeftOut(what[:120], reason, remedy, f"{file}:{value.line}")
