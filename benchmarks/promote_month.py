"""A year of promotions in two stores, recomputed from the files of the months by code of its own.

    python benchmarks/promote_month.py [--rows 600] [--stores sqlite,http]

Eight logistic models of handwritten digits are registered: three of them have more pixels or more training rows than the
champion of their month, the others are equal or worse. MLflow loads the models, which score twelve months of noisy images.
Each month asks for the answer without writing, then without moving the alias, and, if the answer is "promote", with moving
it. An open challenger is looked at again in the next month. Exits with 1 if an answer, an interval or an alias differs from
the recomputation, if a dry run changed a row or a file of the store, or if one of the three answers never occurs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import math
import sqlite3
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from measure import say, table
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from store_speed import counted, server

import cmtrack
from cmtrack.tracking.store import quiet, tracking_store

MONTHS = 12
PIXELS = [f"pixel_{number}" for number in range(64)]
NOISE = 3.0
"""Standard deviation that is added to each pixel, whose values are 0 to 16."""
MODELS: dict[int, tuple[int, int]] = {
    1: (28, 300),
    2: (28, 290),
    3: (40, 300),
    4: (38, 300),
    5: (64, 400),
    6: (40, 120),
    7: (64, 897),
    8: (56, 450),
}
"""Number of pixels and of training rows of each version. Versions 3, 5 and 7 improve on the champion of their month."""
QUEUE = ([2], [3], [4], [5], [6], [7, 8])
"""Challengers in order; the last two are compared at once."""
MOST_LOOKS = 3
ACCURACY = "multiclass/accuracy"


def tango(only_new: int, only_old: int, n: int, level: float) -> tuple[float, float]:
    """Return Tango's score interval (1998), by the roots of its statistic."""
    z = float(norm.ppf((1 + level) / 2))

    def statistic(difference: float) -> float:
        b = -only_new - only_old + (2 * n - only_new + only_old) * difference
        c = -only_old * difference * (1 - difference)
        share = (math.sqrt(b * b - 8 * n * c) - b) / (4 * n)
        variance = n * (2 * share + difference * (1 - difference))
        return (only_new - only_old - n * difference) / math.sqrt(max(variance, 1e-300))

    estimate = (only_new - only_old) / n
    low = brentq(lambda d: statistic(d) - z, -1 + 1e-9, estimate, xtol=1e-14)
    high = brentq(lambda d: statistic(d) + z, estimate, 1 - 1e-9, xtol=1e-14)
    return float(low), float(high)


@dataclass
class Expected:
    """The recomputation: fitted models, the champion, and the looks at each pair.

    ``looks``: number of looks. ``open``: counts of the newest months that could not decide.
    """

    models: dict[int, tuple[Any, list[str]]]
    champion: int = 1
    looks: Counter[tuple[int, int]] = field(default_factory=Counter)
    open: dict[tuple[int, int], list[tuple[int, int, int]]] = field(default_factory=dict)

    def decide(
        self, path: Path, challengers: Sequence[int]
    ) -> tuple[str, int | None, dict[int, tuple[float, float]]]:
        """Return the answer, the chosen version, and the interval of each challenger."""
        frame = pd.read_parquet(path)
        correct = {}
        for version in (self.champion, *challengers):
            model, pixels = self.models[version]
            correct[version] = (model.predict(frame[pixels]) == frame["digit"]).to_numpy()
        level = 1 - 0.05 / len(challengers)
        answers = {}
        differences = {}
        intervals = {}
        for version in challengers:
            only_new = int(np.sum(correct[version] & ~correct[self.champion]))
            only_old = int(np.sum(correct[self.champion] & ~correct[version]))
            pair = (version, self.champion)
            self.looks[pair] += 1
            months = self.open.setdefault(pair, [])
            months.append((only_new, only_old, len(frame)))
            counts = np.sum(months, axis=0).tolist()
            intervals[version] = tango(*counts, level)
            differences[version] = (counts[0] - counts[1]) / counts[2]
            low, high = intervals[version]
            answers[version] = "cannot tell"
            if low > 0:
                answers[version] = "promote"
            elif high <= 0 or self.looks[pair] == MOST_LOOKS:
                answers[version] = "keep"
            if answers[version] != "cannot tell":
                months.clear()
        passing = [version for version in challengers if answers[version] == "promote"]
        if passing:
            return "promote", max(passing, key=differences.__getitem__), intervals
        words = set(answers.values())
        return ("cannot tell" if "cannot tell" in words else "keep"), None, intervals


def fitted_models(
    rng: np.random.Generator,
) -> tuple[dict[int, tuple[Any, list[str]]], pd.DataFrame]:
    """Return the models with their pixels, and the digits that no model was trained on."""
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    pixels = rng.permutation(PIXELS).tolist()
    frame = pd.DataFrame(digits.data[order], columns=PIXELS)
    frame["digit"] = digits.target[order]
    training = frame[:897]
    models = {}
    for version, (n_pixels, n_rows) in MODELS.items():
        chosen = pixels[:n_pixels]
        rows = training[:n_rows]
        model = LogisticRegression(C=0.01, max_iter=500).fit(rows[chosen], rows["digit"])
        models[version] = (model, chosen)
    return models, frame[897:].reset_index(drop=True)


