"""What upgrading a release does to its training, by phase; tests/cluster/test_live_upgrade.py asks a real cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NOW
from trainchart.compare.effect import Effect, Fate, FieldChange, ObjectChange
from trainchart.compare.live import (
    Outcome,
    Prediction,
    ReleaseChange,
    Target,
    leave_unknown,
    predict,
    summarize,
    worst_first,
)
from trainchart.reports.report import (
    FROM_PODS,
    FROM_RECORD,
    NO_CONTROLLER,
    UNKNOWN,
    OutsideChange,
    PodReport,
    Progress,
    Report,
    TrainingKey,
)

KEY = TrainingKey("team-a", "exp1", "mnist")
TARGET = Target("mnist-0.1.1", "charts/mnist")
RUN: dict[str, Any] = {
    "id": "",
    "desiredState": "running",
    "onChange": "restart-group",
    "controller": {"enabled": True},
}
COMMAND = "helm upgrade exp1 charts/mnist --namespace team-a --reset-then-reuse-values"
TEMPLATE = FieldChange("spec.template.spec.containers[0].image", "a:1", "a:2")


def changed(kind: str, effect: Effect, *fields: FieldChange) -> ObjectChange:
    return ObjectChange(kind, f"exp1-mnist-{kind.lower()}", Fate.changed, effect, fields)


POLICY = changed("NetworkPolicy", Effect.applied)
SET = changed("StatefulSet", Effect.restart, TEMPLATE)
CLAIM = changed("PersistentVolumeClaim", Effect.rejected, FieldChange("spec.storageClassName", "a", "b"))
FIXED_SET = changed("StatefulSet", Effect.rejected, FieldChange("spec.serviceName", "a", "b"))


def pod(number: int, gpus: int = 4) -> PodReport:
    held = {"nvidia.com/gpu": gpus} if gpus else {}
    name = f"exp1-mnist-worker-{number}"
    return PodReport(name, f"worker-{number}", "worker", "Running", "node1", 0, NOW - 9000, held, holds_gpus=True)


def report(phase: str = "Running", **fields: Any) -> Report:
    given = {"source": FROM_RECORD, "since": NOW - 7200, "chart": "mnist-0.1.0", "controller": "running", **fields}
    return Report(KEY, NOW, phase, pods=given.pop("pods", (pod(0), pod(1))), **given)


def change(*objects: ObjectChange, **run: Any) -> ReleaseChange:
    return ReleaseChange(objects, RUN, RUN | run)


@pytest.mark.parametrize(
    ("seen", "found", "outcome"),
    [
        (report(), change(), Outcome.none),
        (report(), change(POLICY), Outcome.applied),
        (report(), change(POLICY, SET), Outcome.restarted),
        (report("Starting"), change(SET), Outcome.restarted),
        (report(), change(SET, onChange="finish-first"), Outcome.later),
        (report(), change(SET, controller={"enabled": False}), Outcome.later),
        (report("Suspended", pods=()), change(SET), Outcome.later),
        (report("Restarting"), change(SET), Outcome.later),
        (report("Finishing"), change(SET), Outcome.applied),
        (report("Stopping"), change(SET), Outcome.applied),
        (report("Succeeded", pods=()), change(SET), Outcome.applied),
        (report("Failed", pods=()), change(SET), Outcome.applied),
        (report("Succeeded", pods=()), change(), Outcome.none),
        (report("Succeeded", pods=()), change(CLAIM), Outcome.rejected),
        (report(), change(SET, CLAIM), Outcome.rejected),
        (report(), ReleaseChange(refusal="seed: not a value"), Outcome.refused),
        (report(UNKNOWN, source=FROM_PODS), change(SET), Outcome.unknown),
        (report(UNKNOWN, source=FROM_PODS), change(POLICY), Outcome.applied),
        (report(), change(id="2"), Outcome.steered),
        (report("Succeeded"), change(id="2"), Outcome.steered),
        (report(), change(desiredState="suspended"), Outcome.steered),
        (report("Succeeded"), change(desiredState="suspended"), Outcome.none),
    ],
)
def test_the_outcome_follows_from_objects_and_phase(seen: Report, found: ReleaseChange, outcome: Outcome) -> None:
    told = predict(seen, found, TARGET)
    assert told.outcome is outcome
    assert told.is_deferred == (outcome is Outcome.restarted and seen.phase == "Running")
    assert bool(told.command) == (outcome < Outcome.rejected)


def test_a_restart_is_left_for_the_next_attempt() -> None:
    told = predict(report(), change(SET), TARGET)
    assert told.loss is not None
    assert (told.loss.gpu_hours, told.loss.text) == (16.0, "16 GPU-hours")
    assert told.is_deferred
    assert told.command == f"{COMMAND} --set run.onChange=finish-first"


def test_what_has_not_trained_loses_nothing() -> None:
    told = predict(report("Starting"), change(SET), TARGET)
    assert told.loss is not None
    assert (told.loss.seconds, told.loss.text, told.is_deferred) == (0, "nothing", False)
    assert told.command == COMMAND
    training = report("Starting", progress=Progress(step=7, at=NOW - 60))
    assert predict(training, change(SET), TARGET).is_deferred


def test_without_gpus_hours_of_pods_are_lost() -> None:
    told = predict(report(pods=(pod(0, 0), pod(1, 0))), change(SET), TARGET)
    assert told.loss is not None
    assert told.loss.text == "2.0 hours of 2 pods"
    unseen = predict(report(pods=None), change(SET), TARGET)
    assert unseen.loss is not None
    assert unseen.loss.gpu_hours is None


def test_a_locked_value_leaves_no_command() -> None:
    told = predict(report(), replace(change(SET), can_defer=False), TARGET)
    assert (told.command, told.is_deferred) == ("", False)
    assert told.hint == "upgrade it when its run is over: the chart does not accept run.onChange=finish-first"


def test_what_is_rejected_comes_with_a_cure() -> None:
    claim = predict(report(), change(CLAIM), TARGET)
    assert claim.reason == "PersistentVolumeClaim exp1-mnist-persistentvolumeclaim: spec.storageClassName"
    assert "in the release's values, or install a new release" in claim.hint
    assert claim.loss is None
    told = predict(report(), change(FIXED_SET), TARGET)
    command = "kubectl delete statefulset exp1-mnist-statefulset --namespace team-a --cascade=orphan"
    assert told.hint == f"first: {command}"


def test_what_is_rejected_restarts_all_the_same() -> None:
    told = predict(report(), change(SET, CLAIM), TARGET)
    assert told.reason.endswith("; the rest of the upgrade is applied, which restarts training")
    assert told.loss is not None
    assert (told.loss.text, told.is_deferred, told.command) == ("16 GPU-hours", False, "")
    for quiet in (report("Suspended", pods=()), report("Failed", pods=())):
        assert predict(quiet, change(SET, CLAIM), TARGET).loss is None


def test_an_outside_change_is_taken_back() -> None:
    edited = OutsideChange("StatefulSet", "exp1-mnist-worker", "kubectl-set", NOW, ("training.image=a:3",))
    told = predict(report(outside_changes=(edited,)), change(), TARGET)
    assert told.outcome is Outcome.restarted
    assert told.reason == "undoes changes made outside Helm: training.image=a:3 (kubectl-set)"
    assert predict(report("Failed", outside_changes=(edited,)), change(), TARGET).outcome is Outcome.applied


def test_what_git_applies_has_no_command() -> None:
    told = predict(report(), change(SET), replace(TARGET, owner="the Flux HelmRelease flux/exp1"))
    assert (told.outcome, told.command, told.is_deferred) == (Outcome.restarted, "", False)
    assert told.hint == "upgrade it in git: the Flux HelmRelease flux/exp1 applies it"


def test_pods_of_a_moment_are_announced() -> None:
    told = predict(report("Suspended", pods=()), replace(change(SET), has_brief_pods=True), TARGET)
    assert told.reason == "Kubernetes creates one pod of each role for a moment"
    assert predict(report(), replace(change(SET), has_brief_pods=True), TARGET).reason == ""


def test_a_new_run_controller_is_announced() -> None:
    found = ReleaseChange((POLICY,), RUN | {"controller": {"enabled": False}}, RUN)
    told = predict(report(source=FROM_PODS, controller=NO_CONTROLLER), found, TARGET)
    assert told.outcome is Outcome.steered
    assert told.reason == "the upgrade adds a run controller, which changes the run to running"


def test_a_release_of_this_very_chart_needs_no_command() -> None:
    assert predict(report(chart="mnist-0.1.1"), change(), TARGET).command == ""
    assert predict(report(), change(), TARGET).command == COMMAND
    in_context = replace(TARGET, folder="my charts/mnist", context="prod")
    assert "'my charts/mnist'" in predict(report(), change(), in_context).command
    assert "--kube-context prod" in predict(report(), change(), in_context).command


def test_the_summary_counts_the_mildest_first() -> None:
    found = [
        predict(report(), change(SET), TARGET),
        predict(report("Starting"), change(SET), TARGET),
        predict(report(), change(POLICY), TARGET),
        *(predict(report(), change(), TARGET) for _ in range(38)),
        leave_unknown(report(), "Helm did not install it"),
    ]
    assert summarize(found) == (
        "42 releases: 38 no effect, 1 applied in place, 1 would restart without losing work, "
        "1 would lose up to 16 GPU-hours, deferred to the next attempt, 1 unknown"
    )
    assert [each.outcome for each in worst_first(found)][:3] == [Outcome.unknown, Outcome.restarted, Outcome.restarted]
    assert summarize([]) == "0 releases of these charts"


def test_larger_losses_come_first() -> None:
    large = predict(report(since=NOW - 90_000), change(SET), TARGET)
    small: Prediction = predict(report(), change(SET), TARGET)
    assert worst_first([small, large]) == [large, small]
    assert summarize([small, large]).endswith("2 would lose up to 216 GPU-hours, deferred to the next attempt")
