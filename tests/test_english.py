"""The project's English, enforced: words that readers stumble over, and what to write instead (CONTRIBUTING.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = (
    *("generator", "training-images", "chart-templates", "models", "examples", "benchmarks", "docs"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile"),
)
"""What users and contributors read. charts/ is generated from it."""
SUFFIXES = {".py", ".md", ".tpl", ".yaml", ".txt", ".in", ".sh"}
NAMES = {"Dockerfile", "Makefile"}
INSTEAD = {
    ":param": "Args:",
    ":raises": "Raises:",
    ":return": "Returns:",
    ":returns": "Returns:",
    "anew": "again",
    "anybody": "any user, any client",
    "everybody": "every user, all tasks",
    "for ever": "always, forever",
    "lest": "so that ... not",
    "mend": "fix",
    "mended": "fixed",
    "mends": "fixes",
    "nobody": "no user, nothing",
    "shall": "must, will",
    "somebody": "a user, another client",
    "thereby": "this way",
    "whence": "from which",
    "whoever": "everyone who, the user who",
    "whomever": "everyone whom",
    "without a word": "silently",
}
GAP = r"[\s#*]+"
"""Between two words: lines wrap, also in comments."""
WORDS = re.compile(r"(?<!\w)(" + "|".join(word.replace(" ", GAP) for word in INSTEAD) + r")\b", re.IGNORECASE)
TEST = re.compile(r"^ *def (test_\w+)", re.MULTILINE)
LONGEST_TEST_NAME = 60


def find_words(text: str) -> Iterator[str]:
    """Yield each unwanted word of `text` with its line and what to write instead."""
    for match in WORDS.finditer(text):
        word = re.sub(GAP, " ", match[0].lower())
        yield f"{text.count(chr(10), 0, match.start()) + 1}: {word!r}: write {INSTEAD[word]}"


def list_texts() -> Iterator[Path]:
    for part in PARTS:
        path = ROOT / part
        yield from sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def test_unwanted_words_are_found_across_lines_and_in_any_case() -> None:
    text = "# Nobody waits for\n# ever.\nA lesson amends forever: renewed.\nThe pod is made anew.\n:raises KeyError: no"
    assert list(find_words(text)) == [
        "1: 'nobody': write no user, nothing",
        "1: 'for ever': write always, forever",
        "4: 'anew': write again",
        "5: ':raises': write Raises:",
    ]


def test_texts_are_in_plain_english() -> None:
    texts = [path for path in list_texts() if path.suffix in SUFFIXES or path.name in NAMES]
    assert len(texts) > 300
    found = [f"{path.relative_to(ROOT)}:{line}" for path in texts for line in find_words(path.read_text())]
    assert found == []


def test_test_names_are_short() -> None:
    names = {name for path in Path(__file__).parent.rglob("*.py") for name in TEST.findall(path.read_text())}
    assert len(names) > 1000
    assert [name for name in sorted(names) if len(name) > LONGEST_TEST_NAME] == []
