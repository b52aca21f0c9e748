"""Models of the ratio of two class-conditional score densities, fitted on labelled counts by cell.

Every model takes counts of one or several labelled sets (rows) over the same cells and gives the logarithm of
the ratio of the positives' density to the negatives' in each cell; several rows are the training parts of a
cross-validation, fitted at once.

Sources: logistic, Platt (1999); beta, Kull, Silva Filho & Flach (2017); isotonic, Zadrozny & Elkan (2002);
kernel densities for quantification, Moreo, González & del Coz (2025), here on the logit with the bandwidth of
Silverman (1986).
"""

from __future__ import annotations

import math

import numpy as np

from cmtrack.statistics.inputs import FloatArray

_SMALLEST = 1e-12


def kde_logit(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Gaussian kernel density of each class, Silverman's bandwidth over all rows' sum."""
    return np.log(_kernel_density(place, positives)) - np.log(_kernel_density(place, negatives))


def logistic(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Log ratio linear in the logit of the score."""
    return _regression(np.column_stack((np.ones_like(place), place)), positives, negatives)


def beta(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Log ratio linear in log s and log(1-s)."""
    features = (np.ones_like(place), -np.logaddexp(0, -place), -np.logaddexp(0, place))
    return _regression(np.column_stack(features), positives, negatives)


def isotonic(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Blocks of the non-decreasing fit (pooled adjacent violators), half a count added to each block and class.

    The half counts keep outer blocks of one class finite, and can let a small block step back.
    """
    return np.stack([_pooled(a, c) for a, c in zip(positives, negatives, strict=True)])


MODELS = {"kde_logit": kde_logit, "logistic": logistic, "beta": beta, "isotonic": isotonic}


def _kernel_density(place: FloatArray, counts: FloatArray) -> FloatArray:
    total = counts.sum(axis=0)
    width = _silverman(place, total, float(total.sum()) / max(len(counts) - 1, 1))
    kernel = np.exp(-0.5 * ((place[:, None] - place[None, :]) / width) ** 2) / width
    density: FloatArray = counts @ kernel / counts.sum(axis=1, keepdims=True) + _SMALLEST
    return density


def _silverman(place: FloatArray, counts: FloatArray, size: float) -> float:
    share = counts / counts.sum()
    mean = float(share @ place)
    spread = math.sqrt(float(share @ (place - mean) ** 2))
    order = np.argsort(place, kind="stable")
    ranks = np.cumsum(share[order]) - share[order] / 2
    low, high = np.interp((0.25, 0.75), ranks, place[order])
    if high > low:
        spread = min(spread, float(high - low) / 1.349)
    return max(0.9 * spread * float(size**-0.2), 1e-3)


def _regression(features: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Logistic regression of every row at once, with Platt's targets so that separated classes have a finite fit."""
    m1, m0 = positives.sum(axis=1, keepdims=True), negatives.sum(axis=1, keepdims=True)
    trials = positives + negatives
    hits = positives * ((m1 + 1) / (m1 + 2)) + negatives / (m0 + 2)
    scale = np.maximum(np.abs(features).max(axis=0), 1.0)
    x = features / scale
    size = x.shape[1]
    ridge = 1e-6 * np.eye(size)

    def objective(weights: FloatArray) -> FloatArray:
        line = weights @ x.T
        loss = (trials * np.logaddexp(0, line) - hits * line).sum(axis=1)
        value: FloatArray = loss + 0.5e-6 * (weights**2).sum(axis=1)
        return value

    weights = np.zeros((len(positives), size))
    value = objective(weights)
    for _ in range(60):
        chance = 1 / (1 + np.exp(-np.clip(weights @ x.T, -500, 500)))
        gradient = (hits - trials * chance) @ x - 1e-6 * weights
        curvature = np.einsum("rb,bi,bj->rij", trials * chance * (1 - chance), x, x, optimize=True) + ridge
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        length = np.ones((len(weights), 1))
        following = objective(weights + step)
        while (worse := following > value + 1e-9).any() and length.min() > 1e-6:
            length[worse] /= 2
            following = objective(weights + length * step)
        weights = weights + length * step
        done = np.abs(value - following).max() < 1e-9
        value = following
        if done:
            break
    ratio: FloatArray = weights @ x.T + np.log(m0 / m1)
    return ratio


def _pooled(positives: FloatArray, negatives: FloatArray) -> FloatArray:
    blocks: list[tuple[float, float, int]] = []  # positives, all, cells
    for hit, count in zip(positives.tolist(), (positives + negatives).tolist(), strict=True):
        block = (hit, count, 1)
        while blocks and (block[1] == 0 or blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]):
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    hits, counts, lengths = (np.array(column) for column in zip(*blocks, strict=True))
    m1, m0, half = positives.sum(), negatives.sum(), len(blocks) / 2
    ratio = np.log((hits + 0.5) / (m1 + half)) - np.log((counts - hits + 0.5) / (m0 + half))
    out: FloatArray = np.repeat(ratio, lengths)
    return out
