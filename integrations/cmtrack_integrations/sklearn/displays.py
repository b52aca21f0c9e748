"""cmtrack's figures as Displays in the style of scikit-learn.

Without ``ax``, a Display draws into a new figure that is not registered with pyplot. A notebook
shows the Display itself, and a script can save ``display.figure_``. With ``ax=plt.gca()``, the
Display draws into pyplot's current axes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cmtrack.evaluation import Evaluation, evaluate
from cmtrack.grouping import Grouping, Label
from cmtrack.metrics.calibration import CalibrationCurve
from cmtrack.metrics.precision_recall import PrecisionRecallCurve
from cmtrack.metrics.roc import RocCurve
from cmtrack.prevalence import PrevalenceEstimate, estimate_prevalence
from cmtrack.statistics import ReducedConfusionMatrix
from cmtrack.statistics.inputs import align_rows
from cmtrack_integrations.sklearn.estimators import evaluate_estimator
from cmtrack_integrations.sklearn.predictions import known_labels, probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Display:
    """Base class with the attributes and methods that all Displays share.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    ax_: Axes
    figure_: Figure

    def plot(self, ax: Axes | None = None, *, title: str | None = None) -> Self:
        """Draw into ``ax``, or into a new figure that is not registered with pyplot."""
        self.figure_ = self._draw(ax, title)
        self.ax_ = self.figure_.axes[0] if ax is None else ax
        return self

    def _draw(self, ax: Axes | None, title: str | None) -> Figure:
        raise NotImplementedError

    def _repr_png_(self) -> bytes | None:
        """Return the figure as a PNG for a notebook; None if nothing was drawn."""
        if not hasattr(self, "figure_"):
            return None
        buffer = io.BytesIO()
        self.figure_.savefig(buffer, format="png")
        return buffer.getvalue()


