"""What the published numbers say by themselves, without any data."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from cmtrack import evaluate
from rare_events import published
from rare_events.layout import TARGET

PRIOR_EXAMPLE = {"f1": 0.6, "f0": 0.2, "trained": 0.5, "target": 0.01}
"""Densities and prevalences for which equations 3 and 5, as printed, give a "probability" above 1."""


class Printed(NamedTuple):
    """A printed number and half of its last digit."""

    value: float
    half: float

    @classmethod
    def of(cls, text: str) -> Printed:
        """From the text; whole numbers are exact where they are counts."""
        return cls(float(text), 0.5 * 10.0 ** -len(text.partition(".")[2]))


def printed_rows() -> pd.DataFrame:
    """Every published row of tables 2.1-2.3, B.1 and B.2 as texts, by table or weight, calibration and output."""
    frame = pd.concat(published.PRINTED, names=["where"])
    weights = published.PRINTED_WEIGHTS.rename_axis(index={"weight": "where"})
    return pd.concat([frame, weights])


def target_size() -> pd.DataFrame:
    """Least and largest size of the target that each row allows: (estimate - 69) / bias, by the digits printed."""
    rows = {}
    summary = [
        (("Table 2.4", name, ""), f"{row.estimate:.3f}", _text(name)) for name, row in _summaries()
    ]
    all_rows = [
        (key, row[published.ESTIMATE], row["Bias"]) for key, row in printed_rows().iterrows()
    ]
    for key, estimate_text, bias_text in all_rows + summary:
        estimate, bias = Printed.of(estimate_text), Printed.of(bias_text)
        gap = abs(estimate.value - published.ACTUAL_POSITIVES)
        spread = 0.0 if estimate.value == round(estimate.value) else estimate.half
        size = abs(bias.value)
        low = max(gap - spread, 0.0) / (size + bias.half)
        high = (gap + spread) / (size - bias.half) if size > bias.half else math.inf
        rows[key] = {"low": low, "high": high, "consistent": low <= TARGET <= high}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(
        ["where", "BayesCal?", "Proba?"]
    )


def _summaries() -> list[tuple[str, published.Summary]]:
    return list(published.TABLE_2_4.items())


def _text(name: str) -> str:
    decimals = 5 if name == "ensemble" else 6  # as printed
    return f"{published.TABLE_2_4[name].bias:.{decimals}f}"


def label_rows() -> pd.DataFrame:
    """The one confusion matrix that each published row of labels allows, and how far its metrics are from print.

    A row of labels gives the number of predicted positives and the balanced accuracy, and so the true positives.
    """
    rows = {}
    negatives = TARGET - published.ACTUAL_POSITIVES
    for key, row in printed_rows().xs("No", level="Proba?", drop_level=False).iterrows():
        predicted = float(row[published.ESTIMATE])
        wanted = 2 * float(row["BA"]) - 1 + predicted / negatives
        tp = round(wanted / (1 / published.ACTUAL_POSITIVES + 1 / negatives))
        cells = [tp, published.ACTUAL_POSITIVES - tp, predicted - tp, negatives - predicted + tp]
        found = evaluate([1, 1, 0, 0], [1, 0, 1, 0], labels=[0, 1], sample_weight=cells).metrics
        gaps = {
            "BA": found["binary/balanced_accuracy"] - float(row["BA"]),
            "MCC": found["binary/matthews_corrcoef"] - float(row["MCC"]),
            "Acc": found["binary/accuracy"] - float(row["Acc"]),
        }
        rows[key] = {"TP": tp, "FP": predicted - tp} | gaps
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(
        ["where", "BayesCal?", "Proba?"]
    )


def label_counts() -> pd.DataFrame:
    """Calibrated estimates by labels and by probabilities, and whether the first is the second, rounded up."""
    calibrated = (
        printed_rows()
        .xs("Yes", level="BayesCal?")[published.ESTIMATE]
        .astype(float)
        .unstack("Proba?")
    )
    found = pd.DataFrame({"labels": calibrated["No"], "probabilities": calibrated["Yes"]})
    found["rounded up"] = found["probabilities"].map(math.ceil)
    found["agrees"] = found["labels"] == found["rounded up"]
    return found


def published_sd() -> pd.DataFrame:
    """Table 2.4: the sum of squared probabilities that its sd implies, and how many sd the truth is away."""
    rows = {}
    for name, row in _summaries():
        squares = row.estimate - row.sd**2
        rows[name] = {
            "estimate": row.estimate,
            "sd": row.sd,
            "implied Σp²": squares,
            "possible": row.estimate**2 / TARGET <= squares <= row.estimate,
            "truth is away by (sd)": (published.ACTUAL_POSITIVES - row.estimate) / row.sd,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def mixed_priors(f1: float, f0: float, trained: float, target: float) -> tuple[float, float]:
    """Equation 3 as printed, with the training prior above and the target's below, and with one prior in both."""
    mix = target * f1 + (1 - target) * f0
    return f1 * trained / mix, f1 * target / mix
