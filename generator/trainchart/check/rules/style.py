"""Rules about how YAML looks, in sources and in what templates render to."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.rule import Rule
from trainchart.check.sources import yaml_sources
from trainchart.check.yaml_style import find_rendered_problems, find_source_problems


def check_sources(given: CheckInput) -> Iterator[Finding]:
    """Ask yamllint about the YAML files outside of templates/."""
    for path, text in yaml_sources(given, without=("templates/", "charts/", "crds/")):
        for problem in find_source_problems(text):
            yield Finding(f"{problem.message} ({problem.rule})", path=path, line=problem.line)


def check_rendered(given: CheckInput) -> Iterator[Finding]:
    """Ask yamllint about what templates render to with the chart's own values."""
    if not given.is_chart:
        return
    for case in given.cases[:1]:
        for path, text in case.rendering.texts.items() if case.rendering else ():
            found = set()
            for document in text.split("\n---"):
                found |= {(problem.message, problem.rule) for problem in find_rendered_problems(document)}
            for message, rule in sorted(found):
                yield Finding(f"renders to YAML with a style problem: {message} ({rule})", path=path)


RULES = (
    Rule(
        "yaml-style",
        "Files with a uniform style are read faster, and a yes or a 010 is not what it looks like.",
        check_sources,
        "https://yamllint.readthedocs.io/en/stable/rules.html",
        severity=Severity.warning,
        others=Severity.info,
    ),
    Rule(
        "rendered-style",
        "With inconsistent indentation, the next edit of a template easily ends up one level too deep.",
        check_rendered,
        "https://helm.sh/docs/chart_best_practices/templates/#whitespace-in-generated-templates",
        severity=Severity.warning,
        others=Severity.info,
    ),
)
