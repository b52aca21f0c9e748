"""Lower and upper approximations of classes, or bounds for them from a confusion matrix.

Source: Pawlak (1982), Rough sets; Düntsch & Gediga (2019), Confusion matrices and rough set data
analysis, equations 2.1-2.3, 3.3 and 3.4 (where p^i = n_i / nu_i is printed as "ni / nu_i"),
sections 3 and 4. In their matrices the rows are predicted classes, and in cmtrack's matrices the
rows are actual classes, so their n_ij is ``counts[j, i]`` here. Three statements in the printed
article cannot be correct. First, the weights of equations 3.5 and 3.6 must be n_i. + n_.i - n_ii,
because with the printed weights n_i. + n_.i the article's own example yields a share of 1.226.
Second, equation 3.6 uses the name gamma for the share of hits, which is only an upper bound of the
gamma that equation 3.3 defines. Third, the left side of theorem 4.4 must be nu**. If condition 4.1
is not met, the bounds can be wrong: if a classifier assigns the granules [[0, 4], [3, 0], [1, 2]]
to the classes (0, 0, 1), a lower bound for an upper approximation is 8, although the upper
approximation is 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack import notebook
from cmtrack.digits import significant
from cmtrack.grouping import Label
from cmtrack.metrics.cells import Cells, ratio
from cmtrack.metrics.names import encode_label
from cmtrack.rough.metrics import ROUGH, bounds_of_cells
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class RoughApproximations:
    """Approximations of each class by granules; arrays of shape (K,) in the order of ``labels``.

    Attributes
    ----------
    labels : tuple of length K
    class_sizes : ndarray, int64
        n_j, the number of rows in each class.
    lower : ndarray, int64
        nl_j, the number of rows in granules whose rows are all of the class. Such rows certainly
        belong to the class.
    upper : ndarray, int64
        nu_j, the number of rows in granules that contain at least one row of the class. Such rows
        may belong to the class.
    lower_granules, upper_granules : tuple of K tuples of int
        For each class, the positions in the table of the granules in its lower or its upper
        approximation.

    Examples
    --------
    >>> from cmtrack import granule_table
    >>> table = granule_table({"sky": ["sun", "sun", "rain", "rain"]}, ["out", "out", "in", "out"])
    >>> found = table.approximations()
    >>> found.labels, found.lower.tolist(), found.upper.tolist(), found.gamma
    (('in', 'out'), [0, 2], [2, 4], 0.5)
    """

    labels: tuple[Label, ...]
    class_sizes: IntArray
    lower: IntArray
    upper: IntArray
    lower_granules: tuple[tuple[int, ...], ...]
    upper_granules: tuple[tuple[int, ...], ...]

    @property
    def gamma(self) -> float:
        """Quality of approximation: the share of rows in pure granules (equation 3.3)."""
        return float(self.lower.sum()) / float(self.class_sizes.sum())

    @property
    def alpha(self) -> FloatArray:
        """Accuracy of approximation of each class, lower / upper (equation 3.4).

        NaN for a class without rows.
        """
        return _share(self.lower, self.upper)

    @property
    def weighted_alpha(self) -> float:
        """Mean of :attr:`alpha` weighted by the upper approximations: Σ lower / Σ upper."""
        return float(self.lower.sum()) / float(self.upper.sum())

    @property
    def lower_share(self) -> FloatArray:
        """Share of each class's rows that certainly belong to the class: p_j = lower / class size.

        NaN for a class without rows.
        """
        return _share(self.lower, self.class_sizes)

    @property
    def upper_share(self) -> FloatArray:
        """Share of the rows in each upper approximation that belong to the class.

        In the source's notation, p^j = class size / upper.
        """
        return _share(self.class_sizes, self.upper)

    @property
    def metrics(self) -> dict[str, float]:
        """Metric values by catalog name, such as ``rough/gamma``.

        You can pass this mapping to ``mlflow.log_metrics``. The shares of a class without rows are
        undefined, so they are NaN.
        """
        numbers: dict[str, float] = {}
        by_class: dict[str, FloatArray] = {}
        for metric in ROUGH.metrics:
            if metric.of == "granules" and "<label>" in metric.name:
                by_class[metric.name] = metric.value_function(self)
            elif metric.of == "granules":
                numbers[metric.name] = metric.number(self)
        return numbers | _of_classes(self.labels, by_class)

    @property
    def undefined(self) -> dict[str, str]:
        """For each metric in :attr:`metrics` that is NaN, the reason."""
        return {name: "no actual rows" for name, value in self.metrics.items() if math.isnan(value)}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class."""
        names = ("lower", "upper", "alpha", "lower_share", "upper_share")
        columns = {name: getattr(self, name) for name in names}
        return _frame(self.labels, {"size": self.class_sizes, **columns})

    def figure(self) -> Figure:
        """For each class, draw a bar from the lower to the upper approximation."""
        from cmtrack import plots

        return plots.plot_rough_approximations(
            self.lower, self.upper, self.class_sizes, self.labels, title="Rough approximations"
        )

    def __repr__(self) -> str:
        numbers = (
            f"gamma {significant(self.gamma)}, weighted_alpha {significant(self.weighted_alpha)}"
        )
        return f"RoughApproximations({len(self.labels)} classes, {numbers})"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.table(self.to_frame()))


