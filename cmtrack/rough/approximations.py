"""Lower and upper approximations of the classes by granules.

Source: Pawlak (1982), Rough sets; Düntsch & Gediga (2019), Confusion matrices and rough set data analysis, equations
2.1-2.3, 3.3 and 3.4 (where p^i = n_i / nu_i is printed as "ni / nu_i").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cmtrack.grouping import Label
from cmtrack.metrics.cells import ratio
from cmtrack.metrics.names import encode_label
from cmtrack.rough.section import ROUGH
from cmtrack.rough.views import approximation_figure
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.untrusted import for_page

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class RoughApproximations:
    """How well granules approximate each class; arrays of shape (K,) in the order of ``labels``.

    Attributes
    ----------
    labels : tuple of length K
    class_sizes : ndarray, int64
        n_j, samples of the class.
    lower : ndarray, int64
        nl_j, samples in granules that lie inside the class: they are of the class for certain.
    upper : ndarray, int64
        nu_j, samples in granules that meet the class: they may be of it.
    lower_granules, upper_granules : tuple of K tuples of int
        The granules that make them up, by their place in the table.
    """

    labels: tuple[Label, ...]
    class_sizes: IntArray
    lower: IntArray
    upper: IntArray
    lower_granules: tuple[tuple[int, ...], ...]
    upper_granules: tuple[tuple[int, ...], ...]

    @property
    def gamma(self) -> float:
        """Quality of approximation: the share of samples in granules of a single class (equation 3.3)."""
        return float(self.lower.sum()) / float(self.class_sizes.sum())

    @property
    def alpha(self) -> FloatArray:
        """Accuracy of approximation of each class, lower / upper (equation 3.4); NaN for a class without samples."""
        return _share(self.lower, self.upper)

    @property
    def weighted_alpha(self) -> float:
        """Mean of :attr:`alpha` weighted by the upper approximations: their sums' ratio."""
        return float(self.lower.sum()) / float(self.upper.sum())

    @property
    def lower_share(self) -> FloatArray:
        """p_j = lower / class size: how much of the class is certain; NaN for a class without samples."""
        return _share(self.lower, self.class_sizes)

    @property
    def upper_share(self) -> FloatArray:
        """p^j = class size / upper: how much of what may be the class is it; NaN for a class without samples."""
        return _share(self.class_sizes, self.upper)

    @property
    def metrics(self) -> dict[str, float]:
        """The numbers by their names in the catalog, such as ``rough/gamma``: ``mlflow.log_metrics`` takes them.

        The shares of a class without samples are undefined and NaN.
        """
        metrics = [metric for metric in ROUGH.metrics if metric.of == "granules"]
        found = {metric.name: metric.number(self) for metric in metrics if "<" not in metric.name}
        of_each = [(metric.name, metric.value(self)) for metric in metrics if metric.value and "<" in metric.name]
        for k, label in enumerate(self.labels):
            found |= {name.replace("<label>", encode_label(label)): float(values[k]) for name, values in of_each}
        return found

    @property
    def undefined(self) -> dict[str, str]:
        """Why a number of :attr:`metrics` is NaN."""
        return {name: "no actual samples" for name, value in self.metrics.items() if math.isnan(value)}

    def to_frame(self) -> pd.DataFrame:
        """One row per class."""
        import pandas as pd

        columns = {
            "size": self.class_sizes,
            "lower": self.lower,
            "upper": self.upper,
            "alpha": self.alpha,
            "lower_share": self.lower_share,
            "upper_share": self.upper_share,
        }
        return pd.DataFrame(columns, index=pd.Index(self.labels, name="class", tupleize_cols=False))

    def figure(self) -> Figure:
        """Draw a bar per class from its lower to its upper approximation."""
        return approximation_figure(self.lower, self.upper, self.class_sizes, self.labels)

    def __repr__(self) -> str:
        numbers = f"gamma {self.gamma:.4g}, weighted_alpha {self.weighted_alpha:.4g}"
        return f"RoughApproximations({len(self.labels)} classes, {numbers})"

    def _repr_html_(self) -> str:
        return for_page(self.to_frame().to_html())


def approximate(counts: IntArray, labels: tuple[Label, ...]) -> RoughApproximations:
    """The approximations of the classes of a table of granules, counts (S, K)."""
    meets = counts > 0
    inside = meets & (meets.sum(axis=1) == 1)[:, None]
    sizes = counts.sum(axis=1)
    return RoughApproximations(
        labels,
        class_sizes=counts.sum(axis=0),
        lower=sizes @ inside,
        upper=sizes @ meets,
        lower_granules=_members(inside),
        upper_granules=_members(meets),
    )


def _members(holds: np.ndarray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(np.flatnonzero(column).tolist()) for column in holds.T)


def _share(part: Counts, whole: Counts) -> FloatArray:
    return ratio(part.astype(np.float64), whole.astype(np.float64))
