"""The use case `trainchart promote`: the export of a release goes live on a model server, or an earlier comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from trainchart import __version__
from trainchart.actions.support.checkpoint_release import HelperOptions, open_release
from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.kept_upgrade import upgrade_and_keep
from trainchart.actions.support.model_servers import read_deployment, read_revisions, read_user
from trainchart.actions.support.promotion_watch import Watch, Watched, watch_promotion, watch_rollout
from trainchart.checkpoints.saved_model import FOLDER, SavedModel
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.gitops import find_gitops_owner
from trainchart.cluster.helm_record import HelmRelease
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import read_training
from trainchart.errors import (
    ChecksFailed,
    ClusterError,
    Conflict,
    NotFound,
    NotInTime,
    Problem,
    RolledBack,
    ToolError,
    TrainchartError,
)
from trainchart.helm.io.upgrade import HelmUpgrade, render_upgrade
from trainchart.kubernetes_yaml import YamlError
from trainchart.promotion.change import (
    FieldChange,
    change_values,
    find_serving_metrics,
    list_changes,
    refuse_version,
    require_server,
)
from trainchart.promotion.gates import Gate, GateResult, check_gate, name_metrics
from trainchart.promotion.history import Entry, find_earlier, find_installed, list_promotions
from trainchart.promotion.record import (
    VALUE,
    Model,
    Promotion,
    Record,
    Source,
    Takeback,
    describe,
    dump_record,
    read_model,
    read_record,
)
from trainchart.reports.report import Report
from trainchart_runtime.run.state import SUCCEEDED

Tell = Callable[[str], None]
_ROLLBACK_SECONDS = 120.0
_FIELDS_SHOWN = 4
_ASKED_FOR = "requested with --rollback"


@dataclass(frozen=True)
class PromoteOptions:
    """What a user asks for."""

    gates: Sequence[Gate] = ()
    step: int | None = None
    version: int | None = None
    """That clients see; None: the step."""
    is_dry_run: bool = False
    watch: Watch = field(default_factory=lambda: Watch(600.0, 30.0, 0.01))


@dataclass(frozen=True)
class Promoted:
    """What was done, or would be."""

    server: str
    namespace: str
    model: Model
    state: str
    """serving, unchanged, or planned for a dry run."""
    record: Record
    before: Model
    changes: Sequence[FieldChange] = ()
    gates: Sequence[GateResult] = ()
    revision: int | None = None
    """Helm's, where one was made."""
    notes: Sequence[str] = ()


SERVING, UNCHANGED, PLANNED = "serving", "unchanged", "planned"


@dataclass(frozen=True)
class _Server:
    """A release of a model server."""

    api: KubernetesApi
    namespace: str
    context: str
    revisions: Sequence[HelmRelease]
    installed: HelmRelease

    @property
    def name(self) -> str:
        return self.installed.name

    @property
    def address(self) -> str:
        return f"{self.name} -n {self.namespace}"

    @property
    def next_revision(self) -> int:
        return max(each.revision for each in self.revisions) + 1


def promote(name: str, to: str, place: Place, options: PromoteOptions, tell: Tell) -> Promoted:
    """Serve the export of a release that has succeeded, and go back to what served before where it does not serve.

    Raises:
        NotFound: there is no such release, or no such server.
        Conflict: the run is not over, the server cannot be promoted to, or the version is taken.
        ChecksFailed: a gate is not met.
        ToolError: the release has no export, or helm fails.
        RolledBack: the new model did not serve, and the one before was brought back.
        NotInTime: the same, since the time was up.
    """
    server = _open_server(to, place)
    report = _read_finished(server, name)
    serving = find_serving_metrics(server.installed)
    # What no metric of the run could meet is told before its claim is read.
    hopeless = (check_gate(each, {each.metric: 0.0}, serving) for each in options.gates)
    _require_gates([each for each in hopeless if each.limit is None], name, to)
    found, model = _read_export(server, name, report, options, tell)
    source = _describe_source(report, found)
    gates = [check_gate(each, source.metrics, serving) for each in options.gates]
    _require_gates(gates, name, to)
    before, record = read_model(server.installed.values), read_record(server.installed)
    done = Promoted(server.name, server.namespace, model, UNCHANGED, record, before, gates=gates)
    if model == before:
        return done
    refuse_version(model, server.installed, server.revisions)
    promotion = Promotion(_now(), read_user(server.api), model, source, tuple(map(str, options.gates)), __version__)
    return _change(server, replace(done, record=Record(promotion)), promotion.by, options, tell)


