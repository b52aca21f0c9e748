"""Wrong labels that would decide: how many turn an order of two runs, and which kinds of noise do.

A is the run that leads; ``a`` rows only A gets right, ``b`` rows only B, and in ``w`` rows both are wrong, differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from cmtrack import notebook
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.metrics.paired import binomial_pvalues
from cmtrack.names import quoted
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

USUAL_NOISE = 0.05
"""Rate of independent errors that a sentence speaks of where none is given."""
_MOVES = 400
"""Relabellings of one step that are all tried; of more the best by their influence."""
_MOST_STEPS = 200
_SURE = 0.001


def fewest(reach: Any, gap: float) -> int | None:
    """Fewest labels that turn an additive order: the largest reaches that exceed the sum of the differences.

    Parameters
    ----------
    reach : array-like of shape (n,)
        The most that another label takes from the gap.
    gap : float
        Loss of B less that of A, summed over the rows; not negative.

    Returns
    -------
    int, or None where all labels together do not turn it. Exact.

    Examples
    --------
    >>> from cmtrack.rows.deciding import fewest
    >>> fewest([0, 10, 0, 3, 0, 5, 0, 3], 9)
    1
    """
    taken = np.cumsum(np.sort(np.asarray(reach, dtype=np.float64))[::-1])
    enough = np.flatnonzero(taken > gap + 1e-12 * abs(gap))
    return int(enough[0]) + 1 if len(enough) else None


def fewest_to_tie(only_a: int, only_b: int, confidence_level: float = 0.95) -> int:
    """Fewest labels that turn "behind" into "tied": the least k with McNemar's mid-p of (a - k, b + k) above alpha.

    Examples
    --------
    >>> from cmtrack.rows.deciding import fewest_to_tie
    >>> fewest_to_tie(60, 30)
    6
    """
    k = np.arange(max(only_a - only_b, 0) // 2 + 1)
    pvalues = binomial_pvalues(only_a - k, only_b + k)[1]
    return int(np.argmax(~(pvalues <= 1 - confidence_level)))


def fewest_to_tie_losses(gaps: FloatArray, reach: FloatArray, confidence_level: float = 0.95) -> int | None:
    """Upper bound on the labels that tie a difference of mean losses (Wald), largest changes first."""
    order = np.argsort(-reach, kind="stable")
    gaps, reach = gaps[order], reach[order]
    n, steps = len(gaps), np.concatenate(([0.0], np.cumsum(reach)))
    sums = float(gaps.sum()) - steps
    squares = float(gaps @ gaps) + np.concatenate(([0.0], np.cumsum((gaps - reach) ** 2 - gaps**2)))
    tied = sums <= normal_quantile(confidence_level) * np.sqrt(np.maximum(squares - sums**2 / n, 0.0))
    return int(np.argmax(tied)) if tied.any() else None


def fewest_by_moves(
    types: IntArray, counts: IntArray, size: int, gap_of: Callable[[FloatArray, FloatArray], float]
) -> int | None:
    """Upper bound on the labels that reverse the order of two matrices by a metric; exact if 1.

    Greedy over types of rows (label, answer of A, answer of B) and new labels; each move is evaluated exactly, of more
    than 400 those of the largest influence.

    ``types``, shape (U, 3), int64.
    ``counts``, shape (U,): rows of each type.
    ``size``: number of classes K.
    ``gap_of``: by how much A leads, from the two matrices (K, K), rows actual.
    """
    left = dict(zip(map(tuple, types.tolist()), counts.tolist(), strict=True))
    tables = np.zeros((2, size, size))
    for (label, *answers), rows in left.items():
        for table, answer in zip(tables, answers, strict=True):
            table[label, answer] += rows

    def moved(move: tuple[int, int, int, int], sign: int = 1) -> None:
        label, one, other, new = move
        for table, answer in zip(tables, (one, other), strict=True):
            table[label, answer] -= sign
            table[new, answer] += sign

    gap = gap_of(*tables)
    for step in range(1, _MOST_STEPS + 1):
        best = None
        for move in _moves(left, size, tables, gap_of):
            moved(move)
            new_gap = gap_of(*tables)
            moved(move, -1)
            if new_gap < gap:
                best, gap = move, new_gap
        if best is None:
            return None
        moved(best)
        label, one, other, new = best
        left[label, one, other] -= 1
        left[new, one, other] = left.get((new, one, other), 0) + 1
        if gap < 0:
            return step
    return None


def _moves(
    left: dict[Any, int], size: int, tables: FloatArray, gap_of: Callable[[FloatArray, FloatArray], float]
) -> list[tuple[int, int, int, int]]:
    moves = [(*kind, new) for kind, rows in left.items() if rows > 0 for new in range(size) if new != kind[0]]
    if len(moves) <= _MOVES:
        return moves
    slopes = np.zeros(tables.shape)
    used = {(side, label, kind[side + 1]) for kind in left for label in range(size) for side in (0, 1)}
    for place in used:
        tables[place] += 1e-3
        up = gap_of(*tables)
        tables[place] -= 1e-3
        slopes[place] = up
    slopes -= gap_of(*tables)
    y, one, other, new = np.array(moves).T
    gain = slopes[0][new, one] - slopes[0][y, one] + slopes[1][new, other] - slopes[1][y, other]
    return [moves[k] for k in np.argsort(np.nan_to_num(gain, nan=np.inf), kind="stable")[:_MOVES]]


class Corrected(NamedTuple):
    """A difference in the number of right rows, corrected for label noise.

    Attributes
    ----------
    value : float
        Rows by which A leads.
    low, high : float
        Interval of the lead, were the rows drawn again.
    variance : float
        Of the lead in these rows, over their labels.
    probability : float
        Probability that the order in these rows is the other one.

    Examples
    --------
    Ten rows in which A leads by 4, one label in ten wrong:

    >>> import numpy as np
    >>> from cmtrack.rows import corrected, transitions
    >>> y, a, b = np.zeros(10, int), np.repeat([0, 1], (7, 3)), np.repeat([1, 0], (7, 3))
    >>> found = corrected(y, a, b, transitions(0.1, 2))
    >>> round(found.value, 2), round(found.probability, 3)
    (5.0, 0.017)
    """

    value: float
    low: float
    high: float
    variance: float
    probability: float


def transitions(noise: Any, size: int) -> FloatArray:
    """The probabilities of a label (columns) given the truth (rows), shape (K, K), from a rate or a matrix.

    Raises
    ------
    ValueError
        If the rate is not in [0, (K - 1) / K), or the matrix is no (K, K) matrix of probabilities, or has no inverse.

    Examples
    --------
    >>> from cmtrack.rows import transitions
    >>> transitions(0.1, 2).round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    if np.asarray(noise).dtype.kind not in "iuf":
        raise ValueError(f"noise must be a rate or a matrix of numbers, got {noise!r:.80}")
    given = np.asarray(noise, dtype=np.float64)
    if given.ndim == 0:
        if not 0 <= float(given) < (size - 1) / size:
            most = f"{(size - 1) / size:.4g} of {size} classes"
            raise ValueError(f"noise must be a rate from 0 to below {most}, got {noise!r}")
        return np.full((size, size), float(given) / (size - 1)) + (1 - float(given) * size / (size - 1)) * np.eye(size)
    if given.shape != (size, size) or not ((given >= 0) & (given <= 1)).all() or np.abs(given.sum(1) - 1).max() > 1e-6:
        raise ValueError(
            f"noise must be a rate, or a matrix of shape ({size}, {size}) with true classes as rows, which sum to 1, "
            f"and labels as columns, got {np.array2string(given, threshold=9)[:120]}"
        )
    if np.linalg.cond(given) > 1e8:
        raise ValueError("noise must have an inverse: two true classes must not have the same probabilities of labels")
    return given


