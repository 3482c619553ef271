"""The text of an imported model spec: its sections with short comments. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.kubernetes_yaml import dump_mapping
from trainchart.scaffold.spec_text import SCHEMA_FILE

_COMMENTS = {
    "image": "The training image. The launcher must be in it, or injectLauncher copies it into the pods.",
    "framework": "The TensorFlow that the image holds.",
    "code": "What every pod runs. path is the folder of the code for local runs and for images built here.",
    "strategy": "How the training is distributed; `trainchart import` says how sure that is.",
    "roles": "What each role's pods get.",
    "volumes": "Folders that outlive a pod.",
    "hyperparameters": "What an experiment may vary: numbers that the command gave to flags.",
    "run": "When the run restarts, and when it ends.",
    "podSecurityContext": "The program runs as this user, not as root.",
}


def render_imported(tree: Mapping[str, Any], source: str) -> str:
    """Return the text of a model spec; `source` says what it was imported from."""
    return "\n".join(_sections(tree, source)) + "\n"


def _sections(tree: Mapping[str, Any], source: str) -> Iterator[str]:
    yield f"# yaml-language-server: $schema={SCHEMA_FILE}"
    yield f"# The model spec, imported from {_one_line(source)}. `trainchart plan` shows all defaults."
    yield dump_mapping({key: tree[key] for key in ("apiVersion", "kind", "name", "description")}).rstrip("\n")
    for key, value in tree.items():
        if key not in ("apiVersion", "kind", "name", "description"):
            yield ""
            if key in _COMMENTS:
                yield f"# {_COMMENTS[key]}"
            yield dump_mapping({key: value}).rstrip("\n")


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]
