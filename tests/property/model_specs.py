"""Random model specs: well-typed ones over everything an author may write, and ones with something wrong."""

from __future__ import annotations

import copy
import functools
from typing import Any

from hypothesis import strategies as st

from tests.property.schema_values import SchemaValues, texts
from trainchart.actions.schema import read_spec_schema
from trainchart.plan.strategies import STRATEGIES

_SHARED = (
    "env", "podLabels", "podAnnotations", "envFrom", "workingDir", "containerSecurityContext", "livenessProbe",
    "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName", "hostAliases",
    "dnsConfig", "podSecurityContext", "initContainers", "extraContainers", "extraVolumes", "extraVolumeMounts",
)  # fmt: skip
_TOP = (
    "args", "run", "gpu", "service", "networkPolicy", "podDisruptionBudget", "serviceAccount", "commonLabels",
    "commonAnnotations", "annotations", "keywords", "home", "version", "license", "sources", "maintainers",
)  # fmt: skip
_CPUS = st.sampled_from([1, 2, 0.5, "500m", "1", "1.5", 1e1])
_MEMORIES = st.sampled_from(["1Gi", "512Mi", "2G", "1e10", 4294967296, "8Gi"])
_LINES = st.from_regex(r"[!-~äöü漢é€]([ -~äöü漢é€]{0,20}[!-~])?", fullmatch=True)
_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2000) | st.floats() | texts(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
    max_leaves=6,
)


@functools.cache
def spec_values() -> SchemaValues:
    """Return the source of values for whatever the published schema of specs describes."""
    return SchemaValues(read_spec_schema())


def _some(keys: tuple[str, ...], most: int, section: str = "") -> st.SearchStrategy[dict[str, Any]]:
    """Return values for up to `most` of `keys`, as the schema of specs wants them."""
    known = spec_values()
    properties = known.root["$defs"][section]["properties"] if section else known.root["properties"]

    @st.composite
    def draw_some(draw: st.DrawFn) -> dict[str, Any]:
        chosen = draw(st.lists(st.sampled_from(keys), unique=True, max_size=most))
        return {key: draw(known.fitting(properties[key])) for key in chosen}

    return draw_some()


@st.composite
def _roles(draw: st.DrawFn, strategy: str) -> dict[str, Any]:
    roles: dict[str, Any] = {}
    for name, replicas in STRATEGIES[strategy].roles.items():
        if not draw(st.booleans()):
            continue
        role = draw(st.fixed_dictionaries({}, optional={"cpu": _CPUS, "memory": _MEMORIES, "gpus": st.integers(0, 2)}))
        if draw(st.booleans()):
            role["replicas"] = draw(st.integers(replicas.minimum, min(replicas.maximum, 5)))
        roles[name] = {**role, **draw(_some(_SHARED, 2, "RoleSettings"))} or None
    return roles


@st.composite
def _volumes(draw: st.DrawFn, needs_checkpoints: bool) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(["data", "logs", "scratch-2", "x"]), unique=True, max_size=2))
    sources = (
        {"size": "20Gi"},
        {"size": 1e9, "storageClass": "cephfs"},
        {"existingClaim": "old-claim", "readOnly": True},
        {"uri": "s3://bucket/path"},
    )
    chosen = [*names, *(["checkpoints"] if needs_checkpoints or draw(st.booleans()) else [])]
    return {name: {"mountPath": f"/{name}", **draw(st.sampled_from(sources))} for name in chosen}


@st.composite
def _hyperparameters(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.from_regex(r"[a-z][A-Za-z0-9]{0,8}", fullmatch=True), unique=True, max_size=4))
    kinds = {
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "integer": st.integers(-(2**53), 2**53),
        "string": texts(),
        "boolean": st.booleans(),
    }
    parameters: dict[str, Any] = {}
    for name in names:
        kind = draw(st.sampled_from(sorted(kinds)))
        parameter = {"type": kind, "default": draw(kinds[kind])}
        if kind in ("number", "integer") and draw(st.booleans()):
            parameter[draw(st.sampled_from(["minimum", "maximum"]))] = parameter["default"]
        if kind == "string" and draw(st.booleans()):
            parameter["enum"] = [parameter["default"], "other"]
        if draw(st.booleans()):
            parameter["description"] = draw(_LINES)
        parameters[name] = parameter
    return parameters


@st.composite
def well_typed_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a spec in which every key and type is right; most of them can be trained."""
    strategy = draw(st.sampled_from(sorted(STRATEGIES)))
    roles = draw(_roles(strategy))
    tensorboard = draw(st.booleans())
    return {
        "apiVersion": "trainchart/v1",
        "kind": "Model",
        "name": draw(st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)),
        "description": draw(_LINES),
        "image": {"repository": "registry.example.com/ml/mnist", "tag": draw(st.sampled_from(["1.4.0", 20261121]))},
        "framework": {"flavour": "gpu"},
        "code": {"path": ".", "command": draw(st.lists(texts(), min_size=1, max_size=3))},
        "strategy": strategy,
        "roles": roles,
        "volumes": draw(_volumes(tensorboard or "evaluator" in roles)),
        "hyperparameters": draw(_hyperparameters()),
        "tensorboard": tensorboard,
        **draw(_some(_SHARED, 2)),
        **draw(_some(_TOP, 2)),
    }


@st.composite
def damaged_specs(draw: st.DrawFn) -> Any:
    """Draw a spec in which up to three nodes are something else, gone, or new."""
    spec = copy.deepcopy(draw(well_typed_specs()))
    for _ in range(draw(st.integers(1, 3))):
        node = spec
        while True:
            key = draw(st.sampled_from(list(node) if isinstance(node, dict) else list(range(len(node)))))
            if not isinstance(node[key], (dict, list)) or not node[key] or draw(st.integers(0, 2)) == 0:
                break
            node = node[key]
        action = draw(st.sampled_from(["replace", "drop", "add"]))
        if action == "replace" or isinstance(node, list):
            node[key] = draw(_JUNK)
        elif action == "drop" and len(node) > 1:
            del node[key]
        else:
            node[draw(texts())] = draw(_JUNK)
    return spec
