"""Fetching from a Git server that is hostile or slow."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trainchart.errors import ToolError
from trainchart.host import git_fetch
from trainchart.host.git_fetch import fetch_git_files

FIRST_BYTES = b"001e# service=git-upload-pack\n0000"


@contextmanager
def serve(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Endless(Quiet):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        self.end_headers()
        self.wfile.write(FIRST_BYTES)
        while True:
            self.wfile.write(b"0004")
            time.sleep(0.05)


def test_no_program_is_left_after_the_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_fetch, "_TIMEOUT_SECONDS", 1.0)
    with serve(Endless) as address:
        with pytest.raises(ToolError, match="no answer in 1 s"):
            fetch_git_files(f"http://{address}/a.git", "main", "", limit=1000)
        time.sleep(0.2)
        left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert address not in left


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://git.example/a", "https"),
        ("HTTP://git.example/a", "http"),
        ("ssh://git.example/a", "ssh"),
        ("git@git.example:a", "ssh"),
        ("file:///a", "file"),
        ("", "none"),
    ],
)
def test_git_speaks_the_protocol_of_the_address_only(url: str, allowed: str) -> None:
    assert git_fetch._environment(os.environ, url)["GIT_ALLOW_PROTOCOL"] == allowed
