"""Section 1.2.3: the cases with two classes, and what explains the published numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from cmtrack import estimate_prevalence, evaluate
from correlation import modes
from correlation.data import SIZES, FloatArray, Problem, Sample, non_normal
from correlation.limits import best_possible, from_counts, table_behind
from correlation.machines import Machine, Scored, fitted, machines, network, probabilities, scored
from correlation.published import COLUMNS, TABLE_1_2
from correlation.tracking import log_machine
from correlation.trials import METRICS, Judged, Trials, judge, judged
from study import Spread, Study, beside

Draw = Callable[[np.random.Generator, tuple[int, int]], Sample]

RARE = 0.01
"""Share of positives in a target that is not that of the training rows."""


def drawn(draw: Draw, seed: int, size: tuple[int, int]) -> Problem:
    """Train and test rows from the same distributions, as many of each class."""
    rng = np.random.default_rng([seed, *size])
    return Problem(draw(rng, size), draw(rng, size))


def run_case(
    study: Study,
    case: str,
    make: Callable[[int], Problem],
    *,
    repeats: int,
    folds: int | None = None,
    same_rows: bool = False,
    logged: bool = True,
) -> Trials:
    """Judge the four machines over repeats; the first repeat is logged.

    Where all repeats have the same rows, a machine without a seed is judged once.
    """
    folds = modes.folds(study) if folds is None else folds
    trials, kept = Trials(), dict[str, Judged]()
    for seed in study.track(range(repeats), case):
        problem = make(seed)
        for machine in machines(seed, len(problem.train.y), trees=modes.trees(study), folds=folds):
            if machine.seeded or not same_rows or machine.name not in kept:
                kept[machine.name] = judge(machine, problem, folds=folds, seed=seed)
        trials.add(kept.values())
    for one in trials.first if logged else []:
        for column, evaluation in one.evaluations.items():
            if evaluation is not None:
                spreads = {name: trials.spread(row, column) for row, name in METRICS.items()}
                log_machine(case, column, evaluation, spreads, one.machine.parameters)
    return trials


def barely_trained(draw: Draw, repeats: int) -> list[Judged]:
    """Networks after one epoch on as many rows as in the source, calibrated with as many fresh ones."""
    out = []
    for seed in range(repeats):
        rng = np.random.default_rng([seed, 1])
        train, fresh, test = (draw(rng, SIZES) for _ in range(3))
        machine = Machine("NN", network(seed, epochs=1), "held out")
        model = fitted(machine.classifier, train)
        of_train, of_fresh, of_test = (
            probabilities(model, sample.x) for sample in (train, fresh, test)
        )
        out.append(
            judged(machine, test.y, Scored(of_test, (fresh.y, of_fresh), (train.y, of_train)))
        )
    return out


def all_negative(one: Judged) -> bool:
    """Whether a plain machine labels nothing positive."""
    return one.plain.metrics["binary/tp"] + one.plain.metrics["binary/fp"] == 0


def nearest(networks: list[Judged], spcc: float) -> Judged:
    """The network with the sPCC nearest to a published one, among those that label nothing positive if there are."""
    alike = [one for one in networks if all_negative(one)] or networks
    return min(alike, key=lambda one: abs(one.plain.metrics["spcc/binary"] - spcc))


def network_table(trained: Trials, networks: list[Judged], published: pd.DataFrame) -> pd.DataFrame:
    """The published network between ours: trained long, and after one epoch."""
    rows = []
    for row, name in METRICS.items():
        plain = np.array([one.plain.metrics[name] for one in networks])
        if row == "MCC":
            plain = np.nan_to_num(plain)  # as the source writes it
        calibrated = [
            one.calibrated.metrics[name] for one in networks if one.calibrated is not None
        ]
        low, high, known = np.nanmin(plain), np.nanmax(plain), published.loc[row, "NN"]
        rows.append(
            {
                "metric": row,
                "published": known,
                "trained": beside(trained.spread(row, "NN"), digits=4),
                "one epoch": beside(Spread.of(plain), digits=4),
                "least": low,
                "most": high,
                "published is inside": "yes" if low <= known <= high else "no",
                "published (cal.)": published.loc[row, "NN (cal.)"],
                "one epoch (cal.)": beside(Spread.of(calibrated), digits=4),
            }
        )
    return pd.DataFrame(rows)


def tables_behind(published: pd.DataFrame) -> pd.DataFrame:
    """The counts that published accuracy and balanced accuracy leave, and the MCC that follows from them."""
    rows = []
    for column in COLUMNS:
        counts = table_behind(published.loc["Accuracy", column], published.loc["BA", column])
        mcc = from_counts(*counts).metrics["multiclass/matthews_corrcoef"]
        known = published.loc["MCC", column]
        agrees = (
            "undefined (nothing is labelled positive)"
            if np.isnan(mcc)
            else f"{abs(mcc - known) <= 0.00105}"
        )
        labels = {"True": "yes", "False": "no"}.get(agrees, agrees)
        names = ("TP", "FN", "FP", "TN")
        rows.append(
            {"machine": column, **dict(zip(names, counts, strict=True)), "MCC from these": mcc}
        )
        rows[-1] |= {"MCC published": known, "agree": labels}
    return pd.DataFrame(rows)


def limit_table(trials: Trials) -> pd.DataFrame:
    """The published forest against what no machine can exceed, and against ours on new rows and on its own."""
    limits = best_possible()
    forest = next(one for one in trials.first if one.machine.name == "RFC")
    own_y, own_p = forest.scored.trained
    own = evaluate(own_y, y_prob=own_p).metrics
    rows = []
    for row, limit in limits.items():
        sd = trials.standard_error(row, "LogReg")
        known = TABLE_1_2.loc[row, "RFC"]
        rows.append(
            {
                "metric": row,
                "published RFC": known,
                "best possible": limit,
                "standard error": sd,
                "errors above the best": (known - limit) / sd,
                "our RFC": beside(trials.spread(row, "RFC"), digits=4),
                "our RFC on its training rows": own[METRICS[row]],
            }
        )
    return pd.DataFrame(rows)


def calibration_table(study: Study, *, repeats: int) -> pd.DataFrame:
    """Non-normal data: estimated minus actual share of positives by the kind of labelled scores.

    One target has the training rows' share of positives, the other one in a hundred. A network is also calibrated out
    of fold here, to show why it is not elsewhere.
    """
    size = modes.sizes(study)
    n = sum(size)
    rare = (n - round(RARE * n), round(RARE * n))
    kept: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for seed in study.track(range(repeats), "labelled scores of three kinds"):
        rng = np.random.default_rng([seed, 7])
        train, same, other = (non_normal(rng, s) for s in (size, size, rare))
        both = Problem(
            train, Sample(np.concatenate((same.x, other.x)), np.concatenate((same.y, other.y)))
        )
        folds = modes.folds(study)
        for machine in _with_both_networks(
            machines(seed, n, trees=modes.trees(study), folds=folds)
        ):
            scores = scored(machine, both, folds=folds, seed=seed)
            for kind in ("training rows", machine.labelled_scores):
                if kind != "training rows" or machine.labelled_scores == "out of fold":
                    kept.setdefault((machine.name, kind), []).append(
                        _gaps(scores, kind, n, rare[1] / n)
                    )
    rows = []
    for (name, kind), values in kept.items():
        array = np.array(values)
        cells = [beside(Spread.of(column), digits=4) for column in array.T[:4]]
        covered, unfit = (f"{np.nanmean(column):.0%}" for column in array.T[4:])
        rows.append([name, kind, *cells, covered, unfit])
    columns = [
        "machine",
        "labelled scores",
        "sum, same share",
        "calibrated, same share",
        "sum, rare",
        "calibrated, rare",
        "95% interval covers, rare",
        "fit p < .05, same share",
    ]
    return pd.DataFrame(rows, columns=columns)


def _with_both_networks(chosen: list[Machine]) -> list[Machine]:
    return [*chosen[:-1], chosen[-1]._replace(labelled_scores="out of fold"), chosen[-1]]


def _gaps(scores: Scored, kind: str, n: int, rare: float) -> tuple[float, ...]:
    """Errors of sum and estimate in both targets, whether the second interval covers, whether the first fits."""
    labelled = scores.trained if kind == "training rows" else scores.labelled
    shares = (scores.labelled[0].mean(), rare)
    parts: tuple[FloatArray, ...] = (scores.test[:n], scores.test[n:])
    estimates = [estimate_prevalence(part, calibration=labelled, positive=1) for part in parts]
    # rejections are counted below
    first, second = (estimate.refused or estimate for estimate in estimates)
    covers = float(second.low <= rare <= second.high) if np.isfinite(second.value) else np.nan
    fit = float(first.fit_pvalue < 0.05) if np.isfinite(first.fit_pvalue) else np.nan
    gaps = [
        v - s
        for part, e, s in zip(parts, (first, second), shares, strict=True)
        for v in (part.mean(), e.value)
    ]
    return (*gaps, covers, fit)
