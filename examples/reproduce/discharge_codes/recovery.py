"""Truth, estimate and interval side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cmtrack import FamilyEvaluation, Prefix, evaluate_families
from discharge_codes.laws import Bools, FamilyLaw, all_codes, draw_actual, draw_predicted
from discharge_codes.truth import OUTSIDE, true_answers, true_metrics


def evaluated(laws: Sequence[FamilyLaw], actual: Bools, predicted: Bools) -> FamilyEvaluation:
    """The product's evaluation of drawn codes."""
    codes = list(all_codes(laws))
    actual_sets, predicted_sets = (
        [[codes[k] for k in np.flatnonzero(document)] for document in side]
        for side in (actual, predicted)
    )
    return evaluate_families(actual_sets, predicted_sets, Prefix(separator="."), codes=codes)


def simulated(
    laws: Sequence[FamilyLaw], documents: int, rng: np.random.Generator, *, at_once: int = 1
) -> FamilyEvaluation:
    """Documents drawn by the laws, judged."""
    actual = draw_actual(laws, documents, rng, at_once=at_once)
    return evaluated(laws, actual, draw_predicted(laws, actual, rng))


def answers(evaluation: FamilyEvaluation) -> pd.DataFrame:
    """Every share of ``given_predicted`` and ``given_actual``: given, code, outcome, estimate, low, high, documents."""
    rows = []
    for given in ("predicted", "actual"):
        for code in evaluation.codes:
            found = (
                evaluation.given_predicted if given == "predicted" else evaluation.given_actual
            )(code)
            n = found.documents
            rows.append((given, code, "right", found.right, *found.right_interval, n))
            for (sibling, share), ends in zip(found.siblings, found.sibling_intervals, strict=True):
                rows.append((given, code, sibling, share, *ends, n))
            rows.append((given, code, OUTSIDE, found.outside, *found.outside_interval, n))
    return pd.DataFrame(
        rows, columns=["given", "code", "outcome", "estimate", "low", "high", "documents"]
    )


def recovered(laws: Sequence[FamilyLaw], evaluation: FamilyEvaluation) -> pd.DataFrame:
    """True probabilities beside their estimates, with whether the interval contains the truth.

    An outcome that was never seen has the estimate 0 and no interval; its truth counts as not contained.
    """
    frame = true_answers(laws).merge(
        answers(evaluation), on=["given", "code", "outcome"], how="left"
    )
    frame["estimate"] = frame["estimate"].fillna(0.0)
    frame["contained"] = frame["true"].between(frame["low"], frame["high"])
    return frame


def recovered_metrics(laws: Sequence[FamilyLaw], evaluation: FamilyEvaluation) -> pd.DataFrame:
    """The overall metrics that the laws imply, beside their estimates."""
    rows = []
    for name, truth in true_metrics(laws).items():
        low, high = evaluation.intervals[name]
        rows.append((name, truth, evaluation.metrics[name], low, high, low <= truth <= high))
    return pd.DataFrame(rows, columns=["metric", "true", "estimate", "low", "high", "contained"])
