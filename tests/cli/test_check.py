"""`trainchart check` as a user meets it: findings on stdout, a summary on stderr, exit code 6."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import call

ROOT = Path(__file__).parents[2]
CHARTS = ROOT / "tests" / "fixtures" / "charts"
STYLES = ("dashboard", "notebook-hub", "operator", "metrics-agent", "library")
"""Small charts as others write them; see the note in each Chart.yaml."""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1
          resources: {limits: "nvidia.com/gpu:1", requests: {memory: 1GB}}
"""


def run(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return call(Path.cwd(), "check", *arguments, stdin=stdin)


def test_a_good_chart_is_silent(plain_chart: Path) -> None:
    (plain_chart / "docs").mkdir()
    (plain_chart / "docs" / "bad-values.yaml").write_text("not: meant\n")
    done = run(plain_chart)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r"1 chart checked: 0 errors, 0 warnings, \d+ info \(--info shows them\)\n", done.stderr)
    shown = run(plain_chart, "--info")
    assert "info: StatefulSet check-plain-ps: container training keeps capabilities" in shown.stdout
    assert re.fullmatch(r"1 chart checked: 0 errors, 0 warnings, \d+ info\n", shown.stderr)


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (("values.yaml",), "values.yaml: error: was generated but is missing [lock-drift]"),
        (("values.schema.json",), "values.schema.json: error: was generated but is missing [lock-drift]"),
        (("templates/service.yaml",), "templates/service.yaml: error: was generated but is missing [lock-drift]"),
        (
            ("values.yaml", "trainchart.lock.yaml"),
            "values.yaml: error: is missing, but values.schema.json requires values [values-schema]",
        ),
        (("Chart.yaml",), "is not complete: Chart.yaml is missing"),
        (("Chart.yaml", "trainchart.lock.yaml"), "is not a chart: it has no Chart.yaml"),
    ],
)
def test_a_missing_file_is_one_error(tmp_path: Path, gone: tuple[str, ...], said: str) -> None:
    chart = Path(shutil.copytree(ROOT / "charts" / "hello", tmp_path / "hello"))
    for name in gone:
        (chart / name).unlink()
    done = run(chart)
    assert said in done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("error: ") == 1


def test_emptied_values_are_one_error(tmp_path: Path) -> None:
    chart = Path(shutil.copytree(ROOT / "charts" / "hello", tmp_path / "hello"))
    (chart / "values.yaml").write_text("")
    done = run(chart)
    assert (
        "values.yaml: error: contains no values, but values.schema.json requires values [values-schema]" in done.stdout
    )
    assert done.stdout.count("error: ") == 1


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
    assert done.stderr.startswith("1 chart checked: 3 errors, 0 warnings")


def test_values_that_helm_reads_otherwise_are_warned_of(plain_chart: Path, tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text("free: {a: 1}\nlabels: {b: 0755}\n")
    done = run(plain_chart, "-f", tmp_path / "v.yaml")
    assert "warning: line 2: labels.b: 0755 is read as the number 493 [values-as-written]" in done.stdout
    assert 'hint: quote it: "0755", or write 493\n' in done.stdout


def test_json_and_a_values_file_of_the_user(plain_chart: Path, tmp_path: Path) -> None:
    values = tmp_path / "cluster.yaml"
    values.write_text("gpuz: 1\n")
    done = run(plain_chart, "-f", values, "--format", "json")
    assert done.returncode == 6
    [checked] = json.loads(done.stdout)
    assert checked["chart"] == str(plain_chart)
    errors = [finding for finding in checked["findings"] if finding["severity"] == "error"]
    assert {finding["values"] for finding in errors} == {str(values)}
    assert any("unknown key gpuz" in finding["message"] for finding in errors)


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


def test_the_spec_of_a_model_is_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "fit.yaml").write_text("apiVersion: trainchart/v1\nkind: Model\nname: fit\n")
    done = run(tmp_path / "fit.yaml")
    assert done.returncode == 7
    assert "holds the spec of a model" in done.stderr and "trainchart check charts/fit" in done.stderr


