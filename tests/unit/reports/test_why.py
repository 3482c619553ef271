"""What `why` says to do next: never a command that fails the same way again."""

from __future__ import annotations

import dataclasses

import pytest

from tests.small_cluster.cluster_objects import NOW
from trainchart.reports.list_table import list_lines
from trainchart.reports.local_causes import RUN_KILLED
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import (
    LOCAL,
    PodReport,
    Progress,
    Report,
    ReportedProblem,
    RoleReport,
    Slowdown,
    TrainingKey,
)
from trainchart.reports.report_json import describe_report
from trainchart.reports.settings import suggest_settings
from trainchart.reports.text import describe_time, setback_lines, status_lines
from trainchart.reports.upgrade import Upgrade
from trainchart.reports.why import why_lines
from trainchart_runtime.run.state import FAILED, KILLED, RUNNING, HistoryEntry, Incident, Setback, Verdict

RESUME = "trainchart run first --resume --release k9"


def next_of(cause: str, error: str = "", origin: str = LOCAL) -> str:
    record = {"hyperparameters": {"learningRate": 1e30, "maxSteps": 300}}
    outcome = Verdict(FAILED, NOW, cause, "It failed.", pod="worker-0", error=error)
    key = TrainingKey("" if origin == LOCAL else "team-a", "k9", "first")
    report = Report(key, NOW, FAILED, "record", origin, resume_command=RESUME, record=record, outcome=outcome)
    (line,) = (line for line in why_lines(report) if line.startswith("What to do next: "))
    return line.removeprefix("What to do next: ")


@pytest.mark.parametrize(
    ("line", "is_told"), [("OSError: disk", True), ("launcher: worker-1: attempt 1 ended: KeyError: 'x'", False)]
)
def test_warnings_that_repeat_the_error_are_not_to_be_read_first(line: str, *, is_told: bool) -> None:
    outcome = Verdict(FAILED, NOW, "program-error", "It failed.", pod="k9-first-worker-0", error="KeyError: 'x'")
    key, warnings = TrainingKey("team-a", "k9", "first"), (LogLine("", "worker-1", line),)
    told = "\n".join(why_lines(Report(key, NOW, FAILED, "record", outcome=outcome, warnings=warnings)))
    assert ("First read the warnings from other pods below" in told) == is_told


@pytest.mark.parametrize(("silence", "is_suspicious"), [(40.0, False), (600.0, True)])
def test_ongoing_run_says_where_it_is_and_what_to_check_on_hangs(silence: float, is_suspicious: bool) -> None:
    progress = Progress(53, at=NOW - silence)
    report = Report(TrainingKey("team-a", "r03", "lang"), NOW, RUNNING, "record", progress=progress)
    text = "\n".join(why_lines(report))
    assert "Its last known step is 53, " in text
    assert ("trainchart logs" in text) == is_suspicious


def test_run_without_any_step_says_what_to_check() -> None:
    key = TrainingKey("team-a", "exp-8", "digits")
    role = RoleReport("worker", 1, 1, 0)
    report = Report(key, NOW, RUNNING, "record", since=NOW - 720, progress=Progress(at=NOW - 720), roles=(role,))
    (advice,) = (line for line in why_lines(report) if line.startswith("If its program reports steps"))
    assert "its program hangs" in advice and "trainchart logs exp-8 -n team-a" in advice
    assert "run.noProgressTimeout does not end it" in advice
    assert advice.endswith("trainchart rerun exp-8 -n team-a")
    early = dataclasses.replace(report, now=NOW - 600)
    assert not [line for line in why_lines(early) if line.startswith("If ")]


@pytest.mark.parametrize("step", [None, 0, 53])
def test_notes_do_not_hide_what_to_check_on_hangs(step: int | None) -> None:
    remark = "worker-0 prints the same warning again and again"
    report = Report(TrainingKey("team-a", "r03", "lang"), NOW, RUNNING, "record", progress=Progress(step, at=NOW - 600))
    (advice,) = (line for line in why_lines(dataclasses.replace(report, remarks=(remark,))) if "hangs" in line)
    assert ", and the notes do not explain it, " in advice
    (advice,) = (line for line in why_lines(report) if "hangs" in line)
    assert "notes" not in advice


