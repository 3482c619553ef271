"""Rules about values.yaml and its schema."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from jsonschema import SchemaError, ValidationError
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from trainchart.archive.lock import LOCK_FILE
from trainchart.archive.values_file import describe_helm_difference
from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import SCHEMA_FILE, VALUES_FILE, chart_file, read_source
from trainchart.helm.asked import read_schemas
from trainchart.helm.misread_values import find_misread_values
from trainchart.kubernetes_yaml import YamlError, YamlTooLarge, parse_mapping
from trainchart.schema_validation import make_validator


def check_values_schema(given: CheckInput) -> Iterator[Finding]:
    """Check that values.yaml is one document, that the schema is a valid JSON schema, and that values.yaml fits it."""
    try:
        problem = describe_helm_difference(read_source(given, VALUES_FILE))
    except YamlTooLarge as error:
        yield Finding(f"is too large: {error.message}", path=VALUES_FILE)
        return
    except YamlError as error:
        if given.values_fit:  # else Helm says what it cannot read
            yield Finding(f"cannot be read: {error.message}", path=VALUES_FILE, line=error.line)
            return
        problem = ""
    if problem:
        yield Finding(problem, path=VALUES_FILE)
        return
    if SCHEMA_FILE not in given.files:
        yield Finding("the chart has no schema for its values", path=SCHEMA_FILE, severity=Severity.warning)
        return
    if given.values_fit:
        return  # Helm compiles the schema with the metaschema, at a tenth of the time that it takes here.
    try:
        schema = json.loads(given.files[SCHEMA_FILE])  # whose errors have lines
        if not isinstance(schema, (dict, bool)):
            yield Finding("is not a JSON schema: expected an object at the top", path=SCHEMA_FILE)
            return
        _check_metaschema(schema)
    except json.JSONDecodeError as error:
        yield Finding(f"is not JSON: {error.msg}", path=SCHEMA_FILE, line=error.lineno)
        return
    except UnicodeDecodeError:
        yield Finding("is not UTF-8 text", path=SCHEMA_FILE)
        return
    except SchemaError as error:
        yield Finding(f"is not a JSON schema: {_where(error)}{error.message}", path=SCHEMA_FILE)
        return
    except RecursionError:
        yield Finding("is not a readable JSON schema: it is nested too deeply", path=SCHEMA_FILE)
        return
    try:
        values = parse_mapping(given.files.get(VALUES_FILE, b"").decode())
    except (YamlError, UnicodeDecodeError) as error:
        yield Finding(f"cannot be read: {error}", path=VALUES_FILE, line=getattr(error, "line", 0))
        return
    found = _find_misfits(schema, values)
    # Where a generated chart lacks the file, lock-drift says so.
    if values or (VALUES_FILE not in given.files and LOCK_FILE in given.files):
        yield from found
    else:
        yield from _sum_up(VALUES_FILE in given.files, tuple(found))


def _sum_up(is_there: bool, misfits: tuple[Finding, ...]) -> Iterator[Finding]:
    """Yield one finding for a values.yaml without values, in place of all that follow from it."""
    if misfits:
        message = "contains no values" if is_there else "is missing"
        hint = "restore it; if the chart is generated, run: trainchart generate MODEL --overwrite"
        yield Finding(f"{message}, but {SCHEMA_FILE} requires values", path=VALUES_FILE, hint=hint, stands_alone=True)


def check_spellings(given: CheckInput) -> Iterator[Finding]:
    """Find numbers and words of the values files given, which Helm reads as something else than what is written."""
    name = str(chart_file(given).get("name", ""))
    try:
        schemas = read_schemas(given.files, name)
    except ValueError:
        return  # another rule says so
    for file, text in given.added_values.items():
        for line, problem in find_misread_values(text, schemas, name):
            if file in given.files:
                yield Finding(problem.message, path=file, line=line, hint=problem.hint)
            else:
                yield Finding(f"line {line}: {problem.message}", hint=problem.hint, values=file)


def _find_misfits(schema: Any, values: Any) -> Iterator[Finding]:
    try:
        for failure in make_validator(schema).iter_errors(values):
            yield Finding(f"does not match {SCHEMA_FILE}: {_where(failure)}{failure.message}", path=VALUES_FILE)
    except RecursionError:
        yield Finding("a $ref leads back to itself, so no value can be checked against it", path=SCHEMA_FILE)
    except Unresolvable as error:
        yield Finding(f"$ref {error.ref!r} leads nowhere in this file", path=SCHEMA_FILE)
    except re.error as error:
        # ECMA's regular expressions, which Helm's engine may know, are not all Python's.
        message = f"the pattern {error.pattern!r} is not understood: {error}"
        yield Finding(message, path=SCHEMA_FILE, severity=Severity.info)


def _check_metaschema(schema: Any) -> None:
    """Raise SchemaError unless `schema` is a valid JSON schema.

    Definitions are checked one by one and remembered: the large ones come from Kubernetes, are the same in
    every chart, and take most of a check's time.
    """
    definitions = schema.get("$defs") if isinstance(schema, dict) else None
    if isinstance(definitions, dict):
        dialect = schema.get("$schema", "")
        for name, definition in definitions.items():
            try:
                _check_definition(json.dumps(definition), dialect if isinstance(dialect, str) else "")
            except SchemaError as error:
                error.path.extendleft([name, "$defs"])
                raise
        schema = {**schema, "$defs": {}}
    validator_for(schema).check_schema(schema)


@functools.lru_cache(maxsize=4096)
def _check_definition(text: str, dialect: str) -> None:
    definition = json.loads(text)
    validator_for({"$schema": dialect} if dialect else {}).check_schema(definition)


def _where(error: ValidationError | SchemaError) -> str:
    path = ".".join(str(part) for part in error.absolute_path)
    return f"{path}: " if path else ""


RULES = (
    Rule(
        "values-schema",
        "A closed, correct schema refuses a typo during installation.",
        check_values_schema,
        "https://helm.sh/docs/topics/charts/#schema-files",
        scope=Scope.charts,
    ),
    Rule(
        "values-as-written",
        "Helm reads 0755 as 493 and 1_0 as 10, and a tag 1.10 becomes 1.1.",
        check_spellings,
        "https://helm.sh/docs/chart_template_guide/yaml_techniques/#scalar-types-in-yaml",
        severity=Severity.warning,
        others=Severity.warning,
        scope=Scope.charts,
    ),
)
