"""OCI layouts, registry storage and the cache's folders, written to disk without running any program."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest

from tests.cluster.testcluster.images import layout, oci
from tests.cluster.testcluster.images.cache import ImageCache, open_cache
from tests.cluster.testcluster.images.containerd_root import (
    DATABASES,
    copy_containerd_root,
    link_held_blobs,
    read_held_blobs,
)
from tests.cluster.testcluster.images.registry_storage import blob_data, copy_registry_storage, write_registry_storage

PAUSE = "registry.trainchart.test/cluster/pause:1"
DNS = "registry.trainchart.test/cluster/coredns:1"
BLOBS = "io.containerd.content.v1.content/blobs/sha256"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Return a layout of two images of one program each."""
    folder = tmp_path / "layout"
    for reference, name in ((PAUSE, "pause"), (DNS, "coredns")):
        program = tmp_path / f"{name}-1.2.3"
        program.write_bytes(b"\x7fELF " + name.encode())
        layer = tmp_path / "layer.tar"
        layout.write_program_layer(program, name, layer)
        layout.write_image(folder, reference, layer, (f"/{name}",), "65535:65535")
    return folder


def test_a_layout_keeps_its_images_and_every_blob_has_its_digest(images: Path) -> None:
    stored = {image.reference: image for image in layout.read_layout(images)}

    assert list(stored) == [PAUSE, DNS]
    for blob in (images / "blobs" / "sha256").iterdir():
        assert layout.file_digest(blob) == blob.name
    assert {blob for image in stored.values() for blob in image.blobs} == {
        blob.name for blob in (images / "blobs" / "sha256").iterdir()
    }


def test_an_image_runs_its_program_as_a_user_without_rights(images: Path) -> None:
    manifest, config, layer = layout.read_layout(images)[0].blobs

    document = json.loads(layout.blob_path(images, config).read_text())
    assert document["config"]["Entrypoint"] == ["/pause"]
    assert document["config"]["User"] == "65535:65535"
    assert document["rootfs"]["diff_ids"] == [f"sha256:{layer}"]
    assert len(document["history"]) == 1
    assert json.loads(layout.blob_path(images, manifest).read_text())["layers"][0]["digest"] == f"sha256:{layer}"
    with tarfile.open(layout.blob_path(images, layer)) as archive:
        assert [(member.name, member.mode) for member in archive] == [("pause", 0o755)]


def test_the_same_program_makes_the_same_layer(tmp_path: Path) -> None:
    digests = []
    for name in ("first", "second"):
        program = tmp_path / name
        program.write_bytes(b"same")
        os.utime(program, (len(digests), len(digests)))
        layout.write_program_layer(program, "pause", tmp_path / "layer.tar")
        digests.append(layout.file_digest(tmp_path / "layer.tar"))

    assert digests[0] == digests[1]


def test_an_archive_leaves_out_what_containerd_holds(images: Path, tmp_path: Path) -> None:
    pause, dns = layout.read_layout(images)

    layout.write_archive(images, frozenset(pause.blobs), tmp_path / "archive.tar")

    with tarfile.open(tmp_path / "archive.tar") as archive:
        assert set(archive.getnames()) == {"oci-layout", "index.json", *(f"blobs/sha256/{blob}" for blob in dns.blobs)}
        index = archive.extractfile("index.json")
        assert index is not None
        names = [entry["annotations"][oci.CONTAINERD_NAME_ANNOTATION] for entry in json.load(index)["manifests"]]
    assert names == [PAUSE, DNS]


def test_a_registry_serves_an_image_under_several_tags(images: Path, tmp_path: Path) -> None:
    pause, _ = layout.read_layout(images)
    names = (("cluster/pause:1", pause), ("cluster/pause:registry-only", pause))

    write_registry_storage(tmp_path / "registry", images, names)

    for blob in pause.blobs:
        assert (tmp_path / "registry" / blob_data(blob)).samefile(layout.blob_path(images, blob))
    repository = tmp_path / "registry/docker/registry/v2/repositories/cluster/pause"
    for tag in ("1", "registry-only"):
        link = repository / "_manifests" / "tags" / tag / "current" / "link"
        assert link.read_text() == f"sha256:{pause.manifest.digest}"
    assert {path.name for path in (repository / "_layers" / "sha256").iterdir()} == set(pause.blobs[1:])


