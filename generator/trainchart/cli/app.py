"""The `trainchart` program: its commands, and the one place where an error becomes an exit code.

Command modules import their action inside the command, so that `trainchart --help` stays fast.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import signal
import sys
from typing import Annotated, TextIO

import typer
from typer import _click as click
from typer.core import TyperCommand, TyperGroup

from trainchart import __version__
from trainchart.cli.output import print_error, print_line, print_note
from trainchart.errors import ToolError, TrainchartError

COMMANDS = {
    "Write": ("init", "import_", "generate", "check", "rules", "plan", "explain", "schema"),
    "Train on this machine": ("run",),
    "Look after runs, here and on a cluster": ("list", "status", "why", "logs", "wait", "control"),
    "Set rules for all models": ("pack", "upgrade"),
    "Build and publish": ("image", "package", "diff", "publish", "release", "versions", "verify"),
}
"""Section of --help → the modules trainchart.cli.<name> with a function `register(app)`, in the order it shows them."""


class _Sections(TyperGroup):
    """Shows the commands of --help in sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        longest = max(map(len, self.commands))
        for section in COMMANDS:
            with formatter.section(section):
                formatter.write_dl(
                    [
                        (f"{name:{longest}}", command.get_short_help_str(formatter.width - 4 - longest))
                        for name, command in self.commands.items()
                        if isinstance(command, TyperCommand | TyperGroup) and command.rich_help_panel == section
                    ]
                )


app = typer.Typer(
    name="trainchart",
    cls=_Sections,
    help="Turn one short model spec plus training code into a versioned Helm chart and a matching image.",
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


for _section, _modules in COMMANDS.items():
    _part = typer.Typer()
    for _module in _modules:
        importlib.import_module(f"trainchart.cli.{_module}").register(_part)
    for _command in _part.registered_commands:
        _command.rich_help_panel = _section
    for _group in _part.registered_groups:
        _group.rich_help_panel = _section
    app.registered_commands += _part.registered_commands
    app.registered_groups += _part.registered_groups


_OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG)
_UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR, errno.EIO, errno.ESTALE)
"""What is wrong with a path, which such an error names, and not with this program."""


def describe_exhaustion(error: Exception) -> ToolError | None:
    """Return the error to print where this machine has run out of something, None for any other error."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, RecursionError):
        return ToolError("a file or an answer is nested too deeply", hint="reduce the nesting")
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):
        return ToolError(f"{str(error)[0].lower()}{str(error)[1:]}", hint="remove the link that leads back to itself")
    if number == errno.ENOENT and not _has_folder():
        return ToolError("the current folder was deleted", hint="go to another one")
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return ToolError("this machine has no memory left", hint="end other programs, or raise the limit: ulimit -v")
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
        _flush()
    except BrokenPipeError:
        _give_up_output()
        code = OUTPUT_CLOSED
    sys.exit(code)


def _run() -> int:
    """Run the command, print its error, and return the exit code. Raises BrokenPipeError where no one reads on."""
    try:
        code = app(standalone_mode=False)
        _flush()
    except TrainchartError as error:
        print_error(error)
        return error.exit_code
    except click.exceptions.ClickException as error:
        # Typer has pydantic read the values.
        error.message = re.sub(r"^Input should (be an? valid \w+).*", r"it must \1", error.message)
        error.message = error.message.removeprefix("Value error, ")
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


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as after `>&-`
            stream.flush()


def _give_up_output(*streams: TextIO) -> None:
    """Let go of what could not be written: Python would try again at its end, and exit with 120."""
    for stream in streams or (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
