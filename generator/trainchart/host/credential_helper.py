"""Asks docker's credential helpers, programs that keep logins in the system's own store."""

from __future__ import annotations

import re
import subprocess

from trainchart.errors import ToolError

_TIMEOUT_SECONDS = 30.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def ask_credential_helper(helper: str, host: str) -> str:
    """Return what docker-credential-HELPER prints for `host`; empty where it knows no login.

    Raises ToolError where there is no such program.
    """
    program = f"docker-credential-{helper}"
    if not _NAME.fullmatch(helper):
        raise ToolError(f"{program!r} is not the name of a credential helper", hint="see ~/.docker/config.json")
    try:
        done = subprocess.run(
            [program, "get"], input=host, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(
            f"{program}, which docker's config.json names for {host}, does not run",
            hint="install it, or log in with helm registry login",
        ) from error
    # A helper ends with 1 where it has nothing for the host.
    return done.stdout if done.returncode == 0 else ""
