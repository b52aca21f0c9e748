"""Sample weights: numbers of equal rows or sampling weights, told by their type or by ``weights_are``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

from cmtrack import Accumulator, Evaluation, Grouping, evaluate, evaluate_table, paired_differences
from cmtrack.cli import main
from cmtrack.metrics import wilson
from support.problems import random_guesses, random_labels, random_problem, random_scores
from support.tables import EVERY_SOURCE, as_table

N = 400
HEAVY = np.arange(N) >= 360
Y = random_labels(N)
T = random_guesses(Y, 2, np.where(HEAVY, 0.4, 0.98), 1)  # .3 and .01 of them wrong
P = random_scores(T, 2.5, 2)
W = np.where(HEAVY, 20, 1)
FRAME = pd.DataFrame(
    {"y": Y, "t": T, "p": P, "floats": W.astype(float), "integers": W, "halves": W + 0.5}
)
ACCURACY = "multiclass/accuracy"


def numbers(evaluation: Evaluation) -> dict[str, Any]:
    return {
        **evaluation.standard_errors,
        **{f"{n} ends": ends for n, ends in evaluation.intervals.items()},
    }


def same(one: Evaluation, other: Evaluation) -> None:
    assert one.metrics == pytest.approx(other.metrics, rel=1e-9, nan_ok=True)
    assert numbers(one).keys() == numbers(other).keys()
    for name, found in numbers(one).items():
        assert found == pytest.approx(numbers(other)[name], rel=1e-8, abs=1e-12), name


# --- what weights are ----------------------------------------------------------------------------------------


def test_whole_floats_are_no_repeated_rows() -> None:
    """Survey weights of 1.0 and 20.0: as repeated rows the interval covers .39 where .95 is stated."""
    given = evaluate(Y, T, sample_weight=FRAME["floats"])
    scaled = evaluate(Y, T, sample_weight=FRAME["floats"] * 1.0001)
    assert given.weights_are == scaled.weights_are == "sampling"
    assert given.intervals[ACCURACY] == pytest.approx(scaled.intervals[ACCURACY], rel=1e-6)
    repeated = evaluate(Y, T, sample_weight=W)
    assert repeated.weights_are == "frequency"
    width, narrow = (np.ptp(e.intervals[ACCURACY]) for e in (given, repeated))
    assert width > 3 * narrow
    assert (
        repeated.intervals[ACCURACY]
        == evaluate(np.repeat(Y, W), np.repeat(T, W)).intervals[ACCURACY]
    )


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        pytest.param(W.tolist(), "frequency", id="list of int"),
        pytest.param(W.astype(np.uint8), "frequency", id="uint8"),
        pytest.param(W > 1, "frequency", id="bool"),
        pytest.param(pd.Series(W).astype("Int64"), "frequency", id="nullable"),
        pytest.param(pa.array(W), "frequency", id="arrow"),
        pytest.param(W.astype(float).tolist(), "sampling", id="list of float"),
        pytest.param(W.astype(np.float32), "sampling", id="float32"),
        pytest.param(pd.Series(W).astype("Float64"), "sampling", id="nullable floats"),
        pytest.param(None, None, id="none"),
    ],
)
def test_the_type_decides(weights: Any, kind: str | None) -> None:
    assert evaluate(Y, T, sample_weight=weights).weights_are == kind


@pytest.mark.parametrize(("column", "kind"), [("floats", "frequency"), ("integers", "sampling")])
def test_weights_are_what_is_said(column: str, kind: str) -> None:
    other = {"floats": "integers", "integers": "floats"}[column]
    said = evaluate(Y, y_prob=P, sample_weight=FRAME[column], weights_are=kind)
    same(said, evaluate(Y, y_prob=P, sample_weight=FRAME[other]))
    assert said.weights_are == kind
    table = evaluate_table(FRAME, y_true="y", y_prob="p", sample_weight=column, weights_are=kind)
    same(said, table)
    assert table.weights_are == kind


def test_wrong_kinds_are_refused() -> None:
    rule = r'sample_weight must be whole numbers below 2\*\*63 with weights_are="frequency", got (values such as )?1\.5'
    with pytest.raises(ValueError, match=f"{rule} at row 0"):
        evaluate(Y, T, sample_weight=FRAME["halves"], weights_are="frequency")
    with pytest.raises(ValueError, match=f"{rule} in {N} of {N} rows"):
        evaluate_table(
            FRAME, y_true="y", y_pred="t", sample_weight="halves", weights_are="frequency"
        )
    with pytest.raises(ValueError, match=rule):
        Accumulator([0, 1], weights_are="frequency").update(Y, T, sample_weight=FRAME["halves"])
    with pytest.raises(
        ValueError, match='weights_are must be "frequency", "sampling" or None, got \'counts\''
    ):
        evaluate(Y, T, sample_weight=W, weights_are="counts")


def check_columns(table: Any) -> None:
    for column, kind in (("integers", "frequency"), ("floats", "sampling")):
        found = evaluate_table(table, y_true="y", y_prob="p", sample_weight=column)
        assert found.weights_are == kind
        same(found, evaluate(Y, y_prob=P, sample_weight=FRAME[column]))


@pytest.mark.slow
@pytest.mark.parametrize("engine", EVERY_SOURCE)
def test_the_type_of_a_column_decides_in_every_source(engine: str, tmp_path: Path) -> None:
    check_columns(as_table(engine, FRAME, tmp_path))


def test_sums_of_counts_in_duckdb_are_frequencies() -> None:
    import duckdb

    rows = duckdb.from_arrow(pa.Table.from_pandas(FRAME))
    # the former are decimals to Arrow
    sums = rows.aggregate("y, t, p, sum(integers) as n, sum(floats) as w")
    assert (
        evaluate_table(sums, y_true="y", y_pred="t", sample_weight="n").weights_are == "frequency"
    )
    assert evaluate_table(sums, y_true="y", y_pred="t", sample_weight="w").weights_are == "sampling"


# --- kinds that are not mixed ------------------------------------------------------------------------------


def test_evaluations_of_two_kinds_do_not_merge() -> None:
    parts = [
        evaluate(Y[:200], T[:200], sample_weight=W[:200]),
        evaluate(Y[200:], T[200:], sample_weight=W[200:] / 2),
    ]
    with pytest.raises(
        ValueError, match="evaluations must have weights of one kind, got frequency and sampling"
    ):
        parts[0] + parts[1]
    plain = evaluate(Y[:200], T[:200])
    assert (plain + parts[0]).weights_are == "frequency"
    assert (parts[1] + plain).weights_are == "sampling"
    ones = evaluate(Y, T, sample_weight=np.r_[np.ones(200), W[200:] / 2])
    same(parts[1] + plain, ones)


def test_an_accumulator_takes_one_kind() -> None:
    seen = Accumulator([0, 1])
    seen.update(Y[:100], T[:100])
    seen.update(Y[100:200], T[100:200], sample_weight=W[100:200])
    with pytest.raises(
        ValueError, match="every batch must have weights of one kind, got frequency and sampling"
    ):
        seen.update(Y[200:], T[200:], sample_weight=FRAME["floats"][200:])
    assert seen.n_rows == 200
    other = Accumulator([0, 1])
    other.update(Y[200:], T[200:], sample_weight=FRAME["floats"][200:])
    with pytest.raises(
        ValueError, match="accumulators must have weights of one kind, got frequency and sampling"
    ):
        seen + other
    weights = np.r_[np.ones(100, int), W[100:200]]
    same(seen.compute(), evaluate(Y[:200], T[:200], sample_weight=weights))
    assert seen.compute().weights_are == "frequency"
    both = Accumulator([0, 1], weights_are="sampling")
    both.update(Y[:200], T[:200], sample_weight=W[:200])
    both.update(Y[200:], T[200:], sample_weight=FRAME["floats"][200:])
    same(both.compute(), evaluate(Y, T, sample_weight=FRAME["floats"]))


def test_rows_of_two_kinds_are_not_paired() -> None:
    whole, floats = (
        evaluate(Y, T, sample_weight=FRAME[column]) for column in ("integers", "floats")
    )
    apart, same_kind = (paired_differences(whole, other) for other in (floats, whole))
    assert (apart.paired, apart.reason) == (False, "the sample weights differ")
    assert (same_kind.paired, same_kind.reason) == (True, "")


# --- where it is said ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_kind_is_kept_and_shown(tmp_path: Path) -> None:
    for column, kind in (("integers", "frequency"), ("floats", "sampling")):
        judged = evaluate(Y, y_prob=P, sample_weight=FRAME[column])
        loaded = Evaluation.load(judged.save(tmp_path / kind))
        assert loaded == judged
        assert loaded.weights_are == kind
        assert f"400 rows ({kind} weight 1,160)" in repr(loaded)
        assert f"400 rows ({kind} weight 1,160)" in loaded._repr_html_()
        page = judged.report(tmp_path / f"{kind}.html").read_text()
        assert f"400 rows ({kind} weight 1,160)" in page
        assert {
            "frequency": "a weight is a number of identical rows",
            "sampling": "robust (sandwich)",
        }[kind] in page
    assert "weight" not in repr(evaluate(Y, T))


def test_files_of_before_say_what_their_numbers_took_weights_for(tmp_path: Path) -> None:
    for weights, kind in ((W, "frequency"), (FRAME["halves"], "sampling"), (None, None)):
        data = json.loads(evaluate(Y, T, sample_weight=weights).to_json())
        assert data.pop("weights_are", None) == kind
        assert Evaluation.from_data(data).weights_are == kind
    damaged = json.loads(evaluate(Y, T, sample_weight=W).to_json()) | {"weights_are": "sampling"}
    with pytest.raises(ValueError, match="must have sums of squares"):
        Evaluation.from_data(damaged)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "flags", "kind"),
    [
        ("integers", [], "frequency"),
        ("floats", ["--weights-are", "frequency"], "frequency"),
    ],
)
def test_the_command_line(column: str, flags: list[str], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    FRAME.to_csv(path, index=False)
    given = [
        str(path),
        "--y-true",
        "y",
        "--y-pred",
        "t",
        "--weight",
        column,
        *flags,
        "--output",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(main, ["evaluate", *given], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert Evaluation.load(tmp_path / "out").weights_are == kind


# --- errors of shares ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights", [W * 1.0001, W.astype(float), np.random.default_rng(5).gamma(1.0, 1.0, N)]
)
@pytest.mark.parametrize("shape", ["two classes", "four classes in two groups"])
def test_errors_of_shares_are_those_of_their_influence(weights: np.ndarray, shape: str) -> None:
    y, p, grouping = Y, P, None
    if shape != "two classes":
        y, _, p = random_problem(6, N)
        grouping = Grouping({"a": [0, 1], "b": [2, 3]}, "strict")
    judged = evaluate(y, y_prob=p, sample_weight=weights, grouping=grouping)
    for name, error in judged.standard_errors.items():
        psi = judged.influence(name)
        assert psi is not None
        by_rows = judged.rows.design.standard_error(psi)
        assert by_rows == pytest.approx(error, rel=1e-9, abs=1e-12), name


def test_the_interval_of_a_weighted_share_is_of_the_samples_that_its_error_tells() -> None:
    weights = W * 1.0001
    judged = evaluate(Y, T, sample_weight=weights)
    hit = (Y == T).astype(float)
    share = float(weights @ hit) / weights.sum()
    error = math.sqrt(float(weights**2 @ (hit - share) ** 2)) / weights.sum()
    assert judged.standard_errors[ACCURACY] == pytest.approx(error, rel=1e-12)
    wanted = wilson(share, share * (1 - share) / error**2)
    assert judged.intervals[ACCURACY] == pytest.approx(wanted, rel=1e-12)
    kish = weights.sum() ** 2 / (weights**2).sum()
    # the errors are in the heavier stratum
    assert error > 1.1 * math.sqrt(share * (1 - share) / kish)


def test_a_share_without_errors_has_kishs_size() -> None:
    judged = evaluate(Y, Y, sample_weight=W * 1.5)
    kish = W.sum() ** 2 / (W**2).sum()
    assert judged.intervals[ACCURACY] == pytest.approx(wilson(1.0, kish))
    assert judged.standard_errors[ACCURACY] == 0
