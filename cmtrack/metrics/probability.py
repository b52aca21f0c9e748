"""Proper scores of the probabilities, and the rank of the actual class, for ``probability/``.

The log loss follows Good (1952), and the Brier score follows Brier (1950). A skill is 1 - (loss /
loss of the reference). Probabilities are not clipped. If the probability of a row's actual class is
0, the log loss is infinite. The metric is then undefined, and the reason contains the number of
such rows. The reference of a skill predicts the same class shares for every row. They are the
shares among the evaluated rows, or shares that you pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma

from cmtrack.metrics.function import Fraction, Function
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.samples import Samples, Weighted, stratum_means
from cmtrack.statistics.actual_class import (
    LOSSES,
    RANKED,
    ProperScores,
    RankCounts,
    losses_of,
    ranks_of,
)
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import row_blocks
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.moments import ScoreMoments

if TYPE_CHECKING:
    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.views import EvaluationViews


@dataclass(frozen=True, eq=False)
class Losses:
    """One of the losses by actual class, which is the argument of this section's functions.

    ``n``, shape (K,): number of rows (or their weight) in each actual class.
    ``mean``, shape (K,): mean loss of the rows in each actual class.
    ``impossible``: number of rows (or their weight) for which the probability of the actual class
        or group is 0.
    ``groups``, shape (K,): the group of each class, or the classes themselves.
    ``reference``, shape (K,): shares of the classes that the reference of a skill predicts, if you
        pass them.
    ``what``: "class" or "group", the word for messages.
    """

    n: FloatArray
    mean: FloatArray
    impossible: float
    groups: IntArray
    reference: FloatArray | None = None
    what: str = "class"

    @property
    def loss(self) -> float:
        """The mean loss over all rows."""
        return float(self.n @ self.mean) / float(self.n.sum())

    @property
    def shares(self) -> FloatArray:
        """Share of each group among the rows."""
        return np.asarray(np.bincount(self.groups, self.n) / self.n.sum(), dtype=np.float64)

    @property
    def expected(self) -> FloatArray:
        """Share of each group in the reference."""
        if self.reference is None:
            return self.shares
        return np.asarray(np.bincount(self.groups, self.reference), dtype=np.float64)


class Mean(Function):
    """The mean loss, with its influence as coefficients (K, 2) of 1 and a row's loss."""

    logarithm = False

    def __call__(self, losses: Losses) -> float:
        return math.inf if self.logarithm and losses.impossible else losses.loss

    def influence(self, losses: Losses) -> FloatArray:
        """Return the influence as coefficients of 1 and a row's loss, shape (K, 2)."""
        return np.column_stack((np.full(len(losses.n), -losses.loss), np.ones(len(losses.n))))

    def why(self, losses: Losses, k: int | None) -> str:
        """Return a text with the number of rows that make the mean infinite."""
        rows = "row gives" if losses.impossible == 1 else "rows give"
        return f"infinite: {losses.impossible:g} {rows} the actual {losses.what} the probability 0"


class LogMean(Mean):
    """The mean of the logarithms of probabilities, which is infinite if a probability is 0."""

    logarithm = True


class Skill(Mean):
    """1 - loss / loss of the reference, which predicts the same shares for every row."""

    def reference(self, losses: Losses) -> tuple[float, FloatArray]:
        """Return the mean loss of the reference, and its influence by actual class, shape (K,)."""
        raise NotImplementedError

    def __call__(self, losses: Losses) -> float:
        reference, _ = self.reference(losses)
        if not 0 < reference < math.inf:
            return math.nan
        return 1 - super().__call__(losses) / reference

    def influence(self, losses: Losses) -> FloatArray:
        """Return the influence as coefficients of 1 and a row's loss, shape (K, 2)."""
        reference, by_class = self.reference(losses)
        of_loss = super().influence(losses)
        of_loss[:, 0] -= losses.loss * by_class / reference
        return -of_loss / reference

    def why(self, losses: Losses, k: int | None) -> str:
        """Return why the skill is undefined."""
        if self.logarithm and losses.impossible:
            return super().why(losses, k)
        reference, _ = self.reference(losses)
        if reference > 0:
            return f"the reference has a share of 0 for a {losses.what} that occurs"
        return f"the reference is perfect: all rows belong to one {losses.what}"


