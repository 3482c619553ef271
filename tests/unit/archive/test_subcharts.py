"""Packed subcharts: what is in them is found, however deep, and no more of them than fits."""

from __future__ import annotations

import pytest

from trainchart.archive import subcharts
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.archive.subcharts import open_packed
from trainchart.check.finding import CheckInput
from trainchart.check.rules.archive import check_no_secrets

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
