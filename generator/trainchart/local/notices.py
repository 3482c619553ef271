"""Collects what a local run cannot do as a cluster would: problems refuse the run, warnings are only told.

Pure; filled by the planning modules, so that a user sees everything at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trainchart.errors import Problem


@dataclass
class Notices:
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, message: str, *, where: str = "", hint: str = "") -> None:
        problem = Problem(message, where, hint)
        if problem not in self.problems:
            self.problems.append(problem)

    def warn(self, message: str) -> None:
        """Remember `message` once, however many pods it holds for; an empty one says nothing."""
        if message and message not in self.warnings:
            self.warnings.append(message)