def test_deaths_that_a_run_has_outlived_come_last() -> None:
    def headings(step: int | None, fruitless: int = 0) -> list[str]:
        deaths = tuple(Incident(at, "r03-lang-worker-0", "node1", "killed", "") for at in (NOW - 900, NOW - 625))
        progress = Progress(step, at=NOW - 600, fruitless_restarts=fruitless)
        report = Report(
            TrainingKey("team-a", "r03", "lang"), NOW, RUNNING, "record", progress=progress, incidents=deaths
        )
        return [line for line in why_lines(report) if "eaths" in line or "worker-0" in line]

    since, last, earlier, first = headings(53)
    assert (since, earlier) == (
        "Deaths in this run, the newest first:",
        "Earlier deaths, after which the training made steps, the newest first:",
    )
    assert describe_time(NOW - 625) in last and describe_time(NOW - 900) in first
    assert not [line for line in (*headings(None), *headings(53, 1)) if line.startswith("Earlier")]


def test_equal_deaths_are_one_line_and_the_newest_come_first() -> None:
    swept = [
        Incident(NOW - 600 + 60 * minute, pod, f"node{minute % 2}", "pod-deleted", "")
        for minute in range(9)
        for pod in ("d-ps-0", "d-chief-0")
    ]
    other = [Incident(NOW - 900 + number, f"d-worker-{number}", "node1", "killed", "") for number in range(10)]
    report = Report(TrainingKey("a", "d", "m"), NOW, RUNNING, "record", incidents=(*other, *swept))
    lines = why_lines(report)
    begin = lines.index("Deaths in this run, the newest first:")
    first, second, third = lines[begin + 1 : begin + 4]
    times = f"{describe_time(NOW - 120)}  d-ps-0 on node0, node1 (pod-deleted) 9 times since {describe_time(NOW - 600)}"
    assert first.strip() == times and second.strip() == times.replace("ps", "chief")
    assert "d-worker-9" in third
    assert lines[begin + 9].strip() == f"and 4 older, from {describe_time(NOW - 900)} on"


@pytest.mark.parametrize(("action", "is_earlier"), [("the launcher starts it again", True), ("given up", False)])
def test_one_earlier_death_of_the_same_kind_is_listed(action: str, is_earlier: bool) -> None:
    death = Incident(NOW - 23, "a-chief-0", "node1", "program-error", action, 1, "KeyError: 'weights'")
    outcome = Verdict(FAILED, NOW - 18, "program-error", "It failed.", pod="a-chief-0", error="KeyError: 'weights'")
    lines = why_lines(Report(TrainingKey("a", "a", "m"), NOW, FAILED, "record", incidents=(death,), outcome=outcome))
    assert (
        ("What ended the run: a-chief-0" in lines) == ("Deaths in this run, the newest first:" in lines) == is_earlier
    )
    assert ("What failed first: a-chief-0" in lines) == (not is_earlier)


@pytest.mark.parametrize(
    ("error", "cause", "before", "is_shown"),
    [
        ("ValueError: got 14 gradients for 12 variables", "program-error", 5, True),
        ("", "out-of-memory", 5, True),
        ("ValueError: got 14 gradients for 12 variables", "program-error", 5000, False),
        ("ValueError: cannot restore ckpt-200: it…", "program-error", 5, False),
        ("UnavailableError: peer", "peer-lost", 5, False),
        ("", "pod-deleted", 5, False),
    ],
)
def test_failure_before_another_that_ended_the_run_is_shown(
    error: str, cause: str, before: float, is_shown: bool
) -> None:
    last = "ValueError: cannot restore ckpt-300: it holds 12 variables"
    deaths = (
        Incident(NOW - 20 - before, "a-chief-0", "node1", cause, "", 1, error),
        Incident(NOW - 20, "a-chief-0", "node1", "program-error", "", 1, last),
    )
    outcome = Verdict(FAILED, NOW - 18, "program-error", "It failed.", pod="a-chief-0", error=last)
    lines = why_lines(Report(TrainingKey("a", "a", "m"), NOW, FAILED, "record", incidents=deaths, outcome=outcome))
    assert ("What failed first: a-chief-0 on node1" in lines) == is_shown
    if is_shown:
        assert lines.index("What failed first: a-chief-0 on node1") < lines.index("What ended the run: a-chief-0")
        assert not error or f"  error      {error}" in lines