def test_a_chart_that_is_elsewhere_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "charts/fit").mkdir(parents=True)
    (tmp_path / "charts/fit/Chart.yaml").touch()
    (tmp_path / "models").mkdir()
    for folder, name, expected in (("", "fit", "charts/fit"), ("models", "charts/fit", "../charts/fit")):
        monkeypatch.chdir(tmp_path / folder)
        assert f"did you mean {expected}?" in run(name).stderr


def test_select_and_ignore(plain_chart: Path) -> None:
    service = plain_chart / "templates" / "service.yaml"
    service.write_text(service.read_text().replace("publishNotReadyAddresses: true", "externalName: [1]"))
    assert "[kubernetes-schema]" in run(plain_chart).stdout
    selected = run(plain_chart, "--select", "hosts-match,labels").stdout
    assert "[hosts-match]" in selected and "[kubernetes-schema]" not in selected
    assert run(plain_chart, "--ignore", "hosts-match,kubernetes-schema").returncode == 0
    refused = run(plain_chart, "--ignore", "host-match")
    assert refused.returncode == 2
    assert "there is no rule 'host-match'; did you mean hosts-match" in refused.stderr


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("ids", ["", ",", " , "])
def test_a_choice_of_no_rule_is_a_usage_error(plain_chart: Path, option: str, ids: str) -> None:
    done = run(plain_chart, option, ids)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{option} {ids!r} names no rule" in done.stderr


def test_a_choice_that_leaves_no_rule_is_a_usage_error(plain_chart: Path) -> None:
    done = run(plain_chart, "--select", "labels", "--ignore", "labels")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--select and --ignore together exclude every rule" in done.stderr


def test_what_cannot_be_read_hides_nothing_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(DEPLOYMENT)
    done = run("nowhere", tmp_path / "web.yaml", "gone.yaml")
    assert done.returncode == 7
    assert "'1GB' is not a quantity" in done.stdout
    assert "there is no chart at nowhere" in done.stderr and "there is no chart at gone.yaml" in done.stderr


