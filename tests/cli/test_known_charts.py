"""A chart that nothing would change is not made again, and whatever could change it is noticed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trainchart.actions.support.chart_folder as chart_folder
from trainchart.actions.generate import generate_charts
from trainchart.actions.support.known_charts import GeneratedChart
from trainchart.errors import SpecError, TrainchartError
from trainchart.host import result_cache

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: tiny
description: A tiny model.
image: {repository: registry.example.com/tiny, tag: "1.0"}
code: {path: code, command: [python, train.py]}
strategy: between-graph-async
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "models" / "tiny.yaml").write_text(SPEC)
    (project / "code" / "part").mkdir(parents=True)
    (project / "code" / "train.py").write_text("import tensorflow as tf\nprint('trained')\n")
    monkeypatch.chdir(project)
    return project


def generate(*, overwrite: bool = False, use_cache: bool = True) -> GeneratedChart:
    (chart,) = generate_charts((Path("models/tiny.yaml"),), Path("charts"), overwrite=overwrite, use_cache=use_cache)
    return chart


def never_again(*_: object, **__: object) -> list[GeneratedChart]:
    raise AssertionError("the chart was made again")


def test_an_unchanged_chart_is_not_made_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = generate()
    monkeypatch.setattr(chart_folder, "write_charts", never_again)
    again = generate()
    assert first.is_new and first.notes
    assert (again.name, again.version, again.chart, again.code) == ("tiny", "0.1.0", first.chart, first.code)
    assert (again.notes, again.gives_image_the_token) == (first.notes, first.gives_image_the_token)
    assert not again.is_new and not again.changed
    with pytest.raises(AssertionError, match="made again"):
        generate(use_cache=False)


@pytest.mark.parametrize("use_cache", [True, False])
def test_what_a_killed_generate_left_is_removed(project: Path, use_cache: bool) -> None:
    generate()
    (project / "charts" / ".tiny.trainchart-old").mkdir()
    assert generate(use_cache=use_cache).changed == ()
    assert [path.name for path in (project / "charts").iterdir()] == ["tiny"]


def test_waivers_of_the_authors_are_no_change(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate()
    (project / "charts" / "tiny" / chart_folder.WAIVER_FILE).write_text("[]\n")
    monkeypatch.setattr(chart_folder, "write_charts", never_again)
    assert not generate().changed


def write(path: str, text: str) -> Callable[[Path], object]:
    return lambda project: (project / path).write_text(text)


def _rewrite_in_secret(path: Path) -> None:
    before = path.stat()
    path.write_text("import tensorflow as tg\n" + path.read_text().partition("\n")[2])
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "another description": write("models/tiny.yaml", SPEC.replace("tiny model", "small model")),
    "a mistake in the spec": write("models/tiny.yaml", SPEC.replace("strategy:", "strategie:")),
    "the spec is gone": lambda project: (project / "models" / "tiny.yaml").unlink(),
    "another program": write("code/train.py", "print('trained')\n"),
    "another program of the same size and date": lambda project: _rewrite_in_secret(project / "code" / "train.py"),
    "the program is gone": lambda project: (project / "code" / "train.py").unlink(),
    "a module beside it": write("code/tensorflow.py", "x = 1\n"),
    "a module below it": write("code/part/data.py", "x = 1\n"),
    "the code is a link": lambda project: (
        (project / "code").rename(project.parent / "elsewhere"),
        (project / "code").symlink_to(project.parent / "elsewhere"),
    ),
    "a link in the code": lambda project: (project / "code" / "x.py").symlink_to("train.py"),
    "a file edited by hand": write("charts/tiny/values.yaml", "x: 1\n"),
    "a file added by hand": write("charts/tiny/templates/more.yaml", "x: 1\n"),
    "a file is gone": lambda project: (project / "charts" / "tiny" / "values.yaml").unlink(),
    "the lock is gone": lambda project: (project / "charts" / "tiny" / "trainchart.lock.yaml").unlink(),
    "the chart is elsewhere": lambda project: (project / "charts").rename(project / "before"),
    "the chart is a link": lambda project: (
        (project / "charts" / "tiny").rename(project.parent / "moved"),
        (project / "charts" / "tiny").symlink_to(project.parent / "moved"),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_gives_what_it_gives_without_a_cache(project: Path, change: Callable[[Path], object]) -> None:
    def outcome(*, use_cache: bool) -> object:
        try:
            chart = generate(use_cache=use_cache)
        except TrainchartError as error:
            return str(error), error.problems
        files = {path: path.read_bytes() for path in chart.chart.rglob("*") if path.is_file()}
        return chart.notes, chart.version, files

    generate()
    change(project)
    known = outcome(use_cache=True)
    assert outcome(use_cache=False) == known
    assert outcome(use_cache=True) == known


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b'{"inputs": 1}', b"[" * 100_000])
def test_a_damaged_cache_is_no_cache(project: Path, damage: bytes) -> None:
    generate()
    (entry,) = (project.parent / "cache" / "trainchart" / "results" / "charts").iterdir()
    entry.write_bytes(damage)
    assert not generate().changed
    assert entry.read_bytes() != damage


def test_a_cache_that_cannot_be_written_is_no_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.parent / "cache").write_text("in the way\n")
    assert generate().is_new
    assert not generate().changed


def test_a_spec_that_is_saved_meanwhile_is_generated_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    render = chart_folder.render_spec

    def save_and_render(model: Any) -> Any:
        (project / "models" / "tiny.yaml").write_text(SPEC.replace("A tiny", "A saved"))
        return render(model)

    monkeypatch.setattr(chart_folder, "render_spec", save_and_render)
    generate()
    monkeypatch.setattr(chart_folder, "render_spec", render)
    assert "Chart.yaml" in generate().changed


def test_code_that_changes_meanwhile_is_looked_at_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    render = chart_folder.render_spec

    def change_and_render(model: Any) -> Any:
        (project / "code" / "train.py").write_text("print('trained')\n")
        return render(model)

    monkeypatch.setattr(chart_folder, "render_spec", change_and_render)
    generate()
    monkeypatch.setattr(chart_folder, "write_charts", never_again)
    with pytest.raises(AssertionError, match="made again"):
        generate()


def test_two_specs_of_one_chart_are_refused(project: Path) -> None:
    (project / "models" / "other.yaml").write_text(SPEC.replace("A tiny", "Another"))
    generate()
    specs = (Path("models/tiny.yaml"), Path("models/other.yaml"))
    for chosen in (specs, specs[::-1]):
        with pytest.raises(SpecError) as refusal:
            generate_charts(chosen, Path("charts"), overwrite=False)
        assert "both give the chart tiny" in refusal.value.problems[0].message


@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_result_that_others_may_write_is_not_believed(
    project: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    generate()
    (entry,) = (project.parent / "cache" / "trainchart" / "results" / "charts").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600
    entry.chmod(mode)
    monkeypatch.setattr(chart_folder, "write_charts", never_again)
    with pytest.raises(AssertionError, match="made again"):
        generate()


def test_a_user_without_a_home_needs_no_cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert generate().is_new
    assert not generate().changed
    assert not (project / "~").exists()


def test_another_trainchart_makes_the_chart_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate()
    monkeypatch.setattr(chart_folder, "write_charts", never_again)
    monkeypatch.setattr(result_cache, "_hash_program", lambda: "another")
    with pytest.raises(AssertionError, match="made again"):
        generate()


def test_the_program_is_the_same_however_it_was_started(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate()
    monkeypatch.setattr("sys.path", [str(project), *sys.path])
    result_cache._hash_program.cache_clear()
    monkeypatch.setattr(chart_folder, "write_charts", never_again)
    assert not generate().changed
    result_cache._hash_program.cache_clear()


def test_the_program_is_known_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("1")
    monkeypatch.setattr(result_cache, "list_code_folders", lambda: (package,))
    seen = []
    for change in (lambda: None, lambda: (package / "a.py").write_text("22"), (package / "b.py").touch):
        change()
        result_cache._hash_program.cache_clear()
        seen.append(result_cache._hash_program())
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "a.pyc").touch()
    result_cache._hash_program.cache_clear()
    assert len(set(seen)) == 3 and result_cache._hash_program() == seen[-1]
    result_cache._hash_program.cache_clear()


def test_old_results_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cache, "_KEPT", 4)
    cache = result_cache.ResultCache("some", GeneratedChart, {"XDG_CACHE_HOME": str(tmp_path)})
    chart = GeneratedChart("tiny", "1.0.0", Path("charts/tiny"), Path("code"), (), ())
    for number in range(5):
        cache.remember(f"subject {number}", "inputs", chart)
        for path in (tmp_path / "trainchart" / "results" / "some").iterdir():
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    assert cache.recall("subject 0") is None
    assert cache.recall("subject 4") == ("inputs", chart)


def test_a_result_that_is_too_large_to_be_read_is_not_kept(tmp_path: Path) -> None:
    cache = result_cache.ResultCache("some", GeneratedChart, {"XDG_CACHE_HOME": str(tmp_path)})
    cache.remember("subject", "inputs", GeneratedChart("x" * 5_000_000, "1.0.0", Path("c"), Path("code"), (), ()))
    assert not list(tmp_path.rglob("*.json"))


def test_an_unlisted_installation_remembers_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cache, "_hash_program", lambda: "")
    generate()
    assert not (project.parent / "cache").exists()
