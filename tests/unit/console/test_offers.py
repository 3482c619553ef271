"""What can be done about a run, by its phase, and with which command."""

from __future__ import annotations

import pytest

from tests.support.console_reports import make_report
from trainchart.console.offers import list_offers
from trainchart.reports.report import CLUSTER, LOCAL, NO_CONTROLLER
from trainchart_runtime.run.state import FAILED, RUNNING, STOPPING, SUCCEEDED, SUSPENDED


@pytest.mark.parametrize(
    ("origin", "phase", "controller", "verbs"),
    [
        (LOCAL, RUNNING, "", ["stop"]),
        (LOCAL, STOPPING, "", []),
        (LOCAL, FAILED, "", []),
        (CLUSTER, RUNNING, "running", ["suspend", "stop"]),
        (CLUSTER, SUSPENDED, "running", ["resume", "stop"]),
        (CLUSTER, STOPPING, "running", []),
        (CLUSTER, SUCCEEDED, "finished", ["rerun"]),
        (CLUSTER, RUNNING, NO_CONTROLLER, []),
        (CLUSTER, RUNNING, "", []),
    ],
)
def test_only_what_makes_sense_is_offered(origin: str, phase: str, controller: str, verbs: list[str]) -> None:
    report = make_report(origin=origin, phase=phase, controller=controller)
    assert [offer.verb for offer in list_offers(report, "")] == verbs


def test_the_command_finds_the_same_run() -> None:
    report = make_report(origin=CLUSTER, controller="running")
    assert [offer.command for offer in list_offers(report, "prod eu")] == [
        "trainchart suspend exp-7 -n team-a --context 'prod eu'",
        "trainchart stop exp-7 -n team-a --context 'prod eu'",
    ]
    assert list_offers(make_report(), "prod")[0].command == "trainchart stop exp-7"
