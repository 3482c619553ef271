"""The project file: short, closed, and every mistake named with its line."""

from __future__ import annotations

import pytest

from trainchart.errors import SpecError
from trainchart.packs.project_file import ProjectFile, parse_project_file
from trainchart.packs.source import PackSource

HEAD = "apiVersion: trainchart/v1\nkind: Project\n"


def parse(text: str) -> ProjectFile:
    return parse_project_file(HEAD + text, "trainchart.yaml")


def test_a_project_file_needs_two_lines() -> None:
    project = parse("")
    assert (project.extends, project.models, project.charts) == ([], "models", "charts")


def test_sources_are_paths_or_have_the_words_of_dependencies() -> None:
    project = parse(
        "extends:\n- packs/acme\n- {repository: oci://registry.example.com/packs, name: base, version: 1.0.0}\n"
        "models: ml/models\n"
    )
    path, registry = project.extends
    assert path == PackSource(path="packs/acme")
    assert [source.is_remote for source in project.extends] == [False, True]
    assert str(registry) == "oci://registry.example.com/packs/base:1.0.0"
    assert project.models == "ml/models"


@pytest.mark.parametrize("folder", ["/etc", "..", "a/../b", "", ".", "a//b", "a\\b", "./models"])
def test_folders_lie_in_the_project(folder: str) -> None:
    with pytest.raises(SpecError) as refusal:
        parse(f"models: '{folder}'\n")
    (problem,) = refusal.value.problems
    assert "is not a folder of the project" in problem.message
    assert problem.where == "trainchart.yaml:3:1"


def test_all_mistakes_come_at_once_with_suggestions() -> None:
    with pytest.raises(SpecError, match="the project file is not valid") as refusal:
        parse_project_file("apiVersion: trainchart/v2\nextend: [x]\n", "trainchart.yaml")
    found = {problem.message: problem.hint for problem in refusal.value.problems}
    assert found["unknown key extend"] == "did you mean extends?"
    assert found["kind is missing"] == "Kind of file. Choose one: Project."
    assert "apiVersion: 'trainchart/v2' is not known" in found


def test_what_is_no_mapping_is_called_so() -> None:
    with pytest.raises(SpecError, match="not a mapping of keys to values") as refusal:
        parse_project_file("- packs/acme\n", "trainchart.yaml")
    assert refusal.value.hint == "a project file starts with apiVersion: trainchart/v1 and kind: Project"
