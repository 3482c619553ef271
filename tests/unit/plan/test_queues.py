"""Queue settings of a spec that cannot work: refused with the place and the way out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainchart.errors import PlanError
from trainchart.plan.chart_plan import ChartPlan

Resolve = Callable[..., ChartPlan]
LABEL = "kueue.x-k8s.io/queue-name: research"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("run: {queue: research, controller: {enabled: false}}", "the run controller waits in the queue"),
        ("run: {notify: {secret: channel}, controller: {enabled: false}}", "the run controller sends the messages"),
        ("run: {queuePriorityClass: high}", "a priority class needs a queue"),
        (f"commonLabels: {{{LABEL}}}", "Kueue queues each StatefulSet separately"),
        (f"podLabels: {{{LABEL}}}", "Kueue queues each StatefulSet separately"),
    ],
)
def test_queues_that_cannot_work_are_refused(resolved: Resolve, spec: str, more: str, says: str) -> None:
    with pytest.raises(PlanError) as refusal:
        resolved(f"{spec}\n{more}\n")
    assert says in f"{refusal.value.message} {' '.join(map(str, refusal.value.problems))}"


def test_queue_reaches_the_plan(resolved: Resolve, spec: str) -> None:
    plan = resolved(f"{spec}\nrun: {{queue: research, queuePriorityClass: high}}\n")
    assert (plan.spec.run.queue, plan.spec.run.queue_priority_class) == ("research", "high")
