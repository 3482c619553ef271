"""Running pods that cannot reach peers which run, or lose them again and again, are problems of the record."""

from __future__ import annotations

import pytest

from tests.unit.runtime.run_scenes import NOW, PLAN, group, pod, running, see
from trainchart_runtime import causes
from trainchart_runtime.run.observation import ContainerEnd, parse_report
from trainchart_runtime.run.rules import decide

RESET = (
    "tensorflow.python.framework.errors_impl.UnavailableError: From /job:ps/replica:0/task:0: "
    "sendmsg: Connection reset by peer (104)"
)
ABORTED = "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Socket closed"


def say(**more):
    """The /status of a launcher, as it answers the run controller."""
    return parse_report({"attempt": 1, "state": "running", "peersWaiting": [], "failures": [], **more})


def wait_for(*tasks, reason, seconds=75.0, **more):
    waiting = [
        {"address": f"exp1-mnist-{task}.exp1-mnist:2222", "reason": reason, "seconds": seconds} for task in tasks
    ]
    return say(peersWaiting=waiting, **more)


def lose(*, times=5, every=55.0, error=RESET, cause="peer-lost", last=NOW - 20):
    failures = [
        {"number": number + 1, "at": last - every * (times - 1 - number), "cause": cause, "exitCode": 1, "error": error}
        for number in range(times)
    ]
    return say(attempt=times + 1, peerFailures=times, ended=times, failures=failures)


def find(pods=None, **reports):
    """The problems that are recorded, with what these launchers say."""
    by_uid = {f"uid-{task.replace('_', '-')}": report for task, report in reports.items()}
    return decide(PLAN, see(group() if pods is None else pods)._replace(reports=by_uid), running()).state.problems


def test_name_that_does_not_resolve_is_a_problem_of_who_asks():
    [problem] = find(chief_0=wait_for("worker-0", "ps-0", reason="name does not resolve"), worker_0=say(), ps_0=say())
    assert (problem.subject, problem.cause, problem.since) == ("exp1-mnist-chief-0", "peer-unresolvable", NOW)
    assert problem.message == (
        "names that do not resolve in this pod, though their pods run: "
        "exp1-mnist-worker-0.exp1-mnist:2222, exp1-mnist-ps-0.exp1-mnist:2222"
    )


@pytest.mark.parametrize("reason", ["does not answer", "[Errno 113] No route to host"])
def test_peer_that_runs_and_cannot_be_reached_is_a_problem(reason):
    [problem] = find(worker_1=wait_for("ps-0", reason=reason))
    assert (problem.subject, problem.cause) == ("exp1-mnist-worker-1", "peer-missing")
    assert reason in problem.message


@pytest.mark.parametrize(
    ("pods", "report"),
    [
        (None, wait_for("ps-0", reason="name does not resolve", seconds=59.0)),
        (None, wait_for("ps-0", reason="refuses connections", seconds=900.0)),
        (None, wait_for("ps-0", reason="not asked yet", seconds=900.0)),
        (group(ps_0=pod("ps-0", is_running=False)), wait_for("ps-0", reason="name does not resolve")),
        (None, wait_for("stranger-0", reason="name does not resolve")),
    ],
    ids=["starting", "program not ready", "not known", "peer does not run", "no pod of the run"],
)
def test_peer_that_may_yet_answer_is_no_problem(pods, report):
    assert not find(pods, chief_0=report)


@pytest.mark.parametrize("waiting", [None, "x", [None], [{"address": 1, "reason": [], "seconds": 99}]])
def test_junk_about_peers_is_left_out(waiting):
    assert say(peersWaiting=waiting).missing_peers == ()


def test_running_peer_that_is_lost_again_and_again_is_a_problem():
    [problem] = find(worker_0=lose(), ps_0=say())
    assert (problem.subject, problem.cause) == ("exp1-mnist-worker-0", "peer-lost")
    assert problem.since == NOW - 20 - 4 * 55
    assert problem.message.startswith("lost a peer 5 times; each time the program was started again in its pod, which")
    assert problem.message.endswith(f"names ps-0 on node-1: {RESET}")


