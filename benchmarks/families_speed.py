"""Families of codes: time of the counts and metrics of many documents, relative to a loop over a part of them.

Times are processor times on one core. "All counts" include the four matchings, the documents' tallies with their sums
of products, and each document's contribution to the standard errors of the macro averages (not in the loop).

python benchmarks/families_speed.py [--documents 1000000] [--codes 10000] [--labels 11] [--looped 10000]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import defaultdict

import numpy as np
import pandas as pd

from cmtrack import evaluate_families
from cmtrack.families.counts import MATCHINGS


def generate(
    documents: int, codes: int, labels: float, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Long frames of actual and predicted codes: codes of very different frequency, in families of ten.

    Three quarters of the actual codes are found, an eighth are predicted as a sibling, and an eighth are missed or
    predicted as any other code.
    """
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(documents), rng.poisson(labels, documents))
    frequency = np.arange(1, codes + 1) ** -0.8
    code = rng.permutation(codes)[
        np.searchsorted(np.cumsum(frequency) / frequency.sum(), rng.random(len(document)))
    ]
    luck = rng.random(len(document))
    predicted = code.copy()
    sibling, other, missed = (
        (luck >= 0.75) & (luck < 0.87),
        luck >= 0.95,
        (luck >= 0.87) & (luck < 0.95),
    )
    predicted[sibling] = np.minimum(
        code[sibling] // 10 * 10 + rng.integers(0, 10, sibling.sum()), codes - 1
    )
    predicted[other] = rng.integers(0, codes, other.sum())
    return (
        pd.DataFrame({"document": document, "code": code}).drop_duplicates(),
        pd.DataFrame({"document": document[~missed], "code": predicted[~missed]}).drop_duplicates(),
    )


def sets(frame: pd.DataFrame, documents: int) -> list[set[int]]:
    """The codes of the first documents."""
    by_document: list[set[int]] = [set() for _ in range(documents)]
    for document, code in frame[frame["document"] < documents].itertuples(index=False):
        by_document[document].add(code)
    return by_document


def loop(actual: list[set[int]], predicted: list[set[int]]) -> dict[tuple[int, int], list[float]]:
    """Count the same in the obvious way: document by document, with sets."""
    cells: defaultdict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0] * 4)
    tallies = []
    for held, called in zip(actual, predicted, strict=True):
        matched = held & called
        left, missing = defaultdict(list), defaultdict(list)
        for x in called - matched:
            left[x // 10].append(x)
        for y in held - matched:
            missing[y // 10].append(y)
        confused, outside = [0, 0], [0, 0]
        for family in left.keys() | missing.keys():
            ours, theirs = left.get(family, []), missing.get(family, [])
            a, b = len(ours), len(theirs)
            if not a or not b:
                outside[0] += a
                outside[1] += b
                for code in ours + theirs:
                    cells[(-1, code) if a else (code, -1)][0] += 1
                continue
            confused[0] += a
            confused[1] += b
            for x in ours:
                for y in theirs:
                    cell = cells[y, x]
                    for k, weight in enumerate((1, 1 / b, 1 / a, 1 / max(a, b))):
                        cell[k] += weight
        for code in matched:
            cells[code, code][0] += 1
        families = {code // 10 for code in called}, {code // 10 for code in held}
        nodes = (len(matched) + len(families[0] & families[1]), len(called) + len(families[0]))
        tallies.append((len(matched), *confused, *outside, *nodes, len(held) + len(families[1])))
    table = np.array(tallies)
    table.T @ table
    return cells


def peak() -> float:
    """Largest memory of this process so far, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--codes", type=int, default=10_000)
    parser.add_argument(
        "--labels", type=float, default=11.0, help="actual codes of a document, on average"
    )
    parser.add_argument("--looped", type=int, default=10_000, help="documents that the loop gets")
    options = parser.parse_args()
    actual, predicted = generate(options.documents, options.codes, options.labels)
    families = {code: code // 10 for code in range(options.codes)}
    before = peak()
    start = time.process_time()
    evaluation = evaluate_families(
        actual, predicted, families, codes=range(options.codes), documents=range(options.documents)
    )
    counted = time.process_time() - start
    start = time.process_time()
    metrics = evaluation.metrics
    computed = time.process_time() - start
    part = min(options.looped, options.documents)
    first, second = sets(actual, part), sets(predicted, part)
    start = time.process_time()
    cells = loop(first, second)
    looped = (time.process_time() - start) * options.documents / part
    small = evaluate_families(first, second, families, codes=range(options.codes))
    pairs = small.statistics.pairs.masses[:, MATCHINGS.index("product")].sum()
    assert pairs == sum(n[0] for (y, x), n in cells.items() if x != y and min(x, y) >= 0), (
        "the loop counts otherwise"
    )
    print(
        "| documents | labels | all counts, CPU s | metrics, CPU s | loop / all counts | memory |"
    )
    print("|---|---|---|---|---|---|")
    print(
        f"| {options.documents:,} | {len(actual) + len(predicted):,} | {counted:.2f} "
        f"| {computed:.2f} ({len(metrics):,} of them) | "
        f"{looped / counted:.1f} | {peak():.2f} GiB, {before:.2f} of it the input |"
    )


if __name__ == "__main__":
    main()
