"""The analysis of repeated runs: the method that suits what they were repeated over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cmtrack.comparison.repeated.bayes import (
    RopeProbabilities,
    bayesian_correlated_t,
    bayesian_signed_rank,
    student_regions,
)
from cmtrack.comparison.repeated.blocks import as_level, as_names, as_scores, complete, order_by_mean, settled
from cmtrack.comparison.repeated.notes import BLOCK, what_to_know
from cmtrack.comparison.repeated.pairs import Pairwise, compare_all
from cmtrack.comparison.repeated.rank_tests import friedman, nemenyi
from cmtrack.comparison.repeated.result import Gap, Kind, RepeatedResult
from cmtrack.comparison.repeated.signed_ranks import wilcoxon_holm, wilcoxon_signed_rank
from cmtrack.comparison.repeated.student import (
    RepeatedDifference,
    as_ratio,
    corrected_resampled_t,
    seed_differences,
)
from cmtrack.comparison.repeated.summaries import summary
from cmtrack.statistics.inputs import FloatArray


def analyse(
    scores: Any,
    names: Sequence[str] | None = None,
    *,
    kind: Kind,
    confidence_level: float = 0.95,
    rope: float | None = 0.01,
    test_train_ratio: float | None = None,
    test_errors: Any = None,
) -> RepeatedResult:
    """Which of several models leads over repeated runs, and which of the others may be as good.

    Parameters
    ----------
    scores : array-like of shape (N, k)
        Blocks by models of one metric, larger is better; NaN where there is no value.
    names : sequence of k str, optional
        By default the column numbers.
    kind : "folds", "seeds" or "datasets"
        What a block is: a fold or random split of one data set; a seed, all judged on the same test rows; or a data
        set of its own, with one value per model.
    confidence_level : float, default 0.95
    rope : float or None, default 0.01
        Half the width of the region of practical equivalence, in units of the metric; None for no posteriors.
    test_train_ratio : float, optional
        For folds, where it must be given: rows of a test part over rows of its training part.
    test_errors : array-like of shape (k, k), optional
        For seeds and folds: standard errors of the mean difference of each pair of models due to the sampling of the
        test rows; symmetric, NaN where unknown, the diagonal is not read. With seeds, which share their test rows,
        this error is added to that of the seeds; with folds, whose test rows are disjoint, the wider one decides
        (:func:`corrected_resampled_t`). Data sets have no such argument: the signed-rank test estimates no spread
        that could be small by luck, its null distribution is exact whatever the errors within a data set are.

    Returns
    -------
    RepeatedResult

    Raises
    ------
    ValueError
        If the kind is unknown, an argument is missing that it needs, or given that it has no use for; if scores,
        names, level, rope, ratio or errors are not as above; or no block has a value of every model.
    """
    if kind not in BLOCK:
        raise ValueError(f"kind must be one of {list(BLOCK)}, got {kind!r}")
    if (kind == "folds") != (test_train_ratio is not None):
        raise ValueError(f"test_train_ratio goes with kind 'folds', and only there: got {test_train_ratio!r}, {kind!r}")
    if test_errors is not None and kind == "datasets":
        raise ValueError(f"test_errors go with kinds 'seeds' and 'folds' only, got kind {kind!r}")
    level, matrix = as_level(confidence_level), as_scores(scores)
    k = matrix.shape[1]
    labels, (kept, left_out) = as_names(names, k), complete(matrix)
    ratio = math.nan if test_train_ratio is None else as_ratio(test_train_ratio)
    errors = _errors(test_errors, k)
    if not len(kept):
        fewest = min(range(k), key=lambda i: int(np.isfinite(matrix[:, i]).sum()))
        raise ValueError(f"one block at least must have a value of every model, none has; see {labels[fewest]!r} first")
    scale = float(np.abs(kept).max())

    def gaps(i: int, j: int) -> FloatArray:
        return settled(kept[:, i] - kept[:, j], scale)

    joint = 1 - (1 - level) / max(1, k * (k - 1) // 2)  # Bonferroni: intervals of all pairs at once
    tests: dict[str, Callable[[int, int, float], RepeatedDifference]] = {
        "folds": lambda i, j, at: corrected_resampled_t(gaps(i, j), ratio, at, test_error=errors[i, j]),
        "seeds": lambda i, j, at: seed_differences(gaps(i, j), errors[i, j], at),
        "datasets": lambda i, j, at: wilcoxon_signed_rank(kept[:, i] - kept[:, j], at, scale=scale),
    }
    test = tests[kind]
    ranked = kind == "datasets"
    if ranked:
        pairwise = wilcoxon_holm(matrix, level)
    else:
        counts = len(kept), left_out
        pairwise = compare_all(lambda i, j: test(i, j, level), order_by_mean(kept), level, counts)
    best = pairwise.order[0]

    def posterior(i: int) -> RopeProbabilities | None:
        if rope is None or i == best:
            return None
        one = pairwise[i, best].difference
        if kind == "folds" and one.method != "test rows":
            return bayesian_correlated_t(gaps(i, best), rope, ratio / (1 + ratio))
        if ranked:
            return bayesian_signed_rank(kept[:, i] - kept[:, best], rope)
        counts = one.blocks, one.left_out
        return student_regions(one.difference, one.standard_error, one.df, rope, counts, "Student", one.reason)

    posteriors = tuple(posterior(i) for i in range(k))
    return RepeatedResult(
        names=labels,
        kind=kind,
        confidence_level=level,
        rope=rope,
        blocks=len(kept),
        left_out=left_out,
        summary=summary(matrix, labels),
        order=pairwise.order,
        best=best,
        differences=tuple(
            _gap(labels[i], pairwise, (i, best), posteriors[i], test(i, best, joint)) for i in range(k) if i != best
        ),
        pairwise=pairwise,
        cliques=pairwise.cliques,
        friedman=friedman(matrix) if ranked else None,
        nemenyi=nemenyi(matrix, level) if ranked else None,
        posteriors=posteriors,
        tied=tuple(i == best or not pairwise.apart(i, best) for i in range(k)),
        notes=what_to_know(kind, pairwise, left_out, k),
    )


def _errors(test_errors: Any, k: int) -> FloatArray:
    if test_errors is None:
        return np.full((k, k), math.nan)
    errors: FloatArray = np.array(test_errors, dtype=np.float64)
    if errors.shape != (k, k):
        raise ValueError(f"test_errors must have shape {(k, k)}, one per pair of models, got {errors.shape}")
    np.fill_diagonal(errors, 0.0)
    if (errors < 0).any() or np.isinf(errors).any():
        raise ValueError(f"test_errors must be finite and not negative, or NaN, got {errors[errors < 0][:1]}")
    if not np.allclose(errors, errors.T, rtol=1e-9, atol=0, equal_nan=True):
        raise ValueError("test_errors must be symmetric: the error of a difference does not depend on its direction")
    return errors


def _gap(
    name: str,
    pairwise: Pairwise,
    models: tuple[int, int],
    posterior: RopeProbabilities | None,
    joint: RepeatedDifference,
) -> Gap:
    pair = pairwise[models]
    one, nan = pair.difference, math.nan
    return Gap(
        name,
        one.difference,
        one.standard_error,
        one.df,
        one.low,
        one.high,
        one.pvalue,
        pair.adjusted_pvalue,
        nan if posterior is None else posterior.left,
        nan if posterior is None else posterior.inside,
        nan if posterior is None else posterior.right,
        one.method,
        one.reason,
        joint.low,
        joint.high,
    )
