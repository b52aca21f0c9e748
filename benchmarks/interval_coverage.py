"""How often the 95% intervals of one evaluation cover the truth, compared with the textbook's intervals.

There are four classes, with normal logits and a shift for the true class. The positive group is the last two classes,
counted strictly, so that mismatches occur. The truth of each metric is its value on four million rows.

    python benchmarks/interval_coverage.py [--repeats 500]
"""

from __future__ import annotations

import argparse

import numpy as np

from cmtrack import Grouping, evaluate

METRICS = [
    "multiclass/accuracy",
    "multiclass/balanced_accuracy",
    "multiclass/f1_macro",
    "multiclass/cohen_kappa",
    "multiclass/matthews_corrcoef",
    "class/3/recall",
    "class/3/precision",
    "class/3/f1",
    "binary/matthews_corrcoef",
    "binary/f1",
    "binary/roc_auc",
    "binary/roc_auc_normalized",
    "spcc/binary",
    "spcc/ovr_fisher",
    "spcc/ovo_fisher",
    "spcc/d_a",
    "prevalence/bias",
]
DESIGNS = {"balanced": [0.25, 0.25, 0.25, 0.25], "imbalanced": [0.6, 0.25, 0.1, 0.05]}
GROUPS = Grouping({"negative": [0, 1], "positive": [2, 3]}, "strict", name="halves")


def sample(rng: np.random.Generator, n: int, shares: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n,) and probabilities (n, 4)."""
    y = rng.choice(4, n, p=shares)
    logits = 1.2 * rng.normal(size=(n, 4)) + np.log(shares)
    logits[np.arange(n), y] += 1.5
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return y, p / p.sum(axis=1, keepdims=True)


def coverage(
    shares: list[float], n: int, repeats: int, truth: dict[str, float]
) -> dict[str, float]:
    """Return the share of intervals that cover the truth, also for the textbook interval of the correlation."""
    rng = np.random.default_rng(n)
    hits = dict.fromkeys([*METRICS, "textbook spcc"], 0)
    for _ in range(repeats):
        y, p = sample(rng, n, shares)
        evaluation = evaluate(y, y_prob=p, labels=range(4), grouping=GROUPS)
        for name in METRICS:
            low, high = evaluation.intervals.get(name, (np.nan, np.nan))
            hits[name] += low <= truth[name] <= high
        centre = np.arctanh(evaluation.metrics["spcc/binary"])
        hits["textbook spcc"] += abs(centre - np.arctanh(truth["spcc/binary"])) <= 1.96 / np.sqrt(
            n - 3
        )
    return {name: hit / repeats for name, hit in hits.items()}


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=500)
    repeats = parser.parse_args().repeats
    sizes = (200, 1000, 5000)
    columns: dict[tuple[str, int], dict[str, float]] = {}
    for design, shares in DESIGNS.items():
        y, p = sample(np.random.default_rng(0), 4_000_000, shares)
        truth = evaluate(y, y_prob=p, grouping=GROUPS).metrics
        for n in sizes:
            columns[design, n] = coverage(shares, n, repeats, truth)
    print("| interval | " + " | ".join(f"{design} {n}" for design, n in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in [*METRICS, "textbook spcc"]:
        print(
            f"| {name} | " + " | ".join(f"{found[name]:.3f}" for found in columns.values()) + " |"
        )


if __name__ == "__main__":
    main()
