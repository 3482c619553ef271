"""Who reaches whom, asked from inside pods: what NetworkPolicies are for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from lightkube.core.client import Client

from .access import Access, NotInTime

CONNECT = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def is_reached(target):
    host, port = target.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True
with ThreadPoolExecutor() as pool:
    print(json.dumps(list(pool.map(is_reached, sys.argv[1:]))))
"""
"""A program: prints for each "host:port" of its arguments whether it takes a connection, as a JSON list."""


def wait_for_reach(
    access: Access,
    targets: Mapping[str, str],
    expected: Mapping[str, set[str]],
    what: str,
    namespace_of: Callable[[str], str],
) -> None:
    """Wait until every client pod reaches exactly what it should, since a policy holds a moment after it is made.

    `targets` maps names to "host:port", `expected` clients to names of targets, `namespace_of` clients to namespaces.
    Raises AssertionError with what was seen last.
    """
    seen: dict[str, set[str]] = {}

    def look_from(client: str) -> set[str]:
        argv = ("exec", client, "-n", namespace_of(client), "--", "python3", "-S", "-c", CONNECT, *targets.values())
        reached = json.loads(access.kubectl(*argv))
        return {name for name, is_reached in zip(targets, reached, strict=True) if is_reached}

    def is_as_expected(_: Client) -> bool:
        with ThreadPoolExecutor(4) as pool:
            seen.update(zip(expected, pool.map(look_from, expected), strict=True))
        return seen == expected

    try:
        access.wait_for(is_as_expected, what, namespace=namespace_of(next(iter(expected))), deadline_seconds=90)
    except NotInTime as error:
        raise AssertionError(f"{what}: reached is {seen}, not {expected}") from error
