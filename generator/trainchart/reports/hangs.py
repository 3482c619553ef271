"""Words what to check on a run that goes on and makes no step: who hangs, and what the others wait for. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from trainchart.reports.hints import start_again
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import CLUSTER, FROM_RECORD, SILENT_SECONDS, Report, TrainingKey
from trainchart_runtime.cluster import CHIEF, WORKER
from trainchart_runtime.contract import (
    COMPONENT_LABEL,
    HALTED,
    INSTANCE_LABEL,
    LAUNCHER_PREFIX,
    NAME_LABEL,
    PEER_REFUSES,
    PROCESSES_DIED,
    PROGRESS_FILE,
    UNREAD_PIPE,
)
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names

_IN_STEP = (
    "one of its tasks hangs, and the others wait for it: the one whose last line differs, or one whose peers do not "
    "answer (trainchart logs {})"
)
_PERHAPS = ", perhaps because a NetworkPolicy selects its pod"
"""Where no note says more."""
_ALONE = (
    "its program hangs: it waits for a process or thread of its own that has ended or waits too, or for storage or a "
    "service that does not answer (trainchart logs {})"
)


class _Wait(NamedTuple):
    """What a program waits for, by a pattern of the place."""

    place: str
    advice: str
    is_forever: bool = False
    """Whether this is never a pause for evaluating or saving, and comes back after a restart."""


_THREADS = r"queues?\.py|connection\.py|synchronize\.py|threading\.py|multiprocessing/"
_OTHER_THREADS = re.compile(r"; another thread is in [^;]*")
_WAITS = (
    _Wait(
        r"_shutdown: its main",
        "the main thread of the program has ended, perhaps because training is done, and another thread keeps the "
        "process alive. End that thread when training ends, or make it a daemon thread",
        is_forever=True,
    ),
    _Wait(
        UNREAD_PIPE,
        "it waits for a process that it started, and that process waits until its output is read: read the "
        "output while the process runs (Popen.communicate)",
        is_forever=True,
    ),
    _Wait(
        rf"{PROCESSES_DIED} \([^)]{{0,200}}SIGBUS",
        "processes that it started died of SIGBUS, so most likely /dev/shm was full, and it still waits for "
        "them: raise roles.ROLE.shmSize, or use smaller batches or fewer processes. Also let the program end when one "
        "of its processes dies",
        is_forever=True,
    ),
    _Wait(
        PROCESSES_DIED,
        "processes that it started have died (the list below says how), and it still waits for them: find out "
        "why (SIGKILL: most likely memory), and let the program end when one of its processes dies",
        is_forever=True,
    ),
    _Wait(
        r"subprocess\.py|popen_fork\.py|popen_spawn_posix\.py",
        "it waits for a process that it started. If that process writes to a pipe that the program does not "
        "read, both wait: read the output while the process runs (Popen.communicate)",
    ),
    _Wait(
        r"(?<!\baccept \()socket\.py|ssl\.py|http/client\.py|urllib|requests/",
        "it waits for an answer over the network: give the call a timeout",
    ),
    _Wait(
        r"\(pool\.py:",
        "it waits for a pool of processes, and one of them was killed or is waiting, too. A process that is "
        "forked after TensorFlow was used can hang in TensorFlow: create the pool with "
        'multiprocessing.get_context("spawn").Pool()',
    ),
    _Wait(
        _THREADS,
        "it waits for another of its threads or processes, which has ended or is waiting, too",
    ),
    _Wait(
        r"^[^()]+ \((?!tensorflow/)[^()]+\.py:\d+\)$",
        "it waits at a line of its own code (see the list below): check what that line waits for, such as a file or a "
        "lock that an earlier pod left behind",
    ),
)
_IDLE = "{} printed nothing, made no step and used hardly any CPU time for minutes:"
_BUSY = "{} printed nothing and made no step for minutes, but kept using CPU time:"
_LOOP = "it may be in an endless loop, or a filter may drop all of its data (see below)"
_LOOPS = "they may be in endless loops, or a filter may drop all of their data (see below)"
_WATCHED = "run.noProgressTimeout restarts such a run."
_UNWATCHED = "run.noProgressTimeout does not end it, because it counts from the first step that a pod reports."
_PRINTS = (
    "Its program has never reported a step, but it prints output (see below), so it does not seem to hang. If it "
    f"should report steps (as the training library does, through the file that {PROGRESS_FILE} names), the run "
    "controller does not see them: {}"
)
_FRESH_SECONDS = 60.0
"""What a program printed so recently shows that it works."""
_SAME_STEPS = (
    "all tasks that train in step must do the same number of steps (shards of equal size, repeated data, or an end "
    "that all agree on)"
)
_TASKS_SHOWN = 8
_RUNNING = "Running"
_WAITS_FOR_PEERS = f"{LAUNCHER_PREFIX}waiting for "
_REFUSES = re.compile(rf"(?<![a-z0-9.-])([a-z0-9][a-z0-9-]*+)[a-z0-9.-]*+:(\d+) \({PEER_REFUSES}\)")
_IN_TENSORFLOW = re.compile(r"[^()]+ \(tensorflow/")
_NAMED_STEP = re.compile(r"(?<![/A-Za-z])steps?\W{0,3}(\d{1,3}(?:[,_]\d{3}){1,5}|\d{1,18})\b", re.IGNORECASE)


def advise_on_hang(report: Report) -> Iterator[str]:
    """Yield what to check where no step comes, and no task or exception explains it."""
    is_silent = report.seems_to_hang or report.step_pause
    is_explained = report.problems or report.early_finishers or report.warnings or report.blockade
    if is_explained or not is_silent or any(explain_refusals(report)):
        return
    halted = [line for line in report.last_lines if line.text.startswith(LAUNCHER_PREFIX) and HALTED in line.text]
    if halted:
        yield from (line.text.removeprefix(LAUNCHER_PREFIX) for line in halted)
        return
    is_new = report.progress.step is None and report.progress.before is None
    if is_new and _prints(report):
        yield _PRINTS.format(_read_controller(report.key)) if report.origin == CLUSTER else _PRINTS.partition(" If")[0]
        return
    unless = "its steps do not take that long"
    if is_new:
        unless = "its program reports steps, and is not just loading or compiling"
    elif report.step_pause:
        unless = "it is not evaluating or saving"
    noted = ", and the notes do not explain it" if report.remarks else ""
    is_alone = sum(role.wanted for role in report.roles) == 1
    wait = _find_wait(report)
    if wait and wait.is_forever:
        words, is_release = _describe_wait(report, wait), report.origin == CLUSTER
        upgrade = " Once that is corrected, upgrade the release with the new image or values." * is_release
        yield f"{words[0].upper()}{words[1:]}.{upgrade}"
        return
    words = _describe_wait(report, wait) or (
        _ALONE if is_alone else _IN_STEP if report.remarks else _IN_STEP + _PERHAPS
    )
    again = f" Once that is fixed: {start_again(report.address)}" if is_new and report.origin == CLUSTER else ""
    yield f"If {unless}{noted}, {words.format(report.address)}. {_UNWATCHED if is_new else _WATCHED}{again}"


def explain_refusals(report: Report) -> Iterator[str]:
    """Yield which pods refuse connections at the addresses at which their peers expect them, though they run."""
    refusing: dict[str, str] = {}
    for line in report.last_lines:
        if line.text.startswith(_WAITS_FOR_PEERS):
            refusing.update({found[1]: found[2] for found in _REFUSES.finditer(line.text)})
    finished = [pod.label for pod in report.pods or () if pod.name in refusing and pod.label in report.finished]
    running = [pod for pod in report.pods or () if pod.name in refusing and pod.state == _RUNNING]
    if finished:
        alike = "" if report.early_finishers else f": {_SAME_STEPS}"
        yield (
            f"The other pods wait for {list_names(finished)}, which {'has' if len(finished) == 1 else 'have'} finished "
            f"and will not answer any more{alike}. Once that is fixed: {start_again(report.address)}"
        )
    elif running and report.pods and len(running) > 1:
        ports = sorted({refusing[pod.name] for pod in running})
        yield (
            f"{list_names([pod.label for pod in running])} run, and nothing listens on port {list_names(ports)} in "
            "them: the programs have not started their TensorFlow servers there. They may still be loading; otherwise "
            "the code or `env` sets a TF_CONFIG of its own, or the program never creates its strategy or server."
        )


def explain_early_finish(report: Report) -> Iterator[str]:
    """Yield which tasks ended well when a run made its last step: what the others may wait for."""
    tasks = report.early_finishers
    if not tasks:
        return
    them = "it" if len(tasks) == 1 else "them"
    yield f"{list_names(tasks)} finished at about that time, and the others may wait for {them}: {_SAME_STEPS}."
    for task in tasks[:_TASKS_SHOWN]:
        if task in report.final_lines:
            yield f"The last line of {task}: {report.final_lines[task]}"


def show_last_lines(report: Report) -> Iterator[str]:
    """Yield what each pod printed last, where those wait that do nothing, and which of them is not like the others."""
    if not report.last_lines:
        return
    is_young = report.awaits_first_step and not report.seems_to_hang
    yield from () if is_young else _explain_unwatched(report)
    yield "The last line of each pod:"
    width = max(len(line.label) for line in (*report.last_lines, *report.waits, *report.busy))
    yield from (show_line(line, width) for line in report.last_lines)
    for lines, what in ((report.waits, _IDLE), (report.busy, _BUSY)):
        if lines:
            yield what.format("This program has" if len(lines) == 1 else "These programs have")
            yield from (show_line(line, width) for line in lines)
    suspected = list(_explain_suspects(report))
    yield from suspected
    yield from () if suspected or is_young else _find_odd_one_out(report)


def show_line(line: LogLine, width: int = 0) -> str:
    """Return a line of a pod's log with its time and the pod's name, which is filled up to `width` characters."""
    at = f"{line.at[:19]}Z" if line.at else f"{'-':20}"
    return f"  {at}  {line.label:{width}}  {line.text}"


def _prints(report: Report) -> bool:
    """Say whether a program has printed something just now."""
    return any(parse_time(line.at) >= report.now - _FRESH_SECONDS for line in _list_own_lines(report))


def _list_own_lines(report: Report) -> list[LogLine]:
    """Return the last lines that programs printed, without those of their launchers."""
    return [line for line in report.last_lines if not line.text.startswith(LAUNCHER_PREFIX)]


def _explain_unwatched(report: Report) -> Iterator[str]:
    """Yield that a program goes on of which the run controller reports nothing."""
    own = _list_own_lines(report)
    if not own or report.progress.step is None:
        return
    newest = max(own, key=lambda line: line.at)
    steps = [int(re.sub("[,_]", "", found)) for found in _NAMED_STEP.findall(newest.text)]
    goes_on = not steps or max(steps) > (report.progress.step or 0)
    if report.source == FROM_RECORD and goes_on and parse_time(newest.at) > report.progress.at + SILENT_SECONDS / 2:
        yield (
            f"Yet {newest.label} printed after that. If its lines name later steps, the training continues, and its "
            f"run controller does not see it: {_read_controller(report.key)} says what it cannot reach: the pods, or "
            "the API server (a NetworkPolicy that limits its egress)."
        )


def _read_controller(key: TrainingKey) -> str:
    """Return the command that prints the log of a run controller, whose Job has another name after each upgrade."""
    labels = {INSTANCE_LABEL: key.release, NAME_LABEL: key.chart, COMPONENT_LABEL: "controller"}
    chosen = ",".join(f"{name}={value}" for name, value in labels.items())
    return f"kubectl logs -n {key.namespace} -l {chosen} --tail=-1"


def _find_wait(report: Report) -> _Wait | None:
    """Return what the program waits for that the others wait for; if there is none, what the first waits for."""
    suspects, places = _find_suspects(report), {each.label: each.text for each in report.waits}
    chosen = [_find_place(places[label]) for label in suspects or places if label in places]
    return next((wait for wait in _WAITS for place in chosen if re.search(wait.place, place)), None)


def _find_place(words: str) -> str:
    """Return where a program waits, without its other threads unless its main one waits for them."""
    main = _OTHER_THREADS.sub("", words)
    return words if re.search(_THREADS, main) else main


def _describe_wait(report: Report, wait: _Wait | None) -> str:
    """Return what hangs as far as the stacks of the programs tell; "" where they do not."""
    suspects = _find_suspects(report)
    names, advice = list_names(suspects), wait.advice if wait else ""
    if suspects and not any(each.label in suspects for each in report.waits):
        is_busy = any(each.label in suspects for each in report.busy)
        work = f"which is busy but completes no step: {_LOOP}"
        if len(suspects) > 1:
            work = f"which are busy but complete no step: {_LOOPS}"
        return f"the other tasks wait for {names}, {work if is_busy else 'which may be in an endless loop: see below'}"
    if suspects:
        return f"the other tasks wait for {names}, as the list below suggests{advice and f': {advice}'}"
    if report.busy and not report.waits:
        return f"its program is busy but completes no step: {_LOOP}"
    return advice and f"the program hangs: {advice}"


def _explain_suspects(report: Report) -> Iterator[str]:
    """Yield which programs do something else while others wait in TensorFlow, as for a peer."""
    suspects = _find_suspects(report)
    if not suspects:
        return
    names = list_names(suspects)
    others = f"The others wait in TensorFlow, as for a peer: check {names} first."
    if any(each.label in suspects for each in report.waits):
        stacks = f"trainchart logs {report.address} --pod {suspects[0]}"
        yield f"Waiting outside TensorFlow: {names}. {others} Stacks of the threads of {suspects[0]}: {stacks}"
    else:
        is_busy = all(label in {each.label for each in report.busy} for label in suspects)
        yield f"{'Busy' if is_busy else 'Not waiting, as far as is known'}: {names}. {others}"


def _find_suspects(report: Report) -> list[str]:
    """Return the tasks for which others wait in TensorFlow: that wait outside it, or else that do not wait at all."""
    within = {each.label for each in report.waits if _IN_TENSORFLOW.match(each.text)}
    outside = [each.label for each in report.waits if each.label not in within]
    running = [pod for pod in report.pods or () if pod.state == _RUNNING and pod.role in (CHIEF, WORKER)]
    # Of pods that were not read, and of halted programs, nothing is known.
    read = {line.label for line in report.last_lines if HALTED not in line.text}
    busy = [pod.label for pod in running if pod.label in read - within and pod.label not in report.finished]
    return (outside or busy) if within else []


def _find_odd_one_out(report: Report) -> Iterator[str]:
    """Yield which pod is not where all others of its role are."""
    roles = {pod.label: pod.role for pod in report.pods or ()}
    for role in sorted(filter(None, {roles.get(line.label) for line in report.last_lines})):
        own = {line.label: line.text for line in report.last_lines if roles.get(line.label) == role}
        if any(text.startswith(LAUNCHER_PREFIX) for text in own.values()):
            continue
        # Where each names a step, a shard or a time of its own, what it does counts.
        alone = _find_single(own) or _find_single({label: re.sub(r"\d+", "0", text) for label, text in own.items()})
        if alone and len(own) > 2:
            yield f"The last line of {alone} alone differs from those of the other {role} pods: look there first."


def _find_single(texts: Mapping[str, str]) -> str:
    """Return the only label whose text no other has; "" where there is none, or several."""
    counts = Counter(texts.values())
    alone = [label for label, text in texts.items() if counts[text] == 1]
    return alone[0] if len(alone) == 1 else ""
