"""Generate charts from model specs; where nothing changed since the last time, without doing it again."""

from __future__ import annotations

from pathlib import Path

from trainchart.actions.support.known_charts import GeneratedChart, recall_chart


def generate_charts(
    specs: tuple[Path, ...], charts: Path, *, overwrite: bool, use_cache: bool = True
) -> list[GeneratedChart]:
    """Generate the charts of `specs` into folders of `charts`, by name; untouched where nothing changes.

    Raises:
        ChecksFailed: files were edited or added by hand, and `overwrite` is off; nothing is written then.
        SpecError: a spec is wrong, or two of them give the same chart.
        ToolError: a folder cannot be written, or holds something that is not a generated chart.
    """
    known = {spec: chart for spec in specs if use_cache and (chart := recall_chart(spec, charts)) is not None}
    changed = tuple(spec for spec in specs if spec not in known)
    if changed:
        # Only now: to import what makes a chart takes longer than to see that there is nothing to make.
        from trainchart.actions.support.chart_folder import write_charts

        names = {spec: chart.name for spec, chart in known.items()}
        known |= zip(changed, write_charts(changed, charts, overwrite=overwrite, beside=names), strict=True)
    return [known[spec] for spec in specs]
