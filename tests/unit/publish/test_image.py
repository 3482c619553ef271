"""What is read of an image in a registry that sends something else than it was asked for, or no image at all."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from trainchart.errors import PublishError
from trainchart.publish.image_reference import ImageReference, parse_image_reference
from trainchart.publish.io.http import Answer, HttpClient
from trainchart.publish.io.image import PublishedImage, find_image, read_image, read_image_file
from trainchart.publish.io.registry import Registry
from trainchart.publish.repository import sha256_digest

HOST = "registry.example.com"


class Store:
    """Answers as a registry whose repository `ml/net` holds whatever a test puts there."""

    base = f"https://{HOST}"
    credentials = None

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        """By the end of an address, such as manifests/1.0."""

    def send(self, method: str, url: str, **rest: Any) -> Answer:
        assert method == "GET", rest
        found = self.content.get(url.removeprefix(f"{self.base}/v2/ml/net/"))
        if url == f"{self.base}/v2/":
            found = b"{}"
        return Answer(404, {}, b"") if found is None else Answer(200, {}, found)

    def is_own(self, url: str) -> bool:
        return url.startswith(self.base)

    def add_blob(self, content: bytes, size: Any = None) -> dict[str, Any]:
        digest = sha256_digest(content)
        self.content[f"blobs/{digest}"] = content
        return {"digest": digest, "size": len(content) if size is None else size}

    def add_manifest(self, document: Any, *tags: str) -> str:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        for name in (sha256_digest(body), *tags):
            self.content[f"manifests/{name}"] = body
        return sha256_digest(body)

    def add_image(self, *tags: str, **config: Any) -> str:
        described = self.add_blob(json.dumps({"os": "linux", "architecture": "amd64", "config": config}).encode())
        return self.add_manifest({"config": described, "layers": []}, *tags)

    @property
    def registry(self) -> Registry:
        return Registry(cast(HttpClient, self))

    def read(self, reference: str) -> PublishedImage | None:
        return read_image(self.registry, named(reference))


def named(reference: str) -> ImageReference:
    return parse_image_reference(f"{HOST}/ml/net{reference}")


def test_image_is_read_by_tag_and_by_digest() -> None:
    store = Store()
    digest = store.add_image("1.0", Labels={"a": "b"})
    for reference in (":1.0", f"@{digest}"):
        found = store.read(reference)
        assert found is not None
        assert (found.digest, found.platforms, found.labels) == (digest, ("linux/amd64",), {"a": "b"})


def test_another_image_under_a_digest_is_refused() -> None:
    store = Store()
    asked, other = store.add_image(Labels={"is": "asked"}), store.add_image(Labels={"is": "other"})
    store.content[f"manifests/{asked}"] = store.content[f"manifests/{other}"]
    image = named(f"@{asked}")
    for read in (
        lambda: read_image(store.registry, image),
        lambda: read_image_file(store.registry, image, "sbom.json"),
        lambda: find_image(store.registry, image),
    ):
        with pytest.raises(PublishError, match=f"registry sends {other}") as refusal:
            read()
        assert asked in refusal.value.message


@pytest.mark.parametrize("read", [read_image, lambda *given: read_image_file(*given, "sbom.json")])
def test_another_image_in_place_of_a_listed_one_is_refused(read: Any) -> None:
    store = Store()
    listed, other = store.add_image(Labels={"is": "listed"}), store.add_image("latest", Labels={"is": "other"})
    platform = {"os": "linux", "architecture": "amd64"}
    index = store.add_manifest({"manifests": [{"digest": listed, "platform": platform}]}, "1.0")
    read(store.registry, named(f"@{index}"))
    store.content[f"manifests/{listed}"] = store.content[f"manifests/{other}"]
    with pytest.raises(PublishError, match=f"registry sends {other}"):
        read(store.registry, named(":1.0"))
    index = store.add_manifest({"manifests": [{"digest": "latest", "platform": platform}]})
    with pytest.raises(PublishError, match="not a sha256 digest"):
        read(store.registry, named(f"@{index}"))


_AMD64 = {"os": "linux", "architecture": "amd64"}


@pytest.mark.parametrize("labels", ["text", 5, [1], {"a": 1}])
def test_labels_of_another_type_are_refused(labels: Any) -> None:
    store = Store()
    store.add_image("1.0", Labels=labels)
    with pytest.raises(PublishError, match="is not an image: "):
        store.read(":1.0")


@pytest.mark.parametrize("size", ["1e999", "-1", '"many"', "null", "1.5", "true"])
def test_layer_with_an_impossible_size_is_refused(size: str) -> None:
    store = Store()
    layer = store.add_blob(b"layer", size="SIZE")
    manifest = {"config": store.add_blob(b"{}"), "layers": [layer]}
    store.add_manifest(json.dumps(manifest).replace('"SIZE"', size).encode(), "1.0")
    with pytest.raises(PublishError, match="is not an image: the size"):
        store.read(":1.0")
    with pytest.raises(PublishError, match="is not an image: the size"):
        read_image_file(store.registry, named(":1.0"), "sbom.json")


def test_a_manifest_with_a_size_that_is_no_json_is_refused() -> None:
    store = Store()
    manifest = {"config": store.add_blob(b"{}"), "layers": [store.add_blob(b"layer", size="SIZE")]}
    store.add_manifest(json.dumps(manifest).replace('"SIZE"', "NaN").encode(), "1.0")
    with pytest.raises(PublishError, match="is not an image: its manifest is not JSON"):
        store.read(":1.0")


@pytest.mark.parametrize(
    "document",
    [
        {"manifests": 5},
        {"manifests": [1, 2]},
        {"manifests": [{"platform": "linux", "digest": f"sha256:{'0' * 64}"}]},
        {"manifests": [{"platform": _AMD64}]},
        {"layers": 5},
        {"layers": [1]},
        {"layers": [{"size": 1}]},
        {"layers": [{"size": 1, "digest": 5}], "config": {"size": 1, "digest": 5}},
        {"config": "text", "layers": []},
        [],
        5,
    ],
    ids=str,
)
def test_manifest_of_another_shape_is_refused(document: Any) -> None:
    store = Store()
    store.add_manifest(document, "1.0")
    with pytest.raises(PublishError, match=r"is not an image: |whose images do not exist"):
        store.read(":1.0")
    if document != {"config": "text", "layers": []}:  # its layers are fine
        with pytest.raises(PublishError, match=r"is not an image: |whose images do not exist"):
            read_image_file(store.registry, named(":1.0"), "sbom.json")


def test_layer_of_another_size_than_stated_is_refused() -> None:
    store = Store()
    store.add_manifest({"config": store.add_blob(b"{}"), "layers": [store.add_blob(b"layer", size=4)]}, "1.0")
    with pytest.raises(PublishError, match="a layer has 5 bytes, and its manifest states 4"):
        read_image_file(store.registry, named(":1.0"), "sbom.json")
