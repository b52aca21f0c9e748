"""Rows that are saved beside an evaluation: a pair that was told apart stays so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cmtrack import (
    Evaluation,
    FamilyEvaluation,
    Grouping,
    Prefix,
    compare,
    evaluate,
    evaluate_families,
    paired_differences,
)
from support.problems import random_guesses, random_problem

NAME = "cmtrack_predictions.parquet"


def changed(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    return lambda path: pq.write_table(change(pq.read_table(path)), path)


def with_column(name: str, values: Any) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns([name]).append_column(name, [values])


def with_codes(change: Callable[[np.ndarray[Any, Any]], Any]) -> Callable[[pa.Table], pa.Table]:
    name = "segment/region"
    return lambda table: with_column(name, pa.array(change(table[name].to_numpy())))(table)


def pair() -> dict[str, Evaluation]:
    y, first, p = random_problem(0, n=500, k=3)
    return {
        "good": evaluate(y, first, y_prob=p),
        "worse": evaluate(y, random_guesses(first, 3, 0.94, 1), y_prob=p),
    }


def standings(runs: dict[str, Evaluation]) -> list[Any]:
    return (
        compare(runs, rank_by="multiclass/accuracy")
        .to_frame()[["name", "tied"]]
        .to_numpy()
        .tolist()
    )


@pytest.mark.slow
def test_a_saved_pair_has_the_standings_that_it_had(tmp_path: Path) -> None:
    runs = pair()
    loaded = {}
    for name, evaluation in runs.items():
        evaluation.save(tmp_path / name)
        loaded[name] = Evaluation.load(tmp_path / name)
        assert loaded[name] == evaluation
        assert np.array_equal(loaded[name].rows.predicted, evaluation.rows.predicted)
    ours, theirs = (
        paired_differences(*found.values(), metrics=["multiclass/accuracy"])
        for found in (runs, loaded)
    )
    assert ours.paired
    assert theirs.paired
    assert ours.rows == theirs.rows
    assert standings(loaded) == standings(runs)
    without = {name: Evaluation.load(tmp_path / name, rows=False) for name in runs}
    assert not paired_differences(*without.values(), metrics=["multiclass/accuracy"]).paired
    assert standings(without) != standings(runs)


@pytest.mark.parametrize("weights", ["none", "whole", "fraction"])
@pytest.mark.parametrize("groups", [False, True], ids=["alone", "grouped"])
def test_weights_and_groups_come_back(weights: str, groups: bool, tmp_path: Path) -> None:
    y, y_pred, _ = random_problem(2, n=200)
    rng = np.random.default_rng(0)
    given = {"none": None, "whole": rng.integers(1, 4, 200), "fraction": rng.gamma(1, 1, 200)}[
        weights
    ]
    original = evaluate(
        y, y_pred, sample_weight=given, groups=np.arange(200) // 4 if groups else None
    )
    original.save(tmp_path)
    loaded = Evaluation.load(tmp_path).rows.design
    for name in ("weights", "clusters"):
        ours = getattr(loaded, name)
        theirs = getattr(original.rows.design, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs)


REGION = np.array(["north", "south", None], dtype=object)[np.arange(500) % 3]
MANY = np.arange(500) % 300
BY = ({"region": REGION, "id": MANY}, ["region", "id", ("region", "id")])


def divided(**given: Any) -> Evaluation:
    y, y_pred, p = random_problem(3, n=500, k=3)
    return evaluate(y, y_pred, y_prob=p, segments=BY, **given)


@pytest.mark.parametrize("weights", ["none", "whole", "fraction"])
def test_the_segment_of_each_row_comes_back(weights: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = {"none": None, "whole": rng.integers(0, 4, 500), "fraction": rng.gamma(1, 1, 500)}[
        weights
    ]
    original = divided(sample_weight=given)
    original.save(tmp_path)
    kinds = {
        field.name: str(field.type)
        for field in pq.read_schema(tmp_path / NAME)
        if "segment" in field.name
    }
    assert kinds == {
        "segment/region": "uint8",
        "segment/id": "uint16",
        "segment/region × id": "uint16",
    }
    loaded = Evaluation.load(tmp_path)
    for ours, theirs in zip(loaded.rows.segments, original.rows.segments, strict=True):
        assert (ours.name, ours.values, ours.codes.dtype) == (theirs.name, theirs.values, np.int64)
        assert np.array_equal(ours.codes, theirs.codes)
    part = loaded.segments["region"]["north"]
    assert np.array_equal(part.rows.actual, original.rows.actual[REGION == "north"])
    assert part.metrics["multiclass/roc_auc_ovr_macro"] == pytest.approx(
        original.segments["region"]["north"].metrics["multiclass/roc_auc_ovr_macro"], abs=1e-6
    )


def test_declared_columns_of_a_loaded_evaluation_are_searched(tmp_path: Path) -> None:
    original = divided()
    original.save(tmp_path)
    ours, theirs = (
        one.worst_segments("multiclass/accuracy", min_rows=50, n_permutations=20).to_frame()
        for one in (Evaluation.load(tmp_path), original)
    )
    assert ours.equals(theirs)


@pytest.mark.slow
def test_rows_of_an_earlier_version_have_no_segments_and_lose_none(tmp_path: Path) -> None:
    original = divided(sample_weight=np.random.default_rng(0).gamma(1, 1, 500))
    original.save(tmp_path)
    names = [f"segment/{name}" for name in original.segments]
    changed(lambda table: table.drop_columns(names))(tmp_path / NAME)
    loaded = Evaluation.load(tmp_path)
    assert loaded == original
    assert loaded.rows.segments == ()
    assert loaded.segments["region"].codes is None
    grouping = Grouping({"a": [0, 1], "b": [2]})
    ours, theirs = (
        one.regroup(grouping).segments["region"].to_frame() for one in (loaded, original)
    )
    assert ours.equals(theirs)


def test_segments_that_an_evaluation_does_not_have_are_not_read(tmp_path: Path) -> None:
    divided().save(tmp_path)
    evaluation = replace(
        divided(), statistics=replace(divided().statistics, segments=None), rows=None
    )
    assert evaluation.with_rows((tmp_path / NAME).read_bytes()).rows.segments == ()


DAMAGED_SEGMENTS: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "out of range": (
        with_codes(lambda codes: np.where(codes == 2, 3, codes)),
        "whole numbers from 0 to 2",
    ),
    "negative": (with_codes(lambda codes: codes.astype(np.int8) - 1), "whole numbers from 0 to 2"),
    "huge": (
        with_codes(lambda codes: codes.astype(np.uint64) + (1 << 63)),
        "whole numbers from 0 to 2",
    ),
    "fractions": (with_codes(lambda codes: codes + 0.5), "whole numbers from 0 to 2"),
    "missing": (
        with_column("segment/region", pa.array([None] * 500, pa.uint8())),
        "whole numbers from 0 to 2",
    ),
    "texts": (
        with_column("segment/region", pa.array(["north"] * 500)),
        "'segment/region' has the type string",
    ),
    "lists": (
        with_column("segment/region", pa.array([[1]] * 500)),
        "'segment/region' has the type list",
    ),
    "twice": (
        lambda table: table.append_column("segment/region", table["segment/id"]),
        "are damaged",
    ),
    "one of three": (
        lambda table: table.drop_columns(["segment/id"]),
        "must contain the segments of every column, got none for 'id'",
    ),
}


@pytest.mark.parametrize("how", DAMAGED_SEGMENTS)
def test_damaged_segments_of_rows_are_refused_by_name(how: str, tmp_path: Path) -> None:
    divided().save(tmp_path)
    change, said = DAMAGED_SEGMENTS[how]
    changed(change)(tmp_path / NAME)
    with pytest.raises(
        ValueError, match=f"(?s){NAME}: .*{said}.*rows=False loads the evaluation without its rows"
    ):
        Evaluation.load(tmp_path)


def test_documents_of_families_are_kept_too(tmp_path: Path) -> None:
    original = evaluate_families(
        [["a.1"], ["a.2", "b.1"]] * 20, [["a.1"], ["b.1"]] * 20, Prefix(separator=".")
    )
    original.save(tmp_path)
    loaded = FamilyEvaluation.load(tmp_path)
    assert loaded == original
    assert paired_differences(original, loaded, metrics=["family/f1_micro"]).paired
    assert FamilyEvaluation.load(tmp_path, rows=False).rows is None


def test_rows_are_kept_where_and_as_long_as_they_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = pair()["good"]
    evaluation.save(tmp_path)
    assert (tmp_path / NAME).exists()
    evaluation.save(tmp_path, rows=False)  # those that stood there are of no evaluation now
    assert not (tmp_path / NAME).exists()
    assert Evaluation.load(tmp_path).rows is None
    monkeypatch.setattr("cmtrack.archive.MAX_ROWS_BYTES", 1000)
    with pytest.warns(UserWarning, match="the rows are not kept.*rows=True keeps them"):
        evaluation.save(tmp_path)
    assert not (tmp_path / NAME).exists()
    evaluation.save(tmp_path, rows=True)
    assert (tmp_path / NAME).exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cmtrack_evaluation.json", NAME]


def test_wrong_wishes_are_refused(tmp_path: Path) -> None:
    evaluation = pair()["good"]
    with pytest.raises(ValueError, match='rows must be "auto", True or False'):
        evaluation.save(tmp_path, rows="always")
    with pytest.raises(ValueError, match="rows=True needs an evaluation with rows"):
        (evaluation + evaluation).save(tmp_path, rows=True)
    assert not list(tmp_path.iterdir())


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "no parquet": lambda path: path.write_bytes(b"PAR1 and nothing more"),
    "a link": lambda path: (
        path.rename(path.with_suffix(".moved")) and path.symlink_to(path.with_suffix(".moved"))
    ),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "fewer rows": changed(lambda table: table.slice(1)),
    "other predictions": changed(lambda table: table.set_column(1, "y_pred", table["y_true"])),
    "other order": changed(lambda table: table.take(list(range(499, -1, -1)))),
    "unknown label": changed(with_column("y_pred", pa.array(["x"] * 500))),
    "no label": changed(with_column("y_pred", pa.array([None] * 500, pa.string()))),
    "no column": changed(lambda table: table.drop_columns(["y_true"])),
    "probabilities": changed(with_column("prob/1", pa.array([0.9] * 500))),
    "no number": changed(with_column("prob/1", pa.array(["a"] * 500))),
    "nan": changed(with_column("prob/1", pa.array([float("nan")] * 500))),
    "weights": changed(
        lambda table: table.append_column("sample_weight", [pa.array([-1.0] * 500)])
    ),
    "groups": changed(lambda table: table.append_column("group", [pa.array([-1] * 500)])),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_rows_are_refused_by_name(how: str, tmp_path: Path) -> None:
    pair()["worse"].save(tmp_path)
    DAMAGE[how](tmp_path / NAME)
    with pytest.raises(
        ValueError, match=f"{NAME}: .*rows=False loads the evaluation without its rows"
    ):
        Evaluation.load(tmp_path)
    assert Evaluation.load(tmp_path, rows=False).n_samples == 500


def test_rows_of_another_evaluation_are_refused(tmp_path: Path) -> None:
    runs = pair()
    for name, evaluation in runs.items():
        evaluation.save(tmp_path / name)
    (tmp_path / "good" / NAME).write_bytes((tmp_path / "worse" / NAME).read_bytes())
    with pytest.raises(ValueError, match="belong to another evaluation"):
        Evaluation.load(tmp_path / "good")
