"""One evaluation beside the same numbers from scikit-learn, in one process, as ratios.

python benchmarks/evaluate_speed.py [--rows 1000000] [--classes 11] [--repeats 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn import metrics as sk

from cmtrack import evaluate


def seconds(action: Callable[[], object], repeats: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=11)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, k = options.rows, options.classes
    y = rng.integers(0, k, n)
    logits = rng.normal(size=(n, k))
    logits[np.arange(n), y] += 1.5
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    predicted = p.argmax(axis=1)

    def labels_of_sklearn() -> None:
        sk.classification_report(y, predicted, output_dict=True)
        sk.cohen_kappa_score(y, predicted)
        sk.matthews_corrcoef(y, predicted)
        sk.balanced_accuracy_score(y, predicted)

    collected = seconds(lambda: evaluate(y, y_prob=p), options.repeats)
    evaluation = evaluate(y, y_prob=p)
    computed = seconds(lambda: replace(evaluation).metrics, options.repeats)  # a copy has computed nothing yet
    rows = {
        "labels: every metric with its interval": (
            seconds(lambda: evaluate(y, predicted).metrics, options.repeats),
            "scikit-learn: report, kappa, MCC, balanced accuracy, no intervals",
            seconds(labels_of_sklearn, options.repeats),
        ),
        "probabilities: every metric with its interval": (
            collected + computed,
            "scikit-learn: one-vs-rest AUC",
            seconds(lambda: sk.roc_auc_score(y, p, multi_class="ovr"), 1),
        ),
        "of that, metrics and standard errors": (computed, "of that, collecting statistics", collected),
    }
    print("| cmtrack | against | time, cmtrack / the other |")
    print("|---|---|---|")
    for name, (ours, other, theirs) in rows.items():
        print(f"| {name} | {other} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()
