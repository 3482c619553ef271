"""Packed subcharts: what is in them is found, however deep, and no more of them than fits."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from trainchart.archive import subcharts
from trainchart.archive.identity import build_tar
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.archive.subcharts import open_packed, require_unambiguous
from trainchart.check.finding import CheckInput
from trainchart.check.rules.archive import check_no_secrets
from trainchart.check.rules.chart_file import check_fields
from trainchart.errors import RenderError, ToolError
from trainchart.helm.io.inputs import require_own_schemas

KEY = b"-----BEGIN RSA PRIVATE KEY-----\n"


def pack(name: str, **files: bytes) -> bytes:
    chart = f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n".encode()
    return pack_chart({"Chart.yaml": chart, **files}, BuildInfo()).data


def test_packed_charts_are_opened_however_deep() -> None:
    inner = pack("inner", id_rsa=KEY)
    files = {"charts/outer.tgz": pack("outer", **{"charts/inner.tgz": inner}), "charts/_x.tgz": inner, "a.tgz": inner}
    files["charts/folder/charts/inner.tgz"] = inner
    deep = inner
    for _ in range(4):
        deep = pack("deep", **{"charts/deep.tgz": deep})
    opened = open_packed({**files, "charts/deep.tgz": deep})
    assert opened["charts/outer/charts/inner/id_rsa"] == KEY
    assert opened["charts/folder/charts/inner/id_rsa"] == KEY
    assert opened[f"{'charts/deep/' * 5}id_rsa"] == KEY
    assert {"charts/_x.tgz", "a.tgz"} <= {*opened}


def test_what_is_no_chart_or_too_much_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_packed({"charts/x.tgz": b"no archive"}) == {"charts/x.tgz": b"no archive"}
    monkeypatch.setattr(subcharts, "_SIZE_LIMIT", 10)
    files = {"charts/x.tgz": pack("x")}
    assert open_packed(files) == files


def test_packed_charts_within_each_other_have_a_limit(tmp_path: Path) -> None:
    """Five levels of six charts are 9,330; of a hundred equal ones, some kilobytes are ten thousand million."""

    def put_together(below: dict[str, bytes]) -> dict[str, bytes]:
        names = [f"a{number}" for number in range(6)]
        charts = {name: {"Chart.yaml": f"name: {name}\n".encode(), **below} for name in names}
        return {f"charts/{name}.tgz": gzip.compress(build_tar(name, each)) for name, each in charts.items()}

    below: dict[str, bytes] = {}
    for _ in range(5):
        below = put_together(below)
    files = {"Chart.yaml": declare(), **below}
    with pytest.raises(ToolError, match="more than 500 packed charts"):
        require_unambiguous(files)
    assert len(open_packed(files)) > 500
    (tmp_path / "charts").mkdir()
    for path, content in files.items():
        (tmp_path / path).write_bytes(content)
    with pytest.raises(RenderError) as caught:
        require_own_schemas(tmp_path)
    assert "more than 500 packed charts" in caught.value.problems[0].message


def test_a_key_in_a_packed_chart_is_named() -> None:
    given = CheckInput(files={"charts/sub-1.0.0.tgz": pack("sub", id_rsa=KEY)})
    (finding,) = check_no_secrets(given)
    assert (finding.path, finding.hint) == ("charts/sub-1.0.0.tgz/id_rsa", "package the subchart again without it")


def declare(*dependencies: str) -> bytes:
    return f"apiVersion: v2\nname: outer\nversion: 1.0.0\ndependencies: [{', '.join(dependencies)}]\n".encode()


def chart(name: str) -> bytes:
    return f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n".encode()


TWICE = {"charts/s1/Chart.yaml": chart("s"), "charts/s2/Chart.yaml": chart("s")}


@pytest.mark.parametrize(
    ("dependencies", "files"),
    [
        ((), TWICE),
        (("{name: s, version: 1.0.0}",), TWICE),
        ((), {"charts/s/Chart.yaml": chart("s"), "charts/s.tgz": pack("s")}),
        ((), {"charts/a.tgz": pack("s"), "charts/b.tgz": pack("s")}),
        ((), {"charts/o/Chart.yaml": chart("o"), **{f"charts/o/{path}": text for path, text in TWICE.items()}}),
        (
            (),
            {"charts/a/Chart.yaml": chart("a"), "charts/a/requirements.yaml": b"name: s\n", "charts/s.tgz": pack("s")},
        ),
        (("{name: a, alias: s}", "{name: s}"), {"charts/a/Chart.yaml": chart("a"), "charts/s.tgz": pack("s")}),
        (("{name: a, alias: s}",), {"charts/a/Chart.yaml": chart("a"), "charts/s.tgz": pack("s")}),
    ],
)
def test_subcharts_of_one_name_are_refused(dependencies: tuple[str, ...], files: dict[str, bytes]) -> None:
    """Helm keeps them in a map of Go, whose order is another each time."""
    outer = {"Chart.yaml": declare(*dependencies), **files}
    with pytest.raises(ToolError, match="two subcharts are called 's'"):
        pack_chart(outer, BuildInfo())
    assert [each.message for each in check_fields(CheckInput(files=outer)) if "at random" in each.message]


def two_charts(first: str, second: str = "name: x") -> dict[str, bytes]:
    texts = {"a": first, "b": second}
    return {
        f"charts/{key}/Chart.yaml": f"apiVersion: v2\nversion: 1.0.0\n{text}\n".encode() for key, text in texts.items()
    }


UNCERTAIN = {
    "a truth value": (two_charts("name: yes", "name: 'true'"), "charts/a/Chart.yaml: the name True is not a string"),
    "a number": (two_charts("name: 1.0", "name: '1'"), "charts/a/Chart.yaml: the name 1.0 is not a string"),
    "another case": (two_charts("Name: x"), "charts/a/Chart.yaml: the key Name is name to Helm"),
    "another letter": (
        two_charts("name: x\ndependencieſ: [{name: y, alias: z}]"),
        r"charts/a/Chart.yaml: the key .dependencie\\u017f. is dependencies to Helm",
    ),
    "an entry": (
        two_charts("name: x\ndependencies: [{name: y, ALIAS: z}]"),
        "charts/a/Chart.yaml: the key ALIAS is alias to Helm",
    ),
    "no name": (two_charts("home: x"), "charts/a/Chart.yaml: the name is missing"),
    "what Helm leaves out": (two_charts(r'name: "x\u200b"'), r"charts/a/Chart.yaml: the name 'x\\u200b' is not"),
    "a lone sign": (two_charts("name: ! x"), "charts/a/Chart.yaml cannot be read: line 3: a lone !"),
    "a list": (two_charts("- name"), "charts/a/Chart.yaml cannot be read"),
    "no UTF-8": (
        {"charts/a/Chart.yaml": b"name: \xff\n", "charts/b/Chart.yaml": chart("b")},
        "charts/a/Chart.yaml cannot be read",
    ),
    "requirements": (
        {"charts/a/Chart.yaml": chart("a"), "charts/a/requirements.yaml": b"NAME: x\n"},
        "charts/a/requirements.yaml: the key NAME is name to Helm",
    ),
    "dependencies twice": (
        {
            "charts/a/Chart.yaml": chart("a") + b"dependencies: [{name: b, alias: x}]\n",
            "charts/a/requirements.yaml": b"dependencies: [{name: b}]\n",
        },
        "charts/a/requirements.yaml: dependencies are in charts/a/Chart.yaml, too",
    ),
    "no archive": ({"charts/a.tgz": b"no archive"}, r"charts/a\.tgz cannot be read: not a gzip archive"),
    "in a packed chart": (
        {"charts/a.tgz": gzip.compress(build_tar("a", {"Chart.yaml": chart("a"), "charts/b.tgz": b"x"}))},
        r"charts/a\.tgz/charts/b\.tgz cannot be read",
    ),
    "too deep": (
        {f"{'charts/a/' * depth}Chart.yaml": chart("a") for depth in range(1, 7)},
        "more than 5 charts are nested in each other",
    ),
}


@pytest.mark.parametrize(("files", "message"), UNCERTAIN.values(), ids=UNCERTAIN)
def test_subcharts_whose_names_are_uncertain_are_refused(files: dict[str, bytes], message: str) -> None:
    """Helm may call them something else, such as another subchart's name."""
    with pytest.raises(ToolError, match=message) as caught:
        require_unambiguous({"Chart.yaml": declare(), **files})
    assert caught.value.hint
    (finding,) = (each for each in check_fields(CheckInput(files={"Chart.yaml": declare(), **files})))
    assert (finding.message, finding.hint) == (caught.value.message, caught.value.hint)


