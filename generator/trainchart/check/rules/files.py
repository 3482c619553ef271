"""Rules about the files of a chart, whatever they render to."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.archive.lock import (
    LOCK_FILE,
    WAIVER_FILE,
    DriftKind,
    find_drift,
    name_locked_model,
    parse_lock,
    restore_hint,
)
from trainchart.check.finding import CheckInput, Finding
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import yaml_sources
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import find_duplicate_keys

_DRIFT = {
    DriftKind.changed: "was changed by hand since it was generated",
    DriftKind.missing: "was generated but is missing",
    DriftKind.added: "was added by hand",
}


def check_drift(given: CheckInput) -> Iterator[Finding]:
    """Compare the files with trainchart.lock.yaml; charts without one are not generated ones."""
    if LOCK_FILE not in given.files:
        return
    try:
        lock = parse_lock(given.files[LOCK_FILE].decode(errors="replace"))
    except ToolError as error:
        yield Finding(error.message, path=LOCK_FILE, hint=error.hint)
        return
    model = name_locked_model(lock)
    for drift in find_drift(lock, given.files):
        is_missing = drift.kind is DriftKind.missing
        hint = f"change the model spec instead, then run: trainchart generate {model} --overwrite"
        if is_missing:
            hint = restore_hint([drift.path], lock)
        yield Finding(_DRIFT[drift.kind], path=drift.path, hint=hint, stands_alone=is_missing)


def check_unique_keys(given: CheckInput) -> Iterator[Finding]:
    """Find keys that occur twice in one mapping, in the chart's own YAML and in what templates render to."""
    for path, text in yaml_sources(given, without=("templates/", "charts/", WAIVER_FILE)):
        for duplicate in find_duplicate_keys(text):
            yield Finding(f"the key {duplicate.key!r} occurs twice in one mapping", path=path, line=duplicate.line)
    if not given.is_chart:
        return
    for label, rendering in given.renderings():
        for path, text in rendering.texts.items():
            for duplicate in find_duplicate_keys(text):
                yield Finding(f"renders the key {duplicate.key!r} twice in one mapping", path=path, values=label)


RULES = (
    Rule(
        "lock-drift",
        "Edits of generated files are lost the next time the chart is generated.",
        check_drift,
        "docs/architecture.md",
        scope=Scope.charts,
    ),
    Rule(
        "keys-unique",
        "A key that is written twice silently loses its first value.",
        check_unique_keys,
        "https://yaml.org/spec/1.2.2/#nodes",
    ),
)
