"""No rule falls over objects of the wrong shape: anybody's manifests may hold anything anywhere."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainchart.check.finding import Case, CheckInput, Probe
from trainchart.check.registry import RULES
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.kubernetes_yaml import parse_documents

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "parameter-server"
CHART_FILE = b"apiVersion: v2\nname: odd\nversion: 1.0.0\nannotations: {trainchart/strategy: parameter-server}\n"
ODD: tuple[Any, ...] = (
    *(None, [], {}, "x", "", 1, -1, 1.5, True, [None], ["a"], [[1]], {"a": 1}, {1: 2}),
    *({"name": [1]}, [{"name": ["x"]}], {"a": {"b": []}}),
)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = copy.deepcopy(value)


@pytest.mark.parametrize("seed", range(60))
def test_no_rule_falls_over_odd_objects(seed: int) -> None:
    chance = random.Random(seed)
    documents = parse_documents((GOLDEN / "manifests.yaml").read_text())[:-1]
    for document in documents:
        put(document, chance.choice([path for path in places(document) if path != ("kind",)]), chance.choice(ODD))
    rendering = Rendering("exp-7", "default", tuple(Manifest("templates/x.yaml", found) for found in documents), {})
    given = CheckInput(
        files={"Chart.yaml": CHART_FILE}, cases=(Case("", rendering),), probes=dict.fromkeys(Probe, rendering)
    )
    findings = run_checks(given, RULES).findings
    assert findings
    assert [found for found in findings if found.is_own_fault] == []


@pytest.mark.parametrize(
    "name",
    [
        *("Chart.yaml", "values.yaml", "values.schema.json", ".helmignore", "README.md"),
        *("ci/a-values.yaml", ".trainchart-check.yaml", "templates/a.yaml", "trainchart.lock.yaml"),
    ],
)
@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\xff\xfe", b"[1, 2]", b"{1: {2: [}", b"a: &a {b: *a}\n", b'{"properties": 1}'),
        *(b'{"$ref": "#"}', b'{"$ref": "#/x"}', b'{"$ref": "http://127.0.0.1:9/x"}', b"3", b"null", b"false"),
        *(b'{"properties": {"a": {"pattern": "[["}}}', b"[" * 1500, b"a: \x07\n", b"a: 1\n\x00", b"{1: 2, b: 3}"),
        *(b"~: 1", b"? [a]\n: 1", b"\xed\xa0\x80"),
    ],
)
def test_no_rule_falls_over_odd_files(name: str, content: bytes) -> None:
    files = {"Chart.yaml": CHART_FILE, "values.yaml": b"a: 1\n", "values.schema.json": b"{}", name: content}
    given = CheckInput(files=files, cases=(Case("", Rendering("exp-7", "default", (), {})),))
    assert [found for found in run_checks(given, RULES).findings if found.is_own_fault] == []


def test_a_schema_that_holds_itself_is_walked_once() -> None:
    schema = b'{"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}}}'
    files = {"Chart.yaml": CHART_FILE, "values.yaml": b"{}\n", "values.schema.json": schema}
    found = run_checks(CheckInput(files=files), [rule for rule in RULES if rule.id == "schema-closed"]).findings
    assert len(found) < 20
