"""``evaluate``: the function that turns labels and probabilities into an :class:`Evaluation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from cmtrack.evaluation.compute import check_own, deciding, scored_step, scores_first
from cmtrack.evaluation.input_remarks import (
    columns_in_text_order,
    input_warnings,
    reversed_columns,
    warn_of_input,
)
from cmtrack.evaluation.result import Evaluation
from cmtrack.evaluation.spec import Options, Spec, takes_options
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.options import probabilities_of
from cmtrack.prevalence.out_of_fold import Folds, by_fold, calibration_parts
from cmtrack.segments.columns import segment_columns
from cmtrack.statistics import LabelDigest, ScoreCounts
from cmtrack.statistics.collected import (
    Statistics,
    collect,
    collect_rows,
    group_scores,
    is_positive,
    with_segments_of,
)
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import (
    FloatArray,
    IntArray,
    align_rows,
    as_weights,
    column_names,
    kind_of_weights,
    listed,
    n_rows,
)
from cmtrack.statistics.labels import (
    encode_labels,
    encode_row_ids,
    number_labels,
    row_id_values,
)
from cmtrack.statistics.predictions import Predictions, RowIds
from cmtrack.statistics.probabilities import DECISIONS, Normalize, as_probabilities
from cmtrack.statistics.segment_values import Divisions, SegmentRows, declared, divided, value_order
from cmtrack.statistics.top_scores import TopScoreCounts


@takes_options
def evaluate(
    y_true: Any,
    y_pred: Any = None,
    *,
    y_prob: Any = None,
    y_score: Any = None,
    labels: Sequence[Label] | None = None,
    calibration: Any = None,
    target: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    row_ids: Any = None,
    segments: Any = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Evaluate the predictions of a classifier.

    Rows are matched by position. Pandas columns are matched by their index, unless this is the
    default index (0 to n - 1), which does not identify rows. If a column's index contains the keys
    of ``y_true`` in a different order, cmtrack reorders the column. If the keys differ in any other
    way, cmtrack raises a ValueError.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Actual labels: integers, strings or booleans, as a list or from NumPy, pandas, polars or
        Arrow. Continuous values raise a ValueError unless ``labels`` lists them. Masked entries of
        ``numpy.ma`` always raise a ValueError. The same rules apply to ``y_pred``.
    y_pred : array-like of shape (n,), optional
        Predicted labels. By default, each row is assigned to the class with the highest probability
        (to the first class if several are tied).
    y_prob : array-like of shape (n,) or (n, K), or mapping or frame of one column per label,
    optional
        Probability of the positive class if there are two classes, or of each class in the order of
        ``labels``. Curves use the probabilities without rounding, so two numbers that differ only
        in the last digit are not tied.
    y_score : array-like in the forms of ``y_prob``, optional
        Decision values instead of probabilities, for example from an SVC or a ridge classifier. For
        two classes, pass the values of the positive class, which is predicted if its value is above
        0. Decision values only rank rows, so only ranking metrics are computed: ROC, precision and
        recall, and top k. If there are more than two classes, ranking metrics are computed for each
        class.
    labels : sequence of length K, optional
        All classes in order, including classes that do not occur in the data. By default,
        ``labels`` consists of the labels that occur in the data, in ``grouping`` or as column names
        of ``y_prob``, in sorted order.
    calibration : (y, scores) or (y, scores, fold_ids), optional
        Labelled scores that calibrate the prevalence estimate, in the forms of ``y_true`` and
        ``y_prob``. The prevalence estimate equals the result of
        :func:`cmtrack.estimate_prevalence`. By default ("cross-fit"), the evaluated rows calibrate
        the estimate, and each row is left out when the density at its own score is estimated.

        The scores must be **held out or out of fold**. If the model was trained on the scored rows,
        the estimate is badly wrong (five times too high in a documented case), and this cannot be
        detected from the data. Out-of-fold scores come from different fits than the evaluated
        model, which makes the estimate unusable for some learners. Therefore pass the fold id of
        each row, and let the model of every fold score the target. If only one model scored the
        target, cmtrack issues a warning.
    target : array-like in the forms of ``y_prob``, or list of K of them, optional
        Unlabelled scores of the rows whose prevalence is estimated. By default, the target consists
        of the evaluated rows. If you pass ``fold_ids``, ``target`` must be a list with one entry
        for each fold, in the sorted order of the ids. The entry of a fold contains the scores that
        the fold's model computes for the target's rows.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights. The option ``weights_are`` sets the meaning of the weights.
    groups : array-like of shape (n,), optional
        The cluster of each row, for example the person from whom the row comes. If ``groups`` is
        given, intervals assume that clusters, not rows, are independent.
    row_ids : array-like of shape (n,), optional
        Names of the rows. Paired comparisons check that two evaluations contain the same names, and
        match their rows by name. If the rows have no names, paired comparisons check that the
        actual labels of both evaluations are in the same order.
    segments : frame, mapping of columns, series, or pair of one of these and a list of names,
    optional
        Columns of categories that divide the rows, for :attr:`Evaluation.segments`. A tuple in the
        list of names crosses several columns: ``(frame, ["region", ("region", "age_band")])``. Rows
        with a missing value form their own segment. If a column contains more than 1,000 values,
        only the 999 values with the most rows become individual segments. The other values of the
        column form one segment, and a note reports this.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If the input is invalid. The error message states the violated rule and the invalid value.

    Warns
    -----
    ScaledProbabilitiesWarning
        If rows of probabilities were scaled so that they sum to 1. :attr:`Evaluation.warnings`
        contains the same warning.
    MixedUpClassesWarning
        If predictions or probabilities seem to be assigned to the wrong classes.

    Notes
    -----
    The function reads the n rows once. The computing time is O(n) without probabilities. If there
    are probabilities, the computing time is O(n K), or O(n K²) for at most 30 classes. On one core,
    evaluating 10⁶ rows with 11 classes takes about 0.03 s without probabilities and 0.3 s with
    probabilities. Each column of segments adds about 0.1 s. The argument ``groups`` adds about 8 s,
    because the influence of every metric is summed for each group. Arrays of float64 are not
    copied, so evaluating 2 * 10⁶ rows with 11 probabilities needed only 35 MB of memory in addition
    to the input. The size of the statistics is O(K²), or O(K³) for at most 30 classes whose
    probabilities are given.

    Examples
    --------
    >>> from cmtrack import Grouping, evaluate
    >>> p = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]]
    >>> grouping = Grouping({"low": [0, 1], "high": [2]})
    >>> evaluation = evaluate([0, 1, 2, 0, 2], y_prob=p, grouping=grouping)
    >>> evaluation.confusion_matrix.counts.tolist()
    [[1, 1, 0], [0, 1, 0], [0, 1, 1]]
    >>> evaluation.metrics["multiclass/accuracy"], evaluation.metrics["binary/recall"]
    (0.6, 0.5)
    >>> low, high = evaluation.intervals["multiclass/accuracy"]
    >>> round(low, 2), round(high, 2)
    (0.23, 0.88)
    """
    arrays = Inputs(
        y_true,
        y_pred,
        y_prob=probabilities_of(y_prob, options),
        y_score=y_score,
        labels=labels,
        calibration=calibration,
        target=target,
        sample_weight=sample_weight,
        groups=groups,
        row_ids=row_ids,
        segments=segments,
    )
    evaluation, warnings = evaluated(arrays, options)
    warn_of_input(warnings)
    return evaluation


