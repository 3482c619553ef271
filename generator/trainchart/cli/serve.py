"""`trainchart serve`: parse, serve a model on this machine, print how it is asked."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainchart.cli import complete
from trainchart.cli.options import DEFAULT_RUNS_FOLDER, RunsOption
from trainchart.cli.output import Format, FormatOption, print_json, print_lines, print_note

if TYPE_CHECKING:
    from trainchart.actions.serve import ReadyServer

_DEFAULT_PORT = 8501
_EXAMPLES = """
Examples:

  trainchart serve               the newest export of the run started last

  trainchart serve mnist-3 --step 200

  trainchart serve charts/digits-prod --model ./saved_model
"""


def register(app: typer.Typer) -> None:
    app.command("serve", epilog=_EXAMPLES)(_serve)


def _serve(
    target: Annotated[
        str,
        typer.Argument(
            metavar="[RUN|CHART]",
            help="A local run, or a chart of the family model-server. Default: the local run that was started last.",
            show_default=False,
            autocompletion=complete.local_runs,
        ),
    ] = "",
    step: Annotated[
        int | None, typer.Option(min=0, help="For a run: the export of this step. Default: the newest.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="For a chart: a folder with its export, if no local run has it."),
    ] = None,
    values: Annotated[
        list[Path] | None,
        typer.Option("--values", "-f", help="For a chart: values file, as for helm install; repeatable."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="For a chart: KEY=VALUE; repeatable.", autocompletion=complete.settings),
    ] = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port of the REST API on this machine. 0: any free port, also for gRPC."),
    ] = _DEFAULT_PORT,
    grpc_port: Annotated[
        int | None,
        typer.Option(
            "--grpc-port",
            min=0,
            max=65535,
            help="Port of the gRPC API. Default: one less than --port.",
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also show TensorFlow's own messages.")] = False,
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    output: FormatOption = Format.text,
) -> None:
    """Serve the model of a local run, or of a chart, on this machine, over TensorFlow Serving's REST and gRPC APIs.

    The server uses a copy of the export, whose files must match its SHA256SUMS. With a chart, it gets the same
    arguments as the chart's pods, and serves only the pinned content. Once the model answers, the command prints its
    inputs and example requests. Only this machine can reach the server. Ctrl-C stops it once the requests in flight are
    finished. It needs the extra trainchart[serving]; if that is missing, the error says what to install.
    """
    from trainchart.actions.serve import Ports, serve_model
    from trainchart.actions.support.served_model import ServeRequest
    from trainchart.cli.signals import end_in_order

    end_in_order()
    request = ServeRequest(target, runs_folder, step, model, tuple(values or ()), tuple(sets or ()))
    ports = Ports(port, max(0, port - 1) if grpc_port is None else grpc_port)
    number = serve_model(request, ports, _Display(output, verbose=verbose))
    raise typer.Exit(128 + number)


class _Display:
    """The ready server on stdout, all else on stderr."""

    def __init__(self, output: Format, *, verbose: bool) -> None:
        from trainchart.local.noise import NoiseFilter

        self._output = output
        self._verbose = verbose
        self._noise = NoiseFilter()

    def show_event(self, text: str) -> None:
        print_note(text)

    def show_line(self, line: str) -> None:
        from trainchart_runtime.log_text import clean

        if self._verbose or not self._noise.is_noise(line):
            print_note(clean(line))

    def show_ready(self, ready: ReadyServer) -> None:
        if self._output is Format.json:
            print_json(_describe(ready))
        else:
            print_lines(_introduce(ready))
        sys.stdout.flush()


def _describe(ready: ReadyServer) -> dict[str, Any]:
    example = ready.example
    return {
        "model": ready.model.name,
        "version": ready.model.version,
        "source": ready.model.source,
        "url": ready.url,
        "grpc": ready.grpc,
        "signature": ready.signature.name,
        "signatures": {
            name: {
                part: {each.name: {"type": each.type_name, "shape": each.shape} for each in tensors.values()}
                for part, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs))
            }
            for name, signature in ready.signatures.items()
        },
        "curl": _curl(ready),
        "predict": _predict(ready),
        "refusal": example.refusal or None if example else None,
    }


def _introduce(ready: ReadyServer) -> list[str]:
    from trainchart.serving.signature import describe_signature

    model = ready.model
    lines = [
        f"{model.name}, version {model.version}, answers after {ready.seconds:.1f} s: {model.origin}",
        f"REST {ready.url}/v1/models/{model.name}   gRPC {ready.grpc}",
        "",
        f"{ready.signature.name} {describe_signature(ready.signature)[0]}",
        *describe_signature(ready.signature)[1:],
    ]
    others = [name for name in ready.signatures if name != ready.signature.name]
    if others:
        lines.append(f"other signatures: {', '.join(others)}")
    example = ready.example
    if example is None:
        return [*lines, "", "No example request: JSON cannot represent this model's inputs, or they are too large."]
    if example.refusal:
        lines += ["", f"The model refuses zeros, so put your own example into these: {example.refusal}"]
    return [*lines, "", "Try it:", f"  {_curl(ready)}", f"  {_predict(ready)}", ""]


def _curl(ready: ReadyServer) -> str | None:
    if ready.example is None:
        return None
    data = f"@{ready.example.file}" if ready.example.file else ready.example.body
    return shlex.join(["curl", "-s", ready.predict_url, "-d", data])


def _predict(ready: ReadyServer) -> str | None:
    if ready.example is None:
        return None
    url = [] if ready.url.endswith(f":{_DEFAULT_PORT}") else ["--url", ready.url]
    if ready.example.file:
        return shlex.join(["trainchart", "predict", ready.example.file, *url])
    return f"echo {shlex.quote(ready.example.body)} | {shlex.join(['trainchart', 'predict', '-', *url])}"
