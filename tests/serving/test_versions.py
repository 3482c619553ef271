"""Which versions are served: a pure decision over what lies in the folder."""

from __future__ import annotations

import pytest

from trainchart_serving.versions import VersionPolicy, choose_next, choose_retired, list_versions


def test_folders_named_by_a_number_are_versions() -> None:
    names = ["3", "12", "003", "draft", "4.draft", "-1", "٣", "99999999999999999999", ".5"]
    assert list_versions(names) == {12: "12", 3: "3"}


@pytest.mark.parametrize(
    ("found", "available", "broken", "policy", "following", "retired"),
    [
        ([], [], [], VersionPolicy(), None, []),
        ([1, 2], [], [], VersionPolicy(), 2, []),
        ([1, 2], [2], [], VersionPolicy(), None, []),
        ([1, 2, 3], [2], [], VersionPolicy(), 3, []),
        ([1, 2, 3], [2, 3], [], VersionPolicy(), None, [2]),
        # A broken one never replaces one that serves, and is not waited for after a restart.
        ([1, 2, 3], [2], [3], VersionPolicy(), None, []),
        ([1, 2, 3], [], [3], VersionPolicy(), 2, []),
        ([1, 2, 3], [3], [], VersionPolicy(latest=2), 2, []),
        ([1, 2, 3], [2, 3], [], VersionPolicy(latest=2), None, []),
        ([1, 2, 3], [1, 2, 3], [], VersionPolicy(latest=2), None, [1]),
        ([1, 2, 3], [3], [], VersionPolicy(pinned=(1,)), 1, []),
        ([1, 2, 3], [1, 3], [], VersionPolicy(pinned=(1,)), None, [3]),
        ([1, 2, 3], [3], [1], VersionPolicy(pinned=(1,)), None, []),
        # The folder of what serves is gone: it stays while nothing takes its place.
        ([], [2], [], VersionPolicy(), None, []),
        ([1], [1, 2], [], VersionPolicy(), None, [2]),
    ],
)
def test_versions_to_load_and_to_unload(
    found: list[int],
    available: list[int],
    broken: list[int],
    policy: VersionPolicy,
    following: int | None,
    retired: list[int],
) -> None:
    assert choose_next(found, available, broken, policy) == following
    assert choose_retired(found, available, broken, policy) == retired
