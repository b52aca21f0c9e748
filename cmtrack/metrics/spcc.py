"""Sample Pearson correlation (sPCC) of labels and scores, and separation indices (``spcc/``).

The source is chapter 1 of Gubbels (2023). Equations 1.9 to 1.12 define the correlations (binary,
one-vs-one, one-vs-rest), and section 1.2.2 defines the indices d_a, d_e and d_b. This module
corrects several errors in the source. The Fisher averages include the factor 1/m, which is missing
in print. With this factor, the one-vs-rest entries in Table 1.7 result in .7871, which is the
number in Table 1.6. The one-vs-one average of .8351 cannot be reproduced, because the six entries
result in .8255. The printed equation for d_e lacks a square root on its right side, and the
numerator must contain the total variance of the predictions. A bias is within [-pi, 1-pi], so the
2.8372 of Table 1.2 cannot be correct.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from cmtrack._lazy import cached_property
from cmtrack.metrics.cells import ratio
from cmtrack.metrics.function import Function
from cmtrack.metrics.intervals import Interval, least_correlation, normal_quantile, wilson
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.moments import ScoreSamples, Sides, TwoClasses, quadratic_error
from cmtrack.metrics.roc import ScoreTable
from cmtrack.metrics.samples import Samples, stratum_means
from cmtrack.statistics import ScoreMoments
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import row_blocks
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import CONSTANT, CrossMoments, features_of

if TYPE_CHECKING:
    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.views import EvaluationViews

_CLIP = 1 - 1e-12
"""Largest correlation that is used in a mean of atanh, because atanh is infinite at 1."""


# -- one score and two classes ---------------------------------------------------------------------


def correlation(s: TwoClasses) -> Any:
    """Return the correlation between a class indicator and a score; NaN if a class is empty.

    The correlation is 0 if the score never varies.
    """
    return _correlation(s.n1, s.n0, s.mean1, s.mean0, s.m20 + s.m21)


def is_constant(s: TwoClasses) -> Any:
    """Return whether both classes have rows and all rows have the same score."""
    return _is_constant(s.n1, s.n0, s.mean1, s.mean0, s.m20 + s.m21)


def _correlation(p: Any, n: Any, mean: Any, other_mean: Any, within: Any) -> Any:
    share = p * n / (p + n)
    gap = mean - other_mean
    # If a class has no rows, this divides by 0. Callers silence NumPy and do not use the result.
    scaled_gap = gap * np.sqrt(share) / np.sqrt(within + gap**2 * share)
    value = np.where(np.real(share) > 0, scaled_gap, math.nan)
    # If the means are equal, the correlation is 0, which corresponds to a ROC area of 1/2. If the
    # score is constant, the correlation has no derivative. A complex step must then return NaN,
    # because the standard error is unknown and not 0.
    at_constant = complex(0.0, math.nan) if np.iscomplexobj(value) else 0.0
    return np.where(_is_constant(p, n, mean, other_mean, within), at_constant, value)


def _is_constant(p: Any, n: Any, mean: Any, other_mean: Any, within: Any) -> Any:
    share = np.real(p * n / (p + n))
    total = np.real(within) + np.real(mean - other_mean) ** 2 * share
    return (share > 0) & (total <= np.real(p + n) * CONSTANT * np.real(mean) ** 2)


def d_a(s: TwoClasses) -> Any:
    """Divide the distance of the mean scores by the root mean square of the standard deviations.

    The equation ``d_a = sqrt(2) z(AUC)`` is true if the scores are normal in both classes, but not
    in general.
    """
    v0, v1 = s.variances
    return np.sqrt(s.gap**2) / np.sqrt((v0 + v1) / 2)


def d_e(s: TwoClasses) -> Any:
    """Divide the distance of the mean scores by the average of the two standard deviations."""
    v0, v1 = s.variances
    return 2 * np.sqrt(s.gap**2) / (np.sqrt(v0) + np.sqrt(v1))


def spcc(moments: ScoreMoments) -> float:
    """Return the correlation between a two-class indicator and a score.

    Parameters
    ----------
    moments : ScoreMoments of shape (2, 1)
        The moments of the negatives, followed by the moments of the positives.

    Returns
    -------
    float
        The correlation, in [-1, 1]. Its magnitude is 1 if the score is constant within each class.
        It is 0 if the mean scores of the two classes are equal, for example if the score is the
        same in all rows. It is NaN if a class is empty.
    """
    samples = ScoreSamples(Counted.unweighted(moments).map(Sides.of_score))
    with np.errstate(all="ignore"):
        value = correlation(samples.argument())
    return float(np.clip(value, -1.0, 1.0))


def standardised_spcc(moments: ScoreMoments, prevalence: float) -> float:
    """Return the sPCC for unchanged score distributions by class at a different prevalence."""
    if not 0 < prevalence < 1:
        raise ValueError(f"prevalence must be between 0 and 1, got {prevalence}")
    sides = Sides.of_score(moments)
    if not (sides.n > 0).all():
        return math.nan
    v0, v1 = sides.m2 / sides.n
    mean0, mean1 = sides.mean
    within = prevalence * v1 + (1 - prevalence) * v0
    with np.errstate(all="ignore"):
        return float(_correlation(prevalence, 1 - prevalence, mean1, mean0, within))


# -- scores of all classes -------------------------------------------------------------------------


def spcc_ovo(moments: ScoreMoments, *, equal_shares: bool = False) -> FloatArray:
    """Return the matrix of one-vs-one correlations, shape (K, K).

    The entry (c, d) is the correlation for the classes c and d, computed from the score of c. The
    matrix is not symmetric, and its diagonal is 0. If ``equal_shares`` is true, each entry is the
    value that results if both classes contain the same number of rows. This is useful because the
    sPCC of a well separated pair of classes is small if one of the classes is rare.
    """
    classes = moments.classes
    size = len(moments.n)
    if len(classes) == size:
        return _of_pairs(moments, equal_shares)
    matrix = np.full((size, size), math.nan)
    matrix[np.ix_(classes, classes)] = _of_pairs(moments, equal_shares)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _of_pairs(moments: ScoreMoments, equal_shares: bool = False) -> FloatArray:
    """Return the matrix from :func:`spcc_ovo` for the classes that have rows in the moments."""
    classes = moments.classes
    n = moments.n[classes].astype(np.float64)
    mean = moments.diagonal("mean")[classes]
    squares = moments.diagonal("m2")[classes]
    weight = n
    divisor = 2 * np.where(n > 0, n, 1.0)
    if equal_shares:
        weight = np.where(n > 0, 0.5, 0.0)
        squares = squares / divisor
    matrix = np.empty((len(n), len(n)))
    for rows in row_blocks(len(n), len(n)):
        other_mean = moments.mean[:, classes[rows]].T
        other_squares = moments.m2[:, classes[rows]].T
        if equal_shares:
            other_squares = other_squares / divisor
        within = squares[rows, None] + other_squares
        with np.errstate(all="ignore"):
            pairs = _correlation(weight[rows, None], weight, mean[rows, None], other_mean, within)
        np.clip(pairs, -1.0, 1.0, out=matrix[rows])
    np.fill_diagonal(matrix, 0.0)
    return matrix


def pair_errors(moments: ScoreMoments, own: IntArray, other: IntArray) -> FloatArray:
    """Return the standard errors of one-vs-one correlations at equal shares, shape (P,).

    Each correlation compares a class in ``own`` with a class in ``other``, by the score of the
    class in ``own``. The correlation is r = d / sqrt(4 W + d^2), in which d is the difference of
    the means and W is the mean of the variances. Its standard error is computed from the
    derivatives of r and from the standard errors of the means and variances.
    """
    sides = Sides.of_pairs(moments, own, other)
    variance = sides.m2 / sides.n
    third = sides.m3 / sides.n
    fourth = sides.m4 / sides.n
    gap = sides.mean[1] - sides.mean[0]
    mean_variance = variance.mean(axis=0)
    # If the mean in the class in ``other`` increases, the difference decreases.
    sign = np.array([[-1], [1]])
    with np.errstate(all="ignore"):
        scale = (4 * mean_variance + gap**2) ** -1.5
        by_mean = 4 * mean_variance * scale
        by_variance = -gap * scale
        of_mean = by_mean**2 * variance
        of_both = sign * 2 * by_mean * by_variance * third
        of_variance = by_variance**2 * (fourth - variance**2)
        return np.sqrt(((of_mean + of_both + of_variance) / sides.n).sum(axis=0))


class PairCorrelations(NamedTuple):
    """One-vs-one correlations at equal shares, as arrays (P,) for the least separated pairs.

    ``first``, ``second``: indices of the two classes. The correlation is computed from the score of
        the first class.
    ``low``, ``high``: limits of the interval of each correlation. They are NaN if the standard
        error is unknown.
    ``n_pairs``: total number of pairs with enough rows.
    """

    first: IntArray
    second: IntArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    n_pairs: int


def least_separated(
    scores: ClassScores, least: float, most: int, level: float | None
) -> PairCorrelations:
    """Return the least separated pairs of classes, up to the number ``most``.

    Both classes of a pair have at least ``least`` effective rows.

    ``level``: confidence level of the intervals, which are valid for independent rows without
        weights. If it is None, intervals are not computed.
    """
    moments = scores.moments
    sizes = np.nan_to_num(scores.sizes)
    matrix = spcc_ovo(moments, equal_shares=True)
    enough = np.minimum(sizes[:, None], sizes) >= least
    values = np.where(enough & np.isfinite(matrix), matrix, np.inf)
    np.fill_diagonal(values, np.inf)
    # Each pair of classes can be compared by two scores. The score that separates the pair less
    # well is used.
    values[values > values.T] = np.inf
    n_pairs = int(np.isfinite(values).sum())
    order = np.argsort(values, axis=None, kind="stable")[: min(most, n_pairs)]
    first, second = np.unravel_index(order, values.shape)
    value = matrix[first, second]
    low = high = np.full(len(value), math.nan)
    if level is not None:
        reach = normal_quantile(level) * pair_errors(moments, first, second) / (1 - value**2)
        low = np.tanh(np.arctanh(value) - reach)
        high = np.tanh(np.arctanh(value) + reach)
    return PairCorrelations(first, second, value, low, high, n_pairs)


_MOST_TERMS = 20_000
"""Largest number of correlations whose intervals are used to compute the interval of the smallest
correlation.
"""
_LEAST_PAIR = 4
"""Smallest number of rows in two classes together for which their correlation is used in a mean,
because two points are always on a line.
"""


def fisher_mean(correlations: FloatArray) -> float:
    """Return tanh of the mean of the correlations' atanh; undefined correlations are skipped.

    Correlations of +1 and -1 are replaced by 1 - 1e-12 and 1e-12 - 1. The mean hides a single low
    correlation, so also look at the minimum.
    """
    defined = correlations[~np.isnan(correlations)]
    if not defined.size:
        return math.nan
    np.arctanh(np.clip(defined, -_CLIP, _CLIP, out=defined), out=defined)
    return math.tanh(float(defined.mean()))


class ClassScores(Samples):
    """Rows for which the scores of all classes are summarized.

    The influence of a row on one correlation is a quadratic function of one of its scores. The
    influence on a mean of correlations is therefore a quadratic function of all scores of the row.
    It is represented by coefficients for each class, as an array of shape (K, 2K+1). They belong to
    the features (1, s, s^2) from :func:`cmtrack.statistics.moments.features_of`.

    ``moments``, ScoreMoments of shape (K, K): moments of each score in each class.
    ``cross``: joint moments of several scores, which are needed for the standard error of a mean of
        correlations.
    """

    kinds = ("all scores", "class scores")
    by_pairs = True

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> ClassScores | None:
        statistics = views.statistics
        if kind == "class scores":
            # If there are two classes, the one-vs-rest and one-vs-one correlations equal the
            # section's binary metric.
            return views.seen(cls) if len(statistics.matrix.labels) > 2 else None
        moments = statistics.counted("moments")
        if moments is None:
            return None
        return cls(moments, statistics.counted("cross"))

    def __init__(
        self,
        moments: Counted[ScoreMoments],
        cross: Counted[CrossMoments] | None = None,
    ) -> None:
        self.counted = moments
        self.moments = moments.sums
        self.cross = None if cross is None else cross.squares
        self.total = float(self.moments.n.sum())

    @cached_property
    def one_vs_rest(self) -> ScoreSamples:
        """Moments for each class against all other classes."""
        return ScoreSamples(self.counted.map(Sides.one_vs_rest))

    @cached_property
    def matrix(self) -> FloatArray:
        """One-vs-one correlations of the C classes with rows, shape (C, C), with diagonal 0."""
        return _of_pairs(self.moments)

    @cached_property
    def constant_pairs(self) -> BoolArray:
        """Mask of one-vs-one correlations whose score is equal in all rows, shape (C, C)."""
        moments = self.moments
        classes = moments.classes
        n = moments.n[classes].astype(np.float64)
        mean = moments.diagonal("mean")[classes]
        m2 = moments.diagonal("m2")[classes]
        constant = np.zeros((len(n), len(n)), dtype=np.bool_)
        for rows in row_blocks(len(n), len(n)):
            other_mean = moments.mean[:, classes[rows]].T
            within = m2[rows, None] + moments.m2[:, classes[rows]].T
            with np.errstate(all="ignore"):
                constant[rows] = _is_constant(
                    n[rows, None], n, mean[rows, None], other_mean, within
                )
        np.fill_diagonal(constant, False)
        return constant

    @cached_property
    def sizes(self) -> FloatArray:
        """Effective number of rows in each class, shape (K,)."""
        n: Counted[FloatArray] = self.counted.map(lambda moments: moments.n.astype(np.float64))
        if not n.fractional:
            return n.sums
        return ratio(n.sums**2, n.squares)

    def informing(self, metric: Metric) -> float:
        """Return the effective number of rows in the smallest class."""
        return float(np.nanmin(self.one_vs_rest.informing(metric)))

    def standard_error(self, influence: FloatArray) -> float | None:
        """Return the standard error for a quadratic influence; None if joint moments are missing.

        If the quadratic function depends on a single score, only the moments of this score are
        needed.
        """
        size = len(self.moments.n)
        used = np.flatnonzero(influence[:, 1:].reshape(-1, 2, size).any(axis=(0, 1)))
        if len(used) == 1:
            j = int(used[0])
            return self.error_by(j, influence[:, [0, 1 + j, 1 + size + j]])
        if self.cross is None:
            return None
        squared = float(np.einsum("ki,kij,kj->", influence, self.cross.sums, influence))
        # The sum is NaN if the standard error of any correlation is unknown.
        if not squared >= 0:
            return None
        return math.sqrt(squared) / self.total

    def within(self, influence: FloatArray, strata: IntArray) -> tuple[FloatArray, FloatArray]:
        moments = self.moments
        classes = moments.classes
        n = moments.n.astype(np.float64)
        # The features are the scores minus 1/K, followed by the squares of these differences; see
        # features_of.
        first = moments.mean - 1 / len(n)
        rows = n[classes, None]
        variance = np.divide(moments.m2, rows, out=np.zeros_like(first), where=rows > 0)
        features = np.hstack((first, variance + first**2))
        of_class = influence[:, 0].copy()
        of_class[classes] += np.einsum("kj,kj->k", influence[classes, 1:], features)
        means = stratum_means(of_class, n, strata)
        centred = influence.copy()
        centred[:, 0] -= means[strata]
        return centred, means

    def error_by(self, j: int, influence: FloatArray) -> float:
        """Return the standard error for a quadratic influence that depends only on the score j.

        The influence contains the coefficients of (1, s, s^2) for each class, shape (K, 3).
        """
        sides = self.counted.map(lambda moments: Sides.of_classes(moments.component(j)))
        mean = sides.sums.mean
        about = _moved(influence.T, mean - 1 / len(mean))
        return float(quadratic_error(about, sides)) / self.total

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        psi = metric.influence_in(self)
        if psi is None:
            return None
        return np.einsum("ij,ij->i", psi[at.rows.actual], features_of(at.probabilities))


class EachScore(ScoreSamples):
    """The scores of each class, compared with all other classes.

    The kind ``class means`` also applies if there are not two groups.
    """

    kinds = ("class moments", "class means")

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> ScoreSamples | None:
        of_means = kind == "class means"
        if of_means and views.step is not None:
            return None
        scores = views.seen(ClassScores, "all scores" if of_means else "class scores")
        if scores is None:
            return None
        return scores.one_vs_rest


def _moved(quadratic: FloatArray, by: FloatArray) -> FloatArray:
    """Convert coefficients of (1, x, x^2) to coefficients of (1, d, d^2) if x = d + ``by``."""
    a, b, c = quadratic
    return np.stack((a + b * by + c * by**2, b + 2 * c * by, c))


class Correlations(Function):
    """A summary of the one-vs-rest ("ovr") or one-vs-one ("ovo") correlations of all classes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def values(self, scores: ClassScores) -> FloatArray:
        """Return the correlations, shape (K,) for "ovr" or (C(C-1),) for "ovo"."""
        if self.kind == "ovr":
            with np.errstate(all="ignore"):
                return np.clip(correlation(scores.one_vs_rest.argument()), -1.0, 1.0)
        return scores.matrix[~np.eye(len(scores.matrix), dtype=np.bool_)]

    def counted(self, scores: ClassScores) -> BoolArray:
        """Return a mask of the correlations that are defined and, for "ovo", have enough rows.

        The mask has the same shape as the result of :meth:`values`.
        """
        defined = np.isfinite(self.values(scores))
        if self.kind == "ovr":
            return defined
        sizes = np.nan_to_num(scores.sizes)[scores.moments.classes]
        if 2 * sizes.min(initial=math.inf) < _LEAST_PAIR:
            for k, enough in enumerate(defined.reshape(len(sizes), -1)):
                enough &= np.delete(sizes, k) + sizes[k] >= _LEAST_PAIR - 1e-9
        return defined

    def left_out(self, scores: ClassScores) -> int:
        """Count the defined correlations that are not used because there are too few rows."""
        return int(np.isfinite(self.values(scores)).sum()) - int(self.counted(scores).sum())

    def constant(self, scores: ClassScores) -> BoolArray:
        """Return a mask of the used correlations whose score never varies.

        The mask has the same shape as the result of :meth:`values`. Such a correlation is 0, and
        its standard error is unknown. The standard error of a mean or a minimum that includes it is
        also unknown.
        """
        if self.kind == "ovr":
            with np.errstate(all="ignore"):
                return is_constant(scores.one_vs_rest.argument())
        off_diagonal = ~np.eye(len(scores.matrix), dtype=np.bool_)
        return scores.constant_pairs[off_diagonal] & self.counted(scores)

    def why(self, scores: ClassScores, k: None) -> str:
        """Return why the metric is undefined."""
        if self.kind == "ovo" and self.left_out(scores):
            return f"no two classes together have {_LEAST_PAIR} rows"
        return _NO_ROWS

    def why_without_error(self, scores: ClassScores, k: None) -> str:
        return _NEVER_VARIES if self.constant(scores).any() else ""

    def pair(self, terms: IntArray, scores: ClassScores) -> tuple[IntArray, IntArray]:
        """Return the class whose score is used and the other class, for one-vs-one correlations."""
        classes = scores.moments.classes
        own, other = np.divmod(terms, len(classes) - 1)
        return classes[own], classes[other + (other >= own)]

    def samples(self, scores: ClassScores, terms: IntArray) -> ScoreSamples:
        """Return the samples for the correlations with the indices ``terms``."""
        if self.kind == "ovr":
            one_vs_rest = scores.one_vs_rest.counted
            return ScoreSamples(one_vs_rest.map(lambda sides: sides.take(terms)))
        own, other = self.pair(terms, scores)
        return ScoreSamples(scores.counted.map(partial(Sides.of_pairs, own=own, other=other)))

    def combined(
        self, scores: ClassScores, terms: IntArray, weights: FloatArray, single: bool = False
    ) -> FloatArray:
        """Return the influence on a weighted sum of the correlations ``terms``, shape (K, 2K+1).

        If ``single`` is true, the result contains only the coefficients for the score of the single
        correlation, shape (K, 3).
        """
        size = len(scores.moments.n)
        width = 1 if single else size
        each_term = np.arange(len(terms))
        if self.kind == "ovr":
            own = terms
            other, term_of_other = np.nonzero(np.arange(size)[:, None] != terms)
        else:
            own, other = self.pair(terms, scores)
            term_of_other = each_term
        pairs = self.samples(scores, terms)
        scale = weights * scores.total / pairs.total
        quadratic = scale * pairs.quadratic(correlation)
        # Convert deviations from each side's mean to scores minus 1/K, as in features_of.
        negative, positive = _moved(quadratic, 1 / size - pairs.sides.mean).swapaxes(0, 1)
        sums = np.zeros((size, 2 * width + 1))
        sides = ((own, positive, each_term), (other, negative, term_of_other))
        for classes, (constant, linear, square), term in sides:
            column = np.zeros(len(term), dtype=np.int64) if single else own[term]
            np.add.at(sums, (classes, np.zeros_like(column)), constant[term])
            np.add.at(sums, (classes, 1 + column), linear[term])
            np.add.at(sums, (classes, 1 + width + column), square[term])
        return sums


