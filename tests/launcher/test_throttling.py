"""How the kernel holds a container to its CPU limit: from cgroup files, compared over the last minute."""

from __future__ import annotations

import types

import pytest

from trainchart_launcher import throttle_watch
from trainchart_launcher.attempt import AttemptEnd
from trainchart_launcher.cgroup import CpuPeriods, read_cpu_periods
from trainchart_launcher.last_words import diagnose
from trainchart_launcher.status import Status, dump_status
from trainchart_launcher.throttle_watch import ThrottleWatch
from trainchart_runtime.progress import Progress
from trainchart_runtime.throttling import Throttling

V1 = "4:memory:/pod9\n3:cpu,cpuacct:/pod1\n0::/\n"
STAT = "nr_periods 700\nnr_throttled 650\nthrottled_time 9\n"


def test_cgroups_version_2_say_periods_and_limit(files):
    files["/sys/fs/cgroup/cpu.stat"] = "usage_usec 5\nnr_periods 700\nnr_throttled 650\nthrottled_usec 9\n"
    files["/sys/fs/cgroup/cpu.max"] = "2000 100000\n"
    assert read_cpu_periods() == CpuPeriods(650, 0.1, 0.02)


@pytest.mark.parametrize("folder", ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/pod1"])
def test_cgroups_version_1_say_them_too(files, folder):
    quota, period = f"{folder}/cpu.cfs_quota_us", f"{folder}/cpu.cfs_period_us"
    files.update({"/proc/self/cgroup": V1, f"{folder}/cpu.stat": STAT, quota: "2000\n", period: "100000\n"})
    assert read_cpu_periods() == CpuPeriods(650, 0.1, 0.02)
    files[quota] = "-1\n"
    assert read_cpu_periods() is None, "no limit"


@pytest.mark.parametrize(
    "limit", ["max 100000\n", "", "2000\n", "2000 0\n", "0 100000\n", "2000 1 1\n", "9" * 5000 + " 1"]
)
def test_without_a_limit_nothing_is_said(files, limit):
    files.update({"/sys/fs/cgroup/cpu.stat": STAT, "/sys/fs/cgroup/cpu.max": limit})
    assert read_cpu_periods() is None


@pytest.mark.parametrize("stat", ["", "nr_throttled\n", "nr_throttled -1\n", "nr_throttled ٣\n"])
def test_without_a_count_nothing_is_said(files, stat):
    files.update({"/sys/fs/cgroup/cpu.stat": stat, "/sys/fs/cgroup/cpu.max": "2000 100000\n"})
    assert read_cpu_periods() is None


@pytest.fixture
def watched():
    return ThrottleWatch()


@pytest.fixture
def watch(monkeypatch, watched):
    """Returns the share of throttled periods after so many more seconds and throttled periods."""
    now, count = [1000.0], [50]
    monkeypatch.setattr(throttle_watch, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(throttle_watch, "read_cpu_periods", lambda: CpuPeriods(count[0], 0.1, 0.02))

    def wait(seconds, periods):
        now[0] += seconds
        count[0] += periods
        found = watched.measure()
        return None if found is None else round(found.share, 2)

    return wait


def test_the_share_is_of_the_last_minute(watch):
    assert [watch(10, 90) for _ in range(6)] == [None] * 6, "a minute begins with the first look"
    assert [watch(10, 90) for _ in range(3)] == [0.9] * 3
    assert [watch(10, 0) for _ in range(6)] == [0.75, 0.6, 0.45, 0.3, 0.15, 0.0]


def test_a_program_that_mostly_sleeps_is_not_throttled(watch):
    watch(0, 0)
    assert watch(60, 6) == 0.01, "the kernel counts only the periods in which it wanted to run"


def test_many_looks_keep_few_of_them(watch, watched):
    for _ in range(1000):
        last = watch(0.1, 1)
    assert last == 1.0
    assert len(watched._looks) <= 25


def test_a_long_silence_and_another_cgroup_start_over(watch):
    watch(0, 0)
    assert watch(300, 3000) is None
    assert watch(60, 300) == 0.5
    assert watch(60, -800) is None, "a count that goes back is of another cgroup"


def test_status_says_how_the_container_is_throttled():
    status = Status("worker", 0, "run-1", throttling=Throttling(0.97801, 0.02))
    assert '"cpuThrottling": {"share": 0.98, "limit": 0.02}' in dump_status(status, Progress(), ())


@pytest.mark.parametrize("printed", [[], ["Traceback (most recent call last):", "ValueError: bad"]])
def test_a_stalled_program_names_its_cpu_limit(printed):
    end = AttemptEnd(None, 15, 0.0, 700.0, 700.0, streams=printed, stalled=True)
    words = "(the container was throttled for more than half of the last minute: its CPU limit is 20m)"
    found = diagnose(end, ["train"], 0, Throttling(0.98, 0.02))
    assert (found.cause.name, found.error) == ("no-progress", " ".join([*printed[1:], words]))
    assert diagnose(end, ["train"], 0, Throttling(0.98, 2)).error == "".join(printed[1:])
    failed = end._replace(signal=None, exit_code=1, stalled=False)
    assert "throttled" not in diagnose(failed, ["train"], 0, Throttling(0.98, 0.02)).error
