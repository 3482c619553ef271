"""The only pod with a token should run an image that the training's authors cannot replace: rule token-image."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainchart.check.finding import Case, CheckInput, Severity
from trainchart.check.rules.training import check_token_image, list_token_images
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides

MNIST = Path(__file__).parents[3] / "charts" / "mnist"
RUNTIME = "registry.example.com/ml/trainchart-runtime"


def render(*sets: str) -> Rendering:
    return find_engine("sdk").render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (("run.controller.image=",), ["runs the training image: its builders get the token"]),
        (("run.controller.image=registry.example.com/ml/mnist:1.0.0",), ["runs the training image"]),
        ((f"run.controller.image={RUNTIME}:1.0.0",), [f"runs {RUNTIME}:1.0.0, a tag that its registry can move"]),
        ((f"run.controller.image={RUNTIME}@sha256:{'a' * 64}",), []),
        (("run.controller.enabled=false",), []),
    ],
)
def test_image_of_the_run_controller_is_named(sets: tuple[str, ...], says: list[str]) -> None:
    rendering = render(*sets)
    found = list(check_token_image(CheckInput({}, (Case("", rendering),))))
    assert [finding.severity for finding in found] == [Severity.info] * len(says)
    assert all(words in finding.message for words, finding in zip(says, found, strict=True))
    assert all(words in warning for words, warning in zip(says, list_token_images(rendering), strict=True))


def test_values_of_others_are_theirs() -> None:
    assert not list(check_token_image(CheckInput({}, (Case("ci/some-values.yaml", render()),))))
