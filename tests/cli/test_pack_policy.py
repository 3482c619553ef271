"""Rules of packs through the commands: generate, check, pack check and pack admission; and who can waive them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.cli.test_locked_values import SPEC
from trainchart.actions import check, pack
from trainchart.actions.support import chart_folder, known_charts, models
from trainchart.cli.app import app
from trainchart.errors import PlanError, SpecError

POLICY = """\
apiVersion: trainchart/v1
kind: Policy
requires:
  registries: [registry.example.com]
  labels: [team]
  gpusPerRelease: 2
rules:
  small-claims:
    kinds: [PersistentVolumeClaim]
    expression: object.spec.resources.requests.storage.matches('^[0-9]Gi$')
    message: claims are smaller than 10Gi
    severity: warning
waivers:
  - rule: labels
    models: [tiny]
    owner: ml@acme.example
    reason: labels come with the next release
    until: 2030-06-30
    namespaces: [old]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project whose pack has the rules of POLICY, with one model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    set_day(monkeypatch, "2030-06-30")
    assert call("pack", "init", "acme").exit_code == 0
    Path("packs/acme/policy.yaml").write_text(POLICY)
    Path("models").mkdir()
    Path("models/tiny.yaml").write_text(SPEC)
    Path("code").mkdir()
    Path("code/train.py").write_text("print('trained')\n")
    assert call("generate").exit_code == 0
    yield tmp_path


