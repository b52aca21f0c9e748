"""Rough sets: reference values, the theorems as properties, brute force by sets, and the boundary."""

from __future__ import annotations

import itertools
import math
import runpy
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmtrack import (
    ConfusionMatrix,
    Evaluation,
    GranuleTable,
    Grouping,
    evaluate,
    granule_table,
    rough_bounds,
)
from cmtrack.metrics import CATALOG, lookup
from cmtrack.plots import plot_rough_approximations
from support import ROOT
from support.problems import evaluate_counts, random_guesses, random_labels, rows_of

# Düntsch & Gediga (2019), Table 3
SETS: dict[str, list[Any]] = {
    "Price": ["high", "low", "low", "medium", "medium", "high"],
    "Guarantee": ["24 months", "6 months", "12 months", "12 months", "18 months", "12 months"],
    "Sound": ["Stereo", "Mono", "Stereo", "Stereo", "Stereo", "Stereo"],
    "Screen": [76, 66, 36, 51, 51, 51],
}
DECISION = ["high", "low", "low", "high", "high", "low"]


def table_of(counts: Any) -> GranuleTable:
    """The table of these counts, from rows."""
    counts = np.asarray(counts)
    granule, label = np.nonzero(counts)
    times = counts[granule, label]
    return granule_table(
        np.repeat(granule, times), np.repeat(label, times), labels=range(counts.shape[1])
    )


def random_counts(rng: np.random.Generator, sparse: float | None = None) -> np.ndarray:
    k, s = int(rng.integers(2, 6)), int(rng.integers(1, 9))
    counts = rng.integers(1, 5, (s, k)) * (
        rng.random((s, k)) < (rng.random() if sparse is None else sparse)
    )
    empty = ~counts.any(axis=1)
    counts[empty, rng.integers(0, k, empty.sum())] = 1
    return counts


# --- reference values -------------------------------------------------------------------------------------


def test_tv15_bounds_and_exact_values() -> None:
    """TV-15: Example 1 of Düntsch & Gediga (2019), with the corrected weights of equations 3.5 and 3.6."""
    table = table_of([[1, 1], [0, 1], [0, 1], [2, 0]])
    classifier = (0, 1, 1, 0)
    matrix = table.confusion_matrix(classifier)
    assert matrix.counts.T.tolist() == [[3, 1], [0, 2]]  # the paper has predicted classes in rows
    exact = table.approximations()
    assert exact.lower.tolist() == [2, 2]
    assert exact.upper.tolist() == [4, 4]
    assert exact.gamma == pytest.approx(4 / 6, abs=1e-15)
    assert exact.weighted_alpha == pytest.approx(0.5, abs=1e-15)
    bounds = table.bounds(classifier)
    assert bounds.condition_holds is True
    assert bounds.gamma_upper == pytest.approx(5 / 6, abs=1e-15)
    assert bounds.lower_upper_bound.tolist() == [2, 2]
    assert bounds.union.tolist() == [4, 3]
    assert bounds.upper_lower_bound.tolist() == [4, 4]
    assert bounds.majority_lower_upper_bound is not None
    assert bounds.majority_upper_lower_bound is not None
    assert bounds.majority_lower_upper_bound.tolist() == [2, 2]
    assert bounds.majority_upper_lower_bound.tolist() == [4, 4]
    assert bounds.alpha_upper == pytest.approx([0.75, 2 / 3], abs=1e-15)
    assert bounds.weighted_alpha_upper == pytest.approx(0.7142857143, abs=6e-11)
    alone = rough_bounds(matrix)
    assert alone.condition_holds is None
    assert alone.majority_lower_upper_bound is None
    assert alone.upper_lower_bound.tolist() == [4, 4]
    metrics = evaluate_counts(matrix.counts).metrics
    assert {name: metrics[name] for name in bounds.metrics} == bounds.metrics


