from __future__ import annotations

import pytest

from trainchart.errors import UsageError
from trainchart.images.choices import parse_platform


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("linux/amd64", "linux/amd64"),
        (" Linux/x86_64", "linux/amd64"),
        ("linux/aarch64", "linux/arm64"),
        ("linux/arm64/v8", "linux/arm64"),
        ("linux/armv7l", "linux/arm/v7"),
        ("linux/arm/v7", "linux/arm/v7"),
        ("linux/s390x", "linux/s390x"),
    ],
)
def test_a_platform_has_one_name(text: str, name: str) -> None:
    assert parse_platform(text) == name


@pytest.mark.parametrize("text", ["", " ", "arm64", "windows/amd64", "linux/amd64,linux/arm64", "linux/", "linux/a b"])
def test_what_no_image_can_be_for_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid image platform"):
        parse_platform(text)
