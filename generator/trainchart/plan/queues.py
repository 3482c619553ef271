"""Queue settings of a spec that would leave a training waiting for its other half. Pure.

Helm's part for those who install is `refuseQueues` in templates/_refusals.tpl.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.spec.document import Path
from trainchart.spec.model import ModelSpec
from trainchart_runtime.contract import KUEUE_LABEL


def find_queue_problems(spec: ModelSpec) -> Iterator[tuple[Path, str, str]]:
    """Yield path, message and hint of each setting that is wrong."""
    run = spec.run
    if run.queue and not run.controller.enabled:
        yield ("run", "queue"), "the run controller waits in the queue", "set run.controller.enabled to true"
    if run.queue_priority_class and not run.queue:
        yield ("run", "queuePriorityClass"), "a priority class needs a queue", "name the queue in run.queue"
    layers: dict[Path, dict[str, str | int]] = {("commonLabels",): spec.common_labels, ("podLabels",): spec.pod_labels}
    for role, settings in spec.roles.items():
        layers["roles", role, "labels"] = settings.labels
        layers["roles", role, "podLabels"] = settings.pod_labels
    for path, labels in layers.items():
        if run.controller.enabled and KUEUE_LABEL in labels:
            message = (
                f"with {KUEUE_LABEL} Kueue queues each StatefulSet separately: part of the training waits for the rest"
            )
            yield (*path, KUEUE_LABEL), message, "name the queue in run.queue instead"
