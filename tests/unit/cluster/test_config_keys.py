"""Which keys a Secret or ConfigMap has that lacks the one that a pod refers to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW
from trainchart.cluster.config_keys import describe_keys
from trainchart.reports.changes import lacks_key
from trainchart.reports.report import Report, ReportedProblem, TrainingKey


def make_report(message: str, cause: str = "config-missing") -> Report:
    problems = tuple(ReportedProblem(f"exp1-mnist-worker-{task}", cause, message) for task in (0, 1))
    return Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Pending", "record", problems=problems)


@pytest.mark.parametrize(
    ("message", "found", "words"),
    [
        (
            "couldn't find key a in Secret team-a/keys",
            {"data": {"hub": "c2VjcmV0", "ab": ""}},
            "has only the keys ab, hub",
        ),
        ("couldn't find key a in Secret team-a/keys", {"data": {"hub": ""}}, "has only the key hub"),
        ("couldn't find key a in Secret team-a/keys", {}, "has no keys"),
        ("couldn't find key a in Secret team-a/others", {"data": {"hub": ""}}, ""),
        ("couldn't find key a in ConfigMap team-a/keys", {"data": {"hub": ""}}, ""),
        ('secret "keys" not found', {"data": {"hub": ""}}, ""),
    ],
)
def test_the_keys_that_are_there_are_named_once(message: str, found: dict[str, Any], words: str) -> None:
    secrets = ({"metadata": {"name": "keys"}, **found},)
    told = list(describe_keys(make_report(message), {"Secret": secrets}))
    assert told == [f"Secret keys {words}"] * bool(words)
    assert lacks_key(make_report(message)) == ("find key" in message)


def test_program_output_is_not_read_as_a_missing_key() -> None:
    report = make_report("couldn't find key a in Secret team-a/keys", "storage-silent")
    assert not list(describe_keys(report, {"Secret": ({"metadata": {"name": "keys"}, "data": {"hub": ""}},)}))
    assert not lacks_key(report)
