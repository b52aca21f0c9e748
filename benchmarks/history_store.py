"""Requests and time of a history of 24 promotions on a tracking server, and of its verification.

    python benchmarks/history_store.py [--promotions 24] [--rows 1000]

It starts `mlflow server` on a new SQLite database, registers 25 versions, and promotes one of them in each month. Predictions
are stored in columns. Then it reads the history and verifies every record, and removes the files of the training machine
before that. Exits with 1 if a limit is missed: at most 4 requests and 400 ms of processor time for a history, and at most 60
requests for the verification of all records.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
from measure import say, table
from store_speed import counted, server

import cmtrack
from cmtrack.tracking.store import quiet, tracking_store


class Anything(mlflow.pyfunc.PythonModel):
    """A model that is never called."""

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
        """Fail, because predictions are stored."""
        raise NotImplementedError


def month(rng: np.random.Generator, rows: int, versions: int) -> pd.DataFrame:
    """Labelled rows with the predictions of versions of which every fourth is better."""
    y = rng.integers(0, 2, rows)
    difficulty = rng.uniform(size=rows)
    columns: dict[str, object] = {"id": rng.permutation(10 * rows)[:rows], "y": y}
    for version in range(1, versions + 1):
        accuracy = 0.7 + 0.04 * (version // 4)
        is_correct = difficulty + rng.normal(scale=0.05, size=rows) < accuracy
        columns[f"v{version}"] = np.where(is_correct, y, 1 - y)
    return pd.DataFrame(columns)


def promote_all(folder: Path, promotions: int, rows: int) -> int:
    """Register versions and promote one a month; return the number of moves."""
    client = mlflow.MlflowClient()
    mlflow.set_experiment("training")
    with mlflow.start_run():
        info = mlflow.pyfunc.log_model(
            name="model", python_model=Anything(), pip_requirements=["mlflow"]
        )
    client.create_registered_model("party")
    for _ in range(promotions + 1):
        client.create_model_version("party", info.model_uri, model_id=info.model_id)
    cmtrack.promote("models:/party/1", force="first champion")
    rng = np.random.default_rng(24)
    moves = 0
    for number in range(1, promotions + 1):
        path = folder / f"month_{number:02}.parquet"
        month(rng, rows, promotions + 1).to_parquet(path)
        with counted() as kinds:
            start = time.process_time()
            promotion = cmtrack.promote(
                f"models:/party/{number + 1}",
                data=path,
                y_true="y",
                y_pred="v{version}",
                row_ids="id",
                rank_by="multiclass/accuracy",
                move=True,
            )
            took = time.process_time() - start
        moves += promotion.moved
        path.unlink()
        say(f"{promotion!r}: {sum(kinds.values())} requests, {took:.1f} s")
    return moves


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--promotions", type=int, default=24)
    parser.add_argument("--rows", type=int, default=1000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        backend = f"sqlite:///{scratch / 'mlflow.db'}"
        with quiet(), server(backend, scratch) as address, tracking_store(address):
            moves = promote_all(scratch, given.promotions, given.rows)
            cmtrack.history("models:/party")
            lines = []
            missed = False
            for what, verify, most in (("history", False, 4), ("history --verify", True, 60)):
                with counted() as kinds:
                    start = time.process_time()
                    story = cmtrack.history("models:/party", verify=verify)
                    took = 1000 * (time.process_time() - start)
                requests = sum(kinds.values())
                missed |= requests > most or (not verify and took > 400)
                lines.append([what, str(requests), str(most), f"{took:,.0f} ms"])
            of_all = f"{story.verified} of {len(story.chain.promotions)}"
            missed |= story.verified < len(story.chain.promotions) or bool(story.problems)
    table(["", "requests", "at most", "processor time"], lines)
    print(f"{moves} moves; {of_all} records verified, {len(story.problems)} problems.")
    raise SystemExit(int(missed))


if __name__ == "__main__":
    main()
