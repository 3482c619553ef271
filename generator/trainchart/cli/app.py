"""The `trainchart` program: its commands, and the one place where an error becomes an exit code.

`--help` imports no command, a command imports its own module alone, and its action when it runs: so all start fast.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TextIO

import typer
from typer import _click as click
from typer.core import TyperGroup
from typer.main import get_group

from trainchart import __version__
from trainchart.cli.output import flush_output, print_error, print_line, print_note
from trainchart.errors import ToolError, TrainchartError

COMMANDS = {
    "Write": {
        "init": "Start a model: write a spec, and a training script that is ready to run.",
        "import": "Convert the input of another tool to a model spec.",
        "generate": "Generate charts from model specs.",
        "check": "Check charts against the rules of Helm, Kubernetes and training.",
        "rules": "List the rules that trainchart check knows.",
        "plan": "Print a spec with every default filled in.",
        "explain": "Show which layer, file and line set a value of a model.",
        "schema": "Print the JSON Schema of model specs.",
    },
    "Before an installation": {"doctor": "Find out whether a cluster, or this machine, can train."},
    "Train and serve on this machine": {
        "run": "Train a model on this machine, as local processes.",
        "serve": "Serve the model of a run, or of a chart, on this machine.",
        "predict": "Send examples from a file to a model server.",
    },
    "Manage runs, here and on a cluster": {
        "console": "Show runs on a web page, in the browser.",
        "list": "List the local runs and the runs of a cluster.",
        "status": "Show the state of a run: phase, attempt, step, pods, problems.",
        "top": "Show the CPU, memory and GPUs that training pods use and hold.",
        "tensorboard": "Show any number of runs in one TensorBoard.",
        "notebook": "Open JupyterLab over the volumes of releases.",
        "compare": "Compare runs: settings that differ, results, last metrics.",
        "why": "Explain a run: what failed first, where, and what to do.",
        "logs": "Show the logs of a run, even after its pods are gone.",
        "wait": "Wait until a run is over.",
        "suspend": "Suspend a run, and free its GPUs until it is resumed.",
        "resume": "Resume a suspended run from its last checkpoint.",
        "stop": "Stop a run; its programs can save first.",
        "rerun": "Start a new run of a release whose run is over.",
        "checkpoints": "List, verify, copy and remove the checkpoints of a run.",
    },
    "Serve on a cluster": {"promote": "Make a model server serve a release's export, or roll back."},
    "Set rules for all models": {
        "upgrade": "Generate all charts again after trainchart or a pack changed.",
        "pack": "Start, check, publish and download packs of defaults and rules.",
    },
    "Build and publish": {
        "package": "Package a chart into an archive that Helm can install.",
        "diff": "Show what changed in a chart since an earlier version.",
        "publish": "Publish a chart to a registry or chart repository.",
        "release": "Publish the next version of a chart, decided from its changes.",
        "deprecate": "Publish a version of a chart that marks it as deprecated.",
        "versions": "List the published versions of a chart.",
        "verify": "Check that a chart matches its spec, byte for byte.",
        "image": "Build, push and inspect a model's training image.",
    },
}
"""Section of --help → command → what it does in one line of a terminal, in the order in which --help shows them."""

_MODULES = {"import": "import_", "deprecate": "release"} | dict.fromkeys(
    ("suspend", "resume", "stop", "rerun"), "control"
)
"""Command → its module in trainchart.cli, where that is not named like it."""


_OTHER_NAMES = {"runs": "list", "ls": "list", "ps": "list", "train": "run"}
"""What other tools call a command → what it is called here."""


class _Commands(Mapping[str, click.Command]):
    """Imports the module of a command when it is asked for."""

    _names = tuple(name for section in COMMANDS.values() for name in section)

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._names:
            raise KeyError(name)
        part = typer.Typer(rich_markup_mode=None)
        importlib.import_module(f"trainchart.cli.{_MODULES.get(name, name)}").register(part)
        return get_group(part).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Sections(TyperGroup):
    """Shows the commands of --help in sections, and loads a command when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]  # nothing adds to it

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.UsageError as error:
            if args[0] in _OTHER_NAMES:
                error.message = f"No such command {args[0]!r}. Did you mean {_OTHER_NAMES[args[0]]!r}?"
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        longest = max(map(len, self.commands))
        for section, commands in COMMANDS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:{longest}}", summary) for name, summary in commands.items()])


