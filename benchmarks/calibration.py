"""How often the test of calibration rejects, and what the calibration error shows, where the truth is known.

Scores: "beta" Beta(2, 2), "rare" the logit N(-4, 1.5^2), "votes" the share of nine votes, with .05
and .95 in place of 0 and 1. Labels are drawn with the scores for probabilities ("calibrated"), with the logit over 1.4
("over-confident"), or with the logit plus .25 ("shifted").

    python benchmarks/calibration.py [--repeats 1000] [--quick]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
from scipy.special import expit, logit

from cmtrack import evaluate
from cmtrack.statistics.inputs import FloatArray

SIZES = (200, 500, 2000)
WRONG = {"over-confident": (1 / 1.4, 0.0), "shifted": (1.0, 0.25)}


def scores_of(kind: str, rng: np.random.Generator, n: int) -> FloatArray:
    """Scores of n rows."""
    if kind == "rare":
        return np.asarray(expit(rng.normal(-4, 1.5, n)))
    drawn = rng.beta(2, 2, n)
    if kind == "votes":
        return np.clip(rng.binomial(9, drawn) / 9, 0.05, 0.95)
    return drawn


def with_error(values: Sequence[float], digits: int = 3) -> str:
    """A mean with its standard error."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values) / math.sqrt(len(values)):.{digits}f}"


def row(kind: str, n: int, repeats: int, slope: float = 1.0, shift: float = 0.0) -> list[str]:
    """Shares of p-values up to .05 and of each part, mean squared error, cover of the slope's and the error's interval.

    The error's interval is held against the truth of calibrated scores, 0, and of others not at all.
    """
    rng = np.random.default_rng([n, len(kind), round(100 * slope), round(100 * shift)])
    found: dict[str, list[float]] = {name: [] for name in ("combined", "kuiper", "cox", "squared", "slope", "error")}
    for _ in range(repeats):
        s = scores_of(kind, rng, n)
        y = (rng.random(n) < expit(slope * logit(s) + shift)).astype(int)
        evaluation = evaluate(y, y_prob=s, labels=[0, 1], sections=["calibration"])
        curve, intervals = evaluation.calibration, evaluation.intervals
        assert curve is not None
        if curve.test is not None:
            for name, p in zip(("combined", "kuiper", "cox"), (curve.test.pvalue, curve.test.kuiper_pvalue,
                               curve.test.cox_pvalue), strict=True):  # fmt: skip
                found[name].append(p <= 0.05)
        found["squared"].append(curve.table.error.squared)
        if "calibration/slope" in intervals:
            low, high = intervals["calibration/slope"]
            found["slope"].append(low <= slope <= high)
        found["error"].append(intervals["calibration/error"][0] == 0)
    cells = [with_error(found[name]) for name in ("combined", "kuiper", "cox")]
    right = slope == 1 and shift == 0
    return [*cells, with_error(found["squared"], 5), with_error(found["slope"]),
            with_error(found["error"]) if right else "–"]  # fmt: skip


def left(n: int, repeats: int, slope: float) -> str:
    """Share of the curves that leave the consistency band somewhere."""
    rng = np.random.default_rng([n, round(100 * slope)])
    found = []
    for _ in range(repeats):
        s = scores_of("beta", rng, n)
        curve = evaluate((rng.random(n) < expit(slope * logit(s))).astype(int), y_prob=s, labels=[0, 1]).calibration
        assert curve is not None
        low, high = curve.band()
        found.append(bool(((curve.recalibrated < low - 1e-9) | (curve.recalibrated > high + 1e-9)).any()))
    return with_error(found)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="100 repeats of the two smaller sizes")
    options = parser.parse_args()
    repeats, sizes = (100, SIZES[:2]) if options.quick else (options.repeats, SIZES)
    print("| scores | labels | rows | combined | Kuiper | Cox | squared error | slope covered | error covered |")
    print("|---" * 9 + "|")
    for kind in ("beta", "rare", "votes"):
        for n in sizes:
            print(f"| {kind} | calibrated | {n} | " + " | ".join(row(kind, n, repeats)) + " |", flush=True)
    for labels, (slope, shift) in WRONG.items():
        for n in sizes:
            cells = row("beta", n, repeats // 4, slope, shift)
            print(f"| beta | {labels} | {n} | " + " | ".join(cells) + " |", flush=True)
    print("| rows | calibrated curves outside the band | over-confident ones |")
    print("|---" * 3 + "|")
    for n in sizes[:1] if options.quick else (200, 1000):
        print(f"| {n} | {left(n, repeats * 3 // 2, 1.0)} | {left(n, repeats // 5, 1 / 1.4)} |", flush=True)


if __name__ == "__main__":
    main()
