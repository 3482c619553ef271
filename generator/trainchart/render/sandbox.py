"""The language of packs' templates: a small part of Jinja, in which nothing reaches out, grows without bound or hangs.

What a template of a pack may hold is a list of Jinja's nodes: nothing is called, imported or computed, so that values
never grow. Loops run over what the plan offers; each turn of one is counted, and so is each character that is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from trainchart.render.templates import SYNTAX

BUDGET = 1_000_000
"""Turns of loops by their length, and characters: more than ten times what a chart needs."""
_SUPER = 1000
"""What it costs to write the block below."""
_DEPTH = 50
"""How deep a template nests."""
_FILTERS = ("default", "first", "join", "last", "length", "lower", "trim", "upper")
_TESTS = ("defined", "undefined", "none", "in", "true", "false")
_PARTS = (
    *(nodes.Template, nodes.Extends, nodes.Block, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign),
    *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Test),
    *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.Neg, nodes.Call),
    nodes.Keyword,
)
_WORDS: dict[type[nodes.Node], str] = {
    nodes.AssignBlock: "set with endset",
    nodes.CallBlock: "call",
    nodes.Concat: "~",
    nodes.FilterBlock: "a filter block",
    nodes.FromImport: "import",
    nodes.NSRef: "set of an attribute",
    nodes.Slice: "a slice",
}
_HINT = (
    f"templates of packs can use output, if, for, set, block and the filters {', '.join(_FILTERS)}; Helm has the rest"
)


class SpentTooMuch(Exception):
    """Templates repeat or write more than any chart needs."""


class PackEnvironment(ImmutableSandboxedEnvironment):
    """Renders templates by name: those of `trusted`, and those of packs, which have less of Jinja."""

    def __init__(self, sources: Mapping[str, str], trusted: Collection[str], below: Mapping[str, str]) -> None:
        def load(name: str) -> tuple[str, str, None] | None:
            # With the name as the file, tracebacks tell which template a line is of.
            return (sources[name], name, None) if name in sources else None

        super().__init__(loader=jinja2.FunctionLoader(load), cache_size=-1, finalize=self._write, **SYNTAX)
        self.globals.clear()
        self.filters |= {"join": self._join, "lower": self._lower, "trim": self._trim, "upper": self._upper}
        self._trusted = trusted
        self._below = below
        self._left = BUDGET

    def start_chart(self) -> None:
        """Let what follows spend as much as one chart may."""
        self._left = BUDGET

    def spend(self, amount: int) -> bool:
        """Count `amount`. Raises SpentTooMuch when too much was counted."""
        self._left -= amount
        if self._left < 0:
            raise SpentTooMuch
        return True

    @staticmethod
    def end_line(text: str) -> str:
        """Return whole lines."""
        return text if not text or text.endswith("\n") else f"{text}\n"

    def join_path(self, template: str, parent: str) -> str:
        """Return the template that `parent`, which overrides blocks of its own path, extends."""
        return self._below.get(parent, template)

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        if name not in self._trusted:
            self._count(source)
            self._join_lines(source)
        return super()._generate(source, name, filename, defer_init)

    def _count(self, tree: nodes.Template) -> None:
        """Let blocks and turns of loops be counted where they start, by what is in them."""
        for part in list(walk(tree)):
            if isinstance(part, nodes.For | nodes.Block):
                weight = sum(map(_weigh, walk(part)))
                part.body.insert(0, nodes.ExprStmt(_make_spend(weight), lineno=part.lineno))
                if isinstance(part, nodes.For) and part.test is not None:
                    part.test = nodes.And(_make_spend(weight), part.test, lineno=part.lineno)

    def _join_lines(self, tree: nodes.Template) -> None:
        """Let super() on a line of its own write what it overrides, and no empty line behind that."""
        for output in (part for part in walk(tree) if isinstance(part, nodes.Output)):
            before = "\n"
            for index, (part, behind) in enumerate(itertools.pairwise(output.nodes)):
                data = behind.data if isinstance(behind, nodes.TemplateData) else ""
                if isinstance(part, nodes.Call) and before.endswith("\n") and data.startswith("\n"):
                    end_line = nodes.EnvironmentAttribute("end_line")
                    output.nodes[index] = nodes.Call(end_line, [part], [], None, None, lineno=part.lineno)
                    output.nodes[index + 1] = nodes.TemplateData(data[1:], lineno=behind.lineno)
                before = part.data if isinstance(part, nodes.TemplateData) else ""
        tree.set_environment(self)

    @staticmethod
    @jinja2.pass_context
    def _write(context: Context, value: Any) -> str:
        """Return the text of a value in a template, counted in those of packs."""
        environment = context.environment
        text = _text(value)
        if isinstance(environment, PackEnvironment) and context.name not in environment._trusted:
            environment.spend(len(text))
        return text

    def _join(self, values: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
        """Return the texts of a list with a separator between them, counted before they are written."""
        texts = [_text(self.getattr(value, attribute) if attribute else value) for value in values]
        self.spend(sum(map(len, texts)) + len(separator) * len(texts))
        return separator.join(texts)

    def _lower(self, value: Any) -> str:
        return self._counted(value).lower()

    def _trim(self, value: Any) -> str:
        return self._counted(value).strip()

    def _upper(self, value: Any) -> str:
        return self._counted(value).upper()

    def _counted(self, value: Any) -> str:
        text = _text(value)
        self.spend(len(text))
        return text


def _text(value: Any) -> str:
    """Return the text of what a template writes. Raises TypeError for what has none, Jinja's error for undefined."""
    text = str(value)
    if not isinstance(value, str | int | float):
        raise TypeError(f"{type(value).__name__} is not a string or number")
    return text


