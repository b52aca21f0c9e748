"""Sets of codes in families, with published and generated counts."""

from __future__ import annotations

import numpy as np

from cmtrack import FamilyEvaluation, Prefix, evaluate_families

DOT = Prefix(separator=".")


def codes(text: str) -> set[str]:
    return {f"36{part}" for part in text.split()}


# M. Falis, Hierarchical Confusion Matrices, figures 1 to 3 (ICD-9 families 364 and 365), and a fourth document.
FIGURES = {
    1: (codes("4.00 4.01 4.02"), codes("4.00 4.02 4.03 4.04")),
    2: (codes("4.00 4.02 5.01"), codes("4.00 4.02 4.03 5.02")),
    3: (codes("4.00 4.01 4.02"), codes("4.00 4.02")),
    4: (codes("4.04 4.05 5.01"), codes("4.01 5.01")),
}


def of_figures(*numbers: int, **options) -> FamilyEvaluation:
    actual, predicted = zip(*(FIGURES[n] for n in numbers), strict=True)
    return evaluate_families(actual, predicted, DOT, **options)


def by_ten(code: int) -> int:
    return code // 10


def generated(n: int, seed: int = 0, right: float = 0.7) -> tuple[list[set[int]], list[set[int]]]:
    """Return documents with up to nine of 60 codes in families of ten; errors mostly stay in the family."""
    rng = np.random.default_rng(seed)
    actual = [set(rng.choice(60, rng.integers(0, 10), replace=False).tolist()) for _ in range(n)]
    predicted = []
    for held in actual:
        called = set()
        for code in held:
            luck = rng.random()
            if luck < right:
                called.add(code)
            elif luck < right + 0.2:
                called.add(code // 10 * 10 + int(rng.integers(10)))
        if rng.random() < 0.2:
            called.add(int(rng.integers(60)))
        predicted.append(called)
    return actual, predicted
