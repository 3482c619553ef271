"""Image references: which registry is asked for what, and what is no reference."""

from __future__ import annotations

import pytest

from trainchart.errors import PublishError
from trainchart.publish.image_reference import parse_image_reference, with_tag

DIGEST = f"sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    ("text", "base", "path", "tag", "digest"),
    [
        ("busybox", "registry-1.docker.io", "library/busybox", "latest", ""),
        ("ml/mnist:1.0", "registry-1.docker.io", "ml/mnist", "1.0", ""),
        ("index.docker.io/busybox:1", "registry-1.docker.io", "library/busybox", "1", ""),
        ("registry.example.com/mnist:1.4.0", "registry.example.com", "mnist", "1.4.0", ""),
        (f"registry.example.com/ml/mnist@{DIGEST}", "registry.example.com", "ml/mnist", "", DIGEST),
        (f"localhost:5000/ml/mnist:1@{DIGEST}", "localhost:5000", "ml/mnist", "1", DIGEST),
        ("[::1]:5000/ml/mnist:1", "[::1]:5000", "ml/mnist", "1", ""),
    ],
)
def test_a_reference_says_whom_to_ask_for_what(text: str, base: str, path: str, tag: str, digest: str) -> None:
    image = parse_image_reference(text)
    assert (image.base, image.path, image.tag, image.digest, image.text) == (base, path, tag, digest, text)


@pytest.mark.parametrize(
    "text", ["", "ML/mnist:1", "mnist:", "a.example/mnist@sha256:ab", "a.example/é:1", "a.example//b", "a b", "x/y:1\n"]
)
def test_what_no_registry_can_hold(text: str) -> None:
    with pytest.raises(PublishError, match="is not a valid image reference"):
        parse_image_reference(text)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("localhost:5000", True), ("127.1.2.3", True), ("[::1]:80", True), ("localhost.example.com", False)],
)
def test_registries_of_this_machine(host: str, is_here: bool) -> None:
    assert parse_image_reference(f"{host}/mnist:1").is_on_this_machine is is_here


def test_a_digest_that_its_tag_must_stand_for() -> None:
    image = with_tag(parse_image_reference(f"a.example/mnist@{DIGEST}"), "1.0")
    assert image == parse_image_reference(f"a.example/mnist:1.0@{DIGEST}")
