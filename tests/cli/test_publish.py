"""`trainchart publish` as a user meets it: output, exit codes, and what it refuses."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
import yaml

from tests.repositories.chart_servers import serve_registry, serve_web_folder
from tests.repositories.fault_proxy import CUT_BEFORE, Fault, Seen, proxied
from trainchart.archive.identity import build_tar
from trainchart.archive.pack import open_archive
from trainchart.archive.provenance import build_statement

SKIP = "--skip-image-check"
"""The images of these charts are nowhere; test_images.py has some that are."""


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainchart", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def signed(text: str) -> str:
    """Return `text` as gpg would clear-sign it, but for a signature that holds."""
    begin = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n"
    return f"{begin}\n{text}\n-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----\n"


def test_publishing_twice_and_then_something_else(plain_chart: Path, tmp_path: Path) -> None:
    to = ("--to", tmp_path / "repository", "--format", "json", SKIP)
    first = run("publish", plain_chart, *to)
    assert first.returncode == 0, first.stderr
    assert first.stderr.startswith("warning: did not check whether")
    told = json.loads(first.stdout)
    assert (told["name"], told["version"], told["isNew"]) == ("plain", "1.2.3", True)
    index = (tmp_path / "repository" / "index.yaml").read_bytes()
    (entry,) = yaml.safe_load(index)["entries"]["plain"]
    assert f"sha256:{entry['digest']}" == told["digest"]
    assert entry["annotations"]["trainchart/content-sha256"] == told["identity"]
    again = run("publish", plain_chart, *to)
    assert json.loads(again.stdout) == told | {"isNew": False}
    (plain_chart / "values.yaml").write_text((plain_chart / "values.yaml").read_text() + "\n# changed\n")
    refused = run("publish", plain_chart, *to)
    assert refused.returncode == 8
    error = json.loads(refused.stderr.partition("\n")[2])
    assert error["error"] == "VersionConflict"
    assert told["identity"] in error["problems"][0]["message"]
    assert (tmp_path / "repository" / "index.yaml").read_bytes() == index
    assert sorted(path.name for path in (tmp_path / "repository").iterdir()) == ["index.yaml", "plain-1.2.3.tgz"]


def test_another_build_of_a_published_chart_is_named(plain_chart: Path, tmp_path: Path) -> None:
    to = ("--to", tmp_path / "repository", SKIP)
    assert "built differently" not in run("publish", plain_chart, *to, SOURCE_DATE_EPOCH="0").stdout
    again = run("publish", plain_chart, *to, SOURCE_DATE_EPOCH="1")
    there, here = "1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"
    assert again.stdout.splitlines()[1:3] == [
        "  was already published with the same content",
        f"    built differently: trainchart/created is {there} in the published chart, {here} here",
    ]
    told = json.loads(run("publish", plain_chart, *to, "--format=json", SOURCE_DATE_EPOCH="1").stdout)
    assert told["otherBuild"] == {"trainchart/created": {"published": there, "here": here}}


def test_an_archive_goes_as_it_is_with_its_signature(plain_chart: Path, tmp_path: Path) -> None:
    assert run("package", plain_chart, "-d", tmp_path).returncode == 0
    archive = tmp_path / "plain-1.2.3.tgz"
    signature = tmp_path / "plain-1.2.3.tgz.prov"
    signature.write_text(signed(build_statement(open_archive(archive.read_bytes()))))
    with serve_registry(tmp_path / "data") as host:
        to = ("--to", f"oci://{host}/charts", "--plain-http", SKIP)
        done = run("publish", archive, *to)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[:2] == [f"oci://{host}/charts/plain:1.2.3", "  published"]
        again = run("publish", plain_chart, *to, "--format", "json")
        assert (json.loads(again.stdout)["isNew"], json.loads(again.stdout)["isSigned"]) == (False, True)
    published = run("publish", archive, "--to", tmp_path / "repository", SKIP)
    assert published.returncode == 0, published.stderr
    assert (tmp_path / "repository" / archive.name).read_bytes() == archive.read_bytes()
    assert (tmp_path / "repository" / signature.name).read_text() == signature.read_text()
    signature.write_text(signature.read_text().replace("sha256:", "sha256:0"))
    refused = run("publish", archive, "--to", tmp_path / "other", SKIP)
    assert refused.returncode == 7
    assert "plain-1.2.3.tgz.prov signs sha256:0" in refused.stderr
    assert not (tmp_path / "other").exists()


def test_a_signature_that_is_too_large_is_refused(plain_chart: Path, tmp_path: Path) -> None:
    assert run("package", plain_chart, "-d", tmp_path).returncode == 0
    archive = tmp_path / "plain-1.2.3.tgz"
    signature = tmp_path / "plain-1.2.3.tgz.prov"
    text = signed(build_statement(open_archive(archive.read_bytes())))
    signature.write_text(text + " " * 1024 * 1024)
    for command in (("publish", archive, "--to", tmp_path / "other", SKIP), ("verify", archive)):
        refused = run(*command)
        assert refused.returncode == 7
        assert f"{signature} is larger than 1048576 bytes" in refused.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("to", "error"),
    [
        ("https://127.0.0.1:1/charts", "RepositoryUnreachable"),
        ("http://127.0.0.1:1/charts", "PublishError"),
        ("ftp://127.0.0.1/charts", "PublishError"),
    ],
)
def test_a_repository_that_cannot_be_used(plain_chart: Path, to: str, error: str) -> None:
    done = run("publish", plain_chart, "--to", to, "--format", "json")
    assert done.returncode == 8
    told = json.loads(done.stderr)
    assert told["error"] == error
    assert told["hint"]


def test_a_folder_that_cannot_be_made(plain_chart: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("publish", plain_chart, "--to", tmp_path / "file" / "charts", SKIP)
    assert done.returncode == 8
    assert "cannot make" in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_gives_the_lock_back_and_shows_nothing(plain_chart: Path, tmp_path: Path) -> None:
    with serve_web_folder(tmp_path / "web") as host, proxied(host) as proxy:
        is_writing, is_over = Event(), Event()

        def hold(seen: Seen) -> Fault:
            if seen.method != "PUT":
                return None
            is_writing.set()
            is_over.wait(60)
            return CUT_BEFORE

        proxy.restart(hold)
        command = [sys.executable, "-m", "trainchart", "publish", plain_chart, "--to", f"http://{proxy.host}/charts"]
        process = subprocess.Popen([*command, "--plain-http", SKIP], stderr=subprocess.PIPE, text=True)
        assert is_writing.wait(60)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        is_over.set()
        assert process.returncode == 130
        assert "Traceback" not in said
        assert [seen.method for seen in proxy.seen][-2:] == ["PUT", "UNLOCK"]
        assert [path.name for path in (tmp_path / "web/www/charts").iterdir()] == [".trainchart-lock"]


def test_a_chart_that_does_not_render_is_not_published(plain_chart: Path, tmp_path: Path) -> None:
    (plain_chart / "templates" / "x.yaml").write_text("{{ if }}")
    assert run("publish", plain_chart, "--to", tmp_path / "repository").returncode == 5
    assert not (tmp_path / "repository").exists()


def test_nor_is_an_archive_that_helm_cannot_read(tmp_path: Path) -> None:
    """Its entry would keep helm from reading the index, and with it every other chart of the repository."""
    text = b"apiVersion: v2\nname: plain\nversion: 1.2.3\nannotations: [a]\n"
    archive = tmp_path / "plain-1.2.3.tgz"
    archive.write_bytes(gzip.compress(build_tar("plain", {"Chart.yaml": text})))
    refused = run("publish", archive, "--to", tmp_path / "repository", SKIP)
    assert refused.returncode == 7
    assert "plain-1.2.3.tgz: Chart.yaml: annotations is ['a'], which Helm does not read" in refused.stderr
    assert not (tmp_path / "repository").exists()
