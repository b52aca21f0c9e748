"""The class :class:`Evaluation`, with its data and the results computed from the data.

The attributes and methods of the class are arranged in sections. Other modules compute the results:
numbers are computed in ``compute``, curves in ``_curves`` and ``_decisions``, copies in ``_copies``
and ``_regrouping``, thresholds in ``threshold``, metrics at different class shares in
``transport``, and segments in ``segments``. Files are read and written in ``storage``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from cmtrack import archive
from cmtrack._lazy import cached_property
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import _copies, _curves, _decisions, _identity, _regrouping, storage
from cmtrack.evaluation._regrouping import Lost
from cmtrack.evaluation.catalog import FIRST
from cmtrack.evaluation.compute import (
    Computed,
    compute,
    resample_tables,
    scored_step,
    single_metrics,
)
from cmtrack.evaluation.row_facts import RowFacts
from cmtrack.evaluation.rows import rows_where as rows_where_
from cmtrack.evaluation.segments import N_PERMUTATIONS, Segments, search
from cmtrack.evaluation.spec import Spec
from cmtrack.evaluation.storage import predictions_size, read_predictions, write_predictions
from cmtrack.evaluation.threshold import Threshold, choose_threshold
from cmtrack.evaluation.transport import Transported, transported
from cmtrack.grouping import ComposedStep, Costs, Grouping, Label
from cmtrack.metrics import multiclass
from cmtrack.metrics.calibration import CalibrationCurve, ReliabilityTable
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.class_curves import ClassCalibration
from cmtrack.metrics.costs import CostAtShares
from cmtrack.metrics.influence import (
    Influence,
    centred,
    number_of,
    row_errors,
)
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.net_benefit import NetBenefit
from cmtrack.metrics.own import UNKNOWN, Kept, to_data
from cmtrack.metrics.precision_recall import GainsCurve, PrecisionRecallCurve
from cmtrack.metrics.results import Clusters, Results
from cmtrack.metrics.risk_coverage import Rejection, RiskCoverage
from cmtrack.metrics.roc import RocCurve
from cmtrack.metrics.row_tests import row_pvalues
from cmtrack.metrics.scores import Score
from cmtrack.metrics.spcc import ClassScores, spcc_ovo
from cmtrack.metrics.views import EvaluationViews
from cmtrack.prevalence.results import PrevalenceEstimate
from cmtrack.removed import refuse_removed
from cmtrack.segments import SegmentSearch
from cmtrack.statistics import (
    BinaryCounts,
    ConfusionMatrix,
    LabelDigest,
    ReducedConfusionMatrix,
    ScoreCounts,
)
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.inputs import FloatArray, listed
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.spans import SpanRows

if TYPE_CHECKING:
    import pandas as pd


_RECALIBRATED = "prevalence/recalibrated"


class ReducedSteps(tuple[ReducedConfusionMatrix, ...]):
    """The reduced matrices of all grouping steps, accessed by position or by the step's name."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            for reduced in self:
                if reduced.name == key:
                    return reduced
            raise KeyError(
                f"there is no step named {key!r}; the steps are {[r.name for r in self]}"
            )
        return super().__getitem__(key)


