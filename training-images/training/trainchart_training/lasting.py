"""Keeps what must not be freed while the process lives, because freeing it waits for something else."""

from __future__ import annotations

_kept: list[object] = []


def keep_to_the_end(thing: object) -> None:
    """Keep `thing` until the process ends, as train() ends it: without a look at what there is to free."""
    _kept.append(thing)
