"""Counts by cell from files: the same numbers as from arrays, read in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmtrack import estimate_prevalence

# Reading tables needs PyArrow, so the door does not import it.
from cmtrack.prevalence.from_tables import count_table

COLUMNS = ["region", "month"]


def rows(n: int = 6_000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Target and labelled rows of three classes, with the probability of each class."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet([2, 1, 1], n)
    names = np.array(["a", "b", "c"])
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], n),
            "month": rng.integers(1, 4, n),
            "y": names[(rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)],
            **{f"p_{name}": p[:, k] for k, name in enumerate(names)},
        }
    )
    frame["y_a"] = frame["y"] == "a"
    is_labelled = rng.random(n) < 0.2
    return frame[~is_labelled], frame[is_labelled]


TARGET, LABELLED = rows()


def assert_equal_tables(first: Any, second: Any) -> None:
    pd.testing.assert_frame_equal(first.to_frame(), second.to_frame(), check_exact=True)
    assert first.total() == second.total()


@pytest.fixture(scope="module")
def expected() -> Any:
    return estimate_prevalence(
        TARGET["p_a"].to_numpy(),
        by=TARGET[COLUMNS],
        calibration=(LABELLED["y_a"].to_numpy(), LABELLED["p_a"].to_numpy()),
        calibration_by=LABELLED[COLUMNS],
        positive=True,
    )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_give_the_numbers_of_arrays(tmp_path: Path, ending: str, expected: Any) -> None:
    files = {name: tmp_path / f"{name}.{ending}" for name in ("target", "labelled")}
    for name, frame in (("target", TARGET), ("labelled", LABELLED)):
        if ending == "csv":
            frame.to_csv(files[name], index=False)
        else:
            frame.to_parquet(files[name], row_group_size=500)
    table = count_table(files["target"], files["labelled"], by=COLUMNS, y_true="y_a", y_prob="p_a")
    assert_equal_tables(table, expected)


def test_batches_are_counted_like_one_table(expected: Any) -> None:
    parts = [TARGET[:100], TARGET[100:101], TARGET[101:]]
    pandas = count_table(
        pd.concat(parts), LABELLED, by=COLUMNS, y_true="y_a", y_prob="p_a", positive="True"
    )
    assert_equal_tables(pandas, expected)


def test_classes_by_the_columns_of_their_probabilities() -> None:
    table = count_table(TARGET, LABELLED, by=COLUMNS, y_true="y", y_prob="p_*", positive="b")
    names = ["p_a", "p_b", "p_c"]
    expected = estimate_prevalence(
        TARGET[names].to_numpy(),
        by=TARGET[COLUMNS],
        calibration=(LABELLED["y"].to_numpy(), LABELLED[names].to_numpy()),
        calibration_by=LABELLED[COLUMNS],
        positive="b",
    )
    pd.testing.assert_frame_equal(table.to_frame(), expected.to_frame(), check_exact=True)
    assert table.positive == "b"


def test_labelled_rows_without_the_columns_belong_to_no_cell() -> None:
    labelled = LABELLED.drop(columns=COLUMNS)
    table = count_table(TARGET, labelled, by=COLUMNS, y_true="y_a", y_prob="p_a")
    assert table.to_frame()["labelled"].eq(0).all()


@pytest.mark.parametrize(
    ("target", "labelled", "options", "message"),
    [
        (TARGET, LABELLED, {"by": ["region", "mont"]}, "by must name columns .* got 'mont'"),
        (
            TARGET,
            LABELLED.drop(columns="month"),
            {},
            "got 'month'; the columns of the labelled table",
        ),
        (TARGET, LABELLED, {"by": ["region", "region"]}, "by must not repeat a column, got"),
        (TARGET, LABELLED, {"positive": "x"}, r"positive must be one of \[False, True\], got 'x'"),
        (TARGET[:0], LABELLED, {}, "the target must have at least one row, got none"),
        (
            TARGET,
            LABELLED[LABELLED["y_a"]],
            {},
            "labelled scores of both classes, got 614 positive, 0",
        ),
        (TARGET.assign(p_a=np.nan), LABELLED, {}, "y_prob must be finite"),
        (TARGET.assign(month=None), LABELLED, {}, "rows have no month; drop them or name them"),
        (TARGET, LABELLED, {"half_width": 2.0}, "half_width must be between 0 and 1, got 2.0"),
        (TARGET, LABELLED, {"confidence_level": 95.0}, "confidence_level"),
    ],
)
def test_bad_tables_are_refused(
    target: pd.DataFrame, labelled: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"by": COLUMNS, "y_true": "y_a", "y_prob": "p_a", **options}
    with pytest.raises(ValueError, match=message):
        count_table(target, labelled, **given)
