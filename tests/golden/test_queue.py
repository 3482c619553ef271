"""A release that waits in a queue: its pods carry a gate, its controller has the rights, and nothing else waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides

MNIST = Path(__file__).parents[2] / "charts" / "mnist"


def render(*sets: str) -> Rendering:
    return find_engine("sdk").render(MNIST, release="exp-7", overrides=ValueOverrides(sets=sets))


def of_kind(rendering: Rendering, kind: str) -> list[dict[str, Any]]:
    return [dict(each.document) for each in rendering.manifests if each.kind == kind]


def read_settings(rendering: Rendering) -> dict[str, Any]:
    (job,) = of_kind(rendering, "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (text,) = (each["value"] for each in container["env"] if each["name"] == "TRAINCHART_RUN_SETTINGS")
    settings: dict[str, Any] = json.loads(text)
    return settings


def test_queue_holds_every_training_pod_and_nothing_else() -> None:
    rendering = render("run.queue=research", "run.queuePriorityClass=high", "tensorboard.enabled=true")
    for each in of_kind(rendering, "StatefulSet"):
        assert each["spec"]["template"]["spec"]["schedulingGates"] == [{"name": "trainchart/queue"}]
        assert each["metadata"]["annotations"]["trainchart/queue"] == "research"
        assert "replicas" not in each["spec"]
    for kind in ("Job", "Deployment"):
        (each,) = of_kind(rendering, kind)
        assert "schedulingGates" not in each["spec"]["template"]["spec"], kind
    settings = read_settings(rendering)
    assert (settings["queue"], settings["queuePriorityClass"]) == ("research", "high")
    assert settings["workload"] == "exp-7-mnist-queue"


def test_rights_grow_only_with_a_queue_and_by_name() -> None:
    (before,), (after,) = of_kind(render(), "Role"), of_kind(render("run.queue=research"), "Role")
    # The controller's own Job has another name, since it follows another plan.
    more = [rule for rule in after["rules"] if rule not in before["rules"] and rule["resources"] != ["jobs"]]
    found = {(tuple(rule["resources"]), tuple(rule["verbs"])): rule["resourceNames"] for rule in more}
    pods = next(rule["resourceNames"] for rule in before["rules"] if rule["verbs"] == ["delete"])
    assert found == {
        (("workloads",), ("list", "watch", "create", "patch", "delete")): ["exp-7-mnist-queue"],
        (("workloads/status",), ("patch",)): ["exp-7-mnist-queue"],
        (("pods",), ("patch",)): pods,
    }


def test_release_without_a_queue_says_nothing_about_one() -> None:
    rendering = render()
    assert not {"queue", "workload"} & set(read_settings(rendering))
    for each in of_kind(rendering, "StatefulSet"):
        assert "trainchart/queue" not in each["metadata"]["annotations"]


KUEUE = r"kueue\.x-k8s\.io/queue-name=research"


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("run.queue=research", "run.controller.enabled=false"), "run.queue: the run controller waits in the queue"),
        (("run.queuePriorityClass=high",), "name the queue as well"),
        ((f"commonLabels.{KUEUE}",), "name the queue in run.queue"),
        ((f"podLabels.{KUEUE}",), "name the queue in run.queue"),
        ((f"roles.worker.labels.{KUEUE}",), "roles.worker.labels.kueue.x-k8s.io/queue-name"),
        ((f"roles.ps.podLabels.{KUEUE}",), "name the queue in run.queue"),
        (("run.queue=Research_Team",), "run"),
    ],
)
def test_queues_that_cannot_work_are_refused(sets: tuple[str, ...], message: str) -> None:
    with pytest.raises(RenderError) as refusal:
        render(*sets)
    assert message in f"{refusal.value.message} {' '.join(map(str, refusal.value.problems))}"


def test_labels_of_kueue_remain_possible_without_a_controller() -> None:
    assert render("run.controller.enabled=false", f"commonLabels.{KUEUE}").manifests