class OneCorrelation(Function):
    """The correlation between a two-class indicator and a score, or one correlation per class."""

    def __call__(self, s: TwoClasses) -> Any:
        return correlation(s)

    def why_without_error(self, s: TwoClasses, k: int | None) -> str:
        constant = is_constant(s) if k is None else is_constant(s)[k]
        return _NEVER_VARIES if constant else ""


class Fisher(Correlations):
    """Fisher mean of correlations, which is the tanh of the mean of their atanh values.

    Pairs of classes with fewer than four rows are not used. The function atanh has no upper limit,
    so a few correlations near 1 have more effect than several correlations of 0. Suppose that a
    model never finds one of three classes, but separates the other two with a correlation of .9998.
    Its one-vs-one correlations are then .9998 (three times), -.07, 0 and 0. Their Fisher mean is
    .983, which is higher than the Fisher mean of six correlations of .96. This effect is a
    consequence of the definition. It is not caused by skipping a correlation, because a score that
    hardly ever varies results in the same mean. :class:`Least` shows the class that the model never
    finds.
    """

    def __call__(self, scores: ClassScores) -> float:
        return fisher_mean(self.values(scores)[self.counted(scores)])

    def clipped(self, scores: ClassScores) -> int:
        """Return how many correlations in the mean are clipped, because they are +1 or -1."""
        return int((np.abs(self.values(scores)[self.counted(scores)]) >= _CLIP).sum())

    def influence(self, scores: ClassScores) -> FloatArray | None:
        """Return the influence, shape (K, 2K+1); None if a score never varies.

        Clipped correlations do not contribute to the influence.
        """
        if self.constant(scores).any():
            return None
        terms = np.flatnonzero(self.counted(scores))
        values = self.values(scores)[terms]
        slope = 1 - fisher_mean(values) ** 2
        inner = np.abs(values) < _CLIP
        slopes = np.divide(slope, 1 - values**2, out=np.zeros(len(terms)), where=inner)
        return self.combined(scores, terms, slopes / len(terms))

    def spread(self, scores: ClassScores) -> float | None:
        """Return the standard error; None if joint moments are missing or a score never varies."""
        if scores.cross is None:
            return None
        psi = self.influence(scores)
        if psi is None:
            return None
        return scores.standard_error(psi)


