"""How often intervals and bands for decisions cover the truth: net benefit, break-even, reliability, risk by coverage.

Scores are calibrated unless noted: labels are drawn with the scores as probabilities.

    OMP_NUM_THREADS=1 python benchmarks/decisions.py [--repeats 1000] [--quick]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.special import expit
from scipy.stats import beta, norm

from cmtrack.comparison.cost_ratio import fieller
from cmtrack.metrics.calibration import ReliabilityTable
from cmtrack.metrics.intervals import normal_quantile, wilson
from cmtrack.metrics.net_benefit import net_benefit
from cmtrack.metrics.risk_coverage import reject, risk_coverage_of
from cmtrack.metrics.roc import ScoreTable, with_channels
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.inputs import FloatArray

THRESHOLDS = np.linspace(0.02, 0.5, 25)
LOGITS = {"dull": (-2.83, 1.35), "sharp": (-3.93, 2.5)}
"""Centre and spread of the normal logits of scores for net benefit, both with 10% positives."""
_FINE = (np.arange(200_000) + 0.5) / 200_000


def with_error(values: Sequence[float], digits: int = 3) -> str:
    """A mean with its standard error."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values) / math.sqrt(len(values)):.{digits}f}"


def counted(s: FloatArray, event: FloatArray) -> Counted[ScoreCounts]:
    """Events and others by score."""
    scores = ScoreCounts.from_scores(s, 1 - event.astype(np.int64), 2)
    return Counted.unweighted(with_channels(scores))


def of_net_benefit(n: int, repeats: int, kind: str) -> list[str]:
    """Return coverage of the band, of single and of all intervals, and the largest error of the mean."""
    centre, spread = LOGITS[kind]
    s = expit(centre + spread * norm.ppf(_FINE))
    called = s[:, None] >= THRESHOLDS
    truth = (called * s[:, None] - called * (1 - s[:, None]) * THRESHOLDS / (1 - THRESHOLDS)).mean(
        axis=0
    )
    rng = np.random.default_rng([16, n, len(kind)])
    band, single, together, value = [], [], [], []
    for _ in range(repeats):
        s = expit(rng.normal(centre, spread, n))
        found = net_benefit(ScoreTable(counted(s, rng.random(n) < s)), THRESHOLDS)
        inside = (found.low <= truth) & (truth <= found.high)
        single.append(inside.mean())
        together.append(inside.all())
        band.append(((found.band_low <= truth) & (truth <= found.band_high)).all())
        value.append(found.value)
    away = np.abs(np.mean(value, axis=0) - truth) / (np.std(value, axis=0) / math.sqrt(repeats))
    return [with_error(band), with_error(single), with_error(together), f"{away.max():.1f}"]


def of_break_even(n: int, repeats: int) -> list[str]:
    """Return coverage of Fieller's set and how often it is bounded: the errors of two models on the same rows."""
    # of false alarms, of misses: A less B
    outcomes = np.array([(0, 0), (0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])
    shares = np.array([0.0375, 0.8625, 0.06, 0.005, 0.0075, 0.0275])
    x, y = shares @ outcomes
    rng, z = np.random.default_rng([165, n]), normal_quantile(0.95)
    covered, bounded = [], []
    for counts in rng.multinomial(n, shares, repeats):
        mean = counts @ outcomes / n
        spread = (counts[:, None] * (outcomes - mean)).T @ (outcomes - mean) / n**2
        pieces = fieller(mean[0], mean[1], (spread[0, 0], spread[0, 1], spread[1, 1]), z)
        covered.append(any(low <= -x / y <= high for low, high in pieces))
        bounded.append(len(pieces) == 1 and pieces[0][0] > 0 and math.isfinite(pieces[0][1]))
    return [f"{-x / y:.2f}", with_error(covered), with_error(bounded)]


def of_reliability(n: int, repeats: int) -> list[str]:
    """Curves of a calibrated score that leave the consistency band, the squared error and the ECE."""
    rng = np.random.default_rng([14, n])
    left = []
    squared = []
    binned = []
    for _ in range(repeats):
        s = rng.beta(2, 2, n)
        curve = ReliabilityTable(counted(s, rng.random(n) < s)).curve()
        rng.random(n)  # the labels of a wrong score, which an earlier version drew
        squared.append(curve.table.error.squared)
        binned.append(curve.ece().value)
        left.append(bool(curve.leaves_band))
    return [with_error(left), with_error(squared, 5), with_error(binned, 4)]


def of_risk(n: int, repeats: int) -> list[str]:
    """Return coverage of the area's interval, on the log scale, and of Wilson's interval of the risk of the 80% most
    confident rows.
    """
    s = beta.ppf(_FINE, 2, 2)
    kappa = np.sort(np.maximum(s, 1 - s))[::-1]
    share = (np.arange(len(kappa)) + 0.5) / len(kappa)
    area, mean = (
        float(((1 - kappa) * -np.log(share)).mean()),
        np.cumsum(1 - kappa) / (np.arange(len(kappa)) + 1),
    )
    rng = np.random.default_rng([166, n])
    covered, accepted = [], []
    for _ in range(repeats):
        s = rng.beta(2, 2, n)
        table = ScoreTable(counted(np.maximum(s, 1 - s), rng.random(n) < np.maximum(s, 1 - s)))
        ends = risk_coverage_of(table).interval
        covered.append(ends is not None and ends[0] <= area <= ends[1])
        found, _ = reject(table, 0.2)
        risk = mean[max(int(np.searchsorted(-kappa, -found.threshold)) - 1, 0)]
        low, high = wilson(found.risk, found.hits + found.misses) or (math.nan, math.nan)
        accepted.append(low <= risk <= high)
    return [f"{area:.4f}", with_error(covered), with_error(accepted)]


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="100 repeats of the smallest size")
    options = parser.parse_args()
    repeats = 100 if options.quick else options.repeats
    tables = (
        *((f"rows, {kind} scores | band | single intervals | all single ones at once | bias in standard errors",
           partial(of_net_benefit, kind=kind), (200, 500, 2000), 1.0) for kind in LOGITS),
        ("rows | break-even | Fieller's set covers | it is bounded", of_break_even, (300, 1000, 5000), 4.0),
        ("rows | outside the consistency band | squared error | ECE",
         of_reliability, (200, 1000), 1.5),
        ("rows | area | its interval covers | risk of the surest 80% covered", of_risk, (200, 1000, 5000), 1.0),
    )  # fmt: skip
    for head, function, sizes, times in tables:
        print(f"\n| {head} |\n" + "|---" * (head.count("|") + 1) + "|")
        for n in sizes[:1] if options.quick else sizes:
            print(f"| {n} | " + " | ".join(function(n, round(times * repeats))) + " |", flush=True)


if __name__ == "__main__":
    main()