@pytest.mark.parametrize(
    ("first_step_at", "is_shown"),
    [(0.0, True), (NOW - 70, True), (NOW - 40, True), (NOW - 65, False)],
    ids=["no step", "steps before it", "the end soon after", "steps for long after it"],
)
def test_error_before_the_first_step_is_not_the_first_failure(first_step_at: float, *, is_shown: bool) -> None:
    deaths = (
        Incident(NOW - 68, "a-chief-0", "node1", "service-unreachable", "", 1, "[Errno 111] Connection refused"),
        Incident(NOW - 20, "a-chief-0", "node1", "access-refused", "", 1, "HTTP Error 401: Unauthorized"),
    )
    outcome = Verdict(FAILED, NOW - 18, "access-refused", pod="a-chief-0", error="HTTP Error 401: Unauthorized")
    progress = Progress(300, at=NOW - 20, first_at=first_step_at)
    report = Report(TrainingKey("a", "a", "m"), NOW, FAILED, "record", incidents=deaths, outcome=outcome)
    lines = why_lines(dataclasses.replace(report, progress=progress))
    assert ("What failed first: a-chief-0 on node1" in lines) == is_shown
    assert "What ended the run: a-chief-0" in lines
    assert any("Connection refused" in line for line in lines)


def test_a_killed_run_goes_on_without_advice() -> None:
    assert next_of(RUN_KILLED) == RESUME


@pytest.mark.parametrize(
    "error",
    [
        "error: chief 0: the loss is nan at step 3: lower the learning rate",
        "error: weight:0 is not finite at step 7: lower the learning rate",
        "InvalidArgumentError: Tensor had NaN values",
    ],
)
def test_a_training_that_diverged_needs_another_learning_rate(error: str) -> None:
    assert next_of("program-error", error).endswith(f"Then: {RESUME} --set hyperparameters.learningRate=VALUE")


@pytest.mark.parametrize(
    ("error", "settings"),
    [
        ("train.py: error: the following arguments are required: --data-size, --lr", ["dataSize", "lr"]),
        ("train.py: error: argument --steps: invalid int value: 'x'", ["steps"]),
        ("train.py: error: argument -b/--batch_size: invalid int value: 'x'", ["batchSize"]),
        ("Error: Missing option '--lr'.", ["lr"]),
        ("FATAL Flags parsing error: flag --lr=None: Flag --lr must have a value other than None.", ["lr"]),
        ("train.py: error: the following arguments are required: data", []),
        ("ValueError: nothing of the command line", []),
    ],
)
def test_a_refused_flag_needs_a_value(error: str, settings: list[str]) -> None:
    assert suggest_settings("bad-arguments", error, {}) == tuple(f"hyperparameters.{name}=VALUE" for name in settings)
    words = "".join(f" --set hyperparameters.{name}=VALUE" for name in settings)
    assert next_of("bad-arguments", error).endswith(f"Then: {RESUME}{words}")
    assert "install" not in next_of("bad-arguments", error)


def test_a_hyperparameter_without_a_value_needs_one() -> None:
    assert next_of("program-error", "KeyError: 'TRAINCHART_HP_BATCH_SIZE'").endswith(
        f"Then: {RESUME} --set hyperparameters.batchSize=VALUE"
    )
    assert "--set" not in next_of("program-error", "KeyError: 'HOME'")


def test_what_needs_no_value_gets_none() -> None:
    assert next_of("program-error", "ValueError: information is missing").endswith(f"Then: {RESUME}")


