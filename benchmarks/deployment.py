"""Metrics at other shares of the classes, and the highest of many runs, when the truth is known.

"shares": scores are logits, N(1, 1) for positives and N(-1, 1) for negatives. Half of the labelled rows are positive,
and a target has the shares in the table's row. The target's scores and the labelled rows estimate the target's share,
and each metric is moved to this share. Its error is the mean distance from the metric of the target's actual labels,
compared with the error of the labelled rows' unmoved metric. Its interval should cover the actual metric. First, the
same labelled rows calibrate the estimate, then other rows do. "stated": the population's interval if the share is
known. "covariate shift": uncertain rows are four times as frequent, and the test of the fit should reject. "areas": the
interval of the average precision at a stated share, with few rows to 2,000 of each class. "paired": the interval of the
difference of two models on 600 rows at 10%. "chosen": 100 equal runs with accuracy .85, and normal values whose errors
are shared by all (.5) and by five (.2), for equal and for different runs.

    python benchmarks/deployment.py [--repeats 100] [--only shares|areas|paired|chosen]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit, ndtr, ndtri

from cmtrack import estimate_prevalence, evaluate, paired_differences
from cmtrack.comparison import inference
from cmtrack.comparison.planning import optimism
from cmtrack.statistics.inputs import BoolArray, FloatArray

METRICS = ("multiclass/accuracy", "binary/precision", "binary/f1", "binary/matthews_corrcoef")


def with_error(values: Sequence[float], digits: int = 3) -> str:
    """A mean with its standard error."""
    known = np.asarray(values, dtype=float)[np.isfinite(values)]
    return f"{known.mean():.{digits}f} ± {known.std() / math.sqrt(len(known)):.{digits}f}"


def scores(positive: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Scores of rows."""
    return np.asarray(expit(rng.normal(np.where(positive, 1.0, -1.0))))


def expected(share: float, gap: float = 1.0) -> dict[str, float]:
    """Return the metrics of the population with this share of positives, for logits N(gap, 1) and N(-gap, 1)."""
    right = float(ndtr(gap))
    tp, fn, fp, tn = (
        share * right,
        share * (1 - right),
        (1 - share) * (1 - right),
        (1 - share) * right,
    )
    root = math.sqrt((tp + fn) * (tp + fp) * (tn + fp) * (tn + fn))
    values = right, tp / (tp + fp), 2 * tp / (2 * tp + fp + fn), (tp * tn - fp * fn) / root
    return dict(zip(METRICS, values, strict=True))


def covers(intervals: Mapping[str, tuple[float, float]], name: str, value: float) -> float:
    """Return 1.0 if an interval contains a value, else 0.0; NaN without an interval, as for a refused estimate."""
    if name not in intervals:
        return math.nan
    low, high = intervals[name]
    return float(low <= value <= high)


def shares(repeats: int) -> None:
    """Print errors and coverage of moved metrics, and rejections under covariate shift."""
    sections = ["multiclass", "binary"]
    for labelled, size, low, high in ((2000, 4000, 0.01, 0.05), (2000, 4000, 0.05, 0.2), (2000, 4000, 0.3, 0.7),
                                      (200, 1000, 0.05, 0.5)):  # fmt: skip
        rng = np.random.default_rng([labelled, round(1000 * low)])
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in METRICS}
        withdrawn = 0
        for _ in range(repeats):
            y = np.arange(labelled) % 2 == 0
            labelled_scores = scores(y, rng)
            here = evaluate(y, y_prob=labelled_scores, sections=sections)
            share = rng.uniform(low, high)
            own = rng.random(size) < share
            target = scores(own, rng)
            there, apart = (
                here.at(estimate_prevalence(target, calibration=(y, calibration), density="bins"))
                for calibration in (labelled_scores, scores(y, rng))
            )
            stated, truth = (
                here.at(share),
                evaluate(own, y_prob=target, labels=[False, True], sections=sections),
            )
            withdrawn += there.withdrawn
            population = expected(share)
            for name in METRICS:
                true, wanted = truth.metrics[name], population[name]
                found[name].append(
                    (
                        abs(here.metrics[name] - true),
                        abs(there.metrics[name] - true),
                        covers(there.own_intervals, name, true),
                        covers(there.intervals, name, wanted),
                        covers(apart.own_intervals, name, true),
                        covers(apart.intervals, name, wanted),
                        covers(stated.intervals, name, wanted),
                    )
                )
        print(
            f"{labelled} labelled, target {size}, {low:.0%} to {high:.0%}: fit rejected in {withdrawn} of {repeats}"
        )
        for name, rows in found.items():
            off, there_off, own_cover, cover, own_apart, cover_apart, known = map(
                with_error, zip(*rows, strict=True)
            )
            print(
                f"  {name:26} error as it is {off}, moved {there_off}, own cover {own_cover}, population's {cover}; "
                f"calibrated on other rows {own_apart}, {cover_apart}; stated {known}",
                flush=True,
            )
    rng, rejected = np.random.default_rng(7), []
    for _ in range(repeats):
        y = np.arange(2000) % 2 == 0
        labelled_scores = scores(y, rng)
        own = rng.random(40_000) < 0.5
        target = scores(own, rng)
        kept = rng.random(40_000) < np.where(np.abs(target - 0.5) < 0.25, 0.2, 0.05)
        estimate = estimate_prevalence(
            target[kept], calibration=(y, labelled_scores), density="bins"
        )
        rejected.append(estimate.refused is not None)
    print(f"covariate shift: fit rejected in {with_error(rejected)}")


