"""Real servers of charts on loopback: two registries, nginx with WebDAV, and the stand-in for ChartMuseum."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cluster.testcluster.programs import ProgramError, find_program
from tests.repositories.chart_museum_stand_in import Museum, MuseumHandler
from tests.support.free_ports import find_free_port

USER = "ada"
PASSWORD = "secret"
_BCRYPT = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
"""Of PASSWORD; registries take no other kind."""
_DEADLINE_SECONDS = 30.0


def find_server(name: str) -> str:
    """Return the path of a program; the test is skipped where Debian's package is not installed."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if program is None:
        pytest.skip(f"there is no {name}; apt-get install it")
    return program


def find_new_registry() -> str:
    """Return the path of the registry that is built from Go modules; the test is skipped where that cannot be."""
    try:
        return str(find_program("registry"))
    except ProgramError as error:
        pytest.skip(str(error))


@contextlib.contextmanager
def serve_registry(folder: Path, *, program: str = "", with_password: bool = False) -> Iterator[str]:
    """Give host and port of an OCI registry that keeps its data in `folder`: Debian's, or another `program`."""
    host = f"127.0.0.1:{find_free_port()}"
    folder.mkdir(parents=True)
    auth = ""
    if with_password:
        (folder / "htpasswd").write_text(f"{USER}:{_BCRYPT}\n")
        auth = f"auth: {{htpasswd: {{realm: test, path: {folder}/htpasswd}}}}\n"
    config = folder / "registry.yaml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
        f"http: {{addr: '{host}', relativeurls: true}}\n{auth}"
    )
    # It would look for somebody to send traces to.
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    command = [program or find_server("docker-registry"), "serve", str(config)]
    with _running(command, folder / "log", host, environment):
        yield host


@contextlib.contextmanager
def serve_web_folder(
    folder: Path, *, with_locks: bool = True, lock_seconds: int = 60, with_password: bool = False
) -> Iterator[str]:
    """Give host and port of an nginx whose path /charts is `folder`/www/charts, written by WebDAV.

    It ends a lock that nobody gives back after `lock_seconds`.
    """
    host = f"127.0.0.1:{find_free_port()}"
    (folder / "www" / "charts").mkdir(parents=True)
    (folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
    module = "load_module modules/ngx_http_dav_ext_module.so;" if with_locks else ""
    locks = "dav_ext_methods PROPFIND OPTIONS LOCK UNLOCK; dav_ext_lock zone=locks;" if with_locks else ""
    config = folder / "nginx.conf"
    config.write_text(
        f"{module}\ndaemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        "events { worker_connections 64; }\nhttp {\n"
        f"{f'dav_ext_lock_zone zone=locks:1m timeout={lock_seconds};' if with_locks else ''}\n"
        + "".join(
            f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + f"access_log off; client_max_body_size 64m;\nserver {{ listen {host};\nlocation / {{ root {folder}/www;\n"
        f"dav_methods PUT DELETE MKCOL COPY MOVE; {locks}\n"
        + (f"auth_basic test; auth_basic_user_file {folder}/users;\n" if with_password else "")
        + "} } }\n"
    )
    command = [find_server("nginx"), "-p", "/usr/share/nginx", "-c", str(config), "-e", str(folder / "error.log")]
    with _running(command, folder / "log", host):
        yield host


@contextlib.contextmanager
def serve_museum() -> Iterator[str]:
    """Give host and port of the stand-in for ChartMuseum."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), MuseumHandler)
    server.museum = Museum()  # type: ignore[attr-defined]
    with in_thread(server) as host:
        yield host


@contextlib.contextmanager
def in_thread(server: ThreadingHTTPServer) -> Iterator[str]:
    """Serve in a thread as long as the context lasts; gives host and port."""
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def _running(command: list[str], log: Path, host: str, environment: Mapping[str, str] | None = None) -> Iterator[None]:
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        _wait_for(host, process, log)
        yield
    finally:
        process.terminate()
        process.wait()


def _wait_for(host: str, process: subprocess.Popen[bytes], log: Path) -> None:
    address = host.rpartition(":")
    end = time.monotonic() + _DEADLINE_SECONDS
    while True:
        try:
            socket.create_connection((address[0], int(address[2])), timeout=1).close()
            return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{process.args} does not listen: {log.read_text()}") from error
            time.sleep(0.02)