@dataclass(frozen=True, eq=False)
class Evaluation(BaseEvaluation):
    """Evaluation of a classifier on labelled data.

    An evaluation stores small statistics that can be merged. Numbers and figures are computed from
    the statistics when you access them. Create an evaluation with :func:`cmtrack.evaluate`.

    Attributes
    ----------
    statistics : Statistics
        The stored statistics of the data.
    spec : Spec
        The options of the evaluation. Each option is also an attribute of the evaluation.
    rows : Predictions, SpanRows or None
        The evaluated rows, if the evaluation contains them. Paired comparisons need the rows.
        ``rows.actual`` and ``rows.predicted`` are positions in ``labels``, not labels. Merging
        drops the rows, and ``==`` ignores them.
    of_rows : RowFacts
        Cluster-robust standard errors and p-values, computed from rows that the evaluation may no
        longer contain.
    lost : frozenset of Lost
        Parts that are missing because the evaluation was regrouped, or extended without its rows.
    remarks : tuple of str
        Further notes that explain how the evaluation was made.
    kept_numbers : dict of str to Kept, optional
        Numbers that were read from a file because the functions of their metrics are not available.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> evaluation = evaluate([0, 0, 1, 1], y_prob=[0.1, 0.6, 0.4, 0.9])
    >>> evaluation
    Evaluation(4 rows, 2 classes, positive 1: MCC 0, ROC AUC 0.75, accuracy 0.5)
    >>> evaluation.confusion_matrix.counts.tolist(), evaluation.binary.tp
    ([[1, 1], [1, 1]], 1)
    >>> (evaluation + evaluation).n_samples
    8
    """

    statistics: Statistics
    spec: Spec
    rows: Predictions | SpanRows | None = field(default=None, repr=False)
    of_rows: RowFacts = field(default_factory=RowFacts)
    lost: frozenset[Lost] = frozenset()
    remarks: tuple[str, ...] = ()
    kept_numbers: dict[str, Kept] | None = field(default=None, repr=False)
    kind = archive.CLASSES
    first_metrics = FIRST

    # -- the options: entries of `spec` -----------------------------------------------------------

    @property
    def grouping(self) -> Grouping | None:
        """The grouping of the classes."""
        return self.spec.grouping

    @property
    def positive(self) -> Label | None:
        """The positive class, if there are two classes, or the positive group."""
        return self.spec.positive

    @property
    def none(self) -> Label | None:
        """The label that means "no span"; None unless spans are evaluated."""
        return self.spec.none

    @property
    def sections(self) -> tuple[str, ...] | None:
        """The sections of metrics that are computed; None means all sections that apply."""
        return self.spec.sections

    @property
    def extra_metrics(self) -> tuple[Metric, ...]:
        """The custom metrics of the evaluation.

        If a metric was read from a file, only its stored numbers are available, not its function.
        Regrouping, merging and row-by-row differences need the function, so the metric is undefined
        in their results. Use :meth:`with_metrics` to add the function again.
        """
        return self.spec.extra_metrics

    @property
    def reference(self) -> tuple[float, ...] | None:
        """The class shares that skill scores use as the reference prediction; None if not given."""
        # `Spec.settled` has sorted the shares in the order of the classes.
        return self.spec.reference  # type: ignore[return-value]

    @property
    def costs(self) -> Costs | None:
        """The costs of decisions, from which section ``cost/`` is computed; None if not given."""
        return self.spec.costs

    @property
    def scores(self) -> Mapping[str, Mapping[Label, float]] | None:
        """The value of each class by the name of the score; None if no scores are given."""
        return self.spec.scores

    @property
    def decision_threshold(self) -> float | None:
        """The score threshold with which the predictions were made; None if not given."""
        return self.spec.threshold

    @property
    def weights_are(self) -> str | None:
        """Kind of the weights: "frequency" (repeated rows) or "sampling" (robust errors)."""
        return self.spec.weights_are

    @property
    def catalog(self) -> Catalog:
        """The metrics of this evaluation: the built-in metrics and the ``extra_metrics``."""
        return self.spec.catalog

    def has_section(self, name: str) -> bool:
        """Return True if a section of metrics is selected, even if it does not apply."""
        return self.sections is None or name in self.sections

    def without_function(self, metric: str) -> bool:
        """Return True if a custom metric's function is not available."""
        return any(custom.name == metric and custom.value is None for custom in self.extra_metrics)

    # -- the data ----------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes in order."""
        return self.statistics.matrix.labels

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels that are classes: all labels except the label for "no span"."""
        return tuple(label for label in self.labels if label != self.none or self.none is None)

    @property
    def n_samples(self) -> float:
        """Number (or total weight) of the evaluated rows, or number of the actual spans."""
        matrix = self.statistics.matrix
        if self.none is None:
            return matrix.total
        return matrix.total - float(matrix.counts[matrix.labels.index(self.none)].sum())

    @property
    def confusion_matrix(self) -> ConfusionMatrix:
        """Counts of rows by actual and predicted class."""
        return self.statistics.matrix

    @cached_property
    def reduced(self) -> ReducedSteps:
        """The reduced matrix of each grouping step, by position or by the step's name."""
        return ReducedSteps(step.sums for step in self._views.matrices)

    @property
    def binary(self) -> BinaryCounts | None:
        """The six counts of 2x2+IM; None unless there are two groups or two classes."""
        return None if self._views.binary is None else self._views.binary.sums

    @property
    def positive_scores(self) -> ScoreCounts | None:
        """Counts of accepted and rejected positives and negatives by the positive group's score."""
        return self.statistics.scores

    @property
    def negative(self) -> Label | None:
        """The negative class, or the group that is not positive."""
        step = self.scored
        return None if step is None or step.positive is None else step.labels[1 - step.positive]

    @property
    def design(self) -> tuple[tuple[str, str], ...]:
        """Options and data that two evaluations must share to be ranked together."""
        return _identity.design(self)

    # -- the numbers: results of `compute` ---------------------------------------------------------

    @cached_property
    def _views(self) -> EvaluationViews:
        averaged = None
        if self.none is not None:
            averaged = np.array([label != self.none for label in self.labels])
        return EvaluationViews(
            self.statistics,
            self.grouping,
            self.scored,
            averaged,
            self.confidence_level,
            None if self.reference is None else np.array(self.reference),
            self.prices,
            self.spec.ordered,
        )

    @cached_property
    def _computed(self) -> Computed:
        facts = self.row_facts
        errors = facts.cluster_errors
        if errors is None:
            errors = facts.errors
        clusters = Clusters(
            errors or {}, facts.n_clusters, facts.effective_clusters or {}, facts.pvalues or {}
        )
        return compute(self._views, self.spec, clusters, self.kept_numbers or {})

    @property
    def _results(self) -> Results:
        return self._computed.results

    @cached_property
    def scored(self) -> ComposedStep | None:
        """The step of two groups or two classes to which scores belong; None if none exists."""
        if self.none is not None and self.grouping is None:
            return None  # one class and the label for "no span" are not a two-class problem
        return scored_step(self.labels, self.grouping, self.positive)

    @cached_property
    def prices(self) -> FloatArray | None:
        """Costs by actual and predicted class, shape (K, K); None if no costs are given."""
        return None if self.costs is None else self.costs.matrix(self.labels, self.grouping)

    @property
    def counting(self) -> Counting:
        """The classes and the options that determine how rows are counted."""
        return Counting(self.labels, self.scored, self.grouping, self.prices, self.spec.ordered)

    @property
    def headline(self) -> tuple[str, ...]:
        """The requested headline metrics, then the default ones; mismatches only if any exist.

        If the prevalence is estimated from a calibration set or for a target, the list includes the
        recalibrated prevalence, because the calibrated prevalence may be refused.
        """
        views = self._views
        fixed = {
            f"reduced/{name}/mismatch_rate" for name, step in views.composed.items() if step.relaxed
        }
        if views.step is not None and views.step.relaxed:
            fixed.add("binary/roc_auc_ceiling")
        asked = [name for name in self.spec.headline if name in self.metrics]
        default = [name for name in super().headline if name not in fixed]
        if not self.calibrates_itself and _RECALIBRATED in self.metrics:
            default.append(_RECALIBRATED)
        return tuple(dict.fromkeys([*asked, *default]))

    @property
    def prevalence(self) -> PrevalenceEstimate | None:
        """The calibrated prevalence of the positive group; None if its scores are missing."""
        return self._computed.prevalence

    @property
    def calibrates_itself(self) -> bool:
        """True if :attr:`prevalence` is estimated for the labelled rows themselves.

        For labelled rows, the labels already show the prevalence.
        """
        return self.statistics.labelled is None and self.statistics.target is None

    @property
    def spcc_matrix(self) -> FloatArray | None:
        """The one-vs-one sPCC, shape (K, K); None if probabilities are missing or if K is 2.

        The diagonal is 0.
        """
        scores = self._class_scores
        return None if scores is None else spcc_ovo(scores.moments)

    @property
    def _class_scores(self) -> ClassScores | None:
        """The correlations of all classes; None if probabilities are missing or if K is 2."""
        return self._views.seen(ClassScores, "class scores") if self.has_section("spcc") else None

    def size_of(self, metric: str) -> float:
        """Return the (effective) row count in a share's denominator; NaN for all other metrics."""
        return self._results.sizes.get(metric, math.nan)

    @property
    def share_without_logit(self) -> float:
        """Share of the rows whose score is 0 or 1, which calibration/slope excludes."""
        reliability = self._views.seen(ReliabilityTable)
        return 0.0 if reliability is None else reliability.without_logit

    def classes_passed_over(self, metric: str) -> tuple[Label, ...]:
        """Return the classes or groups that an average excludes because they are never predicted.

        Parameters
        ----------
        metric : str
            Full name of the average. For an average that excludes no class, and for every metric
            that is not an average, the result is empty. The average ``<metric>_zero`` includes
            classes that are never predicted, with a value of 0.
        """
        if "/" not in metric:  # a parameter of the run, which decides between equal runs
            return ()
        section, *middle, last = metric.split("/")
        if section == "reduced" and len(middle) == 1 and middle[0] in self._views.reduced:
            table = self._views.reduced[middle[0]][0]
            labels = self._views.composed[middle[0]].labels
        elif section in ("multiclass", "spans") and not middle:
            table = self._views.table
            labels = self.labels
        else:
            return ()
        return tuple(labels[k] for k in multiclass.passed_over(last, table))

    def class_table(self) -> pd.DataFrame:
        """Return a table with a row for each class.

        Returns
        -------
        DataFrame
            The columns are label, support, predicted, precision, recall and f1. Support is the
            number (or weight) of rows whose actual class is the label, and predicted is the number
            (or weight) of rows whose predicted class is the label. The limits of each metric's
            interval follow the metric: ``<name>_low`` and ``<name>_high``. Undefined numbers are
            NaN.
        """
        from cmtrack._pandas import pd

        return pd.DataFrame(list(self.class_rows()))

    def class_rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row of :meth:`class_table` as a mapping from column name to value."""
        return _curves.class_rows(self)

    def costs_by_class(self) -> pd.DataFrame:
        """Return the mean cost of each actual class.

        Returns
        -------
        DataFrame
            The columns are label, support, cost, standard_error, part and always. Cost is the mean
            cost of the class. The standard_error of this mean is NaN if the class has no rows. Part
            is the contribution of the class to the mean cost of all rows. Always is the mean cost
            that would result if this class were predicted for every row.

        Raises
        ------
        ValueError
            If no costs are given.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> y_true = ["fine", "fraud", "fine", "fraud"]
        >>> evaluation = evaluate(y_true, ["fine", "fraud", "fraud", "fine"])
        >>> priced = evaluation.price({("fraud", "fine"): 100, ("fine", "fraud"): 2})
        >>> priced.costs_by_class()[["label", "cost", "always"]]
           label  cost  always
        0   fine   1.0    50.0
        1  fraud  50.0     1.0
        """
        return _decisions.costs_by_class(self)

    def count_intervals(
        self, method: str = "influence", *, n_resamples: int = 1000, seed: int = 0
    ) -> dict[str, Interval]:
        """Return intervals of the metrics that are computed from the confusion counts.

        Parameters
        ----------
        method : "influence" or "bootstrap"
            "influence" returns the intervals of the evaluation. "bootstrap" draws multinomial
            tables from the counts, and returns percentile intervals. Drawing multinomial tables is
            equivalent to resampling rows, but faster.
        n_resamples : int, default 1000
        seed : int, default 0

        Raises
        ------
        ValueError
            If the method is unknown, or if the rows have sampling weights, because a weighted table
            is not multinomial.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> evaluation = evaluate([0, 1] * 50, [0, 1, 1, 1] * 25)
        >>> ends = evaluation.count_intervals("bootstrap", n_resamples=200)["multiclass/accuracy"]
        >>> ends[0] < 0.75 < ends[1]
        True
        """
        if method == "bootstrap":
            catalog = self.catalog.with_own(self._with_functions("a bootstrap"))
            return resample_tables(self._views, catalog, n_resamples, seed)
        if method != "influence":
            raise ValueError(f"method must be 'influence' or 'bootstrap', got {method!r}")
        return {
            name: ends
            for name, ends in self.intervals.items()
            if self.catalog.lookup(name).needs != "probabilities"
        }

    def _with_functions(self, what: str) -> tuple[Metric, ...]:
        """Return the custom metrics whose functions are available, and warn about all others."""
        lost = [metric.name for metric in self.extra_metrics if metric.value is None]
        if lost:
            warnings.warn(
                f"{what} leaves out {', '.join(lost)}: {UNKNOWN}", UserWarning, stacklevel=3
            )
        return tuple(metric for metric in self.extra_metrics if metric.value is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about merged segments, about parts lost by regrouping, and about other matters."""
        segments = self.statistics.segments
        notes = [] if segments is None else list(segments.notes)
        notes += [loss.value for loss in Lost if loss in self.lost]
        return (*notes, *self.remarks)

    @property
    def warnings_by_section(self) -> tuple[tuple[str, str], ...]:
        """Warnings about the numbers, for example about rare classes and undefined metrics."""
        warnings = [("", note) for note in self.notes]
        warnings += self._computed.warnings
        if self.segments.note:
            warnings.append(("segments", self.segments.note))
        absent = [name for name in self.spec.headline if name not in self.metrics]
        if absent:
            warning = f"headline names metrics that the evaluation does not have, {listed(absent)}"
            warnings.append(("", warning))
        return tuple(warnings)

    # -- standard errors from rows, and facts that remain without the rows -------------------------

    @property
    def cluster_errors(self) -> dict[str, float] | None:
        """Cluster-robust standard errors by metric; None if ``groups`` were not given."""
        return self.of_rows.cluster_errors

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None if ``groups`` were not given."""
        return self.of_rows.n_clusters

    @property
    def effective_clusters(self) -> dict[str, float] | None:
        """Effective number of clusters by metric; None if ``groups`` were not given.

        The intervals of metrics use a quantile of Student's t distribution. If G clusters are as
        informative as e clusters of equal size, the degrees of freedom are 3 e / (1 + 2 e / G) - 1,
        but at least 1.
        """
        return self.of_rows.effective_clusters

    @cached_property
    def row_facts(self) -> RowFacts:
        """The stored :attr:`of_rows`, to which missing facts are added if rows are available."""
        rows = self.rows
        facts = self.of_rows
        if not isinstance(rows, Predictions):
            return facts
        single = single_metrics(self.sections)
        is_clustered = facts.cluster_errors is not None and rows.design.has_clusters
        # The tests need the cluster-robust errors, so p-values are computed after these errors.
        if facts.pvalues is None and is_clustered and rows.source is not None:
            facts = replace(facts, pvalues=row_pvalues(rows, self._views, single))
        if facts.errors is None and (single or self.has_section("multiclass")):
            facts = replace(facts, errors=row_errors(rows, self._views, single))
        return facts

    def why_without_error(self, metric: str) -> str:
        """Return why a defined metric has no standard error; empty if the reason is unknown."""
        entry, parts = self.catalog.find(metric)
        step = parts.get("step", "")
        samples = self._views.of(entry, step)
        if samples is None:
            return ""
        names = self._views.names(entry, step)
        k = None if names is None else number_of(names, parts)
        return entry.function.why_without_error(samples.argument(), k)

    def _answers_to(self, metric: str) -> npt.NDArray[Any] | None:
        entry, parts = self.catalog.find(metric)
        return None if isinstance(self.rows, SpanRows) else self._influence.answers(entry, parts)

    def _influence_of(self, metric: str) -> FloatArray | None:
        entry, parts = self.catalog.find(metric)
        if entry.value is None or not math.isfinite(self.metrics.get(metric, 0.0)):
            return None  # see without_function
        psi = self._influence(entry, parts)
        if psi is None:
            return None
        if isinstance(self.rows, SpanRows):
            return self.rows.by_document(psi)
        strata = self.of_rows.strata
        if self.rows is not None and strata is not None:
            psi = centred(psi, strata, self.rows.design.row_weights)[0]
        return psi

    @cached_property
    def _influence(self) -> Influence:
        rows = self.rows
        if rows is None:
            raise ValueError("influence values need rows, which this evaluation does not have")
        if isinstance(rows, SpanRows):
            rows = rows.matches
        return Influence(rows, self._views)

    # -- curves: in `_curves` and `_decisions` -----------------------------------------------------

    @cached_property
    def roc(self) -> RocCurve | None:
        """The ROC curve of the positive group; None if its scores are missing."""
        return _curves.roc(self)

    @cached_property
    def precision_recall(self) -> PrecisionRecallCurve | None:
        """The precision-recall curve of the positive group; None if its scores are missing."""
        return _curves.precision_recall(self)

    @cached_property
    def gains(self) -> GainsCurve | None:
        """Recall at each share of positive predictions; None if scores are missing."""
        return _curves.gains(self)

    @cached_property
    def risk_coverage(self) -> RiskCoverage | None:
        """Error rate among the most confident rows; None if probabilities are missing."""
        return _decisions.risk_coverage(self)

    def risk_coverage_of(self, step: str) -> RiskCoverage | None:
        """Return the risk-coverage curve for the groups of a step.

        A prediction is correct if the step accepts it. The confidence of a row is the probability
        that the step accepts its prediction.

        Raises
        ------
        ValueError
            If the grouping does not define a step with that name.
        """
        return _decisions.risk_coverage(self, step)

    @property
    def calibration(self) -> CalibrationCurve | None:
        """The reliability curve of the positive group's score, without bins, or None."""
        return _curves.calibration(self)

    @property
    def confidence_calibration(self) -> CalibrationCurve | None:
        """The reliability curve of the predicted class's probability; None for two classes."""
        return _curves.confidence_calibration(self)

    def calibration_of(self, label: Label) -> CalibrationCurve:
        """Return the reliability curve of one class against all other classes, without bins.

        Raises
        ------
        ValueError
            If the evaluation does not contain probabilities of 3 to 30 classes, or if ``label`` is
            not a class.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> p = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
        >>> p += [[0.6, 0.3, 0.1], [0.2, 0.4, 0.4], [0.1, 0.5, 0.4]]
        >>> curve = evaluate([0, 1, 2, 0, 1, 2], y_prob=p).calibration_of(0)
        >>> curve.scores.tolist(), curve.recalibrated.tolist()
        ([0.1, 0.2, 0.6, 0.8], [0.0, 0.0, 1.0, 1.0])
        """
        return _curves.calibration_of(self, label)

    @property
    def has_class_calibration(self) -> bool:
        """True if :meth:`class_calibration` is available and ``class/`` is computed."""
        return _curves.has_class_calibration(self)

    def class_calibration(self) -> ClassCalibration:
        """Return the calibration of each class's probability, with adjusted p-values.

        Returns
        -------
        ClassCalibration
            ``to_frame()`` returns one row per class. ``squared`` and ``pvalue`` are computed from
            all classes together.

        Raises
        ------
        ValueError
            If the evaluation does not contain probabilities of 3 to 30 classes.

        Notes
        -----
        The curves equal the results of :meth:`calibration_of` (Dimitriadis, Gneiting and Jordan
        2021). The p-values are adjusted by Holm's method (1979).
        """
        return _curves.class_calibration(self)

    def net_benefit(self, thresholds: npt.ArrayLike | None = None) -> NetBenefit:
        """Return the decision curve: the net benefit of acting on the positive group's score.

        Parameters
        ----------
        thresholds : array_like of shape (T,), optional
            Numbers between 0 and 1. At a threshold t, a false alarm is assumed to cost t / (1 - t)
            times the benefit of a hit. The default is 0.01, 0.02, ..., 0.99. If positives are rare,
            the default is 99 thresholds up to about ten times the share of positives.

        Returns
        -------
        NetBenefit
            The result contains an interval for each value, and a simultaneous band for all
            thresholds. If scores are counted on a grid, each threshold is moved to the nearest edge
            of the grid.

        Raises
        ------
        ValueError
            If the evaluation does not contain probabilities of two groups or classes, or if a
            threshold is not between 0 and 1.

        Notes
        -----
        Source: Vickers and Elkin (2006). If rows belong to clusters, the intervals are Wald
        intervals, computed from the sums within each cluster.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> evaluation = evaluate([0, 0, 1, 1] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20)
        >>> curve = evaluation.net_benefit([0.2, 0.5])
        >>> curve.value.round(4).tolist(), curve.all.round(4).tolist()
        ([0.4375, 0.0], [0.375, 0.0])
        """
        return _decisions.decision_curve(self, thresholds)

    # -- what if: different groups, costs, thresholds or shares, or fewer rows ---------------------

    def regroup(self, grouping: Grouping, *, positive: Label | None = None) -> Evaluation:
        """Evaluate the predictions under a different grouping, without the data.

        All metrics that are computed from confusion counts are recomputed. ROC, sPCC and calibrated
        prevalence need the scores of the positive group. If the evaluation contains its rows,
        results based on these scores are computed from the rows. If the rows are missing, results
        based on scores are kept as long as the positive group contains the same classes as before.
        If the positive group also changes, the results are removed, and :attr:`warnings` reports
        this.

        Examples
        --------
        >>> from cmtrack import Grouping, evaluate
        >>> evaluation = evaluate([0, 1, 2, 3] * 5, [0, 1, 3, 3] * 5)
        >>> evaluation.regroup(Grouping({"low": [0, 1], "high": [2, 3]})).metrics["binary/recall"]
        1.0
        """
        return _regrouping.regroup(self, grouping, positive)

    def price(self, costs: Costs | Mapping[tuple[Any, Any], float]) -> Evaluation:
        """Return a copy of the evaluation that also computes the section ``cost/``.

        Parameters
        ----------
        costs : Costs or mapping of (actual, predicted) to float
            Costs between classes, or between the groups of a grouping step. The new costs replace
            any earlier costs.

        Raises
        ------
        ValueError
            If a cost names a class or group that does not exist, or if spans are evaluated.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> y_true = ["fine", "fraud", "fine", "fraud"]
        >>> evaluation = evaluate(y_true, ["fine", "fraud", "fraud", "fine"])
        >>> evaluation.price({("fraud", "fine"): 100, ("fine", "fraud"): 2}).metrics["cost/mean"]
        25.5
        """
        return _copies.price(self, costs)

    def threshold(
        self,
        costs: Costs | Mapping[tuple[Any, Any], float] | None = None,
        *,
        maximize: str | None = None,
        subject_to: str | None = None,
        calibration: Any = None,
    ) -> Threshold:
        """Choose a threshold for the positive group's score, and evaluate it on different rows.

        A row is predicted positive if its score is at least the threshold. The predicted class of a
        row is the most probable class in the predicted group.

        Parameters
        ----------
        costs : Costs or mapping of (actual, predicted) to float, optional
            Costs whose mean the threshold minimizes. By default, the costs that the evaluation
            contains. Costs must depend only on the two groups: all pairs of classes that lead to
            the same outcome must have the same cost.
        maximize : str, optional
            A metric that is maximized instead, such as ``"binary/recall"``. The maximized metric
            must be computed from the six counts.
        subject_to : str, optional
            A bound that the threshold must meet, such as ``"binary/precision >= 0.9"``. About half
            of the time, the true value of the bounded metric does not meet the bound. If the true
            value must meet the bound, set a stricter bound.
        calibration : (y, scores) or Evaluation, optional
            Labelled rows that choose the threshold, in the forms of ``y_true`` and ``y_prob``. The
            threshold is then evaluated on the evaluated rows. By default, the evaluated rows are
            used for both purposes by cross-fitting: each of five folds is evaluated with the
            threshold that the other four folds choose. The cross-fitting is repeated ten times.

        Returns
        -------
        Threshold

        Raises
        ------
        ValueError
            If the evaluation does not contain scores of two groups, if one group has no rows, if
            costs or metrics do not suit two groups, or if no threshold meets the bound (the message
            states the best value that can be reached). A ValueError is also raised if the rows have
            sampling weights or clusters. In that case, choose the threshold on rows without weights
            and clusters, and pass it to ``evaluate(..., threshold=chosen)``.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> evaluation = evaluate(["no", "no", "yes", "yes"] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20)
        >>> evaluation.threshold({("yes", "no"): 10}).value
        0.4
        >>> bound = "binary/precision >= 0.9"
        >>> evaluation.threshold(maximize="binary/recall", subject_to=bound).value
        0.9
        """
        return choose_threshold(self, costs, maximize, subject_to, calibration)

    def cost_at(self, shares: Mapping[Label, float] | Sequence[float]) -> CostAtShares:
        """Return the mean cost that would result if the actual classes had different shares.

        Parameters
        ----------
        shares : mapping of label to share, or sequence of length K
            Shares of the actual classes, which sum to 1.

        Raises
        ------
        ValueError
            If no costs are given, or `shares` is invalid.
        """
        return _decisions.cost_at(self, shares)

    @refuse_removed
    def at(
        self, prevalence: Any, *, rows: float | None = None, counted: bool = False
    ) -> Transported:
        """Return the metrics for different shares of the actual classes, without the data.

        Parameters
        ----------
        prevalence : float, mapping, sequence, or estimate
            A number is the share of the positive class or group. A mapping contains shares by
            class, or by group of a step. A sequence contains the shares of all classes in order.
            The remaining share is divided among the classes that a mapping does not name, in
            proportion to their present shares. You can also pass the result of
            :func:`~cmtrack.estimate_prevalence`. The error of an estimated prevalence is assumed to
            be independent of the error of the labelled rows. Therefore, if you have enough rows,
            calibrate the estimate on rows that are not evaluated. If the estimate is calibrated on
            the evaluated rows, the intervals miss the true value too often.
        rows : float, optional
            Number of rows in the target, if the shares are stated. If ``rows`` is given, the result
            also contains ``own_intervals``, which hold for the metrics computed from exactly these
            rows.
        counted : bool, default False
            Whether stated shares are the exact shares in the rows of the target. By default, stated
            shares are the shares in the population from which the rows come.

        Returns
        -------
        Transported
            The attributes ``metrics``, ``standard_errors``, ``intervals`` and ``own_intervals`` are
            dicts by metric name. ``to_frame()`` returns all numbers as a table.

        Raises
        ------
        TypeError, ValueError
            If the shares do not sum to 1 or name an unknown class or group, if a class without
            labelled rows has a share above 0, or if the estimate is for different classes.

        Notes
        -----
        The result assumes that, within each class, predictions have the same distribution in the
        target as in the labelled rows (Saerens, Latinne & Decaestecker 2002). The numbers of
        labelled rows by class are treated as fixed, so the errors reflect only the variation within
        classes. If the shares are estimated, the assumption is tested (Pearson's X² of binned
        scores, ``fit_pvalue``). If the target's scores contradict the assumption (p < 0.01), the
        estimate is withdrawn, the metrics are NaN, and ``undefined`` states this reason. The test
        of the assumption detects only large changes.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> y_true = ["ham"] * 80 + ["spam"] * 20
        >>> evaluation = evaluate(y_true, ["ham"] * 72 + ["spam"] * 24 + ["ham"] * 4)
        >>> there = evaluation.at({"spam": 0.02})
        >>> row = there.to_frame().set_index("metric").loc["binary/precision"]
        >>> print(f"{row['here']:.3f}, there {row['there']:.3f}: {row['why']}")
        0.667, there 0.140: “spam” has a share of 2% instead of 20%
        """
        return transported(self, prevalence, rows, counted)

    def score(self, values: Mapping[Label, float] | str, *, others: float | None = None) -> Score:
        """Return the actual and predicted score of shares, such as the net promoter score.

        A score gives each class a value, and is the mean value over all rows.

        Parameters
        ----------
        values : mapping of label to float, "nps" or "mean"
            The values of all classes, or of all groups of a step. "nps" gives 1 to the classes 9
            and 10, 0 to the classes 7 and 8, and -1 to the classes from 0 to 6. It also accepts the
            groups of :meth:`Grouping.nps`. "mean" gives each class that is a number its own value.
        others : float, optional
            Value of the classes or groups that ``values`` does not name. By default, all classes
            must have a value.

        Returns
        -------
        Score

        Raises
        ------
        ValueError, TypeError
            If a class or group is unknown or has no value, or if a value is not a finite number.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> found = evaluate([10, 9, 7, 3] * 25, [9, 8, 7, 6] * 25).score("nps")
        >>> found.actual, found.predicted, found.bias
        (0.25, 0.0, -0.25)
        """
        return _copies.score(self, values, others)

    def reject(self, share: float, *, step: str | None = None) -> Rejection:
        """Return the results of handing the least confident rows to a person.

        Rows are handed over in the order that :attr:`risk_coverage` uses.

        Parameters
        ----------
        share : float
            The largest share of the rows to hand over, from 0 to below 1. Rows with equal
            confidence are not separated, so fewer rows may be handed over.
        step : str, optional
            A step of the grouping. A prediction is correct if the step accepts it. By default, a
            prediction is correct if it equals the actual class.

        Raises
        ------
        ValueError
            If `share` is not in [0, 1), if the evaluation does not contain probabilities, or if the
            step is unknown.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> found = evaluate([0, 1, 1, 0], y_prob=[0.1, 0.9, 0.4, 0.3]).reject(0.25)
        >>> found.threshold, found.misses, found.rejected_misses
        (0.7, 0.0, 1.0)
        """
        return _decisions.rejection(self, share, step)

    # -- segments of the rows ----------------------------------------------------------------------

    @cached_property
    def segments(self) -> Segments:
        """Tables of metrics by segment, one for each column that divides the rows.

        ``evaluation.segments["region"].to_frame()`` is a table.
        ``evaluation.segments["region"]["north"]`` is the evaluation of a segment. If you regroup,
        price or merge evaluations, the segments change accordingly.
        """
        return Segments(self)

    def worst_segments(
        self,
        metric: str = "multiclass/accuracy",
        *,
        depth: int = 2,
        min_rows: int | None = None,
        columns: Any = None,
        n_permutations: int = N_PERMUTATIONS,
        seed: int = 0,
    ) -> SegmentSearch:
        """Search columns and crossings of two columns for the segments with the worst values.

        Parameters
        ----------
        metric : str
            A metric that is a mean over rows: a share such as accuracy, recall or precision, a mean
            cost, log loss, Brier or spherical score. The mean may be taken over only some of the
            rows; recall, for example, is a mean over the rows of one class.
        depth : 1 or 2
            If ``depth`` is 2, the search also includes crossings of two columns.
        min_rows : int, optional
            Smallest number of rows in a searched segment. Only the rows that enter the metric's
            mean are counted. The default is 100, or a fifth of the counted rows if there are fewer
            than 500.
        columns : frame or mapping of columns, optional
            Columns in the order of the evaluated rows. A column that contains more than 20 distinct
            numbers is cut at quantiles, and a note reports this. The default is the columns that
            were passed to ``evaluate(..., segments=)``.
        n_permutations : int, default 999
        seed : int, default 0

        Returns
        -------
        SegmentSearch
            The segments, sorted from worst to best, each with a family-wise p-value. The p-value is
            the probability that the worst of all searched segments is at least this bad by chance.
            The value of a segment that was selected by a search is biased.

        Raises
        ------
        KeyError
            If the evaluation does not contain the metric.
        ValueError
            If the evaluation does not contain its rows, the metric is not a mean over rows, no
            segment has enough rows, or the rows have sampling weights.

        Examples
        --------
        >>> import numpy as np
        >>> from cmtrack import evaluate
        >>> region = np.repeat(["north", "south"], 200)
        >>> y = np.tile([0, 1], 200)
        >>> y_pred = np.where((region == "south") & (np.arange(400) % 3 == 0), 1 - y, y)
        >>> found = evaluate(y, y_pred, segments={"region": region}).worst_segments()
        >>> found.to_frame()[["segment", "rows", "value"]].head(1)
                  segment  rows  value
        0  region = south   200  0.665
        """
        return search(self, metric, depth, min_rows, columns, n_permutations, seed)

    rows_where = rows_where_

    # -- copies: in `_copies` ----------------------------------------------------------------------

    def with_metrics(self, extra_metrics: Sequence[Metric]) -> Evaluation:
        """Return a copy of the evaluation that also computes custom metrics.

        Also use this method to add the functions of custom metrics after you read an evaluation
        from a file.

        Parameters
        ----------
        extra_metrics : sequence of Metric
            As in :func:`cmtrack.evaluate`. A new metric replaces an existing metric with the same
            name.

        Examples
        --------
        >>> from cmtrack import Metric, evaluate
        >>> gain = Metric("custom/gain", lambda b: 5 * b.tp - b.fp, of="binary")
        >>> evaluate([0, 1, 1, 0], [0, 1, 0, 1]).with_metrics([gain]).metrics["custom/gain"]
        4.0
        """
        return _copies.with_metrics(self, extra_metrics)

    def with_sections(self, sections: Sequence[str] | None) -> Evaluation:
        """Return a copy of the evaluation that computes different sections of metrics.

        The copy keeps the statistics of all sections, so you can select any section again.

        Parameters
        ----------
        sections : list of str or None
            As in :func:`cmtrack.evaluate`; None means all sections that apply.

        Raises
        ------
        ValueError
            If a section does not exist.
        """
        return _copies.with_sections(self, sections)

    def with_label_order(self, labels: Sequence[Label]) -> Evaluation:
        """Return a copy with its classes reordered, or with equivalent labels of a different type.

        Equivalent labels, such as False, 0 and 0.0, differ only in type. If the order changes,
        metrics that depend on the order become undefined: weighted kappas of three or more classes,
        and custom metrics computed from counts whose value would change.

        Raises
        ------
        ValueError
            If the labels are not the classes of the evaluation.
        """
        return _copies.with_label_order(self, labels)

    def with_cluster_errors(self) -> Evaluation:
        """Return a copy with cluster-robust standard errors; the original if rows lack clusters."""
        return _copies.with_cluster_errors(self)

    def without_probabilities(self) -> Evaluation:
        """Return a copy of the evaluation without the probabilities of its rows."""
        if not isinstance(self.rows, Predictions):
            return self
        facts = replace(self.of_rows, errors=self.row_facts.errors)
        return replace(self, rows=replace(self.rows, source=None), of_rows=facts)

    def with_rows(self, content: bytes) -> Evaluation:
        """Return a copy of the evaluation with the rows that :meth:`write_rows` wrote."""
        rows = read_predictions(content, self)
        if self.statistics.digest.stored is None or not isinstance(rows, Predictions):
            return replace(self, rows=rows)
        digest = LabelDigest.from_codes(rows.actual, self.labels)
        return replace(self, rows=rows, statistics=replace(self.statistics, digest=digest))

    def __add__(self, other: Evaluation) -> Evaluation:
        """Merge two evaluations of disjoint sets of rows; classes and options must be equal."""
        return _copies.merge(self, other) if isinstance(other, Evaluation) else NotImplemented

    # -- stored and shown --------------------------------------------------------------------------

    def extra_data(self) -> list[dict[str, Any]]:
        """The custom metrics as plain data, which consist of texts and numbers but no functions."""
        return to_data(self.extra_metrics, self._computed.results) if self.extra_metrics else []

    def _stored(self) -> dict[str, Any]:
        return storage.stored(self)

    @classmethod
    def _fields_of(cls, data: dict[str, Any]) -> dict[str, Any]:
        return storage.fields_of(data)

    @property
    def rows_size(self) -> int:
        """Size of the rows' columns in bytes, before compression."""
        return 0 if self.rows is None else predictions_size(self.rows)

    def write_rows(self, file: Path | BinaryIO) -> None:
        """Write the rows to a Parquet file."""
        if self.rows is None:
            raise ValueError("this evaluation does not have its rows, so it cannot write them")
        write_predictions(file, self.rows)

    @classmethod
    def load(
        cls, directory: str | Path, *, rows: bool = True, extra_metrics: Sequence[Metric] = ()
    ) -> Evaluation:
        """Read an evaluation that :meth:`save` wrote, from its directory or its file.

        Parameters
        ----------
        directory, rows
            As in :meth:`BaseEvaluation.load`, which also lists the errors.
        extra_metrics : sequence of Metric, optional
            Custom metrics with their functions, because files do not store functions.
        """
        return super().load(directory, rows=rows).with_metrics(extra_metrics)

    def __eq__(self, other: object) -> bool:
        return _identity.is_equal(self, other) if isinstance(other, Evaluation) else NotImplemented

    def __repr__(self) -> str:
        return _identity.line_of_text(self)
