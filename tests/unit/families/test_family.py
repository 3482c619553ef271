"""Families from their files: everything that is wrong is named with its file and line, and values know their origin."""

from __future__ import annotations

from pathlib import Path

import pytest
from referencing.exceptions import Unresolvable

from trainchart.errors import SpecError
from trainchart.families.family import SIZE_LIMIT, Family, parse_family
from trainchart.families.schemas import close_schema, find_default_problems, require_values
from trainchart.families.values import FamilyValues, merge_values
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.document import Document, parse_document

HEAD = "apiVersion: trainchart/v1\nkind: Family\ndescription: Counts sheep.\nvalues:\n"
VALUES = """\
  sheep:
    description: How many.
    type: integer
    minimum: 1
    default: 3
  fence:
    description: What they jump over.
    properties:
      height: {description: In metres., type: number}
      colours: {description: Of its planks., type: array, items: {type: string}, default: [red]}
"""


def parse(values: str = VALUES, **others: str) -> Family:
    files = {"family.yaml": HEAD + values, "templates/a.yaml": "a: 1\n", **others}
    return parse_family({path: text.encode() for path, text in files.items()}, "sheep", "families/sheep", "pack p 1")


def spec(values: str) -> Document:
    return parse_document(f"kind: Chart\nvalues: {values}\n", file="models/a.yaml", layer="model spec")


def merge(family: Family, values: str, *layers: str) -> FamilyValues:
    documents = [parse_document(f"values: {layer}\n", file="defaults.yaml", layer="pack q 1") for layer in layers]
    return merge_values(family.values, documents, spec(values))


def test_a_family_knows_its_description_and_its_files() -> None:
    family = parse(
        **{"README.md": "# <%= name %>\n", "ci/a-values.yaml": "sheep: 4\n", "tests/a.yaml": "kind: Chart\n"}
    )
    assert (family.title, family.description) == ("sheep of pack p 1", "Counts sheep.")
    assert dict(family.templates.files) == {"README.md": "# <%= name %>\n", "templates/a.yaml": "a: 1\n"}
    assert family.ci == {"ci/a-values.yaml": b"sheep: 4\n"}
    assert family.tests == {"families/sheep/tests/a.yaml": "kind: Chart\n"}


def test_values_come_from_family_layers_and_spec() -> None:
    values = merge(parse(), "{fence: {height: 1.5}}", "{sheep: 5, fence: {colours+: [blue]}}")
    assert values.tree == {"sheep": 5, "fence": {"height": 1.5, "colours": ["red", "blue"]}}
    assert str(values.origins["sheep",]) == "defaults.yaml:1:10"
    assert str(values.origins["fence", "height"]) == "models/a.yaml:2:18"
    assert str(values.origins["fence", "colours", 0]).startswith("families/sheep/family.yaml:14:")
    (overridden,) = values.overridden["sheep",]
    assert (overridden.value, overridden.origin.layer) == (3, "family sheep of pack p 1")


@pytest.mark.parametrize(
    ("values", "message", "where"),
    [
        ("{}", "values.fence.height is missing", "models/a.yaml:2:1"),
        ("{fence: {height: 1}, shep: 2}", "unknown value values.shep", "models/a.yaml:2:30"),
        ("{fence: {height: 1, witdh: 2}}", "unknown value values.fence.witdh", "models/a.yaml:2:29"),
        ("{fence: {height: 1}, sheep: 0}", "values.sheep: 0 is less than the minimum of 1", "models/a.yaml:2:30"),
        ("{fence: {height: high}}", "values.fence.height: 'high' is not of type 'number'", "models/a.yaml:2:18"),
    ],
)
def test_values_that_do_not_fit_are_named_with_their_line(values: str, message: str, where: str) -> None:
    family = parse()
    with pytest.raises(SpecError) as refused:
        require_values(merge(family, values), close_schema(family.values.tree[VALUES_KEY]), family.title)
    (problem,) = refused.value.problems
    assert (problem.message, problem.where) == (message, where)


