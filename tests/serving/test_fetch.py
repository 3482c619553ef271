"""Taking an export for serving: the copy is whole and pinned, or there is none."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from trainchart_serving import content
from trainchart_serving.content import SUMS_FILE, dump_sums, hash_content, read_sums
from trainchart_serving.fetch import main


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "export"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "variables.index").write_bytes(b"index")
    (folder / SUMS_FILE).write_text(dump_sums(read_sums(folder)))
    return folder


def pin(export: Path) -> str:
    return hash_content(read_sums(export))


def test_the_pin_is_what_sha256sum_prints_of_the_list(export: Path) -> None:
    printed = subprocess.run(["sha256sum", SUMS_FILE], cwd=export, check=True, capture_output=True, text=True).stdout
    assert pin(export) == f"sha256:{printed.split()[0]}"


def test_an_export_is_copied_whole_and_once(export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, content = tmp_path / "models" / "digits" / "200", pin(export)
    assert main([str(export), str(target), content]) == 0
    assert content in capsys.readouterr().out
    assert read_sums(target) == read_sums(export)
    (export / "saved_model.pb").write_bytes(b"another")
    # A container that is started again finds what it has taken, whatever the training has done since.
    assert main([str(export), str(target), content]) == 0
    assert (target / "saved_model.pb").read_bytes() == b"graph"


def test_an_export_that_has_changed_is_refused(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, content = tmp_path / "models" / "digits" / "200", pin(export)
    (export / "saved_model.pb").write_bytes(b"another")
    (export / SUMS_FILE).write_text(dump_sums(read_sums(export)))
    assert main([str(export), str(target), content]) == 1
    error = capsys.readouterr().err
    assert f"but {content} is pinned" in error
    assert not target.exists()


def test_damage_is_named_by_file(export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, content = tmp_path / "models" / "digits" / "200", pin(export)
    (export / "variables" / "variables.index").write_bytes(b"")
    assert main([str(export), str(target), content]) == 1
    assert "changed: variables/variables.index" in capsys.readouterr().err
    assert not target.exists()


def test_links_that_repeat_folders_end(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_MOST_FILES", 100)
    expected = pin(export)
    for name in ("a", "b"):
        (export / name).symlink_to(".")
    assert main([str(export), str(tmp_path / "1"), expected]) == 1
    assert "more than 100 files and folders, or links that repeat them" in capsys.readouterr().err
    assert not (tmp_path / "1").exists()


def test_an_export_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none"), str(tmp_path / "models" / "1"), "sha256:" + "0" * 64]) == 1
    assert "cannot fetch the export" in capsys.readouterr().err
    assert main([]) == 2


@pytest.fixture
def web(export: Path) -> Iterator[str]:
    """The address of a web server with the folder of the export's folder."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(export.parent))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/export"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_export_comes_from_a_web_server(
    export: Path, web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (export / "variables" / "a ä%20?#.data").write_bytes(b"odd name")
    (export / SUMS_FILE).write_text(dump_sums(read_sums(export)))
    target = tmp_path / "models" / "digits" / "200"
    assert main([f"{web}/?signature=secret", str(target), pin(export)]) == 0
    assert read_sums(target) == read_sums(export)
    assert "secret" not in capsys.readouterr().out


def test_another_list_is_refused_before_its_files_are_read(
    export: Path, web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, pinned = tmp_path / "models" / "digits" / "200", "sha256:" + "0" * 64
    assert main([web, str(target), pinned]) == 1
    assert f"the content hash is {pin(export)}, but {pinned} is pinned" in capsys.readouterr().err
    assert not list((tmp_path / "models").rglob("saved_model.pb"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("saved_model.pb", "the files differ from SHA256SUMS: changed: saved_model.pb"),
        ("variables/variables.index", "changed: variables/variables.index"),
    ],
)
def test_damage_on_a_web_server_is_named_by_file(
    export: Path, web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    content = pin(export)
    (export / name).write_bytes(b"another")
    assert main([web, str(tmp_path / "models" / "1"), content]) == 1
    assert words in capsys.readouterr().err
    (export / name).unlink()
    assert main([web, str(tmp_path / "models" / "1"), content]) == 1
    assert f"{name}: the web server answers 404" in capsys.readouterr().err
    assert not (tmp_path / "models" / "1").exists()


@pytest.mark.parametrize("name", ["../outside", "/outside", "variables/../../outside"])
def test_a_list_with_files_elsewhere_is_refused(
    export: Path, web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    sums = {name: "0" * 64}
    (export / SUMS_FILE).write_text(dump_sums(sums))
    assert main([web, str(tmp_path / "models" / "1"), hash_content(sums)]) == 1
    assert "names a file outside the export" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/export", "http://[::1", "https://", "http://a b/c"])
def test_an_address_without_an_export_is_said(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([address, str(tmp_path / "models" / "1"), "sha256:" + "0" * 64]) == 1
    assert "cannot fetch the export" in capsys.readouterr().err


@pytest.mark.tensorflow
def test_a_uri_is_read_through_tensorflow(export: Path, tmp_path: Path) -> None:
    target, content = tmp_path / "models" / "digits" / "200", pin(export)
    program = [sys.executable, "-m", "trainchart_serving.fetch"]
    subprocess.run([*program, f"file://{export}", target, content], check=True, capture_output=True)
    assert read_sums(target) == read_sums(export)
