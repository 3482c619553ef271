"""The command `trainchart import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note

if TYPE_CHECKING:
    from trainchart.actions.import_ import Imported, ImportedModel
    from trainchart.importing.ledger import LeftOut

_EXAMPLES = """
Examples:

  trainchart import tfjob.yaml

  kubectl get tfjob mnist -o yaml | trainchart import - --name mnist

  trainchart import tfjob.yaml --code training/mnist
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart import` to `app`."""
    app.command("import", epilog=_EXAMPLES)(import_)


def import_(
    file: Annotated[Path, typer.Argument(help="File to import; - reads standard input.", show_default=False)],
    name: Annotated[str, typer.Option("--name", help="Name of the model. Default: the name of the training job.")] = "",
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help="Strategy of the model. Default: detected from the roles or the code.",
            autocompletion=complete.strategies,
        ),
    ] = "",
    image: Annotated[
        str, typer.Option("--image", help="Image with tag or digest. Default: the one in the input.")
    ] = "",
    runtime_image: Annotated[
        str, typer.Option("--runtime-image", help="Runtime image. An init container copies the launcher from it.")
    ] = "",
    code: Annotated[
        Path | None,
        typer.Option("--code", help="Folder with the training code, for local runs and image builds."),
    ] = None,
    format_: FormatOption = Format.text,
) -> None:
    """Convert the input of another tool to a model spec, and list what could not be converted.

    Reads Kubeflow TFJobs, arena command lines, values of the archived chart distributed-tensorflow, and plain
    StatefulSets that run TensorFlow. The kind of input is detected automatically. Existing files are never overwritten.
    """
    from trainchart.actions.import_ import ImportRequest, import_models

    done = import_models(ImportRequest(file, name, strategy, image, runtime_image, code))
    if format_ is Format.json:
        print_json(_dump(done))
        return
    for path in done.files:
        print_line(str(path))
    for model in done.models:
        _print_model(model)
    print_note(f"next: {done.next}")


def _print_model(model: ImportedModel) -> None:
    print_note(f"{model.name}: imported from a {model.kind}, strategy {model.strategy}")
    print_note("carried over:")
    targets: dict[str, list[str]] = {}
    for entry in model.carried:
        targets.setdefault(entry.target, []).append(entry.source)
    for target, sources in targets.items():
        print_note(f"  {', '.join(sources)} → {target}")
    print_note("not carried over:" if model.left else "everything was carried over")
    together: dict[tuple[str, str], list[LeftOut]] = {}
    for left in model.left:
        together.setdefault((left.reason, left.remedy), []).append(left)
    for (reason, remedy), parts in together.items():
        whats = ", ".join(dict.fromkeys(part.what for part in parts))
        print_note(f"  {parts[0].where}: {whats}: {reason}" + (f"; {remedy}" if remedy else ""))
    for note in model.notes:
        print_note(f"note: {note}")


def _dump(done: Imported) -> dict[str, object]:
    return {
        "files": [str(path) for path in done.files],
        "models": [
            {
                "name": model.name,
                "kind": model.kind,
                "strategy": model.strategy,
                "spec": str(model.spec),
                "carried": [{"source": entry.source, "target": entry.target} for entry in model.carried],
                "left": [
                    {"what": left.what, "reason": left.reason, "remedy": left.remedy, "where": left.where}
                    for left in model.left
                ],
                "notes": list(model.notes),
            }
            for model in done.models
        ],
    }
