"""index.yaml of a chart repository: one version is added, and every other byte stays as it is. Pure.

Indexes grow to many megabytes, of which PyYAML reads about one a second and writes less. So one that is written
in the usual style (by helm, ChartMuseum, chart-releaser or us) is cut at the lines where entries begin, and only the
entries of the version asked for are parsed. JSON and everything unusual is parsed and written again as a whole:
correct beats pretty.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.archive.chart_file import IDENTITY_ANNOTATION
from trainchart.archive.chart_keys import INDEX_KEYS, find_mistaken_chart_key, find_mistaken_key
from trainchart.chart_version import is_chart_version
from trainchart.errors import PublishError
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, dump_mapping, parse_mapping
from trainchart.publish.repository import PublishedVersion

INDEX_FILE = "index.yaml"
_TOP_LINE = re.compile(r"^[^\s#-][^\n]*$", re.MULTILINE)
_ENTRIES = re.compile(r"^entries:[ \t]*(?P<empty>\{\})?[ \t]*$", re.MULTILINE)
_API_VERSION = re.compile(r"^apiVersion:", re.MULTILINE)
_GENERATED = re.compile(r"^generated:[^\n]*$", re.MULTILINE)
_FIRST_KEY = re.compile(r"^( +)[^\s#-]", re.MULTILINE)
_PLAIN_KEY = re.compile(r"([A-Za-z]+):")
_INDEX_KEYS = frozenset(["annotations", "apiVersion", "entries", "generated", "publicKeys", "serverInfo"])
_ALIAS = re.compile("[A-Za-z0-9_-]+")
_NODE_LIMIT = 2_000_000
"""Keys and values of an index that is parsed whole: public ones of thousands of versions have half of it."""
_HEADER = r"^(?P<indent>{})(?P<quote>[\"']?)(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P=quote):[ \t]*$"
"""A chart's line; its indentation is filled in."""


_BREAK = r"\\?\n(?:\ *\n)*\ {%s,}(?=[^\s-]|-[^\ ])"
"""Where helm folds a long text: the rest is indented deeper than a chart's line, and begins no item."""
_QUOTED = rf"""(?:"(?:[^"\\\n]|\\.|{_BREAK})*"|'(?:[^'\n]|''|{_BREAK})*')"""
_PLAIN = r"""(?:-?[^\s"'\[\]{}&*!|>%@`#,?:-](?:(?!:(?:\s|$))[^\n])*)"""
_WHOLE_LINE = rf"""\ *(?:-\ +)*(?:(?:{_QUOTED}|{_PLAIN}):(?=\s|$)\ *)?
    (?:(?:{_QUOTED}|\[[^\[\]{{}}"'\#\n]*\]|{{}}|[|>][-+]?)?\ *(?:\#[^\n]*)?|{_PLAIN})(?:\n|\Z)"""
"""A line that leaves nothing open: no quote and no bracket that goes on where a chart or an item could begin."""
_OTHER_BREAK = re.compile(r"[\r\x85\u2028\u2029]|(?!\A)\ufeff")
"""What ends a line for YAML, comments included, and not for the patterns here; and a mark that YAML readers refuse."""


@dataclass(frozen=True)
class _Block:
    """The versions of one chart in the text of an index: where they begin and end, and each for itself."""

    start: int
    items: tuple[str, ...]
    indent: str
    """What stands before the dash of an item."""


@dataclass(frozen=True)
class _Layout:
    """Where the charts of an index stand in its text."""

    start: int
    end: int
    is_empty: bool
    headers: tuple[re.Match[str], ...]


def read_entry(entry: Mapping[str, Any]) -> PublishedVersion:
    """Return what an entry of an index says."""
    digest = str(entry.get("digest") or "")
    annotations = entry.get("annotations")
    identity = annotations.get(IDENTITY_ANNOTATION, "") if isinstance(annotations, Mapping) else ""
    return PublishedVersion(
        version=str(entry.get("version", "")),
        digest=digest if not digest or ":" in digest else f"sha256:{digest}",
        created=str(entry.get("created") or ""),
        identity=str(identity),
        is_deprecated=entry.get("deprecated") is True,
    )


def find_entries(text: str, chart: str) -> tuple[dict[str, Any], ...]:
    """Return all entries of a chart; an empty text has none. Raises PublishError where the text is no index."""
    if not text.strip():
        return ()
    layout = None if _is_json(text) else _find_layout(text)
    block = _find_block(text, layout, chart) if layout else None
    if layout is not None and block is None:
        return ()
    if block is not None:
        parsed = _parse_items(block.items, chart)
        if parsed is not None:
            return _require_unambiguous(parsed, chart)
    return _require_unambiguous(tuple(_entries_of(_parse_whole(text), chart)), chart)