def test_a_peer_that_failed_in_the_future_explains_nothing():
    """What runs in a pod may write when its program failed."""
    [problem] = find(worker_0=lose(), ps_0=lose(cause="program-error", error="ValueError: no", last=1e308, every=0))
    assert problem.subject == "exp1-mnist-worker-0"


@pytest.mark.parametrize("times", [(-1e308, 0, NOW), (1, NOW - 90, NOW), (1e300, 0, 1e308)])
def test_times_that_cannot_be_are_not_recorded(times):
    failures = [
        {"number": number, "at": at, "cause": "peer-lost", "exitCode": 1, "error": RESET}
        for number, at in enumerate(times, start=1)
    ]
    report = say(attempt=4, peerFailures=3, ended=3, failures=failures)
    assert all(problem.since == NOW for problem in find(worker_0=report))


def test_names_that_do_not_resolve_are_no_broken_connections():
    [problem] = find(worker_0=lose(error="gaierror: [Errno -3]", cause="peer-unresolvable"), ps_0=say())
    assert problem.cause == "peer-unresolvable"
    assert problem.message.startswith("could not resolve the name of a peer 5 times; each time")


def test_error_that_names_no_task_is_shown_alone():
    [problem] = find(worker_0=lose(error=ABORTED))
    assert problem.message.endswith(f"The last error: {ABORTED}")


@pytest.mark.parametrize(
    ("pods", "reports"),
    [
        (None, {"worker_0": lose(times=2)}),
        (None, {"worker_0": lose(every=5.0)}),
        (None, {"worker_0": lose(last=NOW - 300)}),
        (None, {"worker_0": lose(cause="program-error")}),
        (None, {"worker_0": lose(), "ps_0": lose(cause="program-error", error="ValueError: no")}),
        (group(ps_0=pod("ps-0", is_running=False)), {"worker_0": lose()}),
        (group(ps_0=pod("ps-0", ContainerEnd(137, "OOMKilled", finished_at=NOW - 90))), {"worker_0": lose()}),
        (group(worker_1=None), {"worker_0": lose(error=ABORTED)}),
    ],
    ids=["few", "of one moment", "over", "its own", "peer ends", "peer is away", "peer was killed", "some pod is away"],
)
def test_lost_peer_that_is_explained_or_over_is_no_problem(pods, reports):
    found = find(pods, **reports)
    assert not [problem for problem in found if problem.cause == causes.PEER_LOST.name]


REFUSES = "refuses connections"


def test_leading_task_that_trains_without_its_peers_is_named():
    [problem] = find(chief_0=wait_for("worker-0", "ps-0", reason=REFUSES, step=40), worker_0=say(step=38), ps_0=say())
    assert (problem.subject, problem.cause) == ("exp1-mnist-chief-0", "not-connected")
    assert problem.message == (
        "it makes steps, though these peers have never listened for it: "
        "exp1-mnist-worker-0.exp1-mnist:2222, exp1-mnist-ps-0.exp1-mnist:2222"
    )


@pytest.mark.parametrize(
    ("chief", "worker"),
    [
        (wait_for("worker-0", reason=REFUSES), say(step=38)),
        (wait_for("worker-0", reason=REFUSES, seconds=20.0, step=40), say(step=38)),
        (say(step=40), wait_for("chief-0", reason=REFUSES, step=38)),
    ],
    ids=["makes no steps", "has just started", "does not lead"],
)
def test_peers_that_are_only_late_are_no_problem(chief, worker):
    assert find(chief_0=chief, worker_0=worker) == ()


def test_steps_of_an_earlier_start_do_not_count():
    reports = {"uid-chief-0": wait_for("worker-0", reason=REFUSES, step=40)}
    begun = decide(PLAN, see(group())._replace(reports=reports), running()).state
    assert len(begun.problems) == 1
    later = see(group(), now=NOW + 60)._replace(reports=reports)
    assert decide(PLAN, later, begun).state.problems == ()
