"""Whatever labels an evaluation accepts can be stored; others are refused with the rule and the value."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmtrack import Accumulator, Grouping, evaluate, load_evaluation, log_evaluation
from cmtrack.evaluation import loads

DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]
TEXTS = {
    "bytes": ([b"cat", b"dog"], ("cat", "dog")),
    "date": (DAYS, ("2020-01-01", "2021-01-01")),
    "datetime": ([datetime.datetime(2020, 1, 1, 5), datetime.datetime(2021, 1, 1)], None),
    "Timestamp": (
        [pd.Timestamp("2020-01-01", tz="UTC"), pd.Timestamp("2021-01-01", tz="UTC")],
        None,
    ),
    "Decimal": ([Decimal("1.10"), Decimal(2)], ("1.10", "2")),
    "UUID": ([uuid.UUID(int=1), uuid.UUID(int=2)], None),
}


@pytest.mark.parametrize(("values", "texts"), TEXTS.values(), ids=TEXTS)
def test_labels_of_other_types_are_their_texts(values: list[Any], texts: Any) -> None:
    y = np.empty(40, dtype=object)
    y[:] = values * 20
    predicted = y.copy()
    predicted[:4] = y[1:5]
    evaluation = evaluate(y, predicted, positive=values[1])
    assert evaluation.labels == (texts or tuple(sorted(map(str, values))))
    assert loads(evaluation.to_json()).labels == evaluation.labels
    assert any("are converted to strings, such as" in note for note in evaluation.notes)
    assert evaluate(y, predicted, labels=values).labels == tuple(
        label for label in map(evaluation.labels.__getitem__, (0, 1))
    )
    seen = Accumulator(labels=values)
    seen.update(y, predicted)
    assert (
        seen.compute().confusion_matrix.counts.tolist()
        == evaluation.confusion_matrix.counts.tolist()
    )
    grouped = evaluate(y, predicted, grouping=Grouping({"one": values[:1], "other": values[1:]}))
    assert grouped.labels == evaluation.labels


@pytest.mark.slow
def test_they_come_back_from_the_store(store: Any) -> None:
    import mlflow

    y = np.array([b"cat", b"dog"] * 20)
    with mlflow.start_run() as run:
        assert log_evaluation(y, y, figures=False, strict=True).status == "completed"
    assert load_evaluation(run.info.run_id).labels == ("cat", "dog")


@pytest.mark.parametrize(
    ("values", "kind", "says"),
    [
        (
            [("a", 1), ("b", 2)],
            TypeError,
            r"labels must be strings, numbers, .* got \('a', 1\) of type tuple",
        ),
        (
            ["caf\udce9", "b"],
            ValueError,
            r"labels that are strings must be encodable in UTF-8, got 'caf\\udce9'",
        ),
        ([b"\xff", b"a"], ValueError, "labels that are bytes must be valid UTF-8"),
        ([pd.Interval(0, 1), pd.Interval(1, 2)], TypeError, "of type Interval"),
    ],
    ids=["tuple", "surrogate", "bytes", "interval"],
)
def test_what_no_file_holds_is_refused(
    values: list[Any], kind: type[Exception], says: str, store: Any
) -> None:
    y = np.empty(10, dtype=object)
    y[:] = values * 5
    with pytest.raises(kind, match=says):
        evaluate(y, y)
    with pytest.warns(UserWarning, match="the evaluation failed"):
        logged = log_evaluation(y, y)
    assert (logged.status, logged.path.exists()) == ("failed", True)  # the inputs are kept
