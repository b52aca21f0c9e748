"""Section 1.3.2: machines on three classes, plain and calibrated, over repeats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from cmtrack import Evaluation, estimate_prevalence, evaluate
from correlation import modes
from correlation.data import CLASS_SIZES, FloatArray, Problem, three_normals
from correlation.machines import Machine, fitted, machines, network, probabilities, scored
from correlation.multiclass import CLASSES, METRICS, numbers
from correlation.published import MULTICLASS_ROWS, TABLE_1_6, TABLE_1_7_OVO
from correlation.tracking import log_machine
from correlation.trials import CALIBRATED
from study import Spread, Study, beside

CASE = "three classes"


class Barely(NamedTuple):
    """A network after one epoch."""

    evaluation: Evaluation
    numbers: dict[str, float]


def drawn(seed: int, sizes: tuple[int, ...]) -> Problem:
    """Train and test rows from the same distributions."""
    rng = np.random.default_rng([seed, *sizes])
    return Problem(three_normals(rng, sizes), three_normals(rng, sizes))


def run(study: Study, *, repeats: int) -> dict[str, pd.DataFrame]:
    """The rows of Table 1.6 by machine, plain and calibrated, one row per repeat; the first one is logged.

    The linear SVM, which the source leaves out, takes no longer than the others here.
    """
    kept: dict[str, list[dict[str, float]]] = {}
    first: list[tuple[Machine, str, Evaluation]] = []
    for seed in study.track(range(repeats), CASE):
        problem, folds = drawn(seed, modes.class_sizes(study)), modes.folds(study)
        for machine in machines(seed, len(problem.train.y), trees=modes.trees(study), folds=folds):
            scores = scored(machine, problem, folds=folds, seed=seed)
            both = {machine.name: scores.test}
            # else nothing tells the classes apart, and no share is known
            if np.ptp(scores.test, axis=0).max() > 0:
                estimate = estimate_prevalence(scores.test, calibration=scores.labelled)
                estimate = estimate.refused or estimate  # the source's method does not test the fit
                both[machine.name + CALIBRATED] = estimate.posterior(scores.test)
            for column, p in both.items():
                evaluation = evaluate(problem.test.y, y_prob=p, labels=CLASSES)
                kept.setdefault(column, []).append(numbers(evaluation, problem.test.y, p))
                if seed == 0:
                    first.append((machine, column, evaluation))
    trials = {column: pd.DataFrame(rows, columns=MULTICLASS_ROWS) for column, rows in kept.items()}
    for machine, column, evaluation in first:
        spreads = {name: Spread.of(trials[column][row]) for row, name in METRICS.items()}
        log_machine(CASE, column, evaluation, spreads, machine.parameters)
    return trials


def barely_trained(study: Study, *, networks: int) -> list[Barely]:
    """Networks after one epoch on as many rows as in the source."""
    out = []
    for seed in study.track(range(networks), "networks of one epoch"):
        problem = drawn(seed, CLASS_SIZES)
        p = probabilities(fitted(network(seed, epochs=1), problem.train), problem.test.x)
        evaluation = evaluate(problem.test.y, y_prob=p, labels=CLASSES)
        out.append(Barely(evaluation, numbers(evaluation, problem.test.y, p)))
    return out


def nearest(networks: list[Barely]) -> Barely:
    """The network whose one-vs-one matrix is nearest to the published one (sum of distances)."""
    return min(
        networks, key=lambda one: float(np.abs(one.evaluation.spcc_matrix - TABLE_1_7_OVO).sum())
    )


def table(trials: dict[str, pd.DataFrame], barely: pd.DataFrame) -> pd.DataFrame:
    """Table 1.6, one row per machine."""
    rows = {}
    for column, values in {**trials, "NN, one epoch": barely}.items():
        known = TABLE_1_6.get(column)
        rows[column] = {
            row: beside(
                Spread.of(values[row]), None if known is None else float(known[row]), digits=4
            )
            for row in MULTICLASS_ROWS
        }
    frame = pd.DataFrame(rows).T
    frame.index.name = "machine"
    return frame


def matrix_table(matrix: FloatArray, published: list[list[float]]) -> pd.DataFrame:
    """A one-vs-one matrix beside a published one."""
    names = [f"class {k}" for k in CLASSES]
    frame = pd.DataFrame(
        index=pd.Index(names, name="score of"),
        columns=[f"against {n}" for n in names],
        dtype=object,
    )
    for i in range(len(names)):
        for j in range(len(names)):
            frame.iloc[i, j] = (
                "–"
                if i == j
                else beside(float(matrix[i, j]), published[i][j], digits=4).removesuffix(" †")
            )
    return frame
