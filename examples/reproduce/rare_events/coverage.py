"""The thesis' layout drawn many times, to count how often intervals contain the truth."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from rare_events.layout import Layout
from rare_events.machine import TextMachine
from rare_events.published import TRAINED_POSITIVES
from rare_events.variants import DENSITY, Scored, labels_only_sd, score

MACHINES = {
    "698 + 698, weight 1": (698, 1.0),
    "698 + 1,628, weight 1": (1628, 1.0),
    "698 + 1,628, weight 100": (1628, 100.0),
}
WAYS = (
    ("in-sample", DENSITY),
    ("out-of-fold", DENSITY),
    ("held-out", DENSITY),
    ("out-of-fold", "auto"),
    ("held-out", "auto"),
)
REJECTED = 0.01


def simulate(layout: Layout, draws: Iterable[int]) -> pd.DataFrame:
    """One row for each draw, machine, calibration and density model.

    Every draw has its own target, with a binomial number of positives, its own training sets and its own held-out
    websites, so that both kinds of intervals can be judged: of the number in the target, and of the prevalence that
    it was drawn from.
    """
    size = layout.positives + layout.negatives
    share = layout.positives / size
    rows = []
    for draw in draws:
        positives = int(np.random.default_rng([9, draw]).binomial(size, share))
        target = layout.web.draw(positives, size - positives, [10, draw])
        held_out = layout.web.draw(layout.held_positives, layout.held_negatives, [11, draw])
        for name, (negatives, weight) in MACHINES.items():
            training = layout.web.draw(TRAINED_POSITIVES, negatives, [12, negatives, draw])
            scored = score(TextMachine(weight), training, target, held_out, folds=layout.folds)
            for calibration, density in WAYS:
                row = {
                    "draw": draw,
                    "machine": name,
                    "calibration": calibration,
                    "density": density,
                }
                rows.append(row | _judge(target.y, scored, calibration, density, share))
    return pd.DataFrame(rows)


def _judge(
    y: np.ndarray, scored: Scored, calibration: str, density: str, share: float
) -> dict[str, float]:
    found = scored.estimate(calibration, density)
    actual = int(y.sum())
    row = {
        "actual": actual,
        "count": found.count,
        "count_low": found.count_low,
        "count_high": found.count_high,
        "count contains": found.count_low <= actual <= found.count_high,
        "prevalence contains": found.low <= share <= found.high,
        "rejected": found.fit_pvalue < REJECTED,
        "labels-only contains": np.nan,
    }
    if density == DENSITY:
        sd = labels_only_sd(y, scored, calibration)
        row["labels-only contains"] = abs(found.count - actual) <= 1.96 * sd
    return row


def coverage(simulated: pd.DataFrame) -> pd.DataFrame:
    """Means over the draws, by machine, calibration and density model; shares in percent."""
    simulated = simulated.assign(error=simulated["count"] - simulated["actual"])
    groups = simulated.groupby(["machine", "calibration", "density"], sort=False)
    percent = 100 * groups[
        ["count contains", "prevalence contains", "labels-only contains", "rejected"]
    ].agg(lambda values: values.astype(float).mean())
    means = groups[["actual", "count", "count_low", "count_high"]].mean()
    table = means.assign(
        rmse=groups["error"].agg(lambda errors: float(np.sqrt((errors**2).mean())))
    )
    return table.join(percent)