@dataclass
class Inputs:
    """The data arguments of :func:`evaluate`, as they were passed."""

    y_true: Any
    y_pred: Any = None
    y_prob: Any = None
    y_score: Any = None
    labels: Sequence[Label] | None = None
    calibration: Any = None
    target: Any = None
    sample_weight: Any = None
    groups: Any = None
    row_ids: Any = None
    segments: Any = None

    def arrays(self) -> dict[str, Any]:
        """The columns that are saved if the evaluation fails, by name."""
        columns = ("y_true", "y_pred", "y_prob", "y_score", "sample_weight")
        return {name: getattr(self, name) for name in columns}


def evaluated(inputs: Inputs, options: Mapping[str, Any]) -> tuple[Evaluation, list[UserWarning]]:
    """Evaluate like :func:`evaluate`, but return the warnings instead of issuing them."""
    spec = Spec.of(options, evaluate)
    scores_name, scores, normalize = one_of_both(
        inputs.y_pred, inputs.y_prob, inputs.y_score, spec.normalize
    )
    segment_data = None
    divisions: Divisions = ()
    if inputs.segments is not None:
        segment_data, divisions = declared(inputs.segments)
    aligned = align_rows(
        {
            "y_true": inputs.y_true,
            "y_pred": inputs.y_pred,
            scores_name: scores,
            "sample_weight": inputs.sample_weight,
            "groups": inputs.groups,
            "row_ids": inputs.row_ids,
            "segments": segment_data,
        }
    )
    scores = aligned[scores_name]
    row_ids = aligned["row_ids"]
    predictions = {"y_pred": aligned["y_pred"], scores_name: scores}
    given_columns = [name for name, column in predictions.items() if column is not None]
    columns = {"y_true": aligned["y_true"]}
    if "y_pred" in given_columns:
        columns["y_pred"] = aligned["y_pred"]
    declared_labels = _declared(scores, spec.grouping) if inputs.labels is None else None
    numbered = number_labels(columns, inputs.labels, declared_labels)
    order = numbered.labels
    actual = numbered.codes["y_true"]
    step = scored_step(order, spec.grouping, spec.positive)
    step = deciding(step, spec.threshold, order, given_columns)
    weights = as_weights(aligned["sample_weight"], len(actual), spec.weights_are)
    probabilities = None
    if scores is not None:
        first = scores_first(order, step)
        probabilities = as_probabilities(scores, order, len(actual), first, scores_name, normalize)
    has_calibration = inputs.calibration is not None or inputs.target is not None
    if has_calibration and inputs.y_prob is None:
        raise ValueError("calibration and target need y_prob, got none")
    design = Design(len(actual), weights).with_groups(aligned["groups"])
    divided_rows = segment_rows(aligned["segments"], divisions, len(actual))
    predicted = numbered.codes.get("y_pred")
    pairs = None if predicted is None else numbered.count("y_true", "y_pred", weights)
    check_order(spec, order, inputs.labels is not None)
    prices = prices_of(spec, order)
    counting = Counting(order, step, spec.grouping, prices, spec.ordered)
    statistics, predicted = collect(
        counting,
        actual,
        predicted,
        probabilities=probabilities,
        weights=weights,
        pairs=pairs,
        segments=divided_rows,
    )
    rows = Predictions(order, actual, predicted, design, probabilities, divided_rows)
    if row_ids is not None:
        digest = LabelDigest.from_codes(*encode_row_ids(row_ids, len(actual)))
        statistics = replace(statistics, row_ids=digest)
        rows = replace(rows, ids=RowIds(row_id_values(row_ids)))
    if probabilities is not None and inputs.y_prob is not None:
        statistics = with_calibration(
            statistics, counting, inputs.calibration, inputs.target, normalize
        )
    evaluation = assemble(statistics, step, spec, kind_of_weights(weights), rows)
    remarks = [numbered.remark]
    reversed_order = ""
    if "y_pred" in given_columns and probabilities is not None:
        reversed_order = reversed_columns(rows.actual, rows.predicted, probabilities)
        remarks.append(reversed_order)
    if inputs.labels is None and scores is not None:
        remarks.append(_order_of_categories(order, scores))
    remarks = [remark for remark in remarks if remark]
    evaluation = replace(evaluation.with_cluster_errors(), remarks=tuple(remarks))
    return evaluation, input_warnings(statistics, reversed_order)


