"""A user of a console that many share: everything is read and done with the user's own Kubernetes token. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainchart.console.installing import Installer
from trainchart.console.views import Source


@dataclass(frozen=True)
class Account:
    """One session's way into the cluster; none is shared, and nothing that one has read is shown to another."""

    user: str
    """Who the API server says that the token's owner is."""
    source: Source
    open_installer: Callable[[], Installer]
    check: Callable[[], None]
    """Asks the API server about the token again. Raises Unauthorized, or another ClusterError where it cannot."""
    close: Callable[[], None]
    """Removes what was kept of the token; after that, nothing can be read or done any more."""


OpenAccount = Callable[[str], Account]
"""Token → account; may take seconds. Raises Unauthorized, or another TrainchartError where that cannot be known."""