def test_moving_a_tag_in_a_copied_registry_leaves_its_source(images: Path, tmp_path: Path) -> None:
    pause, _ = layout.read_layout(images)
    write_registry_storage(tmp_path / "registry", images, (("cluster/pause:1", pause),))
    link = "docker/registry/v2/repositories/cluster/pause/_manifests/tags/1/current/link"

    copy_registry_storage(tmp_path / "registry", tmp_path / "copy")
    with (tmp_path / "copy" / link).open("r+") as file:
        file.write("sha256:other")

    assert (tmp_path / "registry" / link).read_text() == f"sha256:{pause.manifest.digest}"
    assert (tmp_path / "copy" / blob_data(pause.blobs[0])).samefile(layout.blob_path(images, pause.blobs[0]))


def test_a_copied_containerd_root_shares_all_but_the_databases(tmp_path: Path) -> None:
    root, copy = tmp_path / "root", tmp_path / "copy"
    for name in (*DATABASES, f"{BLOBS}/abc", "io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/etc/passwd"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("content")

    copy_containerd_root(root, copy)

    files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()} == files
    assert {name for name in files if not (copy / name).samefile(root / name)} == set(DATABASES)


def test_blobs_of_containerd_become_links(images: Path, tmp_path: Path) -> None:
    digest = layout.read_layout(images)[0].blobs[0]
    (tmp_path / BLOBS).mkdir(parents=True)
    for name in (digest, "unknown"):
        (tmp_path / BLOBS / name).write_text("content")

    link_held_blobs(tmp_path, images / "blobs" / "sha256")

    assert read_held_blobs(tmp_path) == {digest, "unknown"}
    assert (tmp_path / BLOBS / digest).samefile(layout.blob_path(images, digest))


def test_a_result_is_built_once(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path / "images")
    filled = []

    def fill(folder: Path) -> None:
        filled.append(folder)
        (folder / "file").write_text("content")

    with cache.lock():
        first, second = cache.build("base", "key", fill), cache.build("base", "key", fill)

    assert first == second == cache.find("base", "key")
    assert len(filled) == 1
    assert (first / "file").read_text() == "content"


def test_failed_build_leaves_nothing_and_killed_one_is_removed(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    (tmp_path / ".new-killed").mkdir()
    (tmp_path / ".new-killed" / "half").write_text("")

    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError("disk full")

    with cache.lock(), pytest.raises(OSError, match="disk full"):
        cache.build("base", "key", fail)

    assert cache.find("base", "key") is None
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_old_results_go_and_those_in_use_stay(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    with cache.lock():
        for number, key in enumerate(("a", "b", "c")):
            os.utime(cache.build("set", key, lambda folder: None), (number, number))
        cache.build("base", "a", lambda folder: None)
        cache.find("set", "a")
        cache.build("set", "d", lambda folder: None)

    assert {path.name for path in tmp_path.iterdir()} == {".lock", "base-a", "set-a", "set-c", "set-d"}


def test_results_that_belong_together_go_together(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    with cache.lock():
        for key in ("a", "b"):
            cache.build("tensorflow", key, lambda folder: None)
        assert not cache.remove_full("tensorflow")
        cache.build("tensorflow", "c", lambda folder: None)
        assert cache.remove_full("tensorflow")

    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_the_cache_is_the_users() -> None:
    assert open_cache({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/ada"}).folder == Path("/xdg/trainchart/images")
    assert open_cache({"HOME": "/home/ada"}).folder == Path("/home/ada/.cache/trainchart/images")
