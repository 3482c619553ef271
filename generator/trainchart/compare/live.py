"""What `helm upgrade` would do now to a release: to its objects, and to the training that runs in it. Pure.

compare/effect.py says what becomes of objects; whether a training loses work by that depends on its phase, and on what
the release's values ask of its run controller. tests/cluster/test_live_upgrade.py asks a real cluster whether that is
true.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainchart.check.objects import mapping_at
from trainchart.compare.effect import Effect, Fate, ObjectChange
from trainchart.reports.report import UNKNOWN, Report, TrainingKey
from trainchart_runtime.run.plan import DESIRED_RUNNING, FINISH_FIRST
from trainchart_runtime.run.state import FINISHING, RESTARTING, STARTING, STOPPING, SUSPENDED

DEFERRING = f"run.onChange={FINISH_FIRST}"
"""The value with which an upgrade does not restart a training."""
REPLICAS = (("StatefulSet", "spec.replicas"),)
"""The run controller's field: whether a chart renders it depends on what the cluster holds."""
_CLAIM = "PersistentVolumeClaim"


class Outcome(enum.IntEnum):
    """The effect on a release, the worst last."""

    none = 0
    applied = 1
    """Objects change, and no pod of the training."""
    later = 2
    """Pods change with the next attempt, or when they are recreated."""
    restarted = 3
    """The run controller recreates the pods at once."""
    steered = 4
    """The run is started, suspended or ended."""
    rejected = 5
    """The API server refuses the upgrade."""
    refused = 6
    """The chart refuses the release's values, and nothing changes."""
    unknown = 7

    @property
    def text(self) -> str:
        """Return the outcome in the words of the documentation."""
        return _TEXTS[self]


_TEXTS = {
    Outcome.none: "no effect",
    Outcome.applied: "applied in place",
    Outcome.later: "takes effect at the next attempt",
    Outcome.restarted: "restarts training",
    Outcome.steered: "starts or stops the run",
    Outcome.rejected: "rejected by Kubernetes (immutable)",
    Outcome.refused: "values refused by the chart",
    Outcome.unknown: "unknown",
}


@dataclass(frozen=True)
class ReleaseChange:
    """What is installed of a release against the new chart, rendered with the release's own values."""

    objects: tuple[ObjectChange, ...] = ()
    old_run: Mapping[str, Any] = field(default_factory=dict)
    """The section `run` of the values, those of the chart included."""
    new_run: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""
    """Why the new chart does not render with the release's values."""
    has_brief_pods: bool = False
    """Whether the upgrade takes back that no pod is asked for, as at the installation of a suspended release."""
    can_defer: bool = True
    """Whether the new chart accepts DEFERRING: a pack can lock that value."""


@dataclass(frozen=True)
class Loss:
    """The most work that a restart can lose: all that the attempt has done, since checkpoints are not counted."""

    seconds: float
    gpus: int | None
    """None where the pods could not be read."""
    pods: int

    @property
    def gpu_hours(self) -> float | None:
        return None if self.gpus is None else self.gpus * self.seconds / 3600

    @property
    def text(self) -> str:
        if not self.seconds:
            return "nothing"
        hours = self.seconds / 3600
        if self.gpus:
            return f"{_round(self.gpus * hours)} GPU-hours"
        return f"{_round(hours)} hours of {self.pods} pod{'s' * (self.pods != 1)}"


@dataclass(frozen=True)
class Prediction:
    """What upgrading a release now does."""

    key: TrainingKey
    chart: str
    """Name and version that are installed."""
    phase: str
    outcome: Outcome
    loss: Loss | None = None
    """For a training that would restart, even if the upgrade fails."""
    is_deferred: bool = False
    """The command leaves the training as it is until its next attempt."""
    reason: str = ""
    hint: str = ""
    objects: tuple[ObjectChange, ...] = ()
    command: str = ""
    """The command for the upgrade; empty if there is nothing to do, or something else must be done first."""


