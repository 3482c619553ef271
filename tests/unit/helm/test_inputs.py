"""What no chart may hold when Helm is called: schemas that it would fetch, and archives that hide some."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.counting_server import count_requests
from trainchart.errors import RenderError, ToolError, UsageError
from trainchart.helm.io.binary import BinaryEngine
from trainchart.helm.io.choose import find_engine
from trainchart.helm.io.inputs import require_chart, require_own_schemas, require_whole_values
from trainchart.helm.io.protocol import HelmEngine
from trainchart.helm.rendering import ValueOverrides
from trainchart.yaml_limits import NODE_LIMIT

BOM = b"\xef\xbb\xbf"


@pytest.fixture
def remote() -> Iterator[tuple[bytes, list[str]]]:
    """Give a schema that refers to a server, and what that server was asked for."""
    with count_requests() as (address, seen):
        yield json.dumps({"type": "object", "allOf": [{"$ref": f"{address}/x.json"}]}).encode(), seen


@pytest.fixture(params=["sdk", "helm-3", "helm-4"])
def engine(request: pytest.FixtureRequest, helm3: Path, helm4: Path) -> HelmEngine:
    programs = {"helm-3": helm3, "helm-4": helm4}
    return BinaryEngine(programs[request.param]) if request.param in programs else find_engine("sdk")


def pack(files: Mapping[str, bytes], *, twice: str = "", is_ended: bool = True) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in (*files, *([twice] if twice else [])):
            entry = tarfile.TarInfo(path)
            entry.size = len(files[path])
            archive.addfile(entry, io.BytesIO(files[path]))
    tar = stream.getvalue()
    if not is_ended:
        tar = tar.rstrip(b"\0")
        tar += bytes(-len(tar) % tarfile.BLOCKSIZE)
    return gzip.compress(tar)


def chart_file(name: str) -> bytes:
    return f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n".encode()


def below(schema: bytes) -> dict[str, bytes]:
    return {"sub/Chart.yaml": chart_file("sub"), "sub/values.schema.json": schema}


def deep(schema: bytes, depth: int) -> bytes:
    packed, name = pack(below(schema)), "sub"
    for level in range(depth - 1):
        files = {f"l{level}/Chart.yaml": chart_file(f"l{level}"), f"l{level}/charts/{name}.tgz": packed}
        packed, name = pack(files), f"l{level}"
    return packed


def place(chart: Path, path: str, content: bytes) -> None:
    (chart / path).parent.mkdir(exist_ok=True)
    (chart / path).write_bytes(content)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("bom", "leads to http"),
        ("trailing", "not valid JSON"),
        ("packed-bom", "leads to http"),
        ("no-end", "truncated"),
        ("twice", "twice"),
        ("deep", "nested in each other"),
    ],
)
def test_helm_fetches_nothing_that_is_hidden(
    plain_chart: Path, remote: tuple[bytes, list[str]], engine: HelmEngine, form: str, words: str
) -> None:
    schema, seen = remote
    path, content = {
        "bom": ("values.schema.json", BOM + schema),
        "trailing": ("values.schema.json", schema + b"}"),
        "packed-bom": ("charts/sub.tgz", BOM + pack(below(schema))),
        "no-end": ("charts/sub.tgz", pack(below(schema), is_ended=False)),
        "twice": ("charts/sub.tgz", pack(below(schema), twice="sub/Chart.yaml")),
        "deep": ("charts/l5.tgz", deep(schema, 7)),
    }[form]
    place(plain_chart, path, content)
    with pytest.raises(RenderError) as refusal:
        engine.render(plain_chart, release="x")
    assert words in str(refusal.value.problems)
    assert seen == []


def test_values_too_large_to_look_into_are_refused(plain_chart: Path, engine: HelmEngine) -> None:
    text = f"a: [{'1,' * NODE_LIMIT}1]\n---\nb: 1\n"
    with pytest.raises(RenderError, match=r"my\.yaml is too large: it holds more than"):
        engine.render(plain_chart, release="x", overrides=ValueOverrides(files=(("my.yaml", text),)))


def test_an_unreadable_chart_is_refused(plain_chart: Path, tmp_path: Path) -> None:
    place(tmp_path, "elsewhere/a", b"")
    (plain_chart / "charts").mkdir()
    (plain_chart / "charts" / "sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RenderError, match="cannot be checked") as refusal:
        require_own_schemas(plain_chart)
    assert "outside " in str(refusal.value.problems)


@pytest.mark.parametrize(
    "path",
    [
        "files/data.tgz",
        "charts/sub/files/data.tgz",
        "charts/_data.tgz",
        "charts/.data.tgz",
        "charts/sub/files/values.schema.json",
    ],
)
def test_files_that_helm_does_not_load_are_data(plain_chart: Path, path: str) -> None:
    (plain_chart / path).parent.mkdir(parents=True, exist_ok=True)
    place(plain_chart, path, b"neither archive nor schema")
    require_own_schemas(plain_chart)


def test_charts_packed_as_deep_as_allowed_are_looked_into(plain_chart: Path) -> None:
    place(plain_chart, "charts/l3.tgz", deep(b'{"type": "object"}', 5))
    require_own_schemas(plain_chart)


@pytest.mark.parametrize(("path", "make"), [("dist/a.tgz", "package charts/NAME"), ("charts/a", "generate NAME")])
def test_missing_chart_hint_gives_a_command_that_works(path: str, make: str) -> None:
    with pytest.raises(ToolError) as caught:
        require_chart(Path(path))
    assert caught.value.hint.endswith(f"create it with trainchart {make}")


@pytest.mark.parametrize("option", ["sets", "set_strings"])
@pytest.mark.parametrize("expression", ["=5", ".a=5", "image..tag=5", "image.=5", "image.tag=a,=5"])
def test_an_empty_key_is_refused_which_helm_would_drop(option: str, expression: str) -> None:
    with pytest.raises(UsageError, match="has an empty key") as caught:
        require_whole_values(ValueOverrides(**{option: (expression,)}))
    assert caught.value.hint == "write KEY=VALUE"


@pytest.mark.parametrize("expression", ["hyperparameters.lr:0.1", "image"])
def test_an_option_without_a_value_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match="gives no value"):
        require_whole_values(ValueOverrides(sets=(expression,)))


@pytest.mark.parametrize(
    "expression", ["", "a=", "a=1,", "a={x,=5}", r"a=x\,=5", r"a\.b=1", "a[0].b=1", "a={x,.y=1},b=2", "a=1.=2"]
)
def test_keys_with_values_are_accepted(expression: str) -> None:
    require_whole_values(ValueOverrides(sets=(expression,), set_strings=(expression,)))


@pytest.mark.timeout(20)
def test_a_pipe_is_no_chart(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "chart.tgz")
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        require_chart(tmp_path / "chart.tgz")