def _order_of_categories(order: tuple[Label, ...], scores: Any) -> str:
    """Return a remark if unnamed columns are in the order of categories or texts; else empty."""
    is_mixed = len({type(label) for label in order}) > 1  # labels of mixed types cannot be ordered
    if is_mixed or column_names(scores) is not None:
        return ""
    if list(order) == sorted(order):  # type: ignore[type-var]
        return columns_in_text_order(order)
    return (
        "labels= is not given: the columns of the scores are read in the order of the labels' "
        f"categories, {listed(order, 8)}; the columns of a scikit-learn model have the order of "
        "its classes_"
    )


def segment_rows(data: Any, divisions: Divisions, n_rows: int) -> tuple[SegmentRows, ...]:
    """Divide the rows by each column or crossing into at most 1,000 segments."""
    if not divisions:
        return ()
    columns = {}
    for name, column in zip(data, segment_columns(data, n_rows), strict=True):
        columns[name] = SegmentRows.of(column.name, column.values, column.codes)
    return tuple(
        segments.arranged(value_order(segments.values, False)).limited()[0]
        for segments in divided(columns, divisions)
    )


def one_of_both(
    y_pred: Any, y_prob: Any, y_score: Any, normalize: bool | str
) -> tuple[str, Any, bool | str]:
    """Return the name of the argument for scores, the scores, and the normalization rule."""
    if y_score is None:
        if y_pred is None and y_prob is None:
            raise ValueError("evaluation needs y_pred or y_prob, got neither")
        return "y_prob", y_prob, normalize
    if y_prob is not None:
        raise ValueError("pass either y_prob or y_score, got both: y_score is for decision values")
    return "y_score", y_score, DECISIONS


