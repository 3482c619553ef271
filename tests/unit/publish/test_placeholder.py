"""What an unreachable repository says where its address is the one that init wrote."""

from __future__ import annotations

import pytest

from trainchart.publish.io.http import HttpClient


@pytest.mark.parametrize(
    ("base", "hint"),
    [
        ("https://registry.example.com", "is a placeholder: replace it with your own registry"),
        ("https://r.io", "check the address"),
    ],
)
def test_unreachable_placeholder_is_named(base: str, hint: str) -> None:
    with HttpClient(base) as client:
        assert hint in client._unreachable("read it", "no such host", f"{base}/v2/").hint
