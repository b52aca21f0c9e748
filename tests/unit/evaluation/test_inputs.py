"""Every form that labels, probabilities and weights come in gives the same evaluation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name

from cmtrack import (
    Accumulator,
    ConfusionMatrix,
    Evaluation,
    Grouping,
    estimate_prevalence,
    evaluate,
)
from cmtrack.metrics import decode_label, encode_label
from cmtrack.names import as_sentence
from support.problems import random_problem

pl = pytest.importorskip("polars")

Y, PRED, P = random_problem(7, n=60, k=3)
TEXT = np.array(["ant", "bee", "cat"])


def as_text(codes: Any) -> list[str]:
    return [str(TEXT[c]) for c in codes]


INTEGERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda v: v.tolist(),
    "tuple": lambda v: tuple(v.tolist()),
    "int64": lambda v: v,
    "int8": lambda v: v.astype(np.int8),
    "uint64": lambda v: v.astype(np.uint64),
    "float": lambda v: v.astype(float),
    "object": lambda v: v.astype(object),
    "column": lambda v: v[:, None],
    "wide": lambda v: v * 10**12,
    "negative": lambda v: v - 1,
    "pandas": lambda v: pd.Series(v, index=np.arange(len(v))[::-1]),
    "pandas Int64": lambda v: pd.Series(v, dtype="Int64"),
    "pandas arrow": lambda v: pd.Series(v, dtype="int64[pyarrow]"),
    "pandas categorical": lambda v: pd.Series(v).astype("category"),
    "pandas frame of one column": lambda v: pd.DataFrame({"y": v}),
    "polars": lambda v: pl.Series(v),
    "arrow": lambda v: pa.array(v),
    "arrow chunked": lambda v: pa.chunked_array([v[:20], v[20:]]),
}
STRINGS: dict[str, Callable[[list[str]], Any]] = {
    "list": lambda v: v,
    "numpy": np.array,
    "object": lambda v: np.array(v, dtype=object),
    "pandas": pd.Series,
    "pandas object": lambda v: pd.Series(v, dtype=object),
    "pandas string[pyarrow]": lambda v: pd.Series(v, dtype="string[pyarrow]"),
    "pandas categorical": lambda v: pd.Series(v).astype("category"),
    "pandas Categorical": pd.Categorical,
    "pandas categorical index": lambda v: pd.CategoricalIndex(v),
    "polars": pl.Series,
    "polars Categorical": lambda v: pl.Series(v, dtype=pl.Categorical),
    "polars Enum": lambda v: pl.Series(v, dtype=pl.Enum(list(TEXT))),
    "arrow": pa.array,
    "arrow large": lambda v: pa.array(v, pa.large_string()),
    "arrow chunked": lambda v: pa.chunked_array([v[:7], v[7:]]),
    "arrow dictionary": lambda v: pa.array(v).dictionary_encode(),
    "arrow chunked dictionary": lambda v: pa.chunked_array(
        [pa.array(v[:7]).dictionary_encode(), pa.array(v[7:]).dictionary_encode()]
    ),
}


@pytest.mark.parametrize("form", INTEGERS)
def test_integer_labels(form: str) -> None:
    expected = ConfusionMatrix.from_predictions(Y, PRED)
    matrix = ConfusionMatrix.from_predictions(INTEGERS[form](Y), INTEGERS[form](PRED))
    np.testing.assert_array_equal(matrix.counts, expected.counts)
    assert len(matrix.labels) == 3
    if form not in ("wide", "negative"):
        assert matrix.labels == (0, 1, 2)
    assert all(type(label) in (int, float) for label in matrix.labels)


@pytest.mark.parametrize("form", STRINGS)
def test_text_labels(form: str) -> None:
    matrix = ConfusionMatrix.from_predictions(
        STRINGS[form](as_text(Y)), STRINGS[form](as_text(PRED))
    )
    np.testing.assert_array_equal(matrix.counts, ConfusionMatrix.from_predictions(Y, PRED).counts)
    assert matrix.labels == ("ant", "bee", "cat")
    assert all(type(label) is str for label in matrix.labels)
    assert matrix.total == 60


@pytest.mark.parametrize("form", STRINGS)
def test_forms_mix(form: str) -> None:
    matrix = ConfusionMatrix.from_predictions(as_text(Y), STRINGS[form](as_text(PRED)))
    np.testing.assert_array_equal(matrix.counts, ConfusionMatrix.from_predictions(Y, PRED).counts)


@pytest.mark.parametrize(
    "form",
    [list, np.array, pd.Series, pl.Series, pa.array, lambda v: pd.Series(v, dtype="boolean")],
    ids=["list", "numpy", "pandas", "polars", "arrow", "pandas boolean"],
)
def test_boolean_labels(form: Callable[[Any], Any]) -> None:
    matrix = ConfusionMatrix.from_predictions(
        form([True, False, True, True]), form([True, False, False, True])
    )
    assert matrix.labels == (False, True)
    assert matrix.counts.tolist() == [[1, 0], [1, 2]]
    assert evaluate(form([True, True]), form([True, False])).positive is True


def test_categories_declare_order_and_absent_classes() -> None:
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    y, pred = pd.Series(["low", "high"], dtype=kind), pd.Series(["low", "low"], dtype=kind)
    assert ConfusionMatrix.from_predictions(y, pred).labels == ("low", "mid", "high")
    evaluation = evaluate(y, pred)
    assert np.isnan(evaluation.metrics["class/mid/recall"])
    assert evaluation.undefined["class/mid/recall"] == "no actual rows"
    assert evaluation.undefined["class/mid/precision"] == "never predicted"
    assert any(
        "“mid” has no rows: ratios of this class are undefined" in warning
        for warning in evaluation.warnings
    )
    enum = pl.Enum(["low", "mid", "high"])
    assert ConfusionMatrix.from_predictions(
        pl.Series(["low", "high"], dtype=enum), ["low", "low"]
    ).labels == ("low", "mid", "high")


def test_an_order_that_only_categories_state_is_remarked_where_columns_of_scores_follow_it() -> (
    None
):
    y, p = ["yes", "no", "no"], [[0.1, 0.9], [0.8, 0.2], [0.7, 0.3]]
    unsorted = pd.Categorical(y, ["yes", "no"])
    remark = "labels= is not given: the columns of the scores are read in the order of the labels' categories"
    assert f"{remark}, ['yes', 'no']; the columns of" in evaluate(unsorted, y_prob=p).warnings[0]
    quiet: list[tuple[Any, dict[str, Any]]] = [
        (pd.Categorical(y), {"y_prob": p}),
        (unsorted, {"y_prob": p, "labels": ["no", "yes"]}),
        (unsorted, {"y_prob": dict(zip(["no", "yes"], np.transpose(p), strict=True))}),
        (unsorted, {"y_pred": unsorted}),
    ]
    for labels, more in quiet:
        assert not any(remark in warning for warning in evaluate(labels, **more).warnings)


@pytest.mark.parametrize("labels", [{"no", "yes"}, frozenset({"no", "yes"})])
def test_labels_in_no_order_are_refused(labels: Any) -> None:
    with pytest.raises(
        ValueError, match=r"labels must be in the order of .* got a set: \['no', 'yes'\]"
    ):
        evaluate(["yes", "no"], y_prob=[0.9, 0.1], labels=labels)


def test_dictionary_encoding_is_no_order() -> None:
    """Arrow numbers values as they appear; only an ordered dictionary says what comes first."""
    y = pa.array(["yes", "no", "yes"]).dictionary_encode()
    assert ConfusionMatrix.from_predictions(y, y).labels == ("no", "yes")
    ordered = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0]), pa.array(["yes", "no"]), ordered=True
    )
    assert ConfusionMatrix.from_predictions(ordered, ordered).labels == ("yes", "no")


def test_absent_classes_by_labels() -> None:
    p = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.6, 0.1, 0.2], [0.2, 0.5, 0.1, 0.2]])
    evaluation = evaluate([0, 1, 0], y_prob=p, labels=[0, 1, 2, 3])
    m = evaluation.metrics
    assert evaluation.confusion_matrix.counts.shape == (4, 4)
    assert m["multiclass/recall_macro"] == pytest.approx((0.5 + 1) / 2)
    for name in ("class/3/f1", "spcc/ovr/2", "prevalence/3/calibrated"):
        assert np.isnan(m[name])
        assert evaluation.undefined[name]
    assert m["prevalence/3/expected"] == pytest.approx(0.4 / 3)
    assert m["prevalence/3/actual"] == 0


@pytest.mark.parametrize(
    "form", [np.array, pd.Index, pd.Series, list], ids=["array", "index", "series", "list"]
)
def test_labels_may_be_what_classifiers_hold(form: Callable[[Any], Any]) -> None:
    y = ["a", "b", "a", "b"]
    p = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.6, 0.4, 0.0], [0.8, 0.1, 0.1]]
    evaluation = evaluate(y, y_prob=p, labels=form(["a", "b", "c"]))  # as in labels=model.classes_
    assert evaluation.labels == ("a", "b", "c")
    assert evaluation.confusion_matrix.counts.tolist() == [[2, 0, 0], [1, 1, 0], [0, 0, 0]]


def test_absent_positive_class_is_undefined_not_absent() -> None:
    evaluation = evaluate([0, 0, 0], y_prob=[0.1, 0.4, 0.8], labels=[0, 1])
    for name in (
        "binary/recall",
        "binary/roc_auc",
        "spcc/binary",
        "prevalence/calibrated",
        "prevalence/calibrated_bias",
    ):
        assert np.isnan(evaluation.metrics[name]), name
        assert evaluation.undefined[name], name
    assert evaluation.metrics["binary/specificity"] == pytest.approx(2 / 3)
    assert evaluation.metrics["prevalence/expected"] == pytest.approx(1.3 / 3)
    assert evaluation.prevalence is None
    assert (evaluation.to_frame().set_index("metric")["undefined"] != "").sum() == len(
        evaluation.undefined
    )


def test_group_without_classes_in_the_data() -> None:
    grouping = Grouping({"low": [0, 1], "high": [2, 3]}, "strict")
    evaluation = evaluate(
        [0, 1, 1], y_prob=[[0.6, 0.4], [0.7, 0.3], [0.1, 0.9]], labels=[0, 1], grouping=grouping
    )
    assert evaluation.binary is not None
    assert evaluation.binary._asdict() == {"tp": 0, "fn": 0, "imp": 0, "fp": 0, "tn": 2, "imn": 1}
    assert np.isnan(evaluation.metrics["binary/roc_auc"])


# --- probabilities -----------------------------------------------------------------------------------------

FRAME = {"cat": P[:, 2], "ant": P[:, 0], "bee": P[:, 1]}  # out of order
PROBABILITIES: dict[str, Any] = {
    "array": P,
    "list": P.tolist(),
    "float32": P.astype(np.float32),
    "mapping": FRAME,
    "pandas": pd.DataFrame(FRAME),
    "pandas arrow": pd.DataFrame(FRAME).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(FRAME),
    "arrow": pa.table(FRAME),
}


def same(one: Evaluation, other: Evaluation, **tolerance: float) -> None:
    assert one.metrics == pytest.approx(other.metrics, nan_ok=True, **(tolerance or {"rel": 1e-12}))
    assert one.labels == other.labels
    assert one.positive == other.positive


@pytest.mark.parametrize("form", PROBABILITIES)
def test_probabilities(form: str) -> None:
    expected = evaluate(as_text(Y), y_prob=P)
    got = evaluate(as_text(Y), y_prob=PROBABILITIES[form])
    same(got, expected, **({"rel": 1e-4, "abs": 1e-5} if form == "float32" else {}))


def test_columns_may_spell_labels_that_are_numbers() -> None:
    frame = pd.DataFrame(P[:, ::-1], columns=["2", "1", "0"])
    same(evaluate(Y, y_prob=frame), evaluate(Y, y_prob=P))
    keep = Y != 2
    got = evaluate(Y[keep], y_prob=frame[keep])
    assert got.labels == (0, 1, 2)
    same(got, evaluate(Y[keep], y_prob=P[keep], labels=[0, 1, 2]))


BINARY_Y, _, BINARY_P = random_problem(3, n=50, k=2)


@pytest.mark.parametrize(
    "form",
    [
        np.array,
        list,
        pd.Series,
        pl.Series,
        pa.array,
        lambda v: np.array(v)[:, None],
        lambda v: pd.DataFrame({"any name": v}),
    ],
    ids=["numpy", "list", "pandas", "polars", "arrow", "column", "frame of one column"],
)
def test_one_column_is_the_positive_class(form: Callable[[Any], Any]) -> None:
    last = evaluate(BINARY_Y, y_prob=BINARY_P)
    assert last.positive == 1
    same(evaluate(BINARY_Y, y_prob=form(BINARY_P[:, 1])), last)
    first = evaluate(BINARY_Y, y_prob=BINARY_P, positive=0)
    assert first.positive == 0
    same(evaluate(BINARY_Y, y_prob=form(BINARY_P[:, 0]), positive=0), first)
    assert first.metrics["binary/roc_auc"] == pytest.approx(
        last.metrics["binary/roc_auc"], abs=1e-12
    )
    assert first.metrics["binary/recall"] == last.metrics["binary/specificity"]
    assert first.metrics["prevalence/actual"] == pytest.approx(
        1 - last.metrics["prevalence/actual"]
    )


@pytest.mark.slow
def test_one_column_is_the_positive_group_of_two_classes() -> None:
    """Whether the call or the grouping names it."""
    named = Grouping({"x": [0], "y": [1]}, positive="x")
    expected = evaluate(BINARY_Y, y_prob=BINARY_P, grouping=named)
    assert expected.positive == "x"
    same(evaluate(BINARY_Y, y_prob=BINARY_P[:, 0], grouping=named), expected)
    by_call = evaluate(
        BINARY_Y, y_prob=BINARY_P[:, 0], grouping=Grouping({"x": [0], "y": [1]}), positive="x"
    )
    same(by_call, expected)
    assert by_call.roc is not None
    assert by_call.roc.auc > 0.5
    calibrated = evaluate(
        BINARY_Y,
        y_prob=BINARY_P[:, 0],
        grouping=named,
        calibration=(BINARY_Y, BINARY_P[:, 0]),
        target=BINARY_P[:, 0],
    )
    whole = evaluate(
        BINARY_Y, y_prob=BINARY_P, grouping=named, calibration=(BINARY_Y, BINARY_P), target=BINARY_P
    )
    same(calibrated, whole)


def test_positive_may_be_a_numpy_scalar() -> None:
    evaluation = evaluate(BINARY_Y, y_prob=BINARY_P, positive=np.int64(0))
    assert type(evaluation.positive) is int
    assert Grouping({"a": [0], "b": [1]}, positive=np.str_("a")).to_dict()["positive"] == "a"


def test_single_precision_rows_that_sum_to_a_little_more_than_one() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [1, 20, 20])
    p = np.zeros((41, 3), dtype=np.float32)
    p[:, 1] = rng.random(41) * 0.9
    p[:, 2] = 1.0000002 - p[:, 1]
    grouping = Grouping({"rest": [0], "own": [1, 2]})
    evaluation = evaluate(y, y_prob=p, grouping=grouping)
    assert evaluation.metrics["prevalence/expected_count_sd_labels_only"] == 0
    assert evaluation.metrics["prevalence/expected"] <= 1
    one = evaluate([0, 1, 1], y_prob=np.array([0.25, 0.5, 1.0000001], dtype=np.float32))
    assert one.metrics["binary/tp"] == 1
    assert one.metrics["prevalence/expected"] == pytest.approx(1.75 / 3)


def test_predictions_by_default_are_the_first_of_the_largest() -> None:
    p = [[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.1, 0.1, 0.8]]
    evaluation = evaluate([0, 1, 2], y_prob=p)
    assert evaluation.confusion_matrix.counts.tolist() == np.eye(3).tolist()
    assert evaluate([0, 1], y_prob=[0.5, 0.5]).confusion_matrix.counts.tolist() == [[1, 0], [1, 0]]
    own = evaluate([0, 1, 2], [2, 2, 2], y_prob=p)
    assert own.metrics["multiclass/accuracy"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("form", [np.array, pd.Series, pl.Series, pa.array, list])
def test_weights(form: Callable[[Any], Any]) -> None:
    w = np.linspace(0.1, 3, 60).tolist()
    got = evaluate(Y, PRED, sample_weight=form(w))
    assert got.confusion_matrix.counts.dtype == np.float64
    assert got.n_samples == pytest.approx(sum(w))
    assert evaluate(Y, PRED, sample_weight=form([2] * 60)).n_samples == 120


# --- estimate_prevalence -----------------------------------------------------------------------------------


def test_estimate_prevalence_forms() -> None:
    y, p = ["no" if c == 0 else "yes" for c in BINARY_Y], BINARY_P
    expected = estimate_prevalence(p[:, 1], calibration=(y, p[:, 1]))
    frame = {"yes": p[:, 1], "no": p[:, 0]}
    for scores in (
        p,
        p[:, [1]],
        pd.Series(p[:, 1]),
        frame,
        pd.DataFrame(frame),
        pl.DataFrame(frame),
    ):
        got = estimate_prevalence(scores, calibration=(pd.Series(y), scores))
        assert (got.value, got.low, got.high) == (expected.value, expected.low, expected.high)
    first = estimate_prevalence(p, calibration=(y, p), positive="no")
    assert first.positive == "no"
    assert first.value == pytest.approx(1 - expected.value, abs=0.05)
    frame_out = expected.to_frame()
    assert frame_out.loc[0, "value"] == expected.value
    assert frame_out.loc[0, "positive"] == "yes"


def test_prevalence_that_is_not_identified() -> None:
    e = estimate_prevalence([0.5] * 10, calibration=([0, 1] * 20, [0.5] * 40))
    assert np.isnan([e.value, e.low, e.high, e.count, e.fit_pvalue]).all()
    assert "not identified" in e.undefined["value"]
    assert np.isnan(e.shares).all()
    assert np.isnan(e.posterior([0.5])).all()
    evaluation = evaluate([0, 1] * 20, y_prob=[0.5] * 40)
    assert "not identified" in evaluation.undefined["prevalence/calibrated"]
    assert "prevalence/calibrated" not in evaluation.intervals
    assert "prevalence_likelihood" not in evaluation.figures()
    assert e.figure().axes[0].get_xlim() == (0, 1)


def test_weak_identification_is_said() -> None:
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 60)
    e = estimate_prevalence(rng.random(300), calibration=(y, rng.random(120)))
    assert any("weakly identified" in warning for warning in e.warnings)


def test_scores_that_do_not_fit_are_said() -> None:
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 400)
    e = estimate_prevalence(rng.normal(1, 0.1, 2000), calibration=(y, rng.normal(y * 2)))
    assert e.fit_pvalue < 1e-6
    assert any("do not fit" in warning and "training rows" in warning for warning in e.warnings)
    assert "trained on" in (estimate_prevalence.__doc__ or "")
    assert "held out or out of fold" in (evaluate.__doc__ or "")


# --- names -------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "",
        ".",
        "..",
        " ",
        "_u",
        "_u_",
        "_u2f_",
        "a/../b",
        "x.",
        " x",
        "a" * 300,
        "é" * 300,
        "100%",
        "=1",
        "\n",
        "_.",
        "u_u",
    ]
)


@pytest.mark.slow
@given(TEXTS)
def test_encoded_labels_are_legal_and_reversible(text: str) -> None:
    name = encode_label(text)
    _validate_metric_name(f"class/{name}/recall")
    _validate_metric_name(name)
    assert "/" not in name
    assert re.fullmatch(r"[\w .-]+", name)
    if len(name) < 80:
        assert decode_label(name) == text


@given(TEXTS, TEXTS)
def test_encoded_labels_do_not_collide(one: str, other: str) -> None:
    assert (encode_label(one) == encode_label(other)) == (one == other)


def test_metric_names_of_odd_labels_are_legal() -> None:
    y, pred = ["a/b", "", "ä ö", "_u"], ["a/b", "a/b", "ä ö", "_u"]
    grouping = Grouping({"one/two": ["a/b", ""], "..": ["ä ö", "_u"]}, name="step: 1")
    for name in evaluate(y, pred, grouping=grouping).metrics:
        _validate_metric_name(name)


# --- sizes -------------------------------------------------------------------------------------------------


def test_counts_beyond_single_precision() -> None:
    """10^8 and more per cell: int64 counts, float64 ratios."""
    w = [400_000_001, 99_999_999, 100_000_003, 300_000_007]
    evaluation = evaluate([0, 0, 1, 1], [0, 1, 0, 1], sample_weight=w)
    matrix = evaluation.confusion_matrix
    assert matrix.counts.dtype == np.int64
    assert matrix.counts.ravel().tolist() == w
    tn, fp, fn, tp = w
    exact = (tp * tn - fp * fn) / ((tp + fn) * (tp + fp) * (tn + fp) * (tn + fn)) ** 0.5
    assert evaluation.metrics["multiclass/matthews_corrcoef"] == pytest.approx(exact, rel=1e-14)
    assert evaluation.metrics["binary/matthews_corrcoef"] == pytest.approx(exact, rel=1e-14)
    twice = matrix + matrix
    assert twice.counts.ravel().tolist() == [2 * v for v in w]
    huge = ConfusionMatrix(np.array([[2**53, 1], [0, 2**53]]), (0, 1)) + ConfusionMatrix(
        np.eye(2, dtype=int), (0, 1)
    )
    assert huge.counts[0, 0] == 2**53 + 1
    assert huge.reduce(Grouping({"a": [0], "b": [1]})).counts[1, 1] == 2**53 + 1


def test_many_blocks_are_counted_exactly() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300_000)
    pred = rng.integers(0, 3, 300_000)
    w = rng.integers(0, 1000, 300_000)
    matrix = ConfusionMatrix.from_predictions(y, pred, sample_weight=w)
    expected = [[w[(y == i) & (pred == j)].sum() for j in range(3)] for i in range(3)]
    assert matrix.counts.tolist() == expected


def test_merge_of_matrices_with_other_labels() -> None:
    a = ConfusionMatrix.from_predictions(["a", "b"], ["a", "a"])
    b = ConfusionMatrix.from_predictions(["b", "c"], ["c", "c"])
    merged = a + b
    assert merged.labels == ("a", "b", "c")
    assert merged.counts.tolist() == [[1, 0, 0], [1, 0, 1], [0, 0, 1]]
    assert sum([a, b]) == merged
    with pytest.raises(ValueError, match="same labels in the same order"):
        ConfusionMatrix(np.eye(2), ("b", "a")) + b


# --- views -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_frames_and_representations(tmp_path: Path) -> None:
    grouping = Grouping({"low": [0, 1], "high": [2]}, "strict", name="cut")
    evaluation = evaluate(Y, y_prob=P, grouping=grouping)
    frame = evaluation.to_frame()
    assert list(frame.columns) == ["metric", "value", "low", "high", "better", "undefined"]
    assert dict(zip(frame["metric"], frame["value"], strict=True)) == pytest.approx(
        evaluation.metrics, nan_ok=True
    )
    with_interval = frame.dropna(subset="low")
    assert set(with_interval["metric"]) == set(evaluation.intervals)
    assert "positive 'high'" in repr(evaluation)
    page = evaluation._repr_html_()
    assert page.startswith("<div><p><b>The model finds ")
    assert "area under the ROC curve for “high”" in page
    assert "positive group “high”" in page
    low, high = (f"{end:.3f}" for end in evaluation.intervals["binary/recall"])
    assert f"<b>{evaluation.metrics['binary/recall']:.3f}</b> [{low}, {high}]" in page
    assert all(escape(as_sentence(text)) in page for text in evaluation.warnings)
    strange = evaluate(
        ["<b>x</b>", "<b>x</b>", "y"], ["<b>x</b>"] * 3, positive="<b>x</b>"
    )._repr_html_()
    assert "<b>x</b>" not in strange
    assert "undefined" in strange
    layout = evaluation.reduced["cut"].to_frame()
    assert list(layout.columns) == ["low", "high", "IM"]
    assert layout.loc["IM", "IM"] == 0
    assert layout.loc["low", "IM"] == layout.loc["IM", "low"] == evaluation.reduced[0].mismatches[0]
    assert layout.index.name == "actual"
    assert layout.columns.name == "predicted"
    with pytest.raises(KeyError, match="there is no step named 'other'; the steps are \\['cut'\\]"):
        evaluation.reduced["other"]
    assert evaluation.confusion_matrix.to_frame().to_numpy().sum() == 60
    assert evaluation.roc is not None
    assert len(evaluation.roc.to_frame()) == len(evaluation.roc.thresholds)
    assert set(evaluation.figures()) >= {"confusion_matrix", "reduced_cut", "roc"}
    with pytest.raises(TypeError):
        hash(evaluation)


def test_presets() -> None:
    nps, csat = Grouping.nps(), Grouping.csat()
    assert nps.groups == {"detractor": tuple(range(7)), "passive": (7, 8), "promoter": (9, 10)}
    assert csat.groups == {"dissatisfied": (1, 2), "neutral": (3,), "satisfied": (4, 5)}
    evaluation = evaluate([0, 7, 10, 3], [1, 8, 9, 9], grouping=nps)
    assert evaluation.labels == tuple(range(11))
    assert evaluation.metrics["reduced/nps/accuracy"] == 0.75


@pytest.mark.parametrize("ending", ["yaml", "yml", "json"])
def test_grouping_from_a_file(ending: str, tmp_path: Path) -> None:
    import json

    text = {
        "json": json.dumps({"steps": [
            {"groups": {"low": {"from": 0, "to": 2}, "mid": [3], "high": [4, 5]}, "name": "three",
             "mode": {"low": "strict", "high": [[4, 5]]}},
            {"groups": {"rest": ["low", "mid"], "top": ["high"]}, "mode": "strict", "positive": "rest"},
        ]}),
    }.get(ending, """
