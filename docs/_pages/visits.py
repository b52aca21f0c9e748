"""A year of a model: six registered versions, and twelve months of labelled rows in files.

The rows are person-years of the RAND Health Insurance Experiment, which are in the public domain and come with statsmodels.
A model predicts whether a person visits a doctor within a year. Persons are drawn at random: some are training data, and
all others are divided among twelve months. The data has no ids of persons, so neighboring rows with the same household
facts count as one person.

A page uses ``survey.begin()``, ``visits.begin()``, and shows commands with ``visits.command(month, line)``, which sets the
clock to this month.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import survey

MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
N_TRAINING = 1200
"""Number of persons in the training data."""
COST = ["lncoins", "idp", "lpi", "fmde"]
HEALTH = ["physlm", "disea", "hlthg", "hlthf", "hlthp"]
HOUSEHOLD = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea"]


@cache
def people() -> pd.DataFrame:
    """All rows, with the columns person, year and visit."""
    from statsmodels.datasets import randhie

    frame = randhie.load_pandas().data
    is_other = (frame[HOUSEHOLD] != frame[HOUSEHOLD].shift()).any(axis=1)
    frame["person"] = is_other.cumsum()
    frame["id"] = np.arange(len(frame))
    frame["visit"] = np.where(frame.pop("mdvis") > 0, "yes", "no")
    return frame


def begin() -> None:
    """Register the versions, and write the months as files."""
    import mlflow

    frame = people()
    order = np.random.default_rng(0).permutation(frame["person"].unique())
    training = frame[frame["person"].isin(order[:N_TRAINING])]
    mlflow.set_experiment("visits")
    for model, columns in _models():
        model.fit(training[columns], training["visit"])
        with mlflow.start_run(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mlflow.sklearn.log_model(
                model,
                name="model",
                registered_model_name="visits",
                input_example=training[columns].head(3),
                pip_requirements=["scikit-learn"],
                serialization_format="pickle",
            )
    for month, persons in zip(MONTHS, np.array_split(order[N_TRAINING:], 12), strict=True):
        frame[frame["person"].isin(persons)].to_parquet(f"{month}.parquet", index=False)


def _models() -> list[tuple[Any, list[str]]]:
    """The classifiers of versions 1 to 6, each with its features."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler
    return [
        (make_pipeline(scaled(), LogisticRegression()), COST),
        (make_pipeline(scaled(), LogisticRegression()), HEALTH),
        (make_pipeline(scaled(), LogisticRegression()), COST + HEALTH),
        (make_pipeline(scaled(), KNeighborsClassifier(15)), COST + HEALTH),
        (RandomForestClassifier(100, min_samples_leaf=10, random_state=0), COST + HEALTH),
        (HistGradientBoostingClassifier(max_iter=60, random_state=0), COST + HEALTH),
    ]


def command(month: str, line: str) -> None:
    """Print a shell line and its output, with the clock on the second day of the month after."""
    name, _, year = month.partition(" ")
    number = MONTHS.index(name) + 2
    since = int(year or 2026) + (number > 12)
    day = time.strptime(f"{since}-{(number - 1) % 12 + 1:02}-02 08:00", "%Y-%m-%d %H:%M")
    with patch("time.gmtime", lambda *_: day):
        survey.command(line)


def quietly(month: str, line: str) -> None:
    """Run a shell line of a month without printing its output."""
    with contextlib.redirect_stdout(io.StringIO()):
        command(month, line)
