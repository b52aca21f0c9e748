"""Coverage of the interval of a paired difference, for accuracies and for metrics that are not shares.

``python benchmarks/paired.py`` prints both tables of benchmarks/README.md.
Accuracies: 4,000 data sets per line, two minutes;
"Student" is the interval of value and standard error, by effective rows or clusters. Others: 1,500 data sets per line,
two minutes; "fourth moments" are the degrees of freedom that rankings had in 0.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats import rankdata

from cmtrack.metrics.intervals import normal_quantile
from cmtrack.metrics.paired import FEW_DIFFERING, Paired
from cmtrack.statistics import Design

SAMPLES = 4000
ROWS = ((899, 0.004, 0.002), (200, 0.05, 0.03), (100, 0.02, 0.02), (60, 0.1, 0.02))
CLUSTERS = ((8, 25), (20, 10), (50, 4))


def hits(rng: np.random.Generator, n: int, b: float, c: float, size: int) -> np.ndarray:
    """Return correct predictions of two runs, (n, 2); b and c are the shares that only one gets right, per cluster."""
    if size == 1:
        kind = rng.choice(4, n, p=(b, c, 0.8 * (1 - b - c), 0.2 * (1 - b - c)))
    else:
        # of the clusters' own shares: correlation .5
        low, high = (rng.beta(p, 1 - p, n // size) for p in (b, c))
        scale = np.maximum(1, low + high)
        p = np.repeat(np.column_stack((low / scale, high / scale)), size, axis=0)
        at = rng.random(n)
        kind = np.where(
            at < p[:, 0], 0, np.where(at < p.sum(axis=1), 1, np.where(rng.random(n) < 0.8, 2, 3))
        )
    return np.column_stack(((kind == 0) | (kind == 2), (kind == 1) | (kind == 2))).astype(
        np.float64
    )


def truth(b: float, c: float, size: int) -> float:
    """Return the true difference; for clusters, from 2·10⁶ of them."""
    if size == 1:
        return b - c
    rng = np.random.default_rng(1)
    low, high = (rng.beta(p, 1 - p, 2_000_000) for p in (b, c))
    return float(((low - high) / np.maximum(1, low + high)).mean())


def line(name: str, n: int, b: float, c: float, size: int = 1) -> str:
    """Return one setting: coverage, mean width and share of intervals beyond the range, for both intervals."""
    rng, true, z = np.random.default_rng(0), truth(b, c, size), normal_quantile(0.95)
    design = Design(n, clusters=None if size == 1 else np.arange(n) // size)
    found = []
    for _ in range(SAMPLES):
        right = hits(rng, n, b, c, size)
        psi = right - right.mean(axis=0)
        pair = Paired.of(right.mean(axis=0), psi, design, bounds=(0.0, 1.0))
        low, high = (float(end[0, 1]) for end in pair.interval(z))
        gap, error = (
            float(pair.difference[0, 1]),
            design.standard_error(psi[:, 0] - psi[:, 1]),
        )
        degrees = float(design.degrees(psi)[0, 1])
        reach = normal_quantile(0.95, degrees) * error
        both = (gap - reach, gap + reach), (low, high)
        found.append(
            [(one <= true <= other, other - one, one < -1 or other > 1) for one, other in both]
        )
    table = np.array(found, dtype=float)
    cover, out = table[:, :, 0].mean(axis=0), table[:, :, 2].mean(axis=0)
    error = math.sqrt(cover[1] * (1 - cover[1]) / SAMPLES)
    return (
        f"| {name} | {cover[0]:.3f} | {cover[1]:.3f} ± {error:.3f} | {np.median(table[:, 0, 1]):.3f} | "
        f"{np.median(table[:, 1, 1]):.3f} | {out[0]:.3f} | {out[1]:.3f} |"
    )


# -- metrics other than shares -----------------------------------------------------------------------------------------

OTHER_SAMPLES = 1500
AREAS = (
    (10, 190, 0.871, 0.871), (10, 190, 0.940, 0.839), (5, 195, 0.856, 0.856), (20, 180, 0.802, 0.802),
    (143, 85, 0.990, 0.990), (30, 30, 0.961, 0.961),
)  # fmt: skip
"""Positives, negatives, and the true areas of both runs."""
CORRELATIONS = (
    (9000, 0.005, 0.6, 0.6, 0.001), (3000, 0.01, 0.5, 0.5, 0.005), (228, 0.6, 0.97, 0.97, 0.05),
    (228, 0.6, 0.98, 0.95, 0.05), (200, 0.05, 0.6, 0.6, 0.02), (1000, 0.02, 0.5, 0.5, 0.001),
)  # fmt: skip
"""Rows, share of positives, recall of both runs, and the false positive rate."""
Sample = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Actual classes, values of both runs, their influence (n, 2) and answers (n, 2)."""