def test_lost_steps_and_a_grace_period_too_short_are_told() -> None:
    def tell(progress: Progress, *setbacks: Setback) -> str:
        key = TrainingKey("heath", "merlin", "word2vec")
        report = Report(key, NOW, RUNNING, "record", progress=progress, setbacks=setbacks, attempt=2)
        assert all(line in "\n".join(status_lines(report)) for line in setback_lines(report))
        return "\n".join(why_lines(report))

    text = tell(Progress(700, at=NOW), Setback(NOW - 60, 2, "merlin-word2vec-chief-0", 706, 120, KILLED))
    words = "merlin-word2vec-chief-0 was started again and continued from step 120 or earlier, though it had reported"
    assert f"{words} step 706: at least 586 steps were lost." in text
    assert "  trainchart checkpoints list merlin -n heath shows which steps are saved." in text
    assert "\nIt continues, but has lost steps that were not saved: see below.\n" in text
    assert "If it handles SIGTERM, roles.chief.stopGraceSeconds is too short: raise it, or let the program" in text
    assert "If not, let it save and exit on SIGTERM" in text
    assert "stopGrace" not in tell(Progress(700, at=NOW), Setback(NOW - 60, 2, "merlin-word2vec-chief-0", 706, 120))
    for step in (None, 706):
        text = tell(Progress(step, at=NOW, before=706))
        assert "It was at step 706 before it was restarted, and has reported no new step since." in text


def explain_deaths(times: list[float], cause: str, *, is_over: bool, step: int | None = 400) -> str:
    deaths = tuple(Incident(NOW - ago, "k9-first-worker-0", "node1", cause, "") for ago in times)
    hint = "Give the role more memory"
    outcome = Verdict(FAILED, NOW, cause, "It failed.", hint, "k9-first-worker-0", step=step) if is_over else None
    phase, progress = FAILED if is_over else RUNNING, Progress(step, at=NOW - 3)
    key = TrainingKey("team-a", "k9", "first")
    return "\n".join(why_lines(Report(key, NOW, phase, "record", progress=progress, outcome=outcome, incidents=deaths)))


@pytest.mark.parametrize(
    ("times", "cause", "is_over", "words"),
    [
        (
            [72, 36, 5],
            "out-of-memory",
            False,
            "  next: k9-first-worker-0 ran out of memory 3 times, each time about 33",
        ),
        ([72, 36], "out-of-memory", True, "next: k9-first-worker-0 ran out of memory 3 times, each time about 36 s"),
        ([72, 36, 2], "out-of-memory", True, "next: k9-first-worker-0 ran out of memory 3 times, each time about 36 s"),
        ([72, 36], "out-of-memory", False, ""),
        ([900, 36, 5], "out-of-memory", False, "  next: Give the role more memory"),
        ([900, 36], "out-of-memory", True, "next: Give the role more memory"),
        ([72, 36, 5], "program-error", False, "  next: Read the exception"),
        ([72, 36, 5], "peer-lost", False, ""),
        ([90072, 90036, 90005], "out-of-memory", False, ""),
        ([90000, 60000, 30000], "out-of-memory", False, "  next: k9-first-worker-0 ran out of memory 3 times, each"),
    ],
)
def test_deaths_again_and_again_have_a_next_step(times: list[float], cause: str, words: str, *, is_over: bool) -> None:
    text = explain_deaths(times, cause, is_over=is_over)
    assert words in text and ("next: " in text) == bool(words)
    is_told = "It continues, but the same failure keeps recurring" in text
    assert is_told == (bool(words) and not is_over)
    assert ("look for that first, since more memory only delays" in text) == ("ran out of memory" in words)


