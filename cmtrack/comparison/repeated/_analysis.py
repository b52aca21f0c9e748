"""Analysis of repeated runs, which uses different methods for folds and for seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from cmtrack import notebook
from cmtrack.comparison.repeated._pairs import (
    Pair,
    Pairwise,
    RepeatedDifference,
    as_ratio,
    compare_all,
    corrected_resampled_t,
    seed_differences,
)
from cmtrack.comparison.repeated._scores import (
    Summary,
    as_names,
    as_scores,
    complete,
    order_by_mean,
    settled,
    summary,
)
from cmtrack.metrics.intervals import check_level
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd


Kind: TypeAlias = Literal["folds", "seeds"]


@dataclass(frozen=True, kw_only=True)
class Gap(RepeatedDifference):
    """Difference between a model and the best model, with and without adjustment for all pairs.

    The interval and the p-value of the base class refer to a single pair of models.

    ``adjusted_pvalue``: p-value adjusted for the number of pairs of models by Holm's method. Holm's
    adjustment also accounts for the fact that the best model was selected using the same scores.
    ``joint_low``, ``joint_high``: ends of an interval that is simultaneous for all pairs of models
    (Bonferroni). If the interval excludes zero, the model is significantly worse than the best
    model. A significantly worse model may have an interval that includes zero, because Holm's
    stepwise test is more powerful.
    """

    name: str
    adjusted_pvalue: float
    joint_low: float
    joint_high: float


@dataclass(frozen=True)
class RepeatedResult:
    """Result of comparing several models over the same seeds or folds.

    ``kind``: "folds" or "seeds".
    ``blocks``: number of blocks in which every model has a value. Tests ignore all other blocks.
    ``left_out``: number of blocks in which at least one model has no value.
    ``summary``: summary of all values, including incomplete blocks.
    ``order``: the models, sorted by their means over the complete blocks with the best first.
    ``best``: the first model in ``order``.
    ``differences``: differences between the best model and all other models, in the order of the
    models; ``result[name]`` returns the difference of one model.
    ``pairwise``: tests of all pairs of models, with p-values adjusted by Holm's method. Folds are
    tested by :func:`corrected_resampled_t`, and seeds by :func:`seed_differences`.
    ``tied``: for each model, whether it is not significantly different from the best model. The
    value is True for the best model, and for every model whose p-value is undefined.
    ``notes``: sentences about excluded blocks and about the assumptions of the methods.
    """

    names: tuple[str, ...]
    kind: Kind
    confidence_level: float
    blocks: int
    left_out: int
    summary: Summary
    order: tuple[int, ...]
    best: int
    differences: tuple[Gap, ...]
    pairwise: Pairwise
    tied: tuple[bool, ...]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Gap:
        for gap in self.differences:
            if gap.name == name:
                return gap
        raise KeyError(f"{name!r} has no difference from the best, {self.names[self.best]!r}")

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per model, best first."""
        from cmtrack._pandas import pd

        gaps = {gap.name: gap for gap in self.differences}
        columns = ("difference", "low", "high", "pvalue", "adjusted_pvalue")
        rows = []
        for column in self.order:
            name = self.names[column]
            row = dict(vars(self.summary.rows[column]))
            gap = gaps.get(name)
            row |= {key: math.nan if gap is None else getattr(gap, key) for key in columns}
            rows.append(row | {"tied": self.tied[column], "best": column == self.best})
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        ties = sum(self.tied) - 1
        best = self.names[self.best]
        size = f"{len(self.names)} models, {self.blocks} {self.kind}"
        return f"RepeatedResult({size}, best {best!r}, {ties} tied)"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.table(self.to_frame()), notes=self.notes)


