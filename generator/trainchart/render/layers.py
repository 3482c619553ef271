"""Templates of packs over those of the chart family: new files, and files that override blocks of the layer below.

An override must have been written against the block that it overrides now; the pack keeps that text (bases/), and where
the block has changed, the error shows the text of then, of now, and the override.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import jinja2
from jinja2 import nodes

from trainchart.errors import Problem, SpecError
from trainchart.packs.templates import PackTemplates
from trainchart.plan.typed import suggest_word
from trainchart.render.sandbox import BUDGET, PackEnvironment, SpentTooMuch, calls_super, find_foreign, walk
from trainchart.render.templates import Block, read_blocks, read_texts

_FAILURES = (
    *(jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(MemoryError, NameError, RecursionError, SyntaxError),
)
"""What a template that makes no sense may raise, from Jinja or from the Python that Jinja makes of it."""
_OUR_NAME = "trainchart's own templates"
Family = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Source:
    """A template of one layer."""

    layer: str
    """Name of the layer, for messages."""
    name: str
    """What it is called in messages and by Jinja."""
    text: str
    blocks: Mapping[str, Block]
    writes_below: frozenset[str] = frozenset()
    """Blocks that write what they override."""


@dataclass
class LayeredTemplates:
    """The templates of all layers by their path in the chart, the weakest first; only paths that packs have."""

    sources: dict[str, list[_Source]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    """What cannot be rendered."""
    stale: list[Problem] = field(default_factory=list)
    """Overrides of blocks that have changed."""
    environment: PackEnvironment | None = None

    def render(self, variables: Mapping[str, Any]) -> dict[str, str]:
        """Return the files of the chart that packs add or change. Raises SpecError where they do not render."""
        assert self.environment is not None
        self.environment.start_chart()
        return {path: self._render(sources, variables) for path, sources in self.sources.items()}

    def _render(self, sources: list[_Source], variables: Mapping[str, Any]) -> str:
        assert self.environment is not None
        try:
            return self.environment.get_template(sources[-1].name).render(variables)
        except (SpentTooMuch, *_FAILURES) as error:
            names = {source.name for source in sources}
            raise SpecError(
                "a template of a pack does not render", problems=(_explain(error, sources[-1].name, names),)
            ) from error


def layer_templates(family: Mapping[str, str], packs: tuple[PackTemplates, ...]) -> LayeredTemplates:
    """Return the templates of `packs`, the weakest first, over those of `family`.

    Raises:
        SpecError: templates that cannot be rendered, or were written against other blocks; each with file and line.
    """
    layered = _layer(tuple(family.items()), packs)
    if layered.problems or layered.stale:
        problems = tuple(layered.problems or layered.stale)
        raise SpecError("templates of packs do not fit the chart templates", problems=problems)
    return layered


def find_bases(family: Mapping[str, str], packs: tuple[PackTemplates, ...]) -> dict[str, dict[str, str]]:
    """Return the text of each block that the last of `packs` overrides, by path and name, as it is below that pack.

    Raises:
        SpecError: templates that cannot be rendered; each with file and line.
    """
    layered = _layer(tuple(family.items()), packs)
    if layered.problems:
        raise SpecError("templates of packs do not fit the chart templates", problems=tuple(layered.problems))
    bases: dict[str, dict[str, str]] = {}
    for path, sources in layered.sources.items():
        if sources[-1].layer == packs[-1].title and len(sources) > 1:
            bases[path] = {name: _below(sources[:-1], name)[0].blocks[name].text for name in sources[-1].blocks}
    return bases


@functools.lru_cache(maxsize=16)
def _layer(family: Family, packs: tuple[PackTemplates, ...]) -> LayeredTemplates:
    layered = LayeredTemplates()
    paths = {path for pack in packs for path, _ in pack.files}
    for path, text in family:
        if path in paths:
            layered.sources[path] = [_Source(_OUR_NAME, path, text, read_blocks(text))]
    parser = PackEnvironment({}, (), {})
    for pack in packs:
        for path, text in pack.files:
            name = f"{pack.place}/{path}"
            below = layered.sources.get(path, [])
            try:
                tree = parser.parse(text, name, name)
                problems = [*_find_foreign(tree, name), *_find_misplaced(tree, name, path, below, dict(family))]
                source = _Source(pack.title, name, text, read_blocks(text), _find_super(tree))
            except _FAILURES as error:
                layered.problems.append(_explain(error, name, {name}))
                continue
            layered.problems += problems
            if below and not problems:
                layered.stale += _find_stale(pack, path, source, below)
            layered.sources.setdefault(path, []).append(source)
    if not layered.problems:
        _compile(layered, {path for path, _ in family})
    return layered


def _compile(layered: LayeredTemplates, trusted: set[str]) -> None:
    """Compile all templates, which finds the mistakes that parsing does not."""
    texts = {source.name: source.text for sources in layered.sources.values() for source in sources}
    below = {
        upper.name: lower.name for sources in layered.sources.values() for lower, upper in itertools.pairwise(sources)
    }
    layered.environment = PackEnvironment(texts, trusted, below)
    for name in texts:
        try:
            layered.environment.get_template(name)
        except _FAILURES as error:
            layered.problems.append(_explain(error, name, {name}))


def _find_foreign(tree: nodes.Template, name: str) -> Iterator[Problem]:
    return (Problem(what, f"{name}:{line}", hint) for line, what, hint in find_foreign(tree))


def _find_super(tree: nodes.Template) -> frozenset[str]:
    return frozenset(node.name for node in tree.body if isinstance(node, nodes.Block) and calls_super(node))


def _find_misplaced(
    tree: nodes.Template, name: str, path: str, below: list[_Source], family: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what an override, or a new file, has where only the other may have it."""
    parts = [node for node in tree.body if not _is_blank(node)]
    extended = parts[0] if parts and isinstance(parts[0], nodes.Extends) else None
    tops = {id(node) for node in tree.body}
    for node in walk(tree):
        if isinstance(node, nodes.Block) and id(node) not in tops:
            yield Problem(
                f"the block {node.name} is inside another tag", f"{name}:{node.lineno}", "move it out of that tag"
            )
    if not below:
        for node in parts:
            if isinstance(node, nodes.Extends):
                hint = suggest_word(path, [known for known in family if known.startswith("templates/")])
                yield Problem(f"no earlier layer has {path} to extend", f"{name}:{node.lineno}", hint)
        return
    hint = f'start with <% extends "{path}" %>, and write only the blocks that you change'
    if extended is None:
        yield Problem(f"{path} already exists in {below[-1].layer}", f"{name}:1", hint)
        return
    if not isinstance(extended.template, nodes.Const) or extended.template.value != path:
        yield Problem("a template can extend only the template with the same path", f"{name}:{extended.lineno}", hint)
    known = [block for source in below for block in source.blocks]
    for node in parts[1:]:
        if not isinstance(node, nodes.Block):
            yield Problem("an override contains only blocks", f"{name}:{_line(node)}", hint)
        elif node.name not in known:
            hint_of_name = suggest_word(node.name, known) if known else f"{path} has no blocks"
            yield Problem(f"unknown block {node.name}", f"{name}:{node.lineno}", hint_of_name)