class LogSkill(Skill):
    """Skill computed from the log loss; the loss of the reference is the entropy of the shares."""

    logarithm = True

    def reference(self, losses: Losses) -> tuple[float, FloatArray]:
        """Return the entropy of the shares and its influence."""
        with np.errstate(divide="ignore", invalid="ignore"):
            by_class = np.where(losses.n > 0, -np.log(losses.expected[losses.groups]), 0.0)
            mean = float(losses.n @ by_class) / float(losses.n.sum())
            return mean, by_class - mean


def _brier_factor(n_classes: int) -> float:
    """Return the factor of a sum of squares.

    If there are two classes, the factor is 1/2, because the terms of both classes are equal.
    Otherwise it is 1.
    """
    return 0.5 if n_classes == 2 else 1.0


class BrierSkill(Skill):
    """Skill computed from the Brier score.

    The score of the reference is the Gini index of the shares, which is halved if there are only
    two classes or groups.
    """

    def reference(self, losses: Losses) -> tuple[float, FloatArray]:
        """Return the Gini index of the shares and its influence."""
        expected = losses.expected
        index = float(expected @ expected)
        of_row = expected[losses.groups]
        factor = _brier_factor(len(expected))
        by_class = factor * (index - 2 * of_row + 1)
        mean = float(losses.n @ by_class) / float(losses.n.sum())
        if losses.reference is None:
            # Because the shares are estimated from the rows, the influence on 1 - Σ π² is doubled.
            return mean, 2 * factor * (index - of_row)
        return mean, by_class - mean


_LARGEST_LOSS = 53 * math.log(2.0)
"""Largest possible value of -ln(1 - p) for any p below 1 in double precision."""
_SAME = 1e6
"""If the strength (a + b) of a beta distribution is larger than this, the distribution is treated
as a point at its mean.
"""


