"""What ``evaluate_table`` refuses, in which words, and in how many rows it found it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmtrack import Grouping, evaluate, evaluate_table
from support.problems import random_problem
from support.tables import as_table, assert_same

N = 300
Y, BEST, P = random_problem(11, n=N, k=3)
FRAME = pd.DataFrame(
    {"y": Y, "t": BEST, "w": 1.5, "id": np.arange(N), **{f"p{k}": P[:, k] for k in range(3)}}
)
ENGINES = ["parquet", "polars", "dask"]


def spoiled(column: str, values: dict[int, Any]) -> pd.DataFrame:
    """The frame with other values in some rows."""
    frame = FRAME.copy()
    if any(not isinstance(value, (int, float)) for value in values.values()):
        frame[column] = frame[column].astype(object)
    for row, value in values.items():
        frame.loc[row, column] = value
    return frame


WRONG: dict[str, tuple[str, dict[int, Any], str]] = {
    "nan": (
        "p1",
        {3: np.nan, 50: np.nan, 299: np.nan},
        r"y_prob must be finite, got NaN or null in 3 of 300 .*'p1'",
    ),
    "infinite": (
        "p2",
        {3: np.inf, 4: -np.inf},
        r"y_prob must be finite, got infinity in 2 of 300 rows .*'p2'",
    ),
    "outside": (
        "p0",
        {3: 1.5, 9: -0.5},
        r"y_prob must be in \[0, 1\], got values such as -0.5 in 2 of 300 rows .*'p0'",
    ),
    "sum": (
        "p0",
        {3: 0.0, 9: 0.0, 11: 0.0, 12: 0.0},
        r"each row of y_prob must sum to 1, [1-4] of 300 rows do not",
    ),
    "negative": (
        "w",
        {3: -1.0, 9: -2.5},
        r"sample_weight must be finite and not negative, got .* 2 of 300 rows.*-2.5",
    ),
    "no weight": (
        "w",
        {3: np.nan},
        r"sample_weight must be finite and not negative, got NaN or null in 1 of 300 rows",
    ),
    "endless": (
        "w",
        {3: np.inf},
        r"sample_weight must be finite and not negative, got infinity in 1 of 300 rows",
    ),
    "no label": (
        "y",
        {3: np.nan, 4: np.nan},
        r"y_true must not have missing labels, got 2 in 300 rows",
    ),
    "no prediction": ("t", {3: np.nan}, r"y_pred must not have missing labels, got 1 in 300 rows"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_counted(case: str, engine: str, tmp_path: Path) -> None:
    column, values, text = WRONG[case]
    table = as_table(engine, spoiled(column, values), tmp_path)
    with pytest.raises(ValueError, match=text):
        evaluate_table(table, y_true="y", y_pred="t", y_prob="p*", sample_weight="w")


@pytest.mark.parametrize("engine", ENGINES)
def test_unknown_labels_are_counted(engine: str, tmp_path: Path) -> None:
    table = as_table(engine, FRAME, tmp_path)
    for column in ("y_true", "y_pred"):
        given = {"y_true": "y", "y_pred": "t"} | {column: "t" if column == "y_pred" else "y"}
        rows = int(((Y if column == "y_true" else BEST) == 2).sum())
        frame = FRAME if column == "y_true" else FRAME[FRAME["y"] < 2]
        (folder := tmp_path / column).mkdir()
        table = as_table(engine, frame, folder)
        rows = int((frame["y" if column == "y_true" else "t"] == 2).sum())
        with pytest.raises(
            ValueError,
            match=rf"{column} has labels that are not in \[0, 1\]: \[2\] \({rows} rows\)",
        ):
            evaluate_table(table, **given, labels=[0, 1])


def test_lists_of_other_lengths() -> None:
    pl = pytest.importorskip("polars")
    lists: list[Any] = list(P)
    lists[4], lists[5], lists[6] = P[4][:2], P[5][:1], None
    table = pl.DataFrame({"y": Y, "p": [None if row is None else list(row) for row in lists]})
    with pytest.raises(
        ValueError,
        match=r"lists of equal length in column 'p', got 3 of 300 rows with a length other than 3",
    ):
        evaluate_table(table, y_true="y", y_prob="p")
    broken = pl.DataFrame(
        {"y": Y, "p": [[*row[:2], np.nan if i == 7 else row[2]] for i, row in enumerate(P)]}
    )
    with pytest.raises(ValueError, match=r"NaN or null in 1 of 300 rows \(entry 2 of column 'p'\)"):
        evaluate_table(broken, y_true="y", y_prob="p")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "evaluation needs y_pred or y_prob"),
        (
            {"y_pred": "nope"},
            r"y_pred must be a column of the table, got 'nope'; the columns are \['y', 't'",
        ),
        ({"y_prob": "q_*"}, r"no column matches 'q_\*'"),
        ({"y_prob": "*p*"}, r"takes one \*"),
        ({"y_prob": ["p0", "p0", "p1"]}, "must not name a column twice"),
        ({"y_prob": ["p0", "p1"], "sample_weight": "w"}, "each row of y_prob must sum to 1"),
        (
            {"y_prob": "p0"},
            r"y_prob must have shape \(n_samples, 3\) for the labels \[0, 1, 2\], got 1 column",
        ),
        (
            {"y_prob": {0: "p0", 1: "p1", 5: "p2"}},
            r"must be among the declared classes \[0, 1, 5\], got \[2\]",
        ),
        (
            {"y_prob": "p*", "labels": [0, 1, 2, 3]},
            r"y_prob must have a column for each label, \[3\] not in",
        ),
        ({"y_pred": "t", "labels": [0, 1, 2, 2]}, "labels must not repeat"),
        ({"y_pred": "t", "calibration": "x.parquet"}, "calibration and target need y_prob"),
        ({"y_pred": "t", "confidence_level": 2}, "confidence_level must be between 0 and 1"),
        ({"y_pred": "t", "positive": 1}, "positive=1 needs two classes"),
        (
            {"y_pred": "t", "grouping": Grouping({"a": [0], "b": [1]})},
            "must be among the declared classes",
        ),
        (
            {"y_pred": "t", "row_ids": "w"},
            "row_ids must be a column of integers or strings, got Float64 in 'w'",
        ),
        (
            {"y_prob": "p*", "calibration": FRAME[["y", "p0"]]},
            r"calibration scores: y_prob must be a column.*'p1'",
        ),
        (
            {"y_prob": "p*", "calibration": (Y[:3], P[:2])},
            "calibration scores must have one row per label",
        ),
        (
            {"y_prob": "p*", "target": FRAME.assign(p1=2.0)},
            r"target must be in \[0, 1\], got values such as 2.0 in 300",
        ),
        (
            {"y_prob": "p*", "calibration": FRAME.assign(y=Y + 1)},
            r"calibration y has labels that are not in",
        ),
    ],
)
def test_wrong_columns_and_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        evaluate_table(FRAME, y_true="y", **options)


def test_wrong_kinds() -> None:
    for options in (
        {"y_pred": 3},
        {"y_prob": P},
        {"y_prob": 3},
        {"y_pred": "t", "sample_weight": FRAME["w"]},
    ):
        with pytest.raises(
            TypeError, match=r"must be the name of a column|must be a column's name"
        ):
            evaluate_table(FRAME, y_true="y", **options)
    with pytest.raises(TypeError, match="grouping must be a Grouping, got dict"):
        evaluate_table(FRAME, y_true="y", y_pred="t", grouping={"a": [1]})  # type: ignore[arg-type]
    for table in (P, 3, None, [1, 2]):
        with pytest.raises(TypeError, match="table must be a path, a glob"):
            evaluate_table(table, y_true="y", y_pred="t")
    dates = FRAME.assign(y=pd.Timestamp("2024-01-01"))
    with pytest.raises(
        ValueError, match="y_true must contain integers, strings, booleans or floats, got Datetime"
    ):
        evaluate_table(dates, y_true="y", y_pred="t")
    with pytest.raises(ValueError, match="y_prob must contain numbers, got String in column 'p1'"):
        evaluate_table(FRAME.assign(p1="a"), y_true="y", y_prob="p*")


@pytest.mark.parametrize("engine", ENGINES)
def test_empty_tables_and_single_classes(engine: str, tmp_path: Path) -> None:
    for number, (frame, text) in enumerate(
        (
            (FRAME[:0], "the table must have at least one row, got none"),
            (
                FRAME[FRAME["y"] == 1].assign(t=1),
                r"at least two classes are needed, got only \[1\]",
            ),
            (FRAME.assign(w=0.0), "sample_weight must be above 0 in at least one row"),
        )
    ):
        (folder := tmp_path / str(number)).mkdir()
        with pytest.raises(ValueError, match=text):
            evaluate_table(
                as_table(engine, frame, folder), y_true="y", y_pred="t", sample_weight="w"
            )
    y, _, p = random_problem(1, k=2)
    held = pd.DataFrame({"y": y, "s": p[:, 1]})
    with pytest.raises(
        ValueError,
        match=r"calibration must have labels of both \[0, 1\], got \d+ labels like 1 only",
    ):
        evaluate_table(held, y_true="y", y_prob="s", calibration=held[held["y"] == 1])


@pytest.mark.slow
def test_files_that_are_not_there_or_not_what_they_seem(tmp_path: Path) -> None:
    def refused(kind: type[Exception], table: Any, text: str) -> None:
        with pytest.raises(kind, match=text):
            evaluate_table(table, y_true="y", y_pred="t")

    refused(FileNotFoundError, tmp_path / "none.parquet", "no file can be read at .*none.parquet")
    refused(FileNotFoundError, f"{tmp_path}/*.parquet", "no file can be read at")
    refused(FileNotFoundError, tmp_path, "has no .parquet")
    refused(ValueError, tmp_path / "a.json", "a file must end in .parquet")
    (tmp_path / "bad.parquet").write_bytes(b"this is no Parquet file")
    refused(ValueError, tmp_path / "bad.parquet", "could not be read as Parquet")
    FRAME.to_csv(tmp_path / "a.csv")
    refused(
        ValueError,
        [str(tmp_path / "a.csv"), str(tmp_path / "bad.parquet")],
        "must all be Parquet or all CSV",
    )
    text = "y,t,w\n" + "1,0,1\n0,1,2\n" * 30_000 + "0,1,x\n"
    (tmp_path / "late.csv").write_text(text)
    with pytest.raises(ValueError, match="the table could not be read: "):
        evaluate_table(tmp_path / "late.csv", y_true="y", y_pred="t", sample_weight="w")


@pytest.mark.slow
def test_several_files_in_a_list(tmp_path: Path) -> None:
    FRAME[:100].to_parquet(tmp_path / "a.parquet")
    FRAME[100:].to_parquet(tmp_path / "b.pq")
    found = evaluate_table(
        [tmp_path / "a.parquet", str(tmp_path / "b.pq")], y_true="y", y_prob="p*"
    )
    assert_same(found, evaluate(Y, y_prob=P))
    assert_same(evaluate_table(tmp_path, y_true="y", y_prob="p*"), evaluate(Y, y_prob=P))


@pytest.mark.parametrize("kind", ["Int32", "Int64"])
def test_missing_integers_of_dask_are_counted(kind: str) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"y": pd.array([1, None, 2, 1], dtype=kind), "t": [1, 2, 1, 1]})
    with pytest.raises(ValueError, match="y_true must not have missing labels, got 1 in 4 rows"):
        evaluate_table(dd.from_pandas(frame, npartitions=2), y_true="y", y_pred="t")
