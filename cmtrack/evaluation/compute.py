"""All numbers of an evaluation from its statistics."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmtrack.grouping import ComposedStep, Grouping
from cmtrack.metrics import multiclass, score_sections
from cmtrack.metrics.binary import put_binary
from cmtrack.metrics.cells import Cells, SixCells, Table, ratio
from cmtrack.metrics.influence import groups_over
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.own import Kept, put_own
from cmtrack.metrics.results import Results
from cmtrack.metrics.roc import RocCurve, roc_curve
from cmtrack.names import quoted
from cmtrack.prevalence.class_shares import ClassShares, class_shares
from cmtrack.prevalence.estimators import binned_estimate, modelled_estimate
from cmtrack.prevalence.results import PrevalenceEstimate
from cmtrack.rough.section import put_rough
from cmtrack.statistics import BinaryCounts, ReducedConfusionMatrix
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.cross_moments import MAX_CLASSES
from cmtrack.statistics.inputs import BoolArray, FloatArray
from cmtrack.statistics.probabilities import LEAST_SUM, MOST_SUM
from cmtrack.statistics.reduced import reduce_counts

RARE = 20
PASSED_OVER = "precision_macro, precision_weighted and f1_of_macro_means"
COUNTED = "precision_macro_zero and precision_weighted_zero"


@dataclass(frozen=True, eq=False)
class Computed:
    """What follows from the statistics of one evaluation."""

    results: Results
    reduced: tuple[ReducedConfusionMatrix, ...]
    binary: BinaryCounts | None
    roc: RocCurve | None
    spcc_matrix: FloatArray | None
    prevalence: PrevalenceEstimate | None
    warnings: tuple[str, ...]


def compute(
    statistics: Statistics,
    grouping: Grouping | None,
    step: ComposedStep | None,
    confidence_level: float,
    errors: Mapping[str, float] | None = None,
    over: BoolArray | None = None,
    sections: Collection[str] | None = None,
    with_errors: bool = True,
    own: Sequence[Metric] = (),
    numbers: Mapping[str, Kept] | None = None,
) -> Computed:
    """Compute every section that applies; ``errors`` take the place of the standard errors computed here.

    ``over`` are the classes that averages are taken over where one class stands for no span, ``sections`` the parts of
    names before the first slash that are wanted, by default all. Without ``with_errors`` the metrics of counts get
    their values only. ``own`` are metrics of the user's, ``numbers`` those that were kept of metrics whose functions
    are not known.
    """

    def wanted(*names: str) -> bool:
        return sections is None or any(name in sections for name in names)

    results = Results(confidence_level, errors or {}, with_errors=with_errors)
    matrix, squares = statistics.matrix, statistics.squares
    labels = matrix.labels
    cells = Cells.of_matrix(matrix, squares.matrix if squares else None)
    table = Table(cells, over, whole=matrix.counts.dtype.kind == "i")
    if wanted("multiclass", "class"):
        multiclass.put_multiclass(results, table, labels)
    if over is not None and wanted("spans"):
        multiclass.put_table(results, multiclass.SPANS, table)
    steps = () if grouping is None else grouping.compose(labels)
    groups = [groups_over(one, over) for one in steps]
    reduced = matrix.reductions(grouping) if grouping is not None else ()
    squared = squares.matrix.reductions(grouping) if squares and grouping is not None else (None,) * len(reduced)
    for one, square, kept in zip(reduced, squared, groups, strict=True):
        if wanted("reduced"):
            multiclass.put_reduced(results, one, square, kept)
    binary = binary_squares = roc = spcc_matrix = prevalence = None
    if step is not None:
        binary = reduce_counts(matrix.counts, step).as_binary()
        binary_squares = reduce_counts(squares.matrix.counts, step).as_binary() if squares else None
        if wanted("binary"):
            put_binary(results, binary, binary_squares)
            roc = _put_roc(results, statistics, step, binary, binary_squares)
    if statistics.moments is not None and len(labels) > 2 and wanted("spcc"):
        spcc_matrix = score_sections.put_multiclass_spcc(results, statistics, labels)
    scale = _effective_share(statistics)
    if statistics.score_moments is not None and statistics.scores is not None and binary is not None and wanted("spcc"):
        score_sections.put_binary_spcc(results, statistics)
    if not wanted("prevalence"):
        pass
    elif statistics.score_moments is not None and binary is not None:
        sd = math.sqrt(statistics.labels_variance or 0.0)
        squared_scores = squares.score_moments if squares else None
        score_sections.put_counts_of_positives(results, statistics.score_moments, sd, squared_scores)
        _put_classify_and_count(results, binary, scale)
        prevalence = _put_prevalence(results, statistics, step, confidence_level, scale)
    elif statistics.moments is not None and step is not None and binary is not None:
        _put_expected_by_sums(results, statistics, step)
        _put_classify_and_count(results, binary, scale)
    elif statistics.moments is not None:
        shares = _class_shares(statistics, confidence_level, scale)
        score_sections.put_class_prevalence(results, statistics, labels, shares)
    if over is None and wanted("rough"):  # spans are no partition of samples
        put_rough(results, table, labels)
    if sections is not None:
        results.keep(sections)
    six = None if binary is None else SixCells.of_counts(binary, binary_squares)
    said = put_own(results, own, numbers or {}, cells, six)
    warnings = _warnings(statistics, results, reduced, squared, roc, prevalence, cells, over, groups)
    return Computed(results, reduced, binary, roc, spcc_matrix, prevalence, (*warnings, *said))


def check_own(statistics: Statistics, step: ComposedStep | None, own: Sequence[Metric]) -> None:
    """Compute the values of a user's metrics.

    Raises
    ------
    TypeError, ValueError
        If a function fails, or gives what is no number or lies outside its range; the text names the metric.
    """
    if own:
        six = None if step is None else SixCells.of_counts(reduce_counts(statistics.matrix.counts, step).as_binary())
        put_own(Results(with_errors=False), own, {}, Cells.of_matrix(statistics.matrix), six)


def _put_roc(
    results: Results,
    statistics: Statistics,
    step: ComposedStep,
    binary: BinaryCounts,
    squares: BinaryCounts | None,
) -> RocCurve | None:
    if statistics.scores is None:
        return None
    roc = roc_curve(statistics.scores, statistics.squares.scores if statistics.squares else None)
    positives = binary.actual_positives
    effective = positives**2 / squares.actual_positives if squares and squares.actual_positives else positives
    score_sections.put_roc(results, roc, effective)
    point = (results.metrics["binary/fpr"], results.metrics["binary/recall"])
    positive = None if step.positive is None else step.labels[step.positive]
    return replace(roc, positive=positive, auc_interval=results.intervals.get("binary/roc_auc"), operating_point=point)


def _put_prevalence(
    results: Results, statistics: Statistics, step: ComposedStep | None, level: float, scale: float
) -> PrevalenceEstimate | None:
    assert step is not None  # a scored step
    assert step.positive is not None  # has a positive group
    own = statistics.scores.channels((2, 3), (0, 1)) if statistics.scores is not None else None
    labelled = statistics.labelled if statistics.labelled is not None else own
    if labelled is None or own is None:
        return None
    if not (labelled.counts.sum(axis=1) > 0).all():  # only own labels: a calibration set of one class is refused
        score_sections.put_uncalibrated(results, with_bias=statistics.target is None)
        return None
    target = statistics.target
    if target is None and statistics.labelled is not None:
        target = own.channels((0, 1))  # given labelled scores, evaluated target
    m0, m1 = (float(c) for c in labelled.counts.sum(axis=1))
    n = float(own.counts.sum() if target is None else target.counts.sum())
    effective = n * (scale if statistics.target is None else 1.0)
    positive = step.labels[step.positive]
    if statistics.labelled is not None and target is not None:  # calibration sets carry no weights
        estimate = modelled_estimate(labelled, target, positive=positive, confidence_level=level, effective=effective)
    else:
        sizes = (effective, m1 * scale, m0 * scale)
        estimate = binned_estimate(labelled, target, positive=positive, confidence_level=level, sizes=sizes)
    actual = results.metrics["prevalence/actual"] if statistics.target is None else None
    score_sections.put_calibrated(results, estimate, actual)
    return estimate


def _put_classify_and_count(results: Results, binary: BinaryCounts, scale: float) -> None:
    share = binary.predicted_positives / binary.total
    results.put("prevalence/classify_and_count", share, n=binary.total * scale)


def _put_expected_by_sums(results: Results, statistics: Statistics, step: ComposedStep) -> None:
    """Expected count and bias of a group without its own scores: means add up, spreads do not."""
    moments = statistics.moments
    assert moments is not None
    members = step.in_positive
    n = float(moments.n.sum())
    actual = float(moments.n[members].sum()) / n
    expected = float(moments.n @ moments.mean[:, members].sum(axis=1))
    results.put("prevalence/actual", actual, n=n * _effective_share(statistics))
    results.put("prevalence/expected", expected / n)
    results.put("prevalence/expected_count", expected)
    results.put("prevalence/bias", expected / n - actual)


def _class_shares(statistics: Statistics, level: float, scale: float) -> ClassShares | None:
    labelled = statistics.labelled_tops if statistics.labelled_tops is not None else statistics.tops
    if labelled is None or statistics.tops is None or np.count_nonzero(labelled.counts.sum(axis=(1, 2))) < 2:
        return None
    target = statistics.target_tops
    if target is None and statistics.labelled_tops is not None:
        target = replace(statistics.tops, counts=statistics.tops.counts.sum(axis=0, keepdims=True))
    given = (statistics.labelled_tops is not None, statistics.target_tops is not None)
    return class_shares(labelled, target, level, (1.0 if given[0] else scale, 1.0 if given[1] else scale))


def _effective_share(statistics: Statistics) -> float:
    """Kish's effective sample size over the sum of weights; 1 without fractional weights."""
    if statistics.squares is None:
        return 1.0
    return statistics.matrix.total / statistics.squares.matrix.total


