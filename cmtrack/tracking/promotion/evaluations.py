"""Evaluations of all versions of a promotion on the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from cmtrack.comparison.compare import compare_runs, why_undefined
from cmtrack.comparison.promotion_rule import PromotionRule, SettledRule
from cmtrack.comparison.record import Record
from cmtrack.comparison.result import RunComparison
from cmtrack.comparison.run import Listing, Run
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.gates import Gate
from cmtrack.evaluation.labelled_rows import LabelledRows, StoredColumns
from cmtrack.grouping import Label
from cmtrack.metrics.catalog import Catalog
from cmtrack.names import quoted
from cmtrack.report.review import bundle
from cmtrack.tracking import mlflow_inside
from cmtrack.tracking.model_rows import EvaluatedModel, evaluate_version
from cmtrack.tracking.promotion.request import CHALLENGER, CHAMPION, FIRST, PREVIOUS, Found, Request
from cmtrack.tracking.registry import (
    ModelVersion,
    find_version,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient


DECIDING = (CHALLENGER, CHAMPION)
"""Roles of the versions that the decision depends on."""


@dataclass
class Evaluated:
    """The evaluated versions by number, each with its role.

    ``settled``: the rule with its metric and its gates.
    """

    settled: SettledRule
    models: dict[str, EvaluatedModel]
    roles: dict[str, str]
    notes: list[str]
    run_ids: dict[str, str] = field(default_factory=dict)

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """The evaluations by version."""
        return {number: model.evaluation for number, model in self.models.items()}

    @property
    def challengers(self) -> list[str]:
        """The versions that may replace the champion."""
        return [number for number, role in self.roles.items() if role == CHALLENGER]

    @property
    def champion(self) -> str | None:
        """The version that the alias names; None if the alias is not set."""
        return next((number for number, role in self.roles.items() if role == CHAMPION), None)

    @property
    def first(self) -> Evaluation:
        """Any evaluation, because all have the same rows."""
        return next(iter(self.models.values())).evaluation


def evaluate_versions(
    request: Request, found: Found, rows: LabelledRows, also: str, client: MlflowClient
) -> Evaluated:
    """Evaluate all versions, and prepare their evaluations by the rule."""
    roles: dict[str, ModelVersion] = {}
    numbers = {version.number: CHALLENGER for version in found.challengers}
    versions = {version.number: version for version in found.challengers}
    if found.champion is not None:
        numbers[found.champion.number] = CHAMPION
        versions[found.champion.number] = found.champion
    notes: list[str] = []
    if also == "all":
        roles = _earlier_champions(found, client, notes)
    for role, version in roles.items():
        if version.number not in numbers:
            numbers[version.number] = role
            versions[version.number] = version
    _check_columns(request.stored, numbers)
    models = {}
    for number, role in list(numbers.items()):
        evaluate = partial(
            evaluate_version,
            versions[number],
            rows,
            request.stored,
            role=role,
            options=request.options,
        )
        try:
            models[number] = evaluate(labels=request.labels)
        except (ValueError, OSError) as error:
            if role in DECIDING:
                raise
            notes.append(f"version {number}, the {role} champion, is missing: {error}")
            del numbers[number]
    models = _with_equal_classes(models, request, rows, numbers, notes)
    for model in models.values():
        notes += [note for note in model.notes if note not in notes]
    evaluations = [model.evaluation for model in models.values()]
    catalog = Catalog.joined([evaluation.catalog for evaluation in evaluations])
    deciding = {number: models[number] for number in models if numbers[number] in DECIDING}
    _check_probabilities(request.rule, deciding)
    metrics = [set(model.evaluation.metrics) for model in deciding.values()]
    settled = request.rule.settled(catalog, set.intersection(*metrics))
    _check_gates(settled.gates, deciding)
    for number, role in list(numbers.items()):
        if settled.rank_by not in models[number].evaluation.metrics:
            notes.append(f"version {number}, the {role} champion, has no {settled.rank_by}")
            del models[number], numbers[number]
    options = settled.options(len(found.challengers), None)
    for number, model in models.items():
        # A bundle stores probabilities with 7 digits, so every number is computed from these.
        evaluation = bundle.with_stored_rows(model.evaluation) or model.evaluation
        prepared = options.prepared(evaluation)
        if not isinstance(prepared, Evaluation):
            raise TypeError(f"expected an Evaluation, got {type(prepared).__name__}")
        models[number] = replace(model, evaluation=prepared)
    return Evaluated(settled, models, numbers, notes)


def _earlier_champions(
    found: Found, client: MlflowClient, notes: list[str]
) -> dict[str, ModelVersion]:
    """Return the previous and the first recorded champion by role."""
    champions = found.chain.champions(found.champion_number)
    earlier = {}
    if len(champions) > 1:
        earlier[PREVIOUS] = champions[-2]
        earlier[FIRST] = champions[0]
    versions = {}
    for role, number in earlier.items():
        try:
            versions[role] = find_version(f"models:/{found.model}/{number}", client)
        except ValueError as error:
            notes.append(f"version {number}, the {role} champion, is missing: {error}")
    return versions


def _check_columns(stored: StoredColumns, roles: Mapping[str, str]) -> None:
    """Raise ValueError if a name of stored predictions means the same columns for two versions."""
    for argument, name in stored.named.items():
        resolved: dict[str, str] = {}
        for number, role in roles.items():
            column = name.replace("{version}", number).replace("{role}", role)
            if column in resolved:
                example = "v{version}_p_*" if "*" in name else "v{version}_pred"
                raise ValueError(
                    f"{argument}={name!r} means the same columns for versions {resolved[column]} "
                    f"and {number}: write {example!r}"
                )
            resolved[column] = number


def _with_equal_classes(
    models: dict[str, EvaluatedModel],
    request: Request,
    rows: LabelledRows,
    roles: dict[str, str],
    notes: list[str],
) -> dict[str, EvaluatedModel]:
    """Return the models, evaluated with the classes of those that decide, so that they are paired.

    An earlier champion that has another class takes no part, because it must not change the
    decision. It is removed from ``roles``, and ``notes`` receives the reason.
    """
    classes: dict[Label, None] = {}
    for number, model in models.items():
        if roles[number] in DECIDING:
            classes |= dict.fromkeys(model.evaluation.labels)
    labels = list(classes)
    equal = {}
    for number, model in models.items():
        if list(model.evaluation.labels) == labels:
            equal[number] = model
            continue
        role = roles[number]
        try:
            others = set(model.evaluation.labels) - set(labels)
            if others:
                raise ValueError(f"it has the class {min(map(str, others))!r}")
            equal[number] = evaluate_version(
                model.version,
                rows,
                request.stored,
                role=role,
                labels=labels,
                options=request.options,
            )
        except (ValueError, OSError) as error:
            if role in DECIDING:
                raise
            notes.append(f"version {number}, the {role} champion, is missing: {error}")
            del roles[number]
    return equal


def _check_probabilities(rule: PromotionRule, models: Mapping[str, EvaluatedModel]) -> None:
    """Raise ValueError if the rule needs probabilities and a version gives labels only.

    ``models``: the versions that the decision depends on.
    """
    uses = {} if rule.rank_by is None else {rule.rank_by: f"ranks by {rule.rank_by}"}
    for gate in map(Gate.parse, rule.require):
        if not gate.of_flips:
            uses.setdefault(gate.metric, f"requires {gate.text}")
    for metric, verb in uses.items():
        is_given = any(metric in model.evaluation.metrics for model in models.values())
        for number, model in models.items():
            if metric in model.evaluation.metrics or model.has_probabilities:
                continue
            if is_given or metric in _needing_probabilities(model):
                raise ValueError(f"the rule {verb}, and version {number} gives labels only")


def _check_gates(gates: Iterable[Gate], models: Mapping[str, EvaluatedModel]) -> None:
    """Raise ValueError if a gate can never be decided, so that it does not cost a look."""
    for gate in gates:
        for number, model in models.items():
            evaluation = model.evaluation
            missing = ""
            if not gate.of_flips and gate.metric not in evaluation.metrics:
                missing = why_undefined(evaluation, gate.metric, asked=True)
            elif gate.column and gate.column not in evaluation.segments:
                missing = f"it has no segments by {quoted(gate.column)}"
            if missing:
                raise ValueError(
                    f"the rule requires {gate.text}, which version {number} cannot meet: {missing}"
                )


def _needing_probabilities(model: EvaluatedModel) -> set[str]:
    """Return the metrics that need probabilities."""
    catalog = model.evaluation.catalog
    return {name for name in catalog.names if catalog.lookup(name).needs == "probabilities"}


def compare_versions(evaluated: Evaluated, found: Found, runs: Mapping[str, Run]) -> RunComparison:
    """Compare all evaluated versions, without gates, which would exclude numbers of a version."""
    by_number: dict[str, Run] = {}
    for number in evaluated.models:
        name = f"version {number}"
        by_number[number] = runs.get(number, Run(name, name))
    champion = None
    if found.champion is not None:
        champion = by_number[found.champion.number]
    against = None if champion is None else champion.run_id
    options = evaluated.settled.options(len(found.challengers), against)
    run_ids = [run.run_id for run in by_number.values()]
    listing = Listing(
        tuple(by_number.values()),
        baseline=champion,
        how=options.how(run_ids),
        record=Record.now(mlflow_inside.user_name()),
    )
    evaluations = {
        by_number[number].run_id: evaluation for number, evaluation in evaluated.evaluations.items()
    }
    comparison = compare_runs(listing, evaluations, None, options)
    if not isinstance(comparison, RunComparison):
        raise TypeError(f"expected a RunComparison, got {type(comparison).__name__}")
    return comparison
