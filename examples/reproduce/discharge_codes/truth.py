"""What a law implies where a document has at most one actual code of a family: the answers to both questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from discharge_codes.laws import FamilyLaw, Floats

OUTSIDE = "out of family"


def joint(law: FamilyLaw) -> Floats:
    """Expected number per document of each (actual, predicted) pair, shape (k + 1, k + 1), out of family last."""
    size = len(law.codes)
    actual = law.presence * np.array(law.frequency)
    table = np.zeros((size + 1, size + 1))
    table[:size] = actual[:, None] * law.outcomes
    table[size, :size] = (actual * np.array(law.right)) @ law.extras + (
        1 - law.presence
    ) * law.spurious / size
    return table


def true_answers(laws: Sequence[FamilyLaw]) -> pd.DataFrame:
    """The probabilities of every outcome that can happen.

    Returns
    -------
    DataFrame
        given ("predicted" or "actual"), code, outcome ("right", a sibling, "out of family"), true.
    """
    rows = []
    for law in laws:
        table = joint(law)
        for given, lines in (("predicted", table.T), ("actual", table)):
            for k, code in enumerate(law.codes):
                shares = lines[k] / lines[k].sum()
                names = [*law.codes, OUTSIDE]
                names[k] = "right"
                rows += [
                    (given, code, name, float(p))
                    for name, p in zip(names, shares, strict=True)
                    if p > 0
                ]
    return pd.DataFrame(rows, columns=["given", "code", "outcome", "true"])


def true_metrics(laws: Sequence[FamilyLaw]) -> dict[str, float]:
    """The overall metrics that the laws imply, by their names in the product."""
    actual = predicted = matched = confused = outside = 0.0
    for law in laws:
        table = joint(law)
        inner = table[:-1, :-1]
        hits = float(np.trace(inner))
        actual, predicted = actual + float(table[:-1].sum()), predicted + float(table[:, :-1].sum())
        matched, confused = matched + hits, confused + float(inner.sum()) - hits
        outside += float(table[-1].sum() + table[:, -1].sum())
    labels = actual + predicted
    return {
        "family/match_share": 2 * matched / labels,
        "family/confusion_share": 2 * confused / labels,
        "family/oof_share": outside / labels,
        "family/precision_micro": matched / predicted,
        "family/recall_micro": matched / actual,
    }
