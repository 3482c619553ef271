"""The promotions of a model server, and what it would go back to, from the revisions that Helm keeps. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.cluster.helm_record import DEPLOYED, HelmRelease
from trainchart.errors import NotFound
from trainchart.promotion.record import Model, Promotion, Record, Source, Takeback, dump_record, read_model, read_record

SERVING = "serving"
REPLACED = "replaced"
ROLLED_BACK = "rolled back"
FAILED = "failed"
_SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Entry:
    """One promotion, and what became of it."""

    revision: int
    """The first that had it."""
    promotion: Promotion
    state: str
    why: str = ""
    """Why it was rolled back."""


def find_installed(revisions: Sequence[HelmRelease]) -> HelmRelease | None:
    """Return the revision that is installed; None where there is none."""
    deployed = [each for each in revisions if each.status == DEPLOYED]
    return max(deployed, key=lambda each: each.revision, default=None)


def list_promotions(revisions: Sequence[HelmRelease]) -> list[Entry]:
    """Return the promotions that the revisions record, the newest first."""
    ordered = sorted(revisions, key=lambda each: each.revision)
    records = [(each, read_record(each)) for each in ordered]
    installed = find_installed(ordered)
    serving = read_record(installed).promotion if installed is not None else None
    taken_back = dict(_list_takebacks(ordered))
    found: dict[tuple[str, Model], Entry] = {}
    for each, record in records:
        promotion = record.promotion
        if promotion is None or _key(promotion) in found:
            continue
        takeback = taken_back.get(_key(promotion))
        if serving is not None and _key(promotion) == _key(serving):
            state, why = SERVING, ""
        elif takeback is not None:
            state, why = ROLLED_BACK, takeback.why
        else:
            state, why = (FAILED, each.description) if each.status == "failed" else (REPLACED, "")
        found[_key(promotion)] = Entry(each.revision, promotion, state, why)
    return sorted(found.values(), key=lambda entry: entry.revision, reverse=True)


def find_earlier(revisions: Sequence[HelmRelease]) -> HelmRelease:
    """Return the newest earlier revision with another model that was not taken back.

    Raises:
        NotFound: there is none.
    """
    installed = find_installed(revisions)
    assert installed is not None, "who looks for an earlier revision knows the installed one"
    taken_back = dict(_list_takebacks(revisions))
    bad = {each.revision for each in revisions if (key := _key_of(each)) and key in taken_back}
    # A model that was not promoted is known by the revision that had it.
    bad |= {takeback.revision for takeback in taken_back.values()}
    models = {read_model(each.values) for each in revisions if each.revision in bad} | {read_model(installed.values)}
    for each in sorted(revisions, key=lambda each: each.revision, reverse=True):
        is_used = each.revision < installed.revision and each.status in (_SUPERSEDED, DEPLOYED)
        if is_used and read_model(each.values) not in models:
            return each
    raise NotFound(
        f"{installed.name} has no earlier model to roll back to among the {len(revisions)} revisions that Helm keeps",
        hint=f"see: helm history {installed.name}; promote a release instead: trainchart promote RELEASE --to "
        f"{installed.name}",
    )


def describe_entry(entry: Entry) -> dict[str, Any]:
    """Return an entry as a JSON document."""
    body = dump_record(Record(entry.promotion))
    return {"revision": entry.revision, "state": entry.state, "why": entry.why or None, **body}


def describe_origin(source: Source) -> str:
    """Return the release that a model is from, with the step."""
    return source.release if source.step is None else f"{source.release} step {source.step}"


def describe_metrics(source: Source) -> str:
    """Return the metrics that a model was promoted with; empty for none."""
    return " ".join(f"{name}={value:.4g}" for name, value in sorted(source.metrics.items()))


def _list_takebacks(revisions: Sequence[HelmRelease]) -> Iterator[tuple[tuple[str, Model], Takeback]]:
    by_number = {each.revision: each for each in revisions}
    for each in sorted(revisions, key=lambda each: each.revision):
        takeback = read_record(each).takeback
        if takeback is None:
            continue
        origin = by_number.get(takeback.revision)
        model = read_model(origin.values) if origin is not None else Model(takeback.version)
        yield (takeback.promoted_at, model), takeback


def _key(promotion: Promotion) -> tuple[str, Model]:
    return promotion.at, promotion.model


def _key_of(each: HelmRelease) -> tuple[str, Model] | None:
    promotion = read_record(each).promotion
    return None if promotion is None else _key(promotion)