def approximate(counts: IntArray, labels: tuple[Label, ...]) -> RoughApproximations:
    """Compute the approximations of each class from counts (S, K) by granule and class."""
    meets = counts > 0
    is_pure = meets.sum(axis=1) == 1
    inside = meets & is_pure[:, None]
    sizes = counts.sum(axis=1)
    return RoughApproximations(
        labels,
        class_sizes=counts.sum(axis=0),
        lower=sizes @ inside,
        upper=sizes @ meets,
        lower_granules=_members(inside),
        upper_granules=_members(meets),
    )


def _members(flags: BoolArray) -> tuple[tuple[int, ...], ...]:
    """For each class, return the positions of the granules whose flags are true."""
    return tuple(tuple(np.flatnonzero(column).tolist()) for column in flags.T)


def _share(part: Counts, whole: Counts) -> FloatArray:
    return ratio(part.astype(np.float64), whole.astype(np.float64))


def _of_classes(
    labels: tuple[Label, ...], by_class: Mapping[str, FloatArray | Counts]
) -> dict[str, float]:
    """Return the metrics for each class; the class replaces ``<label>`` in the metric's name."""
    return {
        name.replace("<label>", encode_label(label)): float(values[k])
        for k, label in enumerate(labels)
        for name, values in by_class.items()
    }


