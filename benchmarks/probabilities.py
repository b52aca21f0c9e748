"""How often intervals of proper scores and average precision cover the truth, and the report's words on probabilities.

Labels have the given shares, and logits are normal with a shift for the actual class ("sharp": a larger shift). The
second model shares part of the noise. The truth of a metric is its value on two million rows. Custom metrics are
compared with the standard deviation over multinomial tables.

    python benchmarks/probabilities.py [--repeats 2000] [--quick]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack import Evaluation, Grouping, Metric, evaluate
from cmtrack.comparison.differences import paired_differences
from cmtrack.report.probabilities import NONE, SIGNS, judgement
from cmtrack.statistics.inputs import FloatArray, IntArray

LARGE = 2_000_000
SCORES = ("log_loss", "brier", "log_skill", "brier_skill")
DIFFERENCES = ("log_loss", "brier")
DESIGNS: dict[
    str, tuple[list[float], float, tuple[int, ...]]
] = {  # shares, shift of the actual class, rows
    "4 classes, equal": ([0.25] * 4, 1.5, (80, 200, 1000)),
    "4 classes, .70 to .03": ([0.7, 0.17, 0.1, 0.03], 1.5, (667, 1667)),
    "2 classes, 10%, sharp": ([0.9, 0.1], 3.5, (200, 500, 2000)),
    "2 classes, 10%": ([0.9, 0.1], 1.5, (200, 500, 2000)),
    "2 classes, 2%": ([0.98, 0.02], 1.5, (1000, 2500)),
}
HALVES = Grouping({"negative": [0, 1], "positive": [2, 3]}, "strict", name="halves")
RANKED: dict[
    str, tuple[list[float], Grouping | None, tuple[int, ...]]
] = {  # shares, grouping, rows
    "30%": ([0.7, 0.3], None, (67, 200, 1000)),
    "5%": ([0.95, 0.05], None, (400, 1000, 5000)),
    "1%": ([0.99, 0.01], None, (2000, 5000)),
    "30%, mismatches": ([0.4, 0.3, 0.2, 0.1], HALVES, (67, 200, 1000)),
    "5%, mismatches": ([0.5, 0.45, 0.03, 0.02], HALVES, (400, 1000)),
}
COUNTS = 10 * np.array([[7, 2, 1, 0], [1, 12, 3, 2], [0, 4, 9, 1], [2, 1, 0, 15]])
"""600 rows."""


def sample(
    rng: np.random.Generator, n: int, shares: list[float], shift: float
) -> tuple[IntArray, FloatArray]:
    """Return labels (n,) and the probabilities of two models (2, n, K)."""
    size = len(shares)
    y = rng.choice(size, n, p=shares)
    common, own = rng.normal(size=(n, size)), rng.normal(size=(2, n, size))
    logits = 0.9 * common + 0.8 * own * np.array([1.0, 1.3])[:, None, None] + np.log(shares)
    logits[:, np.arange(n), y] += shift
    p = np.exp(logits - logits.max(axis=2, keepdims=True))
    return y, p / p.sum(axis=2, keepdims=True)


def judged(
    y: IntArray, p: FloatArray, sections: list[str], grouping: Grouping | None = None
) -> Evaluation:
    """Return the evaluation of a model."""
    return evaluate(y, y_prob=p, labels=range(p.shape[1]), grouping=grouping, sections=sections)


def share(hits: npt.ArrayLike) -> str:
    """Format a share with its standard error."""
    found = np.asarray(hits, dtype=np.float64)
    return f"{found.mean():.3f} ± {found.std() / math.sqrt(len(found)):.3f}"


def printed(*cells: object) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def heads(*cells: str) -> None:
    """Print the head of a table."""
    printed(*cells)
    print("|---" * len(cells) + "|")


def holds(interval: tuple[float, float] | None, truth: float) -> bool:
    """Return True if an interval exists and covers the truth."""
    return interval is not None and interval[0] <= truth <= interval[1]


def proper_scores(design: str, sizes: Iterable[int], repeats: int) -> None:
    """Print the coverage of the intervals of single scores and of paired differences."""
    shares, shift, _ = DESIGNS[design]
    y, p = sample(np.random.default_rng(19), LARGE, shares, shift)
    first, second = (judged(y, own, ["probability"]).metrics for own in p)
    truth = {name: first[f"probability/{name}"] for name in SCORES}
    apart = {name: truth[name] - second[f"probability/{name}"] for name in DIFFERENCES}
    for n in sizes:
        rng = np.random.default_rng([19, n, len(design)])
        hits: dict[str, list[bool]] = {
            name: [] for name in (*SCORES, *(f"paired {name}" for name in DIFFERENCES))
        }
        for _ in range(repeats):
            y, p = sample(rng, n, shares, shift)
            if len(np.unique(y)) < len(shares):
                continue
            a, b = (judged(y, own, ["probability"]) for own in p)
            for name in SCORES:
                hits[name].append(holds(a.intervals.get(f"probability/{name}"), truth[name]))
            for row in paired_differences(
                a, b, metrics=[f"probability/{name}" for name in DIFFERENCES]
            ).rows:
                name = row.metric.split("/")[1]
                hits[f"paired {name}"].append(row.low <= apart[name] <= row.high)
        printed(design, n, f"{n * min(shares):.0f}", *(share(found) for found in hits.values()))


def average_precision(design: str, sizes: Iterable[int], repeats: int) -> None:
    """Print the coverage of the interval, and the mean error of the value."""
    shares, grouping, _ = RANKED[design]
    name = "binary/average_precision"
    of_positives = sum(shares[2:]) if grouping else shares[1]
    y, p = sample(np.random.default_rng(21), LARGE, shares, 1.5)
    truth = judged(y, p[0], ["binary"], grouping).metrics[name]
    for n in sizes:
        rng = np.random.default_rng([21, n, len(design)])
        hits, values = [], []
        while len(hits) < repeats:
            y, p = sample(rng, n, shares, 1.5)
            if not (y > 1 if grouping else y == 1).any():
                continue
            found = judged(y, p[0], ["binary"], grouping)
            hits.append(holds(found.intervals.get(name), truth))
            values.append(found.metrics[name] - truth)
        bias = f"{np.mean(values):+.4f} ± {np.std(values) / math.sqrt(repeats):.4f}"
        printed(design, n, f"{n * of_positives:.0f}", f"{truth:.3f}", share(hits), bias)


def own_metrics(scale: int, tables: int) -> None:
    """Print the standard deviation of custom metrics over multinomial tables, divided by the standard error."""

    def recalls(c: Any) -> Any:
        return c.diagonal() / c.sum(axis=1)

    def f2(c: Any) -> Any:
        return (5 * c.diagonal() / (4 * c.sum(axis=1) + c.sum(axis=0))).mean()

    def entropy(p: Any) -> Any:
        known = p[p != 0]
        return -(known * np.log(known)).sum()

    def information(c: Any) -> Any:
        rows, columns, cells = c.sum(axis=1) / c.sum(), c.sum(axis=0) / c.sum(), c / c.sum()
        both = entropy(rows) + entropy(columns)
        return 2 * (both - entropy(cells.ravel())) / both

    functions: dict[str, Callable[[Any], Any]] = {
        "G-mean": lambda c: recalls(c).prod() ** (1 / len(c)),
        "F2": f2,
        "mutual information": information,
    }
    counts = COUNTS // 10 * scale
    rows = np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0)
    extra = [
        Metric(f"own/{name.replace(' ', '_')}", function) for name, function in functions.items()
    ]
    evaluation = evaluate(rows[:, 0], rows[:, 1], labels=range(4), extra_metrics=extra)
    n = int(counts.sum())
    drawn = (
        np.random.default_rng([29, n])
        .multinomial(n, counts.ravel() / n, tables)
        .reshape(-1, *counts.shape)
    )
    cells = []
    for metric, function in zip(extra, functions.values(), strict=True):
        with np.errstate(invalid="ignore"):
            values = np.array([function(table) for table in drawn.astype(np.float64)])
        values = values[np.isfinite(values)]  # a class may have no row
        ratio = values.std() / evaluation.standard_errors[metric.name]
        fourth = float(((values - values.mean()) ** 4).mean()) / float(values.var()) ** 2
        cells.append(f"{ratio:.3f} ± {ratio * math.sqrt((fourth - 1) / (4 * len(values))):.3f}")
    printed(n, *cells)


WRONG = {
    "right": (1.0, 0.0),
    "over-confident": (1 / 1.4, 0.0),
    "under-confident": (1.4, 0.0),
    "too low": (1.0, 0.25),
}
"""Slope and shift of the true logits, given the scores' logits."""


