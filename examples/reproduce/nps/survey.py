"""Surveys of mobile customers: satisfaction with nine attributes, and the net promoter score that goes with it.

The source's survey is confidential. What is known of it is its layout (about 2,500 responses, nine attributes, scores
0 to 10) and one confusion matrix of a logistic regression on 509 of them (Figure 7). The surveys made here have this
layout, and a market whose parameters were chosen once so that the logistic regression is as right, and as wrong, on
them as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from sklearn.model_selection import train_test_split

from nps import published

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ROWS = 2545
"""About 2,500; a fifth of them is the 509 of Figure 7."""


@dataclass(frozen=True)
class Survey:
    """What the customers answered.

    Attributes
    ----------
    scores : ndarray of shape (n, 9)
        Satisfaction 0 to 10 with each of `published.ATTRIBUTES`; NaN where somebody did not use it.
    nps : ndarray of shape (n,)
        "How likely is it that you would recommend ...": 0 to 10.
    """

    scores: FloatArray
    nps: IntArray

    def __len__(self) -> int:
        return len(self.nps)


@dataclass(frozen=True)
class Split:
    """A training and a validation part, and all classes in order."""

    x_train: FloatArray
    y_train: IntArray
    x_valid: FloatArray
    y_valid: IntArray
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Market:
    """Where surveys come from.

    A customer's satisfaction with attribute j is ``s_j = sqrt(common) z + sqrt(1 - common) e_j``: one part is common to
    all attributes (satisfaction as a whole, and the habit of giving high or low marks), one is of the attribute. The
    inclination to recommend is ``pull * h(d) + sqrt(1 - pull²) e``, where d is the weighted mean of the s_j, scaled to
    variance 1, and h bends at 0: dissatisfaction pulls more than satisfaction (``1 + loss`` against ``1 - loss``). Both
    are cut into the scores 0 to 10. What was not used has no score.

    Attributes
    ----------
    common : float
        Share of the variance that the attributes have in common.
    pull, loss : float
        Chosen so that a logistic regression has the accuracies .37 and .58, and finds a quarter of the detractors.
    sevens, nines : float
        Shares of 7 among passives and of 9 among promoters. An 8 is far more frequent than any other score: since the
        most probable of eleven scores is predicted, this is what makes passives over-predicted.
    detractors : tuple of float
        Relative frequencies of 0 to 6: low marks are rare, 0 and 5 more frequent than their neighbours.
    one_mark : float
        Share of customers who give every attribute the mark that they give as net promoter score.
    marks : tuple of float
        Relative frequencies of the attributes' scores 0 to 10: 5, 8 and 10 are favourites.
    weights, unused : tuple of float
        Of each attribute: how much it counts, and the share of customers who did not use it.
    """

    common: float = 0.45
    pull: float = 0.64
    loss: float = 0.30
    sevens: float = 0.22
    nines: float = 0.50
    detractors: tuple[float, ...] = (2.0, 1.0, 1.0, 1.4, 1.8, 4.6, 4.2)
    one_mark: float = 0.03
    marks: tuple[float, ...] = (2.0, 0.8, 1.0, 1.4, 1.8, 5.0, 6.0, 13.0, 26.0, 20.0, 23.0)
    weights: tuple[float, ...] = (0.30, 0.14, 0.16, 0.08, 0.10, 0.04, 0.06, 0.09, 0.03)
    unused: tuple[float, ...] = (0.02, 0.02, 0.08, 0.35, 0.40, 0.45, 0.40, 0.06, 0.65)

    @cached_property
    def shares(self) -> FloatArray:
        """Shares of the net promoter scores 0 to 10; those of the groups are the ones of Figure 7."""
        groups = published.FIGURE_7.sum(axis=1) / published.FIGURE_7.sum()
        low = np.array(self.detractors) / sum(self.detractors)
        within = (low, (self.sevens, 1 - self.sevens), (self.nines, 1 - self.nines))
        return np.concatenate(
            [group * np.asarray(parts) for group, parts in zip(groups, within, strict=True)]
        )

    def draw(self, rows: int, seed: int) -> Survey:
        """A survey of so many customers."""
        rng = np.random.default_rng(seed)
        satisfaction, inclination = self._customers(rows, rng)
        marks = np.cumsum(self.marks)[:-1] / sum(self.marks)
        scores = np.digitize(satisfaction, norm.ppf(marks)).astype(np.float64)
        nps = np.digitize(inclination, self._cuts).astype(np.int64)
        alike = rng.random(rows) < self.one_mark
        scores[alike] = nps[alike, None]
        scores[rng.random(scores.shape) < np.array(self.unused)] = np.nan
        return Survey(scores, nps)

    def split(self, rows: int, seed: int) -> Split:
        """A survey, 80% of it to learn from and 20% to be judged on, as in section 5.2."""
        survey = self.draw(rows, seed)
        parts = train_test_split(
            survey.scores, survey.nps, test_size=published.VALIDATION_SHARE, random_state=seed
        )
        x_train, x_valid, y_train, y_valid = parts
        return Split(x_train, y_train, x_valid, y_valid, published.SCORES)

    @cached_property
    def _cuts(self) -> FloatArray:
        """Where the inclination is cut: quantiles of a large population, the same for all surveys."""
        _, population = self._customers(200_000, np.random.default_rng(0))
        cuts: FloatArray = np.quantile(population, np.cumsum(self.shares)[:-1])
        return cuts

    def _customers(self, rows: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        weights = np.array(self.weights)
        whole = rng.standard_normal(rows)
        own = rng.standard_normal((rows, len(weights)))
        satisfaction = np.sqrt(self.common) * whole[:, None] + np.sqrt(1 - self.common) * own
        variance = self.common * weights.sum() ** 2 + (1 - self.common) * (weights**2).sum()
        drive = satisfaction @ weights / np.sqrt(variance)
        bent = np.where(drive < 0, drive * (1 + self.loss), drive * (1 - self.loss))
        inclination = self.pull * bent + np.sqrt(1 - self.pull**2) * rng.standard_normal(rows)
        return satisfaction, inclination
