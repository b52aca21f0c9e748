"""``density="auto"``: a convex stack of density models, weighted by cross-validated log score.

Source of stacking densities: Smyth & Wolpert (1999); of posteriors, Wolpert (1992).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack.prevalence.density_models import MODELS
from cmtrack.prevalence.folds import Folding, in_turn
from cmtrack.prevalence.score_cells import ScoreCells
from cmtrack.statistics.inputs import FloatArray

MEMBERS = ("isotonic", "kde_logit", "beta")
FOLDS = 2
_STEPS = 100


@dataclass(frozen=True, eq=False)
class FittedRatio:
    """Log density ratios of cells, without each fold of labelled samples.

    Attributes
    ----------
    left : ndarray of shape (F, B)
    positives, negatives : ndarray of shape (F, B)
        Counts of the fold that was left out.
    members : dict of str to float
        Weight of each model.
    """

    left: FloatArray
    positives: FloatArray
    negatives: FloatArray
    members: dict[str, float]


def fit_ratio(
    cells: ScoreCells, members: tuple[str, ...] = MEMBERS, folding: Folding = in_turn, most: int = FOLDS
) -> FittedRatio:
    """Fit one density model, or a stack of several.

    A member's ratio r gives the probability r / (1 + r) of a positive among as many negatives. These
    probabilities are averaged. The weights maximise the log score of the labelled classes, both classes of
    weight one half, with every sample judged by members fitted without its fold; one sample's worth of weight
    is added to each member, so that with few samples the average is close to the plain one.

    Parameters
    ----------
    folding, most : how labelled samples are split into at most how many folds
    """
    place, positives, negatives = cells.place, cells.positives, cells.negatives
    weights = np.full(len(members), 1 / len(members))
    folds = int(min(most, positives.sum(), negatives.sum()))
    if folds < 2:
        return FittedRatio(
            whole_ratio(cells, members)[None], positives[None], negatives[None], _named(members, weights)
        )
    held1, held0 = folding(positives, folds), folding(negatives, folds)
    left = _members(place, positives - held1, negatives - held0, members)
    if len(members) > 1:
        weights = _weights(left, held1, held0)
    mean = np.tensordot(weights, left, 1)
    return FittedRatio(_log_odds(mean), held1, held0, _named(members, weights))


def whole_ratio(cells: ScoreCells, members: tuple[str, ...] = MEMBERS) -> FloatArray:
    """Log density ratio of each cell from all labelled samples, members weighing the same."""
    fits = _members(cells.place, cells.positives[None], cells.negatives[None], members)[:, 0]
    return _log_odds(fits.mean(axis=0))


def _named(members: tuple[str, ...], weights: FloatArray) -> dict[str, float]:
    return dict(zip(members, weights.tolist(), strict=True))


def _log_odds(chance: FloatArray) -> FloatArray:
    out: FloatArray = np.log(chance) - np.log1p(-chance)
    return out


def _members(place: FloatArray, positives: FloatArray, negatives: FloatArray, members: tuple[str, ...]) -> FloatArray:
    """Probabilities of each member (first axis), no more extreme than half a count among all would give."""
    top, bottom = np.log(2 * positives.sum(axis=1) + 1), np.log(2 * negatives.sum(axis=1) + 1)
    fits = [np.clip(MODELS[m](place, positives, negatives), -bottom[:, None], top[:, None]) for m in members]
    out: FloatArray = 1 / (1 + np.exp(-np.stack(fits)))
    return out


def _weights(left: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Convex weights of the best log score, by expectation-maximisation from equal weights."""
    m1, m0 = positives.sum(), negatives.sum()
    size = m1 + m0
    own = np.concatenate((left[:, positives > 0], 1 - left[:, negatives > 0]), axis=1)
    mass = np.concatenate((positives[positives > 0] / m1, negatives[negatives > 0] / m0)) * (size / 2)
    weights = np.full(len(left), 1 / len(left))
    for _ in range(_STEPS):
        share = own * weights[:, None]
        following = (share / share.sum(axis=0)) @ mass + 1.0
        following /= following.sum()
        done = np.abs(following - weights).max() < 1e-4
        weights = following
        if done:
            break
    return weights
