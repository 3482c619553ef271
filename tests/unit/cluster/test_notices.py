"""What status says of a message of run.notify: nothing where it was sent, or is on its way; else why it was not."""

from __future__ import annotations

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_job, make_pods, make_record, make_sets, make_state
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import TrainingKey

START = "the message of run.notify about Running may not have arrived: "


@pytest.mark.parametrize(
    ("outcome", "age", "remarks"),
    [
        ("sent", 600, ()),
        ("", 5, ()),
        ("", 600, (f"{START}the run controller ended while it sent the message",)),
        ("the webhook answers with HTTP status 500", 5, (f"{START}the webhook answers with HTTP status 500",)),
    ],
)
def test_a_message_that_was_not_sent_is_a_remark(outcome, age, remarks):
    notice = {"phase": "Running", "since": NOW - age, "outcome": outcome}
    records = (make_record(make_state("Running", notice=notice)),)
    seen = Snapshot(now=NOW, sets=make_sets(), pods=make_pods(), jobs=(make_job(),), records=records)
    found = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    assert tuple(each for each in found if "run.notify" in each) == remarks
