"""Build, push and look at images: read the inputs, plan, run a builder, and wire the digest into the model spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainchart import __version__
from trainchart.actions.package import read_source_date
from trainchart.actions.support.models import (
    LocatedModel,
    find_program,
    list_own_specs,
    load_model,
    require_code,
)
from trainchart.actions.support.project import locate_specs
from trainchart.actions.support.repository_access import ImageAccess, open_image_registry
from trainchart.errors import ImageNotFound, Problem, PublishError, SpecError, VersionConflict
from trainchart.host.files import read_text, refuse_pipe, write_file
from trainchart.host.git import describe_commit, read_commit
from trainchart.host.machine import read_platform
from trainchart.images.builders import BUILDERS, Builder, BuildPlace, Step
from trainchart.images.choices import BuilderName, Flavour, TagChoice, parse_platform
from trainchart.images.ignore import IGNORE_FILE
from trainchart.images.inputs import ContextFile, require_no_secrets
from trainchart.images.io.code_folder import read_code, read_ignore_rules
from trainchart.images.io.program import build_context, find_builder, run_step
from trainchart.images.plan import (
    IMAGE_FILES,
    PACKAGES,
    PLATFORM,
    SBOM,
    ImageBuildPlan,
    ImageOptions,
    Origin,
    find_changed_parts,
    plan_runtime_image,
    plan_training_image,
)
from trainchart.publish.image_reference import ImageReference, parse_image_reference
from trainchart.publish.io.image import PublishedImage, read_image, read_image_file
from trainchart.resources import read_image_source, read_package
from trainchart.spec.edit import set_texts

CONTEXT = "CONTEXT"
"""Stands in shown steps for the build context, a new folder each time."""


@dataclass(frozen=True)
class ImageRequest:
    """What a user wants of an image."""

    model: str = ""
    """Name of a model, or path of its spec; empty for the runtime image."""
    runtime: str = ""
    """Repository of the runtime image."""
    tag: TagChoice = TagChoice.content
    flavour: Flavour | None = None
    base_image: str = ""
    platform: str = ""
    """For example linux/arm64; empty means DOCKER_DEFAULT_PLATFORM, else this machine's."""
    plain_http: bool = False


@dataclass(frozen=True)
class PlannedImage:
    """An image that is decided, and the spec that names it, if one does."""

    plan: ImageBuildPlan
    spec: Path | None
    wanted: str
    """Tag or digest by which the spec names the image now; the plan's tag without a spec."""
    request: ImageRequest


@dataclass(frozen=True)
class BuildTool:
    """Who builds, and with which secrets; nothing of it goes into the image."""

    builder: Builder
    secrets: Mapping[str, str]
    environment: Mapping[str, str]
    report: Callable[[str], None]


def refuse_pipes(secrets: Iterable[Path]) -> None:
    """Raise ToolError for a build secret that is a pipe or a device: builders open it again."""
    for secret in secrets:
        refuse_pipe(secret)


@dataclass(frozen=True)
class PushedImage:
    """An image in its registry."""

    reference: str
    digest: str
    is_new: bool
    """False where the registry had it already, so that nothing was pushed."""
    is_in_spec: bool
    """Whether the model spec names this digest now."""


@dataclass(frozen=True)
class InspectedImage:
    """An image of a registry beside what it would be made of now."""

    reference: str
    image: PublishedImage
    changed: tuple[str, ...] | None
    """Parts of it that are others now; None where the image does not say what it was made of."""


def plan_image(request: ImageRequest, environment: Mapping[str, str]) -> PlannedImage:
    """Decide everything about an image; nothing is run or written.

    Raises SpecError, PlanError or ToolError where spec or code are not fit for an image, PublishError where the
    wanted name of the runtime image is none.
    """
    sources = _read_sources()
    created = read_source_date(environment)
    if request.runtime:
        options = _options(request, environment, Origin(created_epoch=created))
        plan = plan_runtime_image(request.runtime, sources, __version__, options)
        parse_image_reference(plan.reference)
        return PlannedImage(plan, None, plan.tag, request)
    (path,) = locate_specs((request.model,))
    model = load_model(path)
    require_code(model)
    rules = read_ignore_rules(model.real_code)
    specs = list_own_specs(path)
    code = read_code(model.real_code, rules, without=specs)
    require_no_secrets(code, rules)
    _require_program(model, code)
    options = _options(request, environment, _read_origin(model.code, specs, created))
    image = model.plan.spec.image
    plan = plan_training_image(model.plan.spec, code, sources, options)
    return PlannedImage(plan, path, image.digest or str(image.tag), request)


def choose_builder(name: BuilderName | None, environment: Mapping[str, str], *, only_shown: bool) -> Builder:
    """Return the builder to use; one that is `only_shown` need not be there. Raises ToolError."""
    return BUILDERS[name] if name and only_shown else find_builder(name, environment)


def list_steps(image: PlannedImage, builder: Builder, secrets: Mapping[str, str], *, push: bool) -> tuple[Step, ...]:
    """Return the commands that `build_image` and `push_image` run, with CONTEXT for the folder of the build."""
    build = builder.build_step(image.plan, BuildPlace(CONTEXT, secrets))
    pushing = (builder.push_step(image.plan.reference, plain_http=image.request.plain_http),) if push else ()
    return (build, *pushing)


def build_image(image: PlannedImage, tool: BuildTool) -> None:
    """Build the image on this machine. Raises TrainchartError, in the builder's last words, where that fails."""
    with build_context(image.plan.files) as context:
        step = tool.builder.build_step(image.plan, BuildPlace(str(context), tool.secrets))
        run_step(step, tool.environment, tool.report)