def month(rng: np.random.Generator, digits: pd.DataFrame, number: int, rows: int) -> pd.DataFrame:
    """Return noisy images, drawn with replacement."""
    drawn = digits.iloc[rng.integers(0, len(digits), rows)].reset_index(drop=True)
    drawn[PIXELS] += rng.normal(scale=NOISE, size=(rows, len(PIXELS)))
    drawn["id"] = 100_000 * number + np.arange(rows)
    return drawn


def register(models: dict[int, tuple[Any, list[str]]]) -> None:
    """Log and register the models as versions of "digits"."""
    mlflow.set_experiment("training")
    for model, pixels in models.values():
        example = pd.DataFrame(np.zeros((2, len(pixels))), columns=pixels)
        with mlflow.start_run():
            mlflow.sklearn.log_model(
                model,
                name="model",
                registered_model_name="digits",
                signature=mlflow.models.infer_signature(example),
                pip_requirements=["mlflow"],
                serialization_format="pickle",
            )


def contents_of(folder: Path) -> dict[str, Any]:
    """Return the number of rows and a digest of every table, and a digest of every file."""
    found: dict[str, Any] = {}
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as connection:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (name,) in connection.execute(query).fetchall():
            rows = sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"')))
            found[name] = (len(rows), hashlib.sha256("\n".join(rows).encode()).hexdigest())
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith(("mlflow.db", "server.log")):
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def champion() -> int:
    """Return the version that the alias names."""
    return int(mlflow.MlflowClient().get_registered_model("digits").aliases["champion"])


def year(
    store: Path, months: Path, expected: Expected, rows: int
) -> tuple[list[str], Counter[str]]:
    """Promote month after month; return the faults, and how often each answer and event occurred."""
    rng = np.random.default_rng(12)
    register(expected.models)
    _, digits = fitted_models(np.random.default_rng(0))
    cmtrack.promote("models:/digits/1", force="first champion")
    faults: list[str] = []
    seen: Counter[str] = Counter()
    queue = list(QUEUE)

    def check(what: str, is_right: bool) -> None:
        seen["checks"] += 1
        if not is_right:
            faults.append(what)
            say(f"FAULT {what}")

    for number in range(1, MONTHS + 1):
        if not queue:
            break
        path = months / f"month_{number:02}.parquet"
        month(rng, digits, number, rows).to_parquet(path)
        challengers = queue[0]
        uris = [f"models:/digits/{version}" for version in challengers]
        given = {"data": path, "y_true": "digit", "row_ids": "id", "rank_by": ACCURACY}
        before = contents_of(store)
        dry = cmtrack.promote(uris, **given, dry_run=True)
        check(f"month {number}: a dry run changed the store", contents_of(store) == before)
        old = champion()
        with counted() as kinds:
            start = time.process_time()
            promotion = cmtrack.promote(uris, **given)
            took = time.process_time() - start
        seen["requests"] += sum(kinds.values())
        seen["calls"] += 1
        answer, chosen, intervals = expected.decide(path, challengers)
        seen[answer] += 1
        found = promotion.answer.value
        check(f"month {number}: {found}, expected {answer}", found == dry.answer.value == answer)
        for challenge in promotion.challenges:
            pair = challenge.difference(ACCURACY)
            ends = intervals[int(challenge.version)]
            is_equal = np.allclose((pair.low, pair.high), ends, rtol=0, atol=1e-8)
            check(f"month {number}: [{pair.low}, {pair.high}], expected {ends}", bool(is_equal))
        check(f"month {number}: the alias moved without consent", champion() == old)
        moved = cmtrack.promote(uris, **given, move=True)
        check(f"month {number}: a second record", moved.run_id == promotion.run_id)
        check(f"month {number}: moved without promote", moved.moved == (answer == "promote"))
        if chosen is not None:
            expected.champion = chosen
        check(f"month {number}: another champion", champion() == expected.champion)
        if answer != "cannot tell":
            queue.pop(0)
        say(f"month {number}: {moved!r}, {took:.1f} s")
    seen["champion"] = champion()
    return faults, seen


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--stores", default="sqlite,http")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    missed = False
    for kind in given.stores.split(","):
        with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as months:
            store = Path(name)
            backend = f"sqlite:///{store / 'mlflow.db'}"
            models, _ = fitted_models(np.random.default_rng(0))
            with quiet(), contextlib.ExitStack() as stack:
                address = backend
                if kind == "http":
                    address = stack.enter_context(server(backend, store))
                stack.enter_context(tracking_store(address))
                if kind == "sqlite":
                    mlflow.create_experiment("training", (store / "artifacts").as_uri())
                faults, seen = year(store, Path(months), Expected(models), given.rows)
        answers = [seen[word] for word in ("promote", "keep", "cannot tell")]
        missed |= bool(faults) or not all(answers)
        requests = f"{seen['requests'] / seen['calls']:.0f}" if kind == "http" else ""
        counts = [*map(str, answers), str(seen["champion"]), requests]
        lines.append([kind, *counts, f"{seen['checks'] - len(faults)} of {seen['checks']}"])
    heads = [
        "store",
        "promote",
        "keep",
        "cannot tell",
        "last champion",
        "requests a call",
        "checks",
    ]
    table(heads, lines)
    raise SystemExit(int(missed))


if __name__ == "__main__":
    main()
