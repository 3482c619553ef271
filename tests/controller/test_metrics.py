"""GET /metrics of the run controller: what it says, and that nobody who asks, or nobody who can, disturbs the run."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time

import pytest

from tests.controller.fake_api import make_pod
from tests.support.free_ports import find_free_port
from trainchart_controller.metrics import follow_run, render_metrics
from trainchart_runtime import causes
from trainchart_runtime.run.state import (
    PHASES,
    Incident,
    PodProblem,
    RoleState,
    RunProgress,
    RunState,
    Verdict,
)

STATE = RunState(
    run_id="run-1",
    phase="Running",
    since=1700000000.5,
    updated=1700000001.0,
    attempt=2,
    roles={"worker": RoleState(wanted=3, running=2, failures=4)},
    problems=(PodProblem("exp1-worker-2", "", "unschedulable", "0/3 nodes", 1.0),),
    incidents=(Incident(1.0, "exp1-worker-0", "n1", "killed", "started again"),),
    progress=RunProgress(at=2.0, attempt=1, step=1200),
)
COMMON = 'release="exp1",run_id="run-1"'


@pytest.fixture
def address():
    """A place where nobody listens."""
    return "127.0.0.1", find_free_port()


def fetch(address, method="GET", path="/metrics"):
    connection = http.client.HTTPConnection(*address, timeout=5)
    connection.request(method, path)
    answer = connection.getresponse()
    found = answer.status, answer.headers["Content-Type"], answer.read().decode()
    connection.close()
    return found


def wait_for_line(address, line):
    """Return once the page has `line`: it shows a state a moment after that was recorded."""
    deadline = time.monotonic() + 15.0
    text = ""
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            text = fetch(address)[2]
            if line in text.splitlines():
                return
        time.sleep(0.01)
    raise AssertionError(f"no line {line!r} in\n{text}")


def render(state, before=None):
    return render_metrics("exp1", follow_run(follow_run(None, before) if before else None, state)).splitlines()


def test_a_running_run():
    lines = [
        line for line in render(STATE) if not line.startswith("#") and not line.startswith("trainchart_run_phase{")
    ]
    assert lines == [
        f"trainchart_run_phase_since_seconds{{{COMMON}}} 1700000000.5",
        f"trainchart_run_attempt{{{COMMON}}} 2.0",
        f'trainchart_run_pods{{{COMMON},role="worker",state="wanted"}} 3.0',
        f'trainchart_run_pods{{{COMMON},role="worker",state="running"}} 2.0',
        f'trainchart_run_failures_total{{{COMMON},role="worker"}} 4.0',
        f'trainchart_run_problem{{{COMMON},pod="exp1-worker-2",cause="unschedulable"}} 1.0',
        f'trainchart_run_incidents_total{{{COMMON},cause="killed"}} 1.0',
        f"trainchart_run_step{{{COMMON}}} 1200.0",
    ]


def test_exactly_one_phase_holds():
    for phase in PHASES:
        phases = [line for line in render(STATE._replace(phase=phase)) if line.startswith("trainchart_run_phase{")]
        assert len(phases) == len(PHASES)
        assert [line for line in phases if line.endswith(" 1.0")] == [
            f'trainchart_run_phase{{{COMMON},phase="{phase}"}} 1.0'
        ]


def test_a_verdict():
    ended = STATE._replace(phase="Stopping", verdict=Verdict("Failed", 1.0, cause="module-missing"))
    assert f'trainchart_run_verdict{{{COMMON},result="Failed",cause="module-missing"}} 1.0' in render(ended)
    assert not any("trainchart_run_verdict" in line for line in render(STATE))


def test_incidents_that_the_record_forgets_stay_counted():
    (first,) = STATE.incidents
    more = [first._replace(at=float(number)) for number in range(2, 22)]
    assert f'trainchart_run_incidents_total{{{COMMON},cause="killed"}} 21.0' in render(
        STATE._replace(incidents=(first, *more[1:])), before=STATE._replace(incidents=(first, more[0]))
    )


def test_another_run_counts_anew():
    follower = STATE._replace(run_id="run-2", incidents=())
    assert not any("incidents" in line for line in render(follower, before=STATE))


def test_a_name_cannot_break_the_format():
    odd = STATE._replace(run_id='a"b\\c\nd')
    assert 'trainchart_run_attempt{release="exp1",run_id="a\\"b\\\\c\\nd"} 2.0' in render(odd)


@pytest.mark.parametrize("text", ["2223", ":65536", "host:"])
def test_an_address_that_is_none_is_refused(text, start):
    controller = start(patient=True, TRAINCHART_METRICS_ADDRESS=text)
    assert controller.wait() == 78
    assert "the variable TRAINCHART_METRICS_ADDRESS must be HOST:PORT or :PORT" in controller.log


def test_a_run_is_told_while_it_goes(api, start, run_to_phase, address):
    controller = start(TRAINCHART_METRICS_ADDRESS="{}:{}".format(*address))
    run_to_phase("Running")
    wait_for_line(address, f'trainchart_run_phase{{{COMMON},phase="Running"}} 1.0')
    wait_for_line(address, f'trainchart_run_pods{{{COMMON},role="worker",state="running"}} 2.0')
    assert fetch(address)[:2] == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert fetch(address, path="/")[0] == 404
    assert fetch(address, method="POST")[0] == 405
    assert fetch(address, method="HEAD")[2] == ""
    api.removes_pods = False
    api.put_pod(make_pod("worker-1", causes.MODULE_MISSING, error="no module"))
    wait_for_line(address, f'trainchart_run_verdict{{{COMMON},result="Failed",cause="module-missing"}} 1.0')
    assert controller.process.poll() is None


def test_a_client_that_says_nothing_keeps_no_run_from_its_end(api, start, run_to_phase, address):
    controller = start(TRAINCHART_METRICS_ADDRESS="{}:{}".format(*address))
    run_to_phase("Running")
    wait_for_line(address, f'trainchart_run_phase{{{COMMON},phase="Running"}} 1.0')
    with socket.create_connection(address) as silent:
        silent.sendall(b"GET /met")
        api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
        assert controller.wait() == 0


def test_a_port_that_is_taken_costs_the_metrics_alone(api, start, run_to_phase):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        controller = start(TRAINCHART_METRICS_ADDRESS="{}:{}".format(*taken.getsockname()))
        run_to_phase("Running")
        api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
        assert controller.wait() == 0
    assert controller.log.count("no metrics") == 1
    assert "Traceback" not in controller.log


def test_nobody_is_answered_before_the_run_is_known(api, start, address):
    api.fail("GET", "/configmaps/", 500, times=10**6)
    start(TRAINCHART_METRICS_ADDRESS="{}:{}".format(*address))
    api.wait_for(lambda: api.seen("GET", "/configmaps/") > 2, "tries")
    with pytest.raises(ConnectionRefusedError):
        fetch(address)