def corrected(
    actual: IntArray, first: IntArray, second: IntArray, noise: FloatArray, confidence_level: float = 0.95
) -> Corrected:
    """The difference of right rows under noise that is independent of both runs, given the truth.

    With T the probabilities of labels given the truth, ``h = T^-1[y, A] - T^-1[y, B]`` has the expectation of the
    difference on right labels (Natarajan et al. 2013); its variance over the labels of these rows is estimated by
    ``sum of h^2 - T^-1[y, A] - T^-1[y, B]`` over the rows in which the runs differ.

    References
    ----------
    Natarajan, N., Dhillon, I. S., Ravikumar, P. and Tewari, A. (2013). Learning with noisy labels. NeurIPS 26.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.rows import corrected, transitions
    >>> y, a, b = (np.array(list(map(int, text))) for text in ("0001122210", "0011120220", "0201022111"))
    >>> found = corrected(y, a, b, transitions([[0.98, 0.01, 0.01], [0.02, 0.96, 0.02], [0.05, 0.15, 0.8]], 3))
    >>> round(found.value, 4), round(found.probability, 4)
    (1.1634, 0.204)
    """
    inverse = np.linalg.inv(noise)
    ours, theirs = inverse[actual, first], inverse[actual, second]
    h, differ = ours - theirs, first != second
    value = float(h.sum())
    variance = float((h**2 - ours - theirs)[differ].sum())
    reach = normal_quantile(confidence_level) * math.sqrt(len(h)) * float(h.std())
    gap = int((actual == first).sum()) - int((actual == second).sum())
    return Corrected(value, value - reach, value + reach, variance, _beyond(gap, value, variance))


