"""The registry that `trainchart init` writes into a spec where none is named: an address that does not exist. Pure."""

from __future__ import annotations

REGISTRY = "registry.example.com"
_HINT = (
    f"{REGISTRY} is a placeholder: replace it with your own registry (in image.repository of the model spec, "
    "repository of trainchart.yaml, --to or --from)"
)


def placeholder_hint(text: str) -> str:
    """Return what to do where `text` is about the placeholder; empty for other addresses."""
    return _HINT if REGISTRY in text else ""
