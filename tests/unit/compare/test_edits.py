"""Edits by hand of a generated chart: the diff that is shown, and where the change belongs."""

from __future__ import annotations

import pytest

from trainchart.compare.edits import ChartSource, Edit, describe_diff, suggest_place

SPEC = "models/mnist.yaml"
VALUES = """\
# Program that every role runs.
command: [python, train.py]
roles:
  worker:
    cpu: 1
hyperparameters:
  epochs: 3
"""
TEMPLATE = """\
spec:
<% block pod_spec %>
  shareProcessNamespace: true
  containers:
<% block training_env %>
    env:
      - name: A
<% endblock %>
<% endblock %>
  restartPolicy: Always
"""
RENDERED = """\
spec:
  shareProcessNamespace: true
  containers:
    env:
      - name: A
  restartPolicy: Always
"""
FAMILY = {"templates/pod.yaml": TEMPLATE}


def place(path: str, base: str | None, present: str, made: str | None = "") -> str:
    return suggest_place(Edit(path, present, base, made), ChartSource(SPEC, templates=FAMILY))


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("cpu: 1", "cpu: 2\n    gpus: 1", "set in models/mnist.yaml: roles.worker.cpu: 2, roles.worker.gpus: 1"),
        ("epochs: 3", "epochs: 5", "set in models/mnist.yaml: hyperparameters.epochs.default: 5"),
        ("train.py]", "other.py]", 'set in models/mnist.yaml: code.command: ["python", "other.py"]'),
        ("# Program", "# The program", "comments follow from models/mnist.yaml: write your comments there"),
        ("[python", "[[python", "set the same keys in models/mnist.yaml"),
    ],
)
def test_a_value_belongs_into_the_spec(old: str, new: str, hint: str) -> None:
    assert place("values.yaml", VALUES, VALUES.replace(old, new)) == hint


def test_only_some_of_many_values_are_listed() -> None:
    many = "".join(f"key{number}: 1\n" for number in range(8))
    assert place("values.yaml", VALUES, VALUES + many).endswith("key4: 1, and 3 more")


def test_fields_of_the_chart_file_belong_into_the_spec() -> None:
    chart = 'version: 0.1.0\nappVersion: "1.0"\ndescription: A.\n'
    edited = chart.replace("0.1.0", "0.2.0").replace("1.0", "1.1")
    assert place("Chart.yaml", chart, edited) == 'set in models/mnist.yaml: image.tag: "1.1", version: "0.2.0"'


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("name: A", "name: B", "override the block training_env of templates/pod.yaml in a pack"),
        ("name: A", "name: A\n      - name: B", "override the block training_env of templates/pod.yaml in a pack"),
        ("ace: true", "ace: false", "override the block pod_spec of templates/pod.yaml in a pack"),
        ("Always", "Never", "no block of templates/pod.yaml contains these lines: use a value of the spec"),
        ("spec:\n", "", "no block of templates/pod.yaml contains these lines"),
    ],
)
def test_a_template_belongs_into_a_block_of_a_pack(old: str, new: str, hint: str) -> None:
    assert place("templates/pod.yaml", RENDERED, RENDERED.replace(old, new)).startswith(hint)


def test_several_blocks_are_named() -> None:
    edited = RENDERED.replace("true", "false").replace("name: A", "name: B")
    assert "override the blocks pod_spec, training_env of" in place("templates/pod.yaml", RENDERED, edited)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("templates/mine.yaml", "or put its objects into extraManifests in models/mnist.yaml"),
        ("notes.txt", "keep your own files out of the chart's folder"),
    ],
)
def test_an_added_file_belongs_elsewhere(path: str, hint: str) -> None:
    assert hint in place(path, None, "kind: A\n", None)
    assert describe_diff(Edit(path, "kind: A\n", None, None)) == ""


@pytest.mark.parametrize("path", ["values.schema.json", "README.md", ".helmignore", "ci/every-switch-values.yaml"])
def test_other_files_have_a_hint(path: str) -> None:
    assert place(path, "a", "b")


def test_the_diff_shows_the_edit_alone() -> None:
    edited = VALUES.replace("cpu: 1", "cpu: 2")
    shown = describe_diff(Edit("values.yaml", edited, VALUES, "unlike\n"))
    assert "    | -    cpu: 1\n    | +    cpu: 2" in shown
    assert "unlike" not in shown


def test_without_a_base_the_diff_says_what_it_compares() -> None:
    shown = describe_diff(Edit("values.yaml", "a: 2\n", None, "a: 1\n"))
    assert shown.startswith(" (compared with what is generated now):\n    | @@")
    long = "".join(f"{number}\n" for number in range(100))
    assert describe_diff(Edit("README.md", long, "", "")).endswith("    | … and 81 more lines")


@pytest.mark.parametrize(
    ("path", "base", "present", "hint"),
    [
        ("values.yaml", "quota: 1\n", "quota: 2\n", "set in models/mnist.yaml: values.quota: 2"),
        ("Chart.yaml", "version: 0.1.0\n", "version: 0.2.0\n", 'set in models/mnist.yaml: version: "0.2.0"'),
        ("templates/a.yaml", "a: 1\n", "a: 2\n", "change the templates of the family tenant (trainchart)"),
    ],
)
def test_charts_of_families_follow_from_their_own_spec(path: str, base: str, present: str, hint: str) -> None:
    assert suggest_place(Edit(path, present, base, ""), ChartSource(SPEC, "tenant (trainchart)")) == hint
