"""Rules about which files end up in a chart's archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trainchart.archive.ignore import IGNORE_FILE, drop_ignored
from trainchart.archive.subcharts import is_packed, open_packed
from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import mapping_at
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import VALUES_FILE
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, find_duplicate_keys, find_keys, parse_documents
from trainchart.secret_files import as_text, find_chart_secret
from trainchart.secret_names import holds_command_login, holds_login, is_secret_name, split_name

_LEFTOVERS = re.compile(
    r"(?:.*/)?(?:\.git|\.svn|\.hg|\.idea|\.vscode|__pycache__|\.pytest_cache|node_modules)/.*"
    r"|(?:.*/)?(?:[^/]+\.(?:swp|swo|bak|orig|rej|tmp|pyc)|[^/]+~|\.DS_Store|Thumbs\.db)"
)
_OWN_TESTS = re.compile(r"tests?/.*|[^/]+\.tgz")
_ABOUT = ("Chart.yaml", "Chart.lock", "requirements.yaml", "requirements.lock")
_VALUES = re.compile(r"(?:charts/[^/]+/)*(?:ci/)?[^/]*values[^/]*\.ya?ml")
_PLAIN_PAIR = re.compile(r"""\s*(?:-\s+)?["']?(?P<name>[\w.-]+)["']?\s*:\s*["']?(?P<value>[^\s"'#{\[&*!|>][^\s"']*)""")
"""A key and its text on a line of a file that is not YAML."""
_FLAG = re.compile(
    r"""(?m)(?:^|[\s"'])--?(?P<name>[A-Za-z][\w.-]*)(?:=["']?(?P<joined>[^\s"']+)|\s+["']?(?P<apart>[^\s"'-][^\s"']*))"""
)
"""In words of a command, one a line; a word may be a whole command of a shell."""
_COMMANDS = {"command", "args"}
_REFERENCE = re.compile(r"/|\$[({A-Za-z_]|\{\{|<")
"""What stands in a command for what is elsewhere."""
_SWITCHES = ("add", "allow", "ask", "no", "prompt", "skip", "use", "with", "without")
"""Begin the names of flags that take no value."""
_FROM_SECRET = "let the pods read it from a Secret: env.NAME.valueFrom, and $(NAME) in a command"
_SECRET_APART = "create the Secret on the cluster, apart from the chart"
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
        if is_packed(path.replace(".tgz/", "/")):
            yield Finding(
                "was not searched for passwords: it is too large, or cannot be read",
                path=path,
                hint="unpack it in charts/",
            )
            continue
        found = find_chart_secret(path, content)
        if found is not None:
            hint = f"name it in {IGNORE_FILE}" if not found.line else _FROM_SECRET
            hint = hint if path in kept else "package the subchart again without it"
            yield Finding(
                f"{found.reason}, which everyone who pulls the chart can read", path=path, line=found.line, hint=hint
            )
        for line, text in enumerate(content.decode(errors="replace").split("\n"), start=1) if path in _ABOUT else ():
            if holds_login(text):
                what = "has an address with a password or token, which everyone who pulls the chart can read"
                yield Finding(what, path=path, line=line, hint="log in with helm repo add or helm registry login")
        if path != VALUES_FILE and _VALUES.fullmatch(path):  # of that file, other rules say what cannot be read in it
            yield from find_unsearched(path, content)
        for line, what, remedy in _find_given_secrets(content) if _VALUES.fullmatch(path) else ():
            yield Finding(f"{what}, which everyone who pulls the chart can read", path=path, line=line, hint=remedy)


def _find_given_secrets(content: bytes) -> Iterator[tuple[int, str, str]]:
    """Yield line, words and remedy for each secret that a values file gives: in variables, flags, and Secrets."""
    text = as_text(content).decode(errors="replace")
    try:
        documents = parse_documents(text)
    except YamlError:
        # Helm may read it, and so may people.
        yield from _find_in_lines(text)
        return
    lines = {place.path: place.line for place in find_keys(text)} if len(documents) == 1 else {}
    for path, value in (pair for document in documents for pair in _walk(document, ())):
        for what, remedy in _find_in_value(path, value):
            yield next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 0), what, remedy


def find_unsearched(path: str, content: bytes) -> Iterator[Finding]:
    """Yield what check_no_secrets does not see in a values file, though people may read it, and Helm too."""
    text = as_text(content).decode(errors="replace")
    try:
        parse_documents(text)
    except YamlError as error:
        what = f"was searched for passwords only by lines: {error.message}"
        yield Finding(what, path=path, line=error.line, hint="correct the YAML")
    for twice in find_duplicate_keys(text):
        what = f"has the key {twice.key} twice, of which only the last was searched for passwords"
        yield Finding(what, path=path, line=twice.line, hint="remove one of them")


def _find_in_lines(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        pair = _PLAIN_PAIR.match(line)
        if pair and _carries_secret(pair["name"], pair["value"]):
            yield number, f"{pair['name']} is given as plain text", _FROM_SECRET
        elif holds_login(line):
            yield number, "has an address with a password or token", _FROM_SECRET


def _find_in_value(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and holds_login(value):
        yield f"{'.'.join(path)} has an address with a password or token", _FROM_SECRET
    if isinstance(value, dict) and value.get("kind") == "Secret":
        held = [each for key in ("data", "stringData") for _, each in _walk(value.get(key), ())]
        if any(_is_given(str(each)) for each in held):
            yield f"the Secret {mapping_at(value, 'metadata').get('name')} is given with its values", _SECRET_APART
    named = [(path[-1], value)] if path[-2:-1] in (("env",), ("hyperparameters",)) else []
    if path[-2:-1] == ("hyperparameters",) and split_name(path[-1])[-1:] == ["token"]:
        named = []  # such as separatorToken, of a text
    if named and isinstance(value, dict):
        named = [(str(value.get("name")), value.get("value"))]
    for name, given in named:
        if isinstance(given, str) and _carries_secret(name, given):
            yield f"{name} is given as plain text", _FROM_SECRET
    is_line = isinstance(value, str) and path[-1] in _COMMANDS
    if is_line or (isinstance(value, list) and _COMMANDS & set(path)):
        words = [value] if is_line else [word for word in value if isinstance(word, str)]
        if holds_command_login("\n".join(words)):
            yield f"{'.'.join(path)} gives a password as plain text", _FROM_SECRET
        for flag in _FLAG.finditer("\n".join(words)):
            given = flag["joined"] or flag["apart"]
            if not _REFERENCE.match(given) and _carries_secret(flag["name"], given):
                yield f"{flag['name']} is given as plain text", _FROM_SECRET


def _carries_secret(name: str, given: str) -> bool:
    words = split_name(name)
    is_switch = words[0] in _SWITCHES if words else False
    # As of --max-token.
    is_number = given.isdecimal() and words[-1:] == ["token"]
    is_other = is_switch or is_number or given.lower() in ("true", "false", "none", "null")
    return is_secret_name(name) and not is_other and _is_given(given)


def _is_given(given: str) -> bool:
    return len(given) >= _SHORTEST and not given.startswith(("/", "$("))


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
        "Anyone who can pull a chart can read its passwords and keys.",
        check_no_secrets,
        "docs/security.md",
        others=Severity.warning,
        scope=Scope.charts,
    ),
)
