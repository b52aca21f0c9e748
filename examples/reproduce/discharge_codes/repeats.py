"""Repeated documents: coverage of the intervals, and documents with several codes of a family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from cmtrack import FamilyEvaluation
from discharge_codes.laws import FamilyLaw
from discharge_codes.recovery import recovered, recovered_metrics, simulated
from discharge_codes.truth import OUTSIDE, true_answers

SIBLING = "a sibling"


def repeated(
    rounds: Iterable[int], laws: Sequence[FamilyLaw], documents: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers and overall metrics of every repeat, beside the truth; outcomes also by their ``kind``."""
    answers, metrics = [], []
    for _ in rounds:
        evaluation = simulated(laws, documents, rng)
        answers.append(recovered(laws, evaluation))
        metrics.append(recovered_metrics(laws, evaluation))
    every = pd.concat(answers, ignore_index=True)
    return every.assign(kind=_kinds(every["outcome"])), pd.concat(metrics, ignore_index=True)


def shares_at_once(law: FamilyLaw, evaluation: FamilyEvaluation, at_once: int) -> pd.DataFrame:
    """What becomes of actual codes, mean over codes, beside the law: at_once, outcome, law, estimate."""
    truth = true_answers([law]).query("given == 'actual'")
    means = truth.groupby(_kinds(truth["outcome"]), sort=False)["true"].sum() / len(law.codes)
    found = [evaluation.given_actual(code) for code in law.codes]
    estimates = {
        "right": [answer.right for answer in found],
        SIBLING: [answer.confused for answer in found],
        OUTSIDE: [answer.outside for answer in found],
    }
    rows = [
        (at_once, name, float(means[name]), float(np.mean(values)))
        for name, values in estimates.items()
    ]
    return pd.DataFrame(rows, columns=["at_once", "outcome", "law", "estimate"])


def _kinds(outcomes: pd.Series) -> pd.Series:
    return outcomes.where(outcomes.isin(["right", OUTSIDE]), SIBLING)
