"""SARIF 2.1.0: what its schema asks for, spelled out, and file names as URIs."""

from __future__ import annotations

import re
from typing import Any

from trainchart.check.finding import Finding, Severity
from trainchart.check.registry import RULES
from trainchart.check.sarif import dump_sarif
from trainchart.check.waivers import Waived, Waiver

# The parts of sarif-schema-2.1.0.json that the log uses: properties that each object may have, and those it must.
SHAPES: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"$schema", "version", "runs"}, {"version", "runs"}),
    "run": ({"tool", "columnKind", "results"}, {"tool"}),
    "driver": ({"name", "semanticVersion", "rules"}, {"name"}),
    "rule": ({"id", "shortDescription", "helpUri", "defaultConfiguration"}, {"id"}),
    "result": ({"ruleId", "ruleIndex", "level", "message", "locations", "suppressions"}, {"message"}),
    "suppression": ({"kind", "justification"}, {"kind"}),
}
LEVELS = {"none", "note", "warning", "error"}
URI = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})*")
SEMANTIC_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")


def require(shape: str, found: dict[str, Any]) -> None:
    known, needed = SHAPES[shape]
    assert needed <= found.keys() <= known, shape


def log(chart: str, *findings: Finding, waived: tuple[Waived, ...] = ()) -> dict[str, Any]:
    return dump_sarif([(chart, findings, waived)], RULES, "1.2.0")


def uri(chart: str, path: str) -> str:
    [result] = log(chart, Finding("a", path=path, rule="labels"))["runs"][0]["results"]
    found: str = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    return found


def test_the_log_has_the_shape_of_the_schema() -> None:
    waiver = Waiver("labels", "not ours", "a.yaml", 1)
    found = log(
        "charts/mnist",
        *(Finding(f"a {severity}", path="a.yaml", line=3, severity=severity, rule="labels") for severity in Severity),
        Finding("of the whole chart", rule="renders", hint="look", values="ci/a-values.yaml"),
        waived=(Waived(Finding("waived", path="b.yaml", rule="labels"), waiver),),
    )
    require("log", found)
    assert found["version"] == "2.1.0"
    [run] = found["runs"]
    require("run", run)
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert run["tool"].keys() == {"driver"}
    driver = run["tool"]["driver"]
    require("driver", driver)
    assert SEMANTIC_VERSION.fullmatch(driver["semanticVersion"])
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"]) == len(RULES)
    for rule in driver["rules"]:
        require("rule", rule)
        assert rule["shortDescription"].keys() == {"text"}
        assert rule["defaultConfiguration"]["level"] in LEVELS
        assert URI.fullmatch(rule.get("helpUri", "").replace("#", "")), rule["helpUri"]
    for result in run["results"]:
        require("result", result)
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in LEVELS
        assert result["message"]["text"]
        [location] = result["locations"]
        assert location.keys() == {"physicalLocation"}
        place = location["physicalLocation"]
        assert {"artifactLocation"} <= place.keys() <= {"artifactLocation", "region"}
        assert URI.fullmatch(place["artifactLocation"]["uri"])
        assert place.get("region", {"startLine": 1})["startLine"] >= 1
        for suppression in result.get("suppressions", ()):
            require("suppression", suppression)
            assert suppression["kind"] in ("inSource", "external")
    assert [result["level"] for result in run["results"][:3]] == ["error", "warning", "note"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_names_of_files_become_uris() -> None:
    assert uri("charts/müller", "templates/a b.yaml") == "charts/m%C3%BCller/templates/a%20b.yaml"
    assert uri("/charts/x/", "a%#?[1].yaml") == "/charts/x/a%25%23%3F%5B1%5D.yaml"
    assert uri("x", "\udcff.yaml") == "x/%FF.yaml"
