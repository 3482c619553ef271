"""The faults of one test: inflicted one by one, undone in reverse, whatever the test did meanwhile."""

from __future__ import annotations

from .fault import Change, Fault
from .site import Site
from .soundness import await_soundness


class UndoFailed(Exception):
    """A fault could not be taken back, so that every later test would meet it; says which and why."""


class Faults:
    """The stack; `undo_all` ends it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._inflicted: list[tuple[Fault, list[Change]]] = []
        self._was_used = False
        self._disturbs_watches = False

    def inflict(self, fault: Fault) -> Fault:
        """Bring a fault about, to be undone at the end of the test or by `undo`; of one that fails, what was done."""
        self._was_used = True
        self._disturbs_watches |= fault.disturbs_watches
        made: list[Change] = []
        self._inflicted.append((fault, made))
        for change in fault.changes:
            self.site.perform(change.step)
            made.append(change)
        return fault

    def undo(self, fault: Fault) -> None:
        """Take back a fault of this test before its end; UndoFailed if a step of that fails."""
        index = next(index for index, (inflicted, _) in enumerate(self._inflicted) if inflicted is fault)
        _, made = self._inflicted.pop(index)
        problems = self._undo(made)
        if problems:
            raise UndoFailed(f"cannot undo the fault {fault.name!r}: " + "; ".join(problems))

    def undo_all(self) -> None:
        """Take everything back and wait until the cluster is as before; UndoFailed names every fault that remains."""
        failures = []
        while self._inflicted:
            try:
                self.undo(self._inflicted[-1][0])
            except UndoFailed as error:
                failures.append(str(error))
        if self._was_used:
            failures += [f"after all faults were undone: {line}" for line in self._await_soundness()]
        if failures:
            raise UndoFailed("\n".join(failures))

    def _await_soundness(self) -> list[str]:
        try:
            return await_soundness(self.site, self._disturbs_watches)
        # Whatever it is, it must not hide which faults could not be undone.
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]

    def _undo(self, made: list[Change]) -> list[str]:
        problems = []
        for change in reversed(made):
            for step in change.undo:
                try:
                    self.site.perform(step)
                # Whatever stands in the way of one step, the others are tried: each leaves less broken behind.
                except Exception as error:
                    problems.append(f"{step}: {type(error).__name__}: {error}")
        return problems
