"""The command `trainchart why`."""

from __future__ import annotations

import typer

from trainchart.cli.output import Format, FormatOption, print_json
from trainchart.cli.place import ContextOption, NamespaceOption, ReleaseArgument


def register(app: typer.Typer) -> None:
    """Add `trainchart why` to `app`."""
    app.command("why")(_why)


def _why(
    release: ReleaseArgument,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    output: FormatOption = Format.text,
) -> None:
    """Say why a release on a cluster is as it is: what failed first, where, what was done, and what to do next.

    Works as long as the release is installed, also when its pods and events are long gone.

    Example: trainchart why exp-7 -n team-a
    """
    from trainchart.actions.cluster_access import Place
    from trainchart.actions.release_report import read_report
    from trainchart.reports.report import describe_report
    from trainchart.reports.why import why_lines

    report = read_report(Place(context, namespace), release)
    if output is Format.json:
        print_json(describe_report(report))
    else:
        print("\n".join(why_lines(report)))
