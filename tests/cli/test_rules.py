"""`trainchart rules` lists every rule, and docs/checks.md is what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "checks.md"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "trainchart", "rules", *arguments], capture_output=True, text=True)


def test_every_rule_is_one_line() -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads(run("--format", "json").stdout)
    assert [line.split()[0] for line in done.stdout.splitlines()] == [rule["id"] for rule in listed]
    assert all(rule["why"] and rule["source"] and rule["severity"] for rule in listed)


def test_one_rule_is_told_in_full() -> None:
    done = run("names-fit")
    assert done.stdout.startswith(
        "names-fit: A StatefulSet whose name is longer than 52 characters never starts a pod.\n"
    )
    assert "https://github.com/kubernetes/kubernetes/issues/64023" in done.stdout
    assert "in third-party charts at most warning" in done.stdout


def test_an_unknown_rule_is_refused_with_a_suggestion() -> None:
    done = run("names-fits")
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no rule 'names-fits'; did you mean names-fit")


def test_the_page_of_the_rules_is_up_to_date() -> None:
    assert run("--format", "markdown").stdout == PAGE.read_text(), "run: trainchart rules --format markdown"
