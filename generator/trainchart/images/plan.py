"""What is built: Dockerfile, build context, arguments, labels and tag of an image, decided before anything runs. Pure.

A training image comes from a model spec and its code, the runtime image from this program alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from trainchart.errors import PlanError
from trainchart.images.choices import Flavour, TagChoice
from trainchart.images.inputs import ContextFile, hash_files, hash_mapping
from trainchart.images.requirements import (
    OWN_TENSORFLOW_FILE,
    REQUIREMENTS_FILE,
    decode_requirements,
    require_no_files,
    require_no_logins,
    require_no_replacements,
    require_no_tensorflow,
    require_tensorflow,
    require_versions,
)
from trainchart.spec.model import ModelSpec
from trainchart.spec.values import TAG_PATTERN

TRAINING_DOCKERFILE = "training-images/tensorflow/Dockerfile"
RUNTIME_DOCKERFILE = "training-images/controller/Dockerfile"
TENSORFLOW_REQUIREMENTS: Mapping[Flavour, str] = {
    flavour: f"training-images/tensorflow/requirements/{flavour}.txt" for flavour in Flavour
}
"""Flavour to the list of its packages, each with its hashes; `make lock` writes them."""
SBOM_WRITER = "training-images/sbom/write_sbom.py"
SBOM = "usr/share/trainchart/sbom.cdx.json"
"""Where the Dockerfiles write what an image holds, in a last and small layer."""
IMAGE_FILES = (TRAINING_DOCKERFILE, RUNTIME_DOCKERFILE, SBOM_WRITER, *TENSORFLOW_REQUIREMENTS.values())
"""What images are made from, but for packages, by path in this project's folder."""
PACKAGES: Mapping[str, str] = {
    "launcher": "training-images/launcher/trainchart_launcher",
    "controller": "training-images/controller/trainchart_controller",
    "runtime": "training-images/runtime/trainchart_runtime",
    "training": "training-images/training/trainchart_training",
    "stacks": "training-images/training/trainchart_stacks",
}
"""Part of an image to where the Dockerfiles expect its package, as in this project's folder."""
PLATFORM = "platform"
"""Part of an image: what it was built for."""
INPUT_LABEL = "trainchart.inputs."
"""Labels of an image that hold the sha256 of each part it was made of."""
_CODE = "model"
"""Folder of the build context with the model's code."""
_REQUIREMENTS = f"{_CODE}/{REQUIREMENTS_FILE}"
_OWN_TENSORFLOW = f"{_CODE}/{OWN_TENSORFLOW_FILE}"
_OCI = "org.opencontainers.image."


@dataclass(frozen=True)
class Origin:
    """Where the code comes from, as git knows it; all may be unknown."""

    revision: str = ""
    description: str = ""
    """The nearest tag, the commit, and whether anything has changed since, as `git describe` says."""
    created_epoch: int | None = None
    """Seconds since 1970, never the time of the build: the same inputs give the same image."""


@dataclass(frozen=True)
class ImageOptions:
    """What the user chooses beside the spec."""

    tag: TagChoice = TagChoice.content
    base_image: str = ""
    """Empty means the Dockerfile's."""
    flavour: Flavour | None = None
    """None means the spec's."""
    platform: str = "linux/amd64"
    """Operating system and architecture, for example linux/arm64."""
    origin: Origin = Origin()


@dataclass(frozen=True)
class ImageBuildPlan:
    """An image to build; the same plan for every builder."""

    repository: str
    tag: str
    dockerfile: str
    """Path in the build context."""
    files: tuple[ContextFile, ...]
    arguments: Mapping[str, str]
    labels: Mapping[str, str]
    parts: Mapping[str, str]
    """What the image is made of, part by part, to its sha256."""
    platform: str
    notes: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        return f"{self.repository}:{self.tag}"


def plan_training_image(
    spec: ModelSpec, code: tuple[ContextFile, ...], sources: tuple[ContextFile, ...], options: ImageOptions
) -> ImageBuildPlan:
    """Return the plan of a model's image.

    `code` has paths relative to the code folder, `sources` are this program's packages and Dockerfiles.
    Raises PlanError where the wanted tag cannot be one, or lists of packages contradict the spec or each other.
    """
    placed = tuple(ContextFile(f"{_CODE}/{file.path}", file.content, file.is_executable) for file in code)
    notes = []
    if not any(file.path == _REQUIREMENTS for file in placed):
        placed += (ContextFile(_REQUIREMENTS, b""),)
        notes.append(
            f"the code folder has no {REQUIREMENTS_FILE}: the image gets TensorFlow, TensorBoard, the launcher, "
            "the run controller and the training library, and no other package"
        )
    ours = TENSORFLOW_REQUIREMENTS[options.flavour or Flavour(spec.framework.flavour)]
    lists = {
        file.path: decode_requirements(file.content, file.path.removeprefix(f"{_CODE}/"))
        for file in (*sources, *placed)
        if file.path in (ours, _REQUIREMENTS, _OWN_TENSORFLOW)
    }
    for path in lists.keys() - {ours}:
        require_no_logins(lists[path], path.removeprefix(f"{_CODE}/"))
        require_no_files(lists[path], path.removeprefix(f"{_CODE}/"))
    tensorflow = _OWN_TENSORFLOW if _OWN_TENSORFLOW in lists else ours
    require_no_tensorflow(lists[_REQUIREMENTS])
    require_versions(lists[_REQUIREMENTS])
    require_tensorflow(lists[tensorflow], spec.framework.tensorflow, tensorflow.removeprefix(f"{_CODE}/"))
    require_no_replacements(lists[_REQUIREMENTS], lists[tensorflow])
    arguments = {"MODEL": _CODE, "TENSORFLOW_REQUIREMENTS": tensorflow, **_base(options)}
    files = _only(sources, TRAINING_DOCKERFILE, SBOM_WRITER, tensorflow, *PACKAGES.values())
    parts = {**_hash_sources(files), "code": hash_files(placed), **_hash_choices(arguments, options)}
    tag = _choose_tag(options, parts, str(spec.image.tag))
    labels = {f"{_OCI}title": spec.name, f"{_OCI}description": spec.description}
    if spec.sources:
        labels[f"{_OCI}source"] = spec.sources[0]
    return ImageBuildPlan(
        repository=spec.image.repository,
        tag=tag,
        dockerfile=TRAINING_DOCKERFILE,
        files=(*files, *placed),
        arguments=arguments,
        labels=labels | _labels(tag, parts, options.origin),
        parts=parts,
        platform=options.platform,
        notes=tuple(notes),
    )