def words(truth: str, n: int, repeats: int) -> None:
    """Print what the report says about the probabilities of Beta(2, 2) scores."""
    slope, shift = WRONG[truth]
    rng = np.random.default_rng([14, n, len(truth)])
    found = []
    for _ in range(repeats):
        s = rng.beta(2, 2, n)
        y = (rng.random(n) < 1 / (1 + (1 / s - 1) ** slope * math.exp(-shift))).astype(int)
        said = judgement(
            evaluate(y, y_prob=s, labels=[0, 1], sections=["calibration", "prevalence"])
        )
        assert said is not None
        found.append(said.word.removeprefix("negligibly "))
    kinds = (NONE, "unclear", SIGNS, truth)
    known = [[word == kind for word in found] for kind in kinds]
    partly = [truth in word.split(", ") and word != truth for word in found]
    other = [word not in kinds and truth not in word.split(", ") for word in found]
    printed(
        truth,
        n,
        *map(share, known[:3]),
        *(["–"] * 2 if truth == "right" else [share(known[3]), share(partly)]),
        share(other),
    )


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument(
        "--quick", action="store_true", help="100 repeats of the smaller sizes, 2,000 tables"
    )
    options = parser.parse_args()
    repeats, most = (100, 1) if options.quick else (options.repeats, None)
    heads(
        "scores",
        "rows",
        "of the rarest class",
        *(name.replace("_", " ") for name in SCORES),
        *(f"difference of {name.replace('_', ' ')}" for name in DIFFERENCES),
    )
    for design, (_, _, sizes) in DESIGNS.items():
        proper_scores(design, sizes[:most], repeats)
    print()
    heads("positives", "rows", "positives expected", "average precision", "covered", "bias")
    for design, (_, _, sizes) in RANKED.items():
        average_precision(design, sizes[:most], repeats)
    print()
    heads("rows", "G-mean", "F2", "mutual information")
    for scale in (1, 10):
        own_metrics(scale, 2000 if options.quick else 20000)
    print()
    heads(
        "probabilities",
        "rows",
        NONE,
        "unclear",
        SIGNS,
        "the right word",
        "with another",
        "another fault",
    )
    for truth in WRONG:
        for n in (200,) if options.quick else (200, 500, 2000):
            words(truth, n, repeats // 4)


if __name__ == "__main__":
    main()
