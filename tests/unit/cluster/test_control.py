"""What suspend, resume, stop and rerun set, what they refuse, and what Helm keeps of a release."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small_cluster.cluster_objects import NOW
from trainchart.cluster.control import Verb, decide_change
from trainchart.cluster.helm_record import HelmRecordError, HelmRelease, choose_record, parse_release
from trainchart.reports.report import FROM_PODS, FROM_RECORD, Progress, Report, TrainingKey

KEY = TrainingKey("team-a", "exp1", "mnist")


def installed(**changes: Any) -> HelmRelease:
    run = {"desiredState": "running", "resume": "never", "controller": {"enabled": True}, **changes.pop("run", {})}
    fields = {"chart_name": "mnist", "values": {"run": run}, "given": {}, **changes}
    return HelmRelease(name="exp1", revision=2, **fields)


def report(phase: str, source: str = FROM_RECORD) -> Report:
    return Report(KEY, NOW, phase, source)


SUSPENDED = {"desiredState": "suspended"}
NEW_RUN = {"run.id": "2027-01-15-080000", "run.desiredState": "running", "run.resume": "latest"}


@pytest.mark.parametrize(
    ("verb", "phase", "run", "sets"),
    [
        (Verb.suspend, "Running", {}, {"run.desiredState": "suspended"}),
        (Verb.suspend, "Starting", {}, {"run.desiredState": "suspended"}),
        (Verb.suspend, "Suspended", SUSPENDED, {}),
        (Verb.resume, "Suspended", SUSPENDED, {"run.desiredState": "running"}),
        # Asked to suspend, but it has not come to that yet.
        (Verb.resume, "Running", SUSPENDED, {"run.desiredState": "running"}),
        (Verb.resume, "Running", {}, {}),
        (Verb.stop, "Running", {}, {"run.desiredState": "stopped"}),
        (Verb.stop, "Suspended", SUSPENDED, {"run.desiredState": "stopped"}),
        (Verb.stop, "Stopping", {}, {}),
        (Verb.stop, "Failed", {}, {}),
        (Verb.rerun, "Failed", {}, NEW_RUN),
        (Verb.rerun, "StateLost", {}, NEW_RUN),
    ],
)
def test_what_is_set(verb: Verb, phase: str, run: dict[str, Any], sets: dict[str, str]) -> None:
    change = decide_change(verb, report(phase), installed(run=run))
    assert (change.refusal, dict(change.sets), bool(change.done)) == ("", sets, not sets)


@pytest.mark.parametrize(
    ("phase", "step", "is_kept"), [("Failed", None, True), ("Failed", 3, False), ("Stopped", None, False)]
)
def test_the_other_release_is_kept_where_nothing_has_begun(phase: str, step: int | None, is_kept: bool) -> None:
    run = {"resume": 45, "resumeRelease": "exp-6"}
    seen = replace(report(phase), progress=Progress(step=step))
    sets = decide_change(Verb.rerun, seen, installed(run=run), "latest").sets
    assert sets["run.resume"] == "latest"
    assert ("run.resumeRelease" not in sets) == is_kept


@pytest.mark.parametrize(
    ("resume", "run", "sets"),
    [
        ("latest", {"resume": "never"}, {"run.resume": "latest"}),
        ("latest", {"resume": "latest"}, {}),
        ("200", {"resume": 200}, {}),
        ("200", {"resume": "latest"}, {"run.resume": "200"}),
        # Its checkpoints are in the release's own folder by now.
        ("never", {"resume": 200, "resumeRelease": "exp-6"}, {"run.resume": "never", "run.resumeRelease": ""}),
    ],
)
def test_how_a_new_run_begins_is_set(resume: str, run: dict[str, Any], sets: dict[str, str]) -> None:
    change = decide_change(Verb.rerun, report("Failed"), installed(run=run), resume)
    assert {name: text for name, text in change.sets.items() if "resume" in name} == sets


@pytest.mark.parametrize(
    ("verb", "seen", "release", "words"),
    [
        (Verb.rerun, report("Running"), installed(), "the run is not over"),
        (Verb.suspend, report("Failed"), installed(), "the run is over: Failed"),
        (Verb.resume, report("Stopping"), installed(), "the run is over: Stopping"),
        (Verb.stop, report("Running", FROM_PODS), installed(), "the state of the run is not known"),
        (Verb.stop, report("Running"), installed(values={"run": {"id": ""}}), "is older than this command"),
        (Verb.stop, report("Running"), installed(run={"controller": {"enabled": False}}), "has no run controller"),
        (Verb.stop, report("Running"), installed(chart_name="umbrella"), "as part of the umbrella chart umbrella"),
        (Verb.stop, report("Running"), installed(dependencies=("other",)), "as part of the umbrella chart mnist"),
    ],
)
def test_what_is_refused(verb: Verb, seen: Report, release: HelmRelease, words: str) -> None:
    change = decide_change(verb, seen, release)
    assert words in change.refusal
    assert change.hint
    assert not change.sets


def make_record(version: int, status: str = "deployed", *, is_secret: bool = True, **chart: Any) -> dict[str, Any]:
    document = {
        "name": "exp1",
        "version": version,
        "config": {"run": {"desiredState": "suspended"}},
        "chart": {
            "metadata": {"name": "mnist", "version": "0.1.0", "apiVersion": "v2"},
            "values": {"run": {"desiredState": "running", "id": ""}},
            "schema": base64.b64encode(b"{}").decode(),
            "templates": [{"name": "templates/a.yaml", "data": base64.b64encode(b"kind: A").decode()}],
            "files": [{"name": "README.md", "data": ""}],
            **chart,
        },
    }
    body = base64.b64encode(gzip.compress(json.dumps(document).encode()))
    data = base64.b64encode(body) if is_secret else body
    labels = {"version": str(version), "status": status, "owner": "helm", "name": "exp1"}
    metadata = {"name": f"sh.helm.release.v1.exp1.v{version}", "labels": labels}
    return {"metadata": metadata, "data": {"release": data.decode()}}


@pytest.mark.parametrize("is_secret", [True, False])
def test_the_chart_and_the_values_come_from_what_helm_keeps(is_secret: bool) -> None:
    release = parse_release(make_record(3, is_secret=is_secret))
    assert (release.name, release.revision, release.chart_name) == ("exp1", 3, "mnist")
    assert release.values == {"run": {"desiredState": "suspended", "id": ""}}
    assert sorted(release.files) == ["Chart.yaml", "README.md", "templates/a.yaml", "values.schema.json", "values.yaml"]
    assert release.files["templates/a.yaml"] == b"kind: A"
    assert b"version: 0.1.0" in release.files["Chart.yaml"]


def test_the_revision_that_is_installed_counts() -> None:
    records = [make_record(9, "superseded"), make_record(10), make_record(11, "failed")]
    chosen = choose_record(records)
    assert chosen is not None
    assert parse_release(chosen).revision == 10
    assert choose_record([]) is None
    with pytest.raises(HelmRecordError, match="another helm command"):
        choose_record([*records, make_record(12, "pending-upgrade")])


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "", "a\x00b", "a\nb", "x" * 256, "\ud800"])
def test_no_file_of_a_chart_leaves_its_folder(name: str) -> None:
    with pytest.raises(HelmRecordError, match="is called"):
        parse_release(make_record(1, files=[{"name": name, "data": ""}]))


def nest(depth: int) -> Any:
    return {"a": nest(depth - 1)} if depth else 1


@pytest.mark.parametrize(
    ("chart", "words"),
    [
        ({"values": {"a": [0] * 600_000}}, "it holds more than 500000 values"),
        ({"values": {"a": "x" * (17 << 20)}}, "it is too large"),
        ({"values": nest(250)}, "it is nested too deeply"),
        ({"values": [1]}, "expected a mapping, got"),
        ({"metadata": ["name"]}, "expected a mapping, got"),
    ],
)
def test_a_record_of_any_size_is_read_or_refused(chart: dict[str, Any], words: str) -> None:
    with pytest.raises(HelmRecordError, match=words):
        parse_release(make_record(1, **chart))


def test_names_and_sentences_in_a_record_are_bounded() -> None:
    release = parse_release(make_record(1, metadata={"name": "n" * 99_999, "version": "1" * 99_999}))
    assert len(release.chart_name) == len(release.chart_version) == 4096


@settings(max_examples=100)
@given(data=st.text(max_size=40) | st.binary(max_size=60).map(lambda raw: base64.b64encode(raw).decode()))
def test_junk_is_no_record(data: str) -> None:
    with pytest.raises(HelmRecordError):
        parse_release({"metadata": {"name": "x"}, "data": {"release": data}})
