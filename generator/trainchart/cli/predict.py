"""`trainchart predict`: parse, ask a model server, print what it answers."""

from __future__ import annotations

from typing import Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note

_EXAMPLES = """
Examples:

  trainchart predict digit.json

  trainchart predict digits.npy --format json

  echo '[1.0]' | trainchart predict - --url http://localhost:9000
"""


def register(app: typer.Typer) -> None:
    app.command("predict", epilog=_EXAMPLES)(_predict)


def _predict(
    file: Annotated[str, typer.Argument(help="A .json, .npy or .npz file; - for JSON from standard input.")],
    url: Annotated[str, typer.Option(help="Address of the model server.")] = "http://localhost:8501",
    model: Annotated[
        str, typer.Option(help="Name of the model. Default: the server's only model.", show_default=False)
    ] = "",
    signature: Annotated[
        str, typer.Option(help="Signature of the model. Default: serving_default.", show_default=False)
    ] = "",
    output: FormatOption = Format.text,
) -> None:
    """Send one or more examples from a file to a model server, and print the outputs.

    JSON may be the input itself, an object with the model's inputs by name, a list of such objects, or a whole
    request with instances or inputs. The model's input shape decides whether it is one example or several.
    NumPy arrays count as lists; those in a .npz file are inputs by name. Any server with the REST API of TensorFlow
    Serving works. For a release on a cluster, first run: kubectl port-forward service/NAME 8501.
    """
    from trainchart.actions.predict import PredictRequest, predict
    from trainchart.serving.request import draw_prediction, is_shortened, spell_numbers

    found = predict(PredictRequest(file, url, model, signature))
    prediction = found.prediction
    if output is Format.json:
        print_json(
            {
                "model": found.model,
                "signature": found.signature,
                "examples": prediction.examples,
                "outputs": spell_numbers(prediction.outputs),
            }
        )
        return
    lines = draw_prediction(prediction)
    print_line("\n".join(lines))
    if is_shortened(lines):
        print_note("note: long values are truncated; --format json prints them in full")