def set_day(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    for module in (check, pack, chart_folder, known_charts, models):
        monkeypatch.setattr(module, "utc_today", lambda: datetime.date.fromisoformat(day))


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def findings(*arguments: str) -> list[dict[str, Any]]:
    ran = call("check", *arguments, "--format", "json", "--no-cache")
    (chart,) = json.loads(ran.stdout)
    return [finding for finding in chart["findings"] if finding["rule"] == "pack-policy"]


@pytest.mark.parametrize("name", ["ci/prod.yaml", "ci/gpu-values.yaml"])
def test_no_name_of_a_values_file_passes_by_the_policy(project: Path, name: str) -> None:
    for folder in (Path(), Path("charts/tiny")):
        (folder / "ci").mkdir(exist_ok=True)
        (folder / "ci/gpu-values.yaml").write_text("{}\n")
    Path(name).write_text("image: {repository: evil.example/tiny}\n")
    found = {
        finding["values"] for finding in findings("charts/tiny", "-f", name) if "must come from" in finding["message"]
    }
    assert found == {f"./{name}"}


def test_check_finds_what_values_break(project: Path) -> None:
    Path("big.yaml").write_text(
        "image: {repository: evil.example/tiny}\nvolumes: {checkpoints: {size: 50Gi}}\ncommonLabels: {team: a}\n"
    )
    found = findings("charts/tiny", "-f", "big.yaml")
    by_severity = {finding["severity"]: finding for finding in found if finding["values"] == "big.yaml"}
    assert "images must come from registry.example.com/" in by_severity["error"]["message"]
    assert "the rule registries of pack acme 0.1.0 (packs/acme/policy.yaml:4:3)" in by_severity["error"]["hint"]
    assert by_severity["warning"]["message"].endswith("claims are smaller than 10Gi")
    assert call("check", "charts/tiny", "-f", "big.yaml").exit_code == 6


def test_check_holds_edited_manifests_to_the_rules(project: Path) -> None:
    Path("pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: a, image: 'docker.io/a:1'}]\n"
    )
    (finding,) = findings("pod.yaml")
    assert finding["message"] == "Pod p: images must come from registry.example.com/"
    assert finding["line"] == 1


def test_known_checks_notice_a_changed_rule(project: Path) -> None:
    assert call("check", "charts/tiny").exit_code == 0
    policy = Path("packs/acme/policy.yaml")
    policy.write_text(policy.read_text().replace("[registry.example.com]", "[registry.acme.example]"))
    assert call("check", "charts/tiny").exit_code == 6


def test_a_waived_rule_is_told_but_is_no_error(project: Path) -> None:
    found = findings("charts/tiny")
    assert {finding["severity"] for finding in found} == {"info"}
    assert {finding["hint"] for finding in found} == {
        "waived until 2030-06-30 by ml@acme.example: labels come with the next release"
    }


def test_a_waiver_ends(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_day(monkeypatch, "2030-07-01")
    found = findings("charts/tiny")
    assert {finding["severity"] for finding in found} == {"error"}
    assert "; the waiver of ml@acme.example ended on 2030-06-30" in found[0]["hint"]
    ran = call("pack", "check")
    assert isinstance(ran.exception, SpecError)
    (problem,) = ran.exception.problems
    assert problem.message == "the waiver of labels for tiny ended on 2030-06-30"
    assert problem.where == "packs/acme/policy.yaml:14:5"


def test_a_chart_cannot_waive_the_rules_of_packs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_day(monkeypatch, "2030-07-01")
    Path("charts/tiny/.trainchart-check.yaml").write_text("waivers:\n- {rule: pack-policy, reason: we know better}\n")
    assert {finding["severity"] for finding in findings("charts/tiny")} == {"error"}
    assert "a chart cannot waive pack-policy" in call("check", "charts/tiny").output


def test_a_rule_over_specs_stops_generate_and_plan(project: Path) -> None:
    Path("models/tiny.yaml").write_text(SPEC + "roles: {worker: {replicas: 3, gpus: 1}}\n")
    for command in (("generate",), ("plan", "tiny"), ("run", "tiny", "--dry-run")):
        ran = call(*command)
        assert isinstance(ran.exception, PlanError)
        assert ran.exception.problems[0].message == "a release can have at most 2 GPUs"


def test_known_charts_notice_that_a_waiver_has_ended(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = POLICY.replace("rules:", "locked:\n  roles.*.cpu: {enum: [7]}\nrules:")
    waived = limited.replace("rule: labels", "rule: roles.*.cpu")
    Path("packs/acme/policy.yaml").write_text(waived)
    assert call("generate").exit_code == 0
    assert call("generate").exit_code == 0
    set_day(monkeypatch, "2030-07-01")
    assert isinstance(call("generate").exception, PlanError)


def test_admission_prints_what_kubectl_applies(project: Path) -> None:
    text = call("pack", "admission", "--namespaces", "team=ml").stdout
    documents = list(yaml.safe_load_all(text))
    arguments = ("pack", "admission", "--namespaces", "team=ml", "--format", "json")
    assert json.loads(call(*arguments).stdout)["items"] == documents
    policies = {document["metadata"]["name"]: document["spec"] for document in documents[::2]}
    bindings = {document["spec"]["policyName"]: document["spec"] for document in documents[1::2]}
    assert list(policies) == list(bindings)
    assert list(policies) == [f"trainchart-acme-{name}" for name in ("labels", "registries", "small-claims")]
    assert bindings["trainchart-acme-labels"]["validationActions"] == ["Deny"]
    assert bindings["trainchart-acme-small-claims"]["validationActions"] == ["Warn", "Audit"]
    for binding in bindings.values():
        assert binding["matchResources"] == {"namespaceSelector": {"matchLabels": {"team": "ml"}}}
    waived = policies["trainchart-acme-labels"]["matchConditions"][-1]
    assert waived == {"name": "is-not-waived", "expression": '!(request.namespace in ["old"])'}
    assert "is-not-waived" not in str(policies["trainchart-acme-registries"])
    (validation,) = policies["trainchart-acme-registries"]["validations"]
    assert (
        validation["message"] == "images must come from registry.example.com/ (the rule registries of pack acme 0.1.0)"
    )
    (matched,) = policies["trainchart-acme-small-claims"]["matchConstraints"]["resourceRules"]
    assert matched["resources"] == ["persistentvolumeclaims"]
    of_pods = policies["trainchart-acme-registries"]["matchConstraints"]["resourceRules"][0]["resources"]
    assert of_pods == ["pods", "pods/ephemeralcontainers", "pods/resize", "replicationcontrollers"]


def test_admission_sees_a_changed_annotation_where_a_rule_does(project: Path) -> None:
    noted = {"expression": "has(object.metadata.annotations)", "message": "a"}
    rules = {"noted": noted, "other": {"expression": "true", "message": "b"}}
    policy = {"apiVersion": "trainchart/v1", "kind": "Policy", "rules": rules}
    Path("packs/acme/policy.yaml").write_text(yaml.safe_dump(policy))
    documents = list(yaml.safe_load_all(call("pack", "admission").stdout))
    annotated, other = (document["spec"]["matchConditions"][0]["expression"] for document in documents[::2])
    assert "object.metadata.?annotations != oldObject.metadata.?annotations" in annotated
    assert "annotations" not in other


def test_admission_leaves_out_waivers_that_ended(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_day(monkeypatch, "2030-07-01")
    assert isinstance(call("pack", "admission").exception, SpecError), "an ended waiver is to be noticed, not dropped"
    Path("packs/acme/policy.yaml").write_text(POLICY[: POLICY.index("waivers:")])
    assert "request.namespace" not in call("pack", "admission").stdout


@pytest.mark.parametrize("label", ["", "bounded", "=x", "a=", "a=b=c", "a b=c"])
def test_admission_refuses_what_is_no_label(project: Path, label: str) -> None:
    assert call("pack", "admission", "--namespaces", label).exit_code != 0
