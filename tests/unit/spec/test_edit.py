"""A value changed in a spec's text: that value, and not one character more."""

from __future__ import annotations

import pytest

from trainchart.errors import SpecError
from trainchart.spec.edit import set_texts

VALUES = {"tag": "in-3f9c", "digest": "sha256:ab"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '# a\nimage: {repository: r/x, tag: "1.4.0"}  # c\ncode: {path: .}\n',
            '# a\nimage: {repository: r/x, tag: "in-3f9c", digest: "sha256:ab"}  # c\ncode: {path: .}\n',
        ),
        (
            "image:\n  repository: r/x # here\n  tag: '1.4.0'   # why\n  pullPolicy: Always\n# end\n",
            'image:\n  repository: r/x # here\n  tag: "in-3f9c"   # why\n  digest: "sha256:ab"\n'
            "  pullPolicy: Always\n# end\n",
        ),
        (
            "image:\n    tag: 20261121\n    digest:   ''  # none yet\n    repository: r\n",
            'image:\n    tag: "in-3f9c"\n    digest:   "sha256:ab"  # none yet\n    repository: r\n',
        ),
        (
            'name: ünïcode\nimage:\n  repository: r/x\n  tag: "1"',
            'name: ünïcode\nimage:\n  repository: r/x\n  tag: "in-3f9c"\n  digest: "sha256:ab"',
        ),
        ("image:\n  repository: r\n", 'image:\n  tag: "in-3f9c"\n  digest: "sha256:ab"\n  repository: r\n'),
    ],
)
def test_only_the_values_change(text: str, expected: str) -> None:
    assert set_texts(text, "image", VALUES, file="m.yaml") == expected


@pytest.mark.parametrize("text", ["name: x\n", "image: text\n", "image: {}\n", "- image\n"])
def test_what_cannot_be_changed_in_place_is_left_to_the_author(text: str) -> None:
    with pytest.raises(SpecError, match=r"image cannot be changed in m\.yaml") as refusal:
        set_texts(text, "image", VALUES, file="m.yaml")
    assert 'tag: "in-3f9c", digest: "sha256:ab"' in refusal.value.hint


def test_setting_twice_is_setting_once() -> None:
    once = set_texts("image: {repository: r, tag: x}\n", "image", VALUES, file="m.yaml")
    assert set_texts(once, "image", VALUES, file="m.yaml") == once
