"""What a shell offers for a word that is not finished yet: models, runs, strategies, rules and keys of values.

Each function returns the words that begin with what is typed. Without any, shells offer the names of files. A shell
shows no errors: where something cannot be read, there are no words. Names of files and of others' runs reach the shell,
and zsh evaluates them: words with characters that mean something there are not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from trainchart.errors import TrainchartError
from trainchart_runtime.cluster import ROLES

if TYPE_CHECKING:
    from trainchart.reports.report import Report

Words = Callable[[typer.Context, str], list[str]]
_HARMLESS = re.compile(r"[\w.:/=@%+,*-]+", re.ASCII)


def _offer(list_words: Callable[[typer.Context], Iterable[str]]) -> Words:
    """Make a completion of a function from the command line so far to all words."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        words: list[str] = []
        with suppress(TrainchartError, OSError):
            words.extend(_choose(list_words(ctx), incomplete))
        return words

    return complete


def _choose(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete) and _HARMLESS.fullmatch(word)]


@_offer
def models(ctx: typer.Context) -> Iterable[str]:
    from trainchart.actions.support.project import list_specs

    del ctx
    return [path.stem for path in list_specs()]


@_offer
def runs(ctx: typer.Context) -> Iterable[str]:
    return _list_runs(ctx)


def _list_runs(ctx: typer.Context) -> Iterable[str]:
    from trainchart.actions.list import list_reports
    from trainchart.actions.support.cluster_access import Place
    from trainchart.local.io.run_report import find_runs
    from trainchart.reports.report import CLUSTER

    place = Place(ctx.params.get("context") or "", ctx.params.get("namespace") or "")
    runs_folder = ctx.params["runs_folder"]
    if not (place.context or place.namespace):
        yield from (folder.name for folder in find_runs(runs_folder))
    reports = list_reports(place, runs_folder, lambda note: None, everywhere=False)
    yield from (report.key.release for report in reports if report.origin == CLUSTER)


@_offer
def local_runs(ctx: typer.Context) -> Iterable[str]:
    from trainchart.local.io.run_report import find_runs

    return [folder.name for folder in find_runs(ctx.params["runs_folder"])]


@_offer
def other_runs(ctx: typer.Context) -> Iterable[str]:
    """Offer the runs that are not named yet."""
    named = {*(ctx.params.get("runs") or ()), *ctx.args}
    return [name for name in _list_runs(ctx) if name not in named]


@_offer
def releases(ctx: typer.Context) -> Iterable[str]:
    return [report.key.release for report in _list_releases(ctx)]


@_offer
def succeeded_releases(ctx: typer.Context) -> Iterable[str]:
    """Offer the releases whose run has succeeded."""
    from trainchart_runtime.run.state import SUCCEEDED

    return [report.key.release for report in _list_releases(ctx) if report.phase == SUCCEEDED]


def _list_releases(ctx: typer.Context) -> Iterable[Report]:
    from trainchart.actions.list import list_cluster
    from trainchart.actions.support.cluster_access import Place

    return list_cluster(Place(*_read_place(ctx)), everywhere=False)


@_offer
def servers(ctx: typer.Context) -> Iterable[str]:
    """Offer the releases that are model servers."""
    from trainchart.actions.support.cluster_access import Place, open_cluster
    from trainchart.actions.support.model_servers import list_servers

    api, namespace = open_cluster(Place(*_read_place(ctx)))
    return [name for _, name in list_servers(api, namespace)]


def _read_place(ctx: typer.Context) -> tuple[str, str]:
    return ctx.params.get("context") or "", ctx.params.get("namespace") or ""


@_offer
def families(ctx: typer.Context) -> Iterable[str]:
    from trainchart.actions.support.family_charts import find_families
    from trainchart.actions.support.packs import read_packs
    from trainchart.actions.support.project import find_project

    del ctx
    return find_families(read_packs(find_project()))


@_offer
def strategies(ctx: typer.Context) -> Iterable[str]:
    from trainchart.plan.strategies import STRATEGIES

    del ctx
    return STRATEGIES


@_offer
def roles(ctx: typer.Context) -> Iterable[str]:
    del ctx
    return ROLES


@_offer
def pods(ctx: typer.Context) -> Iterable[str]:
    from trainchart.local.io.release_folder import RUN_FILE, read_record
    from trainchart.local.io.run_report import find_runs

    name, runs_folder = ctx.params.get("release") or (ctx.args[0] if ctx.args else ""), ctx.params["runs_folder"]
    found = [folder for folder in find_runs(runs_folder) if name in ("", folder.name)]
    return [pod["label"] for pod in read_record(found[-1] / RUN_FILE).get("pods", ())] if found else []


@_offer
def rules(ctx: typer.Context) -> Iterable[str]:
    from trainchart.actions.rules import list_rules

    del ctx
    return [rule.id for rule in list_rules()]


@_offer
def spec_keys(ctx: typer.Context) -> Iterable[str]:
    from trainchart.actions.plan import explain_key

    return [explanation.key for explanation in explain_key(ctx.params.get("model") or "", "")]


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the keys of values, and behind a whole key the words that it may have."""
    from trainchart.actions.plan import list_values

    # Before an option that still lacks its value, the arguments are not told apart.
    target = ctx.params.get("target") or (ctx.args[0] if ctx.args else "")
    key, has_sign, _ = incomplete.partition("=")
    words: list[str] = []
    with suppress(TrainchartError, OSError, ValueError):
        values = list_values(target)
        words += [f"{key}={word}" for word in values.get(key, ())] if has_sign else [f"{each}=" for each in values]
    return _choose(words, incomplete)
