"""Scores of a model by state and year: who visits a doctor in the RAND Health Insurance Experiment.

The data is in the public domain and comes with statsmodels. The original file, which is also in the package, has the person,
the site and the year of each row. A model predicts from a person's health, insurance and pharmacy costs whether the person
visits a doctor in this year. The pages show no row of a person that the model was trained on.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

STATE_OF_SITE = {
    1: "OH",  # Dayton
    2: "WA",  # Seattle
    3: "MA",  # Fitchburg
    4: "MA",  # Franklin County
    5: "SC",  # Charleston
    6: "SC",  # Georgetown County
}
"""The states by the codes of the sites in the file.

The file has no names. These follow the order in which RAND lists its sites, and fit the plans of each site in the file.
"""
STATES = ["MA", "OH", "SC", "WA"]
YEARS = [1, 2, 3]
"""The years for which every person was enrolled."""
PERSON = ["xage", "female", "lfam", "disea", "physlm", "ghindx", "linc", "educdec"]
PLAN = ["coins", "idp"]
PHARMACY = ["drugdol", "suppdol"]
N_TRAINING = 1500
"""Number of persons in the training data."""


@cache
def scored() -> pd.DataFrame:
    """The rows of all persons without training rows: state, year, visit and score."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from statsmodels.datasets import randhie

    frame = pd.read_csv(Path(randhie.__file__).parent / "src" / "randhie.csv")
    frame["state"] = frame["site"].map(STATE_OF_SITE)
    frame["visit"] = np.where(frame["mdvis"] > 0, "visit", "none")
    persons = np.random.default_rng(4).permutation(frame["zper"].unique())
    is_training = frame["zper"].isin(persons[:N_TRAINING])
    training = frame[is_training]
    features = PERSON + PLAN + PHARMACY
    model = HistGradientBoostingClassifier(
        max_iter=80, max_leaf_nodes=15, learning_rate=0.05, random_state=0
    )
    model.fit(training[features], training["visit"])
    rows = frame[~is_training & frame["year"].isin(YEARS)].copy()
    rows["score"] = model.predict_proba(rows[features])[:, 1]
    return rows[["state", "year", "visit", "score"]]


def draw(n: int, cells: Iterable[tuple[str, int]]) -> pd.DataFrame:
    """Return n random rows of each cell."""
    rows = scored()
    drawn = []
    for state, year in cells:
        cell = rows[(rows["state"] == state) & (rows["year"] == year)]
        drawn.append(cell.sample(n, random_state=4))
    return pd.concat(drawn)
