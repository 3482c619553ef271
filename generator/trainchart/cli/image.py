"""The commands `trainchart image build`, `push` and `inspect`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.cli.signals import end_in_order
from trainchart.images.choices import BuilderName, Flavour, TagChoice

if TYPE_CHECKING:
    from trainchart.actions.image import BuildTool, ImageRequest, PlannedImage
    from trainchart.images.builders import Builder

ModelArgument = Annotated[
    str, typer.Argument(help="Model, or path of its spec.", show_default=False, autocompletion=complete.models)
]
RuntimeOption = Annotated[
    str,
    typer.Option(
        "--runtime", metavar="REPOSITORY", help="Build the runtime image instead of a model's, under this name."
    ),
]
TagOption = Annotated[
    TagChoice,
    typer.Option("--tag", help="Tag from a hash of all inputs, from git describe, or from the spec."),
]
FlavourOption = Annotated[
    Flavour | None, typer.Option("--flavour", help="TensorFlow for cpu or gpu. Default: framework.flavour.")
]
BaseOption = Annotated[str, typer.Option("--base-image", help="Image to build on. Default: the Dockerfile's.")]
PlatformOption = Annotated[str, typer.Option("--platform", help="For example linux/arm64. Default: this machine's.")]
BuilderOption = Annotated[
    BuilderName | None,
    typer.Option("--builder", help="Program that builds the image. Default: the first one that works."),
]
PipOption = Annotated[
    Path | None,
    typer.Option(
        "--pip-config", exists=True, dir_okay=False, help="pip.conf for the build; it is not stored in any layer."
    ),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        "--ca-bundle",
        exists=True,
        dir_okay=False,
        help="CA certificates for the build; they are not stored in any layer.",
    ),
]
PlainHttpOption = Annotated[
    bool,
    typer.Option(
        "--plain-http",
        help="Use HTTP without encryption for the registry. If docker pushes, its daemon's own setting applies.",
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the steps without running them.")]

group = typer.Typer(
    help="Build, push and inspect a model's training image.", no_args_is_help=True, rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    """Add `trainchart image` to `app`."""
    app.add_typer(group, name="image")


@group.command("build")
def build(
    model: ModelArgument = "",
    runtime: RuntimeOption = "",
    tag: TagOption = TagChoice.content,
    flavour: FlavourOption = None,
    base_image: BaseOption = "",
    platform: PlatformOption = "",
    builder: BuilderOption = None,
    pip_config: PipOption = None,
    ca_bundle: CaOption = None,
    dry_run: DryRunOption = False,
    format_: FormatOption = Format.text,
) -> None:
    """Build a model's image on this machine: Python, TensorFlow, the launcher, the training library, and your code.

    Your .dockerignore is respected; files that look like passwords or keys are refused. The tag is a hash of all
    inputs, so the same inputs give the same tag.

    Example: trainchart image build mnist
    """
    from trainchart.actions.image import ImageRequest, build_image, choose_builder, plan_image

    request = _request(ImageRequest(model, runtime, tag, flavour, base_image, platform))
    image = plan_image(request, os.environ)
    chosen = choose_builder(builder, os.environ, only_shown=dry_run)
    secrets = _secrets(pip_config, ca_bundle)
    if dry_run:
        _print_steps(image, chosen, secrets, format_, push=False)
        return
    _print_notes(image)
    end_in_order()
    build_image(image, _tool(chosen, secrets))
    if format_ is Format.json:
        print_json({"reference": image.plan.reference, "builder": chosen.program})
        return
    print_line(image.plan.reference)
    print_line(f"  built by {chosen.program}")
    print_note(f"next: {_push_command(request, builder, pip_config, ca_bundle)}")


@group.command("push")
def push(
    model: ModelArgument = "",
    runtime: RuntimeOption = "",
    tag: TagOption = TagChoice.content,
    flavour: FlavourOption = None,
    base_image: BaseOption = "",
    platform: PlatformOption = "",
    builder: BuilderOption = None,
    pip_config: PipOption = None,
    ca_bundle: CaOption = None,
    plain_http: PlainHttpOption = False,
    update_spec: Annotated[
        bool, typer.Option("--update-spec/--no-update-spec", help="Write tag and digest into the model spec.")
    ] = True,
    dry_run: DryRunOption = False,
    format_: FormatOption = Format.text,
) -> None:
    """Build the image unless its registry has it, push it, and write its tag and digest into the model spec.

    Logs in as docker, podman or helm do. An existing tag is never replaced: pushing the same inputs again succeeds,
    and other inputs are refused.

    Example: trainchart image push mnist
    """
    from trainchart.actions.image import ImageRequest, choose_builder, plan_image, push_image

    request = ImageRequest(model, runtime, tag, flavour, base_image, platform, plain_http)
    image = plan_image(_request(request), os.environ)
    chosen = choose_builder(builder, os.environ, only_shown=dry_run)
    secrets = _secrets(pip_config, ca_bundle)
    if dry_run:
        _print_steps(image, chosen, secrets, format_, push=True)
        return
    _print_notes(image)
    end_in_order()
    done = push_image(image, _tool(chosen, secrets), update_spec=update_spec)
    if format_ is Format.json:
        result = {"reference": done.reference, "digest": done.digest, "isNew": done.is_new, "isInSpec": done.is_in_spec}
        print_json(result)
        return
    print_line(done.reference)
    print_line(f"  {'pushed' if done.is_new else 'already in the registry, from the same inputs; nothing was pushed'}")
    print_line(f"  digest {done.digest}")
    if done.is_in_spec:
        print_line(f"  {image.spec} names it now; next: trainchart generate {model}")


@group.command("inspect")
def inspect(
    model: ModelArgument,
    flavour: FlavourOption = None,
    base_image: BaseOption = "",
    platform: PlatformOption = "",
    plain_http: PlainHttpOption = False,
    sbom: Annotated[
        bool, typer.Option("--sbom", help="Print its contents instead: packages and versions, as CycloneDX JSON.")
    ] = False,
    format_: FormatOption = Format.text,
) -> None:
    """Show the image that a model spec names: digest, size, platforms, labels, and whether its inputs have changed.

    Queries the registry. It pulls layers only with --sbom: as a rule, only the last one. Give the options that the
    image was built with: they belong to its inputs.

    Example: trainchart image inspect mnist
    """
    from trainchart.actions.image import ImageRequest, inspect_image, plan_image, read_sbom
    from trainchart_runtime.log_text import clean

    request = ImageRequest(model, "", TagChoice.spec, flavour, base_image, platform, plain_http)
    planned = plan_image(request, os.environ)
    if sbom:
        print_line(read_sbom(planned, os.environ), end="")
        return
    found = inspect_image(planned, os.environ)
    image = found.image
    if format_ is Format.json:
        print_json(
            {
                "reference": found.reference,
                "digest": image.digest,
                "size": image.size,
                "platforms": list(image.platforms),
                "labels": dict(sorted(image.labels.items())),
                "changedParts": None if found.changed is None else list(found.changed),
            }
        )
        return
    print_line(found.reference)
    print_line(f"  digest    {image.digest}")
    print_line(f"  size      {image.size / 1e6:.1f} MB to pull")
    # The registry says both.
    print_line(clean(f"  platforms {', '.join(image.platforms)}"))
    for name, value in sorted(image.labels.items()):
        print_line(clean(f"  label     {name}={value}"))
    if found.changed is None:
        print_line("  inputs    unknown: trainchart image did not build it")
    elif found.changed:
        print_line(f"  inputs    changed since: {', '.join(found.changed)}; trainchart image push {model} rebuilds it")
    else:
        print_line("  inputs    the same as here")


def _request(request: ImageRequest) -> ImageRequest:
    if bool(request.model) is bool(request.runtime):
        raise typer.BadParameter("name a model, or the runtime image with --runtime REPOSITORY", param_hint="MODEL")
    if request.base_image.startswith("-") or len(request.base_image.split()) > 1:
        raise typer.BadParameter(f"{request.base_image!r} is not a valid image name", param_hint="--base-image")
    return request


def _push_command(
    request: ImageRequest, builder: BuilderName | None, pip_config: Path | None, ca_bundle: Path | None
) -> str:
    """Return the command that pushes what was built: with other options it would be another image."""
    import shlex

    options = {
        "--runtime": request.runtime,
        "--tag": "" if request.tag is TagChoice.content else request.tag,
        "--flavour": request.flavour,
        "--base-image": request.base_image,
        "--platform": request.platform,
        "--builder": builder,
        "--pip-config": pip_config,
        "--ca-bundle": ca_bundle,
    }
    words = [word for option, value in options.items() if value for word in (option, str(value))]
    return shlex.join(["trainchart", "image", "push", *filter(None, (request.model,)), *words])


def _secrets(pip_config: Path | None, ca_bundle: Path | None) -> Mapping[str, str]:
    """Return the build secrets, under the names that the Dockerfiles know."""
    from trainchart.actions.image import refuse_pipes

    given = {"pip-config": pip_config, "ca-bundle": ca_bundle}
    refuse_pipes(filter(None, given.values()))
    secrets = {name: str(path.absolute()) for name, path in given.items() if path}
    for name, path in secrets.items():
        if "," in path:
            raise typer.BadParameter(f"{path} contains a comma, at which builders end the path", param_hint=f"--{name}")
    return secrets


def _tool(builder: Builder, secrets: Mapping[str, str]) -> BuildTool:
    from trainchart.actions.image import BuildTool

    return BuildTool(builder, secrets, os.environ, print_note)


def _print_notes(image: PlannedImage) -> None:
    for note in image.plan.notes:
        print_note(f"note: {note}")


def _print_steps(
    image: PlannedImage, builder: Builder, secrets: Mapping[str, str], format_: Format, *, push: bool
) -> None:
    import shlex

    from trainchart.actions.image import CONTEXT, list_steps

    plan, steps = image.plan, list_steps(image, builder, secrets, push=push)
    if format_ is Format.json:
        print_json(
            {
                "reference": plan.reference,
                "builder": builder.program,
                "parts": dict(sorted(plan.parts.items())),
                "files": [file.path for file in plan.files],
                "notes": list(plan.notes),
                "steps": [{"name": step.name, "argv": list(step.argv)} for step in steps],
            }
        )
        return
    _print_notes(image)
    print_line(plan.reference)
    print_line(f"  {CONTEXT}: {len(plan.files)} files, {sum(len(file.content) for file in plan.files)} bytes")
    for step in steps:
        print_line(shlex.join(step.argv))
