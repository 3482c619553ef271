"""The option by which commands find local runs that do not lie where they usually do. Pure."""

from __future__ import annotations

import re
import shlex

_USUAL_FOLDER = ".trainchart/runs"


def runs_option(folder: str) -> str:
    """Return what finds the local run in `folder` beside its name: nothing where runs lie as usual.

    Seen from a folder of the project, that is some folders above.
    """
    parent = folder.rpartition("/")[0] or "."
    is_usual = re.fullmatch(rf"(\.\./)*{re.escape(_USUAL_FOLDER)}", parent)
    return "" if is_usual else f" --runs-dir {shlex.quote(parent)}"
