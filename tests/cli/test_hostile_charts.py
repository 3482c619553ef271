"""Charts made to hang or to reach the network: every command ends, and asks nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.counting_server import count_requests
from trainchart.actions.support.rendered_version import values_sets
from trainchart.errors import ToolError

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
SCHEMA = {"type": "object", "properties": {"roles": {"type": "object"}}}


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainchart", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """Give the address of a server, and what it was asked for."""
    with count_requests() as served:
        yield served


@pytest.mark.parametrize(
    "form",
    ["ref", "base", "dialect", "const", "enum", "fragment", "relative", "ignored-id", "old-id", "linked", "digits"],
)
def test_no_schema_makes_helm_ask_the_network(plain_chart: Path, asked: tuple[str, list[str]], form: str) -> None:
    address, seen = asked
    odd = {
        "ref": {"properties": {"x": {"$ref": f"{address}/x.json"}}},
        "base": {"$id": f"{address}/a.json", "properties": {"x": {"$ref": "x.json"}}},
        "dialect": {"$schema": f"{address}/dialect.json"},
        "const": {"properties": {"z": {"const": {"$id": f"{address}/b"}}}, "$ref": f"{address}/b"},
        "enum": {"properties": {"z": {"enum": [{"$id": f"{address}/b"}]}}, "$schema": f"{address}/b"},
        "fragment": {"properties": {"z": {"default": {"$id": f"{address}/b#"}}}, "allOf": [{"$ref": f"{address}/b"}]},
        "relative": {"$id": f"{address}/a/", "x": {"$id": "b"}, "allOf": [{"$ref": "b"}]},
        "ignored-id": {"$schema": DRAFT_7, "$id": f"{address}/b", "$ref": f"{address}/b"},
        "old-id": {"id": f"{address}/b", "allOf": [{"$ref": f"{address}/b"}]},
        "linked": {"allOf": [{"$ref": f"{address}/b"}]},
        "digits": {"default": [], "allOf": [{"$ref": f"{address}/b"}]},
    }[form]
    schema = json.dumps({**SCHEMA, **odd}).replace("[]", "9" * 5000)
    if form == "linked":
        below = plain_chart / "below"
        below.mkdir()
        (below / "Chart.yaml").write_text("apiVersion: v2\nname: below\nversion: 1.0.0\n")
        (below / "values.schema.json").write_text(schema)
        (plain_chart / "charts").mkdir()
        (plain_chart / "charts" / "below").symlink_to("../below")
    else:
        (plain_chart / "values.schema.json").write_text(schema)
    for command in (("package", plain_chart, "-d", plain_chart.parent / "out"), ("check", plain_chart)):
        done = run(*command)
        assert done.returncode in (5, 6), done.stderr
        assert " leads to " in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert seen == []


def test_references_inside_a_schema_are_followed(plain_chart: Path) -> None:
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/values.json",
        "$defs": {"x": {"type": "object"}},
        "properties": {"roles": {"$ref": "#/$defs/x"}, "y": {"$ref": "https://example.com/values.json#/$defs/x"}},
    }
    (plain_chart / "values.schema.json").write_text(json.dumps(whole))
    done = run("package", plain_chart, "-d", plain_chart.parent / "out")
    assert done.returncode == 0, done.stderr


def test_yaml_nested_deep_is_a_finding(plain_chart: Path) -> None:
    (plain_chart / "extra.yaml").write_text("a: " + "[" * 200_000 + "\n")
    done = run("check", plain_chart, "--info", "--select", "yaml-style")
    assert "more than 100 nested collections" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("values.yaml", "values.yaml: error: is too large: it holds more than"),
        ("Chart.yaml", "Chart.yaml: error: cannot be read: it holds more than"),
        ("ci/large-values.yaml", "is too large: it holds more than"),
    ],
)
def test_yaml_of_many_values_is_a_finding(plain_chart: Path, path: str, words: str) -> None:
    file = plain_chart / path
    file.parent.mkdir(exist_ok=True)
    text = file.read_text() if file.exists() else ""
    file.write_text(f"{text}large: [{'1,' * 500_000}1]\n")
    done = run("check", plain_chart)
    assert done.returncode == 6, done.stderr
    assert words in done.stdout
    assert "did not finish" not in done.stdout


def test_a_pattern_without_end_is_a_finding(plain_chart: Path) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    (plain_chart / "values.schema.json").write_text(json.dumps(schema))
    values = (plain_chart / "values.yaml").read_text()
    (plain_chart / "values.yaml").write_text(f"{values}x: {'a' * 60}b\n")
    done = run("check", plain_chart, "--select", "values-schema")
    assert done.returncode == 6, done.stderr
    assert "did not finish within" in done.stdout


def test_of_very_many_values_files_only_some_are_used(plain_chart: Path) -> None:
    (plain_chart / "ci").mkdir(exist_ok=True)
    for number in range(599):
        (plain_chart / "ci" / f"{number}-values.yaml").write_text("{}\n")
    done = run("check", plain_chart, "--select", "renders")
    assert done.returncode == 6, done.stderr
    assert "600 files ci/*-values.yaml: only the first 30 are checked" in done.stdout
    with pytest.raises(ToolError, match=r"600 files ci/\*-values.yaml, more than 30"):
        values_sets(dict.fromkeys((f"ci/{number}-values.yaml" for number in range(600)), b""))