def push_image(image: PlannedImage, tool: BuildTool, *, update_spec: bool) -> PushedImage:
    """Bring the image into its registry, unless it is there, and its tag and digest into the model spec.

    Raises VersionConflict where the tag holds another image, another PublishError where the registry refuses.
    """
    plan = image.plan
    pushed = parse_image_reference(plan.reference)
    with open_image_registry(pushed, _access(image, pushed, tool.environment)) as registry:
        found = read_image(registry, pushed)
        if found is None:
            build_image(image, tool)
            # A build takes minutes, and another may have pushed the same meanwhile: the first one counts.
            found = read_image(registry, pushed)
        is_new = found is None
        if found is None:
            step = tool.builder.push_step(plan.reference, plain_http=image.request.plain_http)
            run_step(step, tool.environment, tool.report)
            found = read_image(registry, pushed)
    if found is None:
        raise PublishError(f"the registry has no {plan.reference}, though it was just pushed", hint="run it again")
    _require_same_parts(plan, found)
    spec = image.spec if update_spec else None
    if spec:
        _update_spec(spec, plan.tag, found.digest)
    return PushedImage(plan.reference, found.digest, is_new, is_in_spec=spec is not None)


def inspect_image(image: PlannedImage, environment: Mapping[str, str]) -> InspectedImage:
    """Return what the registry has under the name in the spec. Raises ImageNotFound, or another PublishError."""
    reference = _named(image)
    with open_image_registry(reference, _access(image, reference, environment)) as registry:
        found = read_image(registry, reference)
    if found is None:
        raise _not_there(reference)
    changed = find_changed_parts(image.plan, found.labels)
    if changed and not image.request.platform:
        # It is looked at from any machine: the platform counts where one is asked for.
        changed = tuple(part for part in changed if part != PLATFORM)
    return InspectedImage(reference.text, found, changed)


def read_sbom(image: PlannedImage, environment: Mapping[str, str]) -> str:
    """Return what the image under the name in the spec holds, as CycloneDX JSON; few bytes are pulled for it.

    Raises ImageNotFound, or another PublishError: images that others have built tell nothing.
    """
    reference = _named(image)
    with open_image_registry(reference, _access(image, reference, environment)) as registry:
        if read_image(registry, reference) is None:
            raise _not_there(reference)
        content = read_image_file(registry, reference, SBOM)
    if content is None:
        hint = "its Dockerfile is not trainchart's, or an older one; trainchart image push rebuilds it"
        raise PublishError(f"{reference.text} does not say what it contains: it has no /{SBOM}", hint=hint)
    return content.decode(errors="replace")


def _named(image: PlannedImage) -> ImageReference:
    """Return the image as the spec names it."""
    repository, wanted = image.plan.repository, image.wanted
    return parse_image_reference(f"{repository}@{wanted}" if ":" in wanted else f"{repository}:{wanted}")


def _not_there(reference: ImageReference) -> ImageNotFound:
    hint = "trainchart image push builds and pushes it"
    return ImageNotFound(f"the registry has no {reference.text}", hint=hint)


def _access(image: PlannedImage, reference: ImageReference, environment: Mapping[str, str]) -> ImageAccess:
    return ImageAccess(environment, insecure_registries=(reference.host,) if image.request.plain_http else ())


def _require_same_parts(plan: ImageBuildPlan, found: PublishedImage) -> None:
    changed = find_changed_parts(plan, found.labels)
    if changed != ():
        what = (
            f"its {', '.join(changed)} {'differ' if len(changed) > 1 else 'differs'} from what is here"
            if changed
            else ""
        )
        raise VersionConflict(
            f"{plan.reference} is already in the registry, and is a different image",
            hint="a tag must always name the same image: use --tag content, or change image.tag in the model spec",
            problems=(Problem(what or "it does not say what it was built from", f"{plan.repository}@{found.digest}"),),
        )


def _require_program(model: LocatedModel, code: tuple[ContextFile, ...]) -> None:
    """Refuse code that lacks the program to start: it is in the folder, and stays out of the image."""
    program = find_program(model)
    if program and not any(file.path in program.files for file in code):
        where = str(model.plan.origins["code", "command"])
        problem = Problem(f"code.command: {program.title} would not be in the image", where, f"see {IGNORE_FILE}")
        raise SpecError(f"the image would lack the program that it starts, in {model.code}", problems=(problem,))


def _update_spec(spec: Path, tag: str, digest: str) -> None:
    text = read_text(spec)
    changed = set_texts(text, "image", {"tag": tag, "digest": digest}, file=str(spec))
    if changed != text:
        write_file(spec, changed.encode())


def _options(request: ImageRequest, environment: Mapping[str, str], origin: Origin) -> ImageOptions:
    platform = request.platform or environment.get("DOCKER_DEFAULT_PLATFORM") or read_platform()
    return ImageOptions(request.tag, request.base_image, request.flavour, parse_platform(platform), origin)


def _read_origin(code: Path, specs: frozenset[Path], created_epoch: int | None) -> Origin:
    # A push changes the spec, which is no part of the image: the next one is to have the same tag.
    commit = read_commit(code, without=specs)
    if commit is None:
        return Origin(created_epoch=created_epoch)
    suffix = "-dirty" if commit.is_dirty else ""
    described = f"{describe_commit(code)}{suffix}"
    created = commit.committed_epoch if created_epoch is None else created_epoch
    return Origin(f"{commit.commit}{suffix}", described, created)


def _read_sources() -> tuple[ContextFile, ...]:
    """Return the Dockerfiles, the lists of packages and this program's own, where the Dockerfiles expect them."""
    files = [ContextFile(path, read_image_source(path)) for path in IMAGE_FILES]
    packages = [
        ContextFile(f"{folder}/{path}", content)
        for folder in PACKAGES.values()
        for path, content in read_package(folder.rpartition("/")[2]).items()
    ]
    return (*files, *packages)