def plan_runtime_image(
    repository: str, sources: tuple[ContextFile, ...], version: str, options: ImageOptions
) -> ImageBuildPlan:
    """Return the plan of the runtime image of this program's `version`. Its tag is its content's: it has no spec."""
    if options.tag is not TagChoice.content:
        raise PlanError(
            "the runtime image belongs to no model, so its tag comes from its content", hint="leave --tag out"
        )
    arguments = _base(options)
    packages = (PACKAGES[name] for name in ("launcher", "controller", "runtime"))
    files = _only(sources, RUNTIME_DOCKERFILE, SBOM_WRITER, *packages)
    parts = {**_hash_sources(files), **_hash_choices(arguments, options)}
    tag = _choose_tag(options, parts, "")
    labels = {
        f"{_OCI}title": "trainchart-runtime",
        f"{_OCI}description": f"Launcher and run controller of trainchart {version}.",
    }
    return ImageBuildPlan(
        repository=repository,
        tag=tag,
        dockerfile=RUNTIME_DOCKERFILE,
        files=files,
        arguments=arguments,
        labels=labels | _labels(tag, parts, Origin(created_epoch=options.origin.created_epoch)),
        parts=parts,
        platform=options.platform,
    )


def find_changed_parts(plan: ImageBuildPlan, labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return which parts of an image, known by its labels, are not those of `plan`; None where it names none."""
    there = {name.removeprefix(INPUT_LABEL): value for name, value in labels.items() if name.startswith(INPUT_LABEL)}
    if not there:
        return None
    return tuple(sorted(part for part in {*there, *plan.parts} if there.get(part) != plan.parts.get(part)))


def _only(sources: tuple[ContextFile, ...], *wanted: str) -> tuple[ContextFile, ...]:
    """Return the files that are wanted, by path or by folder."""
    folders = tuple(f"{folder}/" for folder in wanted)
    return tuple(file for file in sources if file.path in wanted or file.path.startswith(folders))


def _hash_sources(files: tuple[ContextFile, ...]) -> dict[str, str]:
    parts = {part: [file for file in files if file.path.startswith(f"{folder}/")] for part, folder in PACKAGES.items()}
    parts["dockerfile"] = [file for file in files if file.path.endswith("/Dockerfile")]
    parts["sbom"] = [file for file in files if file.path == SBOM_WRITER]
    parts["tensorflow"] = [file for file in files if file.path in TENSORFLOW_REQUIREMENTS.values()]
    return {part: hash_files(held) for part, held in parts.items() if held}


def _base(options: ImageOptions) -> dict[str, str]:
    return {"BASE_IMAGE": options.base_image} if options.base_image else {}


def _hash_choices(arguments: Mapping[str, str], options: ImageOptions) -> dict[str, str]:
    return {"arguments": hash_mapping(arguments), PLATFORM: hash_mapping({PLATFORM: options.platform})}


def _choose_tag(options: ImageOptions, parts: Mapping[str, str], of_spec: str) -> str:
    if options.tag is TagChoice.content:
        return f"in-{hash_mapping(parts)[:16]}"
    if options.tag is TagChoice.spec:
        return of_spec
    tag = options.origin.description
    if not tag:
        raise PlanError(
            "git has no commit of the code folder, so there is no tag", hint="commit it, or leave --tag out"
        )
    if not re.fullmatch(TAG_PATTERN, tag):
        raise PlanError(
            f"{tag!r}, as git describes the code, is not a valid image tag", hint="use --tag content or --tag spec"
        )
    return tag


def _labels(tag: str, parts: Mapping[str, str], origin: Origin) -> dict[str, str]:
    return {
        f"{_OCI}version": tag,
        **dict(_known(origin)),
        **{f"{INPUT_LABEL}{part}": parts[part] for part in sorted(parts)},
    }


def _known(origin: Origin) -> Iterator[tuple[str, str]]:
    if origin.revision:
        yield f"{_OCI}revision", origin.revision
    if origin.created_epoch is not None:
        yield f"{_OCI}created", datetime.fromtimestamp(origin.created_epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
