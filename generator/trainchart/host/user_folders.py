"""Where files of this user lie, by the base directories of XDG."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def find_user_folder(variable: str, default: str, environment: Mapping[str, str]) -> Path:
    """Return trainchart's folder in the base directory that `variable` names, else in `default` of the home folder.

    A user without a home, as in a container with any user id, gets a folder in which nothing can be.
    """
    named = environment.get(variable, "")
    home = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  # Path's own raises without a home
    if named.startswith("/"):
        base = Path(named)
    elif home.startswith("/"):
        base = Path(home, default)
    else:
        base = Path(os.devnull)
    return base / "trainchart"
