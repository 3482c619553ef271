"""What a chart of the family model-server starts, read from its rendered objects. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.check.objects import list_at, mapping_at
from trainchart.errors import PlanError
from trainchart.helm.rendering import Rendering

FAMILY = "model-server"
_OURS = ("--model_base_path", "--version", "--content", "--host", "--port", "--rest_api_port")
"""Arguments of the server that are others on this machine."""
_SETTABLE = {
    *("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS"),
    *("TF_FORCE_GPU_ALLOW_GROWTH", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_USE_LEGACY_KERAS"),
}
"""Variables that a chart, which may be another's, sets for a program on this machine: others could run commands."""
_TARGET = re.compile(r"/models/(?P<name>[^/]+)/(?P<version>[0-9]{1,19})")
_CLAIM_FOLDER = "/source/"


@dataclass(frozen=True)
class ChartServer:
    """The server of a chart, and where its pods get the model from."""

    model_name: str
    version: int
    content: str
    claim: str
    """Empty where the model is in the image or at a URI."""
    path: str
    """Folder of the claim, or an absolute path in the image, or a URI."""
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...]


def read_chart_server(rendering: Rendering) -> ChartServer:
    """Return what the pods of a rendered chart start, without its canary. Raises PlanError for another chart."""
    pod = _find_pod(rendering)
    fetch = next(iter(_named(pod, "initContainers", "fetch")), {})
    server = next(iter(_named(pod, "containers", "server")), {})
    source, target, content = (*map(str, list_at(fetch, "args")), "", "", "")[:3]
    found = _TARGET.fullmatch(target)
    if found is None:
        raise PlanError("the chart starts no model server like those of the family model-server")
    claims = [str(mapping_at(each, "persistentVolumeClaim").get("claimName", "")) for each in list_at(pod, "volumes")]
    notes: list[str] = []
    return ChartServer(
        model_name=found["name"],
        version=int(found["version"]),
        content=content,
        claim=next(filter(None, claims), ""),
        path=source.removeprefix(_CLAIM_FOLDER),
        arguments=tuple(_choose_arguments(server, notes)),
        environment=_read_environment(server, notes),
        notes=tuple(notes),
    )


def _find_pod(rendering: Rendering) -> Mapping[str, Any]:
    for manifest in rendering.manifests:
        if manifest.kind == "Deployment" and manifest.name == rendering.release:
            return mapping_at(manifest.document, "spec", "template", "spec")
    return {}


def _named(pod: Mapping[str, Any], kind: str, name: str) -> list[Mapping[str, Any]]:
    return [each for each in list_at(pod, kind) if isinstance(each, Mapping) and each.get("name") == name]


def _choose_arguments(server: Mapping[str, Any], notes: list[str]) -> list[str]:
    given = [str(argument) for argument in list_at(server, "args")]
    if not list_at(server, "command"):
        left_out = f", without its arguments {' '.join(given)}" if given else ""
        notes.append(f"the chart starts TensorFlow Serving; here, trainchart's own server runs instead{left_out}")
        return []
    chosen, waiting = [], iter(given)
    for argument in waiting:
        flag, equals, _ = argument.partition("=")
        # The server takes dashes for underscores.
        if f"--{flag[2:].replace('-', '_')}" not in (*_OURS, "--model_name"):
            chosen.append(argument)
        elif not equals:
            next(waiting, None)  # its value
    return chosen


def _read_environment(server: Mapping[str, Any], notes: list[str]) -> dict[str, str]:
    found = {}
    for entry in list_at(server, "env"):
        name = str(mapping_at({"env": entry}, "env").get("name", ""))
        if "valueFrom" in entry:
            notes.append(f"the variable {name} keeps this machine's value: the chart takes it from a cluster object")
        elif name in _SETTABLE:
            found[name] = str(entry.get("value", ""))
        elif name not in ("MODEL_NAME", "MODEL_BASE_PATH"):
            notes.append(f"the variable {name} of the chart is left out: set it yourself if the server needs it")
    return found
