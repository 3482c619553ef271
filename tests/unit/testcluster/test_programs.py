"""Programs are built once, anew when anything they are made of changes, and errors say what Go said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster.testcluster import programs
from tests.cluster.testcluster.programs import BuildFailedError, GoMissingError, find_program
from tests.cluster.testcluster.versions import GO_PROGRAMS

FAKE_GO = """#!/bin/sh
if [ "$1" = env ]; then cat "$FAKE/version"; exit; fi
echo "CGO_ENABLED=$CGO_ENABLED $*" >> "$FAKE/calls"
if [ -e "$FAKE/broken" ]; then seq 100 >&2; echo "undefined: nonsense" >&2; exit 1; fi
for last; do :; done
name=${last%@*}
echo program > "$GOBIN/${name##*/}"
"""


class FakeGo:
    """A Go that notes what it is told and leaves a text file as the program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = folder / "module"
        (self.module / "storage").mkdir(parents=True)
        (self.module / "kubernetes").mkdir()
        (self.module / "go.mod").write_text("require k8s.io/kubernetes v1.36.3\n")
        (self.module / "go.sum").touch()
        (self.module / "storage" / "main.go").write_text("package main\n")
        (folder / "version").write_text("go1.26.8\n")
        (folder / "bin").mkdir()
        (folder / "bin" / "go").write_text(FAKE_GO)
        (folder / "bin" / "go").chmod(0o755)

    @property
    def calls(self) -> list[str]:
        calls = self.folder / "calls"
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path / "fake")
    monkeypatch.setattr(programs, "MODULE", fake.module)
    monkeypatch.setenv("FAKE", str(fake.folder))
    monkeypatch.setenv("PATH", f"{fake.folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return fake


def test_a_published_program_is_built_once_a_version(go: FakeGo, tmp_path: Path) -> None:
    program = find_program("coredns")

    assert find_program("coredns") == program
    assert program == tmp_path / "cache" / "trainchart" / "bin" / f"coredns-{GO_PROGRAMS['coredns'].version}"
    assert program.read_text() == "program\n"
    (call,) = go.calls
    assert call.startswith("CGO_ENABLED=0 install -trimpath ")
    assert call.endswith(f" github.com/coredns/coredns@v{GO_PROGRAMS['coredns'].version}")


def test_both_helms_are_kept_side_by_side(go: FakeGo) -> None:
    assert find_program("helm-3") != find_program("helm-4")
    assert len(go.calls) == 2


def test_a_program_of_ours_is_built_once(go: FakeGo) -> None:
    assert find_program("storage") == find_program("storage")
    assert len(go.calls) == 1


@pytest.mark.parametrize("file", ["module/storage/main.go", "module/storage/sub/new.go", "module/go.sum", "version"])
def test_a_program_of_ours_is_built_anew_when_its_parts_change(go: FakeGo, file: str) -> None:
    before = find_program("storage")
    changed = go.folder / file
    changed.parent.mkdir(exist_ok=True)
    changed.write_text("changed\n")

    assert find_program("storage") != before


@pytest.mark.parametrize("file", ["storage/main_test.go", "kubernetes/main.go"])
def test_tests_and_other_programs_are_no_parts(go: FakeGo, file: str) -> None:
    before = find_program("storage")
    (go.module / file).write_text("package main\n")

    assert find_program("storage") == before


def test_kubernetes_is_told_its_version(go: FakeGo) -> None:
    find_program("kubernetes")

    version = "k8s.io/component-base/version"
    stamps = f"-X {version}.gitVersion=v1.36.3 -X {version}.gitMajor=1 -X {version}.gitMinor=36"
    assert f"-ldflags=-s -w {stamps} ./kubernetes" in go.calls[0]


def test_without_go_a_cached_program_is_found_another_fails(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    kwok = find_program("kwok")
    monkeypatch.setenv("PATH", "")

    assert find_program("kwok") == kwok
    with pytest.raises(GoMissingError, match="coredns is not in the cache"):
        find_program("coredns")


def test_a_failed_build_shows_its_last_lines_and_leaves_nothing(go: FakeGo, tmp_path: Path) -> None:
    (go.folder / "broken").touch()

    with pytest.raises(BuildFailedError, match=r"go install \./storage exited with 1:") as caught:
        find_program("storage")

    assert str(caught.value).endswith("\n100\nundefined: nonsense")
    assert "\n50\n" not in str(caught.value)
    assert [path.name for path in (tmp_path / "cache" / "trainchart" / "bin").iterdir()] == [".storage.lock"]


def test_a_run_that_waited_for_another_takes_its_program(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    program = find_program("kwok")
    program.rename(program.with_suffix(".away"))

    def wait(_: object, operation: int) -> None:
        assert operation == programs.fcntl.LOCK_EX
        program.with_suffix(".away").rename(program)

    monkeypatch.setattr(programs.fcntl, "flock", wait)

    assert find_program("kwok") == program
    assert len(go.calls) == 1


def test_the_command_prints_paths_and_tells_progress(go: FakeGo, capsys: pytest.CaptureFixture[str]) -> None:
    assert programs.main(["kwok", "storage"]) == 0

    out, err = capsys.readouterr()
    assert [Path(line).is_file() for line in out.splitlines()] == [True, True]
    assert [line.split(" ... ")[0] for line in err.splitlines()] == ["kwok", "storage"]


def test_the_command_says_what_failed(go: FakeGo, capsys: pytest.CaptureFixture[str]) -> None:
    (go.folder / "broken").touch()

    assert programs.main(["kwok"]) == 1
    assert "undefined: nonsense" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        programs.main(["kowk"])
    assert caught.value.code == 2
    assert "no such program: kowk" in capsys.readouterr().err