class LossSamples(Samples):
    """Rows for which one of the losses and the actual class are summarized.

    The influence is represented by coefficients of 1 and the loss for each class, as an array of
    shape (K, 2). The standard error is computed exactly from these coefficients and from the means
    and sums of squares in each class.

    ``loss``: one of :data:`cmtrack.statistics.actual_class.LOSSES`, or ``RANKED``.
    ``groups``, shape (K,): the groups of a step. By default, each class is a separate group.
        ``reference``, shape (K,): shares of the classes that the reference of a skill predicts.
    ``moments``, ScoreMoments of shape (K, K): moments of each class's probability by actual class.
    """

    kinds = ("log losses", "brier losses", "spherical losses", "losses within", "ranked losses")

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> LossSamples | None:
        loss = "within" if kind == "losses within" else kind.removesuffix(" losses")
        if loss == "within" and not step:
            # If no step is given, the loss within groups uses the last step.
            return views.seen(cls, kind, views.steps[-1]) if views.steps else None
        if loss == RANKED and not views.ordered:
            return None
        groups = views.composed[step].group_of_class if step else None
        scores = views.statistics.counted("losses")
        if scores is None or scores.sums.place(loss, groups) is None:
            return None
        return cls(scores, loss, groups, views.reference, views.statistics.moments)

    def __init__(
        self,
        scores: Counted[ProperScores],
        loss: str,
        groups: IntArray | None = None,
        reference: FloatArray | None = None,
        moments: ScoreMoments | None = None,
    ) -> None:
        self._moments = moments
        self.counted = scores
        self.scores = scores.sums
        self.squares = scores.squares
        self.loss = loss
        self.groups = groups
        place = self.scores.place(loss, groups)
        if place is None:
            raise ValueError(f"the rows' losses {loss!r} were not counted")
        self._column, self._table = place
        self._reference = reference
        self.total = float(self.scores.n.sum())

    @property
    def _n(self) -> FloatArray:
        """Number of rows (or their weight) in each actual class, shape (K,)."""
        return self.scores.n.astype(np.float64)

    @property
    def _groups(self) -> IntArray:
        """The group of each class, or the classes themselves, shape (K,)."""
        if self.groups is None:
            return np.arange(len(self.scores.n))
        return self.groups

    @property
    def _means(self) -> FloatArray:
        """Mean loss of each actual class, shape (K,)."""
        return self.scores.mean[:, self._column]

    def argument(self) -> Losses:
        of_groups = self.groups is not None and self.loss != "within"
        # The loss within the groups is infinite if the probability of the actual class is 0.
        impossible = self.scores.impossible[self._table if self.loss != "within" else 0]
        noun = "group" if of_groups else "class"
        return Losses(
            self._n, self._means, float(impossible.sum()), self._groups, self._reference, noun
        )

    def standard_error(self, influence: FloatArray) -> float:
        constant, slope = influence.T
        mean = self.squares.mean[:, self._column]
        m2 = self.squares.m2[:, self._column]
        squares = slope**2 * m2 + self.squares.n * (slope * mean + constant) ** 2
        return math.sqrt(float(squares.sum())) / self.total

    def within(self, influence: FloatArray, strata: IntArray) -> tuple[FloatArray, FloatArray]:
        constant, slope = influence.T
        means = stratum_means(constant + slope * self._means, self._n, strata)
        centred = influence.copy()
        centred[:, 0] -= means[strata]
        return centred, means

    def with_flipped(self, size: Any) -> LossSamples | None:
        flipped = self._flipped()
        if flipped is None:
            return None
        part = float(size) * float(self.squares.n.sum()) / self.total**2 / 2
        alike = self._means
        scores = self.counted.map(lambda sums: self._mixed(sums, part, flipped, alike))
        return LossSamples(scores, self.loss, self.groups, self._reference)

    def _mixed(
        self, scores: ProperScores, part: float, flipped: FloatArray, alike: FloatArray
    ) -> ProperScores:
        """Return the scores after adding a part of the rows, once unchanged and once flipped."""
        n = scores.n * (1 + 2 * part)
        losses = scores.mean[:, self._column]
        centre = (losses + part * (alike + flipped)) / (1 + 2 * part)
        added = (alike - centre) ** 2 + (flipped - centre) ** 2
        mean = scores.mean.copy()
        mean[:, self._column] = centre
        m2 = scores.m2.copy()
        m2[:, self._column] += scores.n * ((losses - centre) ** 2 + part * added)
        return replace(scores, n=n, mean=mean, m2=m2)

    def _flipped(self) -> FloatArray | None:
        """Return the mean loss of the rows in each class if their labels were flipped.

        The method assumes that all probability that does not belong to the actual class belongs to
        the new class. The loss is then computed from the mean probability of the actual class. The
        mean of a logarithm also depends on the distribution of the probability, which is assumed to
        be a beta distribution with the same variance. The result is None if the probability of the
        actual class is 1 in every row, or 0 in every row.
        """
        moments = self._moments
        if moments is None:
            return None
        n = self._n
        classes = moments.classes
        means = moments.diagonal("mean")
        groups = self._groups
        in_group = np.zeros(len(n))
        for rows in row_blocks(len(classes), len(n)):
            is_same = groups[classes[rows], None] == groups
            in_group[classes[rows]] = (moments.mean[rows] * is_same).sum(axis=1)
        if self.loss == "within":
            by_class = means / np.where(in_group > 0, in_group, 1.0)
            # If a group consists of a single class, no other class of the group can be predicted.
            inside = n * (np.bincount(groups)[groups] > 1)
        else:
            by_class = in_group
            inside = n
        if not inside.sum() > 0:
            return None
        sure = float(inside @ by_class) / float(inside.sum())
        left = 1 - sure
        if not 0 < left < 1:
            return None
        if self.loss == "brier":
            factor = _brier_factor(len(np.unique(groups)))
            flipped = self.argument().loss + 2 * factor * (sure - left)
        elif self.loss == "spherical":
            flipped = 1 - (1 - self.argument().loss) * left / sure
        else:
            flipped = min(_mean_logarithm(n, means, moments.diagonal("m2"), left), _LARGEST_LOSS)
        return np.where(inside > 0, flipped, self._means)

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        """Return the influence of each row, shape (n,).

        The result is None if the logarithm of a stored probability is infinite, because rows are
        stored in single precision, although the logarithm was finite in the statistics.
        """
        influence = metric.influence_in(self)
        if influence is None:
            raise TypeError(f"{metric.name} provides no influence")
        actual = at.rows.actual
        is_ranked = self.loss == RANKED
        # The first three losses are for classes, the next losses are for groups, and the ranked
        # loss is the last one.
        place = -1 if is_ranked else LOSSES.index(self.loss)
        groups = np.empty((0, len(self.scores.n)), np.int64)
        if self.groups is not None:
            place += 3
            groups = self.groups[None]
        losses, impossible = losses_of(at.probabilities.T, actual, groups, is_ranked)
        of_group = self.groups is not None and self.loss != "within"
        infinite = impossible[1 if of_group else 0][at.rows.design.counted]
        if self.loss in ("log", "within") and infinite.any():
            return None
        constant, slope = influence[actual].T
        return constant + slope * losses[place]


