"""The values with which a chart of the family notebook shows the volumes of releases. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.check.objects import mapping_at, mappings_at
from trainchart.checkpoints.release_volume import ReleaseVolume
from trainchart.errors import Conflict
from trainchart.publish.image_reference import parse_image_reference

FAMILY = "notebook"
PORT = 8888
"""Where JupyterLab, or TensorBoard alone, listens in the pod."""
_LONGEST_KEY = 59


@dataclass(frozen=True)
class ShownVolume:
    """A volume of a release, and how it is shown."""

    name: str
    """What the volume is of; the folder below /runs, and so the run's name in TensorBoard, is called after it."""
    volume: ReleaseVolume
    node: str
    """The only node that can mount it; "" where any can."""


def make_values(shown: Sequence[ShownVolume], image: str, *, token_secret: str = "") -> dict[str, Any]:
    """Return the values of a pod over these volumes; without a Secret for a token, of TensorBoard alone.

    An empty image leaves the chart's own. The pod goes where pods of the first release go.

    Raises:
        Conflict: no node can mount all of the volumes.
        PublishError: the image is no valid reference.
    """
    nodes = {each.node: each.name for each in shown if each.node}
    if len(nodes) > 1:
        (first, one), (second, other), *_ = nodes.items()
        raise Conflict(
            f"no node can mount the volumes of both {one} and {other}: one is in use on {first}, one on {second}",
            hint="show them one by one, or give their volumes the access mode ReadWriteMany",
        )
    template = next((each.volume.template for each in shown if each.volume.template), {})
    return {
        "jupyter": bool(token_secret),
        "tokenSecret": token_secret,
        "runs": _make_runs(shown),
        **({"image": _make_image(image, template)} if image else {}),
        **_place(mapping_at(template, "spec"), next(iter(nodes), "")),
    }


def _make_runs(shown: Sequence[ShownVolume]) -> dict[str, dict[str, str]]:
    """Return the chart's value `runs`, whose keys are part of the names of volumes, and so have no dots."""
    runs: dict[str, dict[str, str]] = {}
    for each in shown:
        plain = re.sub(r"[^a-z0-9]+", "-", each.name.lower()).strip("-") or "run"
        key, number = plain[:_LONGEST_KEY].strip("-"), 1
        while key in runs:
            number += 1
            end = f"-{number}"
            key = f"{plain[: _LONGEST_KEY - len(end)].strip('-')}{end}"
        runs[key] = _make_run(each.volume)
    return runs


def _make_run(volume: ReleaseVolume) -> dict[str, str]:
    return {"claim": volume.claim, **({"path": volume.sub_path.strip("/")} if volume.sub_path.strip("/") else {})}


def _make_image(image: str, template: Mapping[str, Any]) -> dict[str, Any]:
    reference = parse_image_reference(image)
    name = image.partition("@")[0]
    is_tagged = ":" in name.rpartition("/")[2]
    secrets = [str(each["name"]) for each in mappings_at(template, "spec", "imagePullSecrets") if each.get("name")]
    return {
        "repository": name.rpartition(":")[0] if is_tagged else name,
        "tag": reference.tag if is_tagged else "",
        "digest": reference.digest,
        "pullSecrets": secrets,
    }


def _place(spec: Mapping[str, Any], node: str) -> dict[str, Any]:
    """Return where the pod goes, and as whom: like those of the training, whose files it reads."""
    own = mapping_at(spec, "affinity", "nodeAffinity")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    pinned = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = pinned if node else own
    user = mapping_at(spec, "securityContext").get("runAsUser")
    return {
        **{key: spec[key] for key in ("nodeSelector", "tolerations") if spec.get(key)},
        **({"affinity": {"nodeAffinity": affinity}} if affinity else {}),
        **({"user": user} if isinstance(user, int) and user > 0 else {}),
    }
