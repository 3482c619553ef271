"""The index of a chart repository: one more version, and nothing else changes by a byte."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
import yaml

from trainchart.errors import PublishError
from trainchart.publish.index import add_entry, find_entries, find_entry, read_entry

GENERATED = "2026-11-21T12:00:00Z"
BY_HELM = """\
apiVersion: v1
entries:
  alpha:
  - apiVersion: v2
    appVersion: "1.0"
    created: "2026-01-01T00:00:00.123456789Z"
    description: |-
      Several lines,
        one of them indented:
      - like a list
      entries:
      mnist:
    digest: aaa
    maintainers:
    - email: a@example.com
      name: A
    name: alpha
    urls:
    - alpha-1.0.0.tgz
    version: 1.0.0
  mnist:
  - apiVersion: v2
    created: "2026-01-02T00:00:00Z"
    deprecated: true
    digest: bbb
    name: mnist
    urls:
    - https://example.com/mnist-1.1.0.tgz
    version: 1.1.0
  - annotations:
      trainchart/content-sha256: ccc
    apiVersion: v2
    name: mnist
    urls:
    - mnist-1.0.0.tgz
    version: "1.0.0"
  zeta:
  - apiVersion: v2
    name: zeta
    version: 0.1.0
generated: "2026-01-03T00:00:00Z"
"""
INDENTED = """\
# by hand
apiVersion: v1
generated: "2026-01-03T00:00:00Z"
entries:
    mnist:
        - name: mnist   # the first
          version: 1.0.0
          urls: [mnist-1.0.0.tgz]
"""
FOLDED = BY_HELM.replace(
    "    digest: bbb\n",
    """\
    description: 'note: a long text, which helm folds: - like a list

      mnist: is said here, and more'
    home: "https://example.com/\\
      \\ x"
    digest: bbb
""",
)
FLOW = 'apiVersion: v1\nentries: {mnist: [{name: mnist, version: 1.0.0, created: "2026-01-01T00:00:00Z"}]}\n'
ANCHORED = """\
apiVersion: v1
entries:
  mnist:
  - &one
    name: mnist
    version: 1.0.0
  - <<: *one
    version: 1.1.0
