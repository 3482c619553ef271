"""Opens a page in the user's browser."""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser


def open_in_browser(address: str) -> None:
    """Open a page where there is a desktop: in a terminal alone, a browser would take the terminal."""
    if sys.platform == "linux" and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")
    ):
        return
    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(address)
