"""Work that takes too long ends, and what was set for signals is as before."""

from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from trainchart.host.time_limit import TookTooLong, time_limit


@pytest.mark.timeout(60)
def test_a_pattern_without_end_ends() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(TookTooLong), time_limit(0.2):
        re.search("^(a+)+$", "a" * 60 + "b")
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_other_threads_go_on_without_a_limit() -> None:
    def work() -> int:
        with time_limit(0.2):
            return 1

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == 1