def _warnings(
    statistics: Statistics,
    results: Results,
    reduced: Sequence[ReducedConfusionMatrix],
    squared: Sequence[ReducedConfusionMatrix | None],
    roc: RocCurve | None,
    prevalence: PrevalenceEstimate | None,
    cells: Cells,
    over: BoolArray | None,
    groups: Sequence[BoolArray | None],
) -> tuple[str, ...]:
    out = []
    if statistics.scaled_rows:
        out.append(scaled_rows_warning(statistics.scaled_rows))
    squares = statistics.squares
    labels = statistics.matrix.labels
    totals = _effective(
        statistics.matrix.counts.sum(axis=1), None if squares is None else squares.matrix.counts.sum(axis=1)
    )
    judged = np.ones(len(labels), dtype=bool) if over is None else over
    kept = [(label, total) for label, total, own in zip(labels, totals, judged, strict=True) if own]
    absent = [quoted(label) for label, total in kept if total == 0]
    rare = [f"{quoted(label)} (n = {total:g})" for label, total in kept if 0 < total < RARE]
    left_out = multiclass.passed_over("precision_macro", cells, over)
    if len(left_out):
        out.append(
            f"no sample is predicted as {_list([quoted(labels[k]) for k in left_out])}, though there are samples: "
            f"multiclass/{PASSED_OVER} pass {'these classes' if len(left_out) > 1 else 'this class'} over, "
            f"{COUNTED} count {'them' if len(left_out) > 1 else 'it'} as 0"
        )
    for one, held in zip(reduced, groups, strict=True):
        missing = multiclass.passed_over("precision_macro", Cells.of_reduced(one), held)
        if len(missing):
            out.append(
                f"no sample is predicted as {_list([quoted(one.labels[g]) for g in missing])} of the step "
                f"{quoted(one.name)}, though there are samples: its precision_macro and f1_of_macro_means pass "
                f"{'these groups' if len(missing) > 1 else 'this group'} over, its precision_macro_zero counts "
                f"{'them' if len(missing) > 1 else 'it'} as 0"
            )
    if absent:
        out.append(
            f"no samples of {_list(absent)}: ratios of {'these classes' if len(absent) > 1 else 'this class'} are "
            f"undefined, and averages leave {'them' if len(absent) > 1 else 'it'} out"
        )
    if rare:
        out.append(_few("class", "classes", rare))
    for one, square in zip(reduced, squared, strict=True):
        sizes = _effective(one.actual, None if square is None else square.actual)
        few = [f"{quoted(g)} (n = {t:g})" for g, t in zip(one.labels, sizes, strict=True) if 0 < t < RARE]
        if few:
            out.append(_few(f"in the step {quoted(one.name)}, group", f"in the step {quoted(one.name)}, groups", few))
    if "spcc/ovr_fisher" in results.metrics and statistics.cross is None:
        out.append(
            "no interval of spcc/ovr_fisher and spcc/ovo_fisher: the joint moments that their errors need are kept "
            f"for up to {MAX_CLASSES} classes"
        )
    if roc is not None and roc.auc_error_bound > 0:
        out.append(f"scores are counted on a grid: the ROC AUC is within {roc.auc_error_bound:.1e} of the exact one")
    if prevalence is not None:
        if math.isnan(prevalence.value):
            out.append(f"no calibrated prevalence: {prevalence.undefined['value']}")
        out.extend(prevalence.warnings)
    return tuple(out)


def _effective(totals: Counts, squares: Counts | None) -> Counts:
    """Effective numbers of samples: the numbers themselves without fractional weights."""
    if squares is None:
        return totals
    sizes: Counts = ratio(totals**2, squares, 0.0)
    return sizes


def scaled_rows_warning(rows: int) -> str:
    """What is said of probabilities that were scaled."""
    return (
        f"{rows:,} {'row' if rows == 1 else 'rows'} of probabilities summed to {LEAST_SUM:g} to {MOST_SUM:g} instead "
        "of 1 and were scaled to sum to 1 (normalize=True: without this warning, normalize=False: refused)"
    )


def _few(one: str, several: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{one} {names[0]} has fewer than {RARE} samples: its intervals are approximate"
    return f"{several} {_list(names)} have fewer than {RARE} samples: their intervals are approximate"


def _list(names: Sequence[str], most: int = 8) -> str:
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