def find_entry(text: str, chart: str, version: str) -> dict[str, Any] | None:
    """Return the entry of one version; None where the index has none."""
    if not text.strip():
        return None
    layout = None if _is_json(text) else _find_layout(text)
    block = _find_block(text, layout, chart) if layout else None
    if layout is not None and block is None:
        return None
    entries: tuple[dict[str, Any], ...] | None = None
    if block is not None:
        # The outermost are parsed too, to notice where the text was cut in the wrong place.
        chosen = {0: block.items[0], len(block.items) - 1: block.items[-1]}
        chosen |= {number: item for number, item in enumerate(block.items) if _may_say(item, version)}
        entries = _parse_items(tuple(chosen.values()), chart)
    if entries is None:
        entries = tuple(_entries_of(_parse_whole(text), chart))
    found = [entry for entry in entries if entry.get("version") == version]
    mistaken = [entry for entry in entries if find_mistaken_chart_key(entry, INDEX_KEYS)]
    return next(iter(_require_unambiguous((*found, *mistaken), chart)), None)


def _may_say(item: str, version: str) -> bool:
    """Tell whether the text of an entry may be of a version: escapes and tags hide what is written."""
    return version in item or "\\" in item or "!" in item


def _require_unambiguous(entries: tuple[dict[str, Any], ...], chart: str) -> tuple[dict[str, Any], ...]:
    """Return entries of which Helm takes the same as we do. Raises PublishError for others."""
    versions: set[str] = set()
    for entry in entries:
        version = str(entry.get("version"))
        mistaken = find_mistaken_chart_key(entry, INDEX_KEYS)
        if mistaken is not None:
            raise PublishError(f"{INDEX_FILE}: {chart} {version}: {mistaken}", hint=f"write {mistaken.meant} in it")
        if problem := _describe_skipped(entry, chart):
            raise PublishError(
                f"{INDEX_FILE}: {chart} {version}: {problem}: Helm would take another version in its place",
                hint="correct the entry, or remove it",
            )
        if version in versions:
            raise PublishError(
                f"{INDEX_FILE} has {chart} {version} twice, where one entry is expected",
                hint="keep one of them: readers take one or the other",
            )
        versions.add(version)
    return entries


def _describe_skipped(entry: Mapping[str, Any], chart: str) -> str:
    """Return why Helm skips an entry, or reads its version as another text; empty if it takes it as it is.

    Source: Metadata.Validate in pkg/chart/v2/metadata.go, which loadIndex of pkg/repo/v1/index.go calls.
    """
    if entry.get("name") != chart:
        return f"its name is {entry.get('name')!r:.80}, expected {chart}"
    version = entry.get("version")
    if not isinstance(version, str) or not is_chart_version(version):
        return "its version is not SemVer 2"
    if entry.get("type") not in (None, "", "application", "library"):
        return f"its type is {entry['type']!r:.40}, expected application or library"
    if None in _list(entry.get("maintainers")):
        return "one of its maintainers is empty"
    called: set[str] = set()
    for dependency in _list(entry.get("dependencies")):
        if not isinstance(dependency, Mapping):
            return "one of its dependencies is empty"
        name, alias = str(dependency.get("name") or ""), str(dependency.get("alias") or "")
        if alias and not _ALIAS.fullmatch(alias):
            return f"its dependency {name!r:.80} has the alias {alias!r:.80}, which is not a name"
        if (alias or name) in called:
            return f"two of its dependencies are called {alias or name!r:.80}"
        called.add(alias or name)
    return ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def add_entry(text: str, chart: str, entry: Mapping[str, Any], generated: str) -> str:
    """Return the index with a new version of a chart, newest first; an empty text is a new index.

    The caller has looked that the version is not there. Only the new lines and `generated` differ.
    """
    if not text.strip():
        return dump_mapping({"apiVersion": "v1", "entries": {chart: [dict(entry)]}, "generated": generated})
    spliced = None if _is_json(text) else _splice(text, chart, entry)
    if spliced is not None:
        return _GENERATED.sub(f'generated: "{generated}"', spliced, count=1)
    whole = _parse_whole(text)
    entries = whole.setdefault("entries", {}) or {}
    whole["entries"] = {**entries, chart: [dict(entry), *_entries_of(whole, chart)]}
    whole["generated"] = generated
    return (
        json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n" if _is_json(text) else dump_mapping(whole)
    )


def _splice(text: str, chart: str, entry: Mapping[str, Any]) -> str | None:
    layout = _find_layout(text)
    if layout is None:
        return None
    block = _find_block(text, layout, chart)
    if block is not None:
        if _parse_items((block.items[0], block.items[-1]), chart) is None:
            return None
        return text[: block.start] + _dump_item(entry, block.indent) + text[block.start :]
    if layout.is_empty:
        added = f"entries:\n  {chart}:\n{_dump_item(entry, '  ')}"
        return text[: layout.start] + added + text[layout.end :].removeprefix("\n")
    indent = layout.headers[0]["indent"] if layout.headers else "  "
    place = next((header.start() for header in layout.headers if header["name"] > chart), layout.end)
    before = text[:place] if text[:place].endswith("\n") else text[:place] + "\n"
    return f"{before}{indent}{chart}:\n{_dump_item(entry, indent)}{text[place:]}"


