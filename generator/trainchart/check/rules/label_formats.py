"""The rule that labels, selectors and annotations are written as Kubernetes wants them, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import Finding
from trainchart.check.formats import DNS_LABEL_LIMIT, is_annotation_key, is_label_key, is_label_value
from trainchart.check.objects import called
from trainchart.check.pod_templates import is_of_kubernetes, pod_templates
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.plan.scheduling import find_expression_problems

_SELECTING = {"matchLabels", "nodeSelector"}
_NODE_TERMS = {"nodeSelectorTerms", "preference"}
_PLAIN_SELECTORS = {"Service", "ReplicationController"}
_NODE_FIELD = "metadata.name"
"""The only field of nodes, beside their labels, that an affinity can match."""


@for_each_rendering
def check_labels_valid(rendering: Rendering) -> Iterator[Finding]:
    """Check keys and values of labels and selectors, and keys of annotations, in objects and pod templates."""
    for manifest in rendering.manifests:
        for problem in dict.fromkeys(_problems(manifest)):
            yield Finding(f"{called(manifest)}: {problem}", path=manifest.source, line=manifest.line)


def _problems(manifest: Manifest) -> Iterator[str]:
    document = manifest.document
    yield from _metadata_problems(document.get("metadata"), "metadata")
    if not is_of_kubernetes(manifest):
        for template in pod_templates(manifest):
            yield from _nested_problems(template.content, template.where)
    if not is_of_kubernetes(manifest) or manifest.kind == "CustomResourceDefinition":
        return  # What the other fields of an added kind mean is not known.
    spec = document.get("spec")
    if manifest.kind in _PLAIN_SELECTORS and isinstance(spec, Mapping):
        yield from _label_problems(spec.get("selector"), "spec.selector")
    for key, value in document.items():
        if key != "metadata":
            yield from _nested_problems(value, key)


def _nested_problems(node: Any, where: str, *, of_nodes: bool = False) -> Iterator[str]:
    if isinstance(node, list):
        for number, entry in enumerate(node):
            yield from _nested_problems(entry, f"{where}[{number}]", of_nodes=of_nodes)
    elif isinstance(node, Mapping):
        for key, value in node.items():
            below = f"{where}.{key}"
            if key == "metadata":
                yield from _metadata_problems(value, below)
            elif key in _SELECTING:
                yield from _label_problems(value, below)
            else:
                if key == "matchExpressions":
                    yield from _expression_problems(value, below, of_nodes=of_nodes)
                elif key == "matchFields" and of_nodes:
                    yield from _field_problems(value, below)
                yield from _nested_problems(value, below, of_nodes=key in _NODE_TERMS)


def _metadata_problems(metadata: Any, where: str) -> Iterator[str]:
    if isinstance(metadata, Mapping):
        # names-fit tells of values that are too long, at every length of the release's name.
        yield from _label_problems(metadata.get("labels"), f"{where}.labels", is_length_told=True)
        annotations = metadata.get("annotations")
        for key in annotations if isinstance(annotations, Mapping) else ():
            if not is_annotation_key(str(key)):
                yield f"{where}.annotations: {key!r} is not a valid annotation key"


def _label_problems(labels: Any, where: str, *, is_length_told: bool = False) -> Iterator[str]:
    for key, value in labels.items() if isinstance(labels, Mapping) else ():
        if not is_label_key(str(key)):
            yield f"{where}: {key!r} is not a valid label key"
        is_told = is_length_told and len(str(value)) > DNS_LABEL_LIMIT
        if isinstance(value, str) and not is_label_value(value) and not is_told:
            yield f"{where}.{key}: {value!r} is not a valid label value"


def _expression_problems(expressions: Any, where: str, *, of_nodes: bool) -> Iterator[str]:
    for expression in expressions if isinstance(expressions, list) else ():
        if not isinstance(expression, Mapping):
            continue
        key = expression.get("key")
        if not is_label_key(str(key)):
            yield f"{where}: {key!r} is not a valid label key"
        for problem in find_expression_problems(expression, of_nodes=of_nodes):
            yield f"{where}: {key}: {problem}"


def _field_problems(expressions: Any, where: str) -> Iterator[str]:
    for expression in expressions if isinstance(expressions, list) else ():
        if not isinstance(expression, Mapping):
            continue
        key, operator, values = (expression.get(field) for field in ("key", "operator", "values"))
        if key != _NODE_FIELD:
            yield f"{where}: {key!r} is not {_NODE_FIELD}"
        if operator not in ("In", "NotIn") or not isinstance(values, list) or len(values) != 1:
            yield f"{where}: {key}: matchFields takes In or NotIn with exactly one value"


RULES = (
    Rule(
        "labels-valid",
        "The API server refuses a label with a space, an extra slash or a trailing dash, and an `In` expression "
        "without values.",
        check_labels_valid,
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set",
    ),
)
