"""Words the answer of `why`: what failed first, where, in which words, what was done, what to do next. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainchart.reports.changes import advise_on_changes, can_be_undone, change_lines, upgrade_lines
from trainchart.reports.deaths import death_lines, find_first_death, find_growth, find_repeated
from trainchart.reports.hangs import (
    advise_on_hang,
    explain_early_finish,
    explain_refusals,
    show_last_lines,
    show_line,
)
from trainchart.reports.hints import choose_space_hint, fill_in, leave_notes
from trainchart.reports.local_causes import NOTHING_DONE, RUN_KILLED
from trainchart.reports.report import (
    CLUSTER,
    FROM_PODS,
    LOCAL,
    NO_CONTROLLER,
    NOT_RUNNING,
    SILENT_SECONDS,
    TERMINATING,
    UNKNOWN,
    Report,
)
from trainchart.reports.settings import suggest_settings
from trainchart.reports.text import (
    clean_lines,
    describe_pace,
    describe_seconds,
    describe_slowdown,
    describe_time,
    headline,
    problem_lines,
    setback_lines,
)
from trainchart_runtime.causes import (
    ACCESS_REFUSED,
    CAUSES,
    DISK_FULL,
    DOWNLOAD_FAILED,
    OUT_OF_MEMORY,
    PEER_MISSING,
    PEER_UNRESOLVABLE,
    PORT_IN_USE,
    SERVICE_UNREACHABLE,
    STORAGE_FAILED,
)
from trainchart_runtime.data_causes import LOST_FILES
from trainchart_runtime.pod_causes import POD_DELETED
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.problems import GIVEN_UP
from trainchart_runtime.run.state import (
    FAILED,
    FINISHING,
    QUEUED,
    RESTARTING,
    RUNNING,
    STATE_LOST,
    STOPPED,
    SUCCEEDED,
    SUSPENDED,
    Verdict,
)

_LINES_SHOWN = 15
_INCIDENTS_SHOWN = 8
_METRICS_SHOWN = 8
_ADMITTED = (
    "The pod differed from its StatefulSet, see above: a policy, a webhook or a default of the namespace changed it "
    "when it was created, or a person or an autoscaler did later. kubectl get mutatingadmissionpolicies,"
    "mutatingwebhookconfigurations and kubectl get limitranges -n NAMESPACE list what may have done so."
)
_MIXED_BUILDS = (
    "The pods ran different builds under one tag, see above. Unless their nodes have different CPU architectures, a "
    "node has kept an old image: push the intended build under a new tag and set image.tag, or set image.digest; then "
    "run helm upgrade. To keep the old tag, remove the stale image from its node (crictl rmi); image.pullPolicy=Always "
    "alone does not keep a tag from moving during a run."
)
_AT_START = (
    " It failed before it reported a step, so it will fail in the same way if nothing changes: first change its input "
    "(values, `env`, data) or its code."
)
_ON_SIGTERM = "SIGTERM was sent, on which programs of the training library save, and others if they handle it"
_OF_NETWORKS = tuple(
    cause.name for cause in (DOWNLOAD_FAILED, SERVICE_UNREACHABLE, PEER_MISSING, PEER_UNRESOLVABLE, STORAGE_FAILED)
)
_LED = (ACCESS_REFUSED.name, DISK_FULL.name, PORT_IN_USE.name)
"""Causes of which leads say more than the general hint."""
_SAME_SECONDS = 10.0
"""A verdict comes this much later than the death it is about, at most."""
_REPORTED_SECONDS = 45.0
"""What makes steps has reported one by then: steps are recorded every 30 seconds."""


def why_lines(report: Report) -> list[str]:
    """Return why the training is as it is, in plain words."""
    lines = [headline(report), ""]
    outcome, notes = report.outcome, list(report.remarks)
    if outcome is not None and outcome.result == FAILED and outcome.cause != RUN_KILLED:
        lines += _first_failure(report, outcome)
    elif report.problems:
        lines += [_explain_phase(report)] if outcome is not None else []
        lines += problem_lines(report.problems, report.address, report.remarks)
        notes = leave_notes(report.problems, report.remarks)
        lines += _standing(report)
    else:
        explanation = _explain_phase(report)
        lines.append(explanation)
        if explanation.endswith(":"):
            lines.append(f"note: {notes.pop(0)}")
        lines += [*_standing(report), *_finished(report)]
    if outcome is None or outcome.result != FAILED:
        lines += death_lines(report)
    lines += ["", *setback_lines(report)] if report.setbacks else []
    lines += upgrade_lines(report)
    lines += _history(report)
    lines += change_lines(report)
    lines += [f"note: {note}" for note in notes]
    lines += _next(report)
    lines += _warnings(report)
    lines += _last_words(outcome)
    lines += [f"note: {gap}" for gap in (*report.log_gaps, *report.unknown)]
    return clean_lines(lines)


def _first_failure(report: Report, outcome: Verdict) -> Iterator[str]:
    first = find_first_death(report, outcome)
    if first is not None:
        yield f"What failed first: {first.pod}{f' on {first.node}' if first.node else ''}"
        yield f"  cause      {first.cause}: {CAUSES[first.cause].sentence if first.cause in CAUSES else ''}".rstrip(
            ": "
        )
        yield from [f"  error      {first.error}"] if first.error else []
        yield f"  when       {describe_time(first.at)}"
        yield ""
    where = f"{outcome.pod or 'no pod'}{f' on {outcome.node}' if outcome.node else ''}"
    yield f"{'What ended the run' if _has_earlier_deaths(report, outcome) else 'What failed first'}: {where}"
    yield f"  cause      {outcome.cause}: {outcome.sentence}".rstrip(": ")
    if outcome.exit_code is not None:
        yield f"  exit code  {outcome.exit_code}"
    if outcome.error:
        yield f"  error      {outcome.error}"
    if outcome.changes:
        yield f"  changed    its container got {outcome.changes}"
    if outcome.build:
        yield f"  build      {outcome.build}"
    step = f", at step {outcome.step}" if outcome.step is not None else ""
    yield f"  when       {describe_time(outcome.at)}, {describe_seconds(report.now - outcome.at)} ago{step}"
    if _has_earlier_deaths(report, outcome):
        yield from death_lines(report)
    if report.problems:
        yield ""
        yield "What was wrong when it ended:"
        yield from (f"  {line}" for line in problem_lines(report.problems, report.address))


def _has_earlier_deaths(report: Report, outcome: Verdict) -> bool:
    # The death that ended the run may be recorded, too.
    return len(report.incidents) > 1 or any(
        each.pod != outcome.pod or each.error != outcome.error or each.action not in ("", GIVEN_UP)
        for each in report.incidents
    )


def _standing(report: Report) -> Iterator[str]:
    """Yield how far a run is that goes on, and what to look at where it has told nothing for long."""
    if report.problems and report.gives_up_at > report.now:
        deadline = describe_time(report.gives_up_at)
        yield f"The run fails if not all of its pods are running by {deadline} (run.startDeadline)."
    progress = report.progress
    is_running = report.outcome is None and report.phase == RUNNING
    if is_running and progress.before is not None and progress.step in (None, progress.before):
        yield f"It was at step {progress.before} before it was restarted, and has reported no new step since."
    elif is_running and progress.step is not None and progress.at:
        ago, numbers = describe_seconds(report.now - progress.at), _number(progress.metrics)
        yield f"Its last known step is {progress.step}, {ago} ago{numbers}."
        is_silent = report.seems_to_hang or report.step_pause or _has_unheard_end(report)
        if report.seconds_per_step and report.origin == CLUSTER and not is_silent:
            yield _tell_pace(report)
    elif is_running and (report.seems_to_hang or report.awaits_first_step):
        yield f"It has run for {describe_seconds(report.now - report.since)} without reporting a step."
    yield from explain_early_finish(report)
    if report.warnings and report.outcome is None:
        yield "The last exception that pods printed, in a program that is still running:"
        yield from (show_line(line) for line in report.warnings)
        yield (
            "  next: an exception in a thread does not end the program, and what waits for the thread hangs: fix it, "
            "let the program end when a thread fails, and set run.noProgressTimeout, which restarts such a run."
        )
    if report.problems:
        return
    yield from explain_refusals(report)
    yield from advise_on_hang(report)
    if report.outcome is None:
        yield from report.leads
    yield from show_last_lines(report)


def _has_unheard_end(report: Report) -> bool:
    """Say whether a program has finished and the run controller has not recorded that: no step follows."""
    return any(pod.last_end == SUCCEEDED.lower() and pod.label not in report.finished for pod in report.pods or ())


def _tell_pace(report: Report) -> str:
    """Return how long steps take, and what to look at where that is long."""
    pace, more = describe_pace(report.seconds_per_step), f"trainchart top {report.address} shows"
    if report.slowdown:
        return (
            f"Its {describe_slowdown(report)}. Unless it now evaluates or saves more often, a pod has too little CPU, "
            f"or waits for data, storage, a service or another task. {more} which pods are busy and which are idle."
        )
    if report.now - report.progress.at >= max(_REPORTED_SECONDS, 2 * report.seconds_per_step):
        return f"Its steps took about {pace} each before. If none follow: trainchart logs {report.address}"
    if report.problems:
        return f"Its steps take about {pace} each."
    return f"Its steps take about {pace} each. If that is slow: {more} how much CPU each pod uses."


def _number(metrics: Mapping[str, float]) -> str:
    return "".join(f", {name} {number:g}" for name, number in list(metrics.items())[:_METRICS_SHOWN])


def _finished(report: Report) -> Iterator[str]:
    if report.outcome is None and report.finished:
        yield "Tasks that have finished while the run continues:"
        for task, at in list(report.finished.items())[:_INCIDENTS_SHOWN]:
            yield f"  {describe_time(at)}  {task}"
        if len(report.finished) > _INCIDENTS_SHOWN:
            yield f"  and {len(report.finished) - _INCIDENTS_SHOWN} more"


def _history(report: Report) -> Iterator[str]:
    if report.history:
        yield ""
        yield "History:"
        for change in report.history:
            yield f"  {describe_time(change.at)}  {change.phase}: {change.message}"


def _next(report: Report) -> Iterator[str]:
    advice = advise(report)
    if advice:
        yield ""
        yield f"What to do next: {advice}"


def advise(report: Report) -> str:
    """Return what to do next about a run; empty where there is nothing to do."""
    name, outcome = report.address, report.outcome
    if report.phase == STATE_LOST:
        return f"nothing is started until you decide: trainchart rerun {name}"
    if report.phase == SUSPENDED:
        return f"trainchart resume {name}"
    if outcome is None or outcome.result == SUCCEEDED:
        return ""
    again = _again(report)
    if outcome.result == STOPPED:
        return again
    growth = find_growth(report) if outcome.cause == OUT_OF_MEMORY.name else ""
    hint = (
        growth
        or choose_space_hint(report, outcome)
        or outcome.hint
        or (CAUSES[outcome.cause].hint if outcome.cause in CAUSES else "")
    )
    hint = fill_in(hint, name, outcome.pod, outcome.node, message=outcome.error)
    if any(outcome.error not in line.text for line in report.warnings):
        hint = f"First read the warnings from other pods below: the cause may be there. {hint}".rstrip()
    same = [each.at for each in report.incidents if (each.pod, each.error) == (outcome.pod, outcome.error)]
    if report.fails_at_start:
        hint += _AT_START
    elif any(at < outcome.at - _SAME_SECONDS for at in same):
        hint += " The same error occurred more than once, so a restart is not enough."
    parts = (*report.leads, hint) if outcome.cause in _LED else (hint, *report.leads)
    if outcome.cause in LOST_FILES and report.leads and not report.fails_at_start:
        parts = (*report.leads, f"If that is not the cause: {hint}")
    hint = " ".join(parts)
    settings = suggest_settings(outcome.cause, outcome.error, report.record.get("hyperparameters") or {})
    if report.origin == LOCAL:
        again += "".join(f" --set {setting}" for setting in settings)
    elif settings:
        hint += f" Set another value: helm upgrade with --set {' --set '.join(settings)}."
    if outcome.changes:
        hint = f"{_ADMITTED.replace('NAMESPACE', report.key.namespace)} Otherwise: {hint}"
    if outcome.build:
        hint = f"{_MIXED_BUILDS} Otherwise: {hint}"
    hint = advise_on_changes(report, outcome, hint)
    if can_be_undone(report.upgrades):
        hint = f"If the last upgrade above is the cause, undo it. Otherwise: {hint}"
    if report.problems:
        hint = f"First fix what was wrong when it ended. {hint}".rstrip()
    if report.blockade and outcome.cause in _OF_NETWORKS:
        return f"{report.blockade} Then: {again}. If it fails again: {hint}"
    hint = f"{hint} {report.blockade}".strip()
    return f"{hint} Then: {again}" if hint else again


def _again(report: Report) -> str:
    """Return what starts the training again."""
    if report.origin == LOCAL:
        return report.resume_command
    if report.source == FROM_PODS and not (report.blockade and report.controller not in ("", NO_CONTROLLER)):
        return f"helm uninstall {report.address}, and install it again"
    return f"trainchart rerun {report.address}"


def _last_words(outcome: Verdict | None) -> Iterator[str]:
    if outcome is not None and outcome.lines and outcome.result == FAILED:
        yield ""
        yield f"The last lines of {outcome.pod}:"
        yield from (f"  | {line}" for line in outcome.lines[-_LINES_SHOWN:])


def _list_absent(report: Report) -> str:
    """Return which pods do not run, and how far they are."""
    if report.pods is None:
        return ""
    parts = [f"{pod.label} ({pod.state})" for pod in report.pods if pod.state not in ("Running", "Finished")]
    for role in report.roles:
        lacking = role.wanted - role.finished - sum(pod.role == role.role for pod in report.pods)
        parts += [f"{role.role} lacks {lacking} {'pod' if lacking == 1 else 'pods'}"] if lacking > 0 else []
    return f": {', '.join(parts)}" if parts else ""


def _describe_ending(report: Report) -> str:
    """Return how many pods are still to end, and which of them were asked to; "" where there are none."""
    if not report.pods:
        return ""
    count = f"{len(report.pods)} of its pods {'has' if len(report.pods) == 1 else 'have'} not ended yet"
    asked = [pod.label for pod in report.pods if pod.state == TERMINATING]
    return f"{count} ({list_names(asked)}: {_ON_SIGTERM})" if asked else count


def _warnings(report: Report) -> Iterator[str]:
    if report.warnings and report.outcome is not None:
        yield ""
        yield "Warnings from other pods, which may show what came before:"
        yield from (f"  {line.label} | {line.text}" for line in report.warnings)


def _explain_phase(report: Report) -> str:
    """Return in one sentence what state the run is in; one that ends in a colon is completed by the first remark."""
    if report.phase == UNKNOWN:
        return "The state of this run is not known: what would show it could not be read or does not exist."
    if report.phase == NOT_RUNNING:
        return "There are no pods: the StatefulSets were scaled to zero, and no record says why."
    if report.phase == STATE_LOST:
        return "Its StatefulSets were scaled to zero, and the record of the run is gone: how the run ended is unknown."
    if report.phase == SUSPENDED:
        held = "what it holds is not known" if report.pods is None else "it holds nothing"
        held = _describe_ending(report) or held
        return f"Its values say run.desiredState=suspended: {held}, and it waits."
    outcome = report.outcome
    if outcome is not None:
        step = f" at step {outcome.step}" if outcome.step is not None and outcome.cause != NOTHING_DONE else ""
        subject = " ".join(filter(None, (outcome.sentence or outcome.result, outcome.pod)))
        if outcome.result == SUCCEEDED and outcome.step is None and outcome.cause != NOTHING_DONE:
            step = f". It reported no step; trainchart logs {report.address} shows what it did"
        return f"{subject}{step}{_number(outcome.metrics)}"
    if report.phase == QUEUED:
        return "It waits until its queue has room for all of its pods."
    if report.phase == FINISHING:
        return "Its leading task has succeeded; others may finish their work."
    if report.phase == RESTARTING:
        return f"{_describe_ending(report) or 'Its pods end'}; the next attempt starts when the last one is gone."
    if any(role.running is not None and role.running + role.finished < role.wanted for role in report.roles):
        see = " This may be why:" if report.remarks else ""
        return f"Not every pod is running yet{_list_absent(report)}.{see}"
    if report.remarks:
        has_failed = any(each.cause != POD_DELETED.name for each in report.incidents)
        return f"{_judge_deaths(report)} Also:" if has_failed else "No failure is recorded, but:"
    if report.step_pause:
        usual, pause = report.seconds_per_step, report.step_pause
        pace = describe_pace(usual)
        silence = f"{pause:.0f} s" if pause < SILENT_SECONDS else describe_seconds(pause)
        return f"No step was reported for {silence}, while steps took about {pace} before."
    if report.seems_to_hang and report.progress.step is None and report.progress.before is None:
        return "No failure is recorded."
    if report.seems_to_hang:
        return "No failure is recorded, but there has been no step for a long time."
    if report.incidents and report.progress.step is None and report.now - report.since >= SILENT_SECONDS:
        return "No step has been reported so far, and tasks were restarted: see the deaths below."
    if find_repeated(report):
        return _judge_deaths(report)
    slower = " Steps are far slower than before." if report.slowdown else ""
    if report.setbacks:
        return f"It continues, but has lost steps that were not saved: see below.{slower}"
    if report.incidents:
        return f"It continues; the failures so far were handled.{slower}"
    return f"Nothing has failed.{slower}"


def _judge_deaths(report: Report) -> str:
    if find_repeated(report):
        return "It continues, but the same failure keeps recurring: see the deaths below."
    return "Tasks died and were started again: see the deaths below."