def test_a_version_of_kubernetes_may_be_written_in_full(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(DEPLOYMENT)
    versions = ("--kube-version", "v1.34.2", "--kube-version", "1.34")
    assert "(Kubernetes 1.34)" in run(tmp_path / "web.yaml", *versions).stdout


def test_a_waived_finding_is_counted_and_keeps_its_reason(plain_chart: Path) -> None:
    service = plain_chart / "templates" / "service.yaml"
    service.write_text(service.read_text().replace("  publishNotReadyAddresses: true\n", ""))
    (plain_chart / ".trainchart-check.yaml").write_text(
        "waivers: [{rule: hosts-match, reason: peers wait for each other by themselves}]\n"
    )
    done = run(plain_chart, "--format", "json")
    [checked] = json.loads(done.stdout)
    assert done.returncode == 0
    assert done.stderr.endswith(", 1 waived\n")
    assert [(entry["rule"], entry["reason"]) for entry in checked["waived"]] == [
        ("hosts-match", "peers wait for each other by themselves")
    ]


def test_waived_findings_are_printed_with_their_reasons(plain_chart: Path) -> None:
    (plain_chart / "values.yaml").write_text("image: a\nimage: b\n# trainchart: ignore[keys-unique] no reason to\n")
    assert run(plain_chart).stderr.endswith(", 1 waived (--info shows them)\n")
    done = run(plain_chart, "--info")
    assert "values.yaml:2: waived error: " in done.stdout
    assert "  reason: no reason to\n" in done.stdout
    assert done.stderr.endswith(", 1 waived\n")


def test_a_template_that_asks_the_cluster_is_named(plain_chart: Path) -> None:
    hidden = '{{- if %s }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Release.Name }}-x"}\n{{- end }}\n'
    asked = {"a": 'lookup "v1" "Namespace" "" "kube-system"', "b": ".Release.IsUpgrade", "c": ".Values.lookup"}
    for name, condition in asked.items():
        (plain_chart / "templates" / f"{name}.yaml").write_text(hidden % condition)
    found = [line for line in run(plain_chart, "--info").stdout.splitlines() if "reads the cluster (lookup)" in line]
    places = {line.partition(": ")[0].rpartition("/")[2] for line in found}
    assert places & {f"{name}.yaml:1" for name in asked} == {"a.yaml:1", "b.yaml:1"}


def test_sarif_has_what_code_hosts_ask_for(plain_chart: Path) -> None:
    (plain_chart / "values.yaml").write_text("image: a\nimage: b\n# trainchart: ignore[keys-unique] no reason to\n")
    done = run(plain_chart, "--format", "sarif")
    log = json.loads(done.stdout)
    assert done.returncode == 6
    assert (log["version"], log["$schema"].rpartition("/")[2]) == ("2.1.0", "sarif-schema-2.1.0.json")
    [only] = log["runs"]
    rules = only["tool"]["driver"]["rules"]
    assert only["results"]
    for result in only["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        [location] = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].startswith(str(plain_chart))
        assert location["physicalLocation"].get("region", {"startLine": 1})["startLine"] >= 1
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert rule.get("helpUri", "https://").startswith("https://")
    waived = [result for result in only["results"] if "suppressions" in result]
    assert {result["suppressions"][0]["justification"] for result in waived} == {"no reason to"}


@pytest.mark.parametrize("how", ["file", "folder", "stdin"])
def test_plain_manifests_are_checked_too(how: str, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(DEPLOYMENT)
    done = {
        "file": lambda: run(tmp_path / "web.yaml"),
        "folder": lambda: run(tmp_path),
        "stdin": lambda: run("-", stdin=DEPLOYMENT),
    }[how]()
    assert done.returncode == 6
    assert "resources.limits is 'nvidia.com/gpu:1', not a map of resources to amounts" in done.stdout
    assert "resources.requests.memory: '1GB' is not a quantity" in done.stdout
    assert "metadata.namespace" not in done.stdout
    assert "Chart.yaml" not in done.stdout


def test_a_pipe_of_the_shell_and_a_file_without_suffix_are_read(tmp_path: Path) -> None:
    (tmp_path / "rendered").write_text(DEPLOYMENT)
    command = f"{sys.executable} -m trainchart check {tmp_path}/rendered <(cat {tmp_path}/rendered)"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 6, done.stderr
    assert done.stdout.count("'1GB' is not a quantity") == 2
    (tmp_path / "rendered").write_text("just text")
    assert "is not a chart: expected a chart folder" in run(tmp_path / "rendered").stderr


def test_values_from_a_pipe_are_checked_with_every_chart(plain_chart: Path, tmp_path: Path) -> None:
    charts = [shutil.copytree(plain_chart, tmp_path / f"chart-{number}") for number in range(6)]
    command = f"{sys.executable} -m trainchart check {tmp_path}/chart-* --select renders -f <(echo 'gpuz: 1')"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 6, done.stderr
    for chart in charts:
        assert f"{chart}: error: unknown key gpuz" in done.stdout


def test_many_charts_are_told_of_in_order_and_each_failure_too(plain_chart: Path, tmp_path: Path) -> None:
    service = plain_chart / "templates" / "service.yaml"
    service.write_text(service.read_text().replace("  publishNotReadyAddresses: true\n", ""))
    for number in range(6):
        shutil.copytree(plain_chart, tmp_path / f"chart-{number}")
    named = [str(tmp_path / f"chart-{number}") for number in (0, 3, 7, 1, 2, 5, 4)]
    done = run(*named, "--select", "hosts-match", "--no-cache")
    told = [line.partition("/templates/")[0] for line in done.stdout.splitlines() if line.endswith("[hosts-match]")]
    assert list(dict.fromkeys(told)) == [path for path in named if not path.endswith("7")]
    assert done.returncode == 7
    assert "6 charts checked: " in done.stderr
    assert f"there is no chart at {tmp_path}/chart-7" in done.stderr


def test_a_named_pipe_is_refused_and_not_waited_for(plain_chart: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for arguments in ((pipe,), (plain_chart, "-f", pipe)):
        done = run(*arguments)
        assert done.returncode == 7
        assert f"{pipe} is neither a file nor a folder" in done.stderr


def test_invalid_manifests_are_a_tool_error_with_file_and_line(tmp_path: Path) -> None:
    done = run("-", stdin="a: 1\nb: [")
    assert done.returncode == 7
    assert "does not hold Kubernetes objects" in done.stderr
    assert re.search(r"stdin:[23]: is not YAML", done.stderr)
    (tmp_path / "bad.yaml").write_text("a: 1\n---\n- b\n")
    assert f"{tmp_path}/bad.yaml:3: is not a Kubernetes object" in run(tmp_path).stderr


ITEMS = "apiVersion: v1\nkind: List\nitems:\n" + "".join(
    f"  {line}\n" for line in f"- {DEPLOYMENT.strip()}".replace("\n", "\n  ").split("\n")
)


def test_the_items_of_a_list_are_checked_and_have_their_lines(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text(ITEMS)
    done = run(tmp_path / "list.yaml")
    assert done.returncode == 6
    assert "no List in v1" not in done.stdout
    assert f"{tmp_path}/list.yaml:4: error: Deployment web: container web: " in done.stdout
    found = json.loads(run(tmp_path, "--format", "sarif").stdout)["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in found]
    assert {place["artifactLocation"]["uri"] for place in places} == {f"{tmp_path}/list.yaml"}
    # What yamllint says has a line of its own; every object starts on line 4.
    about_objects = [place for place, result in zip(places, found, strict=True) if result["ruleId"] != "yaml-style"]
    assert {place["region"]["startLine"] for place in about_objects} == {4}


def test_a_waiver_in_a_plain_manifest_works(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(DEPLOYMENT + "# trainchart: ignore[quantities,kubernetes-schema] as the vendor ships it\n")
    done = run(path)
    assert (done.returncode, done.stdout.count("error")) == (0, 0), done.stdout
    assert " waived" in done.stderr


@pytest.mark.parametrize("name", ["values.yaml", "Chart.yaml", "ci/odd-values.yaml", ".trainchart-check.yaml"])
@pytest.mark.parametrize("content", [b"a: \x07\n", b"\x00\x01\xff\xfe" * 40], ids=["a bell", "binary"])
def test_junk_in_a_file_is_said_to_be_junk(plain_chart: Path, name: str, content: bytes) -> None:
    (plain_chart / name).write_bytes(content)
    done = run(plain_chart)
    assert "Traceback" not in done.stderr
    assert done.returncode in (6, 7)
    assert name in done.stdout + done.stderr
    assert "this is a bug in trainchart" not in done.stdout


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ('{"$ref": "#"}', "a $ref leads back to itself"),
        ("3", "is not a JSON schema: expected an object at the top"),
        ('{"$ref": "#/$defs/x"}', "$ref '/$defs/x' leads nowhere in this file"),
        ('{"$ref": "http://127.0.0.1:9/x"}', "$ref 'http://127.0.0.1:9/x' leads nowhere in this file"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(plain_chart: Path, schema: str, says: str) -> None:
    (plain_chart / "values.schema.json").write_text(schema)
    done = run(plain_chart, "--select", "values-schema,schema-closed,schema-agrees,renders")
    assert "Traceback" not in done.stderr
    assert "this is a bug in trainchart" not in done.stdout
    assert done.returncode == 6
    assert says in done.stdout


@pytest.mark.parametrize("style", STYLES)
def test_charts_of_others_are_checked_without_a_crash(style: str) -> None:
    done = run(CHARTS / style, "--format", "json")
    assert done.returncode in (0, 6), done.stderr
    assert "Traceback" not in done.stderr
    [checked] = json.loads(done.stdout)
    wrong = {finding["rule"] for finding in checked["findings"] if finding["severity"] == "error"}
    # What is our style is no error in a third-party chart; what does not work is.
    assert wrong == ({"quantities", "kubernetes-schema"} if style == "operator" else set())


def test_an_archive_is_checked_like_its_folder(plain_chart: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "plain"), "gztar", plain_chart.parent, "plain")
    done = run(Path(archive).rename(tmp_path / "plain.tgz"))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.helm
def test_a_helm_program_finds_the_same(plain_chart: Path, helm3: Path) -> None:
    (plain_chart / "values.yaml").write_text("image: [\n")
    (plain_chart / "templates" / "namespaced.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\n"
    )
    done = run(plain_chart, "--engine", helm3)
    assert done.returncode == 6
    assert f"{plain_chart}/values.yaml:2: error: cannot be read" in done.stdout


def test_the_summary_says_what_was_not_looked_into() -> None:
    manifest = "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}}"
    done = run("-", "--format", "json", stdin=manifest)
    assert done.stderr.endswith("; checked by names and labels only: 1 Certificate (cert-manager.io/v1)\n")
    [checked] = json.loads(done.stdout)
    assert checked["unknownKinds"] == [
        {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "objects": ["a"], "checked": ["metadata"]}
    ]


def test_folder_of_charts_is_refused_with_the_command_for_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "charts" / name).mkdir(parents=True)
        (tmp_path / "charts" / name / "Chart.yaml").write_text("name: a\n")
    done = run(tmp_path)
    assert done.returncode == 7
    assert f"{tmp_path} holds charts, not manifests: charts/a, charts/b" in done.stderr
    assert f"trainchart check {tmp_path}/charts/*/" in done.stderr


def test_hidden_folders_of_manifests_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    (tmp_path / ".trainchart/runs").mkdir(parents=True)
    (tmp_path / ".trainchart/runs/b.yaml").write_text("{{ broken }}: [\n")
    done = run(tmp_path)
    assert "runs" not in done.stdout + done.stderr


def test_specs_beside_manifests_are_not_checked_as_such(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "hello.yaml").write_text("apiVersion: trainchart/v1\nkind: Model\nname: hello\n")
    (tmp_path / "models" / ".trainchart-schema.json").write_text('{"$defs": {"a": 1}}')
    done = run(tmp_path)
    assert done.returncode == 7
    assert "holds the spec of a model, not manifests" in done.stderr
    (tmp_path / "models" / "hello.yaml").write_text("apiVersion: trainchart/v1\nkind: Model\nname: hi;id\n")
    assert "trainchart generate 'hi;id', then trainchart check 'charts/hi;id'" in " ".join(run(tmp_path).stderr.split())
    (tmp_path / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    assert "manifests checked: 0 errors" in run(tmp_path).stderr


def test_warnings_of_the_helm_library_stay_out_of_the_terminal(tmp_path: Path) -> None:
    """Its Go code prints keys of the chart as they are."""
    files = {
        "Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: s, version: 1.0.0}]\n",
        "charts/s/Chart.yaml": "apiVersion: v2\nname: s\nversion: 1.0.0\n",
        "charts/s/values.yaml": '"k\\e]0;title\\a": 5\n',
        "values.yaml": 's: {"k\\e]0;title\\a": {a: 1}}\n',
        "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    argv = [sys.executable, "-m", "trainchart", "check", str(tmp_path), "--engine", "sdk"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr and "skipped value" not in done.stderr
    assert "1 chart checked" in done.stderr, "what the tool itself says is still shown"


def test_no_name_looks_like_a_line_of_its_own(plain_chart: Path) -> None:
    forged = "1 chart checked: 0 errors, 0 warnings"
    (plain_chart / "templates" / f"a.yaml: ok\n{forged}\n.yaml").write_text(
        f'apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: "x\\n{forged}\\n"}}\n'
    )
    done = run(plain_chart)
    assert done.returncode != 0
    assert forged in done.stdout and forged not in done.stdout.splitlines()
