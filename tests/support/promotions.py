"""A registry with versions whose predictions are stored in tables, for tests of promotions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd

import cmtrack
from cmtrack.comparison import Chain, Promotion, RecordedPromotion
from cmtrack.tracking import quiet, tracking_store
from support.stores import sqlite_store

ACCURACY = "multiclass/accuracy"
CHAMPION = "champion"


def register_versions(client: mlflow.MlflowClient, folder: Path, versions: int) -> None:
    """Register versions of "party" whose models cannot be loaded, because nothing loads them."""
    mlflow.create_experiment("parties", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("parties")
    client.create_registered_model("party")
    for _ in range(versions):
        with mlflow.start_run() as training:
            model = mlflow.initialize_logged_model(name="party")
            mlflow.finalize_logged_model(model.model_id, "READY")
        client.create_model_version("party", f"models:/{model.model_id}", training.info.run_id)


@contextmanager
def registry(folder: Path, versions: int = 3, champion: int | None = 1) -> Iterator[Any]:
    """Yield a client of a new store with versions of "party"."""
    with quiet(), tracking_store(sqlite_store(folder / "mlflow.db")):
        client = mlflow.MlflowClient()
        register_versions(client, folder, versions)
        if champion is not None:
            client.set_registered_model_alias("party", CHAMPION, champion)
        yield client


def month(seed: int, wrong: Mapping[int, slice], n: int = 400) -> pd.DataFrame:
    """Labelled rows with the predictions of versions.

    ``wrong``: by version, the rows that it predicts wrongly.
    """
    rng = np.random.default_rng(seed)
    actual = rng.integers(0, 2, n)
    columns = {"id": 1000 * seed + np.arange(n), "y": actual}
    for version, rows in wrong.items():
        predicted = actual.copy()
        predicted[rows] = 1 - predicted[rows]
        columns[f"v{version}_pred"] = predicted
    return pd.DataFrame(columns)


def promote(challengers: int | list[int], data: Any, **options: Any) -> Promotion:
    """Promote versions of "party" by the predictions that are stored in the data."""
    numbers = [challengers] if isinstance(challengers, int) else challengers
    given = {
        "data": data,
        "y_true": "y",
        "y_pred": "v{version}_pred",
        "row_ids": "id",
        "rank_by": ACCURACY,
    }
    return cmtrack.promote([f"models:/party/{number}" for number in numbers], **given | options)


def champion_of(client: Any) -> str | None:
    """The version that the alias names."""
    number = client.get_registered_model("party").aliases.get(CHAMPION)
    return None if number is None else str(number)


def chain_of(client: Any, alias: str = CHAMPION) -> Chain:
    """The records of an alias, read as every call reads them."""
    model = client.get_registered_model("party")
    experiment = model.tags.get("cmtrack.history")
    if experiment is None:
        return Chain()
    # There is no public way to read the chain alone.
    from cmtrack.tracking.promotion import records

    runs = records.promotion_runs(client, experiment)
    found = list(records.read_promotions(runs, "party", alias, client))
    assert all(isinstance(one, RecordedPromotion) for one in found), found
    return Chain.from_promotions(found, champion_of(client))
