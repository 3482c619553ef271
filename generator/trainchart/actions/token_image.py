"""What a published chart's users should know of the image that runs with the only token of a release."""

from __future__ import annotations

from trainchart.check.rules.training import find_token_images
from trainchart.rendering import Rendering


def list_token_images(rendering: Rendering) -> tuple[str, ...]:
    """Return a text for each run controller whose image the training's author, or the owner of a tag, can replace."""
    return tuple(f"{message}; {hint}" for _, message, hint in find_token_images(rendering))
