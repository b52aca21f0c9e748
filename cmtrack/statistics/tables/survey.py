"""The first look at a table: which classes it has, how many rows, and whether its numbers are what they should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.probabilities import ROUNDING, ROW_SUM_TOLERANCE
from cmtrack.statistics.tables import faults
from cmtrack.statistics.tables.columns import POWERS, Columns, renamed
from cmtrack.statistics.tables.expressions import total
from cmtrack.statistics.tables.tallies import ACTUAL, PREDICTED, SQUARE, WEIGHT, Run


@dataclass(frozen=True)
class Survey:
    """What a table holds.

    Attributes
    ----------
    frame : narwhals LazyFrame
        The table under the plan's own names.
    columns : Columns
    n_rows : int
    actual : list of labels
        That the rows have, in no order.
    rows : ndarray, int64
        How many rows each of them has.
    means : ndarray of shape (G, C)
        Of each given probability in each of them, but for rounding.
    powers : ndarray of shape (G, 3), int64, optional
        Sums of the row ids' powers.
    weights : tuple of str
        The columns of weights: none, one, or two where weights are fractions.
    beyond : bool
        Whether a probability lies a rounding error beyond 0 or 1.
    """

    frame: nw.LazyFrame[Any]
    columns: Columns
    n_rows: int
    actual: list[Any]
    rows: IntArray
    means: FloatArray
    powers: IntArray | None
    weights: tuple[str, ...]
    beyond: bool


def survey_table(
    table: nw.LazyFrame[Any], columns: Columns, run: Run, what: tuple[str, str] = ("y_true", "y_prob")
) -> Survey:
    """Look at a table once and check it.

    Parameters
    ----------
    table : narwhals LazyFrame
    columns : Columns
    run : callable
    what : pair of str
        What error texts call the labels and the probabilities.

    Raises
    ------
    ValueError
        No rows; missing labels; numbers that are missing, not finite or out of range. Each text says in how many rows.
    """
    frame, columns = renamed(table, columns, run)
    wanted = [nw.len().alias("n")]
    given = columns.given
    if columns.y_true is None:
        frame = frame.with_columns(**{ACTUAL: nw.lit(0)})
    if given:
        wanted += [getattr(nw.col(c), f)().alias(f"{f}_{c}") for c in given for f in ("count", "sum", "min", "max")]
        if len(given) > 1:
            frame = frame.with_columns(off=(total([nw.col(c) for c in given]) - 1).abs())
            wanted.append(nw.col("off").max().alias("max_off"))
    if columns.weight is not None:
        weight = nw.col(WEIGHT)
        frame = frame.with_columns(**{SQUARE: weight * weight, "part": weight - weight.floor()})
        wanted += [getattr(weight, f)().alias(f"{f}_{WEIGHT}") for f in ("count", "sum", "min", "max")]
        wanted.append(nw.col("part").max().alias("max_part"))
    if columns.row_ids is not None:
        wanted += [nw.col(power).sum().alias(power) for power in POWERS]
        wanted.append(nw.col(POWERS[0]).count().alias("count_ids"))
    groups = run("survey", frame.group_by(ACTUAL).agg(*wanted))
    rows = np.array(groups["n"], dtype=np.int64)
    n_rows = int(rows.sum())
    if not n_rows:
        raise ValueError("the table must have at least one row, got none")
    no_missing_labels(what[0], groups[ACTUAL], rows)
    column = {name: _numbers(groups[name]) for name in groups if name.startswith(("count_", "sum_", "min_", "max_"))}
    if given:
        sound = all(_sound(column, c, rows, -ROUNDING, 1 + ROUNDING) for c in given)
        if not sound or (len(given) > 1 and not (column["max_off"] <= ROW_SUM_TOLERANCE).all()):
            faults.explain_probabilities(frame, columns, run, n_rows, what[1])
    fractions = False
    if columns.weight is not None:
        if not _sound(column, WEIGHT, rows, 0.0, np.inf):
            faults.explain_weights(frame, run, n_rows)
        if not column[f"max_{WEIGHT}"].any():
            raise ValueError("sample_weight must not be zero everywhere")
        fractions = bool((column["max_part"] > 0).any())
    powers = None
    if columns.row_ids is not None:
        missing = n_rows - int(sum(groups["count_ids"]))
        if missing:
            raise ValueError(f"row_ids must not be null, got null in {missing} of {n_rows} rows")
        powers = np.array([groups[power] for power in POWERS], dtype=np.int64).T
    return Survey(
        frame=frame,
        columns=columns,
        n_rows=n_rows,
        actual=[plain(label) for label in groups[ACTUAL]],
        rows=rows,
        means=np.array([column[f"sum_{c}"] / rows for c in given]).reshape(len(given), len(rows)).T,
        powers=powers,
        weights=() if columns.weight is None else (WEIGHT, SQUARE) if fractions else (WEIGHT,),
        beyond=any((column[f"min_{c}"] < 0).any() or (column[f"max_{c}"] > 1).any() for c in given),
    )


def survey_pairs(survey: Survey, run: Run) -> tuple[list[Any], list[Any], IntArray, dict[str, list[Any]]]:
    """Actual and predicted labels that occur together, how often, and with which sums of weights.

    Raises
    ------
    ValueError
        If predicted labels are missing.
    """
    sums = [nw.col(weight).sum().alias(f"sum_{weight}") for weight in survey.weights]
    groups = dict(run("pairs of labels", survey.frame.group_by(ACTUAL, PREDICTED).agg(nw.len().alias("sum_"), *sums)))
    rows = np.array(groups["sum_"], dtype=np.int64)
    no_missing_labels("y_pred", groups[PREDICTED], rows)
    return groups.pop(ACTUAL), [plain(label) for label in groups.pop(PREDICTED)], rows, groups


def no_missing_labels(what: str, labels: list[Any], rows: Counts) -> None:
    """Refuse groups of rows without a label.

    Raises
    ------
    ValueError
        If there are any; the text has the number of rows.
    """
    missing = [label is None or (isinstance(label, float) and not np.isfinite(label)) for label in labels]
    if any(missing):
        raise ValueError(
            f"{what} must not have missing labels, got {int(rows[missing].sum())} in {int(rows.sum())} rows"
        )


def check_known(what: str, labels: list[Any], rows: IntArray, order: tuple[Label, ...]) -> None:
    """Refuse labels that are not among ``order``.

    Raises
    ------
    ValueError
        If there are any; the text has them and the number of rows.
    """
    strange = [label not in order for label in labels]
    if any(strange):
        names = list(dict.fromkeys(label for label, odd in zip(labels, strange, strict=True) if odd))
        n = int(rows[strange].sum())
        raise ValueError(f"{what} has labels that are not in {list(order)[:20]}: {names[:10]} ({n} rows)")


def _numbers(values: list[Any]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _sound(column: dict[str, FloatArray], name: str, rows: IntArray, low: float, high: float) -> bool:
    """Whether every value is there, finite and in range."""
    return bool(
        (column[f"count_{name}"] == rows).all()
        and np.isfinite(column[f"sum_{name}"]).all()
        and (column[f"min_{name}"] >= low).all()
        and (column[f"max_{name}"] <= high).all()
    )
