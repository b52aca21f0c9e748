"""Machines judged plain and calibrated, over repeats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cmtrack import Evaluation, PrevalenceEstimate, estimate_prevalence, evaluate
from correlation.data import IntArray, Problem
from correlation.machines import Machine, Scored, scored
from study import Spread, beside

METRICS = {
    "sPCC": "spcc/binary",
    "Accuracy": "multiclass/accuracy",
    "BA": "multiclass/balanced_accuracy",
    "MCC": "multiclass/matthews_corrcoef",
    "AUROC": "binary/roc_auc",
    "Bias": "prevalence/bias",
}
CALIBRATED = " (cal.)"


@dataclass(frozen=True, eq=False)
class Judged:
    """One machine in one repeat; ``calibrated`` is None where no share of positives can be estimated."""

    machine: Machine
    y: IntArray
    scored: Scored
    estimate: PrevalenceEstimate
    plain: Evaluation
    calibrated: Evaluation | None

    @property
    def evaluations(self) -> dict[str, Evaluation | None]:
        """By the name of the column of the published tables."""
        return {self.machine.name: self.plain, self.machine.name + CALIBRATED: self.calibrated}


def judge(machine: Machine, problem: Problem, *, folds: int = 5, seed: int = 0) -> Judged:
    """Fit, score, calibrate, evaluate.

    The plain machine labels from 1/2 on. The calibrated one labels where its recalibrated probability is at least
    1/2, which is the boundary at the crossing of the two densities, weighted with the estimated shares.
    """
    return judged(machine, problem.test.y, scored(machine, problem, folds=folds, seed=seed))


def judged(machine: Machine, y: IntArray, scores: Scored) -> Judged:
    """Calibrate and evaluate scores."""
    estimate = estimate_prevalence(scores.test, calibration=scores.labelled, positive=1)
    estimate = estimate.refused or estimate  # the source's method does not test the fit
    plain = evaluate(y, y_prob=scores.test, calibration=scores.labelled)
    calibrated = None
    if np.isfinite(estimate.value):
        labels = estimate.labels(scores.test).positive.astype(np.int64)
        calibrated = evaluate(y, labels, y_prob=estimate.posterior(scores.test))
    return Judged(machine, y, scores, estimate, plain, calibrated)


@dataclass(eq=False)
class Trials:
    """Every number of every repeat, and all of the first repeat."""

    first: list[Judged] = field(default_factory=list)
    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    widths: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    fits: dict[str, list[float]] = field(default_factory=dict)
    repeats: int = 0

    def add(self, repeat: Iterable[Judged]) -> None:
        """One repeat."""
        machines = list(repeat)
        self.first = self.first or machines
        self.repeats += 1
        for one in machines:
            self.fits.setdefault(one.machine.name, []).append(one.estimate.fit_pvalue)
            for column, evaluation in one.evaluations.items():
                metrics = {} if evaluation is None else evaluation.metrics
                intervals = {} if evaluation is None else evaluation.intervals
                for row, name in METRICS.items():
                    low, high = intervals.get(name, (np.nan, np.nan))
                    self.values.setdefault((row, column), []).append(metrics.get(name, np.nan))
                    self.widths.setdefault((row, column), []).append(high - low)

    def spread(self, row: str, column: str) -> Spread:
        """Mean and standard deviation of a number over the repeats."""
        return Spread.of(self.values[row, column])

    def standard_error(self, row: str, column: str) -> float:
        """Of one test set, from the mean width of the 95% intervals."""
        return float(np.nanmean(self.widths[row, column])) / (2 * 1.96)

    @property
    def columns(self) -> list[str]:
        """Machines, plain and calibrated, in the source's order."""
        return list(dict.fromkeys(column for _, column in self.values))

    def means(self) -> pd.DataFrame:
        """Means over the repeats in the layout of the published tables."""
        rows = [[self.spread(row, column).mean for column in self.columns] for row in METRICS]
        return pd.DataFrame(rows, index=list(METRICS), columns=self.columns)

    def beside(self, published: pd.DataFrame | None = None, *, digits: int = 4) -> pd.DataFrame:
        """The published table, each number behind ours; one row per machine, which is easier to read."""
        frame = pd.DataFrame(
            index=pd.Index(self.columns, name="machine"), columns=list(METRICS), dtype=object
        )
        for row in METRICS:
            for column in self.columns:
                known = None if published is None else float(published.loc[row, column])
                frame.loc[column, row] = beside(self.spread(row, column), known, digits=digits)
        return frame

    def unidentified(self, machine: str) -> int:
        """Repeats in which the calibration of a machine found nothing to go by."""
        return int(np.isnan(self.values["sPCC", machine + CALIBRATED]).sum())