def assemble(
    statistics: Statistics,
    step: ComposedStep | None,
    spec: Spec,
    weights_are: str | None,
    rows: Predictions | None = None,
) -> Evaluation:
    """Create an evaluation from statistics, and record which positive class was used."""
    check_own(statistics, step, spec.extra_metrics)
    return Evaluation(statistics, spec.settled(statistics.matrix.labels, step, weights_are), rows)


def prices_of(spec: Spec, labels: tuple[Label, ...]) -> FloatArray | None:
    """Return the costs by actual and predicted class, shape (K, K); None if no costs are given."""
    return None if spec.costs is None else spec.costs.matrix(labels, spec.grouping)


def check_order(spec: Spec, labels: tuple[Label, ...], is_given: bool) -> None:
    """Raise ValueError if classes should be ordered, but their order is unknown.

    ``labels``: the K classes in order.
    ``is_given``: whether the caller passed ``labels=``.
    """
    if not spec.ordered or is_given:
        return
    numbers = [label for label in labels if isinstance(label, (int, float))]
    if len(numbers) == len(labels) and numbers == sorted(numbers):
        return
    raise ValueError(
        "ordered=True needs labels= with all classes in their order, unless the classes are "
        "numbers, because '10' would come before '2'; "
        f"got {listed(labels, 12)} without labels="
    )


def evaluate_rows(rows: Predictions, like: Evaluation) -> Evaluation:
    """Evaluate rows that are already checked, with the options of an existing evaluation.

    The calibration set and the target of the existing evaluation are not used.
    """
    step = scored_step(rows.labels, like.grouping, like.positive)
    ordered = like.spec.ordered
    counting = Counting(rows.labels, step, like.grouping, like.prices, ordered)
    statistics = collect_rows(rows, counting)
    spec = replace(like.spec, weights_are=kind_of_weights(rows.design.weights))
    return Evaluation(statistics, spec, rows).with_cluster_errors()


def with_segments(evaluation: Evaluation, segments: Any) -> Evaluation:
    """Return a copy of the evaluation whose rows are divided into segments.

    ``segments``: same as in :func:`evaluate`, in the order of the rows.
    """
    rows = evaluation.rows
    if not isinstance(rows, Predictions):
        raise ValueError("segments need the rows, which this evaluation does not have")
    data, divisions = declared(segments)
    return divided_by(evaluation, rows, segment_rows(data, divisions, len(rows)))


def divided_by(
    evaluation: Evaluation, rows: Predictions, segments: tuple[SegmentRows, ...]
) -> Evaluation:
    """Return a copy of the evaluation whose rows are divided into segments that are valid."""
    rows = replace(rows, segments=segments)
    counted = collect_rows(rows, evaluation.counting)
    statistics = with_segments_of(evaluation.statistics, counted)
    return replace(evaluation, statistics=statistics, rows=rows)