@pytest.mark.parametrize(
    ("dependency", "message"),
    [
        ("{name: yes}", "Chart.yaml: the name True in dependencies is not a string"),
        ("{name: x, alias: 1}", "Chart.yaml: the alias 1 in dependencies is not a string"),
        ('{name: "x\\u200b"}', r"Chart.yaml: the name 'x\\u200b' in dependencies is not"),
    ],
)
def test_dependencies_whose_names_are_uncertain_are_refused(dependency: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        require_unambiguous({"Chart.yaml": declare(dependency)})


def test_packed_subcharts_are_read_without_their_byte_order_mark() -> None:
    """Helm drops the mark from every file, archives included."""
    marked = b"\xef\xbb\xbf" + pack("s", id_rsa=KEY)
    assert open_packed({"charts/a.tgz": marked})["charts/a/id_rsa"] == KEY
    with pytest.raises(ToolError, match="two subcharts are called 's'"):
        require_unambiguous({"Chart.yaml": declare(), "charts/a.tgz": marked, "charts/b.tgz": pack("s")})


def test_usual_subcharts_are_fine() -> None:
    first = "name: x.y_Z\nAppVersion: 1\ndependencies: [&d {name: a, alias: ''}, {<<: {version: 1}, name: b, alias: ~}]"
    nested = {f"{'charts/a/' * depth}Chart.yaml": chart("a") for depth in range(2, 6)}
    other = {"charts/b/requirements.yaml": b"dependencies: [{name: c}]\n", "charts/README.md": b"", "charts/c/x": b""}
    require_unambiguous({"Chart.yaml": declare("{name: x, alias: w}"), **two_charts(first), **nested, **other})


def test_subcharts_of_several_names_are_fine() -> None:
    files = {"charts/s/Chart.yaml": chart("s"), "charts/t.tgz": pack("t"), "charts/_s/Chart.yaml": chart("s")}
    pack_chart({"Chart.yaml": declare("{name: s, alias: a}", "{name: s, alias: b}", "{name: t}"), **files}, BuildInfo())


@pytest.mark.parametrize("name", ["x\\templates\\evil.yaml", "a\nb.yaml", "a\x1b.yaml"])
def test_names_of_files_that_helm_takes_for_others_are_refused(name: str) -> None:
    files = {"Chart.yaml": chart("s"), name: b""}
    with pytest.raises(ToolError, match="unsafe path"):
        pack_chart(files, BuildInfo())
    assert [each.message for each in check_fields(CheckInput(files=files)) if ascii(name) in each.message]


def test_subcharts_are_unpacked_one_at_a_time() -> None:
    """A few kilobytes may unpack to gigabytes."""
    size = 4 * 1024**2
    files = {f"charts/s{number}.tgz": pack(f"s{number}", zeros=bytes(size)) for number in range(8)}
    tracemalloc.start()
    require_unambiguous({"Chart.yaml": declare(), **files})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6 * size


SEVERAL = "values.yaml holds 2 YAML documents: Helm 3 reads only the first, Helm 4 reads all"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (b"a: 1\n---\nb: 2\n", SEVERAL),
        (b"\xef\xbb\xbf---\n---\na: 1\n", SEVERAL),
        (b"a: 1\r\n--- # more\r\nb: 2\r\n", SEVERAL),
        (
            b"%TAG ! tag:x,2000:\n---\na: 1\n",
            "values.yaml begins with the directive '%TAG ! tag:x,2000:': Helm 3 follows",
        ),
        (b"a: 1\n...\nb: 2\n", "values.yaml cannot be read: line 3: did not find expected <document start>"),
        (b"a: 1\n---\nb: [\n", "values.yaml cannot be read: line 4: did not find expected node content"),
    ],
)
def test_values_of_several_documents_are_refused(values: bytes, message: str) -> None:
    mine = {"Chart.yaml": declare(), "values.yaml": values}
    with pytest.raises(ToolError, match=f"^{message}"):
        pack_chart(mine, BuildInfo())
    packed = gzip.compress(build_tar("s", {"Chart.yaml": chart("s"), "values.yaml": values}))
    for path, files in (
        ("charts/s/", {"charts/s/Chart.yaml": chart("s"), "charts/s/values.yaml": values}),
        ("charts/s.tgz/", {"charts/s.tgz": packed}),
    ):
        outer = {"Chart.yaml": declare(), **files}
        with pytest.raises(ToolError, match=f"^{path}{message}"):
            pack_chart(outer, BuildInfo())
        (finding,) = (each for each in check_fields(CheckInput(files=outer)))
        assert finding.message.startswith(path + message)


def test_values_of_one_document_are_fine() -> None:
    for values in (b"---\na: 1\n", b"a: 1\n---\n---\n", b"a: |\n  ---\n", b"a: [\n", b""):
        pack_chart({"Chart.yaml": declare(), "values.yaml": values}, BuildInfo())
