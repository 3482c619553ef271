"""What a registry sends is what its manifest says."""

from __future__ import annotations

import pytest

from trainchart.errors import PublishError
from trainchart.publish.io.http import Answer
from trainchart.publish.io.registry import Registry
from trainchart.publish.repository import sha256_digest

BLOB = b"a chart"


class Sender:
    """A client of a registry that answers everything with BLOB."""

    base = "http://127.0.0.1:5000"

    def ask(self, *_: object, **__: object) -> Answer:
        return Answer(200, {}, BLOB)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    sender = Registry(Sender())  # type: ignore[arg-type]
    monkeypatch.setattr(sender, "ask", Sender().ask)
    return sender


def test_a_blob_of_another_size_is_refused(registry: Registry) -> None:
    digest = sha256_digest(BLOB)
    assert registry.read_blob("charts/a", digest) == BLOB
    assert registry.read_blob("charts/a", digest, len(BLOB)) == BLOB
    for size in (0, 1, 8):
        with pytest.raises(PublishError, match=f"it has 7 bytes, and its manifest says {size}"):
            registry.read_blob("charts/a", digest, size)


def test_a_blob_of_another_digest_is_refused(registry: Registry) -> None:
    with pytest.raises(PublishError, match="the registry sends sha256:"):
        registry.read_blob("charts/a", sha256_digest(b"another"))
