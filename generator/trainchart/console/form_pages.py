"""The pages that install and uninstall, as HTML: made by the templates of pages.py, which escape every value. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainchart.console.addresses import address_of
from trainchart.console.form import Field, make_form
from trainchart.console.installing import (
    NAMESPACE,
    NOWHERE,
    RELEASE,
    YAML,
    ChartOffers,
    OpenChart,
    Problems,
    PublishedChart,
    Removal,
    Review,
    Typed,
)
from trainchart.console.views import RunRef

FIELD_PREFIX = "value:"
"""Before the key of a value, in the name of its field."""
_PROBLEMS_SHOWN = 30
_HELP = {
    RELEASE: "Lower-case letters, digits, dashes and dots, such as exp-8. Runs and pods are named after it.",
    NAMESPACE: "Where to install it.",
    YAML: "Any other values of the chart, as in a values file. They take precedence over the fields above.",
}


@dataclass(frozen=True)
class Input:
    """A field as it stands on the page."""

    id: str
    name: str
    label: str
    help: str
    rule: str
    default: str
    text: str
    choices: Sequence[str]
    is_number: bool
    problems: Sequence[str]
    is_changed: bool = False

    @property
    def described_by(self) -> str:
        """The ids of what a screen reader says about it."""
        ids = [f"{self.id}-error"] if self.problems else []
        return " ".join([*ids, f"{self.id}-help"] if self.help or self.rule else ids)


class Renderer(Protocol):
    """What makes HTML of a template."""

    def render(self, name: str, **values: Any) -> str:
        """Return the page."""


class FormPages:
    """Makes the pages."""

    def __init__(self, renderer: Renderer) -> None:
        self._render = renderer.render

    def charts(self, offers: ChartOffers, published: PublishedChart, problem: str, token: str) -> str:
        """Return the page on which a chart is chosen."""
        return self._render("new.html", offers=offers, published=published, problem=problem, token=token)

    def form(self, chart: OpenChart, typed: Typed, problems: Problems, token: str) -> str:
        """Return the form of a chart with what was typed, each problem next to its field."""
        sections = [
            (section, [_make_input(field, typed, problems) for field in section.fields])
            for section in make_form(chart.values, chart.schema)
        ]
        namespace = typed.namespace or ("" if typed.seen else chart.namespace)
        return self._render(
            "new_form.html",
            chart=chart,
            release=_make_own(RELEASE, "Release", typed.release, problems),
            namespace=_make_own(NAMESPACE, "Namespace", namespace, problems),
            sections=sections,
            yaml=_make_own(YAML, "All values", typed.yaml, problems),
            problems=list(problems.get(NOWHERE, ()))[:_PROBLEMS_SHOWN],
            count=sum(len(texts) for name, texts in problems.items() if name != NOWHERE),
            token=token,
        )

    def review(self, review: Review, typed: Typed, failure: str, token: str) -> str:
        """Return the page that shows what would be installed; `failure` is what helm said the last time."""
        return self._render("new_review.html", review=review, fields=list(_carry(typed)), typed=typed,
                            failure=failure, token=token)  # fmt: skip

    def removal(self, run: RunRef, removal: Removal, problem: str, failure: str, token: str) -> str:
        """Return the page that shows what uninstalling does, and asks for the release's name."""
        return self._render("uninstall.html", run=run, removal=removal, address=address_of(run), problem=problem,
                            failure=failure, token=token)  # fmt: skip

    def done(self, title: str, said: str, kept: Sequence[str], token: str) -> str:
        """Return the page that says what came of it."""
        return self._render("done.html", title=title, said=said, kept=kept, token=token)

    def refusal(self, message: str, token: str) -> str:
        """Return the page of an error."""
        return self._render("new_refusal.html", message=message, token=token)


def _carry(typed: Typed) -> list[tuple[str, str]]:
    """Return what the review carries on: the fields of the form, by their names."""
    own = {"chart": typed.chart, RELEASE: typed.release, NAMESPACE: typed.namespace, YAML: typed.yaml,
           "seen": typed.seen}  # fmt: skip
    return [*own.items(), *((f"{FIELD_PREFIX}{key}", text) for key, text in typed.fields.items())]


def _make_input(field: Field, typed: Typed, problems: Mapping[str, Sequence[str]]) -> Input:
    text = typed.fields.get(field.key, field.default)
    is_known = not field.choices or text in field.choices
    return Input(
        id=f"field-{field.key.replace('.', '-')}",
        name=f"{FIELD_PREFIX}{field.key}",
        label=field.label,
        help=field.help,
        rule=field.rule,
        default=field.default,
        text=text,
        choices=field.choices if is_known else (*field.choices, text),
        is_number=field.is_number,
        problems=problems.get(field.key, ()),
        is_changed=text.strip() not in ("", field.default),
    )


def _make_own(name: str, label: str, text: str, problems: Mapping[str, Sequence[str]]) -> Input:
    shown = list(problems.get(name, ()))[:_PROBLEMS_SHOWN]
    return Input(f"field-{name}", name, label, _HELP[name], "", "", text, (), False, shown)
