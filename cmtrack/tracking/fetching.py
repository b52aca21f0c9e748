"""The evaluations of a short list, read in parallel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import Grouping, Label
from cmtrack.metrics.metric import Metric
from cmtrack.tracking import cache
from cmtrack.tracking.load import evaluation_of, plain_reason, with_kept_predictions
from cmtrack.tracking.parallel import each
from cmtrack.tracking.regroup import check_classes, of_classes
from cmtrack.tracking.runs import TrackedRun

if TYPE_CHECKING:
    from mlflow import MlflowClient

Progress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class Wanted:
    """How evaluations are read.

    Attributes
    ----------
    prefix : str
    grouping : Grouping or None
        To re-reduce them under.
    positive : label or None
    confidence_level : float
    rows : bool
        Whether the predictions by row are read, where they were kept.
    extra_metrics : tuple of Metric
        Metrics of one's own, computed for each of them.
    """

    prefix: str = ""
    grouping: Grouping | None = None
    positive: Label | None = None
    confidence_level: float = 0.95
    rows: bool = True
    extra_metrics: tuple[Metric, ...] = ()

    def prepared(self, evaluation: BaseEvaluation) -> BaseEvaluation:
        """The evaluation under the grouping and level that are asked for, its numbers computed."""
        if isinstance(evaluation, Evaluation):
            evaluation = evaluation.with_metrics(self.extra_metrics)
        if self.grouping is not None:
            check_classes(evaluation.labels, self.grouping)
            evaluation = of_classes(evaluation).regroup(self.grouping, positive=self.positive)
        evaluation = evaluation.at_level(self.confidence_level)
        evaluation.metrics  # noqa: B018 - computed here, in a worker
        return evaluation


@dataclass(frozen=True)
class Fetched:
    """What was read.

    Attributes
    ----------
    evaluations : dict of str to Evaluation
        By run id.
    problems : dict of str to str
        Why a run could not be read, by run id.
    notes : tuple of str
    """

    evaluations: dict[str, BaseEvaluation]
    problems: dict[str, str]
    notes: tuple[str, ...] = ()


def fetch(
    runs: Sequence[TrackedRun],
    clients: Mapping[str, MlflowClient],
    wanted: Wanted,
    progress: Progress = lambda *_: None,
) -> Fetched:
    """Read evaluations; one that cannot be read takes no other with it.

    Returns
    -------
    Fetched
    """
    evaluations: dict[str, BaseEvaluation] = {}
    problems: dict[str, str] = {}
    notes: list[str] = []
    jobs = each(
        lambda run: _read(run, clients[run.tracking_uri], wanted),
        runs,
        lambda _, done: progress("reading evaluations", done, len(runs)),
    )
    for run, job in zip(runs, jobs, strict=True):
        try:
            evaluations[run.run_id], note = job.result()
            notes += [f"{run.name}: {note}"] if note else []
        except Exception as error:
            problems[run.run_id] = plain_reason(error, run)
    cache.trim()
    return Fetched(evaluations, problems, tuple(sorted(notes)))


def _read(run: TrackedRun, client: MlflowClient, wanted: Wanted) -> tuple[BaseEvaluation, str]:
    """The evaluation, and what is wrong with its predictions by row (that they were not kept is not)."""
    evaluation, problem = evaluation_of(run, client, wanted.prefix), ""
    if wanted.rows:
        evaluation, problem = with_kept_predictions(evaluation, run, client, wanted.prefix)
    return wanted.prepared(evaluation), f"compared without its predictions by row: {problem}" if problem else ""


def undefined_reason(evaluation: BaseEvaluation, metric: str) -> str:
    """Why a run cannot be ranked by a metric; empty where it can."""
    if metric not in evaluation.metrics:
        return f"it has no {metric}"
    if math.isfinite(evaluation.metrics[metric]):
        return ""
    return f"{metric} is undefined: {evaluation.undefined.get(metric, 'no reason is known')}"
