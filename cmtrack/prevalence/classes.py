"""``estimate_prevalence`` for more than two classes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval, normal_quantile
from cmtrack.prevalence.class_shares import ClassShares, class_shares, fit_of_shares
from cmtrack.prevalence.estimate import Likelihood, PrevalenceEstimate
from cmtrack.prevalence.mixture import Mixture, Variance
from cmtrack.prevalence.planning import CountedLabels, highest_scores
from cmtrack.prevalence.vector_scaling import FORMS, Scaling, default_form, fit_scaling, scaled_shares
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.top_scores import TopScoreCounts
from cmtrack.untrusted import for_page

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CLASS_DENSITIES = ("auto", *FORMS, "bins")
CLASS_INTERVALS = ("adjusted", "wald", "realised")
_NOTHING = ScoreCounts(np.array([]), np.zeros((1, 0), dtype=np.int64), exact=True)


@dataclass(frozen=True, eq=False, repr=False)
class ClassPrevalenceEstimate(PrevalenceEstimate):
    """Estimated shares of K classes; ``value``, ``low``, ``high`` and ``count`` are those of ``positive``.

    Attributes
    ----------
    classes : tuple of length K
    class_shares : ClassShares
        All classes' shares and their covariance.
    n_labelled : ndarray of shape (K,)
    """

    classes: tuple[Label, ...] = ()
    class_shares: ClassShares = field(
        default_factory=lambda: ClassShares(*(np.empty(0),) * 5, np.empty(0, dtype=bool)), repr=False
    )
    n_labelled: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    scaling: Scaling | None = field(default=None, repr=False)
    at_target: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def by_class(self) -> dict[Label, tuple[float, float, float]]:
        """(value, low, high) of every class."""
        s = self.class_shares
        rows = zip(s.values.tolist(), s.low.tolist(), s.high.tolist(), strict=True)
        return dict(zip(self.classes, rows, strict=True))

    @property
    def n_positives(self) -> float:
        """Labelled samples of the positive class."""
        return float(self.n_labelled[self.classes.index(self.positive)])

    @property
    def n_negatives(self) -> float:
        """Labelled samples of all other classes."""
        return float(self.n_labelled.sum()) - self.n_positives

    @property
    def implied_spcc(self) -> float:
        """The sPCC of the recalibrated posterior of the positive class that the model implies."""
        tau = self._at_target
        return math.sqrt(float(tau.var()) / (self.value * (1 - self.value))) if 0 < self.value < 1 else math.nan

    @property
    def sd_labels_only(self) -> float:
        """sqrt(sum tau (1-tau)) of the positive class: the labels' spread alone, not the count's error."""
        tau = self._at_target
        return math.sqrt(float((tau * (1 - tau)).sum()))

    @property
    def _at_target(self) -> FloatArray:
        tau: FloatArray = self.posterior(self.at_target)[:, self.classes.index(self.positive)]
        return tau

    def posterior(self, scores: Any, method: str = "interpolated") -> FloatArray:
        """Recalibrated probabilities (n, K) in the target, from probabilities (n, K)."""
        if self.scaling is None:
            raise ValueError("density='bins' recalibrates no single probabilities; use 'vector'")
        weighted = self.scaling.ratios(np.asarray(scores, dtype=np.float64)) * self.class_shares.values
        posterior: FloatArray = weighted / weighted.sum(axis=1, keepdims=True)
        return posterior

    def labels(self, scores: Any, rule: str = "posterior") -> CountedLabels:
        """Which rows are of the positive class, from probabilities (n, K).

        "posterior": the positive class is the most probable one; "count": the round(share x n) rows with the highest
        posterior of it, equal ones kept together.
        """
        posterior = self.posterior(scores)
        k = self.classes.index(self.positive)
        if rule == "count":
            return highest_scores(posterior[:, k], self.value * len(posterior))
        if rule != "posterior":
            raise ValueError(f"rule must be 'posterior' or 'count', got {rule!r}")
        return CountedLabels(posterior.argmax(axis=1) == k, 0)

    def likelihood(self, n_points: int = 401) -> Likelihood:
        """Empty: a profile over K shares is not drawn."""
        return Likelihood(np.empty(0), np.empty(0), np.empty(0))

    def figure(self) -> Figure:
        """Not drawn for more than two classes."""
        raise ValueError("the likelihood figure is drawn for two classes; to_frame() lists the shares of more")

    def to_frame(self) -> pd.DataFrame:
        """One row per class: label, value, low, high, count."""
        import pandas as pd

        rows = [(label, *ends, ends[0] * self.n_target) for label, ends in self.by_class.items()]
        return pd.DataFrame(rows, columns=["label", "value", "low", "high", "count"])

    def __repr__(self) -> str:
        shown = [
            f"{label!r}: {value:.6g} [{low:.6g}, {high:.6g}]" for label, (value, low, high) in self.by_class.items()
        ]
        more = f", … ({len(shown)} classes in all)" if len(shown) > 12 else ""
        return f"{type(self).__name__}({', '.join(shown[:12])}{more}, of {self.n_target:g})"

    def _repr_html_(self) -> str:
        return for_page(self.to_frame().to_html(index=False, float_format="{:.4g}".format))


def class_estimate(
    actual: IntArray,
    held: FloatArray,
    target: FloatArray,
    labels: tuple[Label, ...],
    *,
    positive: Label,
    density: Any,
    interval: str,
    confidence_level: float,
) -> ClassPrevalenceEstimate:
    """Estimate the shares of more than two classes in a target (n, K) from labelled probabilities (m, K).

    Raises
    ------
    ValueError
        If the density or the interval is none for more than two classes, or a class has fewer than two labelled
        samples.
    """
    if density not in CLASS_DENSITIES:
        raise ValueError(f"for more than two classes density must be one of {CLASS_DENSITIES}, got {density!r}")
    if interval not in CLASS_INTERVALS:
        raise ValueError(f"for more than two classes interval must be one of {CLASS_INTERVALS}, got {interval!r}")
    size, n = len(labels), len(target)
    labelled = np.bincount(actual, minlength=size).astype(np.float64)
    if labelled.min() < 2:
        few = [label for label, m in zip(labels, labelled, strict=True) if m < 2]
        raise ValueError(f"calibration needs at least two labelled samples of each class, too few of {few[:10]}")
    tops = TopScoreCounts.from_scores(actual, held, size)
    wanted = TopScoreCounts.from_scores(np.zeros(n, dtype=np.int64), target, 1)
    scaling = None
    if density == "bins":
        shares = class_shares(tops, wanted, confidence_level)
    else:
        scaling = fit_scaling(actual, held, default_form(labelled) if density == "auto" else density)
        shares = scaled_shares(scaling, target, confidence_level)
    k = labels.index(positive)
    own, every = float(shares.of_labelled[k, k]), float(shares.of_labelled[:, k].sum())
    total = float(shares.covariance[k, k])
    value = float(shares.values[k])
    variance = Variance(max(total - every, 0.0), own, every - own, math.nan)
    realised = _wald(value, max(total - value * (1 - value) / n, 1e-3 * total), confidence_level)
    undefined = {}
    statistic, df, pvalue = math.nan, 0, math.nan
    if shares.identified.all():
        statistic, df, pvalue = fit_of_shares(tops, wanted, shares.values)
    else:
        lost = [label for label, known in zip(labels, shares.identified, strict=True) if not known]
        undefined["by_class"] = f"not identified, the scores do not tell them apart: {lost[:10]}"
        if math.isnan(value):
            undefined |= dict.fromkeys(("value", "low", "high"), undefined["by_class"])
            realised = (math.nan, math.nan)
    warnings = []
    if labelled.min() < 20:
        warnings.append(f"a class has only {labelled.min():g} labelled samples (< 20): the intervals are approximate")
    if pvalue < 0.05:
        warnings.append(
            f"the target's probabilities do not fit the labelled ones (p = {pvalue:.2g}): not only the shares changed, "
            "or the labelled scores are training scores; do not trust the estimate"
        )
    ends = realised if interval == "realised" else (float(shares.low[k]), float(shares.high[k]))
    nothing = np.empty(0)
    return ClassPrevalenceEstimate(
        value,
        *ends,
        confidence_level=confidence_level,
        positive=positive,
        n_target=float(n),
        variance=variance,
        interval="realised" if interval == "realised" else "wald",
        mixture=Mixture(nothing, nothing, nothing),
        densities=None,
        target_scores=_NOTHING,
        density=scaling.form if scaling is not None else "bins",
        fit_statistic=statistic,
        fit_df=df,
        fit_pvalue=pvalue,
        realised=realised,
        undefined=undefined,
        warnings=tuple(warnings),
        classes=labels,
        class_shares=shares,
        n_labelled=labelled,
        scaling=scaling,
        at_target=target,
    )


def _wald(value: float, variance: float, confidence_level: float) -> Interval:
    reach = normal_quantile(confidence_level) * math.sqrt(variance)
    return max(0.0, value - reach), min(1.0, value + reach)