steps:
  - name: three
    groups: {low: {from: 0, to: 2}, mid: [3], high: [4, 5]}
    mode: {low: strict, high: [[4, 5]]}
  - groups: {rest: [low, mid], top: [high]}
    mode: strict
    positive: rest
""")  # fmt: skip
    path = tmp_path / f"grouping.{ending}"
    path.write_text(text)
    first = Grouping(
        {"low": [0, 1, 2], "mid": [3], "high": [4, 5]},
        {"low": "strict", "high": [(4, 5)]},
        name="three",
    )
    expected = first.then(
        Grouping({"rest": ["low", "mid"], "top": ["high"]}, "strict", positive="rest")
    )
    assert Grouping.from_file(path) == expected
    assert expected.positive == "rest"


def test_step_names_are_unique_in_a_chain() -> None:
    chain = Grouping({"a": [0], "b": [1, 2]}).then(Grouping({"x": ["a"], "y": ["b"]}))
    assert [step.name for step in chain.steps] == ["2_groups", "2_groups_2"]


@pytest.mark.slow
def test_an_estimate_of_prevalence_reads_as_words_in_a_notebook() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    s = np.clip(0.3 * y + rng.normal(0.35, 0.2, 300), 0, 1)
    estimate = estimate_prevalence(
        s[:100], calibration=(np.where(y == 1, "<b>", "a"), s), positive="<b>"
    )
    page = estimate._repr_html_()
    assert "The share of “&lt;b&gt;” in the population is " in page
    assert (
        f": {estimate.count:.0f} [{estimate.count_low:.0f}, {estimate.count_high:.0f}] of these 100 "
        in page
    )
    assert '<img alt="" src="data:image/png;base64,' in page
    assert f"{100 * estimate.shares[0]:.3g}% of the variance comes from the 100 scores" in page
    flat = estimate_prevalence(np.full(10, 0.5), calibration=(y, np.full(300, 0.5)))._repr_html_()
    assert flat.count("not identified") == 1
    assert "nan" not in flat
    two = estimate_prevalence(np.repeat([0, 1], 50), calibration=(y, y))
    assert two.undefined == {
        "fit_pvalue": "two bins leave no degree of freedom, so the fit cannot be tested"
    }
    assert "Two bins leave no degree of freedom, so the fit cannot be tested." in two._repr_html_()
    without_image = re.sub(r"base64,[^\"]*", "", two._repr_html_())
    assert "nan" not in without_image


class Tensor:
    """What torch gives out of a training: NumPy may not read it before it is detached and on the CPU."""

    dtype = "torch.float32"

    def __init__(self, values, steps=("detach", "cpu", "numpy")) -> None:
        self.values, self.steps, self.shape = values, steps, np.shape(values)

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")

    def __getattr__(self, name):
        if name != self.__dict__.get("steps", ("",))[0]:
            raise AttributeError(name)
        rest = Tensor(self.values, self.steps[1:])
        return lambda: rest if rest.steps else self.values


def test_tensors_that_require_a_gradient_are_read() -> None:
    y, p = np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.4, 0.1])
    assert evaluate(Tensor(y), y_prob=Tensor(p)) == evaluate(y, y_prob=p)


@pytest.mark.parametrize(
    ("given", "taken"),
    [(None, None), (0, 0.0), (1, 1.0), (0.25, 0.25), (math.inf, math.inf), (np.float32(0.5), 0.5)],
)
def test_a_threshold_lies_between_0_and_1_or_is_infinite(given: Any, taken: float | None) -> None:
    evaluation = evaluate([0, 1], y_prob=[0.3, 0.7], threshold=given)
    assert evaluation.decision_threshold == taken
    assert type(evaluation.decision_threshold) in (float, type(None))


def test_what_is_no_threshold_is_refused() -> None:
    def decided(threshold: Any) -> Evaluation:
        return evaluate([0, 1], y_prob=[0.3, 0.7], threshold=threshold)

    for other in (True, False, "0.5", [0.5], 1j):
        with pytest.raises(TypeError, match="threshold must be a number"):
            decided(other)
    for beyond in (-math.inf, math.nan):
        with pytest.raises(ValueError, match="threshold must be finite, or infinity"):
            decided(beyond)
    for beyond in (-1e-9, 1 + 1e-9):
        with pytest.raises(ValueError, match="threshold must be between 0 and 1, or infinity"):
            decided(beyond)


def with_reference(shares: Any, labels: Any = ("a", "b", "c")) -> Evaluation:
    return evaluate(["a", "b"], ["a", "b"], labels=labels, reference=shares)


def test_shares_sum_to_1_and_go_by_label_or_in_order() -> None:
    assert with_reference([0, 0.25, 0.75]).reference == (0.0, 0.25, 0.75)
    assert with_reference({"a": 1, np.str_("b"): 0}).reference == (1.0, 0.0, 0.0)
    near = (0.5, 0.5 + 0.9e-6)
    assert with_reference(near, "ab").reference == near
    for wrong in (
        [0.5, 0.4],
        [0.5, 0.5 + 2e-6],
        [1.5, -0.5],
        {"a": 1.1, "b": -0.1},
        [math.nan, 1.0],
        [],
    ):
        text = "reference must be shares between 0 and 1 that sum to 1"
        with pytest.raises(ValueError, match=text):
            with_reference(wrong, "ab")
    for wrong in (["a"], {"a": None}, 1):
        text = "reference must be shares of the classes, by label or in their order"
        with pytest.raises(TypeError, match=text):
            with_reference(wrong, "ab")


def test_shares_by_label_are_0_where_none_is_named() -> None:
    assert with_reference(None, "ab").reference is None
    assert with_reference({"b": 1.0}, "ab").reference == (0.0, 1.0)
    text = r"reference must be for the labels \['a', 'b'\], got 'c'"
    with pytest.raises(ValueError, match=text):
        with_reference({"b": 0.5, "c": 0.5}, "ab")
    for shares in ((1.0,), (0.5, 0.25, 0.25)):
        with pytest.raises(ValueError, match=f"one share for each of 2 labels, got {len(shares)}"):
            with_reference(shares, "ab")


def weighted(weights: Any, kind: str | None = None) -> Evaluation:
    """Three rows with weights."""
    return evaluate([0, 1, 1], [0, 1, 0], sample_weight=weights, weights_are=kind)


def test_weights_are_refused_from_the_first_wrong_row_on() -> None:
    for values, says in (
        ([1, 2], r"must have shape \(3,\), got \(2,\)"),
        ([[1], [2], [3]], r"must have shape \(3,\), got \(3, 1\)"),
        ([1, -1, -2], "not negative, got -1.0 at row 1"),
        ([0, 0.0, 0], "above 0 in at least one row, got 0 in all"),
        ([1.0, math.nan, math.inf], "must be finite, got nan at row 1"),
    ):
        with pytest.raises(ValueError, match=says):
            weighted(values)
    for values in ([1.0, 2.0, 2.5], [1.0, 2.0, 2.0**63]):
        with pytest.raises(
            ValueError, match=rf"below 2\*\*63.*got {re.escape(str(values[2]))} at row 2"
        ):
            weighted(values, "frequency")
    with pytest.raises(ValueError, match="below 2"):
        weighted(np.array([1, 2**63, 1], dtype=np.uint64))
    most = evaluate([0], [0], labels=[0, 1], sample_weight=[2.0**62], weights_are="frequency")
    assert most.confusion_matrix.counts.tolist() == [[2**62, 0], [0, 0]]


def test_extreme_weights_are_refused() -> None:
    for extreme in (9e-31, 1.1e30):
        says = f"0 or between 1e-30 and 1e+30, got {extreme:g} at row 1"
        with pytest.raises(ValueError, match=re.escape(says)):
            weighted([0.0, extreme, 1.0])
    for near in (1e-30, 1e30):
        assert weighted([0.0, near, near]).metrics["multiclass/accuracy"] == 0.5


def test_a_batch_may_have_weights_of_0_only() -> None:
    seen = Accumulator([0, 1])
    seen.update([0, 1], [0, 0], sample_weight=[0, 0])
    seen.update([], [], sample_weight=np.zeros(0, dtype=int))
    seen.update([0, 1], [0, 1], sample_weight=[2, 3])
    counts = seen.compute().confusion_matrix.counts
    assert (counts.tolist(), counts.dtype.kind) == ([[2, 0], [0, 3]], "i")


def test_kinds_of_weights_go_together_where_they_are_one() -> None:
    plain, frequency, sampling = weighted(None), weighted([1, 2, 3]), weighted([1.0, 2.0, 3.0])
    assert (plain.weights_are, frequency.weights_are) == (None, "frequency")
    assert sampling.weights_are == "sampling"
    assert weighted([1, 2, 3], "sampling").weights_are == "sampling"
    for ours, theirs, both in (
        (plain, plain, None),
        (sampling, plain, "sampling"),
        (plain, frequency, "frequency"),
        (sampling, sampling, "sampling"),
    ):
        assert (ours + theirs).weights_are == both
    text = "evaluations must have weights of one kind, got frequency and sampling weights"
    with pytest.raises(ValueError, match=text):
        frequency + sampling
    for kind in ("other", "Frequency"):
        with pytest.raises(ValueError, match=rf"weights_are must be .* got '{kind}'"):
            weighted(None, kind)


def test_numbers_are_read_as_they_are() -> None:
    y = [0, 1, 1]
    whole = evaluate(y, y_prob=[0.0, 1.0, 0.0])
    for numbers in (
        np.array([0, 1, 0], dtype=np.int8),
        np.array([False, True, False]),
        np.array(["0", "1", "0.0"], dtype=object),
    ):
        assert evaluate(y, y_prob=numbers) == whole
    given = np.array([[0.3, 0.7], [0.6, 0.4], [0.5, 0.5]])
    rows = evaluate(y, y_prob=given).rows
    assert rows is not None
    assert rows.source is not None
    assert np.shares_memory(rows.source.columns[0], given)  # not copied
    for values, says in (
        (3, "sample_weight must be an array, got the single value 3"),
        ([[1], [1, 2]], "sample_weight must contain numbers in a regular array, got list$"),
        (
            np.array(["a"]),
            "sample_weight must contain numbers in a regular array, got ndarray of <U1$",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            weighted(values)
    for values, says in (
        (["a", 1], "got list; labels are given as y_pred="),
        (np.array([["a"]]), "got ndarray of <U1$"),
    ):
        with pytest.raises(ValueError, match=says):
            evaluate(y, y_prob=values)
    with pytest.raises(ValueError, match="scores must be finite, got inf at row 1"):
        estimate_prevalence([[0.1, 0.9], [0.3, math.inf]], calibration=(BINARY_Y, BINARY_P))
    with pytest.raises(ValueError, match="must not have masked entries, got 2, the first at row 1"):
        weighted(np.ma.MaskedArray([1, 2, 3], [False, True, True]))


@pytest.mark.parametrize("form", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_a_target_go_by_their_names(form: Callable[[Any], Any]) -> None:
    """Of a frame or a mapping, whose length is not its number of rows."""
    calibration = (as_text(Y), P)
    expected = estimate_prevalence(P[:25], calibration=calibration, density="bins")
    target = form({name: column[:25] for name, column in FRAME.items()})
    found = estimate_prevalence(target, calibration=calibration, density="bins")
    assert list(found.by_class) == ["ant", "bee", "cat"]
    for label, share in expected.by_class.items():
        assert found.by_class[label] == pytest.approx(share)
    assert found.n_target == 25


def test_a_long_list_in_an_error_text_is_cut() -> None:
    for rows, shown in (
        (10, r"\[0, 1, 2, 3, 4, 5, 6, 7, 8, 9\] \(10 rows\)"),
        (11, r"\[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … \(11 in all\)\] \(11 rows\)"),
    ):
        with pytest.raises(ValueError, match=f"y_true has labels that are not in .*: {shown}"):
            evaluate(np.arange(rows), np.full(rows, 20), labels=[20, 21])


# --- rows of pandas ----------------------------------------------------------------------------------------


def indexed(*keys: Any) -> pd.Series:
    return pd.Series([f"at {key}" for key in keys], index=list(keys))


def pairs_of(y_true: Any, y_pred: Any) -> list[tuple[str, str]]:
    """The actual and predicted label of each row."""
    rows = evaluate(y_true, y_pred).rows
    assert rows is not None
    named = np.array(rows.labels)
    return list(zip(named[rows.actual].tolist(), named[rows.predicted].tolist(), strict=True))


def matched(*keys: Any) -> list[tuple[str, str]]:
    """Pairs of rows that went by their keys."""
    return [(f"at {key}", f"at {key}") for key in keys]


def test_rows_go_by_their_index_where_it_names_them() -> None:
    first, default = indexed("a", "b", "c"), pd.Series(["at b", "at c", "at a"])
    assert pairs_of(first, indexed("c", "a", "b")) == matched("a", "b", "c")
    by_position = [("at a", "at b"), ("at b", "at c"), ("at c", "at a")]
    assert pairs_of(first, default) == pairs_of(first, default.tolist()) == by_position
    assert pairs_of(default, first) == [(theirs, ours) for ours, theirs in by_position]
    twice = pd.Series(["at a", "at b"], index=["a", "a"])
    assert pairs_of(twice, twice[::-1]) == [("at a", "at b"), ("at b", "at a")]
    with pytest.raises(ValueError, match="must have the same length"):
        evaluate(first, indexed("c", "a"))
    step = pd.Series(["at 1", "at 2", "at 3"], index=pd.RangeIndex(1, 4))
    assert pairs_of(step, indexed(3, 1, 2)) == matched(1, 2, 3)
    by_two = pd.Series(["at 0", "at 2", "at 4"], index=pd.RangeIndex(0, 6, 2))
    assert pairs_of(by_two, indexed(4, 0, 2)) == matched(0, 2, 4)


def test_columns_of_a_mapping_go_by_their_own_index() -> None:
    y = pd.Series([0, 1, 1], index=list("abc"))
    scores = pd.Series([0.1, 0.6, 0.7], index=list("abc"))
    moved = {0: 1 - scores[["b", "c", "a"]], 1: scores}
    assert evaluate(y, y_prob=moved) == evaluate(y, y_prob=scores)
    lacking = {0: 1 - scores, 1: scores.rename({"b": "z"})}
    with pytest.raises(ValueError, match=r"the index of y_prob\[1\] lacks the keys \['b'\]"):
        evaluate(y, y_prob=lacking)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "says"),
    [
        (
            indexed("a", "b"),
            indexed("b", "z"),
            r"the index of y_pred lacks the keys \['a'\] of y_true",
        ),
        (
            indexed("b", "a"),
            indexed("b", "z"),
            r"the index of y_pred lacks the keys \['a'\] of y_true",
        ),
        (indexed("a", "b", "c"), indexed("a", "a", "b"), "contain keys more than once"),
        (indexed("a", "a", "b"), indexed("a", "b", "c"), "contain keys more than once"),
        (pd.Series(["at 0", "at 1"]), indexed(1, 0), "one is the default 0 to n - 1"),
    ],
)
def test_rows_in_an_order_that_nobody_knows_are_refused(
    y_true: Any, y_pred: Any, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        evaluate(y_true, y_pred)


def test_rows_are_refused_where_the_labels_cannot_say_the_order() -> None:
    weights = pd.Series([1.0, 2.0], index=["b", "a"])
    with pytest.raises(ValueError, match="y_true has no index to match by"):
        evaluate(["at a", "at b"], indexed("a", "b"), sample_weight=weights)


def test_a_default_index_contradicts_only_its_own_keys() -> None:
    default = pd.Series(["at 1", "at 0"])
    assert pairs_of(default, indexed(0, 1)) == [("at 1", "at 0"), ("at 0", "at 1")]
    for keys in ((1, 1), (1, 2)):
        other = pd.Series(["at 0", "at 1"], index=list(keys))
        assert pairs_of(default, other) == [("at 1", "at 0"), ("at 0", "at 1")]
    with pytest.raises(ValueError, match="must have the same length"):
        evaluate(default, indexed(2, 1, 0))
