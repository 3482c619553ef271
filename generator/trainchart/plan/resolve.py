"""Spec and layers of defaults to a ChartPlan: merge, check types, fit to the strategy, refuse what cannot work. Pure.

Every problem of a stage is reported at once, each with the line that caused it.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainchart.chart_version import is_chart_version
from trainchart.errors import PlanError, Problem, SpecError
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.fit import fit_to_strategy
from trainchart.plan.impossible import find_impossibilities
from trainchart.plan.layers import Merged, merge_layers
from trainchart.plan.references import find_shell_references, find_unfilled
from trainchart.plan.spelling import find_misread
from trainchart.plan.typed import check_types, find_origin
from trainchart.spec.document import Document
from trainchart.spec.model import ModelSpec
from trainchart.spec.values import SharedValues, Values
from trainchart_runtime.cluster import ROLES


def resolve(spec: Document, defaults: Sequence[Document]) -> ChartPlan:
    """Fill `spec` from `defaults` (weakest first) and decide everything a chart needs.

    Raises:
        SpecError: unknown keys, missing keys, wrong types.
        PlanError: a combination that cannot train.
    """
    merged = merge_layers(defaults, spec)
    model, notes = fit_to_strategy(_check_types(merged), merged.origins)
    problems = [
        Problem(found.message, str(find_origin(merged.origins, found.path)), found.hint)
        for found in (*find_impossibilities(model), *find_unfilled(model))
    ]
    if problems:
        raise PlanError(f"{model.name} cannot be trained as specified", problems=tuple(problems))
    roles = tuple(role for role in ROLES if role in model.roles)
    model = model.model_copy(update={"roles": {role: model.roles[role] for role in roles}})
    notes = (*notes, *find_shell_references(model))
    placed = tuple(Problem(note.message, str(find_origin(merged.origins, note.path))) for note in notes)
    return ChartPlan(model, _values(model), roles, merged.origins, merged.overridden, placed)


def _check_types(merged: Merged) -> ModelSpec:
    misread = {
        path: Problem(message, str(find_origin(merged.origins, path)), hint)
        for path, message, hint in find_misread(merged.tree, merged.origins)
    }
    model, problems = check_types(merged.tree, merged.origins, ModelSpec, misread)
    if model is None:
        raise SpecError("the model spec is not valid", problems=problems)
    if not is_chart_version(model.version):
        where = str(find_origin(merged.origins, ("version",)))
        problem = Problem(f"version {model.version!r} is not a SemVer version", where, 'for example version: "0.1.0"')
        raise SpecError("the model spec is not valid", problems=(problem,))
    return model


def _values(model: ModelSpec) -> Values:
    shared = {name: getattr(model, name) for name in SharedValues.model_fields}
    hyperparameters = {
        name: parameter.default for name, parameter in model.hyperparameters.items() if parameter.default is not None
    }
    return Values.model_construct(**shared, command=model.code.command, hyperparameters=hyperparameters)
