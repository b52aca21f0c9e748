"""``density="auto"``: a convex stack of density models, weighted by cross-validated log score.

Source of stacking densities: Smyth & Wolpert (1999); of posteriors, Wolpert (1992).
"""

from __future__ import annotations

import numpy as np

from cmtrack.metrics.density_models import MODELS
from cmtrack.metrics.score_cells import ScoreCells, fold_counts
from cmtrack.statistics.inputs import FloatArray

MEMBERS = ("isotonic", "kde_logit", "beta")
FOLDS = 10
_STEPS = 100
_CLIP = 30.0


def stacked_ratio(cells: ScoreCells) -> tuple[FloatArray, dict[str, float]]:
    """Log density ratio of each cell by the stack, and the weight of each member.

    A member's ratio r gives the probability r / (1 + r) of a positive among as many negatives. These
    probabilities are averaged. The weights maximise the log score of the labelled classes, both classes of
    weight one half, with every sample judged by members fitted without its fold; one sample's worth of weight
    is added to each member, so that with few samples the average is close to the plain one.
    """
    place, positives, negatives = cells.place, cells.positives, cells.negatives
    whole = np.stack([_probability(MODELS[name](place, positives[None], negatives[None])[0]) for name in MEMBERS])
    weights = np.full(len(MEMBERS), 1 / len(MEMBERS))
    folds = int(min(FOLDS, positives.sum(), negatives.sum()))
    if folds >= 2:
        held1, held0 = fold_counts(positives, folds), fold_counts(negatives, folds)
        left = np.stack([_probability(MODELS[n](place, positives - held1, negatives - held0)) for n in MEMBERS])
        weights = _weights(left, held1, held0)
    mean = weights @ whole
    return np.log(mean) - np.log1p(-mean), dict(zip(MEMBERS, weights.tolist(), strict=True))


def _probability(log_ratio: FloatArray) -> FloatArray:
    out: FloatArray = 1 / (1 + np.exp(-np.clip(log_ratio, -_CLIP, _CLIP)))
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