def _make_spend(amount: int) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute("spend"), [nodes.Const(amount)], [], None, None)


def _weigh(node: nodes.Node) -> int:
    """Return what a part of a template may cost each time."""
    if isinstance(node, nodes.TemplateData):
        return len(node.data)
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        return 1 + len(node.value)
    return _SUPER if isinstance(node, nodes.Call) else 1


def find_foreign(tree: nodes.Template) -> Iterator[tuple[int, str, str]]:
    """Yield line, message and hint of all that a template of a pack may not have."""
    for node, depth in _walk_deep(tree):
        if depth > _DEPTH:
            yield node.lineno, f"nested more than {_DEPTH} levels deep", "split it"
            return
        what = _name_foreign(node)
        if what:
            yield node.lineno, f"templates of packs cannot use {what}", _HINT


def calls_super(block: nodes.Block) -> bool:
    """Whether a block writes what it overrides."""
    return any(isinstance(node, nodes.Call) for node in walk(block))


def _name_foreign(node: nodes.Node) -> str:
    """Return what a node is called that is not a part of the language; empty for one that is."""
    if type(node) not in _PARTS:
        return _WORDS.get(type(node), type(node).__name__.lower())
    if isinstance(node, nodes.Call):
        is_super = isinstance(node.node, nodes.Name) and node.node.name == "super"
        return "" if is_super and not any(node.iter_child_nodes(exclude=("node",))) else "calls except super()"
    if isinstance(node, nodes.Filter):
        return "" if node.name in _FILTERS and node.node is not None else f"the filter {node.name}"
    if isinstance(node, nodes.Test):
        return "" if node.name in _TESTS else f"the test {node.name}"
    if isinstance(node, nodes.List | nodes.Tuple) and getattr(node, "ctx", "load") == "load":
        return "" if all(isinstance(item, nodes.Const) for item in node.items) else "lists of non-constants"
    if isinstance(node, nodes.For) and node.recursive:
        return "recursive loops"
    if isinstance(node, nodes.Name) and node.name == "self":
        return "self"
    return ""


def walk(tree: nodes.Node) -> Iterator[nodes.Node]:
    """Yield all nodes of a template."""
    return (node for node, _ in _walk_deep(tree))


def _walk_deep(tree: nodes.Node) -> Iterator[tuple[nodes.Node, int]]:
    """Yield all nodes and how deep they are, without the recursion that a hostile template would exhaust."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in node.iter_child_nodes()]
