"""Rows of logged runs: they are loaded with a comparison, and runs that did not keep them are named."""

from __future__ import annotations

import mlflow
import numpy as np
import pytest

from cmtrack import compare, evaluate, load_evaluation, log_evaluation
from support.problems import random_labels, random_probabilities

Y = random_labels(300, 3, 1)


@pytest.fixture
def runs(store, undrawn):
    """Three runs of the same rows; the last keeps none."""
    made = {}
    for seed, name in enumerate(("first", "second", "bare")):
        evaluation = evaluate(Y, y_prob=random_probabilities(Y, 3, 1.5, seed), row_ids=np.arange(300))
        with mlflow.start_run(run_name=name) as run:
            log_evaluation(evaluation, strict=True, predictions=name != "bare")
        made[name] = run.info.run_id, evaluation
    return made


def test_rows_are_those_of_the_evaluations_that_were_logged(runs):
    logged = compare([run_id for run_id, _ in runs.values()], rank_by="multiclass/accuracy")
    here = compare({name: evaluation for name, (_, evaluation) in runs.items()}, rank_by="multiclass/accuracy")
    assert logged.rows("first", "second")["row"].tolist() == here.rows("first", "second")["row"].tolist()
    assert (
        logged.flips(runs["first"][0], "second", by="class")
        .to_frame()
        .equals(here.flips("first", "second", by="class").to_frame())
    )
    assert logged.deciding("first", "second").sentence == here.deciding("first", "second").sentence
    assert logged.missed().runs in (("first", "second"), ("second", "first"))
    with pytest.raises(ValueError, match=r"the second evaluation has no rows.*it can be with “second”"):
        logged.rows("first", "bare")
    loaded = load_evaluation(runs["first"][0], rows=True)
    table = {"id": np.arange(300), "text": [f"t{k}" for k in range(300)]}
    frame = loaded.rows_where(0, 1, table=table, row_ids="id")
    assert frame["text"].tolist() == [f"t{k}" for k in frame["row"]]
    with pytest.raises(ValueError, match="the rows are not here"):
        load_evaluation(runs["first"][0]).rows_where()
