"""Table 1.5: what can be measured of its three properties."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from cmtrack import evaluate
from correlation.trials import METRICS, Judged, Trials

RANGES = {"sPCC": 1.0, "BA": 0.5, "MCC": 1.0, "AUROC": 0.5}
"""From a machine that knows nothing to a perfect one."""

SHARES = (0.5, 0.1, 0.01, 0.0023)
"""Shares of positives; the last one is that of the source's platform economy data."""


def sampling_errors(cases: Mapping[str, Trials]) -> pd.DataFrame:
    """Widths of the 95% intervals, and what the repeats really spread over, both also in shares of the range."""
    rows = []
    for case, trials in cases.items():
        for machine in ("LogReg", "RFC"):
            for metric, reach in RANGES.items():
                width = float(np.nanmean(trials.widths[metric, machine]))
                seen = 2 * 1.96 * trials.spread(metric, machine).sd
                rows.append([case, machine, metric, width, seen, width / reach])
    columns = [
        "case",
        "machine",
        "metric",
        "width of the interval",
        "4 sd over repeats",
        "width / useful range",
    ]
    return pd.DataFrame(rows, columns=columns)


def widths_against(errors: pd.DataFrame, metric: str, other: str, column: str) -> pd.Series:
    """Ratio of two metrics' widths in every case and for every machine."""
    wide = errors.pivot(index=["case", "machine"], columns="metric", values=column)
    return wide[metric] / wide[other]


def at_other_shares(judged: Judged) -> pd.DataFrame:
    """The same scores, the classes weighted to other shares of positives; labels at 1/2."""
    actual = float(judged.y.mean())
    rows = {}
    for share in SHARES:
        weights = np.where(judged.y == 1, share / actual, (1 - share) / (1 - actual))
        metrics = evaluate(judged.y, y_prob=judged.scored.test, sample_weight=weights).metrics
        rows[share] = {
            row: metrics[METRICS[row]] for row in ("sPCC", "Accuracy", "BA", "MCC", "AUROC")
        }
    frame = pd.DataFrame(rows).T
    frame.index = [f"{share:.2%}" for share in SHARES]
    frame.index.name = "share of positives"
    return frame


def under_transformations(judged: Judged) -> pd.DataFrame:
    """AUROC and sPCC of a score, and of what increasing maps make of it."""
    s = judged.scored.test
    maps = {
        "score s": s,
        "(s + 1) / 3, linear": (s + 1) / 3,
        "s³": s**3,
        "√s": np.sqrt(s),
        "calibrated": judged.estimate.posterior(s),
    }
    rows = []
    for name, scores in maps.items():
        metrics = evaluate(judged.y, y_prob=scores).metrics
        rows.append(
            [name, metrics["binary/roc_auc"], metrics["spcc/binary"], metrics["prevalence/bias"]]
        )
    return pd.DataFrame(rows, columns=["map", "AUROC", "sPCC", "bias"])
