"""Coverage of the interval of a paired difference of accuracies, and how often one leaves its range.

``python benchmarks/paired.py`` prints the table of benchmarks/README.md: 4,000 samples a line, two minutes. "Student"
is the interval of value and error, by effective rows or clusters, that differences had before.
"""

from __future__ import annotations

import math

import numpy as np

from cmtrack.metrics.influence import degrees_of_pairs, standard_error
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.metrics.paired import Paired

SAMPLES = 4000
ROWS = ((899, 0.004, 0.002), (200, 0.05, 0.03), (100, 0.02, 0.02), (60, 0.1, 0.02))
CLUSTERS = ((8, 25), (20, 10), (50, 4))


def hits(rng: np.random.Generator, n: int, b: float, c: float, size: int) -> np.ndarray:
    """Right answers of two runs, (n, 2); b and c are the shares that one alone gets right, alike in each cluster."""
    if size == 1:
        kind = rng.choice(4, n, p=(b, c, 0.8 * (1 - b - c), 0.2 * (1 - b - c)))
    else:
        low, high = (rng.beta(p, 1 - p, n // size) for p in (b, c))  # of the clusters' own shares: correlation .5
        scale = np.maximum(1, low + high)
        p = np.repeat(np.column_stack((low / scale, high / scale)), size, axis=0)
        at = rng.random(n)
        kind = np.where(at < p[:, 0], 0, np.where(at < p.sum(axis=1), 1, np.where(rng.random(n) < 0.8, 2, 3)))
    return np.column_stack(((kind == 0) | (kind == 2), (kind == 1) | (kind == 2))).astype(np.float64)


def truth(b: float, c: float, size: int) -> float:
    """The true difference, of clusters by 2·10⁶ of them."""
    if size == 1:
        return b - c
    rng = np.random.default_rng(1)
    low, high = (rng.beta(p, 1 - p, 2_000_000) for p in (b, c))
    return float(((low - high) / np.maximum(1, low + high)).mean())


def line(name: str, n: int, b: float, c: float, size: int = 1) -> str:
    """One setting: coverage, mean width and share of intervals out of the range, of both intervals."""
    rng, true, z = np.random.default_rng(0), truth(b, c, size), normal_quantile(0.95)
    groups = None if size == 1 else np.arange(n) // size
    found = []
    for _ in range(SAMPLES):
        right = hits(rng, n, b, c, size)
        psi = right - right.mean(axis=0)
        pair = Paired.of(right.mean(axis=0), psi, bounds=(0.0, 1.0), clusters=groups)
        low, high = (float(end[0, 1]) for end in pair.interval(z))
        gap, error = float(pair.difference[0, 1]), standard_error(psi[:, 0] - psi[:, 1], None, groups)
        degrees = float(degrees_of_pairs(psi, None, None, groups)[0, 1])
        reach = normal_quantile(0.95, degrees) * error
        both = (gap - reach, gap + reach), (low, high)
        found.append([(one <= true <= other, other - one, one < -1 or other > 1) for one, other in both])
    table = np.array(found, dtype=float)
    cover, out = table[:, :, 0].mean(axis=0), table[:, :, 2].mean(axis=0)
    error = math.sqrt(cover[1] * (1 - cover[1]) / SAMPLES)
    return (
        f"| {name} | {cover[0]:.3f} | {cover[1]:.3f} ± {error:.3f} | {np.median(table[:, 0, 1]):.3f} | "
        f"{np.median(table[:, 1, 1]):.3f} | {out[0]:.3f} | {out[1]:.3f} |"
    )


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