def probability_of_any_row(only_a: int, only_b: int, neither: int, rate: float, size: int) -> float:
    """Probability that the order reverses if any row is wrong at a given rate, whatever the runs say.

    Examples
    --------
    >>> from cmtrack.rows.deciding import probability_of_any_row
    >>> round(probability_of_any_row(12, 9, 3, 0.05, 4), 6)
    0.026858
    """
    other = rate / (size - 1)
    keep = 1 - rate - other
    variance = (only_a + only_b) * (1 - rate + other - keep**2) + 2 * other * neither
    return _beyond(only_a - only_b, (only_a - only_b) * keep, variance)


def _beyond(gap: int, mean: float, variance: float) -> float:
    side = math.copysign(1.0, gap) * mean
    if variance <= 0:
        return 0.0 if side > 0 else 1.0 if side < 0 else 0.5
    return float(ndtr(-side / math.sqrt(variance)))


@dataclass(frozen=True, eq=False)
class Deciding:
    """Wrong labels that would turn the order of two runs, or leave them tied.

    Attributes
    ----------
    leader, other : str
        A, the run that leads in the metric, and B.
    metric : str
    n : int
        Rows.
    only_leader, only_other, neither : int
        Rows that only one gets right, and those in which both are wrong, differently.
    order : int or None
        Labels that turn the order: the fewest, all in A's favour. None where relabelling does not turn it.
    exact : bool
        Whether this is the least number; otherwise it is an upper bound.
    tied : int or None
        Labels that leave the two tied: for accuracy the fewest, by McNemar's mid-p; for a mean loss an upper bound, by
        Wald. 0 where they are tied already, None for other metrics.
    follow : float
        Share of A's mistakes in which the label, being A's answer, turns the order: ``(a - b) / (a + b + w)``.
    noise : float or None
        The rate that was given; None for a matrix, too.
    labels_right : Corrected or None
        The lead, were the labels right, under the given noise; None without noise.
    probability_any : float
        The same if any row's label is wrong at this rate, whatever the runs answer. NaN for a matrix.
    usual : float
        The probability that independent errors in 5 % of the labels turn the order, for the sentence.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 50
    >>> runs = {"old": evaluate(y, [0, 1] * 48 + [1, 0] * 2), "new": evaluate(y, [0, 1] * 45 + [1, 0] * 5)}
    >>> deciding = compare(runs).deciding("old", "new", noise=0.02)
    >>> deciding.order, deciding.tied, deciding.follow, round(deciding.corrected, 2)
    (4, 1, 1.0, 6.25)
    """

    leader: str
    other: str
    metric: str
    n: int
    only_leader: int
    only_other: int
    neither: int
    order: int | None
    exact: bool
    tied: int | None
    follow: float
    noise: float | None
    labels_right: Corrected | None
    probability_any: float
    usual: float
    make_rows: Callable[[], pd.DataFrame]

    @property
    def corrected(self) -> float:
        """Rows by which A leads after correction for the given noise; NaN without noise."""
        return math.nan if self.labels_right is None else self.labels_right.value

    @property
    def probability(self) -> float:
        """Probability that the given noise, independent of both runs, turns the order of these rows; NaN without."""
        return math.nan if self.labels_right is None else self.labels_right.probability

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The labels to check first, at most 1,000: those that can move the order, then by suspicion."""
        return self.make_rows()

    @property
    def sentence(self) -> str:
        """The errors that turn the order; the number of labels says nothing without their kind."""
        ahead, behind = quoted(self.leader), quoted(self.other)
        lead, share = self.only_leader - self.only_other, self.metric.endswith("/accuracy")
        if lead == 0 and share:
            return printable(f"{ahead} and {behind} get equally many of {self.n:,} rows right.")
        more = f"{abs(lead):,} of {self.n:,} rows {'more' if lead >= 0 else 'fewer'} right than {behind}"
        head = f"{ahead} gets {more}" if share else f"{ahead} leads in {self.metric}, and gets {more}"
        parts = ["no relabelling turns the order"]
        if self.order is not None:
            labels = f"{'' if self.exact else 'at most '}{self.order:,} label{' is' if self.order == 1 else 's are'}"
            parts = [f"the order turns if {labels} wrong, all in favour of {ahead}"]
        if lead > 0:
            parts.append(f"or if labels follow {ahead} in {self.follow:.0%} of its mistakes".replace("%", " %"))
        given = self.labels_right is not None
        chance, rate = (self.probability, self.noise) if given else (self.usual, USUAL_NOISE)
        kind = "of the given kind" if rate is None else f"in {100 * rate:.3g} % of the labels"
        turns = "do not turn it" if chance < _SURE else f"turn it with a probability of {chance:.2g}"
        return printable(f"{head}: {', '.join(parts)}; independent errors {kind} {turns}.")

    def __repr__(self) -> str:
        return f"Deciding({self.sentence})"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.sentence), notebook.table(self.rows.head(25)))