def roll_back(to: str, place: Place, options: PromoteOptions, tell: Tell) -> Promoted:
    """Serve the model again that served before the present one; only the model changes, no other value.

    Raises:
        NotFound: there is no such server, or no earlier model.
        TrainchartError: as with promote.
    """
    server = _open_server(to, place)
    earlier = find_earlier(server.revisions)
    before, model, by = read_model(server.installed.values), read_model(earlier.values), read_user(server.api)
    promoted = read_record(server.installed).promotion
    takeback = Takeback(
        _now(), by, server.installed.revision, before.version, promoted.at if promoted else "", _ASKED_FOR
    )
    record = Record(read_record(earlier).promotion, takeback)
    done = Promoted(server.name, server.namespace, model, UNCHANGED, record, before)
    return _change(server, done, by, options, tell)


def read_history(to: str, place: Place) -> tuple[list[Entry], Model]:
    """Return the promotions that the server's revisions record, the newest first, and the model that serves now.

    Raises:
        NotFound: there is no such server.
        Conflict: it is not a model server.
    """
    server = _open_server(to, place)
    return list_promotions(server.revisions), read_model(server.installed.values)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _open_server(name: str, place: Place) -> _Server:
    api, namespace = open_cluster(place)
    revisions = read_revisions(api, namespace, name)
    installed = find_installed(revisions)
    assert installed is not None, "read_revisions refuses a release without one"
    require_server(installed, namespace)
    return _Server(api, namespace, place.context, revisions, installed)


def _read_finished(server: _Server, name: str) -> Report:
    """Return the report of a release whose run has succeeded."""
    try:
        report = diagnose(*read_training(server.api, server.namespace, name))
    except NotFound as error:
        only = f"the release must be in the namespace of the server, {server.namespace}: pods cannot mount other claims"
        raise NotFound(error.message, hint="; ".join(filter(None, (error.hint, only)))) from error
    if report.phase == SUCCEEDED:
        return report
    if not report.is_over:
        raise Conflict(
            f"the run of {name} is not over: {report.phase}", hint=f"wait for it: trainchart wait {report.address}"
        )
    raise Conflict(f"the run of {name} has not succeeded: {report.phase}", hint=f"see: trainchart why {report.address}")


def _read_export(
    server: _Server, name: str, report: Report, options: PromoteOptions, tell: Tell
) -> tuple[SavedModel, Model]:
    """Return the export of a release, and the values that pin it."""
    source = open_release(Place(server.context, server.namespace), name, HelperOptions(), tell)
    found = source.read_saved_model()
    if options.step is not None and options.step != found.step:
        raise Conflict(
            f"the export of {name} is of step {found.step}, not of {options.step}",
            hint="a release keeps only the export of its last step; for checkpoints of other steps, see: "
            f"trainchart checkpoints list {report.address}",
        )
    version = found.step if options.version is None else options.version
    if version < 1:
        raise Conflict(f"the export of {name} is of step {version}; versions start at 1", hint="set --version")
    if _is_of_another_run(found, report):
        tell(f"note: the export is of the run {found.run}, and the last run of {name} is {report.run_id}")
    volume = source.volume
    path = "/".join(filter(None, (volume.sub_path.strip("/"), volume.folder.strip("/"), FOLDER)))
    return found, Model(version, found.content, volume.claim, path)


def _is_of_another_run(found: SavedModel, report: Report) -> bool:
    return bool(found.run and report.run_id and found.run != report.run_id)


def _describe_source(report: Report, found: SavedModel) -> Source:
    reported = (report.outcome.metrics if report.outcome is not None else {}) or report.progress.metrics
    metrics = name_metrics({} if _is_of_another_run(found, report) else reported, found.metrics)
    return Source(report.key.release, found.run or report.run_id, found.step, metrics, found.image, report.chart)


def _require_gates(gates: Sequence[GateResult], name: str, to: str) -> None:
    failed = [each for each in gates if not each.has_passed]
    if failed:
        which = "a gate is" if len(failed) == 1 else f"{len(failed)} gates are"
        raise ChecksFailed(
            f"{name} is not promoted to {to}: {which} not met",
            problems=tuple(Problem(each.problem, hint=each.hint) for each in failed),
        )


