"""``evaluate_table`` gives the numbers of ``evaluate``, whichever engine holds the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from cmtrack import Grouping, evaluate, evaluate_table
from cmtrack.sources import open_source

# Inside: a stream's batches are replaced, to see that no rows are read.
from cmtrack.sources.duckdb import DuckDBStream

# Inside: as above, for files.
from cmtrack.sources.files import FileStream
from cmtrack.statistics import grid_edges
from support.problems import random_problem
from support.tables import ENGINES, as_table, assert_numbers, assert_same, assert_same_statistics

N, K = 700, 5
Y, BEST, P = random_problem(3, n=N, k=K, digits=3)
PREDICTED = np.roll(BEST, 1)
NAMES = np.array(["red", "green", "blue", "Älpler", "x y"])
WEIGHTS = np.random.default_rng(1).uniform(0, 3, N)
WHOLE = np.random.default_rng(2).integers(0, 4, N)
HYBRID = Grouping(
    {"a": [0, 1], "b": [2, 3, 4]}, {"a": "strict", "b": [(2, 3), (4, 2)]}, positive="a"
)
CHAIN = Grouping({"a": [0], "b": [1, 2], "c": [3, 4]}, "strict").then(
    Grouping({"d": ["a", "b"], "e": ["c"]})
)

FRAME = pd.DataFrame(
    {
        "y": Y,
        "name": NAMES[Y],
        "predicted": PREDICTED,
        "fraction": WEIGHTS,
        "times": WHOLE,
        "id": np.arange(N) * 10**11 - 5,
        "one": P[:, 1],
        **{f"p_{k}": P[:, k] for k in range(K)},
        **{f"q_{NAMES[k]}": P[:, k].astype(np.float32) for k in range(K)},
    }
)
SINGLE = P.astype(np.float32).astype(np.float64)

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "tops": ({}, {"y_prob": "p_*"}, {"y_prob": P}),
    "pairs": ({}, {"y_pred": "predicted"}, {"y_pred": PREDICTED}),
    "both": (
        {},
        {"y_pred": "predicted", "y_prob": "p_*", "sample_weight": "times"},
        {"y_pred": PREDICTED, "y_prob": P, "sample_weight": WHOLE},
    ),
    "hybrid": (
        {"grouping": HYBRID},
        {"y_prob": "p_*", "row_ids": "id"},
        {"y_prob": P, "row_ids": FRAME["id"]},
    ),
    "chain, weights": (
        {"grouping": CHAIN, "confidence_level": 0.9, "positive": "d"},
        {"y_prob": [f"p_{k}" for k in range(K)], "sample_weight": "fraction"},
        {"y_prob": P, "sample_weight": WEIGHTS},
    ),
}


@pytest.fixture(scope="module", params=ENGINES)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return as_table(request.param, FRAME, tmp_path_factory.mktemp("files"))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_engine_agrees_with_arrays(table: Any, case: str) -> None:
    options, columns, arrays = CASES[case]
    expected = evaluate(Y, **arrays, **options)
    assert_same(evaluate_table(table, y_true="y", **columns, **options), expected)


def test_texts_and_single_precision(table: Any) -> None:
    order = [str(name) for name in NAMES]
    expected = evaluate(NAMES[Y], y_prob=SINGLE, labels=order)
    assert_same(evaluate_table(table, y_true="name", y_prob="q_*", labels=order), expected)


@pytest.mark.slow
def test_calibration_and_target_tables(table: Any) -> None:
    by_label = {k: f"p_{k}" for k in range(K)}
    for grouping in (None, HYBRID):
        expected = evaluate(Y, y_prob=P, grouping=grouping, calibration=(Y, P), target=P)
        found = evaluate_table(
            table,
            y_true="y",
            y_prob=by_label,
            grouping=grouping,
            calibration=table,
            target=table,
            progress=False,
        )
        assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("grouping", [None, HYBRID])
@pytest.mark.parametrize(
    "engine", [name for name in ENGINES if name not in ("csv", "dask")]
)  # these know no lists
def test_lists(tmp_path: Path, engine: str, grouping: Grouping | None) -> None:
    table = as_table(engine, FRAME[["y"]].assign(p=list(P)), tmp_path)
    expected = evaluate(Y, y_prob=P, grouping=grouping)
    assert_same(evaluate_table(table, y_true="y", y_prob="p", grouping=grouping), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_booleans_and_one_column(tmp_path: Path, engine: str) -> None:
    y, _, p = random_problem(5, k=2)
    truth, score = y.astype(bool), p[:, 1]
    frame = pd.DataFrame({"y": truth, "s": score, "rest": 1 - score, "t": truth ^ (score > 0.8)})
    table = as_table(engine, frame, tmp_path)
    # one column is of the positive class
    for column, options in (("s", {}), ("rest", {"positive": False})):
        expected = evaluate(truth, frame["t"], y_prob=frame[column], **options)
        assert_same(
            evaluate_table(table, y_true="y", y_pred="t", y_prob=column, **options), expected
        )


# -- many rows: the grid ----------------------------------------------------------------------------------------------

_EDGES = grid_edges()
_TOPS = 1 / (1 + np.exp(-(np.arange(9, 64) / 4 - 4)))


def around(values: Any) -> Any:
    """Values with their neighbours on both sides."""
    return np.unique(
        np.clip(np.concatenate((values, np.nextafter(values, 0), np.nextafter(values, 1))), 0, 1)
    )


@pytest.mark.parametrize("engine", ["parquet", "polars", "dask", "spark"])
def test_scores_on_the_edges_of_the_grid(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if there were more rows than are counted by each score
    monkeypatch.setattr("cmtrack.statistics.scores.EXACT_ROWS", 100)
    extremes = [0.0, 5e-324, 1e-300, 1e-12, 6e-6, 1e-7, 1 - 1e-7, 1 - 1e-12, 1.0]
    scores = np.concatenate((around(_EDGES), around(np.arange(401) / 400), extremes))
    y = np.random.default_rng(0).integers(0, 2, len(scores))
    expected = evaluate(y, y_prob=scores)
    table = as_table(engine, pd.DataFrame({"y": y, "s": scores}), tmp_path)
    found = evaluate_table(table, y_true="y", y_prob="s")
    assert not found.statistics.scores.exact
    assert_same(found, expected)
    few = np.round(scores, 2)  # no cell has two different ones
    table = as_table(engine, pd.DataFrame({"y": y, "s": few}), tmp_path)
    found = evaluate_table(table, y_true="y", y_prob="s")
    assert found.statistics.scores.exact
    assert_same(found, evaluate(y, y_prob=few))


@pytest.mark.parametrize("engine", ["parquet", "polars", "dask", "spark"])
def test_most_probable_classes_on_the_edges_of_their_cells(engine: str, tmp_path: Path) -> None:
    top = around(_TOPS)
    top = top[top > 0.45]
    p = np.column_stack((top, (1 - top) * 0.6, (1 - top) * 0.4))
    p = np.concatenate((p, np.full((3, 3), 1 / 3), [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]))
    y = np.arange(len(p)) % 3
    table = as_table(
        engine, pd.DataFrame({"y": y, "a": p[:, 0], "b": p[:, 1], "c": p[:, 2]}), tmp_path
    )
    assert_same(evaluate_table(table, y_true="y", y_prob=["a", "b", "c"]), evaluate(y, y_prob=p))


@pytest.mark.parametrize("engine", ["parquet", "polars", "dask", "spark"])
def test_hardly_varying_and_constant_scores(engine: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    y = np.arange(900) % 3
    own = 0.999 + 1e-4 * rng.uniform(-1, 1, 900)
    p = np.full((900, 3), 0.0)
    p[np.arange(900), y] = own
    p[np.arange(900), (y + 1) % 3] = 1 - own
    p[y == 2] = [0.1, 0.2, 0.7]  # the same in every row
    groups = Grouping({"a": [0, 1], "b": [2]}, positive="a")
    table = as_table(
        engine, pd.DataFrame({"y": y, **{f"p{k}": p[:, k] for k in range(3)}}), tmp_path
    )
    for grouping in (None, groups):
        found = evaluate_table(table, y_true="y", y_prob="p*", grouping=grouping)
        expected = evaluate(y, y_prob=p, grouping=grouping)
        assert_same_statistics(found.statistics, expected.statistics)
        # errors of correlations so near to 1 are mere rounding
        assert_numbers(found.metrics, expected.metrics, 1e-9)
        assert not found.statistics.moments.m2[2].any()
        assert found.statistics.moments.mean[2].tolist() == [0.1, 0.2, 0.7]


@pytest.mark.parametrize("engine", ["parquet", "polars"])
def test_halves_round_to_the_even_neighbour(engine: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    # sums of a group end on half of the 12th decimal
    p = rng.multinomial(8192 * 1, [0.1] * 10, 600) / 8192
    y = rng.integers(0, 10, 600)
    grouping = Grouping({"a": range(9), "b": [9]}, {"a": "strict"}, positive="a")
    table = as_table(
        engine, pd.DataFrame({"y": y, **{f"p{k}": p[:, k] for k in range(10)}}), tmp_path
    )
    found = evaluate_table(table, y_true="y", y_prob="p*", grouping=grouping)
    assert_same(found, evaluate(y, y_prob=p, grouping=grouping))


@pytest.mark.parametrize(
    "layout", ["plain", "folders name columns", "kinds differ", "columns differ in case"]
)
def test_files_of_parquet_give_the_same_whoever_reads_them(layout: str, tmp_path: Path) -> None:
    for k in (0, 1):
        frame = pd.DataFrame({"y": np.arange(9) % 3, "p": np.arange(9) / 9 + k})
        if k and layout == "kinds differ":
            frame["y"] = frame["y"].astype("int8")
        if k and layout == "columns differ in case":
            frame = frame.rename(columns={"p": "P"})
        folder = tmp_path / (f"p=0.{k}" if layout == "folders name columns" else f"part {k}")
        folder.mkdir()
        frame.to_parquet(folder / "rows.parquet")
    source = open_source(tmp_path)
    assert isinstance(source, FileStream)
    read, other = (
        pa.Table.from_batches(list(batches(["p", "y"]))).sort_by(
            [("p", "ascending"), ("y", "ascending")]
        )
        for batches in (source.batches, super(FileStream, source).batches)
    )
    assert read.equals(other)
    assert read.num_rows == 18


def test_a_row_group_is_not_read_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {f"p_{k}": rng.random(1 << 19) for k in range(4)}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", use_dictionary=False)
    source = open_source(tmp_path)
    assert isinstance(source, FileStream)
    before = pa.total_allocated_bytes()
    held = max(pa.total_allocated_bytes() - before for _ in source.batches(list(columns)))
    assert held < (tmp_path / "rows.parquet").stat().st_size / 2


@pytest.mark.parametrize("kind", ["int8", "bool", "text", "one column"])
def test_labels_of_files_are_grouped_before_they_are_counted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values: Any = {"text": NAMES[Y], "bool": Y > 1}.get(kind, Y.astype(np.int8))
    shuffled = values if kind == "one column" else np.random.default_rng(3).permutation(values)
    frame = pd.DataFrame({'y "true"': values, "count_star()": shuffled})
    frame.to_parquet(tmp_path / "rows.parquet")
    names = {"y_true": 'y "true"', "y_pred": "count_star()"}
    expected = evaluate_table(frame, **names)
    monkeypatch.setattr(DuckDBStream, "batches", None)  # no rows are asked for
    assert evaluate_table(tmp_path / "rows.parquet", **names) == expected
    assert (
        evaluate_table(tmp_path / "rows.parquet", labels=list(expected.labels), **names) == expected
    )
