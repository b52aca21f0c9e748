"""Metrics at other shares on published probabilities: no data here are drawn from a model.

IMDB (25,000 film reviews, two classes), and with --data FOLDER CIFAR-10, 20news and MNIST: cross-validated
probabilities published with "Pervasive label errors in test sets" (Northcutt, Athalye and Mueller 2021,
github.com/cleanlab/label-errors, Apache-2.0; data/imdb.npz has the IMDB probabilities as float32). In addition, a naive
Bayes classifier predicts scikit-learn's digits out of fold. The labelled rows and the target's rows are disjoint and
random. The target has the shares in the table's row; with several classes, any shares (uniform on the simplex).

Each line shows the mean distance from the metric of the target's actual labels: of the labelled rows' unmoved metric,
of the moved metric, and of nannyml's CBPE if it is installed. It also shows how often our interval and CBPE's band
cover this metric. "covariate shift": uncertain rows are four times as frequent, and the test of the fit should reject.

    python benchmarks/real_shares.py [--repeats 300] [--data FOLDER] [--only two|several|shift]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from deployment import with_error

from cmtrack import estimate_prevalence, evaluate
from cmtrack.statistics.inputs import FloatArray, IntArray

TWO = ("multiclass/accuracy", "binary/precision", "binary/f1", "binary/matthews_corrcoef")
SEVERAL = ("multiclass/accuracy", "multiclass/f1_macro")
FOLDER = Path(__file__).parent / "data"


def imdb() -> tuple[IntArray, FloatArray]:
    """Labels and probabilities of the reviews."""
    with np.load(FOLDER / "imdb.npz") as data:
        y, p = data["y"].astype(np.int64), data["p"].astype(np.float64)
    return y, np.column_stack((1 - p, p))


def published(folder: Path, name: str) -> tuple[IntArray, FloatArray]:
    """Return labels and probabilities of a set from the repository, with rows scaled to sum to 1."""
    p = np.load(folder / f"{name}_test_set_pyx.npy").astype(np.float64)
    y = np.load(folder / f"{name}_test_set_original_labels.npy").astype(np.int64)
    return y, p / p.sum(axis=1, keepdims=True)


def digits() -> tuple[IntArray, FloatArray]:
    """Return scikit-learn's digits and out-of-fold probabilities of a naive Bayes classifier."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB

    x, y = load_digits(return_X_y=True)
    return y.astype(np.int64), cross_val_predict(
        GaussianNB(var_smoothing=1e-2), x, y, cv=5, method="predict_proba"
    )


def split(
    y: IntArray, labelled: int, size: int, shares: FloatArray, rng: Any
) -> tuple[IntArray, IntArray]:
    """Return positions of the labelled rows and of a target with these shares; it has fewer rows if a class runs out."""
    order = rng.permutation(len(y))
    here, rest = order[:labelled], order[labelled:]
    by_class = [rest[y[rest] == k] for k in range(len(shares))]
    size = min(
        size, *(int(len(rows) / q) for rows, q in zip(by_class, shares, strict=True) if q > 0)
    )
    counts = rng.multinomial(size, shares)
    return here, np.concatenate(
        [rows[: min(n, len(rows))] for rows, n in zip(by_class, counts, strict=True)]
    )


def cbpe(
    y: IntArray, p: FloatArray, here: IntArray, there: IntArray
) -> Mapping[str, tuple[float, float, float]]:
    """Return CBPE's estimates and bands; empty if nannyml is not installed."""
    os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # it would report its use to its makers
    try:
        import nannyml
        import pandas as pd
    except ImportError:
        return {}
    logging.disable(logging.WARNING)
    size = p.shape[1]
    names: Any = "p1" if size == 2 else {str(k): f"p{k}" for k in range(size)}
    kind = "classification_binary" if size == 2 else "classification_multiclass"
    table = pd.DataFrame(p, columns=[f"p{k}" for k in range(size)])
    answers = p.argmax(axis=1)
    table["y"], table["predicted"] = (
        (y, answers) if size == 2 else (y.astype(str), answers.astype(str))
    )
    wanted = ["accuracy", "precision", "f1"] if size == 2 else ["accuracy", "f1"]
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        model = nannyml.CBPE(
            y_pred_proba=names,
            y_pred="predicted",
            y_true="y",
            problem_type=kind,
            metrics=wanted,
            chunk_size=len(there),
        )
        found = model.fit(table.iloc[here]).estimate(table.iloc[there].drop(columns="y"))
        frame = found.filter(period="analysis").to_df()
    full = dict(zip(wanted, ("multiclass/accuracy", "binary/precision", "binary/f1"), strict=False))
    if size > 2:
        full["f1"] = "multiclass/f1_macro"
    ends = ("value", "lower_confidence_boundary", "upper_confidence_boundary")
    return {full[name]: tuple(float(frame[name][end].iloc[0]) for end in ends) for name in wanted}  # type: ignore[misc]


