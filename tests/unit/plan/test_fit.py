"""The strategy is one word: whatever else a spec says, it can be changed to any other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from trainchart.errors import PlanError
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.strategies import STRATEGIES
from trainchart.scaffold.script import ScriptFacts
from trainchart.scaffold.spec_text import NewModel, render_spec

Resolve = Callable[..., ChartPlan]
ROOT = Path(__file__).parent.parent.parent.parent
WRITTEN = [ROOT / "models" / f"{name}.yaml" for name in ("digits", "hello", "mnist", "mnist-multi-gpu")]
WRITTEN += [ROOT / "tests" / "golden" / name / "spec.yaml" for name in ("multi-worker-mirrored", "parameter-server")]
FACTS = ScriptFacts((), {}, "single", ())


def with_strategy(spec: str, strategy: str) -> str:
    return re.sub(r"^strategy: .*$", f"strategy: {strategy}", spec, flags=re.M)


def new_spec(strategy: str) -> str:
    return render_spec(NewModel("new", strategy, "r/new", "training/new", ("python", "train.py"), FACTS))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_spec_can_be_given_any_strategy(resolved: Resolve, strategy: str) -> None:
    for path in WRITTEN:
        plan = resolved(with_strategy(path.read_text(), strategy))
        assert set(STRATEGIES[strategy].required) <= set(plan.roles) <= set(STRATEGIES[strategy].roles)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("first", STRATEGIES)
def test_changed_strategy_gives_what_a_new_spec_of_it_gives(resolved: Resolve, first: str, strategy: str) -> None:
    plan, wanted = resolved(with_strategy(new_spec(first), strategy)), resolved(new_spec(strategy))
    for role in STRATEGIES[strategy].required:
        assert plan.values.roles[role] == wanted.values.roles[role]
    assert plan.values.volumes == wanted.values.volumes
    assert plan.spec.framework == wanted.spec.framework


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_workers_gpus_and_access_modes_follow_from_the_strategy(resolved: Resolve, strategy: str) -> None:
    plan = resolved(new_spec(strategy))
    worker, is_one_pod = plan.values.roles["worker"], strategy in ("single", "mirrored")
    assert worker.replicas == (1 if is_one_pod else 2)
    assert (plan.spec.framework.flavour, worker.gpus) == (("gpu", 2) if strategy == "mirrored" else ("cpu", 0))
    assert plan.values.volumes["checkpoints"].access_mode == ("ReadWriteOnce" if is_one_pod else "ReadWriteMany")
    assert plan.notes == ()


@pytest.mark.parametrize("more", ["tensorboard: true\n", "  evaluator: {}\n"])
def test_a_second_pod_makes_the_claim_shared(resolved: Resolve, more: str) -> None:
    text = new_spec("single").replace("\nroles:\n", f"\nroles:\n{more}" if "eval" in more else f"\n{more}roles:\n")
    assert resolved(text).values.volumes["checkpoints"].access_mode == "ReadWriteMany"


def test_what_the_spec_sets_wins_over_the_strategy(resolved: Resolve) -> None:
    text = with_strategy(new_spec("single"), "mirrored") + "framework: {flavour: cpu}\n"
    assert resolved(text).values.roles["worker"].gpus == 0
    text = new_spec("parameter-server").replace("worker: {", "worker: {replicas: 3, ")
    assert resolved(text).values.roles["worker"].replicas == 3
    text = new_spec("single").replace("size: 5Gi", "size: 5Gi\n    accessMode: ReadWriteOncePod")
    assert resolved(text).values.volumes["checkpoints"].access_mode == "ReadWriteOncePod"
    with pytest.raises(PlanError) as refusal:
        resolved(with_strategy(text, "parameter-server"))
    assert "leave accessMode out" in refusal.value.problems[0].hint


def test_what_the_strategy_does_not_have_is_set_aside_and_told(resolved: Resolve, spec: str) -> None:
    plan = resolved(with_strategy(spec, "single"))
    assert {role: settings.replicas for role, settings in plan.values.roles.items()} == {"worker": 1}
    assert plan.values.roles["worker"].memory == "8Gi"
    assert [str(note) for note in plan.notes] == [
        "m.yaml:9:3: roles.chief is not used: single has no chief (its roles are worker, evaluator)",
        "m.yaml:10:12: roles.worker.replicas: 2 is not used: single is one process",
        "m.yaml:11:3: roles.ps is not used: single has no ps (one process keeps its variables itself)",
    ]


def test_volumes_of_a_role_that_is_gone_follow_the_leader(resolved: Resolve, spec: str) -> None:
    text = spec + "  data: {size: 1Gi, mountPath: /data, roles: [ps]}\n"
    text = text.replace("size: 20Gi", "size: 20Gi, roles: [chief, ps]")
    volumes = resolved(with_strategy(text, "multi-worker-mirrored")).values.volumes
    assert {name: volume.roles for name, volume in volumes.items()} == {"checkpoints": ["worker"], "data": ["worker"]}
    assert resolved(text).values.volumes["checkpoints"].roles == ["chief", "ps"]


@pytest.mark.parametrize(
    ("strategy", "worker", "says"),
    [
        (
            "multi-worker-mirrored",
            "replicas: 1",
            "multi-worker-mirrored shares the work among workers, but there is one",
        ),
        ("parameter-server", "replicas: 1", "parameter-server shares the work among workers, but there is one"),
        ("mirrored", "gpus: 1", "mirrored shares the work among GPUs, but there are fewer than two"),
        ("mirrored", "gpus: 0", "mirrored shares the work among GPUs, but there are fewer than two"),
        ("multi-worker-mirrored", "replicas: 3", ""),
        ("single", "replicas: 1", ""),
    ],
)
def test_a_group_of_one_is_said(resolved: Resolve, strategy: str, worker: str, says: str) -> None:
    plan = resolved(new_spec(strategy).replace("worker: {", f"worker: {{{worker}, "))
    assert [says in note.message for note in plan.notes] == ([True] if says else [])