def _mean_logarithm(n: FloatArray, means: FloatArray, m2: FloatArray, left: float) -> float:
    """Return the mean of -ln(p) for probabilities p with the mean ``left``.

    The probability of the actual class is assumed to have a beta distribution, whose strength
    follows from the variance. Its mean and its variance are computed from the moments of the K
    classes. The mean logarithm of a beta distribution is a difference between two digamma
    functions.
    """
    total = float(n.sum())
    mean = float(n @ means) / total
    squares = float((m2 + n * (means - mean) ** 2).sum())
    rest = 1 - mean
    strength = rest * (1 - rest) * total / max(squares, 1e-300) - 1
    if not 0 < strength < _SAME:
        return -math.log(left)
    return float(digamma(strength) - digamma(left * strength))


class RankCells(Weighted):
    """Numbers of rows by the rank of the actual class.

    Cell r counts the rows in which r classes are ranked above the actual class.
    """

    kinds = ("ranks",)

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> RankCells | None:
        ranks = views.statistics.counted("ranks")
        if ranks is None:
            return None
        return cls(ranks)

    def __init__(self, ranks: Counted[RankCounts]) -> None:
        cells = ranks.map(lambda counts: counts.by_rank)
        self.weight = cells.sums
        self.squares = cells.squares
        self._tables = ranks.map(lambda counts: counts.table)

    def within(self, influence: FloatArray, strata: IntArray) -> tuple[FloatArray, FloatArray]:
        table = self._tables.sums
        size = len(influence)
        actual, rank = np.divmod(table.places, size)
        sums = np.bincount(actual, table.sums * influence[rank], size)
        n = np.bincount(actual, table.sums, size).astype(np.float64)
        of_class = np.divide(sums, n, out=np.zeros(size), where=n > 0)
        means = stratum_means(of_class, n, strata)
        return influence - means[strata][:, None], means

    def standard_error(self, influence: FloatArray) -> float:
        if influence.ndim == 1:
            return super().standard_error(influence)
        # The influence is an array by class and rank, as within() returns it.
        squares = self._tables.squares
        return math.sqrt(float(squares.sums @ influence.ravel()[squares.places] ** 2)) / self.total

    def argument(self, weight: Any = None) -> Any:
        return self.weight if weight is None else weight

    @property
    def table_size(self) -> int:
        return len(self.weight)

    def in_table(self, values: FloatArray) -> FloatArray | None:
        return values if values.shape == self.weight.shape else None

    def located(self, at: Influence, step: str) -> tuple[RankCells, IntArray]:
        return self, ranks_of(at.probabilities.T, at.rows.actual)