class Tally:
    """Distances from the truth, and covers, by metric."""

    def __init__(self, title: str, metrics: tuple[str, ...]) -> None:
        self.title, self.withdrawn, self.draws = title, 0, 0
        self.off: dict[str, dict[str, list[float]]] = {name: {} for name in metrics}

    def add(
        self, y: IntArray, p: FloatArray, here: IntArray, there: IntArray, beside: bool
    ) -> None:
        """Add one draw."""
        labels = range(p.shape[1])
        asked: Any = {"labels": labels, "sections": ["multiclass", "binary"]}
        run, truth = (evaluate(y[rows], y_prob=p[rows], **asked) for rows in (here, there))
        held, target = (p[rows] if p.shape[1] > 2 else p[rows, 1] for rows in (here, there))
        moved = run.at(estimate_prevalence(target, calibration=(y[here], held), density="bins"))
        other = cbpe(y, p, here, there) if beside else {}
        self.draws, self.withdrawn = self.draws + 1, self.withdrawn + moved.withdrawn
        for name, lists in self.off.items():
            true, ends = truth.metrics[name], moved.own_intervals.get(name, (math.nan, math.nan))
            estimate = moved.moved.terms[name].value  # also where it would be withdrawn
            row = {"as it is": abs(run.metrics[name] - true), "moved": abs(estimate - true)}
            row["own cover"] = ends[0] <= true <= ends[1] if math.isfinite(ends[0]) else math.nan
            if name in other:
                value, low, high = other[name]
                row |= {
                    "CBPE": abs(value - true),
                    "its band": low <= true <= high,
                    "moved there": row["moved"],
                }
            for key, value in row.items():
                lists.setdefault(key, []).append(value)

    def show(self) -> None:
        """Print means with standard errors."""
        print(f"{self.title}: R {self.draws}, fit rejected in {self.withdrawn}")
        for name, lists in self.off.items():
            known = {key: values for key, values in lists.items() if np.isfinite(values).any()}
            told = ", ".join(f"{key} {with_error(values, 4)}" for key, values in known.items())
            ratio = np.nanmean(lists["moved"]) / np.nanmean(lists["as it is"])
            print(f"  {name:28} {told}; moved/as it is {ratio:.3f}", flush=True)


def two(repeats: int, nanny: int, _: Path | None) -> None:
    """Print the results for IMDB at other shares."""
    y, p = imdb()
    for labelled, size, low, high in ((2000, 4000, 0.01, 0.05), (2000, 4000, 0.05, 0.2), (2000, 4000, 0.3, 0.7),
                                      (200, 1000, 0.05, 0.5)):  # fmt: skip
        rng = np.random.default_rng([labelled, round(1000 * low)])
        tally = Tally(f"IMDB, {labelled} labelled, target {size}, {low:.0%} to {high:.0%}", TWO)
        for k in range(repeats):
            share = rng.uniform(low, high)
            tally.add(
                y, p, *split(y, labelled, size, np.array([1 - share, share]), rng), beside=k < nanny
            )
        tally.show()


def several(repeats: int, nanny: int, folder: Path | None) -> None:
    """Print the results for sets of several classes at any shares."""
    sets = {"digits": digits()}
    if folder is not None:
        sets |= {name: published(folder, name) for name in ("cifar10", "20news", "mnist")}
    for name, (y, p) in sets.items():
        labelled, size = (600, 300) if name == "digits" else (2000, 1000)
        rng, tally = (
            np.random.default_rng(3),
            Tally(f"{name}, {labelled} labelled, target {size}", SEVERAL),
        )
        for k in range(repeats):
            shares = rng.dirichlet(np.ones(p.shape[1]))
            tally.add(y, p, *split(y, labelled, size, shares, rng), beside=k < nanny)
        tally.show()


def shift(repeats: int, nanny: int, _: Path | None) -> None:
    """Print the results for IMDB with uncertain rows four times as frequent, so that more than the shares change."""
    (y, p), rng = imdb(), np.random.default_rng(7)
    tally = Tally("IMDB, covariate shift, 2,000 labelled, target 4,000", TWO[:2])
    uncertain = np.abs(p[:, 1] - 0.5) < 0.25
    for k in range(repeats):
        order = rng.permutation(len(y))
        weight = np.where(uncertain[order[2000:]], 4.0, 1.0)
        there = rng.choice(order[2000:], 4000, replace=False, p=weight / weight.sum())
        tally.add(y, p, order[:2000], there, beside=k < nanny)
    tally.show()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--nannyml", type=int, default=75, help="first draws that CBPE is run on")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", choices=("two", "several", "shift"))
    given = parser.parse_args()
    for part in (two, several, shift):
        if given.only in (None, part.__name__):
            part(given.repeats, given.nannyml, given.data)
