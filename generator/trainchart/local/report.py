"""Puts a plan and a result into what people and programs read: a short text, or JSON documents. Pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict
from typing import Any

from trainchart.local.missing_modules import explain_missing
from trainchart.local.plan import LocalPlan
from trainchart.local.result import Failure, PodResult, RunResult
from trainchart.reports.run_settings import describe_hyperparameters
from trainchart.reports.settings import suggest_settings
from trainchart_runtime import causes, contract


def describe_plan(plan: LocalPlan) -> dict[str, Any]:
    """Return the plan as a JSON document: what would be started, with what, and where."""
    return {
        "release": plan.release,
        "namespace": plan.namespace,
        "chart": plan.chart,
        "folder": plan.release_folder,
        "deciding": list(plan.deciding),
        "evaluatorGraceSeconds": plan.evaluator_grace_seconds,
        "addresses": dict(plan.addresses),
        "claims": dict(plan.claims),
        "warnings": list(plan.warnings),
        "pods": [
            {
                "pod": pod.label,
                "name": pod.name,
                "role": pod.role,
                "argv": list(pod.shown_argv),
                "workingDirectory": pod.working_directory,
                "environment": pod.shown_environment,
                "folders": [pod.mask(folder) for folder in pod.folders],
                "files": [file.path for file in pod.files],
                "paths": {path: pod.mask(here) for path, here in pod.paths.items()},
                "log": pod.log_file,
                "stopGraceSeconds": pod.stop_grace_seconds,
                "maxRestarts": pod.max_restarts,
            }
            for pod in plan.pods
        ],
    }


def describe_result(plan: LocalPlan, result: RunResult) -> dict[str, Any]:
    """Return the result as a JSON document."""
    failure = result.failure
    return {
        "verdict": str(result.verdict),
        "release": result.release,
        "chart": plan.chart,
        "seconds": round(result.seconds, 1),
        "finishedAt": result.finished_at,
        "signal": result.signal,
        "nothingDone": result.nothing_done or None,
        "step": result.last_step,
        "examplesPerSecond": result.examples_per_second,
        "metrics": {label: dict(metrics) for label, metrics in result.metrics.items()},
        "warnings": list(result.warnings),
        "failure": None if failure is None else {**asdict(failure), "hint": hint_here(failure, plan)},
        "pods": [_describe_pod(pod) for pod in result.pods],
        "folders": {
            "release": result.release_folder,
            "logs": f"{result.release_folder}/logs",
            "claims": dict(result.outputs.claims),
            "checkpoints": result.outputs.checkpoints or None,
            "savedModels": list(result.outputs.saved_models),
            "tensorboard": list(result.outputs.events),
        },
    }


def _describe_pod(pod: PodResult) -> dict[str, Any]:
    return {
        "pod": pod.label,
        "name": pod.name,
        "role": pod.role,
        "state": pod.state,
        "exitCode": pod.exit_code,
        "attempts": pod.attempts,
        "containerRestarts": pod.container_restarts,
        "step": pod.step,
        "examplesPerSecond": pod.examples_per_second,
        "metrics": dict(pod.metrics),
        "nanMetrics": list(pod.nan_metrics),
        "log": pod.log_file,
    }


def summarize_plan(plan: LocalPlan) -> str:
    """Return what a dry run prints: per pod the command, folder and environment, and the address map."""
    lines = [f"release {plan.release} of {plan.chart}, in {plan.release_folder}"]
    if plan.hyperparameters:
        lines.append(f"hyperparameters: {describe_hyperparameters(plan.hyperparameters)}")
    lines += _unset_lines(plan)
    for pod in plan.pods:
        lines += [
            "",
            f"{pod.label}  (pod {pod.name}, in {pod.working_directory})",
            f"  {shlex.join(pod.shown_argv)}",
        ]
        lines += [
            f"    {name}={'(the addresses below)' if name == contract.ADDRESSES else value}"
            for name, value in sorted(pod.shown_environment.items())
        ]
    lines += ["", "addresses:", *_address_lines(plan)]
    lines += [f"claim {name}: {folder}" for name, folder in plan.claims.items()]
    return "\n".join(lines)


def _address_lines(plan: LocalPlan) -> list[str]:
    width = max((len(address) for address in plan.addresses), default=0)
    return [f"  {address:<{width}}  {here}" for address, here in plan.addresses.items()]


def introduce_plan(plan: LocalPlan) -> list[str]:
    """Return the lines that open a run: what starts, where, and which ports stand for which hosts."""
    return [
        f"release {plan.release} of {plan.chart}: {', '.join(pod.label for pod in plan.pods)}",
        f"code {plan.pods[0].working_directory}, everything else in {plan.release_folder}",
        *_address_lines(plan),
        *(f"note: {warning}" for warning in plan.warnings),
        *_unset_lines(plan),
    ]


def _unset_lines(plan: LocalPlan) -> list[str]:
    """Return the line on hyperparameters without a value: the program may need one."""
    unset = [name for name, value in plan.hyperparameters.items() if value is None]
    settings = " ".join(f"--set hyperparameters.{name}=VALUE" for name in unset)
    names = ", ".join(unset)
    return (
        [f"note: {names} unset: the program decides, or refuses to start; set values with {settings}"] if unset else []
    )


def explain_hint(failure: Failure, plan: LocalPlan) -> str:
    """Return the next action after a failure, and where to read on."""
    folder = plan.release_folder.removesuffix(f"/{plan.release}")
    runs_dir = "" if folder.endswith("/.trainchart/runs") else f" --runs-dir {shlex.quote(folder)}"
    log = f"all of its log: {failure.log_file}\nnext: trainchart logs {plan.release} --pod {failure.pod}{runs_dir}"
    settings = suggest_settings(failure.cause, failure.error, plan.hyperparameters)
    again = f"set a value: {' '.join(f'--set {setting}' for setting in settings)}\n" if settings else ""
    return f"{hint_here(failure, plan)}\n{again}{log}".strip()


def hint_here(failure: Failure, plan: LocalPlan) -> str:
    """Return the next action after a failure on this machine: a missing module means something else in an image."""
    pod = next(pod for pod in plan.pods if pod.label == failure.pod)
    module = re.search(r"No module named '?(\w+)(\.\w+)?", failure.error)
    if failure.cause == causes.MODULE_MISSING.name and module and module[2]:
        return f"The {module[1]} that is installed does not have it: the program needs another version of it."
    if failure.cause == causes.MODULE_MISSING.name and module:
        return explain_missing(module[1], pod.argv[0])
    if failure.cause == causes.KERAS_MISSING.name:
        return f"{explain_missing('tf_keras', pod.argv[0])} Or remove TF_USE_LEGACY_KERAS from `env`."
    is_refused = failure.error.startswith("cannot start ") and ": no such program" not in failure.error
    if failure.cause == causes.PROGRAM_MISSING.name and not is_refused:
        return f"The code was expected in {pod.working_directory}: set its folder with --code."
    return failure.hint