@dataclass(frozen=True)
class Target:
    """The new chart of a release: its name and version, its folder, and the kubeconfig's context that was named."""

    chart: str
    folder: str
    context: str = ""
    owner: str = ""
    """What applies the release from git, in words; empty where helm does."""


def predict(report: Report, change: ReleaseChange, target: Target) -> Prediction:
    """Return what upgrading the release of `report` does, and the command for it."""
    outcome, reason = _decide(report, change)
    is_restarted = outcome is Outcome.restarted or (outcome is Outcome.rejected and _restarts(report, change))
    loss = _estimate_loss(report) if is_restarted else None
    is_costly = outcome is Outcome.restarted and loss is not None and loss.seconds > 0
    is_deferred = is_costly and change.can_defer and not target.owner
    is_current = outcome is Outcome.none and report.chart == target.chart and not change.objects
    is_blocked = outcome >= Outcome.rejected or (is_costly and not change.can_defer)
    hint = "; ".join(_cures(report, change.objects)) if outcome is Outcome.rejected else ""
    if target.owner:
        is_blocked, hint = True, "; ".join(filter(None, (hint, f"upgrade it in git: {target.owner} applies it")))
    if is_costly and not change.can_defer:
        hint = f"upgrade it when its run is over: the chart does not accept {DEFERRING}"
    return Prediction(
        report.key,
        report.chart or report.key.chart,
        report.phase,
        outcome,
        loss,
        is_deferred,
        reason,
        hint,
        change.objects,
        "" if is_current or is_blocked else _spell_command(report.key, target, is_deferred=is_deferred),
    )


def leave_unknown(report: Report, reason: str) -> Prediction:
    """Return the prediction for a release that could not be compared."""
    return Prediction(report.key, report.chart or report.key.chart, report.phase, Outcome.unknown, reason=reason)


def _decide(report: Report, change: ReleaseChange) -> tuple[Outcome, str]:
    if change.refusal:
        return Outcome.refused, change.refusal
    effect = max((each.effect for each in change.objects), default=Effect.none)
    if effect is Effect.rejected:
        # Helm goes on with the other objects, and then fails.
        also = "; the rest of the upgrade is applied, which restarts training" if _restarts(report, change) else ""
        return Outcome.rejected, f"{_list_rejected(change.objects)}{also}"
    steering = ", ".join(_find_steering(report, change))
    if steering:
        return Outcome.steered, steering
    drift = _describe_drift(report)
    if effect < Effect.restart and not drift:
        return (Outcome.none if effect is Effect.none else Outcome.applied), ""
    return _follow_phase(report, change, drift)


def _restarts(report: Report, change: ReleaseChange) -> bool:
    has_new_pods = any(each.effect is Effect.restart for each in change.objects)
    return has_new_pods and _follow_phase(report, change, "")[0] is Outcome.restarted


def _follow_phase(report: Report, change: ReleaseChange, drift: str) -> tuple[Outcome, str]:
    """Return the outcome for a training whose pods an upgrade changes."""
    if report.is_over or report.phase in (FINISHING, STOPPING):
        return Outcome.applied, "the run is over" if report.is_over else "the run is about to end"
    if not _has_controller(change.new_run):
        return Outcome.later, "no run controller restarts its pods: they only change when you delete them"
    if report.phase in (SUSPENDED, RESTARTING):
        brief = "Kubernetes creates one pod of each role for a moment" if change.has_brief_pods else ""
        return Outcome.later, "; ".join(filter(None, (drift, brief)))
    if report.phase == UNKNOWN:
        return Outcome.unknown, "; ".join(report.unknown) or "the phase of its run is not known"
    if change.new_run.get("onChange") == FINISH_FIRST:
        return Outcome.later, f"{DEFERRING} in its values"
    return Outcome.restarted, drift