def _find_stale(pack: PackTemplates, path: str, source: _Source, below: list[_Source]) -> Iterator[Problem]:
    """Yield overrides that were written against something else than they override now."""
    bases = read_texts(dict(pack.bases).get(path, ""))
    for block, override in source.blocks.items():
        where = f"{source.name}:{override.line}"
        lower = _below(below, block)
        if block not in bases:
            what = f"the overridden text of the block {block} is not recorded"
            yield Problem(what, where, _hint(pack, f"compare it with {lower[0].name}"))
            continue
        base = bases[block]
        if base == lower[0].blocks[block].text:
            continue
        if any(base == each.blocks[block].text for each in lower):
            if block not in source.writes_below:
                hint = f"write <%= super() %> in it, or let pack {pack.title} extend pack {lower[0].layer}"
                yield Problem(f"this drops the text of pack {lower[0].layer} in the block {block}", where, hint)
            continue
        shown = "".join(
            f"\n  {title}:\n{_indent(text)}"
            for title, text in (
                ("recorded text", base),
                (f"new text, in {lower[0].name}", lower[0].blocks[block].text),
                ("this override", override.text),
            )
        )
        yield Problem(f"the overridden block {block} has changed{shown}", where, _hint(pack, "adapt the override"))


def _hint(pack: PackTemplates, change: str) -> str:
    return f"{change}, then run: {pack.accept}" if pack.accept else "use a version of the pack for this trainchart"


def _below(sources: list[_Source], block: str) -> list[_Source]:
    """Return the sources that have a block, the strongest first."""
    return [source for source in reversed(sources) if block in source.blocks]


def _indent(text: str) -> str:
    return "\n".join(f"    | {line}" for line in text.splitlines() or ["(nothing)"])


def _is_blank(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.Output):
        return False
    return all(isinstance(part, nodes.TemplateData) and not part.data.strip() for part in node.nodes)


def _line(node: nodes.Node) -> int:
    """Return the line of a part: of a text, that where it says something."""
    if isinstance(node, nodes.Output):
        for part in node.nodes:
            if not isinstance(part, nodes.TemplateData):
                return part.lineno
            if part.data.strip():
                return part.lineno + part.data[: len(part.data) - len(part.data.lstrip())].count("\n")
    return node.lineno


def _explain(error: BaseException, name: str, names: set[str]) -> Problem:
    """Return what a failure means, with the template and line where it came up."""
    if isinstance(error, SpentTooMuch):
        what = f"loops and output of packs' templates exceed the limit ({BUDGET:,} characters)"
        return Problem(what, _place(error, name, names), "use fewer or shorter loops")
    if isinstance(error, jinja2.TemplateSyntaxError):
        return Problem(str(error.message), f"{error.name or name}:{error.lineno}", "see docs/packs.md, Templates")
    if isinstance(error, RecursionError | MemoryError | SyntaxError):
        return Problem("the template is nested too deeply", name, "split it")
    message = getattr(error, "message", None) or str(error)
    return Problem(str(message), _place(error, name, names), "see docs/packs.md, Templates, for what templates can use")


def _place(error: BaseException, name: str, names: set[str]) -> str:
    """Return template and line, which Jinja writes into the traceback."""
    found = name
    step: TracebackType | None = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file in names:
            found = f"{file}:{step.tb_lineno}"
        step = step.tb_next
    return found
