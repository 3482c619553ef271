"""The program: `python -m trainchart_serving --model_name NAME --model_base_path FOLDER`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence

from trainchart_serving.server import Addresses, serve
from trainchart_serving.settings import Settings, parse_settings

_ONE_REQUEST_SECONDS = 1.0
"""Signals this close are one request to stop: `timeout` and other wrappers signal the process, then its group."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    settings = parse_settings(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    try:
        asyncio.run(_serve(settings))
    except OSError as error:
        print(f"trainchart_serving: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


async def _serve(settings: Settings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    asked_at = loop.time()

    def stop() -> None:
        nonlocal asked_at
        if not stopping.is_set():
            asked_at = loop.time()
            stopping.set()
        elif loop.time() - asked_at >= _ONE_REQUEST_SECONDS:
            os._exit(143)  # asked twice: the user does not want to wait

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await serve(settings, stopping, lambda found: _print_addresses(settings, found))


def _print_addresses(settings: Settings, found: Addresses) -> None:
    print(f"serving {settings.model_name}: REST at {found.rest}, gRPC at {found.grpc}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
