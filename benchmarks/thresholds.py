"""Cost of a chosen threshold: the apparent cost, the reported cost and the true cost, when the truth is known.

A miss costs 10, a false alarm 1. Logits are N(1.5 y - 2, 1), so the true cost of any threshold is known. The naive
interval is Wald's for the mean cost on the rows that chose the threshold. "mismatches": .8 of the positives and .9 of
the negatives have the correct class within their group at any score; the others cost 3 and .5.

    python benchmarks/thresholds.py [--repeats 2000] [--quick]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr

from cmtrack import Costs, Evaluation, Grouping, evaluate
from cmtrack.statistics.inputs import FloatArray, IntArray

SIZES = (200, 500, 2000)
PRECISION = "binary/precision"
MISS, ALARM, IMP, IMN = 10.0, 1.0, 3.0, 0.5
RIGHT = (0.9, 0.8)  # of the negatives and of the positives
TWO = Grouping({"no": [0, 1], "yes": [2, 3]}, "strict", name="two")
COSTS = Costs({("yes", "no"): MISS, ("no", "yes"): ALARM}, mismatch={"yes": IMP, "no": IMN})


def rows_of(rng: np.random.Generator, n: int, share: float) -> tuple[IntArray, FloatArray]:
    """Labels and logits."""
    y = (rng.random(n) < share).astype(int)
    return y, 1.5 * y - 2 + rng.normal(size=n)


def true_rates(threshold: float) -> tuple[float, float]:
    """Return the share of the positives below a threshold, and of the negatives above it."""
    at = math.inf if math.isinf(threshold) else float(logit(threshold))
    return float(ndtr(at - 1.5 + 2)), float(1 - ndtr(at + 2))


def drawn(rng: np.random.Generator, n: int, share: float, kind: str) -> Evaluation:
    """Return an evaluation of n rows."""
    y, x = rows_of(rng, n, share)
    s = expit(x)
    if kind != "mismatches":
        return evaluate(y, y_prob=s, labels=[0, 1], sections=["multiclass"])
    right = np.where(y == 1, rng.random(n) < RIGHT[1], rng.random(n) < RIGHT[0])
    # by its group's probability; every row has its group's first class
    first = np.where(right, 0.9, 0.1)
    p = np.column_stack(
        (*_parts(1 - s, np.where(y == 0, first, 0.5)), *_parts(s, np.where(y == 1, first, 0.5)))
    )
    return evaluate(
        2 * y, y_prob=p, labels=[0, 1, 2, 3], grouping=TWO, normalize=True, sections=["multiclass"]
    )


def _parts(of_group: FloatArray, first: FloatArray) -> tuple[FloatArray, FloatArray]:
    return of_group * first, of_group * (1 - first)


def costs_of(n: int, share: float, kind: str, repeats: int) -> list[str]:
    """Return bias of the apparent and honest cost, coverage of the naive and honest interval, and its mean width."""
    rng = np.random.default_rng([n, round(1000 * share), len(kind)])
    found: list[tuple[float, ...]] = []
    costs: Any = COSTS if kind == "mismatches" else {(1, 0): MISS, (0, 1): ALARM}
    imp, imn = (IMP * (1 - RIGHT[1]), IMN * (1 - RIGHT[0])) if kind == "mismatches" else (0.0, 0.0)
    while len(found) < repeats:
        evaluation = drawn(rng, n, share, kind)
        sides = evaluation.confusion_matrix.counts.sum(axis=1)
        if sides[: len(sides) // 2].sum() in (0, n):  # one group only
            continue
        chosen = evaluation.threshold(costs)
        missed, alarmed = true_rates(chosen.value)
        truth = share * (MISS * missed + imp * (1 - missed)) + (1 - share) * (
            ALARM * alarmed + imn * (1 - alarmed)
        )
        at = int(np.flatnonzero(chosen.thresholds == chosen.value)[0])
        six = np.array([part[at] for part in chosen.counts])
        assert chosen.costs is not None
        error = 1.96 * math.sqrt(
            max((six @ np.square(chosen.costs.costs)) / n - chosen.apparent**2, 0.0) / n
        )
        found.append(
            (
                truth,
                chosen.apparent,
                chosen.cost,
                abs(chosen.apparent - truth) <= error,
                chosen.low <= truth <= chosen.high,
                chosen.high - chosen.low,
            )
        )
    truth, apparent, honest, naive, covered, width = np.array(found, dtype=float).T
    return [
        relative(apparent, truth),
        relative(honest, truth),
        with_error(naive),
        with_error(covered),
        f"{width.mean() / truth.mean():.2f}",
    ]


def precision_of(n: int, repeats: int) -> list[str]:
    """Return the share of existing thresholds with a true precision below .8, and the mean recall, true and reported."""
    rng = np.random.default_rng([n, len(PRECISION)])
    below, recall, said, covered = [], [], [], []
    for _ in range(repeats):
        evaluation = drawn(rng, n, 0.3, "plain")
        try:
            chosen = evaluation.threshold(
                maximize="binary/recall", subject_to=f"{PRECISION} >= 0.8"
            )
        except ValueError:  # none keeps the bound
            continue
        missed, alarmed = true_rates(chosen.value)
        below.append(0.3 * (1 - missed) < 0.8 * (0.3 * (1 - missed) + 0.7 * alarmed))
        recall.append(1 - missed)
        said.append(chosen.objective.value)
        covered.append(chosen.low <= 1 - missed <= chosen.high)
    return [
        f"{len(below) / repeats:.3f}",
        with_error(below),
        with_error(recall),
        with_error(said),
        with_error(covered),
    ]


def with_error(values: Sequence[float] | FloatArray, digits: int = 3) -> str:
    """A mean with its standard error."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values) / math.sqrt(len(values)):.{digits}f}"


def relative(values: FloatArray, truth: FloatArray) -> str:
    """Return the mean difference from the truth in percent of the truth, with its standard error."""
    gap = (values - truth) / truth.mean()
    return f"{100 * gap.mean():+.1f} ± {100 * gap.std() / math.sqrt(len(gap)):.1f}%"


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="200 repeats of the two smaller sizes")
    options = parser.parse_args()
    repeats, sizes = (200, SIZES[:2]) if options.quick else (options.repeats, SIZES)
    head = (
        "rows",
        "positives",
        "apparent cost",
        "honest cost",
        "naive interval covers",
        "honest one covers",
        "width",
    )
    print("| samples | " + " | ".join(head) + " |\n" + "|---" * (len(head) + 1) + "|")
    for kind, shares in (
        ("plain", (0.5, 0.3, 0.1, 0.05)),
        ("mismatches", (0.3,)),
    ):
        for share in shares:
            for n in sizes:
                cells = costs_of(n, share, kind, repeats if kind == "plain" else repeats // 2)
                print(
                    f"| {kind} | {n} | {100 * share:g}% | " + " | ".join(cells) + " |", flush=True
                )
    head = (
        "rows",
        "exists",
        "true precision below .8",
        "true recall",
        "recall said",
        "interval covers",
    )
    print("\n| bound | " + " | ".join(head) + " |\n" + "|---" * (len(head) + 1) + "|")
    for n in sizes[:1] if options.quick else (200, 1000, 5000):
        cells = precision_of(n, repeats // 5)
        print(f"| {PRECISION} >= .8 | {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
