"""The kernel that counts rows of any origin: batches in any order and number, and sources of every kind."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmtrack import Grouping, evaluate, evaluate_table

# Inside: how rows come to the kernel in batches, and what a worker sends back, is hidden from a user.
from cmtrack.sources import Stream, batches, find_source

# Inside: what such a kernel is made with.
from cmtrack.statistics.counted_for import Counting
from support.problems import random_problem
from support.tables import ENGINES, as_table, assert_example_agrees, assert_same, ray_data

N, K = 600, 4
Y, BEST, P = random_problem(21, n=N, k=K, digits=3)
PREDICTED = np.roll(BEST, 1)
NAMES = np.array([f"row {i:03}" for i in range(N)])
FRAME = pd.DataFrame(
    {
        "y": Y,
        "t": PREDICTED,
        "id": NAMES,
        "w": np.arange(N) % 3.0,
        **{f"p{k}": P[:, k] for k in range(K)},
    }
)
HALVES = Grouping({"a": [0, 3], "b": [1, 2]}, {"a": "strict"}, positive="b")


class Batches(Stream):
    """A source of one's own: batches of a table, cut and ordered as a test wants them."""

    def __init__(
        self, frame: pd.DataFrame, cuts: Iterable[int] = (), reverse: bool = False
    ) -> None:
        self.table = pa.Table.from_pandas(frame, preserve_index=False)
        self.ends = sorted({0, *cuts, self.table.num_rows})
        self.reverse = reverse
        self.read: list[list[str]] = []

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        self.read.append(names)
        parts = [
            self.table.select(names).slice(a, b - a)
            for a, b in zip(self.ends, self.ends[1:], strict=False)
        ]
        for part in reversed(parts) if self.reverse else parts:
            yield from part.combine_chunks().to_batches()


