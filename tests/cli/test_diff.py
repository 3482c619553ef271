"""`trainchart diff` as a user meets it: a model against folders, archives and repositories."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import call


def run(project: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return call(project, *arguments, environment={**os.environ, **environment})


@pytest.fixture
def project(tmp_path: Path, copy_sources: Callable[..., Path]) -> Path:
    return copy_sources(tmp_path / "project", "models/digits.yaml", "examples/digits", "charts/digits")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def _describe(spec: Path) -> None:
    edit(spec, "description: ", "description: Now ")


def _add_value(spec: Path) -> None:
    edit(spec, "hyperparameters:\n", "hyperparameters:\n  momentum: {type: number, default: 0.9}\n")


def _another_image(spec: Path) -> None:
    edit(spec, 'tag: "1.0.0"', 'tag: "1.0.1"')


def _remove_value(spec: Path) -> None:
    edit(spec, "  seed: {", "  seedling: {")


@pytest.mark.parametrize(
    ("change", "bump", "effect", "reason"),
    [
        (lambda spec: None, "none", "no effect", ""),
        (_describe, "patch", "no effect", 'the description is now "Now Handwritten digits in one process."'),
        (_add_value, "minor", "restarts training", "the value hyperparameters.momentum is new"),
        (
            _another_image,
            "patch",
            "restarts training",
            'the default of image.tag changes from "1.0.0" to "1.0.1"',
        ),
        (_remove_value, "major", "restarts training", "the value hyperparameters.seed is gone"),
    ],
)
def test_the_next_version_follows_from_what_changed(
    project: Path, change: Callable[[Path], None], bump: str, effect: str, reason: str
) -> None:
    change(project / "models" / "digits.yaml")
    done = run(project, "diff", "digits", "--against", "charts/digits", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["bump"], told["effect"]) == (bump, effect)
    expected = {"none": "0.1.0", "patch": "0.1.1", "minor": "0.2.0", "major": "1.0.0"}
    assert (told["oldVersion"], told["nextVersion"]) == ("0.1.0", expected[bump])
    assert reason in told["reasons"].get(bump, [""])


def test_what_an_upgrade_would_be_refused_for(project: Path) -> None:
    shutil.copytree(project / "charts" / "digits", project / "old")
    edit(
        project / "old/templates/statefulset.yaml", "podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady"
    )
    done = run(project, "diff", "digits", "--against", "old")
    assert done.returncode == 0, done.stderr
    assert "rejected by Kubernetes (immutable): StatefulSet release-digits-worker" in done.stdout
    assert "spec.podManagementPolicy" in done.stdout
    assert done.stdout.splitlines()[-1] == "version: 0.1.0 → 1.0.0 (major)"
    assert "\x1b" not in done.stdout


def test_chart_that_does_not_render_is_not_compared(project: Path) -> None:
    shutil.copytree(project / "charts" / "digits", project / "old")
    (project / "old/templates/broken.yaml").write_text('{{ fail "out of order" }}\n')
    shown = run(project, "diff", "digits", "--against", "old")
    assert shown.returncode == 0, shown.stderr
    assert "no effect" not in shown.stdout
    assert "not compared with its own values, because old does not render with them" in shown.stdout
    assert "out of order" in shown.stdout
    assert "an upgrade is: unknown, because not all objects could be compared" in shown.stdout.splitlines()
    told = json.loads(run(project, "diff", "digits", "--against", "old", "--format", "json").stdout)
    assert told["effect"] == "unknown"
    refused = told["notCompared"][0]
    assert refused["values"] == ""
    assert "out of order" in refused["reason"]


def test_values_that_the_old_chart_refuses_are_named(project: Path) -> None:
    shutil.copytree(project / "charts" / "digits", project / "old")
    (project / "old/ci").mkdir(exist_ok=True)
    (project / "old/ci/wrong-values.yaml").write_text("noSuchValue: 1\n")
    _another_image(project / "models" / "digits.yaml")
    shown = run(project, "diff", "digits", "--against", "old").stdout
    assert "not compared with ci/wrong-values.yaml, because old does not render with them" in shown
    assert "an upgrade is: restarts training, or worse, because not all objects could be compared" in shown


def test_colour_can_be_had_and_refused(project: Path) -> None:
    _another_image(project / "models" / "digits.yaml")
    arguments = ("diff", "digits", "--against", "charts/digits")
    assert "\x1b[" in run(project, *arguments, FORCE_COLOR="1", TERM="xterm").stdout
    assert "\x1b[" not in run(project, *arguments, FORCE_COLOR="1", TERM="xterm", NO_COLOR="1").stdout


def test_what_others_have_published_does_not_steer_the_terminal(project: Path) -> None:
    edit(project / "charts/digits/templates/statefulset.yaml", "serviceName:", 'x: "\\e[31mred"\n  serviceName:')
    shown = run(
        project, "diff", "digits", "--against", "charts/digits", FORCE_COLOR="1", TERM="xterm", NO_COLOR="1"
    ).stdout
    assert "\\x1b[31mred" in shown
    assert "\x1b" not in shown
    named = run(project, "diff", "digits", "--against", "1.0.0", "--from", "a\x1b[31mb")
    assert named.returncode == 8
    assert "a\\x1b[31mb has no digits 1.0.0" in named.stderr


@pytest.mark.parametrize("colour", [{"NO_COLOR": "1"}, {}], ids=["plain", "rich"])
def test_a_line_break_in_a_name_makes_no_line(project: Path, colour: dict[str, str]) -> None:
    (project / "charts/digits/templates/other.yaml").write_text(
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "a\\nan upgrade is: without effect"}\n'
    )
    shown = run(project, "diff", "digits", "--against", "charts/digits", **colour).stdout
    assert "a\\nan upgrade is: without effect" in shown
    assert [line[:12] for line in shown.splitlines()].count("an upgrade i") == 1


def test_repository_and_path_are_refused_together(project: Path) -> None:
    done = run(project, "diff", "digits", "--against", "charts/digits", "--from", "repository")
    assert done.returncode == 2
    assert "--against charts/digits is not a version" in done.stderr


def test_against_what_is_published(project: Path) -> None:
    nothing = run(project, "diff", "digits", "--from", "repository", "--format", "json")
    assert nothing.returncode == 8
    assert json.loads(nothing.stderr)["error"] == "RepositoryNotFound"
    assert run(project, "publish", "charts/digits", "--to", "repository", "--skip-image-check").returncode == 0
    assert (
        "nothing has changed since repository/digits-0.1.0.tgz"
        in run(project, "diff", "digits", "--from", "repository").stdout
    )
    missing = run(project, "diff", "digits", "--from", "repository", "--against", "0.0.1")
    assert missing.returncode == 8
    assert "has no digits 0.0.1" in missing.stderr
    aimless = run(project, "diff", "digits")
    assert aimless.returncode == 7
    assert "name a repository with --from" in aimless.stderr


def test_a_chart_whose_values_cannot_be_read_is_not_compared(project: Path) -> None:
    run(project, "generate", "digits")
    values = project / "charts" / "digits" / "values.yaml"
    text = values.read_text()
    for more, problem in (("  : [\n", "cannot be read"), ("---\na: 1\n", "holds 2 YAML documents: Helm 3 reads only")):
        values.write_text(text + more)
        done = run(project, "diff", "digits", "--against", "charts/digits")
        assert done.returncode == 7
        assert f"values.yaml of the other chart {problem}" in done.stderr
