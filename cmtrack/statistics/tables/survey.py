"""The first look at a table: which classes it has, how many rows, and whether its numbers are what they should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.labels import no_scores, unknown_labels
from cmtrack.statistics.probabilities import ROUNDING, ROW_SUM_TOLERANCE, Normalize, most_off
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
    scaled_rows : int
        How many rows of probabilities did not sum to 1 and were scaled, where that is to be told.
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
    scaled_rows: int = 0


def survey_table(
    table: nw.LazyFrame[Any],
    columns: Columns,
    run: Run,
    what: tuple[str, str] = ("y_true", "y_prob"),
    normalize: Normalize = False,
) -> Survey:
    """Look at a table once and check it.

    Parameters
    ----------
    table : narwhals LazyFrame
    columns : Columns
    run : callable
    what : pair of str
        What error texts call the labels and the probabilities.
    normalize : "warn", True or False, default False
        Whether rows of probabilities that sum to 0.98 to 1.02 are scaled to sum to 1.

    Raises
    ------
    ValueError
        No rows; missing labels; numbers that are missing, not finite or out of range. Each text says in how many rows.
    """
    frame, columns = renamed(table, columns, run)
    if columns.y_true is None:
        frame = frame.with_columns(**{ACTUAL: nw.lit(0)})
    if columns.weight is not None:
        weight = nw.col(WEIGHT)
        frame = frame.with_columns(**{SQUARE: weight * weight, "part": weight - weight.floor()})
    frame, groups, scaled = _first_look(frame, columns, run, what, normalize)
    rows = np.array(groups["n"], dtype=np.int64)
    n_rows = int(rows.sum())
    given, column = columns.given, _sums(groups)
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
        scaled_rows=scaled,
    )


def _first_look(
    frame: nw.LazyFrame[Any], columns: Columns, run: Run, what: tuple[str, str], normalize: Normalize
) -> tuple[nw.LazyFrame[Any], Mapping[str, list[Any]], int]:
    """The table, what each actual class holds, and how many rows were scaled of which that is to be told."""
    given, wanted = columns.given, [nw.len().alias("n")]
    if given:
        wanted += [getattr(nw.col(c), f)().alias(f"{f}_{c}") for c in given for f in ("count", "sum", "min", "max")]
        if len(given) > 1:
            frame = frame.with_columns(row_sum=total([nw.col(c) for c in given]))
            frame = frame.with_columns(off=(nw.col("row_sum") - 1).abs())
            wanted.append(nw.col("off").max().alias("max_off"))
    if columns.weight is not None:
        wanted += [getattr(nw.col(WEIGHT), f)().alias(f"{f}_{WEIGHT}") for f in ("count", "sum", "min", "max")]
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
    column = _sums(groups)
    off = column["max_off"] if len(given) > 1 else np.zeros(1)
    sound = all(_sound(column, c, rows, -ROUNDING, 1 + ROUNDING) for c in given)
    if not sound or not (off <= most_off(normalize)).all():
        faults.explain_probabilities(frame, columns, run, n_rows, what[1], normalize)
    if (off <= ROW_SUM_TOLERANCE).all():
        return frame, groups, 0
    rounded = nw.col("off") > ROW_SUM_TOLERANCE
    counted = frame.select(scaled=nw.when(rounded).then(nw.lit(1, nw.Int64)).otherwise(nw.lit(0, nw.Int64)))
    scaled = int(run("rows to be scaled", counted.select(nw.col("scaled").sum()))["scaled"][0])
    factor = nw.when(rounded).then(nw.col("row_sum")).otherwise(nw.lit(1.0))
    frame = frame.with_columns(factor=factor)
    frame = frame.with_columns(**{c: nw.col(c) / nw.col("factor") for c in given}).drop("row_sum", "off", "factor")
    frame, groups, _ = _first_look(frame, columns, run, what, False)
    return frame, groups, 0 if normalize is True else scaled


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
        no_scores(what, names)
        raise ValueError(unknown_labels(what, names, order, n))


def _sums(groups: Mapping[str, list[Any]]) -> dict[str, FloatArray]:
    """The columns of sums and ends, as numbers."""
    starts = ("count_", "sum_", "min_", "max_")
    return {name: _numbers(groups[name]) for name in groups if name.startswith(starts)}


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