class Least(Correlations):
    """The smallest correlation; pairs of classes with fewer than four rows are not used."""

    scale = "bracket"

    def usable(self, scores: ClassScores) -> FloatArray:
        """Return the correlations from :meth:`values`, with NaN for unused correlations."""
        return np.where(self.counted(scores), self.values(scores), math.nan)

    def __call__(self, scores: ClassScores) -> float:
        values = self.usable(scores)
        if np.isnan(values).all():
            return math.nan
        return float(np.nanmin(values))

    def influence(self, scores: ClassScores, single: bool = False) -> FloatArray | None:
        """Return the influence, shape (K, 2K+1) or (K, 3); None if a score never varies.

        The shape is (K, 3) if ``single`` is true.
        """
        if self.constant(scores).any():
            return None
        least = np.nanargmin(self.usable(scores), keepdims=True)
        return self.combined(scores, least, np.ones(1), single)

    def spread(self, scores: ClassScores) -> float | None:
        """Return the standard error; None if a score never varies."""
        with np.errstate(all="ignore"):
            psi = self.influence(scores, single=True)
            if psi is None:
                return None
            if not psi[:, 1:].any():
                influence = self.influence(scores)
                if influence is None:
                    return None
                return scores.standard_error(influence)
            least = np.nanargmin(self.usable(scores), keepdims=True)
            classes = least if self.kind == "ovr" else self.pair(least, scores)[0]
            return scores.error_by(int(classes[0]), psi)

    def bracket(
        self, scores: ClassScores, level: float, wider: float, degrees: float
    ) -> Interval | None:
        """Return the interval of the smallest correlation; see :func:`least_correlation`."""
        values = self.usable(scores)
        n_correlations = int(np.isfinite(values).sum())
        if len(values) > _MOST_TERMS:
            # Only one-vs-one correlations can be so numerous.
            terms = self._least_ends(scores, values.reshape(len(scores.moments.classes), -1))
        else:
            terms = np.flatnonzero(np.isfinite(values))
        intervals = []
        with np.errstate(all="ignore"):
            samples = self.samples(scores, terms)
            # Each interval is also computed after adding one row, half of which has its label
            # flipped.
            for part in (samples, samples.with_flipped(max(wider**2, 1.0))):
                values_of_part = np.asarray(correlation(part.argument()), dtype=np.float64)
                errors = wider * part.standard_error(part.quadratic(correlation))
                sizes = part.equal_sides / wider**2
                ends = least_correlation(
                    values_of_part, errors, sizes, level, degrees, n_correlations
                )
                if ends is not None:
                    intervals.append(ends)
        if not intervals:
            return None
        return min(low for low, _ in intervals), max(high for _, high in intervals)

    @staticmethod
    def _least_ends(scores: ClassScores, values: FloatArray) -> IntArray:
        """Return the indices of the values with the lowest lower ends, from a rough formula."""
        n = scores.sizes[scores.moments.classes]
        width = values.shape[1]
        terms = np.empty(0, dtype=np.int64)
        ends = np.empty(0)
        for rows in row_blocks(len(n), len(n)):
            own = n[rows, None]
            others = np.arange(len(n)) != np.arange(len(n))[rows, None]
            rough_error = 2 * np.sqrt((own + n) / own / n)[others]
            low = np.nan_to_num(values[rows].ravel() - rough_error, nan=np.inf)
            terms = np.concatenate((terms, rows.start * width + np.arange(len(low))))
            ends = np.concatenate((ends, low))
            least = np.argpartition(ends, min(_MOST_TERMS, len(ends) - 1))[:_MOST_TERMS]
            terms = terms[least]
            ends = ends[least]
        return terms


