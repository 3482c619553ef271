"""`trainchart check` as a user meets it: findings on stdout, a summary on stderr, exit code 6."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainchart", "check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_good_chart_is_silent(plain_chart: Path) -> None:
    (plain_chart / "docs").mkdir()
    (plain_chart / "docs" / "bad-values.yaml").write_text("not: meant\n")
    done = run(plain_chart)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "1 chart checked: 0 errors, 0 warnings\n")


def test_findings_name_rule_file_and_case(plain_chart: Path) -> None:
    service = plain_chart / "templates" / "service.yaml"
    service.write_text(service.read_text().replace("  publishNotReadyAddresses: true\n", ""))
    (plain_chart / "ci" / "none-values.yaml").write_text("env: [{name: A}, {name: A}]\n")
    done = run(plain_chart)
    assert done.returncode == 6
    assert done.stdout == (
        f"{plain_chart}/templates/service.yaml: error: Service check-plain hides pods that are not ready, "
        "but peers must find each other to become ready [hosts-match]\n  hint: publishNotReadyAddresses: true\n"
        f"{plain_chart}/templates/statefulset.yaml: error: StatefulSet check-plain-ps: container training has "
        "the environment variable A twice [entries-unique]\n  with: ci/none-values.yaml\n"
        f"{plain_chart}/templates/statefulset.yaml: error: StatefulSet check-plain-worker: container training has "
        "the environment variable A twice [entries-unique]\n  with: ci/none-values.yaml\n"
    )
    assert done.stderr == "1 chart checked: 3 errors, 0 warnings\n"


def test_json_and_a_values_file_of_the_user(plain_chart: Path, tmp_path: Path) -> None:
    values = tmp_path / "cluster.yaml"
    values.write_text("gpuz: 1\n")
    done = run(plain_chart, "-f", values, "--format", "json")
    assert done.returncode == 6
    [checked] = json.loads(done.stdout)
    assert checked["chart"] == str(plain_chart)
    assert {finding["values"] for finding in checked["findings"]} == {str(values)}
    assert any("unknown key 'gpuz'" in finding["message"] for finding in checked["findings"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "there is no chart at nowhere"),
        (("{chart}", "-f", "gone.yaml"), "cannot read gone.yaml"),
        (("{chart}", "--kube-version", "9.9"), "no schemas of Kubernetes '9.9'"),
        (("{chart}", "--engine", "/nowhere/helm"), "there is no helm program at /nowhere/helm"),
    ],
)
def test_what_cannot_be_checked_is_a_tool_error(plain_chart: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(*(argument.format(chart=plain_chart) for argument in arguments))
    assert done.returncode == 7
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.helm
def test_a_helm_program_finds_the_same(plain_chart: Path, helm3: Path) -> None:
    (plain_chart / "values.yaml").write_text("image: [\n")
    (plain_chart / "templates" / "namespaced.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\n"
    )
    done = run(plain_chart, "--engine", helm3)
    assert done.returncode == 6
    assert f"{plain_chart}/values.yaml:2: error: cannot be read" in done.stdout
