"""Packs from their files: everything that is wrong is named with its file and line."""

from __future__ import annotations

import pytest

from trainchart.errors import SpecError
from trainchart.packs.pack import Pack, parse_pack
from trainchart.packs.templates import parse_templates

PACK = "apiVersion: trainchart/v1\nkind: Pack\nname: acme\nversion: 1.2.0\ndescription: House rules.\n"
DEFAULTS = 'volumes:\n  "*": {storageClass: cephfs}\n'


def parse(defaults: str = DEFAULTS, about: str = PACK, **others: str) -> Pack:
    files = {"pack.yaml": about, "defaults.yaml": defaults, **others}
    return parse_pack({path: text.encode() for path, text in files.items()}, "packs/acme")


def test_a_pack_knows_its_title_and_its_defaults() -> None:
    pack = parse()
    assert (pack.title, pack.description, pack.extends) == ("acme 1.2.0", "House rules.", ())
    assert pack.defaults is not None
    assert pack.defaults.tree == {"volumes": {"*": {"storageClass": "cephfs"}}}
    assert pack.defaults.origins["volumes", "*", "storageClass"].layer == "pack acme 1.2.0"
    assert str(pack.defaults.origins["volumes", "*", "storageClass"]) == "packs/acme/defaults.yaml:2:9"


def test_the_hash_of_a_pack_follows_every_file() -> None:
    assert parse().sha256 == parse().sha256
    assert parse(**{"README.md": "Read me."}).sha256 != parse().sha256
    assert parse(DEFAULTS + "\n").sha256 != parse().sha256


@pytest.mark.parametrize(
    ("about", "message", "line"),
    [
        (PACK.replace("name: acme", "name: Acme"), "name: 'Acme' is not accepted", 3),
        (PACK.replace("1.2.0", "1.2"), "version: 1.2 is not a string", 4),
        (PACK.replace("1.2.0", "one"), "version: Value error, 'one' is not a SemVer version", 4),
        (PACK.replace("kind: Pack", "kind: Model"), "kind: 'Model' is not known", 2),
        (PACK + "extend: [x]\n", "unknown key extend", 6),
        (PACK + "extends: x\n", "extends: 'x' is not accepted", 6),
        (PACK + "extends: [{repository: https://example.com/x}]\n", "expected a path, or repository with name", 6),
        (PACK + "extends: [{path: x, version: 1.0.0}]\n", "expected a path, or repository with name", 6),
        (PACK + "extends: ['']\n", "expected a path, or repository with name", 6),
        (PACK + "extends: [{repository: oci://r/x, name: x, version: 1.10}]\n", "1.10 is not a string", 6),
    ],
)
def test_a_wrong_pack_file_is_refused_with_its_line(about: str, message: str, line: int) -> None:
    with pytest.raises(SpecError, match="the pack is not valid") as refusal:
        parse(about=about)
    (problem,) = refusal.value.problems
    assert message.removeprefix("version: Value error, ") in problem.message
    assert problem.where.startswith(f"packs/acme/pack.yaml:{line}:")


@pytest.mark.parametrize(
    ("defaults", "message", "where"),
    [
        ("name: x\n", "name belongs to one model", "1:1"),
        ("strategies: {single: {kind: Model}}\n", "strategies.single.kind belongs to one model", "1:23"),
        ("roles: {wrker: {cpu: 1}}\n", "unknown role wrker", "1:9"),
        ("roles: [worker]\n", "roles is not a mapping", "1:1"),
        ("volumes: {data: x}\n", "volumes.data is not a mapping", "1:11"),
        ("strategies: {sync: {}}\n", "unknown strategy sync", "1:14"),
        ("strategies: {single: 5}\n", "strategies.single is not a mapping", "1:14"),
        ("strategies: x\n", "strategies is not a mapping", "1:1"),
    ],
)
def test_defaults_of_nothing_are_refused(defaults: str, message: str, where: str) -> None:
    with pytest.raises(SpecError, match=r"the defaults of pack acme 1\.2\.0 are not valid") as refusal:
        parse(defaults)
    (problem,) = refusal.value.problems
    assert (problem.message, problem.where) == (message, f"packs/acme/defaults.yaml:{where}")


@pytest.mark.parametrize("empty", ["roles:\n", "volumes: {data: }\n", "strategies:\n", "strategies: {single: }\n"])
def test_a_section_with_nothing_behind_it_sets_nothing(empty: str) -> None:
    assert parse(empty).defaults is not None


@pytest.mark.parametrize("text", ["", "# Nothing yet.\n\n"])
def test_defaults_that_say_nothing_are_none(text: str) -> None:
    assert parse(text).defaults is None


def test_files_that_nothing_would_read_are_refused() -> None:
    with pytest.raises(SpecError, match="packs/acme contains files that are not part of a pack") as refusal:
        parse(**{"default.yaml": "", "scripts/run.sh": "", ".gitignore": "", "LICENSE": "", ".env": "A=b"})
    found = {problem.message: problem.hint for problem in refusal.value.problems}
    assert found["unknown file or folder default.yaml"] == "did you mean defaults.yaml?"
    assert found.keys() == {f"unknown file or folder {name}" for name in ("default.yaml", "scripts", ".env")}


def test_a_folder_without_a_pack_file_is_not_a_pack() -> None:
    with pytest.raises(SpecError, match=r"packs/x is not a pack: it has no pack\.yaml"):
        parse_pack({"defaults.yaml": b""}, "packs/x")


def test_bytes_that_are_no_text_are_refused_with_their_line() -> None:
    with pytest.raises(SpecError, match=r"packs/x/pack\.yaml:2: not UTF-8 text"):
        parse_pack({"pack.yaml": b"kind: Pack\n\xff"}, "packs/x")


@pytest.mark.parametrize("name", ["README\nx", "README/../x", "README//x", "README\\x", "README\u2028", "README/./x"])
def test_names_that_no_archive_holds_are_refused(name: str) -> None:
    with pytest.raises(SpecError) as error:
        parse(**{name: ""})
    assert [problem.message for problem in error.value.problems] == [f"the name {name!r} is not safe"]


def test_a_hint_quotes_the_folder_of_a_pack() -> None:
    templates = parse_templates({"templates/x.yaml": b"a: 1\n"}, "acme 1.2.0", "packs/a;id", "packs/a;id")
    assert templates is not None
    assert templates.accept == "trainchart pack accept 'packs/a;id'"
