"""How often the 95 % intervals of one evaluation hold the truth at the edges: near-perfect models, few clusters.

Samples are drawn with replacement from a fixed population of 100,000 rows, so the truth is exact. In the clustered
settings a person has ten rows that are right or wrong together for the most part.

    python benchmarks/edges.py [--repeats 400] [--only perfect2_150 ...]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cmtrack import Evaluation, Grouping, evaluate

METRICS = (
    "multiclass/accuracy", "multiclass/balanced_accuracy", "multiclass/precision_macro", "multiclass/f1_macro",
    "multiclass/cohen_kappa", "multiclass/cohen_kappa_quadratic", "multiclass/matthews_corrcoef", "class/1/recall",
    "class/1/f1", "binary/recall", "binary/f1", "binary/balanced_accuracy", "binary/informedness", "binary/markedness",
    "binary/matthews_corrcoef", "binary/roc_auc", "spcc/binary", "prevalence/bias",
)  # fmt: skip
SIZE = 100_000


class Setting(NamedTuple):
    """Shares of the classes, strength of the signal, persons or rows drawn, and rows of a person."""

    shares: tuple[float, ...]
    signal: float
    draws: int
    rows: int = 1


EIGHT = (0.3, 0.2, 0.15, 0.12, 0.1, 0.07, 0.04, 0.02)
SETTINGS = {
    "middle_400": Setting((0.4, 0.3, 0.2, 0.1), 1.5, 400),
    "perfect8_150": Setting(EIGHT, 4.9, 150),
    "perfect8_400": Setting(EIGHT, 4.9, 400),
    "perfect2_150": Setting((0.5, 0.5), 3.64, 150),
    "perfect2_2000": Setting((0.5, 0.5), 3.64, 2000),
    "rare2_2000": Setting((0.99, 0.01), 3.0, 2000),
    "persons_15": Setting((0.4, 0.3, 0.2, 0.1), 1.5, 15, 10),
    "persons_40": Setting((0.4, 0.3, 0.2, 0.1), 1.5, 40, 10),
}
Sampler = Callable[[np.random.Generator], Evaluation]


def population(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n,) and probabilities (n, K); the rows of a person stand together."""
    rng = np.random.default_rng(7)
    size, persons = len(setting.shares), SIZE // setting.rows
    usual = rng.choice(size, persons, p=setting.shares).repeat(setting.rows)
    other = rng.choice(size, SIZE, p=setting.shares)
    y = np.where(rng.random(SIZE) < (0.7 if setting.rows > 1 else 0.0), usual, other)
    together = rng.normal(size=(persons, size)).repeat(setting.rows, axis=0)
    weight = math.sqrt(0.7) if setting.rows > 1 else 0.0
    logits = weight * together + math.sqrt(1 - weight**2) * rng.normal(size=(SIZE, size)) + np.log(setting.shares)
    logits[np.arange(SIZE), y] += setting.signal
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return y, odds / odds.sum(axis=1, keepdims=True)


def samples(setting: Setting, repeats: int) -> Iterator[Evaluation]:
    """The evaluation of the population, then those of samples from it."""
    y, p = population(setting)
    size = len(setting.shares)
    half = {"low": list(range((size + 1) // 2)), "high": list(range((size + 1) // 2, size))}
    grouping = Grouping(half, "relaxed", name="halves") if size > 2 else None
    options = {"labels": range(size), "grouping": grouping, "positive": "high" if grouping else 1}
    yield evaluate(y, y_prob=p, **options)
    rng = np.random.default_rng(setting.draws)
    for _ in range(repeats):
        drawn = rng.integers(0, SIZE // setting.rows, setting.draws)
        rows = (drawn[:, None] * setting.rows + np.arange(setting.rows)).ravel()
        groups = np.arange(setting.draws).repeat(setting.rows) if setting.rows > 1 else None
        yield evaluate(y[rows], y_prob=p[rows], groups=groups, **options)


def main() -> None:
    """Print a Markdown table: coverage, and in brackets the share of samples without an interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--only", nargs="*", choices=SETTINGS, default=list(SETTINGS))
    options = parser.parse_args()
    table: dict[str, dict[str, str]] = {name: {} for name in (*METRICS, "warned")}
    for name in options.only:
        truth, *drawn = samples(SETTINGS[name], options.repeats)
        for metric in METRICS:
            known = [e for e in drawn if math.isfinite(e.metrics.get(metric, math.nan))]
            ends = [e.intervals[metric] for e in known if metric in e.intervals]
            if not known or metric not in truth.metrics:
                continue
            covered = float(np.mean([low <= truth.metrics[metric] <= high for low, high in ends])) if ends else 0.0
            none = 1 - len(ends) / len(known)
            table[metric][name] = f"{covered:.3f}" + (f" ({none:.2f} none)" if none > 0 else "")
        table["warned"][name] = f"{np.mean([any('approximate' in text for text in e.warnings) for e in drawn]):.2f}"
        accuracy = truth.metrics["multiclass/accuracy"]
        print(f"{name}: accuracy {accuracy:.4f}, {options.repeats} samples, standard error of .95 "
              f"{math.sqrt(0.95 * 0.05 / options.repeats):.3f}", flush=True)  # fmt: skip
    print("| metric | " + " | ".join(options.only) + " |\n" + "|---" * (len(options.only) + 1) + "|")
    for metric, row in table.items():
        print(f"| {metric} | " + " | ".join(row.get(name, "") for name in options.only) + " |")


if __name__ == "__main__":
    main()
