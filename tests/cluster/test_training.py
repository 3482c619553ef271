"""The main promise: `helm install` alone trains a model over several pods and leaves its checkpoints behind.

One release with a parameter server, installed by helm 4 in a restricted namespace with a quota, serves all tests here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testcluster.access import Access
from testcluster.releases import PROJECT, Release, mnist_values

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def notes() -> list[str]:
    return []


@pytest.fixture(scope="module")
def release(admin: Access, module_namespace: str, notes: list[str]) -> Iterator[Release]:
    release = Release(admin, module_namespace, "exp1", PROJECT / "charts" / "mnist", mnist_values())
    notes.append(release.install())
    release.wait_until_running(6)
    yield release


def test_the_chief_finishes_what_the_hyperparameters_ask_for(release: Release) -> None:
    end = release.wait_until_succeeded("exp1-mnist-chief-0")

    assert end.step == 300
    assert end.task_type == "chief"
    assert end.own_failures == 0
