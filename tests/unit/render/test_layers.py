"""Templates of packs over those below: what they add and change, and everything that they cannot do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainchart.actions.support.models import build_values_schema, resolve_spec
from trainchart.errors import Problem, SpecError
from trainchart.packs.probe import make_probes
from trainchart.packs.templates import PackTemplates
from trainchart.render.chart import FAMILY, render_chart
from trainchart.render.layers import find_bases, layer_templates
from trainchart.render.templates import dump_blocks
from trainchart.resources import read_family

POD = "templates/_pod_template.tpl"
EXTENDS = f'<% extends "{POD}" %>\n'
FAMILY_FILES = {
    POD: "a: <%= name %>\n<% block env %>\nb: 1\n<% endblock %>\nc: 2\n<% block more %>\n<% endblock %>\n",
    "templates/service.yaml": "kind: Service\n",
}


def pack(name: str = "acme", bases: dict[str, str] | None = None, **files: str) -> PackTemplates:
    """A pack of files by the last part of their name, which know the blocks of the family."""
    kept = {POD: dump_blocks(POD, bases or {"env": "b: 1\n", "more": ""})}
    paths = {POD if path == "pod" else f"templates/{path}.yaml": text for path, text in files.items()}
    return PackTemplates(f"{name} 1.0.0", f"packs/{name}", "x", tuple(paths.items()), tuple(kept.items()))


def render(*packs: PackTemplates, **variables: object) -> dict[str, str]:
    return layer_templates(FAMILY_FILES, packs).render({"name": "tiny", "roles": ["ps", "worker"], **variables})


def refuse(*packs: PackTemplates) -> tuple[Problem, ...]:
    with pytest.raises(SpecError) as refusal:
        render(*packs)
    assert refusal.value.problems
    return refusal.value.problems


def test_new_file_has_the_variables_of_the_family() -> None:
    text = "name: <%= name %>\nroles: [<%= roles | join(', ') %>]\nrelease: {{ .Release.Name }}\n"
    assert render(pack(monitor=text)) == {
        "templates/monitor.yaml": "name: tiny\nroles: [ps, worker]\nrelease: {{ .Release.Name }}\n"
    }


def test_override_changes_its_block_alone() -> None:
    text = f"{EXTENDS}<%# ours %>\n\n<% block env %>\nb: 5\n<% endblock %>\n"
    assert render(pack(pod=text)) == {POD: "a: tiny\nb: 5\nc: 2\n"}


def test_super_on_a_line_writes_what_is_below_and_no_more() -> None:
    text = f"{EXTENDS}<% block env %>\n<%= super() %>\nd: <%= name %>\n<% endblock %>"
    assert render(pack(pod=text)) == {POD: "a: tiny\nb: 1\nd: tiny\nc: 2\n"}
    assert render(pack(pod=f"{EXTENDS}<% block env %><%= super() %><% endblock %>"))[POD] == "a: tiny\nb: 1\nc: 2\n"


def test_packs_override_in_turn() -> None:
    first = pack(pod=f"{EXTENDS}<% block env %>\nfirst: 1\n<%= super() %>\n<% endblock %>")
    second = pack("team", pod=f"{EXTENDS}<% block env %>\n<%= super() %>\nsecond: 2\n<% endblock %>")
    assert render(first, second)[POD] == "a: tiny\nfirst: 1\nb: 1\nsecond: 2\nc: 2\n"
    assert render(second, first)[POD] == "a: tiny\nfirst: 1\nb: 1\nsecond: 2\nc: 2\n"


def test_pack_overrides_the_file_of_another_pack() -> None:
    first = pack(monitor="a: 1\n<% block ports %>\nb: 2\n<% endblock %>\n")
    path = "templates/monitor.yaml"
    text = f'<% extends "{path}" %>\n<% block ports %>\nb: 3\n<% endblock %>\n'
    second = PackTemplates("team 1.0.0", "packs/team", "x", ((path, text),), ())
    assert find_bases(FAMILY_FILES, (first, second)) == {path: {"ports": "b: 2\n"}}
    kept = ((path, dump_blocks(path, {"ports": "b: 2\n"})),)
    second = PackTemplates("team 1.0.0", "packs/team", "x", ((path, text),), kept)
    assert render(first, second) == {path: "a: 1\nb: 3\n"}


def test_pack_that_drops_the_text_of_another_is_refused() -> None:
    first = pack(pod=f"{EXTENDS}<% block env %>\nfirst: 1\n<% endblock %>")
    second = pack("team", pod=f"{EXTENDS}<% block env %>\nsecond: 1\n<% endblock %>")
    (problem,) = refuse(first, second)
    assert problem.message == "this drops the text of pack acme 1.0.0 in the block env"
    assert problem.where == f"packs/team/{POD}:2"
    assert problem.hint == "write <%= super() %> in it, or let pack team 1.0.0 extend pack acme 1.0.0"
    knowing = pack("team", {"env": "first: 1\n"}, pod=f"{EXTENDS}<% block env %>\nsecond: 1\n<% endblock %>")
    assert render(first, knowing)[POD] == "a: tiny\nsecond: 1\nc: 2\n"


def test_changed_block_is_shown_as_it_was_and_is() -> None:
    text = f"{EXTENDS}\n<% block env %>\n<%= super() %>\nd: 1\n<% endblock %>"
    (problem,) = refuse(pack("acme", {"env": "b: 0\n"}, pod=text))
    assert str(problem) == (
        f"packs/acme/{POD}:3: the overridden block env has changed\n"
        "  recorded text:\n    | b: 0\n"
        f"  new text, in {POD}:\n    | b: 1\n"
        "  this override:\n    | <%= super() %>\n    | d: 1\n"
        "  hint: adapt the override, then run: x"
    )


def test_override_without_what_it_was_written_against_is_refused() -> None:
    (problem,) = refuse(pack("acme", {"more": ""}, pod=f"{EXTENDS}<% block env %>\n<% endblock %>"))
    assert problem.message == "the overridden text of the block env is not recorded"
    assert problem.hint == f"compare it with {POD}, then run: x"


@pytest.mark.parametrize(
    ("text", "message", "line", "hint"),
    [
        ("a: 1\n", f"{POD} already exists in trainchart's own templates", 1, f'start with <% extends "{POD}" %>'),
        ('<% extends "templates/service.yaml" %>', "can extend only the template with the same path", 1, ""),
        ("<% extends name %>", "can extend only the template with the same path", 1, ""),
        ('<% extends "/etc/passwd" %>', "can extend only the template with the same path", 1, ""),
        (f"{EXTENDS}\n\nb: 2\n", "an override contains only blocks", 4, ""),
        (f"{EXTENDS}\n<%= name %>\n", "an override contains only blocks", 3, ""),
        (f"{EXTENDS}<% if name %>\n<% endif %>\n", "an override contains only blocks", 2, ""),
        (f"{EXTENDS}{EXTENDS}", "an override contains only blocks", 2, ""),
        (f"{EXTENDS}\n<% block evn %><% endblock %>", "unknown block evn", 3, "did you mean env?"),
        (f"{EXTENDS}<% block env %><% block x %><% endblock %><% endblock %>", "block x is inside another tag", 2, ""),
        (f"{EXTENDS}<% block env %>\n<% if %>\n<% endblock %>", "Expected an expression, got 'end of statement", 3, ""),
        (f"{EXTENDS}<% block env %>\n", "Unexpected end of template", 2, ""),
        (f"{EXTENDS}<% block env %>\n<%= nmae %>\n<% endblock %>", "'nmae' is undefined", 3, ""),
        (f"{EXTENDS}<% block env %><% endblock %><% block env %><% endblock %>", "block 'env' defined twice", 2, ""),
    ],
)
def test_wrong_override_is_refused_with_its_line(text: str, message: str, line: int, hint: str) -> None:
    problem = refuse(pack(pod=text))[0]
    assert message in problem.message
    assert problem.where == f"packs/acme/{POD}:{line}"
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ('\n<% include "/etc/passwd" %>', "cannot use include", 2),
        ('<% include "templates/service.yaml" %>', "cannot use include", 1),
        ('<% import "../../pack.yaml" as x %>', "cannot use import", 1),
        ('<% from "x" import y %>', "cannot use import", 1),
        ("<% macro x() %><%= x() %><% endmacro %>", "cannot use macro", 1),
        ("<% call x() %><% endcall %>", "cannot use call", 1),
        ("<% set x %>a<% endset %>", "cannot use set with endset", 1),
        ("<% for x in range(1000000000) %><% endfor %>", "cannot use calls except super()", 1),
        ("<%= name.upper() %>", "cannot use calls except super()", 1),
        ("<%= super(1) %>", "cannot use calls except super()", 1),
        ("<%= 'a' * 1000000000 %>", "cannot use mul", 1),
        ("<%= 2 ** 2 ** 100 %>", "cannot use pow", 1),
        ("<%= '%0999999999d' % 1 %>", "cannot use mod", 1),
        ("<%= name ~ name %>", "cannot use ~", 1),
        ("<%= name[1:] %>", "cannot use a slice", 1),
        ("<%= [name, name] | join %>", "cannot use lists of non-constants", 1),
        ("<%= {'a': name} %>", "cannot use dict", 1),
        ("<%= name | format %>", "cannot use the filter format", 1),
        ("<%= roles | map('format') %>", "cannot use the filter map", 1),
        ("<% if name is filter %><% endif %>", "cannot use the test filter", 1),
        ("<% for r in roles recursive %><% endfor %>", "cannot use recursive loops", 1),
        ("<% set name.x = 1 %>", "cannot use set of an attribute", 1),
        ("<%= self.x %>", "cannot use self", 1),
        ("<% filter upper %><% endfilter %>", "cannot use a filter block", 1),
        ("\n<%= name.__class__ %>", "access to attribute '__class__' of 'str' object is unsafe", 2),
        ("<%= name['__class__'] %>", "access to attribute '__class__' of 'str' object is unsafe", 1),
        ("<%= roles | join(attribute='__class__') %>", "access to attribute '__class__'", 1),
        ("<%= name.upper %>", "builtin_function_or_method is not a string or number", 1),
        ("<%= roles %>", "list is not a string or number", 1),
        ("<%= range %>", "'range' is undefined", 1),
        ("\n<%= 1e999 %>", "name 'inf' is not defined", 2),
        ("<%= name < 5 %>", "not supported between instances", 1),
        ("<%= super() %>", "'super' is undefined", 1),
        ("<% extends 'templates/monitr.yaml' %>", "no earlier layer has templates/monitor.yaml", 1),
        (f"<%= {'not ' * 100}name %>", "nested more than 50 levels deep", 1),
        (f"<%= {'(' * 5000}name{')' * 5000} %>", "the template is nested too deeply", 0),
        (f"{'<% if name %>' * 49}{'<% endif %>' * 49}", "", 0),
        ("<%= 'x' | join('a') | join('a') %>", "", 0),
    ],
)
def test_hostile_template_is_refused_with_its_line(text: str, message: str, line: int) -> None:
    if not message:
        assert render(pack(monitor=text))
        return
    problem = refuse(pack(monitor=text))[0]
    assert message in problem.message
    assert problem.where == "packs/acme/templates/monitor.yaml" + (f":{line}" if line else "")
    assert problem.hint


LOOPS = "<% for a in roles %>" * 6 + "x" + "<% endfor %>" * 6


@pytest.mark.parametrize(
    "text",
    [
        LOOPS,
        "<% for a in roles if name %>" * 4 + "<% endfor %>" * 4,
        "<% for a in roles %><% for b in roles %><% for c in roles %><%= long %><% endfor %><% endfor %><% endfor %>",
        "<%= long | join(long) %>",
        "<%= name | join('aaaaaaaaaa')" + "| join('aaaaaaaaaa')" * 12 + "%>",
        "<% for a in roles %><% if long | upper == name %><% endif %><% endfor %>" * 5,
    ],
)
def test_template_that_grows_without_bound_is_ended(text: str) -> None:
    templates = layer_templates(FAMILY_FILES, (pack(monitor=text),))
    with pytest.raises(SpecError) as refusal:
        templates.render({"name": "tiny", "roles": [str(number) for number in range(100)], "long": "a" * 10_000})
    (problem,) = refusal.value.problems
    assert problem.message == "loops and output of packs' templates exceed the limit (1,000,000 characters)"
    assert problem.where == "packs/acme/templates/monitor.yaml:1"


def test_blocks_that_write_each_other_many_times_are_ended() -> None:
    text = f"{EXTENDS}<% block env %>{'<%= super() %>' * 100}<% endblock %>"
    many = tuple(pack(f"p{number}", pod=text) for number in range(20))
    assert "exceed the limit" in refuse(*many)[0].message


def test_what_one_chart_spends_is_not_missing_for_the_next() -> None:
    templates = layer_templates(FAMILY_FILES, (pack(monitor="<%= name %>" * 60),))
    for _ in range(3):
        assert templates.render({"name": "a" * 10_000})


def test_every_block_of_the_family_can_be_overridden() -> None:
    family = read_family(FAMILY)
    paths = [path for path, text in family.items() if "<% block" in text]
    blocks = {path: [line.split()[2] for line in family[path].splitlines() if "<% block" in line] for path in paths}
    files = tuple(
        (
            path,
            f'<% extends "{path}" %>\n'
            + "".join(f"<% block {name} %>\n<%= super() %>\n<% endblock %>\n" for name in names),
        )
        for path, names in blocks.items()
    )
    bare = PackTemplates("acme 1.0.0", "packs/acme", "x", files, ())
    bases = find_bases(family, (bare,))
    kept = tuple((path, dump_blocks(path, texts)) for path, texts in bases.items())
    overriding = PackTemplates("acme 1.0.0", "packs/acme", "x", files, kept)
    for probe in make_probes(()):
        plan = resolve_spec(probe)
        schema = build_values_schema(plan)
        assert render_chart(plan, family, schema, (overriding,)) == render_chart(plan, family, schema)


def test_the_guide_lists_all_blocks() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "packs.md").read_text()
    listed = re.findall(r"^\|.* \| `([a-z_]+)` \| .* \|$", guide, re.MULTILINE)
    family = "".join(text for path, text in sorted(read_family(FAMILY).items()))
    assert sorted(listed) == sorted(re.findall(r"<% block (\w+) %>", family))
