"""Entry point: :func:`estimate_prevalence` reads scores and options, and chooses an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.prevalence.densities import MODELS
from cmtrack.prevalence.estimators import (
    INTERVALS,
    DensityRatio,
    binned_estimate,
    class_estimate,
    modelled_estimate,
    raw_estimate,
)
from cmtrack.prevalence.results import ClassPrevalenceEstimate, PrevalenceEstimate
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray, IntArray, column_names, n_rows, to_float_array
from cmtrack.statistics.labels import encode_labels
from cmtrack.statistics.probabilities import as_probabilities

DENSITIES = ("auto", "bins", *MODELS, "raw")


def estimate_prevalence(
    scores: Any,
    *,
    calibration: Any,
    positive: Label | None = None,
    density: str | DensityRatio = "auto",
    interval: str = "adjusted",
    confidence_level: float = 0.95,
) -> PrevalenceEstimate | ClassPrevalenceEstimate:
    """Estimate the share and the number of positives among unlabelled scores.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, 2), or frame or mapping of one column per label
        Scores of the target, any real numbers that grow with the belief in the positive class. For K > 2 classes
        probabilities (n, K).
    calibration : (y, scores)
        Labelled scores of the same scorer, **held out or out of fold**. Scores of rows that the scorer was
        trained on cannot be told from these, and make the estimate badly wrong for flexible scorers: in a
        documented case 412.6 positives were estimated where 69 were, against 80.1 with out-of-fold scores.
    positive : label, optional
        The positive class; by default the last label in sorted order.
    density : {"auto", "bins", "kde_logit", "logistic", "beta", "isotonic", "raw"} or function, default "auto"
        Estimator of the ratio of the two classes' score densities. "auto": a stack of "isotonic", "kde_logit" and
        "beta", weighted by cross-validated log score of the labelled scores and cross-fitted in two ways, of which the
        interval holds both; "bins" where there are no more distinct labelled scores than bins, which then smear
        nothing. "bins": class-balanced quantile bins with half counts, by maximum likelihood. "raw": the scores are
        taken for posteriors at the calibration set's prevalence (Saerens et al. 2002); badly wrong, without a sign of
        it, where they are not. A function of the labelled negatives' and positives' scores returns a function that
        gives the ratio f1 / f0 at scores.
        All but "bins" and "raw" match a moment of the scores that the ratio makes efficient, so a wrong ratio
        costs width, not bias. For K > 2: "vector" (slope and bias per class on log-probabilities; "auto" where
        labelled samples are few), "matrix" (all slopes; "auto" from 50 K labelled samples of each class on),
        "temperature" (one slope; "auto" above 50 classes), "bins".
    interval : "adjusted", "realised", "wald", "score", "bootstrap" or "naive"
        "adjusted": profile likelihood widened for the error of the densities, of the prevalence that the target
        was drawn from. "realised": the same for the target's own share. "naive" ignores the error of the
        densities and covers far too seldom. "raw" takes "naive" and "adjusted" only; K > 2
        takes "adjusted" (a Wald interval there), "wald" and "realised".
    confidence_level : float, default 0.95

    Returns
    -------
    PrevalenceEstimate, or ClassPrevalenceEstimate for K > 2
        ``value``, ``low``, ``high``; ``count`` with ``count_low`` and ``count_high`` of this target; for K > 2
        also ``by_class``.

    Raises
    ------
    ValueError
        Wrong input; calibration scores of one class only.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 500)
    >>> labelled = rng.normal(2 * y)
    >>> target = np.concatenate((rng.normal(0, 1, 9_500), rng.normal(2, 1, 500)))
    >>> estimate = estimate_prevalence(target, calibration=(y, labelled))
    >>> bool(estimate.low < 0.05 < estimate.high)
    True
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1, got {confidence_level!r}")
    try:
        y, calibration_scores = calibration
    except (TypeError, ValueError):
        raise ValueError(f"calibration must be (y, scores), got {type(calibration).__name__}") from None
    labels, codes = encode_labels({"calibration y": y})
    positive = labels[-1] if positive is None else positive
    if positive not in labels:
        raise ValueError(f"positive must be one of {list(labels)}, got {positive!r}")
    options: dict[str, Any] = {"positive": positive, "interval": interval, "confidence_level": confidence_level}
    if len(labels) > 2:
        held, target = (
            as_probabilities(data, labels, n_rows(data), False, name).array
            for data, name in ((calibration_scores, "calibration scores"), (scores, "scores"))
        )
        if len(held) != len(codes["calibration y"]):
            raise ValueError(f"calibration needs one row per label, got {len(held)} and {len(codes['calibration y'])}")
        return class_estimate(codes["calibration y"], held, target, labels, density=density, **options)
    _check_options(density, interval)
    actual: IntArray = (codes["calibration y"] == labels.index(positive)).astype(np.int64)
    held = _one_score("calibration scores", calibration_scores, labels, positive)
    target = _one_score("scores", scores, labels, positive)
    if len(held) != len(actual):
        raise ValueError(f"calibration needs one score per label, got {len(held)} scores and {len(actual)} labels")
    if not len(target):
        raise ValueError("scores must not be empty")
    if density == "raw":
        return raw_estimate(target, float(actual.mean()), **options)
    labelled = ScoreCounts.from_scores(held, actual, 2, exact=True)
    if density != "bins":
        return modelled_estimate(labelled, target, density=density, **options)
    return binned_estimate(labelled, ScoreCounts.from_scores(target, exact=True), **options)


def _check_options(density: Any, interval: str) -> None:
    if not callable(density) and density not in DENSITIES:
        raise ValueError(f"density must be a function or one of {DENSITIES}, got {density!r}")
    if interval not in INTERVALS:
        raise ValueError(f"interval must be one of {INTERVALS}, got {interval!r}")
    if density == "raw" and interval not in ("naive", "adjusted"):
        raise ValueError(
            f"density='raw' knows the densities, so interval must be 'naive' or 'adjusted', got {interval!r}"
        )


def _one_score(name: str, data: Any, labels: tuple[Label, ...], positive: Label) -> FloatArray:
    """The positive class's score, shape (n,)."""
    names = column_names(data)
    if names is not None:
        by_text = {str(column): column for column in names}
        if str(positive) not in by_text:
            raise ValueError(f"{name} must have a column for {positive!r}, got {names[:12]}")
        return to_float_array(name, data[by_text[str(positive)]])
    array = to_float_array(name, data)
    if array.ndim == 2 and array.shape[1] in (1, 2):
        return array[:, labels.index(positive) if array.shape[1] == 2 else 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (n,) or (n, 2), got {array.shape}")
    return array
