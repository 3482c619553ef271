"""The record of a local run: what was asked for and what it was made of, enough to repeat and to judge it.

Types and their JSON, which is the file run.json of the run's folder. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from trainchart.local.plan import LocalPlan
from trainchart.reports.run_settings import RunSettings, describe_settings


@dataclass(frozen=True)
class CodeVersion:
    """Which code a run trains with."""

    folder: str
    commit: str = ""
    """The last commit that changed the folder; empty without git."""
    is_dirty: bool = False
    """Whether files have changed since that commit."""
    sha256: str = ""
    """Of all its files; empty where there are too many to read."""


UNKNOWN_CODE = CodeVersion("")


@dataclass(frozen=True)
class RunOptions:
    """What the user chose on the command line, beside values; empty for what was left to trainchart."""

    strategy: str = ""
    namespace: str = ""
    engine: str = ""
    python: str = ""
    code: str = ""
    claims: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """What was asked for; a resumed run starts from it."""

    command: str
    """The command line as typed."""
    target: str
    """Model, chart or archive."""
    options: RunOptions
    values: Mapping[str, Any]
    """What the user set, of every start so far; not the chart's defaults."""
    chart_name: str = ""
    """Of the chart that was started; `chart` in its JSON is what the pods' label says, which may be a subchart's."""
    python: str = ""
    code: CodeVersion = UNKNOWN_CODE
    chart_identity: str = ""
    """Of the chart's content, as `trainchart package` and `release` compute it."""
    started_at: float = 0.0
    host: str = ""


def describe_record(record: RunRecord, plan: LocalPlan) -> dict[str, Any]:
    """Return the record of a run as a JSON document."""
    return {
        "release": plan.release,
        "chart": plan.chart,
        "chartName": record.chart_name,
        "chartIdentity": record.chart_identity,
        "command": record.command,
        "target": record.target,
        "options": asdict(record.options),
        "python": record.python,
        "host": record.host,
        "startedAt": record.started_at,
        **describe_settings(RunSettings(plan.strategy, plan.roles, plan.hyperparameters, record.values)),
        "code": {
            "folder": record.code.folder,
            "commit": record.code.commit or None,
            "isDirty": record.code.is_dirty if record.code.commit else None,
            "sha256": record.code.sha256 or None,
        },
        "checkpoints": plan.checkpoints,
        "tensorboard": plan.tensorboard_logs,
        "deciding": list(plan.deciding),
        "pods": [
            {"label": pod.label, "name": pod.name, "role": pod.role, "state": pod.state_folder, "log": pod.log_file}
            for pod in plan.pods
        ],
    }


def parse_record(document: Mapping[str, Any]) -> RunRecord | None:
    """Return the record that `describe_record` has described; None where it is not complete, or has wrong types."""
    options, values = document.get("options"), document.get("values")
    if not isinstance(options, Mapping) or not isinstance(values, Mapping):
        return None
    claims = options.get("claims", {})
    texts = [value for name, value in options.items() if name != "claims"]
    if not isinstance(claims, Mapping) or not all(isinstance(text, str) for text in (*texts, *claims.values())):
        return None
    names = {each.name for each in fields(RunOptions)}
    return RunRecord(
        command=str(document.get("command")),
        target=str(document.get("target")),
        options=RunOptions(**{name: value for name, value in options.items() if name in names}),
        values=values,
    )
