"""What lies in a folder beside its index: what a cut has left is replaced, what somebody may have got is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.repositories.chart_archives import chart_files, upload
from trainchart.actions.diff import fetch_files, nothing_published
from trainchart.archive.chart_keys import CHART_KEYS
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.errors import PublishError, VersionConflict
from trainchart.host.folder_store import FolderStore
from trainchart.publish.index_folder import IndexRepository
from trainchart.publish.repository import prepare_upload, publish_upload

ARCHIVE = "demo-1.0.0.tgz"


@pytest.fixture
def repository(tmp_path: Path) -> IndexRepository:
    return IndexRepository(FolderStore(str(tmp_path), tmp_path))


@pytest.mark.parametrize(
    ("made", "created"),
    [
        ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00Z"),
        *((odd, "2026-05-01T10:00:00Z") for odd in ("not a date", "2026-1-1T0:0:0Z", "2026-02-30T00:00:00Z", "1")),
    ],
)
def test_a_time_that_helm_cannot_read_stays_out_of_the_index(
    repository: IndexRepository, tmp_path: Path, made: str, created: str
) -> None:
    files = chart_files("1.0.0")
    archive = pack_chart(files, BuildInfo(created_epoch=0)).data
    mine = prepare_upload(archive, created="2026-05-01T10:00:00Z")
    mine = replace(mine, chart={**mine.chart, "annotations": {"trainchart/created": made}})
    publish_upload(repository, mine)
    (entry,) = yaml.load((tmp_path / "index.yaml").read_text(), yaml.BaseLoader)["entries"]["demo"]
    assert entry["created"] == created


@pytest.mark.parametrize("left", ["the same", "half", "nonsense"])
def test_what_a_cut_has_left_is_completed(repository: IndexRepository, tmp_path: Path, left: str) -> None:
    mine = upload("1.0.0")
    data = mine.archive.data
    (tmp_path / ARCHIVE).write_bytes({"the same": data, "half": data[: len(data) // 2], "nonsense": b"?"}[left])
    assert publish_upload(repository, mine).is_new
    assert (tmp_path / ARCHIVE).read_bytes() == data


def test_an_archive_that_no_index_names_is_not_replaced(repository: IndexRepository, tmp_path: Path) -> None:
    mine, other = upload("1.0.0", "mine"), upload("1.0.0", "other")
    (tmp_path / ARCHIVE).write_bytes(other.archive.data)
    with pytest.raises(VersionConflict, match="its index does not list it") as caught:
        publish_upload(repository, mine)
    assert other.archive.identity in str(caught.value.problems[0])
    assert (tmp_path / ARCHIVE).read_bytes() == other.archive.data
    assert not (tmp_path / "index.yaml").exists()


def test_keys_of_an_index_in_a_chart_file_stay_out_of_the_index(tmp_path: Path, repository: IndexRepository) -> None:
    files = chart_files("1.0.0")
    files["Chart.yaml"] += b"urls: [evil.tgz]\ndigest: abc\nremoved: true\nurl: evil\nchecksum: abc\nmood: good\n"
    mine = prepare_upload(pack_chart(files, BuildInfo(created_epoch=0)).data, created="2026-05-01T10:00:00Z")
    assert publish_upload(repository, mine).is_new
    (entry,) = yaml.safe_load((tmp_path / "index.yaml").read_text())["entries"]["demo"]
    assert set(entry) <= {*CHART_KEYS, "created", "digest", "urls"}
    assert entry["urls"] == [ARCHIVE]
    assert entry["digest"] != "abc"


@pytest.mark.parametrize(
    ("urls", "message"),
    [
        ([], "does not say where demo 1.0.0 is"),
        *(([odd], "does not say where demo 1.0.0 is") for odd in (None, True, 1e3)),
        (["gone.tgz"], "names gone.tgz, which does not exist"),
        (["../demo-1.0.0.tgz"], "is outside the folder"),
        (["%2E%2e/demo-1.0.0.tgz"], "Helm may fetch a different file"),
        (["a%FF.tgz"], "Helm may fetch a different file"),
        (["demo-1.0.0.tgz#other"], "Helm may fetch a different file"),
        (["https://elsewhere.example/demo-1.0.0.tgz"], "is outside the folder"),
    ],
)
def test_an_index_that_leads_nowhere(
    repository: IndexRepository, tmp_path: Path, urls: list[object], message: str
) -> None:
    publish_upload(repository, upload("1.0.0"))
    index = yaml.safe_load((tmp_path / "index.yaml").read_text())
    index["entries"]["demo"][0]["urls"] = urls
    (tmp_path / "index.yaml").write_text(yaml.safe_dump(index))
    with pytest.raises(PublishError, match=message):
        repository.fetch("demo", "1.0.0")


def test_a_deleted_index_is_named_with_its_cure(repository: IndexRepository, tmp_path: Path) -> None:
    """A new one would lose every version that is published."""
    for version in ("1.0.0", "1.1.0"):
        publish_upload(repository, upload(version))
    (tmp_path / "index.yaml").unlink()
    for ask in (
        lambda: repository.find_versions("demo"),
        lambda: publish_upload(repository, upload("1.2.0")),
        lambda: publish_upload(repository, upload("1.1.0")),
    ):
        with pytest.raises(
            PublishError, match=r"has no index.yaml, so clients cannot find demo-1\.[01]\.0\.tgz"
        ) as caught:
            ask()
        assert caught.value.hint.endswith(f"helm repo index {tmp_path}")
    assert sorted(path.name for path in tmp_path.glob("*.*")) == [ARCHIVE, "demo-1.1.0.tgz"]


def test_an_address_without_an_index_is_called_that(repository: IndexRepository) -> None:
    error = nothing_published(repository, "demo")
    assert error.message.endswith("has no index.yaml, so it lists no version of demo")
    assert "restore the index if it was deleted" in error.hint


def test_an_archive_that_was_changed_is_noticed(repository: IndexRepository, tmp_path: Path) -> None:
    publish_upload(repository, upload("1.0.0"))
    (tmp_path / ARCHIVE).write_bytes(upload("1.0.0", "other").archive.data)
    with pytest.raises(PublishError, match="is damaged: listed as sha256:"):
        repository.fetch("demo", "1.0.0")


@pytest.mark.parametrize(
    ("index", "message"), [(b"", "is empty"), (b" \n", "is empty"), (b"\x1f\x8b\x08\x00", "is not UTF-8 text")]
)
def test_an_index_that_is_damaged_is_no_new_one(
    repository: IndexRepository, tmp_path: Path, index: bytes, message: str
) -> None:
    publish_upload(repository, upload("1.0.0"))
    (tmp_path / "index.yaml").write_bytes(index)
    for ask in (lambda: repository.find_versions("demo"), lambda: publish_upload(repository, upload("1.1.0"))):
        with pytest.raises(PublishError, match=message) as caught:
            ask()
        assert caught.value.hint
    assert (tmp_path / "index.yaml").read_bytes() == index
    assert not (tmp_path / "demo-1.1.0.tgz").exists()


def test_an_entry_that_leads_to_another_version(repository: IndexRepository, tmp_path: Path) -> None:
    publish_upload(repository, upload("1.0.0"))
    index = yaml.safe_load((tmp_path / "index.yaml").read_text())
    (entry,) = index["entries"]["demo"]
    index["entries"]["demo"].insert(0, entry | {"version": "1.1.0"})
    (tmp_path / "index.yaml").write_text(yaml.safe_dump(index))
    assert fetch_files(repository, "demo", "1.0.0")["Chart.yaml"]
    with pytest.raises(PublishError, match=r"demo-1\.1\.0\.tgz holds demo 1\.0\.0"):
        fetch_files(repository, "demo", "1.1.0")