def paired(repeats: int) -> None:
    """Print the coverage of a paired difference at 10% positives, from rows of which half are positive."""

    def both(y: BoolArray, rng: np.random.Generator) -> list[FloatArray]:
        shared = rng.normal(size=len(y))
        return [
            expit(np.where(y, gap, -gap) + 0.7 * shared + 0.7 * rng.normal(size=len(y)))
            for gap in (1.0, 0.8)
        ]

    rng = np.random.default_rng(11)
    truth = [expected(0.1, gap / math.sqrt(2 * 0.7**2)) for gap in (1.0, 0.8)]
    covered: dict[str, list[bool]] = {name: [] for name in METRICS}
    for _ in range(repeats):
        y = np.arange(600) % 2 == 0
        first, second = (evaluate(y, y_prob=one).at(0.1).reweighted for one in both(y, rng))
        for row in paired_differences(first, second, metrics=METRICS).rows:
            gap = truth[0][row.metric] - truth[1][row.metric]
            covered[row.metric].append(row.low <= gap <= row.high)
    print(
        "paired at 10%: " + ", ".join(f"{name} {with_error(own)}" for name, own in covered.items())
    )


def average_precision(share: float) -> float:
    """The average precision of the population with this share of positives: the mean precision at the positives."""
    thresholds = 1.0 + ndtri((np.arange(100_000) + 0.5) / 100_000)
    positives = share * ndtr(1.0 - thresholds)
    negatives = (1 - share) * ndtr(-1.0 - thresholds)
    return float((positives / (positives + negatives)).mean())


def areas(repeats: int) -> None:
    """Print the coverage of the interval of the average precision at a stated share."""
    name = "binary/average_precision"
    for positives, negatives, share in (
        (15, 15, 0.05), (30, 30, 0.05), (100, 100, 0.05), (300, 300, 0.05), (30, 30, 0.3), (300, 300, 0.01),
        (2000, 2000, 0.01), (300, 3000, 0.01), (30, 30, 0.5), (100, 100, 0.5), (300, 300, 0.5), (30, 30, 0.9),
    ):  # fmt: skip
        rng, truth = np.random.default_rng([positives, negatives]), average_precision(share)
        y = np.arange(positives + negatives) < positives
        values, inside, below, widths = [], [], [], []
        for _ in range(repeats):
            there = evaluate(y, y_prob=scores(y, rng), sections=["binary"]).at(share)
            low, high = there.intervals[name]
            values.append(there.metrics[name])
            inside.append(low <= truth <= high)
            below.append(truth < low)
            widths.append(high - low)
        print(
            f"{positives} + {negatives} rows, {share:.0%}: mean {with_error(values)}, truth {truth:.3f}, "
            f"cover {with_error(inside)}, truth below {np.mean(below):.3f}, width {np.median(widths):.3f}",
            flush=True,
        )


TRUTHS = {
    "equal": lambda rng, m: np.zeros(m),
    "spread 1 sd": lambda rng, m: rng.normal(size=m),
    "spread 3 sd": lambda rng, m: 3 * rng.normal(size=m),
    "one better by 3 sd": lambda rng, m: 3.0 * (np.arange(m) == 0),
    "half better by 2 sd": lambda rng, m: 2.0 * (np.arange(m) < m / 2),
}


def highest(
    values: FloatArray, truths: FloatArray, covariance: FloatArray, seed: int
) -> tuple[float, float, bool]:
    """Return the bias of the highest value, the bias after correction, and whether the interval covers the truth."""
    best, errors = int(values.argmax()), inference.error_draws(covariance, 5000, seed)
    reach, _ = inference.reach_of_best(errors, np.diag(covariance), 0.95)
    off, error = float(values[best] - truths[best]), math.sqrt(covariance[best, best])
    return (
        off,
        off - optimism(values, covariance, seed),
        -ndtri(0.975) * error <= off <= reach * error,
    )


def chosen(repeats: int) -> None:
    """Print the bias of the highest of many runs, without and with correction, and the coverage after choosing."""

    def show(title: str, found: list[tuple[float, float, bool]], digits: int) -> None:
        naive, corrected, cover = zip(*found, strict=True)
        bias = f"bias {with_error(naive, digits)}, corrected {with_error(corrected, digits)}"
        print(f"{title}: {bias}, cover {with_error(cover)}", flush=True)

    for shared in (0.5, 0.8):
        rng, found = np.random.default_rng(5), []
        for seed in range(repeats):
            noise = math.sqrt(shared) * rng.normal(size=(2000, 1)) + math.sqrt(
                1 - shared
            ) * rng.normal(size=(2000, 100))
            right = (noise < ndtri(0.85)).astype(np.float64)
            psi = right - right.mean(axis=0)
            found.append(
                highest(right.mean(axis=0), np.full(100, 0.85), psi.T @ psi / 2000**2, seed)
            )
        show(f"highest of 100 equal runs, 2,000 rows, latent correlation {shared}", found, 4)
    for runs in (10, 100):
        family = np.arange(runs) // 5
        covariance = 0.5 + 0.2 * (family[:, None] == family) + 0.3 * np.eye(runs)
        root = np.linalg.cholesky(covariance)
        for title, drawn in TRUTHS.items():
            rng = np.random.default_rng(6)
            made = ((drawn(rng, runs), root @ rng.normal(size=runs)) for _ in range(repeats))
            found = [
                highest(truth + off, truth, covariance, seed)
                for seed, (truth, off) in enumerate(made)
            ]
            show(f"{runs} runs, {title} (in standard errors of one)", found, 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--only", choices=("shares", "areas", "paired", "chosen"))
    given = parser.parse_args()
    for part in (shares, areas, paired, chosen):
        if given.only in (None, part.__name__):
            part(given.repeats)
