"""The chart that an upgrade writes for helm: of a record that somebody forged, its files may have any names."""

from __future__ import annotations

import pytest

from trainchart.errors import ToolError
from trainchart.helm.io.upgrade import HelmUpgrade, render_upgrade


@pytest.mark.parametrize("files", [("a", "a/b"), ("a/b", "a"), ("a\0b",), ("x" * 300,), ("\ud800",)])
def test_a_file_that_cannot_be_written_is_named(files: tuple[str, ...]) -> None:
    upgrade = HelmUpgrade("exp1", "team-a", "", dict.fromkeys(files, b""))
    with pytest.raises(ToolError, match="cannot write the file"):
        render_upgrade(upgrade)