@pytest.mark.parametrize(
    ("times", "cause", "line"),
    [
        (3, "out-of-memory", "It continues, but the same failure keeps recurring: see the deaths below. Also:"),
        (1, "evicted", "Tasks died and were started again: see the deaths below. Also:"),
        (3, "pod-deleted", "No failure is recorded, but:"),
    ],
)
def test_a_note_does_not_hide_that_tasks_died(times: int, cause: str, line: str) -> None:
    deaths = tuple(Incident(NOW - 60 * each, "w-0", "n", cause, "") for each in range(times))
    report = Report(TrainingKey("a", "d", "m"), NOW, RUNNING, "record", incidents=deaths, remarks=("a note",))
    lines = why_lines(report)
    assert lines[lines.index("note: a note") - 1] == line


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            'Usage of EmptyDir volume "tmp" exceeds the limit "64Mi".',
            "Raise tmpSize of the role (now 64Mi), or let",
        ),
        (
            'Usage of EmptyDir volume "data" exceeds the limit "1Gi".',
            "Raise the size of the volume data (now 1Gi) in",
        ),
        (
            'Container training exceeded its local ephemeral storage limit "2Gi".',
            "Raise ephemeralStorageLimit of the role (now 2Gi), or let the program write less to the disk",
        ),
        (
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi.",
            "Raise ephemeralStorageLimit of the role (now 2Gi), or let",
        ),
        ("The pod exceeded something else.", "If the message says that it exceeded its limit, raise tmpSize"),
        ("The node was low on resource: memory. Container training was using 9Gi.", ""),
    ],
)
def test_first_eviction_for_a_limit_of_the_pod_has_advice(error: str, words: str) -> None:
    death = Incident(NOW - 40, "k9-first-worker-0", "node1", "evicted", "", error=error)
    report = Report(TrainingKey("team-a", "k9", "first"), NOW, RUNNING, "record", incidents=(death,))
    assert [words for line in why_lines(report) if line.startswith("  next: ")] == [words] * bool(words)
    assert not words or f"  next: {words}" in "\n".join(why_lines(report))


def test_memory_that_lacks_from_the_start_is_no_growth() -> None:
    assert "program grows" not in explain_deaths([9, 6, 3], "out-of-memory", is_over=False)
    assert "program grows" not in explain_deaths([72, 36, 5], "out-of-memory", is_over=False, step=None)


@pytest.mark.parametrize(("began", "is_told"), [(520, True), (2000, False), (None, False)])
def test_two_lives_of_equal_length_tell_of_growth(began: float | None, *, is_told: bool) -> None:
    deaths = (Incident(NOW - 265, "k9-first-worker-0", "node1", "out-of-memory", ""),)
    outcome = Verdict(FAILED, NOW, "out-of-memory", "It failed.", "Give the role more memory", "k9-first-worker-0")
    history = () if began is None else (HistoryEntry(NOW - began, RUNNING, "every pod is running"),)
    report = Report(TrainingKey("team-a", "k9", "first"), NOW, FAILED, "record", outcome=outcome, incidents=deaths)
    text = "\n".join(why_lines(dataclasses.replace(report, history=history)))
    assert (
        "ran out of memory 2 times, each time about 4 min after it was started: its program grows" in text
    ) == is_told


def test_pace_of_a_run_is_told_with_what_shows_its_limits() -> None:
    progress = Progress(at=NOW - 5, step=126)
    report = Report(TrainingKey("a", "exp", "m"), NOW, RUNNING, "record", progress=progress, seconds_per_step=2.84)
    words = (
        "Its steps take about 2.8 s each. If that is slow: trainchart top exp -n a shows how much CPU each pod uses."
    )
    assert words in why_lines(report)
    assert words not in why_lines(dataclasses.replace(report, origin=LOCAL))
    later = why_lines(dataclasses.replace(report, now=NOW + 50))
    assert "Its steps took about 2.8 s each before. If none follow: trainchart logs exp -n a" in later


def test_slowdown_shows_the_earlier_pace() -> None:
    report = Report(TrainingKey("a", "exp", "m"), NOW, RUNNING, "record", progress=Progress(at=NOW - 5, step=126))
    report = dataclasses.replace(report, seconds_per_step=9.12, slowdown=Slowdown(NOW - 300, 0.25))
    words = f"steps have taken about 9.1 s each since {describe_time(NOW - 300)}, up from 0.25 s"
    assert why_lines(report)[2] == "Nothing has failed. Steps are far slower than before."
    (line,) = (line for line in why_lines(report) if line.startswith(f"Its {words}"))
    assert "waits for data, storage, a service or another task. trainchart top exp -n a shows" in line
    assert f"  {words}: trainchart why exp -n a says what to look at" in status_lines(report)
    assert list_lines([report])[1].endswith(f"  {words}")
    assert describe_report(report)["slowdown"] == {"since": NOW - 300, "usual": 0.25}


