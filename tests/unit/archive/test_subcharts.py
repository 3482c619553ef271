"""Packed subcharts: what is in them is found, however deep, and no more of them than fits."""

from __future__ import annotations

import tracemalloc

import pytest

from trainchart.archive import subcharts
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.archive.subcharts import find_repeated_subchart, open_packed
from trainchart.check.finding import CheckInput
from trainchart.check.rules.archive import check_no_secrets
from trainchart.check.rules.chart_file import check_fields
from trainchart.errors import ToolError

KEY = b"-----BEGIN RSA PRIVATE KEY-----\n"


def pack(name: str, **files: bytes) -> bytes:
    chart = f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n".encode()
    return pack_chart({"Chart.yaml": chart, **files}, BuildInfo()).data


def test_packed_charts_are_opened_however_deep() -> None:
    inner = pack("inner", id_rsa=KEY)
    files = {"charts/outer.tgz": pack("outer", **{"charts/inner.tgz": inner}), "charts/_x.tgz": inner, "a.tgz": inner}
    opened = open_packed(files)
    assert opened["charts/outer/charts/inner/id_rsa"] == KEY
    assert {"charts/_x.tgz", "a.tgz"} <= {*opened}


def test_what_is_no_chart_or_too_much_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_packed({"charts/x.tgz": b"no archive"}) == {"charts/x.tgz": b"no archive"}
    monkeypatch.setattr(subcharts, "_SIZE_LIMIT", 10)
    files = {"charts/x.tgz": pack("x")}
    assert open_packed(files) == files


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
    assert find_repeated_subchart({"Chart.yaml": declare(), **files}) == ""
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6 * size