def _declared(y_prob: Any, grouping: Grouping | None) -> list[Any] | None:
    """Return the classes named by columns of a frame or by groups; None if none are named."""
    if y_prob is not None and column_names(y_prob) is not None:
        return column_names(y_prob)
    if grouping is None:
        return None
    classes = [label for members in grouping.steps[0].groups.values() for label in members]
    has_columns = y_prob is not None and np.ndim(y_prob) == 2
    if has_columns and np.shape(y_prob)[-1] != len(classes):
        return None  # the number of columns decides, not the groups
    return classes


def with_calibration(
    statistics: Statistics, counting: Counting, calibration: Any, target: Any, normalize: Normalize
) -> Statistics:
    """Add counts of the calibration scores and the target scores, if given, to the statistics."""
    order = counting.labels
    reader = _ScoreReader(counting, normalize)
    counts: dict[str, Any] = {}
    folds: Folds | None = None
    fold_targets: Sequence[Any] | None = None
    is_cross_fit = isinstance(calibration, str) and calibration == "cross-fit"
    if calibration is not None and not is_cross_fit:
        y, scores, ids = calibration_parts(calibration, " or 'cross-fit'")
        codes = encode_labels({"calibration y": y}, order)[1]["calibration y"]
        labelled_scores = reader.read("calibration scores", scores, len(codes))
        if ids is not None:
            folds = Folds.from_ids(ids, len(codes))
            if target is not None:
                fold_targets = folds.score_sets(target, len(order), "target")
        # Folds are counted separately only if one model scored the target, because the estimate
        # then leaves out one fold at a time.
        counted_folds = folds if fold_targets is None else None
        counts |= _count_labelled(counting, codes, labelled_scores, counted_folds)
    if target is not None:
        name = "target" if counting.step is not None else "target_tops"
        if folds is None or fold_targets is None:
            scores = reader.read("target", target, n_rows(target))
            counts[name] = _count_target(counting, scores, None)
        else:
            by_model = [
                reader.read(f"target[{k}]", scores, n_rows(scores))
                for k, scores in enumerate(fold_targets)
            ]
            scores, weights = folds.joined(by_model, "target")
            counted: Any = _count_target(counting, scores, weights)
            counts[name] = folds.per_row(counted)
    scaled = (statistics.scaled_rows or 0) + reader.scaled_rows
    return replace(statistics, scaled_rows=scaled or None, **counts)


@dataclass
class _ScoreReader:
    """Reader of calibration and target scores that counts how many rows were scaled."""

    counting: Counting
    normalize: Normalize
    scaled_rows: int = 0

    def read(self, name: str, data: Any, rows: int) -> FloatArray:
        order = self.counting.labels
        first = scores_first(order, self.counting.step)
        scores = as_probabilities(data, order, rows, first, name, self.normalize)
        array = scores.array  # first, because reading the array counts the scaled rows
        self.scaled_rows += scores.scaled_rows
        return array


def _count_labelled(
    counting: Counting, codes: IntArray, scores: FloatArray, folds: Folds | None
) -> dict[str, Any]:
    """Count labelled scores; return the counts by their field names in the statistics."""
    step = counting.step
    if step is None:
        rows, n_codes = by_fold(codes, folds, len(counting.labels))
        return {"labelled_tops": TopScoreCounts.from_scores(rows, scores, n_codes)}
    positive_rows = is_positive(codes, step)
    if positive_rows.all() or not positive_rows.any():
        label = counting.labels[codes[0]]
        raise ValueError(
            f"calibration must have labels of both {list(step.labels)}, got {len(codes)} labels "
            f"like {label!r} only"
        )
    rows, n_codes = by_fold(positive_rows, folds, 2)
    return {"labelled": ScoreCounts.from_scores(group_scores(scores, step), rows, n_codes)}


def _count_target(
    counting: Counting, scores: FloatArray, weights: IntArray | None
) -> ScoreCounts | TopScoreCounts:
    """Count the scores of a target, all in a single class because the labels are unknown."""
    step = counting.step
    if step is None:
        codes = np.zeros(len(scores), dtype=np.int64)
        return TopScoreCounts.from_scores(codes, scores, 1, weights)
    return ScoreCounts.from_scores(group_scores(scores, step), weights=weights)