def test_throttled_pod_is_not_looked_for_again() -> None:
    report = Report(TrainingKey("a", "exp", "m"), NOW, RUNNING, "record", progress=Progress(at=NOW - 5, step=126))
    problem = ReportedProblem("exp-m-worker-0", "cpu-throttled", "throttled: its CPU limit is 20m")
    text = "\n".join(why_lines(dataclasses.replace(report, seconds_per_step=2.0, problems=(problem,))))
    assert "Its steps take about 2 s each." in text
    assert "trainchart top" not in text


def test_success_without_a_step_is_said() -> None:
    outcome = Verdict("Succeeded", NOW - 60, "succeeded", "The program finished.", pod="exp-m-worker-0")
    report = Report(TrainingKey("a", "exp", "m"), NOW, "Succeeded", "record", outcome=outcome)
    words = "It reported no step; trainchart logs exp -n a shows what it did"
    assert words in "\n".join(why_lines(report))
    assert words not in "\n".join(why_lines(dataclasses.replace(report, outcome=outcome._replace(step=7))))


def test_step_from_before_a_restart_has_no_age() -> None:
    progress = Progress(at=NOW - 5, step=126, before=126)
    report = Report(TrainingKey("a", "exp", "m"), NOW, RUNNING, "record", progress=progress)
    assert "  step 126 (before it was restarted)" in status_lines(report)
    moved = dataclasses.replace(report, progress=dataclasses.replace(progress, step=127))
    assert "  step 127 (5 s ago)" in status_lines(moved)


def test_upgrade_before_a_failure_is_to_be_undone_first() -> None:
    outcome = Verdict(FAILED, NOW, "program-missing", "It failed.", pod="worker-0", error="no /code/train.py")
    upgrade = Upgrade(2, 1, NOW - 60, ("extraVolumes",), newest=2)
    report = Report(TrainingKey("team-a", "k9", "first"), NOW, FAILED, "record", outcome=outcome, upgrades=(upgrade,))
    words = "What to do next: If the last upgrade above is the cause, undo it. Otherwise: Check the command"
    assert any(line.startswith(words) for line in why_lines(report))
    later = dataclasses.replace(report, upgrades=(dataclasses.replace(upgrade, newest=3),))
    assert "undo it" not in "\n".join(why_lines(later))


@pytest.mark.parametrize(("age", "is_told"), [(0.0, True), (90.0, True), (59.0, False), (-90.0, True)])
def test_pods_that_were_just_started_do_not_hang(age: float, *, is_told: bool) -> None:
    started = NOW - age if age else 0.0
    pod = PodReport(
        "k9-first-chief-0", "chief-0", "chief", "Running", "node1", 0, NOW - 600, {}, False, started=started
    )
    progress = Progress(step=70, at=NOW - 480)
    key = TrainingKey("team-a", "k9", "first")
    report = Report(key, NOW, RUNNING, "record", progress=progress, pods=(pod,), seconds_per_step=0.25)
    assert report.seems_to_hang == bool(report.step_pause) == is_told


def test_deaths_whose_errors_were_cut_at_other_lengths_are_alike() -> None:
    error = "ConnectionError: " + "Max retries exceeded with url: " * 9
    deaths = tuple(
        Incident(NOW - 60 * number, "k9-first-worker-0", "node1", "service-unreachable", "", 1, error=error[:length])
        for number, length in ((1, 200), (2, 270), (3, 260))
    )
    report = Report(TrainingKey("team-a", "k9", "first"), NOW, RUNNING, "record", incidents=deaths)
    (line,) = (line for line in why_lines(report) if "(service-unreachable" in line)
    assert f"3 times since {describe_time(NOW - 180)}: {error[:200]}" in line
