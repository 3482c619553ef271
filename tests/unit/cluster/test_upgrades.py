"""What upgrades of a release changed, as far as Helm's records say it."""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_revision, make_sets, stamp
from trainchart.cluster.snapshot import Unreadable
from trainchart.cluster.upgrades import describe_unread_upgrade, find_upgrades
from trainchart.reports.report import Report, ReportedProblem, TrainingKey
from trainchart.reports.text import describe_time
from trainchart.reports.why import why_lines

Values = dict[str, Any]


def find(*values: Values, began: float = NOW - 900, **options: Any) -> list[tuple[int, tuple[str, ...]]]:
    """Return the revisions that changed something, and what; `values` are those of revisions 1, 2, …"""
    records = tuple(make_revision(number, values=each, **options) for number, each in enumerate(values, 1))
    return [(each.revision, each.changes) for each in find_upgrades(records, began)]


def test_an_upgrade_is_told_with_the_values_it_changed() -> None:
    old = {"image": {"tag": "1.0.0"}, "roles": {"worker": {"replicas": 2}}, "run": {"id": "a"}}
    new = {"image": {"tag": "1.0.1"}, "roles": {"worker": {"replicas": 4}}, "run": {"id": "b"}}
    changes = ('image.tag from "1.0.0" to "1.0.1"', "roles.worker.replicas from 2 to 4")
    assert find(old, new) == [(2, changes)]
    assert find({}, old, new | {"run": {}})[1] == (3, changes)
    assert find({}, {"gpu": {"resource": "amd.com/gpu"}}) == [(2, ('gpu.resource from nothing to "amd.com/gpu"',))]


def test_a_newer_chart_is_told_with_both_versions() -> None:
    records = (make_revision(1), make_revision(2, version="0.2.0", status="deployed"))
    (upgrade,) = find_upgrades(records, NOW - 900)
    assert upgrade.changes == ("the chart, from version 0.1.0 to 0.2.0",)
    assert (upgrade.before, upgrade.at) == (1, NOW - 600)


def test_restarts_and_old_upgrades_are_not_told() -> None:
    first, second = {"run": {"id": "a", "desiredState": "stopped"}}, {"run": {"id": "b", "resume": "latest"}}
    assert not find(first, second)
    assert not find({"mnist": first}, {"mnist": second})
    assert not find({"a": 1}, {"a": 2}, age=5000)
    assert find({"a": 1}, {"a": 2}, age=4000), "soon before the run began"
    assert not find({"a": 1}, {"a": 2}, status="pending-upgrade")
    assert find({"a": 1}, {"a": 2}, status="failed"), "its objects may have been sent"
    records = (make_revision(1), make_revision(2, values={"a": 1}))
    assert not find_upgrades(records, NOW - 900, NOW - 601), "what came after the failure does not explain it"
    assert find_upgrades(records, NOW - 900, NOW - 600)
    assert not find_upgrades(Unreadable("secrets", "forbidden"), 0.0)


def test_of_very_many_or_long_changes_some_are_kept() -> None:
    ((_, changes),) = find({}, {f"key{number}": number for number in range(1000)})
    assert len(changes) == 100
    ((_, changes),) = find({}, {"k" * 9999: 1})
    assert len(changes[0]) < 300


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("env", "NOTE"), "hunter2"),
        (("hyperparameters", "hubToken"), "hunter2"),
        (("roles", "ps", "args"), ["--password=hunter2"]),
        (("data", "url"), "postgres://me:hunter2@host/base"),
        (("data", "header"), "Authorization: Bearer hunter2hunter2"),
        (("notes",), "hunter2" * 40),
    ],
)
def test_secrets_in_changed_values_are_not_shown(path: tuple[str, ...], value: Any) -> None:
    values: Any = value
    for key in reversed(path):
        values = {key: values}
    ((_, changes),) = find({}, values)
    assert "hunter2" not in str(changes)
    assert changes[0].startswith(".".join(path))


def test_why_names_the_upgrade_and_how_to_undo_it() -> None:
    many = {f"key{number:02}": number for number in range(20)}
    records = (make_revision(1), make_revision(2, values=many, status="deployed"))
    found = find_upgrades(records, NOW - 900)
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Running", "record", upgrades=found)
    assert report.upgrades[-1].newest == 2
    text = "\n".join(why_lines(report))
    assert "What upgrades of the release changed:\n  2027-01-15 07:50:00 UTC  revision 2\n    key00 from" in text
    assert "    key07 from nothing to 7\n    and 12 more\n" in text
    assert text.endswith("  next: if the last of them is the cause, undo it: helm rollback exp1 1 -n team-a")
    text = "\n".join(why_lines(replace(report, problems=(ReportedProblem("w", "not-a-number", "NaN: loss"),))))
    assert "undo it: helm rollback exp1 1 -n team-a. Checkpoints saved since that upgrade may hold NaN, too: " in text
    assert "then trainchart rerun exp1 -n team-a --resume STEP" in text