class ReducedConfusionMatrixDisplay(_Display):
    """Confusion matrix between groups of classes, with the number of mismatches within each group.

    Parameters
    ----------
    reduced : ReducedConfusionMatrix
        A reduced confusion matrix, such as ``evaluation.reduced["party"]``.

    Examples
    --------
    >>> from cmtrack import Grouping, evaluate
    >>> from cmtrack_integrations.sklearn import ReducedConfusionMatrixDisplay
    >>> halves = Grouping({"low": [0, 1], "high": [2]}, name="halves")
    >>> evaluation = evaluate([0, 1, 2, 2], [0, 0, 2, 1], grouping=halves)
    >>> display = ReducedConfusionMatrixDisplay(evaluation.reduced["halves"]).plot()
    >>> display.figure_.savefig("reduced.png")
    """

    def __init__(self, reduced: ReducedConfusionMatrix) -> None:
        self.reduced = reduced

    def _draw(self, ax: Axes | None, title: str | None) -> Figure:
        from cmtrack.plots import plot_reduced_matrix

        reduced = self.reduced
        return plot_reduced_matrix(
            reduced.counts, reduced.mismatches, reduced.labels, title=title, ax=ax
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        grouping: Grouping,
        step: str | int = -1,
        labels: Sequence[Label] | None = None,
        sample_weight: Any = None,
        title: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Evaluate a fitted classifier and draw the confusion matrix.

        Parameters
        ----------
        grouping : Grouping
        step : str or int, default -1
            Name or position of the step in a chain of groupings; by default the last step.
        labels, sample_weight
            As in :func:`evaluate_estimator`.
        title : str, optional
        ax : matplotlib.axes.Axes, optional
        """
        X = align_rows({"y": y, "X": X})["X"]
        order = known_labels(estimator, y, labels)
        return cls.from_predictions(
            y,
            estimator.predict(X),
            grouping=grouping,
            step=step,
            labels=order,
            sample_weight=sample_weight,
            title=title,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        grouping: Grouping,
        step: str | int = -1,
        labels: Sequence[Label] | None = None,
        sample_weight: Any = None,
        title: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the matrix from labels; the options are the same as in :meth:`from_estimator`."""
        evaluation = evaluate(
            y_true, y_pred, labels=labels, grouping=grouping, sample_weight=sample_weight
        )
        return cls(evaluation.reduced[step]).plot(ax, title=title)


class _CurveDisplay(_Display):
    """Base class of Displays that draw a curve computed from the positive group's score."""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        title: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the curve of a fitted classifier; for ``options`` see :func:`evaluate_estimator`."""
        return cls._draw_curve_of(evaluate_estimator(estimator, X, y, **options), title, ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        title: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the curve from probabilities; for ``options`` see :func:`cmtrack.evaluate`."""
        return cls._draw_curve_of(evaluate(y_true, y_prob=y_prob, **options), title, ax)

    @classmethod
    def _draw_curve_of(cls, evaluation: Evaluation, title: str | None, ax: Axes | None) -> Self:
        curve = getattr(evaluation, cls.part)
        if curve is None:
            raise ValueError(
                f"{cls.what} needs probabilities and two classes, or a grouping with a step of two "
                f"groups"
            )
        display = cls(curve, **cls._arguments(evaluation))  # type: ignore[call-arg]
        return display.plot(ax, title=title)

    @classmethod
    def _arguments(cls, evaluation: Evaluation) -> dict[str, Any]:
        """Return the remaining arguments of the Display, which come from the evaluation."""
        return {}

    what: ClassVar[str]
    """Name of the curve in error messages."""
    part: ClassVar[str]
    """Name of the evaluation's attribute that contains the curve."""


class ReducedRocDisplay(_CurveDisplay):
    """ROC curve of the positive group; with intragroup mismatches, the curve ends below 1.

    Parameters
    ----------
    roc : RocCurve
        ``evaluation.roc``.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack_integrations.sklearn import ReducedRocDisplay
    >>> evaluation = evaluate([0, 1, 1, 0], y_prob=[0.2, 0.9, 0.4, 0.5])
    >>> ReducedRocDisplay(evaluation.roc).plot().figure_.savefig("roc.png")
    """

    what = "a ROC curve"
    part = "roc"

    def __init__(self, roc: RocCurve) -> None:
        self.roc = roc

    def _draw(self, ax: Axes | None, title: str | None) -> Figure:
        from cmtrack.plots.evaluation import draw_roc

        return draw_roc(self.roc, title=title, ax=ax)


class PrecisionRecallDisplay(_CurveDisplay):
    """Precision-recall curve of the positive group, drawn in steps.

    If there are intragroup mismatches, the recall does not reach 1.

    Parameters
    ----------
    curve : PrecisionRecallCurve
        ``evaluation.precision_recall``.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack_integrations.sklearn import PrecisionRecallDisplay
    >>> evaluation = evaluate([0, 1, 1, 0], y_prob=[0.2, 0.9, 0.4, 0.5])
    >>> display = PrecisionRecallDisplay(evaluation.precision_recall).plot()
    >>> display.figure_.savefig("precision_recall.png")
    """

    what = "a precision-recall curve"
    part = "precision_recall"

    def __init__(self, curve: PrecisionRecallCurve) -> None:
        self.curve = curve

    def _draw(self, ax: Axes | None, title: str | None) -> Figure:
        from cmtrack.plots.evaluation import draw_precision_recall

        return draw_precision_recall(self.curve, title=title, ax=ax)


class ReliabilityDisplay(_CurveDisplay):
    """Calibration curve without bins: the share of positives as a function of the score.

    The Display also draws the distribution of the scores below the curve, unless you pass ``ax``.

    Parameters
    ----------
    curve : CalibrationCurve
        ``evaluation.calibration``.
    interval : (float, float), optional
        Confidence interval of the calibration error, from
        ``evaluation.intervals.get("calibration/error")``.
    negative : label, optional
        The name of the negative group.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import evaluate
    >>> from cmtrack_integrations.sklearn import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> evaluation = evaluate((rng.random(300) < p).astype(int), y_prob=p)
    >>> ReliabilityDisplay(evaluation.calibration).plot().figure_.savefig("reliability.png")
    """

    what = "a reliability curve"
    part = "calibration"

    def __init__(
        self,
        curve: CalibrationCurve,
        interval: tuple[float, float] | None = None,
        negative: Label = "the rest",
    ) -> None:
        self.curve = curve
        self.interval = interval
        self.negative = negative

    @classmethod
    def _arguments(cls, evaluation: Evaluation) -> dict[str, Any]:
        return {
            "interval": evaluation.intervals.get("calibration/error"),
            "negative": evaluation.negative,
        }

    def _draw(self, ax: Axes | None, title: str | None) -> Figure:
        from cmtrack.plots.evaluation import draw_reliability

        return draw_reliability(self.curve, self.interval, self.negative, title=title, ax=ax)


class PrevalenceDisplay(_Display):
    """Likelihood function for the share of positives among unlabelled rows.

    Parameters
    ----------
    estimate : PrevalenceEstimate
        Result of :func:`cmtrack.estimate_prevalence`.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import estimate_prevalence
    >>> from cmtrack_integrations.sklearn import PrevalenceDisplay
    >>> rng, y = np.random.default_rng(0), np.repeat([0, 1], 200)
    >>> calibration = (y, rng.normal(2 * y))
    >>> estimate = estimate_prevalence(
    ...     rng.normal(0.2, 1.2, 500), calibration=calibration, density="bins"
    ... )
    >>> PrevalenceDisplay(estimate).plot().figure_.savefig("prevalence.png")
    """

    def __init__(self, estimate: PrevalenceEstimate) -> None:
        self.estimate = estimate

    def _draw(self, ax: Axes | None, title: str | None) -> Figure:
        from cmtrack.plots.evaluation import prevalence_figure

        return prevalence_figure(self.estimate, title=title, ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        calibration: Any,
        title: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Score unlabelled rows with a fitted binary classifier, and draw the likelihood function.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Unlabelled rows.
        calibration : (X_cal, y_cal)
            Labelled rows that were **not** used to fit the classifier.
        **options
            Options of :func:`cmtrack.estimate_prevalence`.
        """
        labels = known_labels(estimator)
        if labels is None or len(labels) != 2:
            raise ValueError(f"the likelihood needs two classes, got {labels}")
        X_cal, y_cal = calibration
        y_cal, X_cal = align_rows({"calibration y": y_cal, "calibration X": X_cal}).values()
        positive = options.get("positive")
        column = 1 if positive is None else labels.index(positive)
        scores_cal = probabilities(estimator, X_cal, labels)[:, column]
        scores = probabilities(estimator, X, labels)[:, column]
        return cls.from_predictions(
            scores, calibration=(y_cal, scores_cal), title=title, ax=ax, **options
        )

    @classmethod
    def from_predictions(
        cls,
        scores: Any,
        *,
        calibration: Any,
        title: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the likelihood function from scores; see :func:`cmtrack.estimate_prevalence`."""
        estimate = estimate_prevalence(scores, calibration=calibration, **options)
        if not isinstance(estimate, PrevalenceEstimate):
            raise ValueError(f"the likelihood needs two classes, got {list(estimate.classes)}")
        return cls(estimate).plot(ax, title=title)
