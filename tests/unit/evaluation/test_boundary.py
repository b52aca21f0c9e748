"""What is refused, scaled or put in order at the door, and that every door does the same."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cmtrack import Accumulator, evaluate, evaluate_table, log_evaluation
from cmtrack.cli import main
from cmtrack.tracking import EvaluationWarning
from cmtrack_integrations.sklearn import evaluate_estimator
from support.problems import random_features, random_labels, random_problem, random_scores

pl = pytest.importorskip("polars")

pytestmark = pytest.mark.usefixtures("undrawn")

Y = random_labels(200)
SCORES = random_scores(Y, 0.0)
Y3, _, EXACT = random_problem(5, n=240, k=3, skill=0.0)
ROUNDED = EXACT.round(2)
OFF = int((np.abs(ROUNDED.sum(axis=1) - 1) > 1e-3).sum())
SCALED = ROUNDED / ROUNDED.sum(axis=1, keepdims=True)


# --- scores in the place of labels -----------------------------------------------------------------------------


def accumulated(y: Any, y_pred: Any, **options: Any) -> Any:
    seen = Accumulator(labels=options.pop("labels", [0, 1]), **options)
    seen.update(y, y_pred)
    return seen.compute()


def tabulated(y: Any, y_pred: Any, **options: Any) -> Any:
    return evaluate_table(pl.DataFrame({"y": y, "s": y_pred}), y_true="y", y_pred="s", **options)


DOORS = {"evaluate": evaluate, "accumulator": accumulated, "table": tabulated}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("y", [Y, Y.astype(bool)], ids=["int", "bool"])
def test_scores_in_the_place_of_labels_are_refused_with_the_way_out(door: str, y: Any) -> None:
    if door == "accumulator" and y.dtype == bool:
        pytest.skip("an accumulator has labels, here 0 and 1")
    with pytest.raises(
        ValueError, match=r"y_pred must contain class labels, got continuous values: .*y_prob="
    ):
        DOORS[door](y, SCORES)


@pytest.mark.parametrize("door", ["evaluate", "table"])
def test_scores_are_refused_beside_given_labels_too(door: str) -> None:
    with pytest.raises(ValueError, match=r"continuous values: .* \(200 in all\)\]; .*y_prob="):
        DOORS[door](Y, SCORES, labels=[0, 1])


def test_continuous_actual_values_are_refused() -> None:
    with pytest.raises(ValueError, match="y_true must contain class labels, got continuous values"):
        evaluate(SCORES, Y)


def test_floats_that_are_named_or_whole_are_labels() -> None:
    grades = np.array([0.5, 1.0, 1.5])[random_labels(50, 3)]
    assert evaluate(grades, grades, labels=[0.5, 1.0, 1.5]).metrics["multiclass/accuracy"] == 1
    assert evaluate(Y.astype(float), Y.astype(np.float32)).labels == (0.0, 1.0)
    columns = pd.DataFrame(EXACT[:50], columns=[0.5, 1.0, 1.5])
    assert evaluate(grades, y_prob=columns).labels == (0.5, 1.0, 1.5)


def test_a_regression_is_no_classifier() -> None:
    from sklearn.linear_model import LinearRegression

    X = random_features(Y, 2)
    with pytest.raises(ValueError, match="continuous values"):
        evaluate_estimator(LinearRegression().fit(X, Y.astype(bool)), X, Y.astype(bool))


def test_log_evaluation_warns_of_scores_and_goes_on(store: Any) -> None:
    import mlflow

    with mlflow.start_run(), pytest.warns(EvaluationWarning, match="y_prob="):
        logged = log_evaluation(Y, SCORES)
    assert logged.status == "failed"


# --- rounded probabilities -------------------------------------------------------------------------------------


def from_arrays(p: Any, normalize: Any) -> Any:
    return evaluate(Y3, y_prob=p, normalize=normalize)


def from_batches(p: Any, normalize: Any) -> Any:
    seen = Accumulator(labels=[0, 1, 2], normalize=normalize)
    for part in np.array_split(np.arange(len(Y3)), 3):
        seen.update(Y3[part], y_prob=p[part])
    return seen.compute()


def from_table(p: Any, normalize: Any, engine: str = "polars") -> Any:
    frame = pd.DataFrame({"y": Y3, **{f"p_{k}": p[:, k] for k in range(3)}})
    table = pl.from_pandas(frame) if engine == "polars" else frame
    return evaluate_table(table, y_true="y", y_prob="p_*", normalize=normalize)


def from_duckdb(p: Any, normalize: Any) -> Any:
    return from_table(p, normalize, "duckdb")


SOURCES = {
    "arrays": from_arrays,
    "batches": from_batches,
    "polars": from_table,
    "duckdb": from_duckdb,
}


@pytest.mark.parametrize("source", SOURCES)
def test_rounded_probabilities_are_scaled_with_one_warning_everywhere(source: str) -> None:
    assert 20 < OFF < 240
    expected = evaluate(Y3, y_prob=SCALED)
    with pytest.warns(
        UserWarning, match=rf"^{OFF} rows of probabilities had sums between 0\.98 and 1\.02"
    ):
        found = SOURCES[source](ROUNDED, "warn")
    assert [text for text in found.warnings if text.startswith(f"{OFF} rows of probabilities")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent = SOURCES[source](ROUNDED, True)
    assert not any("probabilities" in text for text in silent.warnings)
    for evaluation in (found, silent):
        for name in ("spcc/ovr_fisher", "spcc/ovo_min", "prevalence/1/bias", "multiclass/accuracy"):
            assert evaluation.metrics[name] == pytest.approx(expected.metrics[name], abs=1e-12), (
                name
            )
    with pytest.raises(ValueError, match=r"must sum to 1.*normalize=True scales"):
        SOURCES[source](ROUNDED, False)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("normalize", ["warn", True])
def test_rows_further_off_are_refused_with_rule_and_value(source: str, normalize: Any) -> None:
    p = EXACT.copy()
    p[7] *= 0.97
    with pytest.raises(
        ValueError,
        match=r"must sum to 1.*0\.(97|03).*rows with sums between 0\.98 and 1\.02 are scaled",
    ):
        SOURCES[source](p, normalize)


def test_the_ends_of_the_range_are_inside() -> None:
    p = EXACT.copy()
    p[0] *= 1.02 / p[0].sum()
    p[1] *= 0.98 / p[1].sum()
    assert evaluate(Y3, y_prob=p, normalize=True).rows.probabilities.sum(axis=1) == pytest.approx(
        1, abs=1e-12
    )


@pytest.mark.parametrize("normalize", ["yes", None, 1.0])
def test_another_normalize_is_refused(normalize: Any) -> None:
    with pytest.raises(ValueError, match='normalize must be "warn", True or False'):
        evaluate(Y3, y_prob=EXACT, normalize=normalize)


@pytest.mark.slow
def test_the_warning_outlives_saving_merging_and_regrouping(tmp_path: Path) -> None:
    from cmtrack import Evaluation, Grouping

    with pytest.warns(UserWarning, match="rows of probabilities"):
        evaluation = evaluate(Y3, y_prob=ROUNDED)
    evaluation.save(tmp_path)
    (told,) = [text for text in evaluation.warnings if "probabilities" in text]
    assert told in Evaluation.load(tmp_path).warnings
    assert told in evaluation.regroup(Grouping({"a": [0, 1], "b": [2]})).warnings
    assert any(text.startswith(f"{2 * OFF} rows") for text in (evaluation + evaluation).warnings)


def test_calibration_and_target_are_scaled_too() -> None:
    with pytest.warns(UserWarning, match=f"^{2 * OFF} rows"):
        evaluate(Y3, y_prob=SCALED, calibration=(Y3, ROUNDED), target=ROUNDED)
    with pytest.raises(ValueError, match="each row of calibration scores must sum to 1"):
        evaluate(Y3, y_prob=SCALED, calibration=(Y3, ROUNDED), normalize=False)


@pytest.mark.parametrize(
    ("option", "code", "says"),
    [("warn", 0, f"Warning: {OFF} rows"), ("yes", 0, ""), ("no", 2, "must sum to 1")],
)
def test_the_command_line_has_the_option(option: str, code: int, says: str, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    pd.DataFrame({"y": Y3, **{f"p_{k}": ROUNDED[:, k] for k in range(3)}}).to_csv(path, index=False)
    done = CliRunner().invoke(
        main,
        ["evaluate", str(path), "--y-true", "y", "--y-prob", "p_*", "--normalize", option],
        env={"COLUMNS": "200"},
    )
    assert done.exit_code == code, done.output
    assert says in done.output
    assert ("rows of probabilities" in done.output) == (option == "warn")


def test_hooks_and_log_evaluation_pass_the_option_on(store: Any) -> None:
    import mlflow

    from cmtrack_integrations._hook import EvaluateOptions

    assert "normalize" in EvaluateOptions.__annotations__
    with mlflow.start_run(), pytest.warns(EvaluationWarning, match="must sum to 1"):
        assert log_evaluation(Y3, y_prob=ROUNDED, normalize=False).status == "failed"


# --- masks and indexes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["y_true", "y_pred", "y_prob", "sample_weight"])
def test_masked_entries_are_refused(column: str) -> None:
    mask = np.zeros(200, dtype=bool)
    mask[[3, 9]] = True
    given: dict[str, Any] = {
        "y_true": Y,
        "y_pred": Y,
        "y_prob": SCORES,
        "sample_weight": np.ones(200),
    }
    whole = given | {column: np.ma.masked_array(given[column], mask=False)}
    assert evaluate(**whole).n_samples == 200
    with pytest.raises(
        ValueError, match=f"{column} must not have masked entries, got 2, the first at row 3"
    ):
        evaluate(**given | {column: np.ma.masked_array(given[column], mask=mask)})


NAMED = pd.Index([f"r{i}" for i in range(200)])


@pytest.mark.parametrize("door", ["evaluate", "accumulator"])
def test_columns_of_one_index_in_another_order_are_aligned(door: str) -> None:
    y = pd.Series(Y, index=NAMED)
    shuffled = {
        "y_prob": pd.Series(SCORES, index=NAMED),
        "sample_weight": pd.Series(np.arange(1, 201), index=NAMED),
    }
    shuffled = {
        name: column.sample(frac=1, random_state=k)
        for k, (name, column) in enumerate(shuffled.items())
    }
    expected = evaluate(Y, y_prob=SCORES, sample_weight=np.arange(1, 201))
    if door == "evaluate":
        found = evaluate(y, **shuffled)
    else:
        seen = Accumulator(labels=[0, 1])
        seen.update(y, **shuffled)
        found = seen.compute()
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-12, nan_ok=True)


def test_frames_and_mappings_of_columns_are_aligned() -> None:
    y = pd.Series(Y3, index=NAMED.append(NAMED[:40] + "b"))
    frame = pd.DataFrame(EXACT, index=y.index, columns=[0, 1, 2])
    expected = evaluate(Y3, y_prob=EXACT).metrics
    mixed = frame.sample(frac=1, random_state=1)
    assert evaluate(y, y_prob=mixed).metrics == expected
    assert evaluate(y, y_prob={0: mixed[0], 1: frame[1], 2: mixed[2]}).metrics == expected


def test_the_default_index_names_no_rows() -> None:
    """As after ``train_test_split``: shuffled actual labels, predictions in a new Series."""
    part = np.random.default_rng(5).permutation(1000)[:200]
    assert evaluate(pd.Series(Y, index=part), y_prob=pd.Series(SCORES)) == evaluate(
        Y, y_prob=SCORES
    )


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            NAMED,
            NAMED[::-1] + "x",
            r"must contain the same rows: the index of y_prob lacks the keys .*\(200 in all\)",
        ),
        (NAMED[:100].repeat(2), NAMED[:100].repeat(2)[::-1], "contain keys more than once"),
        (
            pd.RangeIndex(200),
            pd.RangeIndex(200)[::-1],
            "is unclear whether to match rows by index or by position",
        ),
        (
            pd.RangeIndex(200)[::-1],
            pd.RangeIndex(200),
            "is unclear whether to match rows by index or by position",
        ),
    ],
    ids=["other keys", "repeated", "default first", "default second"],
)
def test_other_indexes_are_refused(first: Any, second: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(pd.Series(Y, index=first), y_prob=pd.Series(SCORES, index=second))


def test_without_an_index_of_the_actual_labels_nothing_is_reordered() -> None:
    given = {
        "y_prob": pd.Series(SCORES, index=NAMED),
        "sample_weight": pd.Series(np.ones(200), index=NAMED[::-1]),
    }
    with pytest.raises(ValueError, match="y_true has no index to match by"):
        evaluate(Y, **given)


# --- words -----------------------------------------------------------------------------------------------------


def test_a_list_that_is_cut_says_so() -> None:
    labels = [f"x{i}" for i in range(30)]
    with pytest.raises(ValueError, match=r"'x19', … \(30 in all\)\]: \['x77'\] \(2 rows\)"):
        evaluate(["x1", "x2"], ["x77", "x77"], labels=labels)