def test_the_papers_decision_table() -> None:
    """Table 3 and Example 1: the partition {1,6} {2} {3} {4,5} is that of Price and Sound, and of no other set."""
    table = granule_table(SETS, DECISION, attributes=["Price", "Sound"])
    assert table.values == (
        ("high", "Stereo"),
        ("low", "Mono"),
        ("low", "Stereo"),
        ("medium", "Stereo"),
    )
    assert table.counts.tolist() == [[1, 1], [0, 1], [0, 1], [2, 0]]
    assert table.majority() == ("high", "low", "low", "high")
    exact = table.approximations()
    assert exact.lower_granules == ((3,), (1, 2))
    assert exact.upper_granules == ((0, 3), (0, 1, 2))
    assert len(granule_table(SETS, DECISION, attributes=["Price", "Screen"]).values) == 5


def test_without_the_condition_a_bound_can_fail() -> None:
    """The counterexample to "the upper approximation is at least n_i. + n_.i - n_ii": 8 is more than 6."""
    table = table_of([[0, 4], [3, 0], [1, 2]])
    bounds, exact = table.bounds((0, 0, 1)), table.approximations()
    assert bounds.condition_holds is False
    assert bounds.broken_by == (0,)
    assert bounds.union[0] == 8 > exact.upper[0] == 6
    assert exact.lower[1] == 4 > bounds.hits[1] == 2
    assert "They may fail" in repr(bounds)
    assert rough_bounds(table.confusion_matrix((0, 0, 1))).condition_holds is None, (
        "the matrix alone cannot know"
    )


def test_a_matrix_disproves_the_condition_where_a_class_is_never_right() -> None:
    """Lemma 4.1 (iii): n_ii = 0 makes the whole predicted row 0."""
    bounds = rough_bounds(ConfusionMatrix(np.array([[3, 2], [1, 0]]), ("a", "b")))
    assert bounds.condition_holds is False
    assert bounds.never_right == ("b",)
    assert bounds.lower_upper_bound.tolist() == [2, 0]
    assert "b is predicted, but never correctly" in repr(bounds)


# --- the theorems -----------------------------------------------------------------------------------------


def violations(counts: np.ndarray, assigned: np.ndarray) -> list[str]:
    """Which inequalities of theorems 4.1 to 4.4 fail."""
    table = GranuleTable(
        counts, tuple(range(counts.shape[1])), ("g",), tuple((i,) for i in range(len(counts)))
    )
    bounds, exact = table.bounds(assigned.tolist()), table.approximations()
    chains = {
        "4.1": [exact.lower, bounds.lower_upper_bound, bounds.hits, bounds.class_sizes],
        "4.2": [bounds.class_sizes, bounds.union, bounds.upper_lower_bound, exact.upper],
    }
    if (
        bounds.majority_lower_upper_bound is not None
        and bounds.majority_upper_lower_bound is not None
    ):
        chains["4.3"] = [exact.lower, bounds.majority_lower_upper_bound, bounds.lower_upper_bound]
        chains["4.4"] = [bounds.upper_lower_bound, bounds.majority_upper_lower_bound, exact.upper]
    found = [
        name
        for name, chain in chains.items()
        if any((a > b).any() for a, b in itertools.pairwise(chain))
    ]
    if (
        exact.gamma > bounds.gamma_upper
        or exact.weighted_alpha > bounds.weighted_alpha_upper + 1e-12
    ):
        found.append("gamma or alpha")
    if (exact.alpha > bounds.alpha_upper + 1e-12).any():
        found.append("alpha of a class")
    return found


@pytest.mark.night
@pytest.mark.slow
def test_the_theorems_hold_in_ten_thousand_tables_under_the_condition_and_fail_without_it() -> None:
    rng = np.random.default_rng(2019)
    tables = broken = majority = 0
    while tables < 10_000:
        counts = random_counts(rng)
        met = rng.random(counts.shape) * (counts > 0)  # a class that the granule meets
        best = tables % 3 == 0
        assigned = counts.argmax(axis=1) if best else met.argmax(axis=1)
        majority += best
        assert violations(counts, assigned) == [], (counts, assigned)
        tables += 1
        broken += bool(violations(counts, rng.integers(0, counts.shape[1], len(counts))))
    assert tables == 10_000
    assert majority > 3000
    assert broken > 1000


