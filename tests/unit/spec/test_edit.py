"""A value changed in a spec's text: that value, and not one character more."""

from __future__ import annotations

import pytest

from trainchart.errors import SpecError
from trainchart.spec.edit import set_texts, set_version

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: x\nversion: 0.1.0  # why\nkind: Model\n", "name: x\nversion: 1.2.3  # why\nkind: Model\n"),
        ("version: '0.1.0'\n", 'version: "1.2.3"\n'),
        ("name: x  # ours\nkind: Model\n", "name: x  # ours\nversion: 1.2.3\nkind: Model\n"),
        ("kind: Model\nname: x", "kind: Model\nname: x\nversion: 1.2.3"),
        ("{kind: Model, name: x, roles: {}}\n", "{kind: Model, name: x, version: 1.2.3, roles: {}}\n"),
    ],
)
def test_a_version_is_set_in_its_place(text: str, expected: str) -> None:
    assert set_version(text, "1.2.3", file="m.yaml") == expected
    assert set_version(expected, "1.2.3", file="m.yaml") == expected


@pytest.mark.parametrize("text", ["kind: Model\n", "name: x\nversion: {a: b}\n", "- name\n", "["])
def test_a_version_without_a_place_is_left_to_the_author(text: str) -> None:
    with pytest.raises(SpecError, match=r"version cannot be changed in m\.yaml"):
        set_version(text, "1.2.3", file="m.yaml")
