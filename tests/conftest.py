"""Fixtures that several kinds of test share: real helm programs, the hand-written chart, copies of the checkout."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest

from tests.cluster.testcluster.programs import ProgramError, find_program

ROOT = Path(__file__).parent.parent
FIXTURES = Path(__file__).parent / "fixtures"

# A shell that runs us in the background has Ctrl-C ignored, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test judges by the clock, and `make test` tries the same cases every time: `make fuzz` looks for new ones.
hypothesis.settings.register_profile(
    "random", deadline=None, print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("repeatable", hypothesis.settings.get_profile("random"), derandomize=True)
hypothesis.settings.load_profile("repeatable")


def _find_program(name: str) -> Path:
    try:
        return find_program(name)
    except ProgramError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of tests/cluster and tests/console; here, because pytest reads options before folders."""
    parser.addoption("--kube-context", help="context of a cluster that tests may use, in namespaces of their own")
    parser.addoption("--screenshots", help="folder that gets a picture of each page of the console")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Nothing is skipped in CI: there, a skip is a failure that says what is missing."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but CI must run everything: {item.nodeid}: {call.excinfo and call.excinfo.value}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _no_process_is_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail a session that leaves processes of its own, and end them."""
    # Ends like a folder: a session in pytest-1, or popen-gw1, must not end one in pytest-10, or popen-gw10.
    base = f"{tmp_path_factory.getbasetemp()}{os.sep}"
    yield
    left = []
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if base in command and process.pid != os.getpid():
            left.append(command)
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    assert not left, "tests left processes behind"


@pytest.fixture(scope="session")
def helm3() -> Path:
    """The pinned helm 3 program."""
    return _find_program("helm-3")


@pytest.fixture(scope="session")
def helm4() -> Path:
    """The pinned helm 4 program."""
    return _find_program("helm-4")


@pytest.fixture
def plain_chart(tmp_path: Path) -> Path:
    """A private copy of the hand-written chart tests/fixtures/charts/plain, free to be broken."""
    return Path(shutil.copytree(FIXTURES / "charts" / "plain", tmp_path / "charts" / "plain"))


@pytest.fixture
def copy_sources() -> Callable[..., Path]:
    """Return the function that copies files and folders, named as in the checkout, into a folder, and returns that."""
    # While this copies an example, a test in another process may run it from the checkout.
    without_bytecode = shutil.ignore_patterns("__pycache__")

    def copy(folder: Path, *names: str) -> Path:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=without_bytecode)
            else:
                shutil.copy(ROOT / name, folder / name)
        return folder

    return copy
