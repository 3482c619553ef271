"""References `$(NAME)` in the containers of any manifests, as the kubelet reads them."""

from __future__ import annotations

import json

import pytest

from trainchart.check.finding import Case, CheckInput
from trainchart.check.rules.variables import check_names, check_order
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.kubernetes_yaml import parse_documents

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i:1, CONTAINER}]}\n"


def given(container: str) -> CheckInput:
    manifests = tuple(Manifest("p.yaml", document) for document in parse_documents(POD.replace("CONTAINER", container)))
    return CheckInput(files={}, cases=(Case("", Rendering("", "default", manifests, {})),))


def env(**values: str) -> str:
    return f"env: {json.dumps([{'name': name, 'value': value} for name, value in values.items()])}"


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (env(A="x/$(Z)", Z="world"), ["A refers to Z, which is defined after it: $(Z) stays text"]),
        (env(A="$(A):/x"), ["A refers to itself: $(A) stays text"]),
        (env(Z="world", A="x/$(Z)"), []),
        (env(A="$$(Z)", Z="world"), []),
        (env(A="$$$(Z)", Z="world"), ["A refers to Z, which is defined after it: $(Z) stays text"]),
        ("env: [{name: A, value: a}, {name: A, value: $(A)b}]", []),
        ("envFrom: [{secretRef: {name: s}}], " + env(A="$(A)b"), []),
    ],
)
def test_only_variables_before_can_be_referred_to(container: str, expected: list[str]) -> None:
    messages = [finding.message for finding in check_order(given(container))]
    assert messages == [f"Pod p: container c: {message}" for message in expected]


@pytest.mark.parametrize(
    ("container", "circle"),
    [
        (env(A="$(B)", B="$(A)"), "A → B → A: $(B) stays text"),
        (env(X="$(A)", C="$(A)", A="$(B)", B="$(C)"), "C → A → B → C: $(A) stays text"),
    ],
)
def test_a_circle_of_variables_is_called_one(container: str, circle: str) -> None:
    found = [finding for finding in check_order(given(container)) if "circle" in finding.message]
    assert [finding.message for finding in found] == [
        f"Pod p: container c: variables refer to each other in a circle: {circle}"
    ]
    assert [finding.hint for finding in found] == ["no order helps: write out the value of one of them"]


def test_variables_of_an_image_are_called_unknown_to_kubernetes() -> None:
    [finding] = check_names(given(env(PATH2="$(PATH):/x")))
    assert (
        finding.hint
        == "Kubernetes does not know what the image sets: write the value of PATH out, or $$(PATH) for the text"
    )


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (env(A="$(HOME)/x"), ["there is no variable HOME for $(HOME) in A"]),
        ("args: [--task=$(TASK)]", ["there is no variable TASK for $(TASK) in the command"]),
        ("command: [sh, -c, 'echo $(date) $(hostname -s) $$(HOST)']", []),
        ("args: [--task=$(TASK)], " + env(TASK="1"), []),
        ("args: [--task=$(TASK)], envFrom: [{configMapRef: {name: m}}]", []),
        ("args: [$(KUBERNETES_SERVICE_HOST), $(DB_SERVICE_PORT)]", []),
        ("command: [python3, /opt/trainchart/launcher.pyz, --, x, $(TASK_INDEX)]", []),
    ],
)
def test_variables_that_the_container_does_not_have(container: str, expected: list[str]) -> None:
    messages = [finding.message for finding in check_names(given(container))]
    assert messages == [f"Pod p: container c: {message}" for message in expected]