def _change(server: _Server, done: Promoted, by: str, options: PromoteOptions, tell: Tell) -> Promoted:
    """Have the server serve another model, as `done` says, or only say what would change."""
    values = change_values(server.installed, done.model, done.record)
    done = replace(done, state=PLANNED, changes=list_changes(server.installed, values))
    if options.is_dry_run:
        render_upgrade(replace(_plan_upgrade(server), values=values))
        return done
    for each in done.changes:
        tell(f"{each.key}: {each.before} -> {each.after}")
    deployment, _ = read_deployment(server.api, server.namespace, server.name)
    owner = find_gitops_owner([deployment])
    try:
        kept = _upgrade(server, values, done.record)
    except (KeyboardInterrupt, SystemExit):
        tell(
            f"interrupted while helm upgraded {server.name}; see its state: helm history {server.address}; roll back "
            f"to {done.before}: helm rollback {server.name} {server.installed.revision} -n {server.namespace}"
        )
        raise
    notes = [f"{owner.name} will undo this: {owner.advice}"] if owner else []
    notes += [f"kept changes made outside the chart: {', '.join(kept[:_FIELDS_SHOWN])}"] if kept else []
    watched = _watch(server, done, options.watch, tell)
    if watched.failure:
        raise _undo(server, done, by, watched, tell)
    return replace(done, state=SERVING, revision=server.next_revision, notes=notes)


def _plan_upgrade(server: _Server) -> HelmUpgrade:
    return HelmUpgrade(
        server.name, server.namespace, server.context, server.installed.files, values=server.installed.given
    )


def _upgrade(server: _Server, values: Mapping[str, Any], record: Record) -> tuple[str, ...]:
    """Upgrade to other values with the chart that is installed, and return what was kept of foreign changes."""
    unchanged = _plan_upgrade(server)
    try:
        return upgrade_and_keep(
            replace(unchanged, values=values, description=describe(record)), unchanged, server.installed.texts
        )
    except YamlError as error:
        raise ToolError(f"cannot read the objects of {server.name}: {error}") from error


def _watch(server: _Server, done: Promoted, watch: Watch, tell: Tell) -> Watched:
    """Watch the new revision; where that is cut off, say what is left and how to go back."""
    program = str(server.installed.values.get("server") or "")
    left = f"revision {server.next_revision} with {done.model} stays installed, and its rollout continues unwatched"
    advice = (
        f"watch it: kubectl rollout status deployment/{server.address}; roll back to {done.before}: "
        f"trainchart promote --to {server.address} --rollback"
    )
    tell(f"revision {server.next_revision} of {server.name} has {done.model}; its pods start")
    try:
        return watch_promotion(server.api, server.namespace, (server.name, program), done.model, watch, tell)
    except (KeyboardInterrupt, SystemExit):
        tell(f"{left}; {advice}")
        raise
    except ClusterError as error:
        error.hint = f"{left}; {advice}"
        raise


def _undo(server: _Server, done: Promoted, by: str, watched: Watched, tell: Tell) -> TrainchartError:
    """Bring back all values of the revision before, and return the error that says so."""
    tell(f"{done.model} does not serve: {watched.failure}; rolling back to {done.before}")
    promoted = done.record.promotion if done.record.takeback is None else None
    takeback = Takeback(
        _now(), by, server.next_revision, done.model.version, promoted.at if promoted else "", watched.failure
    )
    record = Record(read_record(server.installed).promotion, takeback)
    manual = f"helm rollback {server.name} {server.installed.revision} -n {server.namespace}"
    try:
        _upgrade(server, {**server.installed.given, VALUE: dump_record(record)}, record)
        rollout, _ = watch_rollout(
            server.api, server.namespace, server.name, done.before, _ROLLBACK_SECONDS, lambda line: None
        )
    except TrainchartError as error:
        return RolledBack(
            f"{done.model} does not serve: {watched.failure}. The rollback failed: {error.message}",
            hint=f"roll back by hand: {manual}",
        )
    except (KeyboardInterrupt, SystemExit):
        tell(f"interrupted during the rollback to {done.before}; if helm history shows no new revision: {manual}")
        raise
    state = "serves again" if rollout.is_done else f"does not serve yet: {rollout.failure}"
    kind = NotInTime if watched.is_late else RolledBack
    return kind(
        f"{done.model} does not serve: {watched.failure}. {server.name} was rolled back: {done.before} {state}",
        hint=f"see: trainchart promote --to {server.address} --history",
    )
