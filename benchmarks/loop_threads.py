"""A process of run controllers' loops, a thread each: `python -m benchmarks.loop_threads FILE` of their variables."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainchart_controller.control import Controller
from trainchart_controller.settings import read_settings


def main() -> None:
    # Outside a pod the names of pods do not resolve, and this machine's resolver is not to be asked for them.
    resolve = socket.getaddrinfo

    def resolve_numbers(host: Any, port: Any, *arguments: Any, **keywords: Any) -> Any:
        if not str(host).replace(".", "").isdigit():
            raise socket.gaierror(socket.EAI_NONAME, "only addresses are known")
        return resolve(host, port, *arguments, **keywords)

    socket.getaddrinfo = resolve_numbers
    for environ in json.loads(Path(sys.argv[1]).read_text()):
        threading.Thread(target=_control, args=(environ,)).start()


def _control(environ: Mapping[str, str]) -> None:
    Controller(read_settings(environ)).run()


if __name__ == "__main__":
    main()