@pytest.mark.slow
@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_properties_of_a_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = random_counts(rng)
    table = table_of(counts)
    exact, bounds = table.approximations(), table.bounds(table.majority())
    assert bounds.condition_holds
    assert violations(table.counts, counts.argmax(axis=1)) == []
    assert (exact.lower <= exact.class_sizes).all()
    assert (exact.class_sizes <= exact.upper).all()
    np.testing.assert_allclose(exact.alpha, exact.lower_share * exact.upper_share, rtol=1e-12)
    g = bounds.gamma_upper
    assert bounds.weighted_alpha_upper == pytest.approx(g / (2 - g))
    assert 0 <= exact.gamma <= g <= 1
    for name, value in (exact.metrics | bounds.metrics).items():
        metric = lookup(name)
        assert math.isnan(value) or metric.low <= value <= metric.high, name
    half = rng.integers(0, counts + 1)
    parts = [part[part.any(axis=1)] for part in (half, counts - half)]
    values = [np.flatnonzero(part.any(axis=1)) for part in (half, counts - half)]
    shards = [
        GranuleTable(part, table.labels, (0,), tuple((int(v),) for v in rows))
        for part, rows in zip(parts, values, strict=True)
        if len(part)
    ]
    assert sum(shards, start=0) == table
    order = rng.permutation(counts.shape[1])
    turned = table_of(counts[:, order]).approximations()
    assert turned.lower.tolist() == exact.lower[order].tolist()
    assert turned.upper.tolist() == exact.upper[order].tolist()


# --- brute force ------------------------------------------------------------------------------------------


def partition(rows: list[tuple[Any, ...]], chosen: tuple[int, ...]) -> list[set[int]]:
    blocks: dict[tuple[Any, ...], set[int]] = {}
    for i, row in enumerate(rows):
        blocks.setdefault(tuple(row[a] for a in chosen), set()).add(i)
    return list(blocks.values())


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_approximations_by_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, k = int(rng.integers(2, 14)), int(rng.integers(1, 6)), int(rng.integers(2, 4))
    rows = [tuple(row) for row in rng.integers(0, rng.integers(2, 4), (n, m)).tolist()]
    y = rng.integers(0, k, n).tolist()
    table = granule_table(rows, y, labels=range(k))
    exact = table.approximations()
    blocks = partition(rows, tuple(range(m)))
    for j in range(k):
        members = {i for i in range(n) if y[i] == j}
        inside, meeting = [b for b in blocks if b <= members], [b for b in blocks if b & members]
        assert exact.lower[j] == sum(map(len, inside))
        assert exact.upper[j] == sum(map(len, meeting))
        assert {table.values[s] for s in exact.lower_granules[j]} == {rows[min(b)] for b in inside}
        assert {table.values[s] for s in exact.upper_granules[j]} == {rows[min(b)] for b in meeting}


# --- rough/ in every evaluation ---------------------------------------------------------------------------

UPPER = ("rough/gamma_upper", "rough/alpha_upper")


def test_an_evaluation_has_the_bounds_of_its_matrix() -> None:
    y = random_labels(300, 4)
    predicted = random_guesses(y, 4, 0.6, 3)
    evaluation = evaluate(y, predicted, labels=range(4))
    metrics, bounds = evaluation.metrics, rough_bounds(evaluation.confusion_matrix)
    assert {
        name: value for name, value in metrics.items() if name.startswith("rough/")
    } == bounds.metrics
    assert metrics["rough/gamma_upper"] == metrics["multiclass/accuracy"]
    assert evaluation.intervals["rough/gamma_upper"] == evaluation.intervals["multiclass/accuracy"]
    low, high = evaluation.intervals["rough/2/alpha_upper"]
    assert low < metrics["rough/2/alpha_upper"] < high
    halves = evaluate(y[:100], predicted[:100], labels=range(4)) + evaluate(
        y[100:], predicted[100:], labels=range(4)
    )
    assert {name: halves.metrics[name] for name in bounds.metrics} == bounds.metrics
    regrouped = evaluation.regroup(Grouping({"a": [0, 1], "b": [2, 3]}))
    assert {name: regrouped.metrics[name] for name in bounds.metrics} == bounds.metrics