@pytest.fixture
def single_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch comes to the kernel as it is."""
    monkeypatch.setattr(batches.Work, "whole", lambda self, given: given)


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "classes": ({"y_prob": "p*"}, {"y_prob": P}),
    "two groups": ({"y_prob": "p*", "grouping": HALVES}, {"y_prob": P, "grouping": HALVES}),
    "labels as they come": ({"y_pred": "t"}, {"y_pred": PREDICTED}),
    "labels read first": ({"y_prob": [f"p{k}" for k in range(K)]}, {"y_prob": P}),
    "weights": (
        {"y_pred": "t", "y_prob": "p*", "sample_weight": "w"},
        {"y_pred": PREDICTED, "y_prob": P},
    ),
}


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=12, deadline=None)
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=30),
    reverse=st.booleans(),
    exact=st.sampled_from([50, 10**6]),
)
def test_any_batches_give_the_numbers_of_arrays(
    case: str, cuts: list[int], reverse: bool, exact: int
) -> None:
    columns, arrays = CASES[case]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches.Work, "whole", lambda self, given: given)
        # as if a table had more rows than are counted by each score
        patch.setattr("cmtrack.statistics.scores.EXACT_ROWS", exact)
        if case == "weights":
            arrays = arrays | {"sample_weight": FRAME["w"]}
        found = evaluate_table(Batches(FRAME, cuts, reverse), y_true="y", **columns)
        assert_same(found, evaluate(Y, **arrays))


def test_rows_are_read_once_where_the_classes_are_known() -> None:
    for columns, readings in (("p*", 1), ([f"p{k}" for k in range(K)], 2)):
        source = Batches(FRAME, [100])
        evaluate_table(source, y_true="y", y_prob=columns)
        assert len(source.read) == readings
        assert readings == 1 or source.read[0] == ["y"]  # the labels alone come first


@pytest.mark.usefixtures("single_batches")
def test_batches_of_whole_weights_beside_fractions() -> None:
    weights = np.where(np.arange(N) < 300, 2.0, 0.75)
    found = evaluate_table(
        Batches(FRAME.assign(w=weights), [300]), y_true="y", y_prob="p*", sample_weight="w"
    )
    assert_same(found, evaluate(Y, y_prob=P, sample_weight=weights))
    assert found.statistics.squares is not None


@pytest.mark.usefixtures("single_batches")
def test_faults_are_counted_over_all_batches() -> None:
    wrong = FRAME.copy()
    wrong.loc[[5, 250, 599], "p2"] = np.nan
    wrong.loc[[7], "p3"] = 1.5
    with pytest.raises(
        ValueError,
        match=rf"y_prob must be finite, got NaN or null in 3 of {N} rows \(column 'p2'\)",
    ):
        evaluate_table(Batches(wrong, range(50, N, 50)), y_true="y", y_prob="p*")
    wrong = FRAME.astype({"y": "float64"})
    wrong.loc[[5, 250, 599], "y"] = np.nan
    with pytest.raises(ValueError, match=f"y_true must not have missing labels, got 3 in {N} rows"):
        evaluate_table(Batches(wrong, range(50, N, 50)), y_true="y", y_pred="t")


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "spark"])
def test_row_ids_may_be_texts(engine: str, tmp_path: Path) -> None:
    expected = evaluate(Y, y_prob=P, row_ids=NAMES).statistics.row_ids
    found = evaluate_table(as_table(engine, FRAME, tmp_path), y_true="y", y_prob="p*", row_ids="id")
    assert expected is not None
    assert found.statistics.row_ids == expected.content_only
    with pytest.raises(ValueError, match=f"row_ids must not be null, got null in 1 of {N} rows"):
        evaluate_table(FRAME.assign(id=[None, *NAMES[1:]]), y_true="y", y_prob="p*", row_ids="id")


def test_a_tally_is_pickled_and_added() -> None:
    source = Batches(FRAME)
    columns = batches.Columns("y", scores=tuple(f"p{k}" for k in range(K)))
    kernel = batches.Kernel(Counting((0, 1, 2, 3)), {K: list(range(K))})
    packed = batches.Work(columns, kernel).packed(source.batches(columns.names))
    assert len(packed) < 100_000
    both = batches.unpacked(batches.packed_sum([packed, packed])).statistics((0, 1, 2, 3))
    twice = evaluate(np.tile(Y, 2), y_prob=np.tile(P, (2, 1)))
    assert both.matrix == twice.statistics.matrix
    assert both.tops == twice.statistics.tops
    with pytest.raises(ValueError, match="an error of a worker"):
        batches.unpacked(zlib.compress(pickle.dumps(ValueError("an error of a worker"))))


def test_ibis() -> None:
    table = as_table("ibis", FRAME, Path())
    found = evaluate_table(table, y_true="y", y_prob="p*", grouping=HALVES)
    assert_same(found, evaluate(Y, y_prob=P, grouping=HALVES))
    assert_same(evaluate_table(table, y_true="y", y_pred="t"), evaluate(Y, PREDICTED))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_ray(case: str) -> None:
    columns, arrays = CASES[case]
    arrays = arrays | ({"sample_weight": FRAME["w"]} if case == "weights" else {})
    table = as_table("ray", FRAME, Path())
    assert_same(evaluate_table(table, y_true="y", **columns), evaluate(Y, **arrays))
    wrong = as_table("ray", FRAME.assign(p1=np.nan), Path())
    with pytest.raises(ValueError, match=f"NaN or null in {N} of {N} rows"):
        evaluate_table(wrong, y_true="y", y_prob="p*")


@pytest.mark.slow
def test_ray_of_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    ray_data()
    for name in ("init", "shutdown"):  # the one that other tests have started
        monkeypatch.setattr(ray, name, lambda **_: None)
    assert_example_agrees("ray", tmp_path)


def test_what_streams_arrow_is_a_table() -> None:
    class Streams:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.Table.from_pandas(FRAME, preserve_index=False).__arrow_c_stream__(
                requested_schema
            )

    assert_same(evaluate_table(Streams(), y_true="y", y_prob="p*"), evaluate(Y, y_prob=P))
    assert find_source(P) is None
    with pytest.raises(TypeError, match="readable more than once, got RecordBatchReader"):
        evaluate_table(pa.Table.from_pandas(FRAME).to_reader(), y_true="y", y_prob="p*")
