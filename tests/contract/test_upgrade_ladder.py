"""Two models, seven releases each: every change gets the version and the label that it is said to have.

tests/cluster/test_upgrade_ladder.py upgrades a real release by the same changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.testcluster.ladder import ENVIRONMENT, LADDERS, Ladder
from trainchart.actions.release import ReleaseOptions, release_model
from trainchart.actions.support.repository_access import Address
from trainchart.compare.effect import Effect


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_every_release_has_its_version_and_its_label(ladder: Ladder, tmp_path: Path) -> None:
    to = Address(str(tmp_path / "repository"))
    found = [
        (rung.name, released.version, released.changes.effect if released.changes else Effect.none)
        for rung, released in ladder.publish(tmp_path, to)
    ]
    assert found == [(rung.name, rung.version, rung.effect) for rung in ladder.rungs]


def test_a_pre_release_before_any_release_becomes_one(tmp_path: Path) -> None:
    ladder = LADDERS[0]
    spec, to = ladder.write_spec(tmp_path, ladder.rungs[0]), Address(str(tmp_path / "repository"))

    def release(pre_release: str = "") -> tuple[str, bool]:
        options = ReleaseOptions(None, pre_release=pre_release, environment=ENVIRONMENT)
        released = release_model(str(spec), to, options)
        return released.version, released.publication is not None

    assert release("rc.1") == ("0.1.0-rc.1", True)
    assert release("rc.2") == ("0.1.0-rc.1", False)
    assert release() == ("0.1.0", True)
    assert release() == ("0.1.0", False)