def _frame(labels: tuple[Label, ...], columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame of the given columns with one row per class."""
    from cmtrack._pandas import pd

    return pd.DataFrame(columns, index=pd.Index(labels, name="class", tupleize_cols=False))


# -- bounds from a confusion matrix ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RoughBounds:
    """Bounds of the lower and upper approximation of each class.

    Arrays have shape (K,), in the order of ``labels``.

    The bounds hold if every granule (a set of rows that the classifier cannot distinguish) contains
    at least one row of the class that the classifier assigns to it. A confusion matrix alone cannot
    prove this condition, but it disproves the condition if a class is predicted but never
    correctly.

    Attributes
    ----------
    labels : tuple of length K
    class_sizes : ndarray
        n_j, the number of rows whose actual class is this class.
    hits : ndarray
        nl*_j = n_jj, the number of correctly predicted rows. This number is at least as large as
        the lower approximation.
    lower_upper_bound : ndarray
        nl**_j, an upper bound of the lower approximation. It is ``hits``, or ``hits`` minus one if
        the class is also predicted for rows of other classes.
    majority_lower_upper_bound : ndarray or None
        nl^m_j, a sharper upper bound that requires a classifier that predicts the most frequent
        class of each granule; None for any other classifier.
    union : ndarray
        nu*_j, the number of rows whose actual or predicted class is this class. This number is at
        most as large as the upper approximation.
    upper_lower_bound : ndarray
        nu**_j, a lower bound of the upper approximation. It is ``union`` plus one for each other
        class that is predicted for rows of this class.
    majority_upper_lower_bound : ndarray or None
        nu^m_j, a sharper lower bound that requires the same kind of classifier as
        ``majority_lower_upper_bound``.
    condition_holds : bool or None
        Whether every granule contains rows of its assigned class; None if the granules are
        unknown.
    broken_by : tuple of int
        Positions in the table of the granules that contain no row of their assigned class; empty if
        the granules are unknown.
    never_right : tuple of labels
        Classes that are predicted but never correctly. The granules that are assigned to such a
        class do not meet the condition.

    Notes
    -----
    Each 1 that is subtracted from ``hits`` or added to ``union`` stands for one row. If weights are
    fractional, a row can weigh less than 1. In this case ``lower_upper_bound`` equals ``hits`` and
    ``upper_lower_bound`` equals ``union``. A whole-number weight counts how often the row is
    repeated.

    Examples
    --------
    >>> from cmtrack import ConfusionMatrix, rough_bounds
    >>> bounds = rough_bounds(ConfusionMatrix([[50, 10], [5, 35]], ("in", "out")))
    >>> bounds.lower_upper_bound.tolist(), bounds.upper_lower_bound.tolist(), bounds.gamma_upper
    ([49, 34], [66, 51], 0.85)
    >>> bounds.condition_text
    'They hold if every granule contains rows of its assigned class.'
    """

    labels: tuple[Label, ...]
    class_sizes: Counts
    hits: Counts
    lower_upper_bound: Counts
    union: Counts
    upper_lower_bound: Counts
    majority_lower_upper_bound: Counts | None = None
    majority_upper_lower_bound: Counts | None = None
    condition_holds: bool | None = None
    broken_by: tuple[int, ...] = ()
    never_right: tuple[Label, ...] = ()

    @property
    def gamma_upper(self) -> float:
        """Upper bound for the quality of approximation: the share of correct predictions.

        Equation 3.6 of the source uses the name gamma for this bound.
        """
        return float(self.hits.sum()) / float(self.class_sizes.sum())

    @property
    def alpha_upper(self) -> FloatArray:
        """Upper bound for each class's accuracy of approximation (equation 3.4): hits / union.

        NaN for a class that is neither the actual nor the predicted class of any row.
        """
        return _share(self.hits, self.union)

    @property
    def weighted_alpha_upper(self) -> float:
        """Mean of :attr:`alpha_upper` over the classes, weighted by ``union``.

        This mean equals g / (2 - g), with g = ``gamma_upper`` (equation 3.6).
        """
        return float(self.hits.sum()) / float(self.union.sum())

    @property
    def metrics(self) -> dict[str, float]:
        """Metric values by catalog name, such as ``rough/gamma_upper``."""
        by_class = {
            f"rough/<label>/{name}": getattr(self, name)
            for name in ("lower_upper_bound", "upper_lower_bound", "alpha_upper")
        }
        return {
            "rough/gamma_upper": self.gamma_upper,
            "rough/alpha_upper": self.weighted_alpha_upper,
            **_of_classes(self.labels, by_class),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per class.

        Bounds that require a classifier that predicts most frequent classes are NaN for all other
        classifiers.
        """
        columns: dict[str, Any] = {"size": self.class_sizes}
        for name in (
            "hits",
            "lower_upper_bound",
            "majority_lower_upper_bound",
            "union",
            "upper_lower_bound",
            "majority_upper_lower_bound",
            "alpha_upper",
        ):
            column = getattr(self, name)
            columns[name] = math.nan if column is None else column
        return _frame(self.labels, columns)

    def figure(self) -> Figure:
        """Draw the sharpest available bounds as one bar per class."""
        from cmtrack import plots

        lower = self.majority_lower_upper_bound
        if lower is None:
            lower = self.lower_upper_bound
        upper = self.majority_upper_lower_bound
        if upper is None:
            upper = self.upper_lower_bound
        return plots.plot_rough_approximations(
            lower,
            upper,
            self.class_sizes,
            self.labels,
            condition=self.condition_text,
            title="Bounds of the rough approximations",
        )

    @property
    def condition_text(self) -> str:
        """Text with the condition under which the bounds hold, and whether the condition is met."""
        if self.condition_holds:
            return "They hold: every granule contains rows of its assigned class."
        if self.broken_by:
            granules = ", ".join(map(str, self.broken_by[:8]))
            if len(self.broken_by) > 8:
                granules += ", …"
            return (
                f"They may fail: these granules contain no row of their assigned class: {granules}."
            )
        if self.condition_holds is False:
            return f"They may fail: {self.never_right[0]} is predicted, but never correctly."
        return "They hold if every granule contains rows of its assigned class."

    def __repr__(self) -> str:
        gamma = significant(self.gamma_upper)
        alpha = significant(self.weighted_alpha_upper)
        numbers = f"gamma_upper {gamma}, weighted_alpha_upper {alpha}"
        return printable(
            f"RoughBounds({len(self.labels)} classes, {numbers}. {self.condition_text[:-1]})"
        )

    def _repr_html_(self) -> str:
        return notebook.view(
            notebook.table(self.to_frame()), notebook.sentence(self.condition_text)
        )


_FIELDS = ("class_sizes", "hits", "lower_upper_bound", "union", "upper_lower_bound")


def rough_bounds(confusion_matrix: ConfusionMatrix, majority: bool = False) -> RoughBounds:
    """Return bounds for the rough approximations of the classes from only a confusion matrix.

    Parameters
    ----------
    confusion_matrix : ConfusionMatrix
        A matrix whose rows are actual classes and whose columns are predicted classes.
    majority : bool, default False
        Whether the classifier predicts the most frequent class of each granule. If True, the result
        also contains two sharper bounds.

    Returns
    -------
    RoughBounds
        The bounds hold if every granule contains rows of its assigned class. A confusion matrix
        cannot prove this condition, but :meth:`GranuleTable.bounds` checks it.

    Raises
    ------
    TypeError
        If ``confusion_matrix`` is not a confusion matrix.
    ValueError
        If the matrix is empty, or if ``majority`` is true although no classifier that predicts the
        most frequent class of each granule can have this matrix.

    References
    ----------
    Düntsch & Gediga (2019), Confusion matrices and rough set data analysis, equations 3.4-3.6,
    theorems 4.1-4.4.

    Examples
    --------
    >>> from cmtrack import ConfusionMatrix, rough_bounds
    >>> bounds = rough_bounds(ConfusionMatrix([[50, 10], [5, 35]], ("in", "out")), majority=True)
    >>> bounds.majority_lower_upper_bound.tolist(), bounds.majority_upper_lower_bound.tolist()
    ([45, 25], [75, 55])
    """
    if not isinstance(confusion_matrix, ConfusionMatrix):
        kind = type(confusion_matrix).__name__
        raise TypeError(
            f"confusion_matrix must be a ConfusionMatrix, got {kind}; from_predictions makes one"
        )
    if not confusion_matrix.total > 0:
        raise ValueError("confusion_matrix must have rows, got only zeros")
    counts = confusion_matrix.counts
    labels = confusion_matrix.labels
    cells = Cells.of_matrix(Counted.unweighted(counts))
    bounds = bounds_of_cells(cells, whole=counts.dtype.kind == "i")
    is_never_right = (bounds["predicted"] > 0) & ~(bounds["hits"] > 0)
    never_right = tuple(labels[k] for k in np.flatnonzero(is_never_right))
    stated = {name: bounds[name] for name in _FIELDS}
    if majority:
        stated |= _majority(cells, labels, bounds)
    arrays: dict[str, Any] = {name: value.astype(counts.dtype) for name, value in stated.items()}
    return RoughBounds(
        labels, **arrays, condition_holds=False if never_right else None, never_right=never_right
    )


def _majority(
    cells: Cells, labels: tuple[Label, ...], bounds: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return the sharper bounds of theorems 4.3 and 4.4 for most-frequent-class classifiers."""
    hits = bounds["hits"]
    second = np.zeros(cells.size)
    is_error = ~cells.hit
    np.maximum.at(second, cells.predicted[is_error], cells.weight[is_error])
    wrong = np.flatnonzero(second > hits)
    if wrong.size:
        j = int(wrong[0])
        raise ValueError(
            "majority=True needs every class to be predicted at least as often for its own rows "
            f"as for rows of any other class, got {labels[j]!r} predicted {hits[j]:g} times for "
            f"its own rows and {second[j]:g} times for another class's"
        )
    missed = bounds["class_sizes"] - hits
    return {
        "majority_lower_upper_bound": hits - second,
        "majority_upper_lower_bound": bounds["predicted"] + 2 * missed,
    }
