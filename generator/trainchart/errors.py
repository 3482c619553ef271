"""All errors that trainchart raises on purpose, with their exit codes.

* TrainchartError (1)
  * UsageError (2): the command cannot be meant so: an option, name or command that is malformed, or does not fit what
    it is used on
  * SpecError (3): the model spec or a pack is wrong
  * PlanError (4): the spec is well-formed but holds a value or a combination that cannot work
  * RenderError (5): templates or values do not render
  * ChecksFailed (6): findings of severity error
  * ToolError (7): a file, key, run, pod or outside tool is missing, in the way or failed
  * PublishError (8): a chart repository or registry answered with an error, or what it holds makes no sense
    * RepositoryNotFound: the repository answered, and it is not there
    * RepositoryUnauthorized: the repository does not know who asks
    * RepositoryForbidden: the repository knows who asks, and refuses
    * RepositoryUnreachable: no answer, so nothing is known
    * VersionConflict: the version is published with different content
    * ImageNotFound: an image that the chart names is not in its registry
    * ImageConflict: the tag of an image points to a different digest from the chart's
  * ClusterError (9): the Kubernetes API answered with an error, or what it holds makes no sense
    * NotFound: the API answered, and it is not there
    * TooLong: the answer of the API is longer than what is read
    * Unauthorized: the API does not know who asks
    * Forbidden: the API knows who asks, and refuses
    * Conflict: another client changed the same thing, or its state forbids the change
    * Unreachable: no answer, so nothing is known
    * RolledBack: what was promoted did not serve, and what served before was brought back
  * TrainingFailed (10): the training itself failed, or was stopped
  * NotInTime (11): what was waited for did not come in the time given

What the command line itself refuses exits with 2, too. Anything else that escapes is a bug of ours: 1 with a traceback.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: what (with the user's value), where, and the next action."""

    message: str
    where: str = ""
    """`file:line:column` where known."""
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{hint}"


class TrainchartError(Exception):
    """Base of every expected failure: one summary line, a hint, and possibly several problems at once."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.problems = problems


class UsageError(TrainchartError):
    exit_code = 2


class SpecError(TrainchartError):
    exit_code = 3


class PlanError(TrainchartError):
    exit_code = 4


class RenderError(TrainchartError):
    exit_code = 5


class ChecksFailed(TrainchartError):
    exit_code = 6


class ToolError(TrainchartError):
    exit_code = 7


class PublishError(TrainchartError):
    exit_code = 8


class RepositoryNotFound(PublishError):
    pass


class RepositoryUnauthorized(PublishError):
    pass


class RepositoryForbidden(PublishError):
    pass


class RepositoryUnreachable(PublishError):
    pass


class VersionConflict(PublishError):
    pass


class ImageNotFound(PublishError):
    pass


class ImageConflict(PublishError):
    pass


class ClusterError(TrainchartError):
    exit_code = 9


class NotFound(ClusterError):
    pass


class Unauthorized(ClusterError):
    pass


class Forbidden(ClusterError):
    pass


class Conflict(ClusterError):
    pass


class Unreachable(ClusterError):
    pass


class TooLong(ClusterError):
    pass


class RolledBack(ClusterError):
    pass


class TrainingFailed(TrainchartError):
    exit_code = 10


class NotInTime(TrainchartError):
    exit_code = 11
