"""Entry point: :func:`estimate_prevalence` reads scores and options, and chooses an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from cmtrack.grouping import Label
from cmtrack.metrics.intervals import check_level
from cmtrack.prevalence.domains import (
    CellRows,
    DomainCounter,
    DomainPrevalence,
    DomainShares,
    read_assumption,
    read_labelled,
    unlike_warning,
)
from cmtrack.prevalence.estimators import binned_estimate, class_estimate, modelled_estimate
from cmtrack.prevalence.out_of_fold import Folds, calibration_parts
from cmtrack.prevalence.results import ClassPrevalenceEstimate, PrevalenceEstimate
from cmtrack.removed import RemovedFeature, reason
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import (
    BoolArray,
    FloatArray,
    IntArray,
    column_names,
    n_rows,
    to_float_array,
)
from cmtrack.statistics.labels import number_as_they_come
from cmtrack.statistics.probabilities import as_probabilities

DENSITIES = ("auto", "bins")
INTERVALS = ("adjusted", "naive")


@overload
def estimate_prevalence(
    scores: Any,
    *,
    calibration: Any,
    positive: Label | None = None,
    density: str = "auto",
    interval: str = "adjusted",
    confidence_level: float = 0.95,
) -> PrevalenceEstimate | ClassPrevalenceEstimate: ...


@overload
def estimate_prevalence(
    scores: Any,
    *,
    by: Any,
    calibration: Any,
    calibration_by: Any = None,
    positive: Label | None = None,
    assumption: str = "auto",
    half_width: float = 0.05,
    confidence_level: float = 0.95,
) -> DomainPrevalence: ...


def estimate_prevalence(
    scores: Any,
    *,
    calibration: Any,
    positive: Label | None = None,
    density: str = "auto",
    interval: str = "adjusted",
    confidence_level: float = 0.95,
    by: Any = None,
    calibration_by: Any = None,
    assumption: str = "auto",
    half_width: float = 0.05,
) -> PrevalenceEstimate | ClassPrevalenceEstimate | DomainPrevalence:
    """Estimate the share and the number of positives among unlabelled scores.

    With ``by``, the result is a table with an estimate for each cell, such as a region in a month.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, 2), or frame or mapping of one column per label
        Scores of the target, which may be any real numbers. A higher score must mean that the row
        is more likely to be positive. If there are K > 2 classes, the scores must be probabilities,
        shape (n, K). With ``fold_ids``, you can also pass a list with the scores that each fold's
        model predicts for the same n rows, in the sorted order of the ids. An array of shape
        (folds, n) or (folds, n, K) is also accepted.
    calibration : (y, scores) or (y, scores, fold_ids)
        Labelled scores of the same scorer, **held out or out of fold**. cmtrack cannot recognise
        scores of rows that the scorer was trained on. If the scorer is flexible, such scores make
        the estimate badly wrong. In a documented case with 69 positives, the estimate was 412.6
        with training scores and 80.1 with out-of-fold scores. Out-of-fold scores come from
        different fits than the scores of the target. For some learners, this makes the estimate
        badly wrong. To avoid this, pass the fold id of each row, and score the target with the
        model of every fold. Both sides then come from the same mixture of fits. If you pass ids and
        a single target array, you get a warning, and the interval is widened to include the
        estimates that leave out one fold. If there are more than 50 folds, several folds are left
        out at a time.
    positive : label, optional
        The positive class; by default the last label in sorted order.
    density : {"auto", "bins"}, default "auto"
        Model of the scores of each class. If there are two classes, "auto" stacks four models of
        the ratio of the two score densities (isotonic, kernel densities on the logit, beta and
        logistic). The weights of the models maximise the cross-validated log score of the labelled
        rows. The stack is cross-fitted with two sets of folds, and the interval covers the results
        of both. "auto" matches a moment of the scores that the ratio makes efficient, so a wrong
        ratio makes the interval wider but causes no bias. If the number of distinct labelled scores
        is at most the number of bins, "auto" uses "bins", which then lose no information. If K > 2,
        "auto" stacks recalibrated probabilities: unchanged, with a single slope, with a slope per
        class (for at most 50 classes), and with all slopes (for at most 20 classes). The
        cross-fitted stack is used to match moments of the posteriors. The better the result agrees
        with the maximum-likelihood estimate, the closer the estimate is moved towards it. "bins"
        computes the maximum-likelihood estimate over class-balanced quantile bins, after adding a
        fraction of a count to each bin.
    interval : {"adjusted", "naive"}, default "adjusted"
        "adjusted" is the profile-likelihood interval for the prevalence in the target's population.
        It is widened to allow for the error of the densities. If K > 2, it is Wald's interval. If
        there are at most 30 classes, it excludes shares that are possible only if the share of a
        different class is below 0. "naive" is available for two classes only. It ignores the error
        of the densities, so it contains the true prevalence far too rarely. ``count_low`` and
        ``count_high`` are the limits of the interval for the number of positives in this target,
        computed with the same method.
    confidence_level : float, default 0.95
    by : array, list of arrays, mapping or frame of length n, optional
        The columns that divide the target into cells, with the time last:
        ``{"region": ..., "month": ...}``. If the last column contains numbers or dates in one form
        (such as 2024-01), its values are sorted. Otherwise they keep their order.
    calibration_by : like ``by``, of length m, optional
        The same columns for the labelled rows. Without it, no cell has labelled rows of its own.
        Two values match if their texts are equal, such as the year 2017 and the text "2017".
        Fold ids cannot be combined with ``by``.
    assumption : {"auto", "calibration", "shift"}, default "auto"
        With ``by``: the assumption for cells with fewer than 20 labelled rows. "calibration": a
        score means the same chance as in the labelled rows. "shift": within each class, the scores
        are distributed as in the labelled rows. "auto" checks both on the labelled cells.
    half_width : float, default 0.05
        With ``by``: the half-width for which the table states how many labelled rows are missing.

    Returns
    -------
    PrevalenceEstimate, ClassPrevalenceEstimate for K > 2, or DomainPrevalence with ``by``
        ``value``, ``low``, ``high``; ``count`` with ``count_low`` and ``count_high`` for this
        target; for K > 2 also ``by_class``. If the target's scores do not fit the labelled scores
        (``fit_pvalue`` below 0.01), all of these numbers are NaN, and ``undefined`` contains the
        reason. In this case, ``shift`` contains the refused value and its interval. ``calibration``
        is the share with its interval if a score means the same as in the labelled rows. If this
        interval and the interval of the estimate are disjoint, a warning states both shares.

    Raises
    ------
    ValueError
        If the input is invalid, if all calibration rows belong to one class, or if the number of
        score arrays differs from the number of folds.

    Notes
    -----
    "auto" fits and cross-fits four models to the labelled scores and sorts the target, which takes
    O(n log n) time. For 10⁴ labelled and 10⁵ target scores, this takes less than 1 s on one core.
    "bins" takes milliseconds.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 500)
    >>> labelled = rng.normal(2 * y)
    >>> target = np.concatenate((rng.normal(0, 1, 9_500), rng.normal(2, 1, 500)))
    >>> estimate = estimate_prevalence(target, calibration=(y, labelled))
    >>> bool(estimate.low < 0.05 < estimate.high)
    True
    """
    check_level(confidence_level)
    y, calibration_scores, fold_ids = calibration_parts(calibration)
    labels, codes = number_as_they_come({"calibration y": y})
    if len(labels) < 2:
        raise ValueError(f"calibration y must contain two or more classes, got only {list(labels)}")
    actual = codes["calibration y"].all()
    if positive is None:
        positive = labels[-1]
    if positive not in labels:
        raise ValueError(f"positive must be one of {list(labels)}, got {positive!r}")
    _check_options(density, interval)
    _check_by(by, calibration_by, assumption, (density, interval), fold_ids)
    is_binary = len(labels) == 2
    if is_binary:
        actual = (actual == labels.index(positive)).astype(np.int64)

    def read(name: str, data: Any) -> FloatArray:
        if is_binary:
            return _one_score(name, data, labels, positive)
        return as_probabilities(data, labels, n_rows(data), False, name).array

    labelled_scores = read("calibration scores", calibration_scores)
    if len(labelled_scores) != len(actual):
        rows = "score" if is_binary else "row"
        raise ValueError(
            f"calibration needs one {rows} per label, "
            f"got {len(labelled_scores)} {rows}s and {len(actual)} labels"
        )
    if by is not None:
        target = read("scores", scores)
        return _estimate_by_cell(
            target,
            by,
            CalibrationRows(labels, positive, actual, labelled_scores),
            calibration_by,
            assumption=assumption,
            half_width=half_width,
            confidence_level=confidence_level,
        )
    folds = None if fold_ids is None else Folds.from_ids(fold_ids, len(actual))
    n_of_fold = None
    sets = None
    if folds is not None:
        sets = folds.score_sets(scores, len(labels), "scores")
    if folds is not None and sets is not None:
        arrays = [read(f"scores[{k}]", array) for k, array in enumerate(sets)]
        target, n_of_fold = folds.joined(arrays, "scores")
    else:
        target = read("scores", scores)
    if not len(target):
        raise ValueError("scores must have at least one row, got none")
    options: dict[str, Any] = {
        "positive": positive,
        "interval": interval,
        "confidence_level": confidence_level,
    }
    weights = None if n_of_fold is None else n_of_fold / len(actual)
    counted: FloatArray | ScoreCounts = target
    if is_binary and (density == "bins" or n_of_fold is not None):
        counted = ScoreCounts.from_scores(target, weights=n_of_fold, exact=True)
        if folds is not None and n_of_fold is not None:
            counted = folds.per_row(counted)

    def estimate(rows: slice | BoolArray) -> PrevalenceEstimate | ClassPrevalenceEstimate:
        """Compute the estimate from a selection of the labelled rows."""
        if not is_binary:
            return class_estimate(
                actual[rows],
                labelled_scores[rows],
                target,
                labels,
                density=density,
                weights=weights,
                **options,
            )
        labelled = ScoreCounts.from_scores(labelled_scores[rows], actual[rows], 2, exact=True)
        if isinstance(counted, ScoreCounts) and density == "bins":
            return binned_estimate(labelled, counted, **options)
        return modelled_estimate(labelled, counted, **options)

    whole = estimate(slice(None))
    if folds is not None and sets is None:
        remaining: list[Any] = [estimate(rows) for rows in folds.left_out(actual, len(labels))]
        whole = whole.exposed(remaining)
    return whole.unless_refused()


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """Labelled rows: their classes as codes, and their scores.

    If there are two classes, the code of the positive class is 1.
    """

    labels: tuple[Label, ...]
    positive: Label
    classes: IntArray
    scores: FloatArray

    def counter(self, columns: tuple[str, ...], placed: CellRows | None) -> DomainCounter:
        """Return a counter of target rows; ``placed``: the cells of the labelled rows."""
        return DomainCounter(columns, placed, self.classes, self.scores, len(self.labels))


def _estimate_by_cell(
    target: FloatArray,
    by: Any,
    labelled: CalibrationRows,
    calibration_by: Any,
    assumption: str,
    half_width: float,
    confidence_level: float,
) -> DomainPrevalence:
    """Estimate the share of each cell."""
    if not len(target):
        raise ValueError("scores must have at least one row, got none")
    rows = CellRows.read("by", by, len(target), "scores")
    placed = None
    if calibration_by is not None:
        placed = read_labelled(calibration_by, rows.columns, len(labelled.classes))
    counter = labelled.counter(rows.columns, placed)
    counter.add(rows, target)
    return domain_prevalence(counter, labelled, assumption, half_width, confidence_level)


def domain_prevalence(
    counter: DomainCounter,
    labelled: CalibrationRows,
    assumption: str,
    half_width: float,
    confidence_level: float,
) -> DomainPrevalence:
    """Return the table of all cells that a counter has counted."""
    shares = DomainShares(
        counter.tables(), read_assumption(assumption), half_width, confidence_level
    )
    labels = labelled.labels
    if len(labels) == 2:
        labels = tuple(sorted(labels, key=lambda label: label == labelled.positive))
    warnings = tuple(filter(None, (*counter.warnings(), unlike_warning(shares))))
    return DomainPrevalence(shares, labels, labelled.positive, warnings)


def _check_by(
    by: Any,
    calibration_by: Any,
    assumption: Any,
    options: tuple[str, str],
    fold_ids: Any,
) -> None:
    """Raise ValueError if options for cells are given without cells, or options contradict."""
    read_assumption(assumption)
    if by is None:
        if calibration_by is not None or assumption != "auto":
            raise ValueError("calibration_by= and assumption= need by=")
        return
    if fold_ids is not None:
        raise ValueError(
            "fold ids are not taken together with by=; give labelled rows scored by the same model"
        )
    if options != ("auto", "adjusted"):
        density, interval = options
        raise ValueError(
            f"by= does not take density= and interval=, got {density!r} and {interval!r}"
        )


def _check_options(density: Any, interval: Any) -> None:
    """Raise an error unless both options are supported; it names replacements of 0.2 options."""
    if callable(density):
        raise RemovedFeature(reason("estimate_prevalence(density=function)"))
    for name, value, choices in (
        ("density", density, DENSITIES),
        ("interval", interval, INTERVALS),
    ):
        if value in choices:
            continue
        removed = reason(f'estimate_prevalence({name}="{value}")')
        if removed is not None:
            raise RemovedFeature(removed)
        raise ValueError(f"{name} must be one of {choices}, got {value!r}")


def _one_score(name: str, data: Any, labels: tuple[Label, ...], positive: Label) -> FloatArray:
    """Return the score of the positive class for each row, shape (n,)."""
    names = column_names(data)
    if names is not None:
        by_text = {str(column): column for column in names}
        if str(positive) not in by_text:
            raise ValueError(f"{name} must have a column for {positive!r}, got {names[:12]}")
        return to_float_array(name, data[by_text[str(positive)]])
    array = to_float_array(name, data)
    if array.ndim == 1:
        return array
    if array.ndim != 2 or array.shape[1] not in (1, 2):
        raise ValueError(f"{name} must have shape (n,) or (n, 2), got {array.shape}")
    if array.shape[1] == 1:
        return array[:, 0]
    return array[:, labels.index(positive)]