def test_whole_weights_are_repeated_rows_and_fractions_have_no_corrections(tmp_path: Path) -> None:
    y, predicted = rows_of([[5, 1, 0], [2, 4, 1], [0, 0, 3]])
    weights = np.arange(len(y)) % 3 + 1
    weighted = evaluate(y, predicted, sample_weight=weights)
    repeated = evaluate(np.repeat(y, weights), np.repeat(predicted, weights))
    names = [name for name in weighted.metrics if name.startswith("rough/")]
    assert len(names) == 2 + 3 * 3
    assert [weighted.metrics[name] for name in names] == [repeated.metrics[name] for name in names]
    fractions = evaluate(y, predicted, sample_weight=weights / 4)
    bounds = rough_bounds(fractions.confusion_matrix)
    assert bounds.lower_upper_bound.tolist() == bounds.hits.tolist()
    assert bounds.upper_lower_bound.tolist() == bounds.union.tolist()
    for name in (*UPPER, "rough/0/alpha_upper", "rough/2/alpha_upper"):
        assert fractions.metrics[name] == pytest.approx(weighted.metrics[name])
    assert fractions.metrics["rough/1/lower_upper_bound"] == bounds.hits[1]
    fractions.save(tmp_path)
    loaded = Evaluation.load(tmp_path)
    assert loaded.metrics == fractions.metrics


def test_an_absent_class_is_undefined_with_a_reason() -> None:
    evaluation = evaluate([0, 1, 1], [0, 1, 0], labels=[0, 1, 2])
    assert math.isnan(evaluation.metrics["rough/2/alpha_upper"])
    assert "neither actual nor predicted" in evaluation.undefined["rough/2/alpha_upper"]
    assert evaluation.metrics["rough/2/upper_lower_bound"] == 0
    exact = granule_table([0, 1, 1], [0, 1, 1], labels=[0, 1, 2]).approximations()
    assert math.isnan(exact.alpha[2])
    assert exact.undefined["rough/2/alpha"] == "no actual rows"
    assert exact.undefined.keys() == {"rough/2/alpha", "rough/2/lower_share", "rough/2/upper_share"}


def test_every_exact_number_is_in_the_catalog() -> None:
    metrics = granule_table(SETS, DECISION).approximations().metrics
    assert {lookup(name).name for name in metrics} == {
        m.name for m in CATALOG if m.needs == "granules"
    }
    assert not any(metric.headline for metric in CATALOG if metric.section == "rough")


# --- the boundary -----------------------------------------------------------------------------------------

MIXED: dict[str, list[Any]] = {
    "n": [1, 2, 1, 2, 1, 1],
    "f": [0.5, math.nan, 0.5, math.nan, 1.5, 0.5],
    "s": ["a", None, "a", None, "b", "a"],
    "b": [True, False, True, False, True, True],
}


def test_pandas_polars_arrow_numpy_and_lists_are_equal() -> None:
    pl = pytest.importorskip("polars")
    y = ["x", "y", "x", "x", "y", "y"]
    frame = pd.DataFrame(MIXED)
    expected = granule_table(MIXED, y)
    assert expected.values == ((1, 0.5, "a", True), (2, None, None, False), (1, 1.5, "b", True))
    assert expected.counts.tolist() == [[2, 1], [1, 1], [0, 1]]
    assert granule_table(frame, y) == expected
    assert granule_table(frame.convert_dtypes(), pd.Series(y)) == expected
    assert (
        granule_table(frame.astype({"s": "category", "n": "category"}), pd.Categorical(y))
        == expected
    )
    assert granule_table(pl.DataFrame(MIXED, strict=False), pl.Series(y)) == expected
    assert (
        granule_table(pa.table({k: pa.array(v, from_pandas=True) for k, v in MIXED.items()}), y)
        == expected
    )
    rows = list(zip(*MIXED.values(), strict=True))
    by_place = granule_table(rows, y)
    assert by_place.attributes == (0, 1, 2, 3)
    assert by_place.values == expected.values
    assert granule_table(frame.to_numpy(), y) == by_place
    assert granule_table(frame["s"], y) == granule_table({"s": MIXED["s"]}, y)
    assert granule_table(np.array(MIXED["n"]), y).values == ((1,), (2,))
    assert granule_table(frame, y, attributes=["b", "n"]).attributes == ("b", "n")