"""
AT_MARGIN = 'apiVersion: v1\nentries:\n  mnist:\n  - name: mnist\n    version: 1.0.0\n    home: "a\n\nb:\n"\n'
UNUSUAL = {
    "json": json.dumps(yaml.safe_load(BY_HELM)),
    "flow": FLOW,
    "anchors": ANCHORED,
    "windows": INDENTED.replace("\n", "\r\n"),
    "a text at the margin": AT_MARGIN,
}
NEW: dict[str, Any] = {"name": "mnist", "version": "2.0.0", "description": "Two\nlines: # here\n", "urls": ["a.tgz"]}


def parsed(text: str) -> dict[str, Any]:
    value = yaml.load(text, yaml.BaseLoader)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("text", [BY_HELM, INDENTED, FOLDED], ids=["helm", "indented", "folded"])
@pytest.mark.parametrize("chart", ["mnist", "alpha", "beta", "aaa", "zzz"])
def test_every_other_byte_stays(text: str, chart: str) -> None:
    entry = NEW | {"name": chart}
    added = add_entry(text, chart, entry, GENERATED)
    expected = parsed(text)
    expected["generated"] = GENERATED
    expected["entries"][chart] = [entry, *expected["entries"].get(chart, [])]
    assert parsed(added) == expected
    # One block of new lines, and the line that says when: taken away, the old text is left.
    lines = [line for line in added.splitlines() if not line.startswith("generated:")]
    old = [line for line in text.splitlines() if not line.startswith("generated:")]
    extra = len(lines) - len(old)
    assert any(lines[:start] + lines[start + extra :] == old for start in range(len(old) + 1))


@pytest.mark.parametrize("text", list(UNUSUAL.values()), ids=list(UNUSUAL))
def test_what_is_unusual_is_written_anew_with_the_same_meaning(text: str) -> None:
    added = parsed(add_entry(text, "mnist", NEW, GENERATED))
    expected = yaml.safe_load(text)["entries"]
    expected["mnist"] = [NEW, *expected["mnist"]]
    assert {name: [entry["version"] for entry in entries] for name, entries in added["entries"].items()} == {
        name: [entry["version"] for entry in entries] for name, entries in expected.items()
    }
    assert added["entries"]["mnist"][0] == NEW
    assert added["entries"]["mnist"][1]["name"] == "mnist"
    assert added.get("generated", GENERATED) == GENERATED


@pytest.mark.parametrize("text", ["", "apiVersion: v1\nentries: {}\ngenerated: x\n", "apiVersion: v1\nentries: {}"])
def test_the_first_version_of_all(text: str) -> None:
    added = parsed(add_entry(text, "mnist", NEW, GENERATED))
    assert added["entries"] == {"mnist": [NEW]}
    assert added["apiVersion"] == "v1"


@pytest.mark.parametrize("text", [BY_HELM, FOLDED, *UNUSUAL.values()], ids=["helm", "folded", *UNUSUAL])
def test_versions_are_found(text: str) -> None:
    versions = [str(entry["version"]) for entry in yaml.safe_load(text)["entries"]["mnist"]]
    assert [str(entry["version"]) for entry in find_entries(text, "mnist")] == versions
    for version in versions:
        found = find_entry(text, "mnist", version)
        assert found is not None
        assert str(found["version"]) == version
    assert find_entry(text, "mnist", "1.0") is None
    assert find_entry(text, "nobody", "1.0.0") is None
    assert find_entries(text, "nobody") == ()


def test_what_an_entry_says() -> None:
    newest, oldest = map(read_entry, find_entries(BY_HELM, "mnist"))
    assert (newest.version, newest.digest, newest.created) == ("1.1.0", "sha256:bbb", "2026-01-02T00:00:00Z")
    assert newest.is_deprecated
    assert (oldest.version, oldest.digest, oldest.identity, oldest.is_deprecated) == ("1.0.0", "", "ccc", False)


@pytest.mark.parametrize(
    "text",
    [
        "- a\n",
        "entries: [\n",
        '{"entries": ' + "[" * 100_000,
        "<html></html>\n",
        "apiVersion: v1\nentries: []\n",
        "{",
        "entries:\n  a:\n",
    ],
)
def test_what_is_no_index_is_refused(text: str) -> None:
    with pytest.raises(PublishError, match=r"index\.yaml"):
        add_entry(text, "mnist", NEW, GENERATED)


def test_an_index_grows_version_by_version() -> None:
    """Random orders of charts and versions, compared with what was asked for."""
    rng = random.Random(7)
    text, wanted = "", set()
    for number in range(60):
        chart = rng.choice(["mnist", "alpha", "m-2", "zeta"])
        entry = {"apiVersion": "v2", "name": chart, "version": f"1.{number}.0", "urls": [f"{number}.tgz"]}
        text = add_entry(text, chart, entry, GENERATED)
        wanted.add((chart, entry["version"]))
    found = {(chart, entry["version"]) for chart, entries in parsed(text)["entries"].items() for entry in entries}
    assert found == wanted


TWICE = "  - name: mnist\n    version: 1.0.0\n    urls: [evil.tgz]\n"
AMBIGUOUS = {
    "a key of an entry": BY_HELM.replace("    - mnist-1.0.0.tgz\n", "    - mnist-1.0.0.tgz\n    urlſ: [evil.tgz]\n"),
    "a key with a capital": BY_HELM.replace("    - mnist-1.0.0.tgz\n", "    - mnist-1.0.0.tgz\n    Digest: eee\n"),
    "a key at the top": BY_HELM + f"entrieſ:\n  mnist:\n{TWICE}",
    "a capital at the top": f"Entries:\n  mnist:\n{TWICE}{BY_HELM}",
    "a capital beside no charts": f"apiVersion: v1\nEntries:\n  mnist:\n{TWICE}entries: {{}}\n",
    "a chart twice": BY_HELM.replace("  zeta:\n", f"  mnist:\n{TWICE}  zeta:\n"),
    "twice": BY_HELM.replace("  mnist:\n", f"  mnist:\n{TWICE}", 2),
    "twice, escaped": BY_HELM.replace("  mnist:\n", "  mnist:\n" + TWICE.replace("1.0.0", '"1.0.\\x30"'), 2),
    "twice, in json": json.dumps(yaml.safe_load(BY_HELM.replace("  zeta:\n", f"{TWICE}  zeta:\n"))),
    "a key twice in json": '{"apiVersion": "v1", "entries": {"mnist": [{"name": "mnist"}]}, "entries": {}}',
}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"type": "none"}, "its type is 'none'"),
        ({"maintainers": [None]}, "one of its maintainers is empty"),
        ({"name": None}, "its name is None, expected mnist"),
        ({"name": "x/mnist"}, "its name is 'x/mnist', expected mnist"),
        ({"dependencies": [None]}, "one of its dependencies is empty"),
        ({"dependencies": [{"name": "a", "alias": "a.b"}]}, "its dependency 'a' has the alias 'a.b'"),
        ({"dependencies": [{"name": "a"}, {"name": "b", "alias": "a"}]}, "two of its dependencies are called 'a'"),
    ],
)
def test_an_entry_that_helm_skips_is_refused(more: dict[str, Any], problem: str) -> None:
    """Helm falls back to a version that is written differently, such as v1.0.0."""
    entry = {"apiVersion": "v2", "name": "mnist", "version": "1.0.0", "urls": ["good.tgz"]}
    assert find_entry(make_index(entry), "mnist", "1.0.0") == entry
    text = make_index({**entry, "version": "v1.0.0", "urls": ["evil.tgz"]}, {**entry, **more})
    with pytest.raises(PublishError, match=f"mnist 1.0.0: {problem}"):
        find_entry(text, "mnist", "1.0.0")
    with pytest.raises(PublishError, match="another version in its place"):
        find_entries(make_index({**entry, **more}), "mnist")


@pytest.mark.parametrize("version", ["v1.1.0", "1.1", "1.1.0\u200b", 1.1, None, f"{2**64}.0.0", f"1.0.0-{'a' * 251}"])
def test_versions_that_helm_reads_otherwise_are_refused(version: object) -> None:
    entry = {"apiVersion": "v2", "name": "mnist", "version": "1.0.0", "urls": ["good.tgz"]}
    with pytest.raises(PublishError, match=f"mnist {re.escape(str(version))}: its version is not SemVer 2"):
        find_entries(make_index({**entry, "version": version}, entry), "mnist")


def make_index(*entries: dict[str, Any]) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "entries": {"mnist": list(entries)}})


HIDDEN = {
    "in double quotes": ('description: "', '# "'),
    "in single quotes": ("description: '", "# '"),
    "behind a quoted key": ('"a: b": "', '# "'),
    "behind a tag": ('description: !!str "', '# "'),
    "in a list": ("keywords: [a,", "b]"),
    "folded as an item": ('description: "', '     # "'),
    "below a dash": ('keywords:\n    - "', '# "'),
}


@pytest.mark.parametrize(("begin", "end"), HIDDEN.values(), ids=HIDDEN)
def test_lines_within_a_text_are_no_entries(begin: str, end: str) -> None:
    shown = (
        BY_HELM[BY_HELM.index("  mnist:\n  -") : BY_HELM.index("  zeta:\n")].replace("bbb", "honest").replace('"', "")
    )
    text = BY_HELM.replace("    name: alpha\n", f"    name: alpha\n    {begin}\n{shown}    {end}\n")
    try:
        meant = yaml.load(text, yaml.BaseLoader)["entries"]["mnist"]
    except yaml.YAMLError:
        with pytest.raises(PublishError, match=r"index\.yaml"):
            find_entry(text, "mnist", "1.1.0")
        return
    found = find_entry(text, "mnist", "1.1.0")
    assert found is not None and found["digest"] == meant[0]["digest"] == "bbb"
    assert [entry.get("digest") for entry in find_entries(text, "mnist")] == [entry.get("digest") for entry in meant]


@pytest.mark.parametrize("line_break", ["\r", "\x85", "\u2028", "\u2029"], ids=ascii)
def test_every_line_break_of_yaml_ends_a_comment(line_break: str) -> None:
    hidden = ("# here\n  mnist:\n" + TWICE.removesuffix("\n")).replace("\n", line_break)
    text = BY_HELM.replace(BY_HELM[BY_HELM.index("  mnist:\n  -") : BY_HELM.index("  zeta:\n")], f"{hidden}\n")
    found = find_entry(text, "mnist", "1.0.0")
    assert found is not None and found["urls"] == ["evil.tgz"]
    assert find_entries(text, "mnist") == (found,)


@pytest.mark.parametrize("place", ["\nentries:", "      Several", "name: A\n", "generated:"])
def test_a_byte_order_mark_in_an_index_is_refused(place: str) -> None:
    """Go may drop characters of the lines behind it, whichever chart they are of."""
    lead = place.removesuffix(place.lstrip())
    text = BY_HELM.replace(place, f"{lead}\ufeff{place.lstrip()}", 1)
    assert text != BY_HELM
    with pytest.raises(PublishError, match="byte order mark"):
        find_entries(text, "mnist")
    with pytest.raises(PublishError, match="byte order mark"):
        find_entry(text, "mnist", "1.1.0")


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_helm_understands_differently_is_refused(text: str) -> None:
    with pytest.raises(PublishError, match=r"index\.yaml"):
        find_entry(text, "mnist", "1.0.0")
    with pytest.raises(PublishError, match=r"index\.yaml"):
        find_entries(text, "mnist")