# -- binned scores ---------------------------------------------------------------------------------


def bayes_index(positive: FloatArray, negative: FloatArray) -> float:
    """Return d_b = -2 z(e), in which e is the Bayes error for two binned densities.

    The prior probabilities of both classes are equal. Each density must sum to 1.
    """
    error = 0.5 * float(np.minimum(positive, negative).sum())
    return float(-2 * ndtri(error)) if error > 0 else math.inf


class BayesIndex(Function):
    """The index d_b of the positive group's score in quantile bins.

    The influence treats the bins as fixed. Because the bins are computed from the same rows, their
    Bayes error is too small and d_b is too large. For example, d_b is too large by .3 for 300 rows
    whose scores do not separate the classes. The interval is therefore a bracket with two different
    error rates. One end uses the resubstitution error, which, except for random variation, is at
    most the Bayes error. The other end uses the error that a rule makes on rows from which it was
    not derived. This error is at least the Bayes error (Fukunaga & Hummels 1987).
    """

    scale = "bracket"

    def __call__(self, table: ScoreTable) -> float:
        if not table.has_both:
            return math.nan
        return bayes_index(table.bands.p, table.bands.q)

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence by channel and score, shape (4 U,)."""
        bands = table.bands
        band = bands.bin_of(table.scores.values)
        error = 0.5 * float(np.minimum(bands.p, bands.q).sum())
        # This is half of the derivative of d_b with respect to the Bayes error, because the Bayes
        # error is half the sum of two shares.
        slope = -math.sqrt(2 * math.pi) * math.exp(float(ndtri(error)) ** 2 / 2)
        sides = ((bands.positives, bands.p < bands.q), (bands.negatives, bands.q <= bands.p))
        parts = []
        for side, (counts, is_lower) in enumerate(sides):
            mean = float(counts @ is_lower) / float(counts.sum())
            part = slope * (is_lower[band] - mean) * table.total / table.sides[side]
            # On each side, accepted rows have the same influence as rejected rows.
            parts += [part, part]
        return np.concatenate(parts)

    def bracket(
        self, table: ScoreTable, level: float, wider: float, degrees: float
    ) -> Interval | None:
        """Return the bracket, which is widened to allow for the sampling error of each end.

        If an end is 0 or infinity, the data do not limit d_b on this side.
        """
        if not table.has_both:
            return None
        size = table.effective_sides / wider**2
        sides = table.by_side
        bands = table.bands
        best_range = _missed(sides, _best_range(_gap_curve(sides)))
        p = bands.positives / bands.positives.sum()
        q = bands.negatives / bands.negatives.sum()
        binned = (float(p @ (p < q)), float(q @ (q <= p)))
        least = _error_ends(min(best_range, binned, key=sum), size, level, degrees)[0]
        most = _error_ends(_cross_fitted(table.counted_sides), size, level, degrees)[1]
        value = self(table)
        low = max(float(-2 * ndtri(min(most, 0.5))), 0.0)
        high = float(-2 * ndtri(least))
        return min(value, low), max(value, high)


_CELLS = 512
"""Number of cells of equal mass from which rules are derived, if there are more distinct scores."""
_SPLITS = 3


def _gap_curve(sides: FloatArray) -> FloatArray:
    """Return the share of positives minus the share of negatives below each edge of a cell.

    The result has the shape (..., U + 1).

    ``sides``, shape (..., 2, U): numbers of positives and negatives by cell.
    """
    shares = sides / sides.sum(axis=-1, keepdims=True)
    gaps = shares[..., 0, :] - shares[..., 1, :]
    curve = np.zeros((*gaps.shape[:-1], gaps.shape[-1] + 1))
    np.cumsum(gaps, axis=-1, out=curve[..., 1:])
    # Values that differ only by rounding must be equal. Otherwise the best rule could end at any of
    # several cells, depending on rounding.
    return np.asarray(np.round(curve, 12) + 0.0, dtype=np.float64)


def _best_range(curve: FloatArray) -> BoolArray:
    """Find the best rule with one or two thresholds, and return a mask of its positive cells.

    The mask has the shape (..., U). The positive cells are a range of scores, or all scores outside
    a range. This rule is the best one for densities that cross at most twice, such as two normal
    densities.
    """
    least = curve.argmin(axis=-1)[..., None]
    most = curve.argmax(axis=-1)[..., None]
    cell = np.arange(curve.shape[-1] - 1)
    is_between = (cell >= np.minimum(least, most)) & (cell < np.maximum(least, most))
    return is_between == (least < most)


def _missed(sides: FloatArray, called: BoolArray) -> tuple[float, float]:
    """Return the shares of errors that rules make among the positives and among the negatives.

    Each share is the mean over all rules in ``called``, which has the shape (..., U).
    """
    totals = sides.sum(axis=-1)
    shares = np.einsum("...su,...u->...s", sides, called.astype(np.float64)) / totals
    positives, negatives = shares.reshape(-1, 2).mean(axis=0)
    return max(1 - float(positives), 0.0), float(negatives)


def _cross_fitted(counted: Counted[FloatArray]) -> tuple[float, float]:
    """Return the shares of errors among positives and negatives in halves of the data.

    A rule is derived from one half of the data, and its errors are counted in the opposite half.
    Each share is the mean over three splits into halves, and in each split, each half is used once
    to derive the rule.
    """
    sides = counted.sums
    if sides.shape[1] > _CELLS:
        up_to = np.cumsum(sides[0] / sides[0].sum() + sides[1] / sides[1].sum())
        cell = np.minimum((up_to * (_CELLS / 2) + 1e-9).astype(np.int64), _CELLS - 1)
        counted = counted.map(lambda part: _summed(part, cell))
        sides = counted.sums
    rows = sides
    if counted.fractional:
        rows = np.ceil(counted.effective_size() - 1e-9)
    rows = np.minimum(rows, 2.0**53)  # An edited file may have squares that no weights could give.
    drawn = np.random.default_rng(0).binomial(rows.astype(np.int64), 0.5, (_SPLITS, *rows.shape))
    half = drawn * ratio(sides, rows, 0.0)
    halves = np.stack((half, sides - half), axis=1)  # (splits, 2, sides, U)
    halves = halves[(halves.sum(axis=-1) > 0).all(axis=(1, 2))]
    if not len(halves):
        return 1.0, 1.0
    return _missed(halves[:, ::-1], _best_range(_gap_curve(halves)))


def _summed(sides: FloatArray, cell: IntArray) -> FloatArray:
    """Sum the counts of both sides, shape (2, U), by a coarser cell, shape (2, 512)."""
    return np.stack([np.bincount(cell, side, _CELLS) for side in sides]).astype(
        np.float64, copy=False
    )


def _error_ends(
    missed: tuple[float, float], size: FloatArray, level: float, degrees: float
) -> Interval:
    """Return Wilson's interval for the mean of two shares, each of ``size`` (effective) rows."""
    shares = np.array(missed)
    error = float(shares.mean())
    variance = float((shares * (1 - shares) / size).sum()) / 4
    n = 4 / float((1 / size).sum())
    if variance > 0:
        n = error * (1 - error) / variance
    return wilson(error, n, level, degrees) or (0.0, 1.0)