app = typer.Typer(
    name="trainchart",
    cls=_Sections,
    help="Turn a short model spec and training code into a versioned Helm chart and a matching image.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version


_OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG)
_NO_SCRATCH = re.compile(r"No usable temporary directory found in \[(.*)\]")
_UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR, errno.EIO, errno.ESTALE)
"""What is wrong with a path, which such an error names, and not with this program."""


def describe_exhaustion(error: Exception) -> ToolError | None:
    """Return the error to print where this machine has run out of something, None for any other error."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, RecursionError):
        return ToolError("a file or a response is nested too deeply", hint="reduce the nesting")
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):
        return ToolError(f"{str(error)[0].lower()}{str(error)[1:]}", hint="remove the link that leads back to itself")
    if number == errno.ENOENT and not _has_folder():
        return ToolError("the current folder was deleted", hint="go to another one")
    if number == errno.ENOENT and (found := _NO_SCRATCH.search(str(error))):
        tried = ", ".join(re.findall(r"'([^']+)'", found[1]))
        message = f"there is no writable folder for temporary files: {tried}"
        return ToolError(message, hint="name one: TMPDIR=FOLDER")
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return ToolError("this machine has run out of memory", hint="end other programs, or raise the limit: ulimit -v")
    if number in (errno.EMFILE, errno.ENFILE):
        return ToolError("too many files are open", hint="raise the limit: ulimit -n 4096")
    if number == errno.EAGAIN or "can't start new thread" in str(error):
        return ToolError(
            "this machine cannot start more processes or threads",
            hint="end other programs, or raise the limit: ulimit -u, or the pids limit of the container",
        )
    return None


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  # Path.cwd is the same
    except FileNotFoundError:
        return False
    return True


OUTPUT_CLOSED = 128 + signal.SIGPIPE
"""The exit code of other tools whose reader has gone, as with `| head`."""


def main() -> None:
    """Run the command line and exit with the code that errors.py documents."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path the terminal cannot show must not end a training
    try:
        code = _run()
        flush_output()
    except BrokenPipeError:
        _give_up_output()
        code = OUTPUT_CLOSED
    sys.exit(code)


def _run() -> int:
    """Run the command, print its error, and return the exit code. Raises BrokenPipeError where no one reads on."""
    try:
        code = app(standalone_mode=False)
        flush_output()
    except TrainchartError as error:
        print_error(error)
        return error.exit_code
    except click.exceptions.ClickException as error:
        error.message = re.sub(r"is not a valid int( range)?\.", "is not a valid integer.", error.message)
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print_note("interrupted")
        return 130
    except BrokenPipeError:
        raise
    except SystemExit as error:
        # Click exits with 1 where no one reads on.
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        raise
    except (OSError, RuntimeError, MemoryError) as error:
        exhausted = describe_exhaustion(error)
        if exhausted is not None:
            print_error(exhausted)
            return exhausted.exit_code
        if not isinstance(error, OSError) or error.errno not in (*_OUTPUT_FULL, *_UNUSABLE):
            raise
        if error.errno in _UNUSABLE and error.filename is None:
            raise
        print_error(ToolError(f"{error.filename or 'the output'}: {(error.strerror or '').lower()}"))
        _give_up_output(sys.stdout)
        return ToolError.exit_code
    return code if isinstance(code, int) else 0


def _give_up_output(*streams: TextIO) -> None:
    """Let go of what could not be written: Python would try again at its end, and exit with 120."""
    for stream in streams or (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
