"""A fault as data: the steps that bring it about, each with the steps that take it back. Pure; `site.py` performs."""

from __future__ import annotations

from dataclasses import dataclass

from ..components import Component


@dataclass(frozen=True)
class Inside:
    """Run a command in the cluster's namespaces, in the network of a node if one is named."""

    argv: tuple[str, ...]
    node: str | None = None


@dataclass(frozen=True)
class StopComponent:
    """Kill one of the cluster's own processes, such as kubelet-node1; it gets no chance to say goodbye."""

    name: str


@dataclass(frozen=True)
class StartComponent:
    """Start a component that was stopped."""

    name: str


@dataclass(frozen=True)
class RunComponent:
    """Start a process that is no part of the cluster otherwise."""

    component: Component


@dataclass(frozen=True)
class Kubectl:
    """Run kubectl as cluster administrator."""

    arguments: tuple[str, ...]
    text: str | None = None
    """Its standard input."""
    retry_seconds: float = 0
    """How long it is repeated when it fails: for what follows the start of an API server."""


@dataclass(frozen=True)
class AwaitPort:
    """Wait until a port of the control plane takes connections."""

    port: int


Step = Inside | StopComponent | StartComponent | RunComponent | Kubectl | AwaitPort


@dataclass(frozen=True)
class Change:
    """One step into a fault and the steps back out of it."""

    step: Step
    undo: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Fault:
    """Something broken."""

    name: str
    """Says what is broken, in the message of an undo that fails."""
    changes: tuple[Change, ...]
    """Made in this order; those that were made are undone in reverse."""
    disturbs_watches: bool = False
    """Whether components may notice only late that it is over, so that the end of the test has to wait for them."""
