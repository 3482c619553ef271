"""What the model servers of a cluster serve, as their Deployments show it, without Helm's records. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.cluster.snapshot import Object, items_of, label, namespace_of, section
from trainchart.json_documents import parse_json
from trainchart.name_order import natural_key
from trainchart.promotion.record import NONE, Record, parse_record
from trainchart.promotion.rollout import CONTENT_ANNOTATION, VERSION_ANNOTATION, serves
from trainchart_runtime.contract import INSTANCE_LABEL

SERVING = "Serving"
ROLLING_OUT = "Rolling out"
NOT_READY = "Not ready"
STUCK = "Rollout failed"
OFF = "No pods"
_TRACK, _CANARY = "trainchart/track", "canary"
_RECORD, _MODEL, _WEIGHT = "trainchart/promotion", "trainchart/model", "trainchart/weight"


@dataclass(frozen=True)
class Track:
    """The pods of one Deployment, and the version that they serve."""

    version: str = ""
    """As the annotation says; empty where it is not known."""
    content: str = ""
    ready: int = 0
    wanted: int = 0
    phase: str = OFF


@dataclass(frozen=True)
class ServerState:
    """A model server at one moment."""

    namespace: str
    name: str
    """Of its release."""
    chart: str = ""
    """NAME-VERSION."""
    model: str = ""
    """Its name in requests."""
    stable: Track = Track()
    record: Record = NONE
    """Of the model that the stable pods serve; none where it was not promoted."""
    canary: Track | None = None
    weight: str = ""
    """Percentage of the requests that the canary answers; empty where it is not known."""

    @property
    def since(self) -> tuple[str, str]:
        """When the model came, or came back, and who did it; empty where it is not known."""
        if self.record.takeback is not None:
            return self.record.takeback.at, self.record.takeback.by
        return (self.record.promotion.at, self.record.promotion.by) if self.record.promotion else ("", "")


def read_servers(deployments: Iterable[Object]) -> list[ServerState]:
    """Return the servers that these Deployments make up, in the order of their names."""
    own: dict[tuple[str, str], dict[bool, Object]] = {}
    for each in deployments:
        place = own.setdefault((namespace_of(each), label(each, INSTANCE_LABEL)), {})
        place[label(each, _TRACK) == _CANARY] = each
    ordered = sorted(own.items(), key=lambda item: (item[0][0], natural_key(item[0][1])))
    return [_read(*place, found.get(False, {}), found.get(True)) for place, found in ordered]


def list_servers_of(servers: Sequence[ServerState], namespace: str, release: str) -> Iterator[ServerState]:
    """Yield the servers whose model is an export of a release."""
    for each in servers:
        promotion = each.record.promotion
        if promotion is not None and (each.namespace, promotion.source.release) == (namespace, release):
            yield each


def _read(namespace: str, name: str, stable: Object, canary: Object | None) -> ServerState:
    template = section(stable, "spec", "template")
    record = _read_record(section(stable, "metadata", "annotations"))
    is_own = record.promotion is not None and serves(template, record.promotion.model)
    return ServerState(
        namespace,
        name,
        label(stable, "helm.sh/chart"),
        _text(section(template, "metadata", "annotations").get(_MODEL)),
        _read_track(stable),
        record if is_own else Record(takeback=record.takeback if record.promotion is None else None),
        None if canary is None else _read_track(canary),
        "" if canary is None else _text(section(canary, "metadata", "annotations").get(_WEIGHT)),
    )


def _read_record(annotations: Mapping[str, Any]) -> Record:
    try:
        return parse_record(parse_json(_text(annotations.get(_RECORD)) or "null"))
    except ValueError:
        return NONE


def _read_track(deployment: Object) -> Track:
    spec, status = section(deployment, "spec"), section(deployment, "status")
    annotations = section(spec, "template", "metadata", "annotations")
    wanted, ready = _whole(spec.get("replicas"), 1), _whole(status.get("availableReplicas"))
    return Track(
        _text(annotations.get(VERSION_ANNOTATION)),
        _text(annotations.get(CONTENT_ANNOTATION)),
        ready,
        wanted,
        _find_phase(deployment, wanted, ready),
    )


def _find_phase(deployment: Object, wanted: int, ready: int) -> str:
    status = section(deployment, "status")
    conditions = items_of(status, "conditions")
    if not wanted:
        return OFF
    if any(each.get("reason") == "ProgressDeadlineExceeded" for each in conditions):
        return STUCK
    generation = _whole(section(deployment, "metadata").get("generation"))
    numbers = (_whole(status.get("updatedReplicas")), _whole(status.get("replicas")))
    if _whole(status.get("observedGeneration")) < generation or numbers != (wanted, wanted):
        return ROLLING_OUT if ready else NOT_READY
    return SERVING if ready >= wanted else ROLLING_OUT if ready else NOT_READY


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: Any, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