def areas(
    rng: np.random.Generator, positives: int, negatives: int, first: float, second: float
) -> Sample:
    """Return areas under the ROC curve of normal scores with correlation .6, with DeLong's influence."""
    y = np.repeat([1, 0], [positives, negatives])
    z = rng.normal(size=(len(y), 3))
    scores = math.sqrt(0.6) * z[:, :1] + math.sqrt(0.4) * z[:, 1:]
    scores = scores + y[:, None] * math.sqrt(2) * ndtri([first, second])
    above, below = scores[:positives], scores[positives:]
    ranks = rankdata(scores, axis=0)
    of_positives = (ranks[:positives] - rankdata(above, axis=0)) / negatives
    of_negatives = 1 - (ranks[positives:] - rankdata(below, axis=0)) / positives
    values = of_positives.mean(axis=0)
    up = math.sqrt(positives / (positives - 1)) * len(y) / positives
    down = math.sqrt(negatives / (negatives - 1)) * len(y) / negatives
    psi = np.concatenate([(of_positives - values) * up, (of_negatives - values) * down])
    return y, values, psi, scores


def correlations(
    rng: np.random.Generator, n: int, share: float, first: float, second: float, false: float
) -> Sample:
    """Return Matthews correlations of two runs that predict the same in half of the rows."""
    y = (rng.random(n) < share).astype(np.int64)
    own, common = rng.random((n, 2)), rng.random(n)
    u = np.where((rng.random(n) < 0.5)[:, None], common[:, None], own)
    answers = (u < np.where(y[:, None] == 1, [first, second], false)).astype(np.int64)
    values, columns = [], []
    for answer in answers.T:
        x, a = answer - answer.mean(), y - y.mean()
        scale = math.sqrt(float((x @ x) * (a @ a))) / n
        r = float(x @ a) / n / scale if scale > 0 else math.nan
        values.append(r)
        columns.append(
            x * a / scale - r / 2 * (x * x / (x @ x) + a * a / (a @ a)) * n if scale > 0 else x
        )
    return y, np.array(values), np.column_stack(columns), answers


def other_line(
    name: str, draw: Callable[..., Sample], setting: tuple[float, ...], true: float, bounds: tuple
) -> str:
    """Return coverage, share of intervals without 0 and median width, with fourth moments and without; few rows differ."""
    found, few = [], 0
    for sample in range(OTHER_SAMPLES):
        y, values, psi, answers = draw(np.random.default_rng([0, sample]), *setting)
        if not np.isfinite(values).all():
            continue
        few += int((answers[:, 0] != answers[:, 1]).sum() <= FEW_DIFFERING)
        pair = Paired.of(values, psi, Design(len(y)), bounds=bounds, actual=y, answers=[*answers.T])
        low, high = (float(end[0, 1]) for end in pair.interval(normal_quantile(0.95)))
        d = psi[:, 0] - psi[:, 1]
        d = d - d.mean()
        fourth = max((d @ d) ** 2 / (d**4).sum() - 1, 1.0) if d.any() else math.inf
        reach = stdtrit(fourth, 0.975) * math.sqrt(d @ d) / len(d) if d.any() else math.nan
        gap = float(values[0] - values[1])
        found.append(
            [
                (a <= true <= b, a > 0 or b < 0, b - a)
                for a, b in ((gap - reach, gap + reach), (low, high))
            ]
        )
    table = np.array(found, dtype=float)
    known = np.isfinite(table[:, :, 2])
    cells = []
    for k in (0, 1):
        inside = table[known[:, k], k]
        cells.append(
            f"{inside[:, 0].mean():.3f}, {inside[:, 1].mean():.3f}, {np.median(inside[:, 2]):.2f}"
        )
    return f"| {name} | {cells[0]} | {cells[1]} | {few / OTHER_SAMPLES:.2f} |"


if __name__ == "__main__":
    print(
        "| rows; rates of b, c | cover: Student | Tango | median width: Student | Tango "
        "| out of range: Student | Tango |"
    )
    print("|---|---|---|---|---|---|---|")
    for n, b, c in ROWS:
        print(line(f"{n}; {b:g}, {c:g}", n, b, c))
    for groups, size in CLUSTERS:
        print(line(f"{groups} clusters of {size}; 0.08, 0.04", groups * size, 0.08, 0.04, size))
    print()
    print(
        "| difference | fourth moments: cover, excludes 0, width | as it is | at most 8 rows differ |"
    )
    print("|---|---|---|---|")
    for area in AREAS:
        positives, negatives, first, second = area
        name = f"ROC area; {positives} and {negatives}; {first:g}, {second:g}"
        print(other_line(name, areas, area, first - second, (0.0, 1.0)))
    for correlation in CORRELATIONS:
        n, share, first, second, _ = correlation
        large = correlations(np.random.default_rng(1), 2_000_000, *correlation[1:])
        true = 0.0 if first == second else float(large[1][0] - large[1][1])
        name = f"Matthews; {n}; {share:g}; {first:g}, {second:g}"
        print(other_line(name, correlations, correlation, true, (-1.0, 1.0)))
