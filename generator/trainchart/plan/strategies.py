"""Which roles each strategy is made of, and how many pods a role may have: data, and what it says of a few workers."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from trainchart.errors import UsageError
from trainchart_runtime.cluster import MAX_REPLICAS


@dataclass(frozen=True)
class Replicas:
    minimum: int
    maximum: int


@dataclass(frozen=True)
class Strategy:
    """A way to distribute a training: its roles, whether workers wait for each other, and why the rest is refused."""

    name: str
    roles: Mapping[str, Replicas]
    """Roles of the strategy that a model may have, with the number of pods each may have."""
    required: tuple[str, ...]
    """Roles that exist even when the spec does not mention them."""
    summary: str
    no_ps_reason: str = ""
    """Why the strategy has no parameter servers, where it has none."""

    @property
    def has_one_worker(self) -> bool:
        """Whether the strategy is one process, an evaluator aside."""
        return self.roles["worker"].maximum == 1

    @property
    def shared_over(self) -> str:
        """Setting of the role worker that says how many share the work; "" where one device does all of it."""
        return "" if self.name == "single" else "gpus" if self.has_one_worker else "replicas"

    @property
    def lone_note(self) -> str:
        """What to say where fewer than two share the work."""
        shared = "GPUs, but there are fewer than two" if self.shared_over == "gpus" else "workers, but there is one"
        return f"{self.name} shares the work among {shared}; set roles.worker.{self.shared_over} to 2 or more"


_ONE = Replicas(1, 1)
_MANY = Replicas(1, MAX_REPLICAS)
_EVALUATOR = Replicas(0, 1)
_ALONE = {"worker": _ONE, "evaluator": _EVALUATOR}
_BETWEEN_GRAPH = {"worker": _MANY, "ps": _MANY, "evaluator": _EVALUATOR}

STRATEGIES: Mapping[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy("single", _ALONE, ("worker",), "one process on one device", "one process keeps its variables itself"),
        Strategy(
            "mirrored",
            _ALONE,
            ("worker",),
            "one process, all GPUs of one pod in step",
            "every GPU holds its own copy of the variables",
        ),
        Strategy(
            "multi-worker-mirrored",
            {"worker": _MANY, "evaluator": _EVALUATOR},
            ("worker",),
            "all workers in step, gradients all-reduced",
            "it is synchronous: every worker holds its own copy of the variables",
        ),
        Strategy(
            "parameter-server",
            {"chief": _ONE, "worker": _MANY, "ps": _MANY, "evaluator": _EVALUATOR},
            ("chief", "worker", "ps"),
            "a chief schedules steps on workers, variables live on parameter servers",
        ),
        Strategy(
            "between-graph-async",
            _BETWEEN_GRAPH,
            ("worker", "ps"),
            "every worker runs its own loop against shared variables",
        ),
        Strategy(
            "between-graph-sync",
            _BETWEEN_GRAPH,
            ("worker", "ps"),
            "every worker runs its own loop, gradients are averaged before they are applied",
        ),
        Strategy(
            "in-graph",
            {"chief": _ONE, "worker": _MANY, "ps": Replicas(0, MAX_REPLICAS), "evaluator": _EVALUATOR},
            ("chief", "worker"),
            "one client builds one graph over all workers",
        ),
    )
}


def find_strategy(name: str) -> Strategy:
    """Return the strategy of that name. Raises UsageError with the closest name where there is none."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    close = difflib.get_close_matches(name.lower(), STRATEGIES, n=1)
    known = f"strategies are {', '.join(STRATEGIES)}"
    raise UsageError(f"there is no strategy {name!r}", hint=f"did you mean {close[0]}?" if close else known)


def describe_lone_worker(strategy: Strategy, workers: int, gpus: int) -> str:
    """Return why a training of so many workers, with so many GPUs each, shares no work; "" where it does."""
    shared = {"replicas": workers, "gpus": gpus}
    return strategy.lone_note if shared.get(strategy.shared_over, 2) < 2 else ""