def _find_layout(text: str) -> _Layout | None:
    """Return where the charts stand; None where the text is not in the usual style.

    Raises PublishError for a chart that is there twice, which Helm refuses.
    """
    found = list(_ENTRIES.finditer(text))
    if len(found) != 1 or _OTHER_BREAK.search(text) or not _API_VERSION.search(text):
        return None
    if not all(_is_plain_key(line[0]) for line in _TOP_LINE.finditer(text)):
        return None
    if found[0]["empty"]:
        return _Layout(found[0].start(), found[0].end(), True, ())
    start = found[0].end() + 1
    following = _TOP_LINE.search(text, start)
    end = following.start() if following else len(text)
    first = _FIRST_KEY.search(text, start, end)
    # Lines say where entries begin only if none of them lies within a text.
    if first is None or not _leaves_nothing_open(text, len(first[1])):
        return None
    # Charts are the keys that are least indented; what is deeper belongs to their entries.
    headers = tuple(re.compile(_HEADER.format(first[1]), re.MULTILINE).finditer(text, start, end))
    outermost = re.compile(rf"^ {{0,{len(first[1])}}}[^\s#-]", re.MULTILINE)
    if sum(1 for _ in outermost.finditer(text, start, end)) != len(headers):
        return None
    names = Counter(header["name"] for header in headers)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise PublishError(f"{INDEX_FILE} lists the chart {twice[0]} twice", hint="put all its versions below one key")
    return _Layout(start, end, False, headers)


def _leaves_nothing_open(text: str, indent: int) -> bool:
    """Tell whether each line stands for itself; `indent` is that of the charts' lines."""
    line = re.compile(_WHOLE_LINE.replace("%s", str(indent + 1)), re.VERBOSE)
    place = 0
    while place < len(text):
        found = line.match(text, place)
        if found is None:
            return False
        place = found.end()
    return True


def _is_plain_key(line: str) -> bool:
    key = _PLAIN_KEY.match(line)
    return key is not None and find_mistaken_key({key[1]: None}, _INDEX_KEYS) is None


def _find_block(text: str, layout: _Layout | None, chart: str) -> _Block | None:
    if layout is None:
        return None
    ends = [*(header.start() for header in layout.headers[1:]), layout.end]
    for header, end in zip(layout.headers, ends, strict=False):
        if header["name"] == chart:
            start = header.end() + 1
            dash = re.compile(r"^ *(?=- )", re.MULTILINE).search(text, start, end)
            if dash is None or dash.start() != start:
                # No list stands there: a text that is no entry has the whole index parsed.
                return _Block(start, ("",), "")
            starts = [found.start() for found in re.finditer(rf"(?m)^{dash[0]}- ", text[start:end])]
            block = text[start:end]
            items = tuple(block[first:last] for first, last in zip(starts, [*starts[1:], None], strict=True))
            return _Block(start, items, dash[0])
    return None


def _parse_items(items: tuple[str, ...], chart: str) -> tuple[dict[str, Any], ...] | None:
    """Return the entries that the texts hold; None where one is no entry of that chart, and so was cut wrongly."""
    try:
        found = parse_mapping("entries:\n" + "".join(items)).get("entries")
    except YamlError:
        return None
    if not isinstance(found, list) or len(found) != len(items):
        return None
    are_entries = all(isinstance(entry, dict) and entry.get("name") == chart and "version" in entry for entry in found)
    return tuple(found) if are_entries else None


def _parse_whole(text: str) -> dict[str, Any]:
    try:
        whole = (
            parse_json(text, are_keys_unique=True) if _is_json(text) else parse_mapping(text, node_limit=_NODE_LIMIT)
        )
    except (ValueError, YamlError) as error:
        hint = "check the address: a login page may answer instead; or correct the file (see helm repo index)"
        raise PublishError(f"{INDEX_FILE} cannot be read: {error}", hint=hint) from error
    if (
        not isinstance(whole, dict)
        or not isinstance(whole.get("entries", {}), dict | None)
        or "apiVersion" not in whole
    ):
        raise PublishError(f"{INDEX_FILE} is not the index of a chart repository", hint="check the address")
    mistaken = find_mistaken_key(whole, _INDEX_KEYS)
    if mistaken is not None:
        raise PublishError(f"{INDEX_FILE}: {mistaken}", hint=f"write {mistaken.meant}, or leave it out")
    return dict(whole)


def _entries_of(whole: Mapping[str, Any], chart: str) -> Iterator[dict[str, Any]]:
    entries = (whole.get("entries") or {}).get(chart)
    yield from (entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()


def _dump_item(entry: Mapping[str, Any], indent: str) -> str:
    lines = dump_mapping(entry).splitlines()
    rest = [f"{indent}  {line}" if line else line for line in lines[1:]]
    return "\n".join([f"{indent}- {lines[0]}", *rest]) + "\n"


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] == "{"
