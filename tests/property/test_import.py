"""Random inputs of `trainchart import`: a spec that generates, or an error of ours with a next step; no traceback."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.public_inputs import INPUTS
from trainchart.actions.import_ import ImportRequest, import_models
from trainchart.errors import TrainchartError
from trainchart.kubernetes_yaml import dump_mapping, parse_documents

_WORDS = st.sampled_from(
    ["", "a", "$(X)", "ps", "/tmp", "/data", "1Gi", "-1", "on", "{{ x }}", "é", "a b", "--x=1", "sh", "-c", "\x85", "$"]
)
_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats(allow_nan=False) | _WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=8,
)
_KEYS = (
    "volumes", "volumeMounts", "env", "envFrom", "command", "args", "image", "resources", "nodeSelector", "tolerations",
    "affinity", "securityContext", "initContainers", "containers", "workingDir", "imagePullSecrets", "hostAliases",
    "serviceAccountName", "terminationGracePeriodSeconds", "priorityClassName", "dnsConfig", "livenessProbe", "labels",
    "annotations", "replicas", "restartPolicy", "runPolicy", "schedulingPolicy", "backoffLimit", "imagePullPolicy",
    "schedulerName", "topologySpreadConstraints", "dnsPolicy", "runtimeClassName", "activeDeadlineSeconds", "lifecycle",
    "hyperparams", "worker", "ps", "metadata", "name", "number", "template", "spec", "volumeClaimTemplates",
)  # fmt: skip
_DOCUMENTS = [parse_documents(public.text) for key, public in INPUTS.items() if not key.startswith("arena")]


@st.composite
def damaged_documents(draw: st.DrawFn) -> str:
    """Return the YAML of a public input in which some places hold something else."""
    documents = [_copy(document) for document in draw(st.sampled_from(_DOCUMENTS))]
    for _ in range(draw(st.integers(1, 4))):
        holders = [node for document in documents for node in _mappings(document)]
        holder = draw(st.sampled_from(holders))
        holder[draw(st.sampled_from(_KEYS) | st.sampled_from(sorted(holder) or ["x"]))] = draw(_JUNK)
    return "---\n".join(map(dump_mapping, documents))


def _copy(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _copy(value) for key, value in node.items()}
    return [_copy(value) for value in node] if isinstance(node, list) else node


def _mappings(node: Any) -> list[dict[str, Any]]:
    below = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [*([node] if isinstance(node, dict) else []), *(found for value in below for found in _mappings(value))]


def require_spec_or_error(text: str, tally: Counter[str], what: str) -> None:
    """Import a text in a folder of its own; the import itself refuses a spec that does not generate."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("input").write_text(text, encoding="utf-8")
            done = import_models(ImportRequest(Path("input"), "" if "TFJob" in text else "random"))
            tally[f"{what}: imported"] += len(done.models)
        except TrainchartError as error:
            assert error.hint or error.problems, error.message
            tally[f"{what}: refused ({type(error).__name__})"] += 1
        finally:
            os.chdir(here)


@given(text=damaged_documents())
def test_a_damaged_manifest(text: str, tally: Counter[str]) -> None:
    require_spec_or_error(text, tally, "damaged inputs")


@given(text=st.text(st.characters(exclude_categories=("Cs",))) | st.text("{}[]:,-# \n\"'&*!|>ab1", max_size=60))
def test_any_text_to_import(text: str, tally: Counter[str]) -> None:
    require_spec_or_error(text, tally, "any text to import")


@given(words=st.lists(st.sampled_from(
    ["--name=x", "--gpus=1", "--gpus", "x", "--workers=0", "--ps=2", "--image=a/b:1", "--data=c:/d", "--data=:", "-e",
     "A=1", "--env=", "--toleration=a=b:NoSchedule,Equal", "--selector=a", "--label==", "--chief", "--evaluator",
     "--share-memory=1Gi", "--tensorboard", "--running-timeout=2h", "--retry=-1", "--device=amd.com/gpu=1", "--nope",
     "'python a.py --lr=1e-3'", '"sh -c x"', "--"]), max_size=8))  # fmt: skip
def test_any_command_line_of_arena(words: list[str], tally: Counter[str]) -> None:
    text = " ".join(["arena submit tfjob", *words]) + "\n"
    require_spec_or_error(text, tally, "command lines of arena")
