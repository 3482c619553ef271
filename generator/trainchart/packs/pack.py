"""A pack: its files, read and checked. A pack is data; nothing of it is ever executed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from trainchart.archive.lock import hash_tree
from trainchart.archive.read import is_safe_name
from trainchart.errors import Problem, SpecError
from trainchart.families.family import Family, parse_family
from trainchart.packs.locks import make_locked_defaults
from trainchart.packs.policy import POLICY_FILE, Policy, parse_policy
from trainchart.packs.section_file import parse_section
from trainchart.packs.source import PackSource
from trainchart.packs.templates import BASES, TEMPLATES, PackTemplates, parse_templates
from trainchart.plan.layers import ANY_ENTRY, STRATEGY_SECTION
from trainchart.plan.strategies import STRATEGIES
from trainchart.spec.chart import VALUES_KEY, Version
from trainchart.spec.document import Document, parse_document
from trainchart.spec.model import NAME_PATTERN
from trainchart.spec.section import Line, Section
from trainchart_runtime.cluster import ROLES

PACK_FILE = "pack.yaml"
DEFAULTS_FILE = "defaults.yaml"
FAMILIES = "families"
_KNOWN = (PACK_FILE, DEFAULTS_FILE, POLICY_FILE, TEMPLATES, BASES, FAMILIES)
_PROSE = ("README", "LICENSE", "CHANGELOG", "NOTICE")
_OF_GIT = (".gitignore", ".gitattributes")
_IDENTITY = ("apiVersion", "kind", "name")
"""Keys that say which model a spec is."""


class PackFile(Section):
    """What a pack is."""

    api_version: Literal["trainchart/v1"]
    """Version of the format."""
    kind: Literal["Pack"]
    """Kind of file."""
    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    """Name of the pack: lower-case letters, digits and dashes."""
    version: Version
    """SemVer version of the pack."""
    description: Line = ""
    """What the pack is for."""
    extends: list[PackSource] = Field(default_factory=list)
    """Packs that this one builds on, the weakest first."""


@dataclass(frozen=True)
class Pack:
    """One layer between the built-in defaults and model specs."""

    name: str
    version: str
    description: str
    extends: tuple[PackSource, ...]
    place: str
    """What its files are called in messages and origins: a path, or the address of a published pack."""
    path: str
    """The folder or archive on this machine that it was read from."""
    defaults: Document | None
    """What the pack says of every model; None where it has no such file."""
    policy: Policy
    """What no stronger layer can change."""
    templates: PackTemplates | None
    """Templates that it adds or changes; None where it has none."""
    families: tuple[Family, ...]
    """Kinds of charts that it brings."""
    family_defaults: Mapping[str, Document]
    """What the pack says of the values of every chart of a family, below `values`, by the name of the family."""
    family_templates: Mapping[str, PackTemplates]
    """Templates that it adds to charts of a family of another pack, or changes, by the name of the family."""
    sha256: str
    """Of all files of the pack, names and contents."""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def layers(self) -> tuple[Document, ...]:
        """The pack's defaults, and above them the values that it locks."""
        locked = make_locked_defaults(self.policy.locks, f"pack {self.title}")
        return tuple(layer for layer in (self.defaults, locked) if layer is not None)


def parse_pack(files: Mapping[str, bytes], place: str, path: str = "") -> Pack:
    """Return the pack of these files (path within the pack → content).

    `place` names the pack in messages; `path` is where it lies on this machine, if that is elsewhere.

    Raises:
        SpecError: a file is missing, unknown or wrong; every problem with its file and line.
    """
    if PACK_FILE not in files:
        hint = "a pack is a folder with a pack.yaml; start one with trainchart pack init"
        raise SpecError(f"{place} is not a pack: it has no {PACK_FILE}", hint=hint)
    unknown = (*_find_unsafe(files, place), *_find_unknown(files, place))
    if unknown:
        raise SpecError(f"{place} contains files that are not part of a pack", problems=unknown)
    about = parse_section(_text(files, PACK_FILE, place), f"{place}/{PACK_FILE}", PackFile, "pack")
    layer = f"pack {about.name} {about.version}"
    defaults, family_defaults = _split_families(
        _parse_defaults(_text(files, DEFAULTS_FILE, place), f"{place}/{DEFAULTS_FILE}", layer)
    )
    families, family_templates = _parse_families(files, place, layer, path or place)
    text = _text(files, POLICY_FILE, place)
    policy = Policy() if _says_nothing(text) else parse_policy(text, f"{place}/{POLICY_FILE}", layer)
    return Pack(
        about.name,
        about.version,
        about.description,
        tuple(about.extends),
        place,
        path or place,
        defaults,
        policy,
        parse_templates(files, f"{about.name} {about.version}", place, path or place),
        families,
        family_defaults,
        family_templates,
        hash_tree(files),
    )


def _parse_families(
    files: Mapping[str, bytes], place: str, layer: str, path: str
) -> tuple[tuple[Family, ...], dict[str, PackTemplates]]:
    """Return the families that a pack brings, and its templates for others: of these it has nothing else."""
    own: dict[str, dict[str, bytes]] = {}
    for file, content in files.items():
        folder, _, below = file.partition("/")
        name, _, rest = below.partition("/")
        if folder == FAMILIES:
            own.setdefault(name, {})[rest] = content
    families = []
    templates = {}
    for name, content_by_path in sorted(own.items()):
        where = f"{place}/{FAMILIES}/{name}"
        if not re.fullmatch(NAME_PATTERN, name):
            hint = "use lower-case letters, digits and dashes, at most 40 characters"
            raise SpecError(f"{where} is not a valid family name", hint=hint)
        changes = None
        if all(file.split("/")[0] in (TEMPLATES, BASES) for file in content_by_path):
            changes = parse_templates(content_by_path, layer.removeprefix("pack "), where, path)
        if changes is None:
            families.append(parse_family(content_by_path, name, where, layer))
        else:
            templates[name] = changes
    return tuple(families), templates


