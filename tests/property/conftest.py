"""How many random cases a property gets, and what became of them.

`make test` takes few; `make fuzz` takes thousands and prints the seed, with which the same cases come again.
"""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest

_TALLY = pytest.StashKey[Counter[str]]()
CASES = 20
"""Random cases of each property in `make test`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, default=CASES, help="random cases of every property")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TALLY] = Counter()
    cases = config.getoption("--cases")
    hypothesis.settings.register_profile(
        "trainchart",
        max_examples=cases,
        # `make test` tries the same cases every time: what is new is for `make fuzz` to find.
        derandomize=cases == CASES,
        deadline=None,
        print_blob=True,
        # A case is a whole rendering: making a failing one small takes minutes, and the case printed says enough.
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.reuse, hypothesis.Phase.generate],
        suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
    )
    hypothesis.settings.load_profile("trainchart")


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Counter[str]:
    """Counts what became of the cases; printed at the end."""
    return pytestconfig.stash[_TALLY]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counted = config.stash[_TALLY]
    if counted:
        terminalreporter.section(f"{sum(counted.values())} random cases")
        for outcome, times in sorted(counted.items()):
            terminalreporter.write_line(f"{times:7}  {outcome}")
