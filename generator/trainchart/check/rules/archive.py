"""Rules about which files end up in a chart's archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trainchart.archive.ignore import IGNORE_FILE, drop_ignored
from trainchart.archive.subcharts import open_packed
from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import VALUES_FILE
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, find_keys, parse_mapping
from trainchart.secret_files import find_chart_secret
from trainchart.secret_names import names_secret

_LEFTOVERS = re.compile(
    r"(?:.*/)?(?:\.git|\.svn|\.hg|\.idea|\.vscode|__pycache__|\.pytest_cache|node_modules)/.*"
    r"|(?:.*/)?(?:[^/]+\.(?:swp|swo|bak|orig|rej|tmp|pyc)|[^/]+~|\.DS_Store|Thumbs\.db)"
)
_OWN_TESTS = re.compile(r"tests?/.*|[^/]+\.tgz")
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)=(.+)")
_FROM_SECRET = "let the pods read it from a Secret: env.NAME.valueFrom, and $(NAME) in a command"
_SHORTEST = 4
"""Characters of a password; less is a switch or a number."""
_SIZE_LIMIT = 1024 * 1024
"""A release is a Secret, which holds one mebibyte."""


def check_archive(given: CheckInput) -> Iterator[Finding]:
    """Name the files that `helm package` would carry along for nothing."""
    if IGNORE_FILE not in given.files and not given.is_generated:
        yield Finding("there is no .helmignore", path=IGNORE_FILE, severity=Severity.info)
    try:
        kept = drop_ignored(given.files)
    except ToolError as error:
        yield Finding(error.message, path=IGNORE_FILE, hint=error.hint)
        return
    for path in kept:
        if path.startswith("charts/"):
            continue
        if _LEFTOVERS.fullmatch(path):
            yield Finding("is a leftover that would go into the archive", path=path, hint=f"name it in {IGNORE_FILE}")
        elif _OWN_TESTS.fullmatch(path):
            yield Finding(
                "is for the chart's authors, not for the archive", path=path, hint=f"name it in {IGNORE_FILE}"
            )
    size = sum(map(len, kept.values()))
    if size > _SIZE_LIMIT:
        # What Helm stores is compressed, so this is no more than a hint.
        yield Finding(
            f"the chart holds {size // 1024} KiB, and Helm keeps each release in a Secret of at most 1024 KiB",
            severity=Severity.info,
        )


def check_no_secrets(given: CheckInput) -> Iterator[Finding]:
    """Name the files that hold passwords, tokens or keys, of those that `helm package` would carry along."""
    try:
        kept = drop_ignored(given.files)
    except ToolError:
        return  # the rule archive-clean says so
    for path, content in open_packed(kept, mark=".tgz").items():
        found = find_chart_secret(path, content)
        if found is not None:
            hint = f"name it in {IGNORE_FILE}" if not found.line else _FROM_SECRET
            hint = hint if path in kept else "package the subchart again without it"
            yield Finding(
                f"{found.reason}, which everyone who pulls the chart can read", path=path, line=found.line, hint=hint
            )
        for line, name in _find_named_secrets(content) if path == VALUES_FILE else ():
            what = f"{name} is given as plain text, which everyone who pulls the chart can read"
            yield Finding(what, path=path, line=line, hint=_FROM_SECRET)


def _find_named_secrets(content: bytes) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable and flag in values.yaml that is called a secret, and given as plain text."""
    text = content.decode(errors="replace")
    try:
        values = parse_mapping(text)
    except YamlError:
        return  # another rule says so
    lines = {place.path: place.line for place in find_keys(text)}
    for path, value in _walk(values, ()):
        if path[-2:-1] == ("env",) and isinstance(value, str):
            name, given = path[-1], value
        else:
            flag = _FLAG.fullmatch(value) if isinstance(value, str) and {"command", "args"} & set(path) else None
            name, given = flag.groups() if flag else ("", "")
        words = [word for word in re.split(r"[-_.]+", name.lower()) if word]
        if words and names_secret(words) and len(given) >= _SHORTEST and not given.startswith(("/", "$(")):
            yield next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 0), name


def _walk(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, str(key)), value
        yield from _walk(value, (*path, str(key)))


RULES = (
    Rule(
        "archive-clean",
        "Editor leftovers and version-control folders do not belong in what others install.",
        check_archive,
        "https://helm.sh/docs/chart_template_guide/helm_ignore_file/",
        severity=Severity.warning,
        others=Severity.warning,
        scope=Scope.charts,
    ),
    Rule(
        "secrets-absent",
        "Everyone who can pull a chart can read its passwords and keys.",
        check_no_secrets,
        "docs/security.md",
        others=Severity.warning,
        scope=Scope.charts,
    ),
)
