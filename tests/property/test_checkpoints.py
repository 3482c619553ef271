"""Folders of checkpoints that anyone may have filled: every command ends in order, and removes nothing else.

Markers are changed at random, indexes cut and overwritten; sums in the index make most changes harmless to try.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from trainchart.checkpoints.bundle import BundleError, parse_bundle
from trainchart.checkpoints.crc32c import extend
from trainchart.cli.app import app
from trainchart.errors import TrainchartError

FIXTURE = Path(__file__).parents[1] / "fixtures" / "checkpoints"
INDEX = (FIXTURE / "ckpt-20.index").read_bytes()
NAMES = sorted(path.name for path in FIXTURE.iterdir())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["step", "files", "variables", "format", "model", "loss", "20"]), inner)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(["step", "ending", "files", "variables", "format", "model", "release", "attempt", "20", "40"])
CONTENT = st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())
FILE_NAMES = st.sampled_from(NAMES) | st.from_regex(r"ckpt-[0-9٣]{1,30}[._][a-z0-9.-]{0,12}", fullmatch=True)


def change_json(content: bytes, key: str, value: Any) -> bytes:
    return json.dumps({**json.loads(content), key: value}).encode()


@given(
    files=st.dictionaries(FILE_NAMES, CONTENT, max_size=4),
    markers=st.lists(st.tuples(st.sampled_from([n for n in NAMES if n.endswith(".json")]), KEYS, JSON), max_size=3),
    keep=st.integers(1, 3),
)
def test_every_command_ends_in_order(files: dict[str, bytes], markers: list[tuple[str, str, Any]], keep: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "ck")
        shutil.copytree(FIXTURE, folder)
        for name, key, value in markers:
            (folder / name).write_bytes(change_json((folder / name).read_bytes(), key, value))
        for name, content in files.items():
            (folder / name).write_bytes(content)
        (folder / "mine.txt").write_text("not a checkpoint")
        listed = run("list", str(folder), "--format", "json")
        for step in {each["step"] for each in listed["checkpoints"]}:
            run("show", str(folder), str(step), "--format", "json")
        verified = run("verify", str(folder), "--format", "json")
        for step in {verified["restart"], listed["latest"]} - {None}:
            start = Path(place, f"start-{step}")
            exported = run("export", str(folder), str(step), str(start), "--format", "json")
            assert start.exists() == bool(exported)
            assert exported or step != verified["restart"]
        pruned = run("prune", str(folder), "--keep", str(keep), "--yes", "--format", "json")
        assert run("verify", str(folder), "--format", "json")["restart"] == verified["restart"]
        assert len(pruned["kept"]) <= keep and (folder / "mine.txt").exists() and (folder / "origin.json").exists()


def run(*arguments: str) -> Any:
    """Return what a command prints as JSON, nothing where it refuses; any other end is a failure."""
    done = CliRunner().invoke(app, ["checkpoints", *arguments])
    if done.exception is not None and not isinstance(done.exception, (TrainchartError, SystemExit)):
        raise done.exception
    return json.loads(done.stdout) if done.stdout else {}


@given(content=st.binary(max_size=300) | st.builds(bytes.__add__, st.binary(max_size=200), st.just(INDEX[-48:])))
def test_any_bytes_are_an_index_or_refused(content: bytes) -> None:
    try:
        parse_bundle(content)
    except BundleError:
        return
    raise AssertionError("random bytes do not have their own sum in them")


@given(st.binary(max_size=20_000), st.integers(0, 20_000))
def test_a_sum_does_not_depend_on_cuts(data: bytes, place: int) -> None:
    assert extend(extend(0, data[:place]), data[place:]) == extend(0, data)
