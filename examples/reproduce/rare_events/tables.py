"""Ours beside the published, in the form of the published tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rare_events.published import COLUMNS, ESTIMATE, weights_of
from rare_events.variants import ACTUAL, CALIBRATIONS, OUTPUTS, Scored, labels_only_sd
from study import Spread, beside

DIGITS = {ESTIMATE: 1} | dict.fromkeys(COLUMNS[1:], 4)
PUBLISHED_AS = {"none": "No", "in-sample": "Yes"}
PROBA = {"labels": "No", "probabilities": "Yes"}
KEYS = [("none", output) for output in OUTPUTS] + [
    (c, output) for c in CALIBRATIONS for output in OUTPUTS
]


def as_printed(weight: float) -> str:
    """A weight of the grid as Tables B.1 and B.2 print it."""
    return min(
        weights_of("Table B.1") + weights_of("Table B.2"),
        key=lambda text: abs(float(text) - weight),
    )


def stacked(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Repeats of one method under each other, by repeat, calibration and output."""
    return pd.concat(frames, keys=range(len(frames)), names=["repeat"])


def means(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Means over the repeats, of those that give a number, in the order of the tables."""
    return stacked(frames).groupby(level=["calibration", "output"], sort=False).mean()


def published_row(published: pd.DataFrame, key: tuple[str, str]) -> pd.Series | None:
    """The published numbers of a variant; None where the thesis has no such variant."""
    calibration, output = key
    if calibration not in PUBLISHED_AS:
        return None
    return published.loc[(PUBLISHED_AS[calibration], PROBA[output])]


def side_by_side(frames: list[pd.DataFrame], published: pd.DataFrame) -> pd.DataFrame:
    """A table of cells with the published columns; "TP" is called by its name, actual positives."""
    everything = stacked(frames)
    rows = []
    for key in KEYS:
        own = everything.xs(key, level=("calibration", "output"))
        printed = published_row(published, key)
        row: dict[str, object] = {
            "calibrated with": key[0],
            "output": key[1],
            ACTUAL: int(own[ACTUAL].iloc[0]),
        }
        for column in COLUMNS:
            value = None if printed is None else float(printed[column])
            row[column] = beside(Spread.of(own[column]), value, digits=DIGITS[column])
        rows.append(row)
    return pd.DataFrame(rows)


def comparable(
    frames: list[pd.DataFrame], published: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means and published numbers, without the estimates, of the variants that both have."""
    own = means(frames)
    pairs = {key: published_row(published, key) for key in KEYS}
    pairs = {key: row for key, row in pairs.items() if row is not None}
    columns = list(COLUMNS[1:])
    labels = [f"{output}, calibrated {calibration}" for calibration, output in pairs]
    labels = [label.replace("calibrated none", "not calibrated") for label in labels]
    ours = pd.DataFrame([own.loc[key, columns].to_numpy() for key in pairs], labels, columns)
    printed = pd.DataFrame([row[columns].to_numpy() for row in pairs.values()], labels, columns)
    return ours.astype(float), printed.astype(float)


def counted(y: np.ndarray, repeats: list[Scored], calibration: str) -> dict[str, object]:
    """Estimates of one method by one calibration over its repeats: mean, errors claimed, share with the truth."""
    found = [scored.estimate(calibration) for scored in repeats]
    actual = int(y.sum())
    return {
        "estimate": Spread.of([one.count for one in found]),
        "labels-only sd": Spread.of([labels_only_sd(y, scored, calibration) for scored in repeats]),
        "count_sd": Spread.of([one.count_sd for one in found]),
        "count_low": Spread.of([one.count_low for one in found]),
        "count_high": Spread.of([one.count_high for one in found]),
        "contains": float(np.mean([one.count_low <= actual <= one.count_high for one in found])),
        "fit_pvalue": Spread.of([one.fit_pvalue for one in found]),
    }
