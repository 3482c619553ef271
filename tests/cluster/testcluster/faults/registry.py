"""Faults of the image registry; only images that a node does not hold yet are affected. Pure."""

from __future__ import annotations

import sys

from .. import config
from ..components import Component
from .fault import AwaitPort, Change, Fault, RunComponent, StartComponent, StopComponent

_REGISTRY = "registry"
_STAND_IN = "refusing-registry"
_ANSWERS = """
import http.server, sys
class Refusal(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(int(sys.argv[2]))
    do_HEAD = do_GET
http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Refusal).serve_forever()
"""


def stop_registry() -> Fault:
    """Let pulls meet a refused connection."""
    return Fault("registry stopped", (_without_registry(),))


def refuse_pulls(status: int) -> Fault:
    """Let the registry answer every request with an HTTP status: 401 denied, 429 too many, 500 broken."""
    argv = (sys.executable, "-c", _ANSWERS, str(config.REGISTRY_PORT), str(status))
    stand_in = Change(RunComponent(Component(_STAND_IN, argv)), (StopComponent(_STAND_IN),))
    return Fault(
        f"registry answering {status}", (_without_registry(), stand_in, Change(AwaitPort(config.REGISTRY_PORT)))
    )


def _without_registry() -> Change:
    return Change(StopComponent(_REGISTRY), (StartComponent(_REGISTRY), AwaitPort(config.REGISTRY_PORT)))
