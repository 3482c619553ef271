"""What a model server's release records of the model that it serves: who promoted it, when, and from what. Pure.

It is the value `promotion` of the chart. Each revision of Helm has its own, so the history is that of Helm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainchart.cluster.helm_record import HelmRelease
from trainchart.cluster.snapshot import section

VALUE = "promotion"
_DESCRIPTION_LIMIT = 250
"""Characters that Helm takes."""


@dataclass(frozen=True)
class Model:
    """What a server serves: the values of the section model that pin it."""

    version: int = 0
    content: str = ""
    claim: str = ""
    path: str = ""

    def __str__(self) -> str:
        return f"version {self.version}"


@dataclass(frozen=True)
class Source:
    """What a version is from: a release, its run, and what is known of them."""

    release: str
    run: str = ""
    step: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    image: str = ""
    """That it was trained with."""
    chart: str = ""
    """NAME-VERSION."""


@dataclass(frozen=True)
class Promotion:
    """One promotion."""

    at: str
    """UTC, as in 2026-11-28T18:40:00Z."""
    by: str
    """As the API server knows the user."""
    model: Model
    source: Source
    gates: Sequence[str] = ()
    tool: str = ""
    """Version of trainchart."""


@dataclass(frozen=True)
class Takeback:
    """A model that was taken back, whereupon this revision brought back an earlier one."""

    at: str
    by: str
    revision: int
    """Of the model that was taken back."""
    version: int
    promoted_at: str = ""
    """When that was promoted; empty where it was not."""
    why: str = ""


@dataclass(frozen=True)
class Record:
    """What one revision holds."""

    promotion: Promotion | None = None
    """None where the model was not promoted."""
    takeback: Takeback | None = None


NONE = Record()


def read_model(values: Mapping[str, Any]) -> Model:
    """Return the model that the values of a release serve."""
    model = section(values, "model")
    return Model(
        _whole(model.get("version")) or 0, *(str(model.get(key) or "") for key in ("content", "claim", "path"))
    )


def read_record(release: HelmRelease) -> Record:
    """Return what a revision records about the model that it serves.

    A record of another model is an earlier one, which an upgrade by hand has kept, so it says nothing.
    """
    record = parse_record(release.values.get(VALUE))
    is_own = record.promotion is not None and record.promotion.model == read_model(release.values)
    return record if is_own or record.promotion is None else Record(takeback=record.takeback)


def dump_record(record: Record) -> dict[str, Any]:
    """Return a record as the value of a chart, without what is empty."""
    body: dict[str, Any] = {}
    if record.promotion is not None:
        promotion, model, source = record.promotion, record.promotion.model, record.promotion.source
        body = {
            "at": promotion.at,
            "by": promotion.by,
            "trainchart": promotion.tool,
            "gates": list(promotion.gates),
            "model": {
                "version": model.version,
                "content": model.content,
                "claim": model.claim,
                "path": model.path,
            },
            "from": _drop_empty(
                {
                    "release": source.release,
                    "run": source.run,
                    "step": source.step,
                    "chart": source.chart,
                    "image": source.image,
                    "metrics": {name: value for name, value in source.metrics.items() if math.isfinite(value)},
                }
            ),
        }
    if record.takeback is not None:
        takeback = record.takeback
        body["rolledBack"] = _drop_empty(
            {
                "at": takeback.at,
                "by": takeback.by,
                "revision": takeback.revision,
                "version": takeback.version,
                "promotedAt": takeback.promoted_at,
                "why": takeback.why,
            }
        )
    return _drop_empty(body)


def parse_record(value: Any) -> Record:
    """Return the record that a value holds, as far as it makes sense: anyone who may upgrade can write there."""
    if not isinstance(value, Mapping):
        return NONE
    promotion = takeback = None
    model, source = section(value, "model"), section(value, "from")
    if model and source:
        metrics = {
            str(name): float(number) for name, number in section(source, "metrics").items() if _is_number(number)
        }
        gates = value.get("gates")
        promotion = Promotion(
            _text(value, "at"),
            _text(value, "by"),
            read_model({"model": model}),
            Source(
                _text(source, "release"),
                _text(source, "run"),
                _whole(source.get("step")),
                metrics,
                _text(source, "image"),
                _text(source, "chart"),
            ),
            tuple(map(str, gates)) if isinstance(gates, list) else (),
            _text(value, "trainchart"),
        )
    back = section(value, "rolledBack")
    if back:
        takeback = Takeback(
            _text(back, "at"),
            _text(back, "by"),
            _whole(back.get("revision")) or 0,
            _whole(back.get("version")) or 0,
            _text(back, "promotedAt"),
            _text(back, "why"),
        )
    return Record(promotion, takeback)


def describe(record: Record) -> str:
    """Return what Helm's history says of a revision that a promotion, or its end, has made."""
    words = "trainchart promote"
    if record.takeback is not None:
        why = f": {record.takeback.why}" if record.takeback.why else ""
        words += f": rolled back version {record.takeback.version} of revision {record.takeback.revision}{why}"
    elif record.promotion is not None:
        source = record.promotion.source
        words += f": {source.release} as {record.promotion.model}"
    words = " ".join(words.split())
    return words if len(words) <= _DESCRIPTION_LIMIT else f"{words[: _DESCRIPTION_LIMIT - 1]}…"


def _drop_empty(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if value not in ("", None, {}, [])}


def _text(body: Mapping[str, Any], key: str) -> str:
    return str(body.get(key) or "")


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _whole(value: Any) -> int | None:
    """Return a whole number, which Helm may have made a float of."""
    return int(value) if _is_number(value) and int(value) == value else None
