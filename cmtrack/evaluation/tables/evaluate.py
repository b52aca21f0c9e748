"""``evaluate_table``: a table that is anywhere -> :class:`Evaluation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cmtrack.evaluation.from_arrays import assemble, check_options, scores_first, tell_scaled, with_calibration
from cmtrack.evaluation.result import Evaluation
from cmtrack.evaluation.tables.labels import order_of_labels, place_of_probabilities
from cmtrack.evaluation.tables.opening import Tables, categories_of, is_table, opened
from cmtrack.evaluation.tables.watching import watched
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.own import own_metrics
from cmtrack.statistics.scores import ScoreCounts
from cmtrack.statistics.tables import (
    Columns,
    Run,
    Survey,
    check_known,
    choose_columns,
    collect_table,
    labelled_counts,
    survey_pairs,
    survey_table,
    target_counts,
)
from cmtrack.statistics.top_scores import TopScoreCounts


def evaluate_table(
    table: Any,
    *,
    y_true: str,
    y_pred: str | None = None,
    y_prob: str | Sequence[str] | Mapping[Label, str] | None = None,
    labels: Sequence[Label] | None = None,
    positive: Label | None = None,
    grouping: Grouping | None = None,
    calibration: Any = None,
    target: Any = None,
    sample_weight: str | None = None,
    row_ids: str | None = None,
    normalize: bool | str = "warn",
    sections: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    extra_metrics: Sequence[Metric] = (),
    progress: bool | None = None,
) -> Evaluation:
    """Judge predictions that are in files, or in a frame of any engine, without loading them.

    A handful of group-by queries is run by the table's own engine, and only small sums come back: files bigger than
    memory are read by DuckDB, Spark and Dask frames stay on their cluster. The counts, and all that follows from them,
    are those of :func:`cmtrack.evaluate` on the same rows; moments agree to rounding.

    Parameters
    ----------
    table : path, list of paths, or frame
        A file, glob or folder of Parquet or CSV; or any frame that narwhals knows: a DuckDB relation, Polars
        (DataFrame, LazyFrame), pandas, PyArrow, PySpark, Dask, Ibis. It is read several times: a Spark or Dask frame
        that is costly to compute is better persisted first.
    y_true : str
        Column of actual labels.
    y_pred : str, optional
        Column of predicted labels; by default the class of highest probability (the first one on ties).
    y_prob : str, list of str, or mapping of label to str, optional
        The columns of each class's probability: in the order of ``labels``, by label, or by a pattern such as
        ``"p_*"`` where the star stands for the label. One column holds lists of K probabilities, or the probability of
        the positive class of two.
    labels, positive, grouping, normalize, sections, confidence_level, extra_metrics
        As in :func:`cmtrack.evaluate`.
    calibration : path, frame or (y, scores), optional
        Labelled, held-out rows: a table with the same columns of labels and probabilities, or arrays as in
        :func:`cmtrack.evaluate`.
    target : path, frame or array-like, optional
        Unlabelled rows whose prevalence is wanted: a table with the same columns of probabilities, or arrays.
    sample_weight : str, optional
        Column of non-negative weights; whole numbers mean repeated rows.
    row_ids : str, optional
        Column of integers that name the rows. A table has no order: without ids, two evaluations count as "of the same
        data" if they have as many rows of each label.
    progress : bool, optional
        Whether to show on stderr which query runs; by default where that is a terminal.

    Returns
    -------
    Evaluation
        Without rows (``rows=None``).

    Raises
    ------
    ValueError
        Wrong input; the text gives the rule, the value and the number of rows.
    TypeError
        If the table is none, or a column's name is no text.
    """
    chosen_sections = check_options(grouping, confidence_level, normalize, sections)
    own = own_metrics(extra_metrics)
    if y_pred is None and y_prob is None:
        raise ValueError("y_pred or y_prob must be given, got neither")
    if y_prob is None and (calibration is not None or target is not None):
        raise ValueError("calibration and target need y_prob, got none")
    with opened() as tables:
        frame = tables.open(table)
        columns = choose_columns(
            frame.collect_schema().names(),
            y_true=y_true, y_pred=y_pred, y_prob=y_prob, sample_weight=sample_weight, row_ids=row_ids,
        )  # fmt: skip
        sides = [_is_table(side) for side in (calibration, target)]
        with watched(progress, tables, _n_queries(columns, grouping) + 2 * sum(sides)) as run:
            survey = survey_table(tables.lazy(frame, columns.names), columns, run, normalize=normalize)
            columns = survey.columns
            pairs = None if y_pred is None else survey_pairs(survey, run)
            chosen = [categories_of(frame, name) for name in (y_true, y_pred) if name is not None]
            order = order_of_labels(survey, pairs, labels, grouping, chosen)
            step, place = place_of_probabilities(columns, order, grouping, positive)
            statistics = collect_table(survey, order, place, step, pairs, run)
            if place is not None:
                held_y, held_target = (
                    None if own else side for own, side in zip(sides, (calibration, target), strict=True)
                )
                statistics = with_calibration(
                    statistics, order, step, scores_first(order, step), held_y, held_target, normalize
                )
                held = _Held(tables, columns, order, place, step, run, normalize)
                kept: dict[str, Any] = {}
                if sides[0]:
                    kept["labelled" if step is not None else "labelled_tops"] = held.labelled(calibration)
                if sides[1]:
                    kept["target" if step is not None else "target_tops"] = held.target(target)
                statistics = replace(
                    statistics, scaled_rows=((statistics.scaled_rows or 0) + sum(held.scaled)) or None, **kept
                )
    tell_scaled(statistics)
    return assemble(statistics, grouping, positive, step, confidence_level, chosen_sections, own=own)


@dataclass(frozen=True)
class _Held:
    """Reads calibration and target tables: those with the same columns as the evaluated one."""

    tables: Tables
    columns: Columns
    order: tuple[Label, ...]
    place: list[int]
    step: ComposedStep | None
    run: Run
    normalize: bool | str
    scaled: list[int] = field(default_factory=list)

    def labelled(self, table: Any) -> ScoreCounts | TopScoreCounts:
        """Counts of a calibration table."""
        survey = self._survey(table, self.columns.y_true, ("calibration y", "calibration scores"))
        check_known("calibration y", survey.actual, survey.rows, self.order)
        step = self.step
        if step is not None:
            own = {bool(step.group_of_class[self.order.index(label)] == step.positive) for label in survey.actual}
            if len(own) == 1:
                raise ValueError(
                    f"calibration must hold labels of both {list(step.labels)}, got only {survey.n_rows} like "
                    f"{survey.actual[0]!r}"
                )
        return labelled_counts(survey, self.order, self.place, step, self.run)

    def target(self, table: Any) -> ScoreCounts | TopScoreCounts:
        """Counts of a target table."""
        survey = self._survey(table, None, ("target", "target"))
        return target_counts(survey, self.order, self.place, self.step, self.run)

    def _survey(self, table: Any, y_true: str | None, what: tuple[str, str]) -> Survey:
        frame = self.tables.open(table)
        try:
            columns = choose_columns(frame.collect_schema().names(), y_true=y_true, y_prob=list(self.columns.scores))
        except ValueError as error:
            raise ValueError(f"{what[1]}: {error}") from None
        survey = survey_table(self.tables.lazy(frame, columns.names), columns, self.run, what, self.normalize)
        self.scaled.append(survey.scaled_rows)
        if len(survey.columns.parts) != len(self.columns.parts):
            raise ValueError(
                f"{what[1]} must have as many probabilities as y_prob, got {len(survey.columns.parts)} and "
                f"{len(self.columns.parts)}"
            )
        return survey


def _n_queries(columns: Columns, grouping: Grouping | None) -> int:
    """How many queries a table will take: a survey, pairs of labels, moments and scores."""
    if not columns.scores:
        return 2
    two = len(columns.scores) <= 2 or (grouping is not None and any(len(s.labels) == 2 for s in grouping.steps))
    return 4 if two or columns.y_pred is not None else 3  # the most probable classes are counted with the tops


def _is_table(side: Any) -> bool:
    return side is not None and not (isinstance(side, str) and side == "cross-fit") and is_table(side)
