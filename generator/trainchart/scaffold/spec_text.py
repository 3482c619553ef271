"""The commented model spec that `trainchart init` writes: text a newcomer can read from top to bottom. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainchart.plan.strategies import STRATEGIES
from trainchart.scaffold.flag import Flag
from trainchart.scaffold.script import ScriptFacts

SCHEMA_FILE = ".trainchart-schema.json"
"""Lies beside the specs, so that the comment on top of each finds it without a network."""
_ROLE = {"cpu": "1", "memory": "2Gi"}
"""What a role of a new model gets."""
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


@dataclass(frozen=True)
class NewModel:
    """What a new model's spec says."""

    name: str
    strategy: str
    image: str
    code_path: str
    program: tuple[str, ...]
    """Program without its flags: python train.py."""
    facts: ScriptFacts
    decided: frozenset[str] = frozenset()
    """Dotted keys that the packs of the project decide, which the spec leaves to them."""


def render_spec(model: NewModel) -> str:
    """Return the text of models/<name>.yaml."""
    sections = (_head(model), _code(model), _roles(model), _volumes(model), _hyperparameters(model), _more())
    return "\n".join("\n".join(section) + "\n" for section in map(tuple, sections) if section)


def _head(model: NewModel) -> Iterator[str]:
    yield f"# yaml-language-server: $schema={SCHEMA_FILE}"
    yield "# The model spec: trainchart makes the chart from it. The line above lets editors complete and check keys."
    yield "apiVersion: trainchart/v1"
    yield "kind: Model"
    yield f"name: {model.name}"
    yield f"description: The model {model.name}. Say here in one sentence what it learns."
    yield ""
    yield "# The training image: your code in /app, Python, TensorFlow and the launcher. `trainchart run` needs none."
    yield "image:"
    yield f"  repository: {model.image}"
    yield '  tag: "0.1.0"'


def _code(model: NewModel) -> Iterator[str]:
    yield "# Folder of the code, relative to the folder that holds models/, and what every pod runs in it."
    yield "# The launcher fills in $(NAMES): hyperparameters, folders, and the pod's place in the cluster."
    yield "code:"
    yield f"  path: {_scalar(model.code_path)}"
    yield "  command:"
    for word in (*model.program, *filter(None, [model.facts.command]), *_flags(model.facts)):
        yield f"    - {_scalar(word)}"


def _flags(facts: ScriptFacts) -> Iterator[str]:
    yield from (f"{option}={value}" for option, value in facts.references.items())
    yield from (word for flag in facts.flags for word in flag.words)


def _roles(model: NewModel) -> Iterator[str]:
    strategy = STRATEGIES[model.strategy]
    yield f"# How the training is distributed: {strategy.summary}."
    yield f"# Others: {', '.join(name for name in STRATEGIES if name != model.strategy)}."
    yield "# Change this word, or try another with `trainchart run --strategy`: roles and number of workers follow."
    yield f"strategy: {model.strategy}"
    yield ""
    yield "# What each role's pods get: replicas, cpu, memory, gpus. `trainchart plan` shows all defaults."
    yield "roles:"
    for role in strategy.required:
        settings = (f"{key}: {value}" for key, value in _ROLE.items() if f"roles.{role}.{key}" not in model.decided)
        yield f"  {role}: {{{', '.join(settings)}}}"


def _volumes(model: NewModel) -> Iterator[str]:
    yield "# Folders that outlive a pod; the program finds this one through TRAINCHART_CHECKPOINTS_DIR."
    yield "volumes:"
    for volume in ("checkpoints", "data") if model.facts.reads_data else ("checkpoints",):
        yield f"  {volume}:"
        if volume == "data":
            yield "    # The training data: existingClaim names a claim that already contains it."
        if f"volumes.{volume}.size" not in model.decided:
            yield "    size: 5Gi"
        yield f"    mountPath: /{volume}"
        if f"volumes.{volume}.storageClass" not in model.decided:
            yield "    # Empty: the cluster's default. For several pods it must support ReadWriteMany, such as CephFS."
            yield '    storageClass: ""'


def _hyperparameters(model: NewModel) -> Iterator[str]:
    yield "# What an experiment may vary: --set hyperparameters.NAME=VALUE, for `trainchart run` and `helm install`."
    yield "# Bounds are minimum, exclusiveMinimum, maximum, exclusiveMaximum, and enum for strings."
    yield "hyperparameters:" if model.facts.flags else "hyperparameters: {}"
    for flag in model.facts.flags:
        yield f"  {flag.name}:"
        yield from _hyperparameter(flag)


def _hyperparameter(flag: Flag) -> Iterator[str]:
    settings = flag.hyperparameter.model_dump(by_alias=True, exclude_none=True)
    for key, value in settings.items():
        if isinstance(value, list):
            yield f"    {key}:"
            yield from (f"      - {_scalar(item)}" for item in value)
        elif value != "" or key == "default":
            yield f"    {key}: {_scalar(value)}"


def _more() -> Iterator[str]:
    yield "# Further sections, all optional: run, env, tensorboard, nodeSelector, tolerations, an evaluator role …"


def _scalar(value: Any) -> str:
    """Return `value` as YAML: plain where that cannot be misread, else as JSON, which is YAML too."""
    if isinstance(value, float):
        text = repr(value)
        # Readers of YAML 1.1 take 1e-05 for text.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    is_plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z.][A-Za-z0-9 ,()/._'-]*", value)
    if is_plain and value.lower() not in _YAML_WORDS and not re.search(r"^\.[0-9]|^[.]?(inf|nan)$", value.lower()):
        return str(value)
    # YAML reads some characters that are not printable as line breaks, and forbids others.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in text)
