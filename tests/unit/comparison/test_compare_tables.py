"""Files and frames of predictions are compared like arrays, in pairs by row ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmtrack import compare, compare_tables, evaluate

N = 300
RNG = np.random.default_rng(0)
Y = np.array(["no", "yes"])[RNG.integers(0, 2, N)]
IDS = np.arange(1000, 1000 + N)


def probabilities(skill: float, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=N)
    positive = 1 / (1 + np.exp(-(skill * np.where(Y == "yes", 1, -1) + noise)))
    return np.column_stack([1 - positive, positive])


MODELS = {"forest": probabilities(1.2, 1), "linear": probabilities(0.9, 2)}


def table(model: str) -> pd.DataFrame:
    p = MODELS[model]
    return pd.DataFrame({"y": Y, "id": IDS, "p_no": p[:, 0], "p_yes": p[:, 1]})


def of_arrays(**options):
    runs = {
        name: evaluate(Y, y_prob=p, labels=["no", "yes"], row_ids=IDS, positive="yes")
        for name, p in MODELS.items()
    }
    return compare(runs, **options)


def check_equal(found, expected) -> None:
    """Both comparisons are one paired ranking with the same numbers."""
    (ranking,), (other,) = found.rankings, expected.rankings
    assert ranking.paired
    assert other.paired
    assert [run.name for run in ranking.runs] == [run.name for run in other.runs]
    for run, same in zip(ranking.runs, other.runs, strict=True):
        numbers = (run.value, *run.interval, run.difference, run.difference_low)
        np.testing.assert_allclose(
            numbers, (same.value, *same.interval, same.difference, same.difference_low), rtol=1e-12
        )


@pytest.mark.parametrize("metric", ["binary/roc_auc", "multiclass/accuracy"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_in_any_order_equal_the_arrays(tmp_path, ending: str, metric: str) -> None:
    files = []
    for seed, model in enumerate(MODELS):
        file = tmp_path / f"{model}.{ending}"
        shuffled = table(model).sample(frac=1, random_state=seed)
        if ending == "csv":
            shuffled.to_csv(file, index=False)
        else:
            shuffled.to_parquet(file)
        files.append(file)
    found = compare_tables(
        files, y_true="y", y_prob="p_*", row_ids="id", positive="yes", rank_by=metric
    )
    check_equal(found, of_arrays(rank_by=metric))


def test_columns_of_many_models_in_one_table() -> None:
    frame = pd.DataFrame({"y": Y, "id": IDS})
    for name, p in MODELS.items():
        frame[f"{name}_p_no"], frame[f"{name}_p_yes"] = p.T
    found = compare_tables(
        frame, y_true="y", y_prob="{model}_p_*", positive="yes", rank_by="binary/roc_auc"
    )
    check_equal(found, of_arrays(rank_by="binary/roc_auc"))


@pytest.mark.parametrize("names", [("rf", "rf_big"), ("a_1", "b_2"), ("rf_big", "rf")])
def test_names_of_models_may_contain_the_separator(names) -> None:
    frame = pd.DataFrame({"y": Y})
    for name, p in zip(names, MODELS.values(), strict=True):
        frame[f"p_{name}_no"], frame[f"p_{name}_yes"] = p.T
    options = {"positive": "yes", "rank_by": "binary/roc_auc"}
    found = compare_tables(frame, y_true="y", y_prob="p_{model}_*", **options)
    expected = of_arrays(rank_by="binary/roc_auc")
    assert [run.name for run in found.ranking.runs] == list(names)
    assert [run.value for run in found.ranking.runs] == pytest.approx(
        [run.value for run in expected.ranking.runs], abs=1e-12
    )


def test_models_of_labels_have_the_classes_of_all() -> None:
    frame = pd.DataFrame({"y": [0, 1, 2, 0] * 20, "pred_a": [0, 1, 2, 1] * 20, "pred_b": 0})
    found = compare_tables(frame, y_true="y", y_pred="pred_{model}", rank_by="multiclass/accuracy")
    assert [run.name for run in found.ranking.runs] == ["a", "b"]
    assert found.ranking.runs[0].evaluation.labels == (0, 1, 2)


def test_names_come_from_keys_and_from_folders(tmp_path) -> None:
    by_key = {"first": table("forest"), "second": table("linear")}
    found = compare_tables(by_key, y_true="y", y_prob="p_*", rank_by="multiclass/accuracy")
    assert {run.name for run in found.runs} == {"first", "second"}
    files = []
    for model in MODELS:
        (tmp_path / model).mkdir()
        files.append(tmp_path / model / "test.parquet")
        table(model).to_parquet(files[-1])
    found = compare_tables(files, y_true="y", y_prob="p_*", rank_by="multiclass/accuracy")
    assert {run.name for run in found.runs} == set(map(str, files))


@given(st.permutations(range(12)))
def test_the_order_of_rows_never_matters_with_ids(order) -> None:
    frame = pd.DataFrame({"y": [0, 1] * 6, "id": range(12), "z": [0, 1, 1, 0] * 3})
    options = {"y_true": "y", "y_pred": "z", "row_ids": "id", "rank_by": "multiclass/accuracy"}
    found = compare_tables({"a": frame, "b": frame.iloc[order]}, **options)
    assert found.ranking.runs[0].difference == 0
    assert found.ranking.paired


def test_columns_with_another_use_are_not_models() -> None:
    y = [0, 1] * 50
    frame = pd.DataFrame({"y_true": y, "y_id": range(100), "y_a": 1, "y_b": 0})
    options = {"y_pred": "y_{model}", "row_ids": "y_id", "rank_by": "multiclass/accuracy"}
    found = compare_tables(frame, y_true="y_true", **options)
    assert {run.name for run in found.runs} == {"a", "b"}


def test_labels_of_many_models_in_a_csv_file_get_one_type(tmp_path) -> None:
    # Alone, the column of the second model would be read as integers.
    frame = pd.DataFrame({"y": ["1", "B"] * 40, "pred_a": ["1", "B"] * 40, "pred_b": "1"})
    frame.to_csv(tmp_path / "models.csv", index=False)
    found = compare_tables(
        tmp_path / "models.csv", y_true="y", y_pred="pred_{model}", rank_by="multiclass/accuracy"
    )
    assert {run.name: run.value for run in found.runs} == {"a": 1, "b": 0.5}


def test_the_leader_is_compared_by_segment() -> None:
    frames = {model: table(model).assign(half=np.arange(N) % 2) for model in MODELS}
    options = {"y_true": "y", "y_prob": "p_*", "rank_by": "multiclass/accuracy"}
    found = compare_tables(frames, segments=["half"], **options)
    runs = {
        name: evaluate(Y, y_prob=p, labels=["no", "yes"], segments={"half": np.arange(N) % 2})
        for name, p in MODELS.items()
    }
    expected = compare(runs, segments=["half"], rank_by="multiclass/accuracy")
    pd.testing.assert_frame_equal(found.segments.to_frame(), expected.segments.to_frame())


def changed(**columns) -> pd.DataFrame:
    return table("linear").assign(**columns)


@pytest.mark.parametrize(
    ("other", "row_ids", "message"),
    [
        (
            changed(id=IDS + 12),
            "id",
            "table 1.parquet has 12 ids that table 2.parquet does not have, such as 1000",
        ),
        (
            changed(id=[1000, *IDS[:-1]]),
            "id",
            "id must not repeat, got 1 repeat in table 2.parquet",
        ),
        (
            changed(y=np.where(IDS < 1003, "?", Y)),
            "id",
            "y differs for 3 ids of table 1.parquet and table",
        ),
        (
            table("linear")[:250],
            None,
            "table 1.parquet has 300 rows, table 2.parquet 250: row ids pair them",
        ),
        (
            changed(y=np.where(IDS == 1017, "?", Y)),
            None,
            "y differs in 1 row of table 1.parquet and table 2.parquet, such as row 17",
        ),
    ],
)
def test_other_rows_are_refused(tmp_path, other, row_ids, message: str) -> None:
    files = [tmp_path / "table 1.parquet", tmp_path / "table 2.parquet"]
    table("forest").to_parquet(files[0])
    other.to_parquet(files[1])
    with pytest.raises(ValueError, match=message):
        compare_tables(files, y_true="y", y_prob="p_*", row_ids=row_ids)


@pytest.mark.parametrize("row_ids", ["id", None])
def test_missing_values_are_named(row_ids) -> None:
    frame = table("forest")
    frame.loc[3, "y"] = None
    with pytest.raises(ValueError, match="y_true must not have missing labels, got 1"):
        compare_tables({"a": frame, "b": frame}, y_true="y", y_prob="p_*", row_ids=row_ids)
    tables = {"a": table("forest"), "b": changed(id=[None, *IDS[1:]])}
    with pytest.raises(ValueError, match="id must not be null, got null in 1 row of b"):
        compare_tables(tables, y_true="y", y_prob="p_*", row_ids="id")


def test_rows_on_a_cluster_are_refused() -> None:
    dask = pytest.importorskip("dask.dataframe")
    tables = {"a": table("forest"), "b": dask.from_pandas(table("linear"), npartitions=2)}
    message = "rows must be in this process to be compared in pairs, got a Dask frame: write"
    with pytest.raises(TypeError, match=message):
        compare_tables(tables, y_true="y", y_prob="p_*")


def test_other_bad_input_is_refused() -> None:
    frame = table("forest")
    with pytest.raises(ValueError, match="a has 12 ids that b does not have, such as 1000"):
        compare_tables(
            {"a": frame, "b": changed(id=IDS + 12)}, y_true="y", y_prob="p_*", row_ids="id"
        )
    with pytest.raises(ValueError, match="the tables need predictions"):
        compare_tables([frame], y_true="y")
    with pytest.raises(ValueError, match=r"columns with \{model\} need one table, got 2"):
        compare_tables({"a": frame, "b": frame}, y_true="y", y_pred="pred_{model}")
    with pytest.raises(ValueError, match=r"no column of the table matches 'pred_\{model\}'"):
        compare_tables(frame, y_true="y", y_pred="pred_{model}")
    with pytest.raises(ValueError, match=r"the table has no column 'yy'; did you mean 'y'\?"):
        compare_tables(frame, y_true="yy", y_prob="p_*")
    with pytest.raises(TypeError, match="unexpected option 'rank'"):
        compare_tables(frame, y_true="y", y_prob="p_*", rank="multiclass/accuracy")
    with pytest.raises(ValueError, match="at least one table"):
        compare_tables([], y_true="y", y_prob="p_*")
    with pytest.raises(ValueError, match="at least one table"):
        compare_tables({}, y_true="y", y_prob="p_*")