@pytest.mark.parametrize(
    ("manager", "at", "is_told"),
    [
        ("helm", NOW - 100, True),
        ("helm", NOW - 590, False),
        ("kubectl-edit", NOW - 100, False),
        ("helm", NOW - 10, False),
    ],
    ids=["an upgrade", "the installation", "another client", "after the failure"],
)
def test_upgrade_is_dated_where_its_record_may_not_be_read(manager: str, at: float, *, is_told: bool) -> None:
    sets = make_sets()
    sets[1]["metadata"]["managedFields"] = [{"manager": manager, "time": stamp(at)}]
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Failed", "record")
    unread = Unreadable("secrets", "forbidden")
    found = list(describe_unread_upgrade(report, sets, unread, NOW - 600, NOW - 50))
    assert len(found) == is_told
    assert all(each.startswith("helm upgrade changed the StatefulSets at 2027-01-15 07:58:20 UTC.") for each in found)


def test_an_upgrade_among_too_many_records_is_dated() -> None:
    sets = make_sets()
    sets[0]["metadata"]["managedFields"] = [{"manager": "helm", "time": stamp(NOW - 100)}]
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Failed", "record")
    (words,) = describe_unread_upgrade(report, sets, Unreadable("secrets", "too large"), NOW - 600, NOW)
    assert "permission" not in words
    assert "Helm's records of the release are too large. See: helm history exp1 -n team-a" in words


def test_values_that_were_not_given_again_are_told() -> None:
    given = {"image": {"tag": "1.0"}, "roles": {"worker": {"cpu": "2", "memory": "4Gi"}, "ps": {"cpu": "1"}}}
    given |= {"env": {"A": "1"}, "run": {"id": "a"}}
    records = (make_revision(1, values=given), make_revision(2, values={"image": {"tag": "1.0"}, "lr": 1}))
    (upgrade,) = find_upgrades(records, NOW - 900)
    assert upgrade.dropped == ("env.A", "roles.ps.cpu", "roles.worker.cpu", "roles.worker.memory")
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Failed", "record", upgrades=(upgrade,))
    words = "    4 values were not given again, so the chart's defaults apply: env.A, roles.ps.cpu, roles.worker.cpu, "
    assert words in "\n".join(why_lines(report))
    (upgrade,) = find_upgrades((make_revision(1, values=given), make_revision(2, values=given | {"lr": 1})), NOW - 900)
    assert upgrade.dropped == ()
    back = make_revision(2, values={}, description="Rollback to 1")
    (upgrade,) = find_upgrades((make_revision(1, values=given), back), NOW - 900)
    assert (upgrade.source, upgrade.dropped) == ("Rollback to 1", ())
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Failed", "record", upgrades=(upgrade,))
    told = why_lines(report)
    assert f"  {describe_time(NOW - 600)}  revision 2 (Rollback to 1)" in told
    assert "undo it" not in "\n".join(told), "it is itself what undoes another"


def test_upgrade_after_the_failure_is_not_to_be_undone() -> None:
    records = tuple(make_revision(number, values={"a": number}, age=700 - 100 * number) for number in (1, 2, 3))
    (upgrade,) = find_upgrades(records, NOW - 900, NOW - 450)
    assert (upgrade.revision, upgrade.newest) == (2, 3)
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Failed", "record", upgrades=(upgrade,))
    told = "\n".join(why_lines(report))
    assert "  Revision 3 is installed now: it came after the failure." in told and "undo it" not in told


def test_rerun_after_an_upgrade_leaves_it_to_be_undone() -> None:
    changed, again = {"a": 2}, {"a": 2, "run": {"id": "b"}}
    records = tuple(make_revision(number, values=each) for number, each in enumerate(({"a": 1}, changed, again), 1))
    (upgrade,) = find_upgrades(records, NOW - 900)
    assert (upgrade.revision, upgrade.newest) == (2, 2)
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Failed", "record", upgrades=(upgrade,))
    assert "undo it: helm rollback exp1 1" in why_lines(report)[-1]


def test_text_that_is_no_unicode_is_no_error() -> None:
    assert find({}, {"note": "\ud800"})[0][1][0].startswith("note")


def test_run_that_is_over_is_started_again_after_the_rollback() -> None:
    upgrades = find_upgrades((make_revision(1), make_revision(2, values={"a": 1})), NOW - 900)
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Failed", "record", upgrades=upgrades)
    assert why_lines(report)[-1].endswith("helm rollback exp1 1 -n team-a, then trainchart rerun exp1 -n team-a")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("podAnnotations.example.com/token", "hunter2"),
        ("flags.password", 1234567),
        ("note", "https://x.example/hook?token=hunter2"),
        ("note", "https://x.example/f?sv=2020&sig=hunter2"),
        ("note", "Server=a;Password=hunter2;x=1"),
        ("note", "hf_" + "hunter2" * 6),
    ],
)
def test_secrets_under_unusual_names_are_not_shown(path: str, value: Any) -> None:
    ((_, changes),) = find({}, {path: value})
    assert "unter2" not in str(changes) and "1234567" not in str(changes)


def test_revision_with_an_endless_number_is_passed_over() -> None:
    broken = make_revision(2, values={"a": 1})
    document = '{"name": "exp1", "version": 1e999, "chart": {"metadata": {"name": "mnist"}}}'
    packed = base64.b64encode(gzip.compress(document.encode()))
    broken["data"]["release"] = base64.b64encode(packed).decode()
    assert not find_upgrades((make_revision(1), broken), NOW - 900)