def _find_steering(report: Report, change: ReleaseChange) -> Iterator[str]:
    """Yield each changed value that starts or stops the run; the chart's defaults can change too."""
    for key in ("id", "desiredState"):
        before, after = (str(run.get(key) or "") for run in (change.old_run, change.new_run))
        is_idle = key == "desiredState" and report.is_over
        if change.old_run and before != after and not is_idle:
            yield f"run.{key} changes from {before or 'empty'} to {after or 'empty'}"
    if change.old_run and _has_controller(change.new_run) and not _has_controller(change.old_run):
        yield "the upgrade adds a run controller, which changes the run to " + str(
            change.new_run.get("desiredState") or DESIRED_RUNNING
        )


def _describe_drift(report: Report) -> str:
    found = [f"{field} ({change.by})" for change in report.outside_changes for field in change.fields]
    return f"undoes changes made outside Helm: {', '.join(found)}" if found else ""


def _estimate_loss(report: Report) -> Loss:
    pods = sum(pod.state == "Running" for pod in report.pods or ())
    is_training = report.phase != STARTING or report.progress.at > report.since
    seconds = max(0.0, report.now - report.since) if is_training and report.since else 0.0
    return Loss(seconds, None if report.gpus is None else sum(report.gpus.values()), pods)


def _list_rejected(objects: Sequence[ObjectChange]) -> str:
    rejected = [change for change in objects if change.effect is Effect.rejected]
    return ", ".join(f"{each.kind} {each.name}: {', '.join(f.path for f in each.fields)}" for each in rejected)


def _cures(report: Report, objects: Sequence[ObjectChange]) -> Iterator[str]:
    """Yield what to do about each object that the API server does not change."""
    for change in objects:
        if change.effect is not Effect.rejected or change.fate is not Fate.changed:
            continue
        if change.kind == _CLAIM:
            yield f"keep the old settings of claim {change.name} in the release's values, or install a new release"
            continue
        orphan = " --cascade=orphan" if change.kind == "StatefulSet" else ""
        kind = change.kind.lower()
        yield f"first: kubectl delete {kind} {change.name} --namespace {report.key.namespace}{orphan}"


def _spell_command(key: TrainingKey, target: Target, *, is_deferred: bool) -> str:
    words = ["helm", "upgrade", key.release, target.folder, "--namespace", key.namespace, "--reset-then-reuse-values"]
    words += ["--kube-context", target.context] if target.context else []
    words += ["--set", DEFERRING] if is_deferred else []
    return shlex.join(words)


def _has_controller(run: Mapping[str, Any]) -> bool:
    return mapping_at(run, "controller").get("enabled") is True


def _round(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def summarize(found: Sequence[Prediction]) -> str:
    """Return the number of releases with each outcome in one line, the mildest first."""
    parts: list[str] = []
    for outcome in sorted({each.outcome for each in found}):
        own = [each for each in found if each.outcome is outcome]
        if outcome is Outcome.restarted:
            parts += _summarize_losses(own)
        else:
            parts.append(f"{len(own)} {outcome.text}")
    what = f"{len(found)} release{'s' * (len(found) != 1)}"
    return f"{what}: {', '.join(parts)}" if parts else f"{what} of these charts"


def _summarize_losses(found: Sequence[Prediction]) -> Iterator[str]:
    free = [each for each in found if each.loss is None or not each.loss.seconds]
    if free:
        yield f"{len(free)} would restart without losing work"
    for is_deferred in (True, False):
        losses = [each.loss for each in found if each.loss and each.loss.seconds and each.is_deferred is is_deferred]
        if losses:
            gpu_hours = sum(loss.gpu_hours or 0.0 for loss in losses)
            size = f"up to {_round(gpu_hours)} GPU-hours" if gpu_hours else "work"
            yield f"{len(losses)} would lose {size}{', deferred to the next attempt' if is_deferred else ''}"


def worst_first(found: Sequence[Prediction]) -> list[Prediction]:
    """Return the predictions, those that lose the most first."""

    def rank(each: Prediction) -> tuple[float, float, float, TrainingKey]:
        loss = each.loss or Loss(0, 0, 0)
        return -each.outcome, -(loss.gpu_hours or 0.0), -loss.seconds, each.key

    return sorted(found, key=rank)
