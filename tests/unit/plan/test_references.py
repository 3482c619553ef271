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
        "{A: $(TRAINCHART_CHECKPOINTS_DIR)/$(TRAINCHART_TENSORBOARD_DIR), B: $(TRAINCHART_POD_NAME)}",
        "{A: $$(B), B: $$(A)}",
        "{A: $(NVIDIA_VISIBLE_DEVICES) $(KUBERNETES_SERVICE_HOST), B: $(date +%s)}",
        "{A: $(NODE), NODE: {valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}}",
        "{A: $(A) $(TOKEN)}\nenvFrom: [{secretRef: {name: s}}]",
    ],
)
def test_what_kubernetes_fills_in(resolved: Resolve, spec: str, env: str) -> None:
    assert problems(resolved, f"{spec}env: {env}\n") == []


OF_IMAGE = "Kubernetes does not know what the image sets: write the value of {0} out, or $$({0}) for the text"


@pytest.mark.parametrize(
    ("env", "message", "hint"),
    [
        ("{A: $(A)x}", "A refers to itself: $(A)", "write $$(A) for the text $(A)"),
        ("{A: $(B), B: $(C), C: $(A)}", "variables refer to each other in a circle: A → B → C → A", ""),
        ("{A: $(WORLDD), WORLD: x}", "chief has no variable WORLDD for A", "did you mean $(WORLD)?"),
        ("{PATH2: '$(PATH):/x'}", "chief has no variable PATH for PATH2", OF_IMAGE.format("PATH")),
        ("{PATH: '$(PATH):/x'}", "PATH refers to itself: $(PATH)", OF_IMAGE.format("PATH")),
        ("{HOMES: x, A: $(HOME)/x}", "chief has no variable HOME for A", OF_IMAGE.format("HOME")),
        ("{DATA2: $(DATA)}", "chief has no variable DATA for DATA2", "write $$(DATA) for the text $(DATA)"),
        ("{A: $(date)}", "chief has no variable date for A", "write $$(date) for the text $(date)"),
        (
            "{A: $(TRAINCHART_CHECKPOINT_DIR)}",
            "chief has no variable TRAINCHART_CHECKPOINT_DIR for A",
            "did you mean $(TRAINCHART_CHECKPOINTS_DIR)?",
        ),
        (
            "{A: $(TRAINCHART_RAW_DATA_DIR)/x}",
            "chief has no variable TRAINCHART_RAW_DATA_DIR for A",
            "add a volume raw-data to volumes",
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


HYPERPARAMETERS = """\
hyperparameters:
  dropout: {type: number, default: 0.1}
  fast: {type: boolean, default: true}
  seed: {type: integer}
"""
FILLED = [
    "$(TRAINCHART_HP_DROPOUT) $(TRAINCHART_HP_DROPOUT?) $(TRAINCHART_HP_FAST+) $(TRAINCHART_HP_SEED?)",
    "$(TASK_TYPE) $(WORKER_HOSTS) $(TF_CONFIG) $(TRAINCHART_ATTEMPT) $(TRAINCHART_PROGRESS_FILE)",
    "$(TRAINCHART_CHECKPOINTS_DIR)/x $(TRAINCHART_POD_NAME) $(TRAINCHART_TENSORBOARD_DIR)",
    "$$(TRAINCHART_HP_DROPOUTT) $(date) $(HOSTNAME) $(KUBERNETES_SERVICE_HOST)",
]
UNFILLED = [
    (
        "$(TRAINCHART_HP_DROPOUTT)",
        "nothing fills in $(TRAINCHART_HP_DROPOUTT)",
        "did you mean $(TRAINCHART_HP_DROPOUT)?",
    ),
    ("$(TRAINCHART_HP_SED?)", "nothing fills in $(TRAINCHART_HP_SED?)", "did you mean $(TRAINCHART_HP_SEED?)?"),
    (
        "$(TRAINCHART_HP_MOMENTUM)",
        "nothing fills in $(TRAINCHART_HP_MOMENTUM)",
        "the hyperparameters are TRAINCHART_HP_DROPOUT, TRAINCHART_HP_FAST, TRAINCHART_HP_SEED",
    ),
    (
        "$(TRAINCHART_DATA_DIR)/mnist.npz",
        "nothing fills in $(TRAINCHART_DATA_DIR)",
        "add a volume data to volumes",
    ),
    ("$(TASK_INDX)", "nothing fills in $(TASK_INDX)", "did you mean $(TASK_INDEX)?"),
    (
        "$(TRAINCHART_CHECKPOINTS)",
        "nothing fills in $(TRAINCHART_CHECKPOINTS)",
        "did you mean $(TRAINCHART_CHECKPOINTS_DIR)?",
    ),
    (
        "$(TRAINCHART_POD_NAME?)",
        "$(TRAINCHART_POD_NAME?) has a question mark, which only hyperparameters may have",
        "write $(TRAINCHART_POD_NAME)",
    ),
    (
        "$(TRAINCHART_HP_DROPOUT+)",
        "$(TRAINCHART_HP_DROPOUT+) is for a boolean, and this is of type number",
        "write $(TRAINCHART_HP_DROPOUT)",
    ),
    (
        "$(TRAINCHART_HP_SEED)",
        "$(TRAINCHART_HP_SEED) has no value until an experiment sets one",
        "write $(TRAINCHART_HP_SEED?), which omits the argument, or give the hyperparameter a default",
    ),
]


@pytest.mark.parametrize("words", FILLED)
def test_words_that_are_filled_in(resolved: Resolve, spec: str, words: str) -> None:
    assert problems(resolved, f"{spec}args: ['{words}']\n{HYPERPARAMETERS}") == []


@pytest.mark.parametrize(("word", "message", "hint"), UNFILLED)
def test_words_that_stay_text_are_refused(resolved: Resolve, spec: str, word: str, message: str, hint: str) -> None:
    assert problems(resolved, f"{spec}args: ['--x={word}']\n{HYPERPARAMETERS}") == [(f"args: {message}", hint)]
    command = spec.replace("mnist.train]", f"mnist.train, '--x={word}']")
    assert problems(resolved, command + HYPERPARAMETERS) == [(f"code.command: {message}", hint)]


def test_the_program_of_one_role_is_checked_too(resolved: Resolve, spec: str) -> None:
    changed = spec.replace(OF_CHIEF, OF_CHIEF + "args: ['$(TRAINCHART_HP_X)'], ")
    assert problems(resolved, changed)[0][0] == "roles.chief.args: nothing fills in $(TRAINCHART_HP_X)"


def test_a_secret_may_bring_any_name_but_ours(resolved: Resolve, spec: str) -> None:
    text = f"{spec}envFrom: [{{secretRef: {{name: s}}}}]\nargs: ['$(TASK_INDX) $(TRAINCHART_X)']\n"
    assert [message for message, _ in problems(resolved, text)] == ["args: nothing fills in $(TRAINCHART_X)"]


@pytest.mark.parametrize("key", ["initContainers", "extraContainers"])
def test_own_containers_have_their_own_variables_only(resolved: Resolve, spec: str, key: str) -> None:
    def found(container: str) -> list[tuple[str, str]]:
        return problems(resolved, f"{spec}{key}: [{{name: c, image: i:1, {container}}}]\n")

    message = f"{key}: nothing fills in $(TRAINCHART_TENSORBOARD_DIR) of c"
    hint = "your own container has only its own env: set TRAINCHART_TENSORBOARD_DIR there"
    assert found("args: ['$(TRAINCHART_TENSORBOARD_DIR)']") == [(message, hint)]
    assert found("env: [{name: A, value: $(TRAINCHART_TENSORBOARD_DIR)}]") == [(message, hint)]
    assert (
        found("args: ['$(TRAINCHART_TENSORBOARD_DIR)'], env: [{name: TRAINCHART_TENSORBOARD_DIR, value: /logs}]") == []
    )
    assert found("args: ['$(TRAINCHART_TENSORBOARD_DIR)'], envFrom: [{configMapRef: {name: m}}]") == []
    assert found("args: ['$(OTHER)']") == []


@pytest.mark.parametrize(
    ("command", "more", "notes"),
    [
        ("[python, train.py, --data=$DATA]", "", ["code.command: the program gets $DATA as text; write $(DATA)"]),
        ("[python, train.py, '${DATA}/x']", "", ["code.command: the program gets ${DATA} as text; write $(DATA)"]),
        (
            "[python, train.py]",
            "args: [--lr, $learningRate]",
            ["args: the program gets $learningRate as text; write $(TRAINCHART_HP_LEARNING_RATE)"],
        ),
        (
            "[python, train.py]",
            "args: [$TASK_INDEX]",
            ["args: the program gets $TASK_INDEX as text; write $(TASK_INDEX)"],
        ),
        ("[sh, -c, python train.py --data=$DATA]", "", []),
        ("[/bin/bash, -ec]", "args: [python train.py --data=$DATA]", []),
        ("[python, train.py, $$DATA, $(DATA), $OTHER, US$, $1]", "", []),
    ],
)
def test_a_variable_as_in_a_shell_is_noted(
    resolved: Resolve, spec: str, command: str, more: str, notes: list[str]
) -> None:
    text = spec.replace("[python, -m, mnist.train]", command)
    text += f"env: {{DATA: /data}}\nhyperparameters: {{learningRate: {{type: number, default: 0.1}}}}\n{more}\n"
    plan = resolved(text)
    assert [note.message for note in plan.notes] == notes
    assert all(note.where.startswith("m.yaml:") for note in plan.notes)


def test_a_variable_as_in_a_shell_is_noted_in_env(resolved: Resolve, spec: str) -> None:
    (note,) = resolved(f"{spec}env: {{DATA: /data, TEST: $DATA/test, PRICE: 5$}}\n").notes
    assert note.message == "env.TEST: the program gets $DATA as text; write $(DATA)"