def _split_families(defaults: Document | None) -> tuple[Document | None, dict[str, Document]]:
    """Return the defaults of models, and those of the values of each family."""
    found: dict[str, Document] = {}
    if defaults is None or FAMILIES not in defaults.tree:
        return defaults, found
    families = defaults.tree[FAMILIES] or {}
    if not isinstance(families, Mapping):
        raise SpecError("the defaults are not valid", problems=(_not_a_mapping(defaults, (FAMILIES,)),))
    for name, values in families.items():
        if not isinstance(values, Mapping):
            raise SpecError("the defaults are not valid", problems=(_not_a_mapping(defaults, (FAMILIES, name)),))
        origins = {
            (VALUES_KEY, *path[2:]): origin for path, origin in defaults.origins.items() if path[:2] == (FAMILIES, name)
        }
        found[name] = Document({VALUES_KEY: values}, {(): defaults.origins[()], **origins})
    rest = {key: value for key, value in defaults.tree.items() if key != FAMILIES}
    return Document(rest, defaults.origins), found


def _find_unsafe(files: Mapping[str, bytes], place: str) -> Iterator[Problem]:
    """Yield names that an archive cannot hold, or with which two different packs could have one hash."""
    for path in files:
        if not is_safe_name(path):
            yield Problem(f"the name {path!r} is not safe", place, "rename the file")


def _find_unknown(files: Mapping[str, bytes], place: str) -> Iterator[Problem]:
    """Yield files that nothing would read, as under a misspelt name: a rule that is not there guards nothing."""
    for top in sorted({path.split("/")[0] for path in files}):
        if top not in (*_KNOWN, *_OF_GIT) and not top.startswith(_PROSE):
            close = difflib.get_close_matches(top, _KNOWN, n=1)
            hint = f"did you mean {close[0]}?" if close else f"a pack has {', '.join(_KNOWN)} and a README.md"
            yield Problem(f"unknown file or folder {top}", f"{place}/{top}", hint)


def _parse_defaults(text: str, file: str, layer: str) -> Document | None:
    """Return the defaults in `text`; None where it says nothing."""
    if _says_nothing(text):
        return None
    defaults = parse_document(text, file=file, layer=layer, hint=f"{DEFAULTS_FILE} has the keys of a model spec")
    problems = tuple(_find_misplaced(defaults))
    if problems:
        raise SpecError(f"the defaults of {layer} are not valid", problems=problems)
    return defaults


def _says_nothing(text: str) -> bool:
    return all(line.startswith("#") or not line.strip() for line in text.splitlines())


def _text(files: Mapping[str, bytes], name: str, place: str) -> str:
    try:
        return files.get(name, b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = files[name].count(b"\n", 0, error.start) + 1
        raise SpecError(f"{place}/{name}:{line}: not UTF-8 text", hint="save the file as UTF-8") from error


def _find_misplaced(defaults: Document) -> Iterator[Problem]:
    """Yield what would be no default of anything: identity, unknown roles and strategies, texts where mappings go.

    What the keys hold is checked where the layers are merged, by the same rules as in a spec.
    """
    yield from _misplaced_at(defaults, (), defaults.tree)
    strategies = defaults.tree.get(STRATEGY_SECTION)
    if not isinstance(strategies, Mapping | None):
        yield _not_a_mapping(defaults, (STRATEGY_SECTION,))
        return
    for name, section in (strategies or {}).items():
        place = (STRATEGY_SECTION, name)
        if name not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            yield Problem(f"unknown strategy {name}", str(defaults.origins[place]), f"known here: {known}")
        elif not isinstance(section, Mapping | None):
            yield _not_a_mapping(defaults, place)
        else:
            yield from _misplaced_at(defaults, place, section or {})


def _misplaced_at(defaults: Document, place: tuple[str, ...], tree: Mapping[str, Any]) -> Iterator[Problem]:
    for key in _IDENTITY:
        if key in tree:
            where = str(defaults.origins[(*place, key)])
            yield Problem(f"{'.'.join((*place, key))} belongs to one model", where, "remove it from the defaults")
    for section in ("roles", "volumes"):
        entries = tree.get(section)
        if not isinstance(entries, Mapping | None):
            yield _not_a_mapping(defaults, (*place, section))
            continue
        for name, entry in (entries or {}).items():
            path = (*place, section, name)
            if section == "roles" and name not in (ANY_ENTRY, *ROLES):
                known = ", ".join((f'"{ANY_ENTRY}"', *ROLES))
                yield Problem(f"unknown role {name}", str(defaults.origins[path]), f"known here: {known}")
            elif not isinstance(entry, Mapping | None):
                yield _not_a_mapping(defaults, path)


def _not_a_mapping(defaults: Document, path: tuple[str, ...]) -> Problem:
    hint = "expected a mapping of keys to values"
    return Problem(f"{'.'.join(path)} is not a mapping", str(defaults.origins[path]), hint)
