from __future__ import annotations

import random
import statistics

import pytest

from benchmarks.measure import find_median_limits


@pytest.mark.parametrize("count", [30, 100, 101])
def test_limits_hold_the_median_in_nineteen_of_twenty_samples(count):
    source = random.Random(1)
    samples = [sorted(source.lognormvariate(0, 1) for _ in range(count)) for _ in range(2000)]

    held = [low < 1 < high for low, high in map(find_median_limits, samples)]

    assert 0.94 < statistics.mean(held) < 0.98
