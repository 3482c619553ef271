"""Two models, seven releases each: every change gets the version and the label that it is said to have.

tests/cluster/test_upgrade_ladder.py upgrades a real release by the same changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testcluster.ladder import LADDERS, Ladder
from trainchart.actions.repository_access import Address
from trainchart.compare.effect import Effect


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_every_release_has_its_version_and_its_label(ladder: Ladder, tmp_path: Path) -> None:
    to = Address(str(tmp_path / "repository"))
    found = [
        (rung.name, released.version, released.changes.effect if released.changes else Effect.none)
        for rung, released in ladder.publish(tmp_path, to)
    ]
    assert found == [(rung.name, rung.version, rung.effect) for rung in ladder.rungs]