@pytest.mark.parametrize(
    ("values", "message", "line"),
    [
        ("  a: 3\n", "values.a is not a JSON Schema", 5),
        ("  a-b: {description: A., default: 1}\n", "values.a-b is not a valid value name", 5),
        ("  a: {type: integer}\n", "values.a has no description", 5),
        ("  a:\n    description: A.\n    type: whole\n", "values.a.type is not a valid JSON Schema", 7),
        ("  a: {description: A., $ref: 'http://127.0.0.1/'}\n", "values.a.$ref refers to another schema", 5),
        ("  a: {description: A., items: {$dynamicRef: '#'}}\n", "values.a.items.$dynamicRef refers to", 5),
        ("  a: {description: A., pattern: '('}\n", "values.a.pattern is not a regular expression", 5),
        ("  a: {description: A., default: null}\n", "values.a.default is null, which Helm removes", 5),
        ("  a: {description: A., defualt: 1}\n", "values.a.defualt is not a JSON Schema keyword", 5),
        ("  a: {description: A., items: {patern: b}}\n", "values.a.items.patern is not a JSON Schema keyword", 5),
        (
            "  a: {description: A., kubernetesDefinition: 3}\n",
            "values.a.kubernetesDefinition is not a Kubernetes type",
            5,
        ),
        ("  global: {description: A., default: 1}\n", "values.global is reserved for Helm", 5),
        ("  a: {description: A., default: 1, properties: {}}\n", "values.a.default is not part of a section", 5),
        ("  a: {description: A., properties: 1}\n", "values.a.properties is not a mapping", 5),
    ],
)
def test_schemas_that_make_no_sense_are_refused(values: str, message: str, line: int) -> None:
    with pytest.raises(SpecError) as refused:
        parse(values)
    problem = refused.value.problems[0]
    assert message in problem.message
    assert problem.where.startswith(f"families/sheep/family.yaml:{line}:")


@pytest.mark.parametrize("keyword", ["properties", "patternProperties", "dependentSchemas"])
@pytest.mark.parametrize("name", ["default", "const", "enum", "examples"])
def test_no_name_of_a_property_hides_a_reference(keyword: str, name: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(f"  a: {{description: A., items: {{{keyword}: {{{name}: {{$ref: 'file:///etc/passwd'}}}}}}}}\n")
    assert f"values.a.items.{keyword}.{name}.$ref refers" in refused.value.problems[0].message


def test_comparing_values_with_a_schema_fetches_nothing(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"type": "string"}')
    schema = {"properties": {"sheep": {"$ref": f"file://{tmp_path}/other.json"}}}
    with pytest.raises(Unresolvable):
        require_values(merge(parse(), "{fence: {height: 1}}"), schema, "sheep")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("  a: {description: A., type: integer, default: x}\n", "a.default does not fit its own schema: 'x' is not"),
        (
            "  a: {description: A., items: {kubernetesDefinition: io.k8s.Pot}}\n",
            "Pot, which is not a Kubernetes type",
        ),
        (
            "  b:\n    description: B.\n    properties:\n      a: {description: A., maximum: 1, default: 2}\n",
            "b.properties.a",
        ),
    ],
)
def test_wrong_defaults_and_types_are_named(values: str, message: str) -> None:
    (problem,) = find_default_problems(parse(values).values, {"io.k8s.Pod": {}})
    assert message in problem.message
    assert problem.where.startswith("families/sheep/family.yaml:")


def test_a_large_family_is_refused() -> None:
    with pytest.raises(SpecError, match="has more than 512 KiB"):
        parse(**{"README.md": "a" * SIZE_LIMIT})


def test_a_default_may_hold_what_looks_like_a_reference() -> None:
    assert parse("  a: {description: A., default: {$ref: x}}\n")


def test_files_for_templates_become_files_of_the_chart() -> None:
    assert ("files/rules.yaml", "b: 2\n") in parse(**{"files/rules.yaml": "b: 2\n"}).templates.files


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("template/a.yaml", "unknown file or folder template"),
        ("ci/a.yaml", "not a set of values"),
        ("tests/a/b.yaml", "not a spec"),
        ("templates/a.txt", "not a valid template name"),
        ("files/a/b.yaml", "not a file that templates can read"),
        ("values.yaml", "unknown file or folder values.yaml"),
    ],
)
def test_files_that_nothing_would_read_are_refused(path: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(**{path: "a: 1\n"})
    assert message in refused.value.problems[0].message


def test_a_folder_without_family_file_is_refused() -> None:
    with pytest.raises(SpecError, match=r"families/x is not a family: it has no family\.yaml"):
        parse_family({"templates/a.yaml": b"a: 1\n"}, "x", "families/x", "pack p 1")
