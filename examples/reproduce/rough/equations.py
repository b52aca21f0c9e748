"""Equations 3.3 to 3.6 on one table: each reading beside what it should be."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cmtrack import GranuleTable
from rough.printed import alpha_as_printed, middle_of_3_6
from rough.random_tables import Classifier


def equation_table(table: GranuleTable, classifier: Classifier) -> pd.DataFrame:
    """Columns equation, side, value, must be (a relation), target, holds."""
    exact, bounds = table.approximations(), table.bounds(classifier)
    n = table.confusion_matrix(classifier).counts.T  # rows predicted, as in the source
    shares = exact.class_sizes / exact.class_sizes.sum()
    g, gamma = bounds.gamma_upper, exact.gamma
    alpha, p = float(exact.alpha[0]), float(exact.lower_share[0])
    corrected, middle = bounds.weighted_alpha_upper, middle_of_3_6(n)
    rows = [
        (
            "3.3",
            "sum of n_i / n * p_i",
            float(shares @ exact.lower_share),
            "= gamma of the granules",
            gamma,
        ),
        ("3.4", "p_1 * p^1, p^1 = n_1 / nu_1", p * float(exact.upper_share[0]), "= alpha_1", alpha),
        (
            "3.4",
            'p_1 * p^1, "ni" read as nl_1',
            p * float(exact.lower[0] / exact.upper[0]),
            "= alpha_1",
            alpha,
        ),
        ("3.5", "as printed, weights n_i. + n_.i", alpha_as_printed(n), "at most", 1.0),
        ("3.5", "weights n_i. + n_.i - n_ii", corrected, "at most", 1.0),
        ("3.6", "left side as printed", alpha_as_printed(n), "= middle", middle),
        ("3.6", "left side, weights n_i. + n_.i - n_ii", corrected, "= middle", middle),
        ("3.6", "gamma / (2 - gamma), gamma of 3.3", gamma / (2 - gamma), "= middle", middle),
        ("3.6", "g / (2 - g), g the accuracy", g / (2 - g), "= middle", middle),
    ]
    frame = pd.DataFrame(rows, columns=["equation", "side", "value", "must be", "target"])
    equal = np.isclose(frame["value"], frame["target"])
    holds = np.where(
        frame["must be"] == "at most", equal | (frame["value"] < frame["target"]), equal
    )
    return frame.assign(holds=np.where(holds, "yes", "no"))
