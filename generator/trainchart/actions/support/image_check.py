"""Look whether the images that a chart names are in their registries: chart and image are one release."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.actions.support.repository_access import ImageAccess, open_image_registry
from trainchart.archive.chart_file import CHART_FILE, IMAGES_ANNOTATION
from trainchart.check.objects import find_images, mapping_at
from trainchart.check.sources import VALUES_FILE
from trainchart.errors import ImageConflict, ImageNotFound, Problem, PublishError
from trainchart.helm.rendering import Rendering
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart.publish.image_reference import ImageReference, parse_image_reference, with_tag
from trainchart.publish.io.image import ImageState, find_image

_MESSAGES = {ImageState.absent: "is not there", ImageState.other: "points to {digest}"}
_SKIP_HINT = "push the image first; to publish anyway, pass --skip-image-check"
_IMAGES_LIMIT = 100


@dataclass(frozen=True)
class ImageAnswer:
    """What is known of an image; nothing where `error` says why."""

    image: str
    state: ImageState | None
    digest: str = ""
    error: PublishError | None = None

    @property
    def pinned(self) -> str:
        """The image by tag and digest."""
        return f"{self.image.partition('@')[0]}@{self.digest}"

    @property
    def is_wrong(self) -> bool:
        """Whether the registry has said that the image is not as the chart says."""
        return self.state not in (None, ImageState.there)

    @property
    def problem(self) -> Problem | None:
        """What is wrong; None where the image is there as the chart says."""
        if self.state is ImageState.there:
            return None
        if self.error is not None:
            return Problem(self.error.message, where=self.image, hint=self.error.hint)
        assert self.state is not None
        return Problem(_MESSAGES[self.state].format(digest=self.digest), where=self.image)


def ask_for_images(files: Mapping[str, bytes], rendering: Rendering, access: ImageAccess) -> tuple[ImageAnswer, ...]:
    """Ask for all images that a chart's manifests name, rendered with its own values for an upgrade and an install.

    Raises PublishError where they are more than any chart needs: each may be in a registry that keeps us waiting.
    """
    references = list(itertools.islice(_references(files, rendering), _IMAGES_LIMIT + 1))
    if len(references) > _IMAGES_LIMIT:
        raise PublishError(
            f"the chart names more than {_IMAGES_LIMIT} images, which is more than registries are asked for",
            hint="publish with --skip-image-check, or verify without --images",
        )
    return tuple(_ask(image, access, is_digest_used) for image, is_digest_used in references)


def require_images(files: Mapping[str, bytes], rendering: Rendering, access: ImageAccess) -> tuple[str, ...]:
    """Return the images of a chart by tag and digest; refuse one that is not there, or of which nothing can be known.

    Raises ImageNotFound, ImageConflict, or another PublishError of the kind that fits, with a problem for every image.
    """
    answers = ask_for_images(files, rendering, access)
    problems = tuple(answer.problem for answer in answers if answer.problem)
    states = {answer.state for answer in answers}
    if ImageState.absent in states:
        raise ImageNotFound("an image of the chart is not in its registry", hint=_SKIP_HINT, problems=problems)
    if ImageState.other in states:
        hint = "write the digest that the tag points to, or another tag, into the model spec"
        raise ImageConflict(
            "an image's tag points to a different digest from the chart's", hint=hint, problems=problems
        )
    require_known(answers, "log in, or run it again; to publish without knowing, pass --skip-image-check")
    return tuple(answer.pinned for answer in answers)


def require_known(answers: tuple[ImageAnswer, ...], hint: str) -> None:
    """Raise an error of the first kind that kept anything from being known of an image."""
    errors = [answer.error for answer in answers if answer.error is not None]
    if errors:
        raise type(errors[0])(
            "the registries could not be queried for the chart's images",
            hint=hint,
            problems=tuple(answer.problem for answer in answers if answer.problem),
        )


def _references(files: Mapping[str, bytes], rendering: Rendering) -> Iterator[tuple[ImageReference, bool]]:
    """Yield the images, those that manifests name by tag or digest alone with what values or the release say beside.

    With each comes whether pods name its digest: else they get whatever the tag stands for.
    """
    released = _released_images(files)
    values = mapping_at(_read_mapping(files, VALUES_FILE), "image")
    pinned, tag = f"{values.get('repository')}@{values.get('digest')}", str(values.get("tag") or "")
    for text in find_images(rendering):
        image = parse_image_reference(text)
        if text == pinned and tag:
            image = with_tag(image, tag)
        yield (image, True) if image.digest else (released.get(image.text, image), False)


def _released_images(files: Mapping[str, bytes]) -> dict[str, ImageReference]:
    """Return the images that a release has written into Chart.yaml, by what manifests call them."""
    listed = str(mapping_at(_read_mapping(files, CHART_FILE), "annotations").get(IMAGES_ANNOTATION) or "").split()
    return {text.partition("@")[0]: parse_image_reference(text) for text in listed}


def _read_mapping(files: Mapping[str, bytes], name: str) -> Mapping[str, Any]:
    try:
        return parse_mapping(files.get(name, b"").decode("utf-8-sig"))
    except (UnicodeDecodeError, YamlError):
        # Of a chart made elsewhere, that Helm reads nevertheless: there is no image of ours in it.
        return {}


def _ask(image: ImageReference, access: ImageAccess, is_digest_used: bool) -> ImageAnswer:
    try:
        with open_image_registry(image, access) as registry:
            state, digest = find_image(registry, image, may_be_listed=is_digest_used)
    except PublishError as error:
        return ImageAnswer(image.text, None, error=error)
    return ImageAnswer(image.text, state, digest)
