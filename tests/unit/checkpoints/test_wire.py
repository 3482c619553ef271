"""What a helper pod prints becomes the same types again, and whatever else it prints an error."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainchart.actions.support.checkpoint_folder import read_list
from trainchart.checkpoints import wire
from trainchart.checkpoints.results import Pruning, Verified
from trainchart.errors import ChecksFailed, Problem

FIXTURE = Path(__file__).parents[2] / "fixtures" / "checkpoints"


def carry(document: dict[str, Any]) -> dict[str, Any]:
    lines = list(wire.pack_lines(document))
    assert all(len(line) < 16384 for line in lines)
    found = wire.unpack_lines(["a warning of Python's", f"{wire.NOTE}reading", *lines])
    assert found is not None
    return found


def test_a_list_comes_back_as_it_was() -> None:
    found = read_list(FIXTURE)
    carried = wire.parse_list(carry(wire.dump_list(found, 40)))
    assert carried.find(40) == found.find(40) and carried.origin == found.origin
    assert [each.step for each in carried.checkpoints] == [40, 20]
    marker = carried.checkpoints[1].marker
    assert marker is not None and not marker.variables, "only of the one that was asked for"


def test_other_results_come_back_as_they_were() -> None:
    verified = Verified("f", {40: "damaged", 20: ""}, 20, has_markers=True)
    assert wire.parse_verified(carry(wire.dump_verified(verified))) == verified
    pruning = Pruning("f", [40], [5, 20], 7)
    assert wire.parse_pruning(carry(wire.dump_pruning(pruning))) == pruning


def test_an_error_comes_back_with_its_code() -> None:
    error = ChecksFailed("/v is damaged", hint="h", problems=(Problem("p", where="/v/x"),))
    found = wire.find_error(wire.rename_places(carry(wire.dump_error(error)), "/v", "claim c"))
    assert isinstance(found, ChecksFailed) and found.message == "claim c is damaged"
    assert found.problems == (Problem("p", where="claim c/x"),)


def test_a_document_of_very_many_values_is_refused() -> None:
    """A log of some kilobytes may hold it, and its objects take gigabytes."""
    with pytest.raises(ValueError, match="too many values"):
        carry({"a": [{}] * 1_000_001})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("files", {"a": 10**400}),
        ("files", {"a": -1}),
        ("files", {"a\0b": 1}),
        ("files", {"a\ud800": 1}),
        ("step", 2**63),
        ("written_at", 1e308),
        ("written_at", float("nan")),
        ("marker", {"ending": "", "files": {}, "variables": [["v", "float32", [10**4000]]]}),
    ],
)
def test_numbers_and_names_that_cannot_be_are_refused(key: str, value: object) -> None:
    document = wire.dump_list(read_list(FIXTURE), 40)
    document["checkpoints"][0][key] = value
    with pytest.raises(ValueError):
        wire.parse_list(document)


def test_what_is_not_whole_yet_is_nothing() -> None:
    lines = list(wire.pack_lines({"text": "".join(map(str, range(9000)))}))
    assert len(lines) > 3
    assert wire.unpack_lines(lines[:-1]) is None
    with pytest.raises(ValueError, match="a part of it is missing"):
        wire.unpack_lines(lines[1:])


def pack(content: bytes) -> list[str]:
    text = base64.b64encode(zlib.compress(content)).decode()
    return [f"trainchart-part {text}", f"trainchart-end {len(text)}"]


@pytest.mark.parametrize(
    "lines",
    [
        ["trainchart-part AAAA", "trainchart-end 4"],
        ["trainchart-part A", "trainchart-end 1"],
        pack(b"[]"),
        pack(b"{"),
        pack(b"[" * 100_000),
        pack(b" " * (65 * 1024 * 1024)),
    ],
    ids=["not-packed", "not-base64", "list", "cut", "deep", "bomb"],
)
def test_what_is_no_document_is_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError):
        wire.unpack_lines(lines)


@pytest.mark.parametrize("parse", [wire.parse_list, wire.parse_verified, wire.parse_pruning])
@pytest.mark.parametrize("value", [None, 7, "x", [7], {"a": 7}, [["a"]], 1e999])
def test_every_other_document_is_a_value_error(parse: Callable[[Any], Any], value: Any) -> None:
    wholes: list[dict[str, Any]] = [
        wire.dump_list(read_list(FIXTURE), None),
        wire.dump_verified(Verified("f", {40: ""}, 20, has_markers=True)),
        wire.dump_pruning(Pruning("f", [40], [5, 20], 7)),
    ]
    for whole in wholes:
        for key in whole:
            document = {**json.loads(json.dumps(whole)), key: value}
            try:
                parse(document)
            except ValueError:
                continue
