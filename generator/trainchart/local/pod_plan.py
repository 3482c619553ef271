"""What is planned for one pod of a local run, and the form of it that people may see. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainchart.local.volumes import PlannedFile
from trainchart.secret_masks import MASK

_SHORTEST_MASKED = 4
"""Letters of a secret that is masked in free text; a shorter one is in words that have nothing to do with it."""


@dataclass(frozen=True)
class PodPlan:
    """One process to start, with everything it needs."""

    name: str
    label: str
    """Short name: role and ordinal."""
    role: str
    argv: tuple[str, ...]
    shown_argv: tuple[str, ...]
    """`argv` with MASK for every secret in it."""
    environment: Mapping[str, str]
    secrets: frozenset[str]
    """Variables whose values must not be shown."""
    working_directory: str
    pod_folder: str
    """Lives as long as the pod: removed before a resumed run starts."""
    folders: tuple[str, ...]
    files: tuple[PlannedFile, ...]
    paths: Mapping[str, str]
    """Path in the container to what stands for it here."""
    log_file: str
    termination_file: str
    state_folder: str
    stop_grace_seconds: int
    max_restarts: int

    @property
    def shown_environment(self) -> dict[str, str]:
        """`environment` with MASK for every secret."""
        return {name: MASK if name in self.secrets else self.mask(value) for name, value in self.environment.items()}

    def mask(self, text: str) -> str:
        """Return `text` with MASK for every secret of this pod that it repeats."""
        found = {self.environment.get(name, "") for name in self.secrets}
        for secret in sorted(found, key=len, reverse=True):
            if len(secret) >= _SHORTEST_MASKED:
                text = text.replace(secret, MASK)
        return text
