"""The objects one Kubernetes version knows, compiled once and asked often.

The definitions come from host/kubernetes_schemas.py. Validators and verdicts are kept, because most objects
of a chart are the same from case to case and compiling costs more than validating.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from referencing import Registry, Resource

_BASE = "https://kubernetes.io/api/_definitions.json"
_MESSAGE_LIMIT = 240
_STABLE = re.compile(r"(?:^|/)v\d+$")
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
POD_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"
_NAMED_TEXTS = ("apiVersion", "kind")


class KubernetesSchemas:
    """Strict JSON schemas of one Kubernetes version, such as "1.33"; `definitions` maps names to schemas."""

    def __init__(self, version: str, definitions: Mapping[str, Any]) -> None:
        self.version = version
        contents = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": _BASE,
            "$defs": definitions,
        }
        self._registry: Registry[Any] = Resource.from_contents(contents) @ Registry()
        self._names = {
            (f"{known['group']}/{known['version']}".lstrip("/"), known["kind"]): name
            for name, schema in definitions.items()
            for known in schema.get("x-kubernetes-group-version-kind", ())
        }
        self._groups = {_group(api_version) for api_version, _ in self._names}
        self._validators: dict[str, Draft202012Validator] = {}
        self._accepted: dict[str, bool] = {}
        """By the shape of an object: most differ in texts and numbers only."""
        self._verdicts: dict[str, tuple[str, ...]] = {}

    def find_errors(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what this version would refuse in `document`; nothing for kinds of other API groups."""
        return self._ask(document, self._errors, "")

    def find_part_errors(self, definition: str, part: object, where: str) -> tuple[str, ...]:
        """Return what the schema `definition` refuses in `part` of an object, which is at `where`; null is fine."""
        if part is None:
            return ()
        return self._ask(part, lambda shape: self._compare(definition, shape, where), f"{definition} {where} ")

    def has_group(self, group: str) -> bool:
        """Tell whether this version knows the API group; the empty one is Kubernetes' core."""
        return group in self._groups

    def lacks(self, api_version: str, kind: str) -> bool:
        """Tell whether the kind is missing from a group that this version has."""
        return self.has_group(_group(api_version)) and (api_version, kind) not in self._names

    def find_api_versions(self, kind: str) -> tuple[str, ...]:
        """Return the versions of APIs that have `kind`, such as policy/v1: the stable ones where there are any."""
        known = sorted(api_version for api_version, other in self._names if other == kind)
        return tuple(filter(_STABLE.search, known)) or tuple(known)

    def _ask(self, part: Any, find: Callable[[Any], list[str]], question: str) -> tuple[str, ...]:
        shape = _shape(part)
        key = question + json.dumps(shape, default=str)
        if key not in self._accepted:
            self._accepted[key] = not find(shape)
        if self._accepted[key]:
            return ()
        key = question + json.dumps(part, default=str)
        if key not in self._verdicts:
            self._verdicts[key] = tuple(find(part))
        return self._verdicts[key]

    def _errors(self, document: Mapping[str, Any]) -> list[str]:
        api_version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
        if not api_version or not kind:
            return ["the object has no apiVersion or no kind"]
        name = self._names.get((api_version, kind))
        if name is None:
            if _group(api_version) in self._groups:
                return [f"there is no {kind} in {api_version}"]
            return []
        return self._compare(name, document)

    def _compare(self, name: str, part: Any, where: str = "") -> list[str]:
        if name not in self._validators:
            self._validators[name] = Draft202012Validator({"$ref": f"{_BASE}#/$defs/{name}"}, registry=self._registry)
        return sorted(_describe(error, where) for error in self._validators[name].iter_errors(_without_nulls(part)))


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _shape(node: Any) -> Any:
    """Return `node` without what no schema looks at: what texts and numbers say, and entries like others of a list.

    Kubernetes' schemas tell types, required and known fields; the only texts that they name are apiVersion and kind.
    """
    if isinstance(node, Mapping):
        return {
            key: value if key in _NAMED_TEXTS and isinstance(value, str) else _shape(value)
            for key, value in node.items()
            if value is not None
        }
    if isinstance(node, list):
        return list({json.dumps(shape, default=str): shape for shape in map(_shape, node)}.values())
    if isinstance(node, bool) or not isinstance(node, (str, int, float)):
        return node
    if isinstance(node, float):
        return 0.0 if node.is_integer() else 0.5
    return type(node)()


def _without_nulls(node: Any) -> Any:
    """Leave out what is null, as the API server does: the schemas take it for a field that is there."""
    if isinstance(node, Mapping):
        return {key: _without_nulls(value) for key, value in node.items() if value is not None}
    return [_without_nulls(entry) for entry in node] if isinstance(node, list) else node


def _describe(error: ValidationError, where: str) -> str:
    deepest = best_match(error.context) if error.context else None
    # Every schema also takes null, which no author means.
    message = (deepest or error).message.replace(", 'null'", "")
    if len(message) > _MESSAGE_LIMIT:
        message = message[: _MESSAGE_LIMIT - 1] + "…"
    below = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    path = f"{where}{below}".lstrip(".")
    return f"{path or 'the object'}: {message}"
