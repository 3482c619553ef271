"""Charts made to hang or to reach the network: every command ends, and asks nobody."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

SCHEMA = {"type": "object", "properties": {"roles": {"type": "object"}}}


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainchart", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """Give the address of a server, and what it was asked for."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()


@pytest.mark.parametrize("form", ["ref", "base", "dialect"])
def test_no_schema_makes_helm_ask_the_network(plain_chart: Path, asked: tuple[str, list[str]], form: str) -> None:
    address, seen = asked
    odd = {
        "ref": {"properties": {"x": {"$ref": f"{address}/x.json"}}},
        "base": {"$id": f"{address}/a.json", "properties": {"x": {"$ref": "x.json"}}},
        "dialect": {"$schema": f"{address}/dialect.json"},
    }[form]
    (plain_chart / "values.schema.json").write_text(json.dumps({**SCHEMA, **odd}))
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
    assert "more than 100 collections in each other" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_pattern_without_end_is_a_finding(plain_chart: Path) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    (plain_chart / "values.schema.json").write_text(json.dumps(schema))
    values = (plain_chart / "values.yaml").read_text()
    (plain_chart / "values.yaml").write_text(f"{values}x: {'a' * 60}b\n")
    done = run("check", plain_chart, "--select", "values-schema")
    assert done.returncode == 6, done.stderr
    assert "has not come to an end within" in done.stdout
