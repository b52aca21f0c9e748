"""``evaluate_table``: labels of every kind, merging, digests, what is shown and where things lie."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmtrack import Evaluation, Grouping, compare, evaluate, evaluate_table
from cmtrack.statistics import LabelDigest
from support.problems import random_guesses, random_labels, random_problem
from support.tables import as_table, assert_same

pytestmark = pytest.mark.slow

Y, BEST, P = random_problem(11, n=400, k=3)
PREDICTED = np.roll(BEST, 1)
NAMES = np.array(["no", "maybe", "yes"])
FRAME = pd.DataFrame(
    {"y": Y, "t": PREDICTED, "id": np.arange(400) - 7, **{f"p{k}": P[:, k] for k in range(3)}}
)
BY_NAME = {str(name): f"p{k}" for k, name in enumerate(NAMES)}


# -- labels -----------------------------------------------------------------------------------------------------------


def test_categories_are_in_their_order() -> None:
    pl = pytest.importorskip("polars")
    kind = pd.CategoricalDtype([*NAMES, "never"])
    y, t = pd.Series(NAMES[Y]).astype(kind), pd.Series(NAMES[PREDICTED]).astype(kind)
    expected = evaluate(y, t)
    assert expected.labels == ("no", "maybe", "yes", "never")
    frame = pd.DataFrame({"y": y, "t": t})
    assert_same(evaluate_table(frame, y_true="y", y_pred="t"), expected)
    assert_same(evaluate_table(as_table("dask", frame, Path()), y_true="y", y_pred="t"), expected)
    order = pl.Enum([*NAMES, "never"])
    enums = pl.DataFrame({"y": NAMES[Y], "t": NAMES[PREDICTED]}, schema={"y": order, "t": order})
    for table in (enums, enums.lazy()):
        assert_same(evaluate_table(table, y_true="y", y_pred="t"), expected)


def test_categories_without_an_order_are_sorted() -> None:
    pl = pytest.importorskip("polars")
    expected = evaluate(NAMES[Y], NAMES[PREDICTED])
    columns = {"y": NAMES[Y], "t": NAMES[PREDICTED]}
    arrow = pa.table(
        {name: pa.array(values).dictionary_encode() for name, values in columns.items()}
    )
    for table in (arrow, pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Categorical))):
        assert_same(evaluate_table(table, y_true="y", y_pred="t"), expected)


def test_numbers_as_categories() -> None:
    frame = FRAME.assign(y=FRAME["y"].astype("category"), t=FRAME["t"].astype("category"))
    expected = evaluate(frame["y"], frame["t"])
    assert expected.labels == (0, 1, 2)
    for engine in ("pandas", "dask", "pyarrow"):
        assert_same(
            evaluate_table(as_table(engine, frame, Path()), y_true="y", y_pred="t"), expected
        )


def test_one_categorical_column_of_two() -> None:
    y = pd.Series(NAMES[Y]).astype(pd.CategoricalDtype(NAMES))
    frame = pd.DataFrame({"y": y, "t": NAMES[PREDICTED]})
    assert_same(evaluate_table(frame, y_true="y", y_pred="t"), evaluate(y, NAMES[PREDICTED]))


def test_floats_and_the_order_of_labels() -> None:
    pl = pytest.importorskip("polars")
    y, t = Y * 1.0, PREDICTED * 1.0
    assert_same(
        evaluate_table(pl.DataFrame({"y": y, "t": t}), y_true="y", y_pred="t"), evaluate(y, t)
    )
    y, t = y + 0.5, t + 0.5
    frame = pl.DataFrame({"y": y, "t": t})
    order = [2.5, 0.5, 9.5, 1.5]
    found = evaluate_table(frame, y_true="y", y_pred="t", labels=order)
    assert_same(found, evaluate(y, t, labels=order))


def test_classes_that_only_the_columns_or_groups_name() -> None:
    rows = FRAME[FRAME["y"] < 2]
    p = rows[["p0", "p1", "p2"]].to_numpy()
    assert_same(
        evaluate_table(rows, y_true="y", y_prob="p*"),
        evaluate(rows["y"], y_prob={k: p[:, k] for k in range(3)}),
    )
    groups = Grouping({"a": [0, 1], "b": [2]})
    given = evaluate_table(rows, y_true="y", y_prob=["p0", "p1", "p2"], grouping=groups)
    assert_same(given, evaluate(rows["y"], y_prob=p, grouping=groups))


def test_one_column_of_a_family_is_the_probability_of_its_label() -> None:
    pl = pytest.importorskip("polars")
    y, _, p = random_problem(5, k=2)
    frame = pl.DataFrame({"y": y, "p_0": p[:, 0]})
    found = evaluate_table(frame, y_true="y", y_prob="p_*")
    assert_same(found, evaluate(y, y_prob=p[:, 0], positive=0))
    assert_same(
        evaluate_table(frame, y_true="y", y_prob="p_*", positive=1),
        evaluate(y, y_prob=np.column_stack((p[:, 0], 1 - p[:, 0]))),
    )


def test_rounding_errors_beyond_zero_and_one_are_cut_off() -> None:
    pl = pytest.importorskip("polars")
    p = np.array([[1 + 5e-7, -5e-7], [0.2, 0.8], [0.6, 0.4], [-1e-7, 1 + 1e-7]])
    frame = pl.DataFrame({"y": [0, 1, 1, 0], "a": p[:, 0], "b": p[:, 1]})
    assert_same(
        evaluate_table(frame, y_true="y", y_prob=["a", "b"]), evaluate([0, 1, 1, 0], y_prob=p)
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 4), st.booleans())
def test_any_problem(seed: int, k: int, digits: int, weighed: bool) -> None:
    pl = pytest.importorskip("polars")
    y, _, p = random_problem(seed, n=60, k=k, digits=digits)
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, 60) + (0.25 if weighed else 0)
    modes: Any = {
        "a": rng.choice(["strict", "relaxed"]),
        "b": [(c, d) for c in range(1, k) for d in range(1, c)],
    }
    grouping = Grouping({"a": [0], "b": range(1, k)}, modes, positive=str(rng.choice(["a", "b"])))
    frame = pl.DataFrame({"y": y, "w": weights, **{f"p{c}": p[:, c] for c in range(k)}})
    found = evaluate_table(frame, y_true="y", y_prob="p*", sample_weight="w", grouping=grouping)
    assert_same(found, evaluate(y, y_prob=p, sample_weight=weights, grouping=grouping))


# -- calibration and target -------------------------------------------------------------------------------------------


def test_arrays_beside_a_table_and_tables_of_other_engines(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    expected = evaluate(Y, y_prob=P, calibration=(Y[:200], P[:200]), target=P[200:])
    held, wanted = (
        as_table("parquet", FRAME[:200], tmp_path),
        pl.from_pandas(FRAME[200:].drop(columns="y")),
    )
    for calibration, target in (
        ((Y[:200], P[:200]), P[200:]),
        (held, wanted),
        (str(held), P[200:]),
    ):
        found = evaluate_table(
            FRAME, y_true="y", y_prob="p*", calibration=calibration, target=target
        )
        assert_same(found, expected)
    assert_same(
        evaluate_table(FRAME, y_true="y", y_prob="p*", calibration="cross-fit"),
        evaluate(Y, y_prob=P),
    )


# -- merging, keeping -------------------------------------------------------------------------------------------------


def test_a_table_merges_with_arrays_and_is_kept(tmp_path: Path) -> None:
    options: Any = {"grouping": Grouping({"a": [0], "b": [1, 2]}, "strict")}
    whole = evaluate_table(FRAME, y_true="y", y_prob="p*", **options)
    first = evaluate_table(FRAME[:150], y_true="y", y_prob="p*", **options)
    second = evaluate(Y[150:], y_prob=P[150:], **options)
    for merged in (first + second, second + first):
        assert_same(merged, evaluate(Y, y_prob=P, **options))
        assert merged.statistics.digest == whole.statistics.digest
    loaded = Evaluation.load(whole.save(tmp_path))
    assert loaded == whole
    assert_same(loaded, whole)
    assert loaded.labels_digest.startswith("u.")
    regrouped = evaluate_table(FRAME, y_true="y", y_prob="p*").regroup(options["grouping"])
    assert regrouped.reduced[0] == whole.reduced[0]


def test_the_digest_of_a_table_does_not_know_the_order() -> None:
    def digests(
        rows: pd.DataFrame, row_ids: str | None = "id"
    ) -> tuple[LabelDigest, LabelDigest | None]:
        kept = evaluate_table(rows, y_true="y", y_pred="t", row_ids=row_ids).statistics
        return kept.digest, kept.row_ids

    shuffled = FRAME.sample(frac=1, random_state=1)
    other = FRAME.assign(id=FRAME["id"] + 1)
    swapped = FRAME.assign(id=np.roll(FRAME["id"], 1))  # the same ids and labels, not together
    assert digests(shuffled) == digests(FRAME)
    assert digests(FRAME, None) == (digests(FRAME)[0], None)
    for rows in (other, swapped):
        assert digests(rows)[0] == digests(FRAME)[0]
        assert digests(rows)[1] != digests(FRAME)[1]
    merged = [a + b for a, b in zip(digests(FRAME[:99]), digests(FRAME[99:]), strict=True)]
    assert tuple(merged) == digests(FRAME)


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 30))
def test_unordered_digests_merge_with_sequences(sequence: list[str], cut: int) -> None:
    codes = np.array(["abc".index(v) for v in sequence], dtype=np.int64)
    whole = LabelDigest.unordered(np.bincount(codes, minlength=3), "abc")
    head, tail = (
        LabelDigest.from_codes(codes[:cut], "abc"),
        LabelDigest.from_codes(codes[cut:], "abc"),
    )
    loose = LabelDigest.unordered(np.bincount(codes[cut:], minlength=3), "abc")
    assert head + loose == loose + head == whole
    assert (head + tail).ordered
    assert not whole.ordered
    assert head + tail != whole
    for digest in (whole, head + tail):
        assert LabelDigest.parse(str(digest)) == digest


# -- progress, imports ------------------------------------------------------------------------------------------------


def test_progress_is_on_stderr_and_can_be_left_out(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = as_table("parquet", FRAME, tmp_path)
    for progress, shown in ((True, True), (False, False), (None, False)):
        evaluate_table(path, y_true="y", y_prob="p*", progress=progress)
        out, err = capfd.readouterr()
        assert out == ""
        assert ("rows (1 of 1)" in err and "400 rows" in err) == shown


def test_names_of_columns_do_not_collide_with_the_plan() -> None:
    pl = pytest.importorskip("polars")
    names = {
        "y": "actual",
        "t": "predicted",
        "p0": "p1",
        "p1": "p0",
        "p2": "weight",
        "id": "channel",
    }
    frame = pl.from_pandas(FRAME.rename(columns=names))
    found = evaluate_table(
        frame, y_true="actual", y_pred="predicted", y_prob=["p1", "p0", "weight"], row_ids="channel"
    )
    assert_same(found, evaluate(Y, PREDICTED, y_prob=P, row_ids=FRAME["id"]))


def test_frames_need_no_other_engine() -> None:
    code = (
        "import sys, polars, cmtrack\n"
        "frame = polars.DataFrame({'y': [0, 1, 1], 's': [.2, .7, .4]})\n"
        "assert cmtrack.evaluate_table(frame, y_true='y', y_prob='s').metrics\n"
        "assert not {'duckdb', 'dask', 'pyspark', 'mlflow', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_digest_without_its_content_is_still_read() -> None:
    """As evaluations were once written."""
    digest = LabelDigest.parse("00000000000000ff-12")
    assert (digest.value, digest.rows, digest.ordered) == (255, 12, True)
    assert LabelDigest.parse(str(digest)) == digest


def test_a_table_is_ranked_with_the_arrays_it_holds() -> None:
    pl = pytest.importorskip("polars")
    y = random_labels(300, 3)
    runs: dict[str, Evaluation] = {}
    for seed, (name, right) in enumerate((("arrays", 0.8), ("table", 0.7), ("others", 0.8)), 1):
        guess = random_guesses(y, 3, right, seed)
        if name == "table":
            runs[name] = evaluate_table(pl.DataFrame({"y": y, "p": guess}), y_true="y", y_pred="p")
        else:
            runs[name] = evaluate(y if name == "arrays" else (y + 1) % 3, guess)
    found = compare(runs, rank_by="multiclass/accuracy")
    assert sorted(len(ranking.runs) for ranking in found.rankings) == [1, 2]