def test_a_missing_value_is_a_value_of_its_own() -> None:
    """So that equality of rows stays an equivalence: two rows that lack it are alike, and unlike all others."""
    pl = pytest.importorskip("polars")
    times = pd.to_datetime(["2020-01-01", None, None])
    for column in (
        [1.0, math.nan, math.nan],
        ["a", None, None],
        [pd.NA, 3, 3],
        pd.Series([1, None, None]),
        times,
    ):
        assert granule_table({"a": column}, [0, 1, 1]).counts.tolist() == [[1, 0], [0, 2]]
    assert granule_table({"a": [None, math.nan, 0.0]}, [0, 1, 1]).values == ((None,), (0.0,))
    assert granule_table(pl.DataFrame({"a": [1.0, math.nan, None]}), [0, 1, 1]).values == (
        (1.0,),
        (None,),
    )


def test_predictions_per_row_become_a_classifier() -> None:
    table = granule_table(SETS, DECISION, attributes=["Price", "Sound"])
    predicted = ["high", "low", "low", "high", "high", "high"]
    assert table.classifier(pd.DataFrame(SETS), predicted) == ("high", "low", "low", "high")
    by_rows = ConfusionMatrix.from_predictions(DECISION, predicted)
    assert table.confusion_matrix(table.classifier(SETS, predicted)) == by_rows
    with pytest.raises(
        ValueError,
        match=r"constant within granules, got 'high' 1× and 'low' 1× in the granule "
        r"Price='medium', Sound='Stereo'",
    ):
        table.classifier(SETS, ["high", "low", "low", "high", "low", "high"])
    with pytest.raises(
        ValueError,
        match="every granule needs a prediction, got none for the granule Price='medium'",
    ):
        table.classifier({name: column[:3] for name, column in SETS.items()}, predicted[:3])
    with pytest.raises(
        ValueError, match="must belong to a granule of the table, got the granule Price='huge'"
    ):
        table.classifier(
            SETS | {"Price": ["huge", *SETS["Price"][1:]]}, [predicted[0], *predicted[1:]]
        )
    with pytest.raises(ValueError, match="one class per granule, 4, got 6"):
        table.confusion_matrix(predicted)
    with pytest.raises(ValueError, match=r"classifier has labels that are not in .*'mid'"):
        table.bounds(["high", "low", "mid", "high"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((SETS, DECISION[:5]), {}, r"one row per label, got 6 in 'Price' and 5 in y"),
        ((SETS, DECISION), {"attributes": ["Prize"]}, r"\['Prize'\] are not in \['Price'"),
        ((SETS, DECISION), {"attributes": ["Price", "Price"]}, "must not repeat"),
        ((SETS, DECISION), {"attributes": []}, "at least one column"),
        (({}, DECISION), {}, "at least one attribute"),
        ((np.zeros((2, 2, 2)), [0, 1]), {}, r"shape \(n_samples, n_attributes\), got \(2, 2, 2\)"),
        (([[1, 2], [3]], [0, 1]), {}, "rows of equal length"),
        (([], []), {}, "must not be empty"),
        (({"a": [[1], [2]]}, [0, 1]), {}, "one value per row"),
        (
            ({"a": np.zeros((2, 2))}, [0, 1]),
            {},
            r"attribute 'a' must have shape \(n_samples,\), got \(2, 2\)",
        ),
        (({"a": [1, 2]}, [0, None]), {}, "missing labels"),
        (({"a": [1, 2]}, [0, 0]), {}, "at least two classes"),
        (
            (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [0, 1]),
            {},
            "must have different names",
        ),
    ],
)
def test_bad_input_is_refused_with_rule_and_value(
    arguments: Any, options: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        granule_table(*arguments, **options)


def test_other_bad_input() -> None:
    with pytest.raises(TypeError, match="the string 'Price'"):
        granule_table(SETS, DECISION, attributes="Price")
    with pytest.raises(TypeError, match="must be a ConfusionMatrix, got list"):
        rough_bounds([[1, 2], [3, 4]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="only zeros"):
        rough_bounds(ConfusionMatrix(np.zeros((2, 2), dtype=int), (0, 1)))
    with pytest.raises(
        ValueError, match="got 1 predicted 2 times for its own rows and 3 times for another class's"
    ):
        rough_bounds(ConfusionMatrix(np.array([[3, 3], [0, 2]]), (0, 1)), majority=True)
    with pytest.raises(ValueError, match="same attributes in the same order"):
        granule_table(SETS, DECISION, attributes=["Price"]) + granule_table(
            SETS, DECISION, attributes=["Sound"]
        )
    for counts, message in (
        ([[1, 2]], "counts must have shape"),
        ([[1, -2], [1, 1]], "not negative"),
        ([[0.5, 1], [1, 1]], "whole numbers"),
        ([[0, 0], [1, 1]], "none in granule 0"),
    ):
        with pytest.raises(ValueError, match=message):
            GranuleTable(np.array(counts), (0, 1), ("a",), ((0,), (1,)))
    rng = np.random.default_rng(0)
    with pytest.raises(
        ValueError, match=r"at most 100,000,000 cells, got 200,000 granules by 600 classes"
    ):
        granule_table(rng.permutation(200_000), np.arange(200_000) % 600)


def test_results_are_frozen_and_show_themselves() -> None:
    table = granule_table(SETS, DECISION, attributes=["Price", "Sound"])
    found = [table, table.approximations(), table.bounds(table.majority())]
    for one in found:
        assert type(one).__name__ in repr(one)
        assert "<table" in one._repr_html_()
        assert isinstance(one.to_frame(), pd.DataFrame)
        with pytest.raises(FrozenInstanceError):
            one.labels = ()  # type: ignore[misc, union-attr]
    with pytest.raises(ValueError, match="read-only"):
        table.counts[0, 0] = 7
    assert table.to_frame().loc[("medium", "Stereo"), "high"] == 2
    assert table != granule_table(SETS, DECISION)
    assert table.to_frame().to_numpy().sum() == table.total == 6


def test_merging_is_counting_together() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 4, (60, 3)), rng.integers(0, 3, 60)
    whole = granule_table(X, y)
    merged = granule_table(X[:20], y[:20], labels=range(3)) + granule_table(
        X[20:], y[20:], labels=range(3)
    )
    assert merged == whole
    assert merged.values == whole.values, "granules stand in the order in which they appear"
    first, second = granule_table([1, 2], ["a", "b"]), granule_table([1, 3], ["b", "c"])
    assert (first + second).labels == ("a", "b", "c")
    assert (first + second).counts.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert first + second == second + first


# --- the figure -------------------------------------------------------------------------------------------


def test_the_figure_draws_approximations_and_sizes() -> None:
    table = granule_table(SETS, DECISION, attributes=["Price", "Sound"])
    ax = table.approximations().figure().axes[0]
    dark, light = ax.containers
    assert [bar.get_width() for bar in dark] == [2, 2]
    assert [bar.get_x() + bar.get_width() for bar in light] == [4, 4]
    assert ax.lines[0].get_xdata().tolist() == [3, 3]
    assert [t.get_text() for t in ax.texts] == ["2 | 3 | 4", "2 | 3 | 4"]
    words = " ".join(t.get_text() for t in ax.get_legend().get_texts())
    assert "exact" in words
    bounds = table.bounds(table.majority()).figure().axes[0]
    words = " ".join(" ".join(t.get_text() for t in bounds.get_legend().get_texts()).split())
    assert "at most" in words
    assert "They hold: every granule contains rows of its assigned class." in words
    alone = rough_bounds(table.confusion_matrix(table.majority())).figure().axes[0]
    words = " ".join(" ".join(t.get_text() for t in alone.get_legend().get_texts()).split())
    assert "They hold if every granule contains rows of" in words


@pytest.mark.slow
def test_the_figure_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"upper must have shape \(2,\), got \(1,\)"):
        plot_rough_approximations([1, 2], [1], [1, 1], ["a", "b"])
    with pytest.raises(ValueError, match="labels must name at least one class, got none"):
        plot_rough_approximations([], [], [], [])
    with pytest.raises(ValueError, match="lower must not exceed upper, got 3 and 2 for 'b'"):
        plot_rough_approximations([1, 3], [1, 2], [1, 2], ["a", "b"])
    many = plot_rough_approximations(np.zeros(300), np.ones(300), np.ones(300), range(300)).axes[0]
    assert len(many.get_yticks()) < 300
    assert not many.texts
    assert "every" in many.get_ylabel()


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "rough_decision_table.py"))
    assert "GranuleTable" in capsys.readouterr().out
    assert (tmp_path / "rough_decision_table.png").is_file()
