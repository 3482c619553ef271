"""Any text as a template of a pack: a file of the chart, or a refusal with a place; never another error or a hang."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainchart.errors import SpecError
from trainchart.packs.templates import PackTemplates
from trainchart.render.layers import layer_templates
from trainchart.render.templates import dump_blocks, read_texts

PATH = "templates/a.yaml"
FAMILY = {PATH: "a: 1\n<% block a %>\nb: 2\n<% endblock %>\n"}
VARIABLES = {"name": "tiny", "roles": ["ps", "worker"], "replicas": {"ps": 1, "worker": 2}, "log_volume": None}
WORDS = (
    *("<%", "%>", "<%=", "<%#", "-%>", "<%-", "{{", "}}", "\n", " ", "  ", "'", '"', "|", "(", ")", "[", "]", ".", ","),
    *("block a", "endblock", "if", "else", "elif", "endif", "for", "in", "endfor", "set", "endset", "raw", "endraw"),
    *("include", "import", "from", "macro", "endmacro", "call", "filter", "with", "extends", "super()", "self", "loop"),
    *("name", "roles", "replicas", "log_volume", "x", "1", "1_1", "0x1f", "1e9", "==", "<", "+", "*", "**", "~", "%"),
    *("not", "and", "or", "is", "defined", "none", "join", "upper", "first", "default", "__class__", "range(9)"),
    *('"templates/a.yaml"', '"/etc/passwd"', "'x'", "recursive", "required", "scoped", "autoescape true", "é", "\x85"),
)
SENSE = (
    "<%= name %>\n",
    "<% for x in roles %>\n<%= x %>: <%= replicas[x] %>\n<% endfor %>\n",
    "<% for x in roles if x != 'ps' %><%= loop.index %><% endfor %>",
    "<% if name and log_volume is none %>\na: 1\n<% else %>\nb: 2\n<% endif %>\n",
    "<% set x = roles | join('-') | upper %>\n<%= x | default('y') %>\n",
    "<% block b %>\n",
    "<% endblock %>\n",
    "<%= super() %>\n",
    "{{ .Values.x }}\n",
)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join),
    st.lists(st.sampled_from((*SENSE, *WORDS)), max_size=12).map("".join),
)


def render(path: str, text: str) -> dict[str, str]:
    bases = ((PATH, dump_blocks(PATH, {"a": "b: 2\n"})),)
    pack = PackTemplates("acme 1.0.0", "packs/acme", "x", ((path, text),), bases)
    return layer_templates(FAMILY, (pack,)).render(VARIABLES)


def require_file_or_refusal(path: str, text: str) -> None:
    try:
        files = render(path, text)
    except SpecError as refusal:
        assert refusal.problems
        for problem in refusal.problems:
            assert problem.where.startswith(f"packs/acme/{path}"), problem
            assert problem.message
        return
    assert files.keys() == {path}
    assert files == render(path, text)


@pytest.fixture(autouse=True)
def nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a template opens a file, but for the modules of Python."""
    opened = builtins.open

    def refuse(file: Any, *arguments: Any, **options: Any) -> Any:
        assert "/etc/" not in str(file), file
        return opened(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(Path, "open", refuse)


@given(text=TEXTS)
def test_any_text_is_a_file_or_refused_with_its_place(text: str) -> None:
    require_file_or_refusal("templates/b.yaml", text)


@given(text=TEXTS)
def test_any_text_in_an_override_is_a_block_or_refused(text: str) -> None:
    require_file_or_refusal(PATH, f'<% extends "{PATH}" %>\n<% block a %>\n{text}<% endblock %>\n')
    require_file_or_refusal(PATH, text)


@pytest.mark.parametrize("nesting", [1, 10, 100, 3000])
@pytest.mark.parametrize(
    ("start", "middle", "end"),
    [
        ("<% if name %>", "x", "<% endif %>"),
        ("<% for x in roles %>", "x", "<% endfor %>"),
        ("<%= (", "name", ") %>"),
        ("<%= [", "1", "] %>"),
        ("<%= not ", "name", "%>"),
        ("<%= name and ", "name", "%>"),
        ("<%= 1 if name else ", "1", "%>"),
        ("<%= name", "", "|upper %>"),
        ("<%= roles[0]", "", "[0] %>"),
        ("<% block ", "a", " %>"),
        ("<%= '", "%", "' %>"),
        ("<%= 1_", "1", "_1 %>"),
        ("<%", "#", "%>"),
    ],
)
def test_deep_and_long_templates_end(start: str, middle: str, end: str, nesting: int) -> None:
    tag, close = ("<%= ", " %>") if start.startswith("<%=") else ("", "")
    text = (
        tag
        + start.removeprefix("<%= ") * nesting
        + middle
        + end.removesuffix(" %>").removesuffix("%>") * nesting
        + close
    )
    require_file_or_refusal("templates/b.yaml", text)
    require_file_or_refusal("templates/b.yaml", start * nesting + middle + end * nesting)


@given(texts=st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), TEXTS))
@example(texts={"a": "  b: 1"})
@example(texts={"a": "\n\n<% if x %>\n  c\n<% endif %>\n"})
def test_kept_blocks_are_read_as_they_were(texts: dict[str, str]) -> None:
    first = read_texts(dump_blocks(PATH, texts))
    if first:
        assert read_texts(dump_blocks(PATH, first)) == first
