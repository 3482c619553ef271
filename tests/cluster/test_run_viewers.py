"""trainchart tensorboard and notebook over releases of a real cluster: what they show, and that nothing is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.images.plan import NOTEBOOK_IMAGE, RUNTIME_IMAGE
from tests.cluster.testcluster.releases import Release, make_mnist_chart, make_values, merge_values
from tests.cluster.testcluster.runs import CONTROLLED, wait_for_job

pytestmark = pytest.mark.cluster

SECONDS = 120
KINDS = "deployments,services,networkpolicies,secrets"
SMALL = ("--set", "resources.requests.cpu=50m", "--set", "resources.requests.memory=256Mi")


@pytest.fixture(scope="module")
def releases(admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, Release]:
    """Two releases that have trained, each with a claim of its own."""
    chart = make_mnist_chart(tmp_path_factory.mktemp("chart"), "single", {"worker": {}})
    values = merge_values(make_values("mnist", ("worker",), maxSteps=20), CONTROLLED)
    first, second = (Release(admin, module_namespace, name, chart, values) for name in ("exp1", "exp.2"))
    for release in (first, second):
        release.install()
    for release in (first, second):
        wait_for_job(release, "Complete", deadline_seconds=SECONDS)
    return first, second


@contextmanager
def open_viewer(access: Access, namespace: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """Run a command until its page answers, give what it has printed, and end it with SIGTERM."""
    argv = [sys.executable, "-m", "trainchart", *arguments, f"--namespace={namespace}"]
    argv += ["--port=0", "--no-browser", "--format=json"]
    argv += [f"--context={access.context}"] if access.context else []
    with subprocess.Popen(
        argv, env=access.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        try:
            lines: list[str] = []
            while not lines or lines[-1] != "}\n":
                line = process.stdout.readline()
                assert line, process.stderr.read()
                lines.append(line)
            yield json.loads("".join(lines))
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 128 + signal.SIGTERM, process.stderr.read()
        finally:
            process.kill()


def ask(url: str, token: str = "") -> Any:
    request = urllib.request.Request(url, headers={"Authorization": f"token {token}"} if token else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        return json.load(answer)


@pytest.fixture
def list_objects(admin: Access, module_namespace: str) -> Callable[[], set[str]]:
    return lambda: set(admin.kubectl("get", KINDS, "-n", module_namespace, "-o", "name").split())


def test_one_tensorboard_shows_several_releases(
    releases: tuple[Release, Release], list_objects: Callable[[], set[str]]
) -> None:
    """A release may have a dot in its name."""
    release = releases[0]
    before = list_objects()
    with open_viewer(release.access, release.namespace, "tensorboard", "--all", *SMALL) as shown:
        runs = ask(f"{shown['url']}/data/runs")
        assert {run.partition("/")[0] for run in runs} == {"exp1", "exp-2"}
        tags = ask(f"{shown['url']}/data/plugin/scalars/tags")
        run = next(run for run in runs if run.startswith("exp-2/") and "loss" in tags.get(run, ()))
        points = ask(f"{shown['url']}/data/plugin/scalars/scalars?run={run}&tag=loss")
        assert points[-1][1] == 20
        # Larger than a frame of the connection.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{shown['url']}/index.js") as script:
            assert len(script.read()) > 1_000_000
    assert list_objects() == before


def test_a_notebook_that_is_kept_leaves_nothing_when_uninstalled(
    releases: tuple[Release, Release], list_objects: Callable[[], set[str]]
) -> None:
    release = releases[0]
    before = list_objects()
    arguments = ("notebook", "exp1", "--keep", f"--image={NOTEBOOK_IMAGE}", *SMALL)
    with open_viewer(release.access, release.namespace, *arguments) as shown:
        base = shown["url"].removesuffix("/lab")
        assert ask(f"{base}/api/contents", shown["token"])["type"] == "directory"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(f"{base}/api/contents")
        assert {run.partition("/")[0] for run in ask(f"{shown['tensorboard']}data/runs", shown["token"])} == {"exp1"}
    left = list_objects() - before
    (name,) = (each.rpartition("/")[2] for each in left if each.startswith("deployment"))
    assert f"secret/{name}" in left
    replace(release, name=name).uninstall()
    release.access.wait_for(
        lambda _: list_objects() == before, "the Secret with the token is deleted", namespace=release.namespace
    )


def test_an_image_without_tensorboard_is_named(
    releases: tuple[Release, Release], list_objects: Callable[[], set[str]]
) -> None:
    release = releases[0]
    before = list_objects()
    argv = [sys.executable, "-m", "trainchart", "tensorboard", "exp1", f"--namespace={release.namespace}", "--port=0"]
    context = [f"--context={release.access.context}"] if release.access.context else []
    done = release.access.run([*argv, f"--image={RUNTIME_IMAGE}", *context], check=False)
    assert done.returncode == 9, done.stderr
    assert list_objects() == before
