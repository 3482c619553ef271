"""The command `trainchart compare`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ColorOption, ContextOption, NamespaceOption, RunsOption
from trainchart.cli.output import Format, FormatOption, find_width, print_json, print_lines, spell_line

if TYPE_CHECKING:
    from trainchart.reports.comparison_text import Line

_EXAMPLES = """
Examples:

  trainchart compare mnist-1 mnist-2

  trainchart compare exp-7 exp-8 -n team-a            releases of a cluster

  trainchart compare mnist-1 mnist-2 --all            also the settings that are the same

  trainchart compare mnist-1 mnist-2 --format json    every row
"""
_STYLES = {"heading": "bold", "best": "bold green", "bad": "red"}


def register(app: typer.Typer) -> None:
    """Add `trainchart compare` to `app`."""
    app.command("compare", epilog=_EXAMPLES)(_compare)


def _compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Two or more: names of local runs, releases (RELEASE/CHART if one holds several training runs), "
            "or folders of local runs, such as ../old/.trainchart/runs/exp-7.",
            metavar="RUN RUN...",
            show_default=False,
            autocompletion=complete.other_runs,
        ),
    ],
    shows_all: Annotated[bool, typer.Option("--all", "-a", help="Also show the settings that are the same.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    color: ColorOption = True,
    output: FormatOption = Format.text,
) -> None:
    """Compare runs, here or on a cluster: the settings that differ, how each run ended, and its last metrics.

    Each run is a column. A setting is named as in the values of its chart, as for --set. A dash means that there is no
    value, for example because the chart decides it; a question mark means that the value is not known. A star marks the
    best value of a row, if the name of the metric says which direction is better (losses, errors, accuracies), or if
    earlyStopMode does.

    A local run takes precedence over a release of the same name. With --namespace or --context, all names are those of
    releases.
    """
    from trainchart.actions.compare import read_reports
    from trainchart.actions.support.cluster_access import Place
    from trainchart.reports.comparison import compare_reports, describe_comparison
    from trainchart.reports.comparison_text import lay_out

    comparison = compare_reports(read_reports(runs, Place(context, namespace), runs_folder))
    if output is Format.json:
        print_json(describe_comparison(comparison))
        return
    _print(lay_out(comparison, shows_all=shows_all, width=find_width()), is_coloured=color)


def _print(lines: Sequence[Line], *, is_coloured: bool) -> None:
    if not is_coloured or os.environ.get("NO_COLOR"):  # rich would still write in bold
        print_lines("".join(span.text for span in line) for line in lines)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    for line in lines:
        console.print(Text.assemble(*((spell_line(span.text), _STYLES.get(span.style, "")) for span in line)))
