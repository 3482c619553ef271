"""References `$(NAME)` in a spec: filled in by Kubernetes or the launcher, or refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainchart.errors import PlanError
from trainchart.plan.chart_plan import ChartPlan

Resolve = Callable[..., ChartPlan]
OF_CHIEF = "chief: {cpu: 1, "


def problems(resolved: Resolve, text: str) -> list[tuple[str, str]]:
    try:
        resolved(text)
    except PlanError as refusal:
        return [(problem.message, problem.hint) for problem in refusal.problems]
    return []


@pytest.mark.parametrize(
    "env",
    [
        "{Z: world, A: x/$(Z)}",
        "{A: $(B), B: $(C), C: 3}",
        "{A: $(TRAINCHART_CHECKPOINTS_DIR)/$(TRAINCHART_LOG_DIR), B: $(TRAINCHART_POD_NAME)}",
        "{A: $$(B), B: $$(A)}",
        "{A: $(NVIDIA_VISIBLE_DEVICES) $(KUBERNETES_SERVICE_HOST), B: $(date +%s)}",
        "{A: $(NODE), NODE: {valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}}",
        "{A: $(A) $(TOKEN)}\nenvFrom: [{secretRef: {name: s}}]",
    ],
)
def test_what_kubernetes_fills_in(resolved: Resolve, spec: str, env: str) -> None:
    assert problems(resolved, f"{spec}env: {env}\n") == []


@pytest.mark.parametrize(
    ("env", "message", "hint"),
    [
        ("{A: $(A)x}", "A refers to itself: $(A)", "write $$(A) for the text $(A)"),
        ("{A: $(B), B: $(C), C: $(A)}", "variables refer to each other in a circle: A → B → C → A", ""),
        ("{A: $(WORLDD), WORLD: x}", "chief has no variable WORLDD for A", "did you mean $(WORLD)?"),
        ("{A: $(date)}", "chief has no variable date for A", "write $$(date) for the text $(date)"),
        (
            "{A: $(TRAINCHART_CHECKPOINT_DIR)}",
            "chief has no variable TRAINCHART_CHECKPOINT_DIR for A",
            "did you mean $(TRAINCHART_CHECKPOINTS_DIR)?",
        ),
        (
            "{A: $(TASK_INDEX)}",
            "chief has no variable TASK_INDEX for A",
            "the launcher sets TASK_INDEX after env is filled in: name it in the command",
        ),
        (
            "{A: $(TRAINCHART_HP_X)}\nenvFrom: [{secretRef: {name: s}}]",
            "chief has no variable TRAINCHART_HP_X for A",
            "write $$(TRAINCHART_HP_X) for the text $(TRAINCHART_HP_X)",
        ),
    ],
)
def test_what_stays_text_is_refused(resolved: Resolve, spec: str, env: str, message: str, hint: str) -> None:
    assert (message, hint) in problems(resolved, f"{spec}env: {env}\n")


def test_a_variable_of_one_role_is_not_known_to_others(resolved: Resolve, spec: str) -> None:
    changed = spec.replace(OF_CHIEF, OF_CHIEF + "env: {B: x}, ")
    found = problems(resolved, f"{changed}env: {{A: $(B)}}\n")
    assert [message for message, _ in found] == ["worker has no variable B for A", "ps has no variable B for A"]


def test_a_role_may_take_the_variables_of_all(resolved: Resolve, spec: str) -> None:
    changed = spec.replace(OF_CHIEF, OF_CHIEF + "env: {A: $(B)}, ")
    assert problems(resolved, f"{changed}env: {{B: x}}\n") == []