# -- declarations ----------------------------------------------------------------------------------

_EQ = "Gubbels (2023), eq. 1.9-1.10"
_MEAN = "Gubbels (2023), section 1.3.1, with the factor 1/m"
_INDEX = "Gubbels (2023), section 1.2.2"
_NO_ROWS = "a class has no rows, or all rows belong to it"
_NEVER_VARIES = "the sPCC of a score that never varies is 0 and has no standard error"


def _spcc(name: str, value: Any, of: str, source: str, formula: str, **words: Any) -> Metric:
    """Declare a metric of the section, which is a correlation unless ``words`` say otherwise."""
    usual = {"interval": "atanh", "headline": False, "reason": _NO_ROWS}
    return Metric(
        f"spcc/{name}", value, of=of, source=source, formula=formula, **{**usual, **words}
    )


_DISTANCE: dict[str, Any] = {"low": 0.0, "high": math.inf, "interval": "wald"}
_NO_SPREAD = "a class has fewer than two rows, or no score varies in its class"

SPCC = Section(
    "spcc",
    "Correlation with the probabilities (sPCC)",
    (
        _spcc(
            "ovr/<label>",
            OneCorrelation(),
            "class moments",
            _EQ,
            "correlation of one class's indicator and its score over all rows",
            title="correlation of {label} with its score (sPCC)",
            brief="sPCC of {label}",
            few_errors=True,
        ),
        _spcc(
            "ovr_fisher",
            Fisher("ovr"),
            "class scores",
            _MEAN,
            "tanh of the mean atanh of the one-vs-rest correlations",
            title="correlation of each class with its score (sPCC, Fisher mean)",
            brief="sPCC ovr",
            headline=True,
        ),
        _spcc(
            "ovo_fisher",
            Fisher("ovo"),
            "class scores",
            _MEAN,
            "tanh of the mean atanh of the one-vs-one correlations over at least 4 rows",
            title="correlation within pairs of classes (sPCC, Fisher mean)",
            brief="sPCC ovo",
        ),
        _spcc(
            "ovr_min",
            Least("ovr"),
            "class scores",
            _MEAN,
            "smallest one-vs-rest correlation",
            title="lowest correlation of a class with its score (sPCC)",
            brief="sPCC ovr min",
        ),
        _spcc(
            "ovo_min",
            Least("ovo"),
            "class scores",
            _MEAN,
            "smallest one-vs-one correlation over at least 4 rows",
            title="lowest correlation within a pair of classes (sPCC)",
            brief="sPCC ovo min",
        ),
        _spcc(
            "binary",
            OneCorrelation(),
            "moments",
            _EQ,
            "sample correlation of the positive group's indicator and its score",
            title="correlation of the positive group with its score (sPCC)",
            brief="sPCC",
            headline=True,
            few_errors=True,
            reason="a group has no rows",
        ),
        _spcc(
            "d_a",
            d_a,
            "moments",
            _INDEX,
            "|μ₁ − μ₀| / √((v₁ + v₀) / 2)",
            reason=_NO_SPREAD,
            title="distance of the groups d_a",
            brief="d_a",
            few_errors=True,
            **_DISTANCE,
        ),
        _spcc(
            "d_e",
            d_e,
            "moments",
            _INDEX,
            "2 |μ₁ − μ₀| / (√v₁ + √v₀)",
            reason=_NO_SPREAD,
            title="distance of the groups d_e",
            brief="d_e",
            few_errors=True,
            **_DISTANCE,
        ),
        _spcc(
            "d_b",
            BayesIndex(),
            "scores",
            _INDEX,
            "−2 Φ⁻¹(e), where e is the Bayes error of the binned densities at equal priors",
            reason="a class has no rows",
            title="distance of the groups d_b",
            brief="d_b",
            **_DISTANCE,
        ),
    ),
)