def analyse(
    scores: Any,
    names: Sequence[str] | None = None,
    *,
    kind: Kind,
    confidence_level: float = 0.95,
    test_train_ratio: float | None = None,
    test_errors: Any = None,
) -> RepeatedResult:
    """Find the best model over repeated runs, and the models that are not significantly worse.

    ``scores``, of shape (N, k): values of one metric by block and model, where larger values are
    better and missing values are NaN.
    ``names``: names of the models; by default the column numbers.
    ``kind``: "folds" if a block is a fold or random split of one data set, "seeds" if a block is a
    seed and all runs have the same test rows.
    ``test_train_ratio``: number of test rows divided by number of training rows; required for
    folds.
    ``test_errors``, of shape (k, k), optional: standard errors of the mean difference of each pair
    of models due to the sampling of the test rows; symmetric, NaN if unknown. The diagonal is not
    used. Runs with different seeds share their test rows, so the variance due to the test rows is
    added to the variance of the seeds. Folds have disjoint test rows, so the test uses the larger
    of the two errors (:func:`corrected_resampled_t`).

    Raises ValueError if the kind is unknown, if the kind requires an argument that is missing or
    does not accept an argument that is given, if the scores, names, level, ratio or errors do not
    match their descriptions, or if no block has values of all models.
    """
    if kind not in BLOCK:
        raise ValueError(f"kind must be one of {list(BLOCK)}, got {kind!r}")
    if (kind == "folds") != (test_train_ratio is not None):
        raise ValueError(
            "test_train_ratio is required for kind 'folds' and only used there, got "
            f"{test_train_ratio!r} for {kind!r}"
        )
    level = check_level(confidence_level)
    matrix = as_scores(scores)
    k = matrix.shape[1]
    labels = as_names(names, k)
    whole, left_out = complete(matrix)
    ratio = math.nan if test_train_ratio is None else as_ratio(test_train_ratio)
    errors = _errors(test_errors, k)
    if not len(whole):
        fewest = min(range(k), key=lambda i: int(np.isfinite(matrix[:, i]).sum()))
        raise ValueError(
            f"at least one block must have values of all models, got none; {labels[fewest]!r} has "
            "the fewest values"
        )
    scale = float(np.abs(whole).max())

    def gaps(i: int, j: int) -> FloatArray:
        return settled(whole[:, i] - whole[:, j], scale)

    joint = 1 - (1 - level) / max(1, k * (k - 1) // 2)  # Bonferroni, for all pairs
    tests: dict[str, Callable[[int, int, float], RepeatedDifference]] = {
        "folds": lambda i, j, at: corrected_resampled_t(
            gaps(i, j), ratio, at, test_error=errors[i, j]
        ),
        "seeds": lambda i, j, at: seed_differences(gaps(i, j), errors[i, j], at),
    }
    test = tests[kind]
    pairwise = compare_all(
        lambda i, j: test(i, j, level), order_by_mean(whole), level, (len(whole), left_out)
    )
    best = pairwise.order[0]
    return RepeatedResult(
        names=labels,
        kind=kind,
        confidence_level=level,
        blocks=len(whole),
        left_out=left_out,
        summary=summary(matrix, labels),
        order=pairwise.order,
        best=best,
        differences=tuple(
            _gap(labels[i], pairwise[i, best], test(i, best, joint)) for i in range(k) if i != best
        ),
        pairwise=pairwise,
        tied=tuple(i == best or not pairwise.apart(i, best) for i in range(k)),
        notes=what_to_know(kind, pairwise, left_out, k),
    )


def _errors(test_errors: Any, k: int) -> FloatArray:
    if test_errors is None:
        return np.full((k, k), math.nan)
    errors: FloatArray = np.array(test_errors, dtype=np.float64)
    if errors.shape != (k, k):
        raise ValueError(
            f"test_errors must have shape {(k, k)}, one per pair of models, got {errors.shape}"
        )
    np.fill_diagonal(errors, 0.0)
    if (errors < 0).any() or np.isinf(errors).any():
        raise ValueError(
            f"test_errors must be finite and not negative, or NaN, got {errors[errors < 0][:1]}"
        )
    if not np.allclose(errors, errors.T, rtol=1e-9, atol=0, equal_nan=True):
        i, j = np.argwhere(~np.isclose(errors, errors.T, rtol=1e-9, atol=0, equal_nan=True))[0]
        raise ValueError(
            "test_errors must be symmetric, because the error of a difference does not depend on "
            f"its direction, got {errors[i, j]:g} and {errors[j, i]:g} for models {i} and {j}"
        )
    return errors


def _gap(name: str, pair: Pair, joint: RepeatedDifference) -> Gap:
    attributes = vars(pair.difference) | {"name": name, "adjusted_pvalue": pair.adjusted_pvalue}
    return Gap(**attributes, joint_low=joint.low, joint_high=joint.high)


BLOCK = {"folds": "fold", "seeds": "seed"}


def what_to_know(kind: Kind, pairwise: Pairwise, left_out: int, k: int) -> tuple[str, ...]:
    """Return sentences about excluded blocks and about the assumptions of a test of k models."""
    n = pairwise.blocks
    pairs = k * (k - 1) // 2
    notes = []
    if left_out:
        notes.append(
            f"{left_out} of {n + left_out} {BLOCK[kind]}s lack the value of at least one "
            "model, so the tests do not use them. The mean of each model includes all of its "
            "values."
        )
    if n < 2:
        notes.append(
            f"There is only one {BLOCK[kind]}, so nothing is tested and every model may be the "
            "best."
        )
    if k < 2:
        return tuple(notes)
    if k > 2:
        notes.append(
            f"p-values are adjusted for all {pairs} pairs of models (Holm 1979), and the intervals "
            "of the differences are simultaneous for all pairs (Bonferroni)."
        )
    if kind == "folds":
        notes.append(
            "Folds share training rows; the variance is corrected for this (Nadeau and Bengio "
            "2003)."
        )
        errors = [pair.difference.test_rows for pair in pairwise.pairs]
        if n > 1 and all(errors):
            notes.append(
                "A difference is significant only if it exceeds both the spread of the folds "
                "and the sampling error of their test rows. The review shows the wider of the "
                "two intervals and the larger p-value."
            )
        elif n > 1:
            notes.append(
                "For some pairs of models the sampling error of the test rows is unknown (no "
                "predictions by row). The tests of these pairs use only the spread of the "
                "folds, which can be small by chance."
            )
    elif all(pair.difference.method == "seeds and test rows" for pair in pairwise.pairs):
        notes.append(
            "Standard errors include both the variation over the seeds and the sampling of the "
            "test rows."
        )
    elif n > 1:
        notes.append(
            "For some pairs of models the sampling error of the test rows is unknown. The "
            "standard errors of these pairs include only the variation over the seeds, and the "
            "results hold only for these test rows."
        )
    return tuple(notes)
