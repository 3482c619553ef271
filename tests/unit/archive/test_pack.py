"""Packing: the same bytes every time, the same identity on every way there is, comments kept."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import helm_python
import pytest

from trainchart.archive.chart_file import parse_chart_file, stamp_chart_file
from trainchart.archive.identity import compute_identity
from trainchart.archive.lock import Lock, Source
from trainchart.archive.pack import BuildInfo, ChartArchive, pack_chart
from trainchart.archive.read import parse_archive
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import parse_mapping

CHART = b"# why this chart exists\napiVersion: v2\nname: mnist\nversion: 1.4.0-rc.1+build.5  # semver\n"
FILES = {
    "Chart.yaml": CHART,
    "values.yaml": b"a: 1\n",
    "templates/a.yaml": b"a: {{ .Values.a }}\n",
    ".helmignore": b"trainchart.lock.yaml\nci/\n",
    "ci/x-values.yaml": b"a: 2\n",
    "trainchart.lock.yaml": b"format: 1\n",
}
BUILD = BuildInfo(git_commit="0" * 40, is_dirty=True, created_epoch=1767225600)


def annotations(archive: ChartArchive) -> dict[str, str]:
    return parse_chart_file(parse_archive(archive.data).files).annotations


def test_an_archive_holds_the_chart_and_says_where_it_comes_from() -> None:
    archive = pack_chart(FILES, BUILD)
    assert archive.filename == "mnist-1.4.0-rc.1+build.5.tgz"
    unpacked = parse_archive(archive.data)
    assert unpacked.folder == "mnist"
    assert set(unpacked.files) == {".helmignore", "Chart.yaml", "templates/a.yaml", "values.yaml"} == set(archive.paths)
    assert annotations(archive) == {
        "trainchart/content-sha256": archive.identity,
        "trainchart/git-commit": "0" * 40 + "-dirty",
        "trainchart/created": "2026-01-01T00:00:00Z",
    }
    assert unpacked.files["Chart.yaml"].startswith(b"# why this chart exists\n")
    assert b"# semver" in unpacked.files["Chart.yaml"]


def test_an_archive_says_what_it_was_made_from() -> None:
    packs = (Source("acme", "a" * 64), Source("vision", "b" * 64))
    lock = Lock("0.1.0", Source("models/mnist.yaml", "1" * 64), Source("training-job", "2" * 64), packs, {})
    image = f"registry.example.com/ml/mnist:1.4.0@sha256:{'3' * 64}"
    archive = pack_chart(FILES, BuildInfo(lock=lock, images=(image,)))
    assert annotations(archive) == {
        "trainchart/content-sha256": compute_identity(FILES),
        "trainchart/generator": "0.1.0",
        "trainchart/spec-sha256": "1" * 64,
        "trainchart/templates-sha256": "2" * 64,
        "trainchart/packs-sha256": f"acme={'a' * 64} vision={'b' * 64}",
        "trainchart/images": image,
    }


def test_same_content_gives_same_bytes_in_any_order() -> None:
    backwards = dict(reversed(FILES.items()))
    assert pack_chart(backwards, BUILD).data == pack_chart(FILES, BUILD).data


def test_entries_have_neither_time_nor_owner() -> None:
    with tarfile.open(fileobj=io.BytesIO(pack_chart(FILES, BUILD).data)) as tar:
        entries = tar.getmembers()
    assert {(e.mtime, e.uid, e.gid, e.uname, e.gname, e.mode) for e in entries} == {(0, 0, 0, "", "", 0o644)}
    assert [e.name for e in entries] == sorted(e.name for e in entries)


def test_identity_is_about_content_alone() -> None:
    archive = pack_chart(FILES, BUILD)
    assert archive.identity == compute_identity(FILES)
    assert pack_chart(FILES, BuildInfo()).identity == archive.identity
    assert annotations(pack_chart(FILES, BuildInfo())) == {"trainchart/content-sha256": archive.identity}
    without_ignored = {path: content for path, content in FILES.items() if not path.startswith(("ci/", "trainchart"))}
    assert compute_identity(without_ignored) == archive.identity
    commented = FILES | {"Chart.yaml": CHART + b"# another comment\n"}
    assert compute_identity(commented) == archive.identity
    for changed in (
        FILES | {"values.yaml": b"a: 2\n"},
        FILES | {"templates/b.yaml": b""},
        FILES | {"Chart.yaml": CHART.replace(b"rc.1", b"rc.2")},
        FILES | {"Chart.yaml": CHART + b"annotations: {team: vision}\n"},
    ):
        assert compute_identity(changed) != archive.identity


def test_repacking_what_was_unpacked_changes_nothing() -> None:
    archive = pack_chart(FILES, BUILD)
    again = pack_chart(parse_archive(archive.data).files, BUILD)
    assert replace(again, data=b"") == replace(archive, data=b"")
    assert again.data == archive.data


def test_identity_survives_other_compression_and_helm_package(tmp_path: Path) -> None:
    archive = pack_chart(FILES, BUILD)
    for level in (1, 6):
        other = gzip.compress(gzip.decompress(archive.data), compresslevel=level)
        assert other != archive.data
        assert compute_identity(parse_archive(other).files) == archive.identity
    path = tmp_path / archive.filename
    path.write_bytes(archive.data)
    helm_python.expand(tmp_path / "unpacked", path)
    packed_by_helm = Path(helm_python.package(tmp_path / "unpacked" / "mnist", destination=tmp_path / "out"))
    assert compute_identity(parse_archive(packed_by_helm.read_bytes()).files) == archive.identity


@pytest.mark.parametrize(
    ("tail", "expected_text"),
    [
        ("", 'annotations:\n  trainchart/content-sha256: "new"\n'),
        (
            "annotations:\n    team: vision  # ours\n",
            'annotations:\n    trainchart/content-sha256: "new"\n    team: vision  # ours\n',
        ),
        (
            "annotations:  # notes\n  # first\n  team: vision\n",
            '  trainchart/content-sha256: "new"\n  # first\n  team: vision\n',
        ),
        (
            "annotations:\n  trainchart/content-sha256: old\n  trainchart/created: old\n",
            'annotations:\n  trainchart/content-sha256: "new"\n',
        ),
        ("annotations: {team: vision}\n", "team: vision\n"),
        ("annotations: {}\n", "trainchart/content-sha256: new\n"),
    ],
)
def test_stamping_keeps_the_authors_text(tail: str, expected_text: str) -> None:
    chart = parse_chart_file({"Chart.yaml": CHART + tail.encode()})
    stamped = stamp_chart_file(chart, {"trainchart/content-sha256": "new"})
    assert stamped.endswith(expected_text)
    found = parse_mapping(stamped)["annotations"]
    assert found == {"trainchart/content-sha256": "new"} | ({"team": "vision"} if "team" in tail else {})


@pytest.mark.parametrize(
    ("chart", "message"),
    [
        (b"name: [\n", "cannot be read"),
        (b"\xff\n", "cannot be read"),
        (b"apiVersion: v3\nname: a\nversion: 1.0.0\n", "the apiVersion is .v3., which not every Helm reads"),
        (b"name: ../evil\nversion: 1.0.0\n", "is not a chart name"),
        (b"name: " + b"a" * 64 + b"\nversion: 1.0.0\n", "is not a chart name"),
        (b"name: mnist\nversion: 1.0\n", "is not a SemVer 2 version"),
        (b"name: mnist\nversion: 1.0.0/..\n", "is not a SemVer 2 version"),
        (b"name: mnist\nversion: 1.0.0-" + b"a" * 123 + b"\n", "has 129 characters"),
        (b"name: mnist\n", "None is not a SemVer"),
    ],
)
def test_a_chart_file_that_cannot_name_an_archive_is_refused(chart: bytes, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        pack_chart({"Chart.yaml": chart}, BUILD)
    with pytest.raises(ToolError, match=r"no Chart\.yaml"):
        pack_chart({}, BUILD)


@pytest.mark.parametrize(
    "added",
    [
        "verſion: 9.9.9",
        "Version: 9.9.9",
        "Type: library",
        "maintainers: [{Name: a}]",
        "dependencies: [{name: a, Repository: b}]",
        "<<: {version: 6.6.6}",
        "<<: {home: a}",
        # As keys of an index, where the chart is and which digest its archive has.
        "urlſ: [http://127.0.0.1/evil.tgz]",
        "digeſt: abc",
        "Removed: true",
    ],
)
def test_keys_that_helm_takes_for_others_are_refused(added: str) -> None:
    chart = "apiVersion: v2\nname: mnist\nversion: 1.0.0\nannotations: {Version: a}\n"
    assert parse_chart_file({"Chart.yaml": chart.encode()}).version == "1.0.0"
    with pytest.raises(ToolError, match=r"Chart\.yaml"):
        parse_chart_file({"Chart.yaml": f"{chart}{added}\n".encode()})


@pytest.mark.parametrize(
    "text",
    ["version: 9.9.9", "Name: other", "annotations: {}", "<<: {version: 9.9.9}", "a: [", "dependencies: [{NAME: a}]"],
)
def test_requirements_that_override_the_chart_file_are_refused(text: str) -> None:
    with pytest.raises(ToolError, match=r"requirements\.yaml"):
        pack_chart(FILES | {"requirements.yaml": text.encode()}, BUILD)


def test_helm_prefers_what_requirements_say(tmp_path: Path) -> None:
    """This is why they are refused."""
    for path, content in (FILES | {"requirements.yaml": b"version: 9.9.9\n"}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    packed_by_helm = helm_python.package(tmp_path, destination=tmp_path / "out")
    assert Path(packed_by_helm).name == "mnist-9.9.9.tgz"
    assert pack_chart(FILES | {"requirements.yaml": b"dependencies: []\n"}, BUILD).filename.endswith("build.5.tgz")


@pytest.mark.parametrize("own", ["text", "[a: b]", "3", "true"])
def test_annotations_of_another_kind_are_refused(own: str) -> None:
    chart = parse_chart_file({"Chart.yaml": f"name: a\nversion: 1.0.0\nannotations: {own}\n".encode()})
    with pytest.raises(ToolError, match=r"Chart.yaml: annotations is "):
        stamp_chart_file(chart, {"trainchart/content-sha256": "new"})


@pytest.mark.parametrize("own", ["", "null", "~", "{}"])
def test_empty_annotations_are_filled(own: str) -> None:
    chart = parse_chart_file({"Chart.yaml": f"name: a\nversion: 1.0.0\nannotations: {own}\n".encode()})
    stamped = stamp_chart_file(chart, {"trainchart/content-sha256": "new"})
    assert parse_mapping(stamped)["annotations"] == {"trainchart/content-sha256": "new"}