class TopK(Fraction):
    """Share of the rows whose actual class is among the k most probable classes."""

    def __init__(self, k: int) -> None:
        self.k = k

    def denominator(self, counts: Any) -> None:
        """Return None, because every row counts."""

    def __call__(self, counts: Any) -> Any:
        return counts[: self.k].sum() / counts.sum()

    def applies(self, views: EvaluationViews) -> bool:
        """Return whether the number of classes is larger than k."""
        return self.k < len(views.statistics.matrix.labels)


def mean_reciprocal_rank(counts: Any) -> Any:
    """Return the mean of 1 / rank of the actual class."""
    return (counts / np.arange(1, len(counts) + 1)).sum() / counts.sum()


_GOOD = "Good (1952)"
_BRIER = "Brier (1950)"
_SPHERICAL = "Roby (1965)"
_KINDS: tuple[tuple[str, Any, str, str, str, dict[str, Any]], ...] = (
    (
        "log_loss",
        LogMean(),
        "log losses",
        _GOOD,
        "mean of −ln p(actual)",
        {"title": "log loss", "headline": True},
    ),
    (
        "brier",
        Mean(),
        "brier losses",
        _BRIER,
        "mean of Σ (p − 1[actual])², divided by 2 if there are two classes",
        {"high": 2.0, "title": "Brier score", "brief": "Brier", "headline": True},
    ),
    (
        "spherical",
        Mean(),
        "spherical losses",
        _SPHERICAL,
        "mean of 1 − p(actual) / √Σ p²",
        {"high": 1.0, "title": "spherical score", "brief": "spherical"},
    ),
    (
        "log_skill",
        LogSkill(),
        "log losses",
        _GOOD,
        "1 − log loss / entropy of the shares",
        {
            "better": "higher",
            "low": -math.inf,
            "high": 1.0,
            "title": "skill by log loss",
            "brief": "log skill",
        },
    ),
    (
        "brier_skill",
        BrierSkill(),
        "brier losses",
        _BRIER,
        "1 − Brier score / Brier score of the shares",
        {
            "better": "higher",
            "low": -math.inf,
            "high": 1.0,
            "title": "skill by Brier score",
            "brief": "Brier skill",
        },
    ),
    (
        "log_loss_within",
        LogMean(),
        "losses within",
        _GOOD,
        "log loss of the classes − log loss of their groups",
        {"title": "log loss inside the groups", "brief": "log loss within"},
    ),
)


def _section(
    title: str, prefix: str, headline: bool, depends_on: frozenset[str] = frozenset()
) -> Section:
    usual = {
        "better": "lower",
        "low": 0.0,
        "high": math.inf,
        "interval": "log",
        "headline": False,
        "few_errors": True,
    }
    metrics = []
    for kind, function, of, source, formula, words in _KINDS:
        fields = {**usual, **words}
        if not headline:
            fields["headline"] = False
        metric = Metric(
            f"{prefix}{kind}", function, of=of, source=source, formula=formula, **fields
        )
        metrics.append(metric)
    return Section("probability", title, tuple(metrics), depends_on=depends_on)


PROBABILITY = _section("Probabilities of the classes", "probability/", True)
PROBABILITY_OF_STEP = _section(
    "Probabilities of the groups: {step}", "probability/<step>/", False, frozenset({"grouping"})
)

_TOP = "ties are ranked in class order, as in the arg-max"
RANKS: tuple[Metric, ...] = (
    *(
        Metric(
            f"multiclass/top_{k}_accuracy",
            TopK(k),
            of="ranks",
            interval="wilson",
            headline=False,
            formula=f"share of rows whose actual class has a rank of at most {k}; {_TOP}",
            title=f"top-{k} accuracy",
            brief=f"top {k}",
        )
        for k in (2, 3, 5)
    ),
    Metric(
        "multiclass/mean_reciprocal_rank",
        mean_reciprocal_rank,
        of="ranks",
        interval="logit",
        headline=False,
        formula=f"mean of 1 / rank of the actual class; {_TOP}",
        title="mean reciprocal rank",
        brief="MRR",
    ),
)
"""Metrics that are computed from the ranks, for the section ``multiclass/``."""
