"""What a promotion changes about a model server's release, and when it is refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.cluster.helm_record import HelmRelease
from trainchart.errors import Conflict
from trainchart.promotion.record import VALUE, Model, Record, dump_record, read_model, read_record
from trainchart.serving.chart_server import FAMILY

_PINS = ("version", "content", "claim", "path")


@dataclass(frozen=True)
class FieldChange:
    """One value that changes."""

    key: str
    before: Any
    after: Any


def require_server(installed: HelmRelease, namespace: str) -> None:
    """Refuse a release that promotions cannot change.

    Raises:
        Conflict: it is not a model server, or its chart is older than promotions.
    """
    name = installed.name
    if installed.dependencies:
        raise Conflict(
            f"{name} was installed as part of the umbrella chart {installed.chart_name}, whose subcharts Helm does not "
            "keep",
            hint="set model.version, model.content and model.claim with helm upgrade",
        )
    if installed.family != FAMILY:
        what = f"of the family {installed.family}" if installed.family else "not of a chart family"
        raise Conflict(
            f"{name} is not a model server: its chart {installed.chart_name} is {what}",
            hint=f"--to names a release of the family {FAMILY}; see: helm list -n {namespace}, and docs/serving.md",
        )
    if VALUE not in installed.values:
        raise Conflict(
            f"the chart of {name}, {installed.chart_name}-{installed.chart_version}, is older than this command: it has"
            f" no value {VALUE}",
            hint="upgrade the release to a chart that was generated with this version of trainchart",
        )


def refuse_version(model: Model, installed: HelmRelease, revisions: Sequence[HelmRelease]) -> None:
    """Refuse a version that clients know with another content.

    Raises:
        Conflict: a revision, or the canary, has this version with another content.
    """
    used = {each.revision: read_model(each.values) for each in revisions}
    for revision, other in sorted(used.items(), reverse=True):
        if other.version == model.version and other.content != model.content:
            free = max(each.version for each in used.values()) + 1
            raise Conflict(
                f"revision {revision} of {installed.name} has version {model.version} with different content, "
                f"{other.content}; a version must not change",
                hint=f"give the export another version: --version {free}",
            )
    canary = _mapping(installed.values.get("canary"))
    has_version = canary.get("weight") and canary.get("version") == model.version
    if has_version and canary.get("content") != model.content:
        raise Conflict(
            f"the canary of {installed.name} has version {model.version} with different content",
            hint=f"give the export another version: --version {model.version + 1}",
        )


def change_values(installed: HelmRelease, model: Model, record: Record) -> dict[str, Any]:
    """Return the values that the user gives, with another model and its record.

    A canary that becomes the model ends.
    """
    given = dict(installed.given)
    given["model"] = {**_mapping(given.get("model")), **{key: getattr(model, key) for key in _PINS}}
    given[VALUE] = dump_record(record)
    canary = _mapping(installed.values.get("canary"))
    if canary.get("weight") and canary.get("version") == model.version:
        given["canary"] = {**_mapping(given.get("canary")), "weight": 0}
    return given


def list_changes(installed: HelmRelease, values: Mapping[str, Any]) -> list[FieldChange]:
    """Return which values become others, without the record."""
    before, after = read_model(installed.values), read_model({"model": values["model"]})
    changes = [
        FieldChange(f"model.{key}", getattr(before, key), getattr(after, key))
        for key in _PINS
        if getattr(before, key) != getattr(after, key)
    ]
    weights = [_mapping(each.get("canary")).get("weight") for each in (installed.values, values)]
    if weights[0] and weights[1] == 0:
        changes.append(FieldChange("canary.weight", *weights))
    return changes


def find_serving_metrics(installed: HelmRelease) -> Mapping[str, float] | None:
    """Return the metrics of what serves now; None where it was not promoted."""
    promotion = read_record(installed).promotion
    return None if promotion is None else promotion.source.metrics


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
