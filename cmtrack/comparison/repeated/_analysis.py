"""Analysis of repeated runs by the method for what they were repeated over, and its result."""

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
    """One model less the best; interval and p-value are of this pair alone.

    ``adjusted_pvalue``: by Holm over all pairs of models, which also pays for having chosen the
    best by the same scores.
    ``joint_low``, ``joint_high``: interval that holds for all pairs of models at once (Bonferroni).
    A model whose interval excludes zero is behind; one that is behind may have an interval that
    includes zero, as Holm's stepwise test is more powerful.
    """

    name: str
    adjusted_pvalue: float
    joint_low: float
    joint_high: float


@dataclass(frozen=True)
class RepeatedResult:
    """Several models over the same seeds or folds.

    ``kind``, "folds" or "seeds".
    ``blocks``, ``left_out``: blocks in which every model has a value, which alone are tested; and
    the others.
    ``summary``: of all values, also of blocks that are left out.
    ``order``: models, best first, by mean over the complete blocks.
    ``best``: the first of them.
    ``differences``: every other model less the best, in the models' order; ``result[name]`` gives
    one.
    ``pairwise``: all pairs: corrected t (folds) or seed differences (seeds); adjusted by Holm.
    ``tied``: whether the model is not told apart from the best; True for the best, and where there
    is no p-value.
    ``notes``: what was left out, and what the methods assume.
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
        raise KeyError(
            f"there is no difference of {name!r} from the best, {self.names[self.best]!r}"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per model, best first."""
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
    """Analyse models over repeated runs: the leader, and the others that may be equally good.

    ``scores``, of shape (N, k): blocks by models of one metric, larger is better; NaN where there
    is no value.
    ``names``: by default the column numbers.
    ``kind``, "folds" or "seeds": what a block is: a fold or random split of one data set, or a
    seed, all judged on the same test rows.
    ``test_train_ratio``: for folds, where it must be given: rows of a test part over rows of its
    training part.
    ``test_errors``, of shape (k, k), optional: standard errors of the mean difference of each pair
    of models due to the sampling of the test rows; symmetric, NaN where unknown, the diagonal is
    not read. With seeds, which share their test rows, this error is added to that of the seeds;
    with folds, whose test rows are disjoint, the wider one decides (:func:`corrected_resampled_t`).

    ValueError if the kind is unknown, an argument is missing that it needs, or given that it has no
    use for; if scores, names, level, ratio or errors are not as above; or no block has a value of
    every model.
    """
    if kind not in BLOCK:
        raise ValueError(f"kind must be one of {list(BLOCK)}, got {kind!r}")
    if (kind == "folds") != (test_train_ratio is not None):
        raise ValueError(
            f"test_train_ratio goes with kind 'folds', and only there: got {test_train_ratio!r}, "
            f"{kind!r}"
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
            f"a block must have values of all models, got none such; {labels[fewest]!r} has the "
            "fewest values"
        )
    scale = float(np.abs(whole).max())

    def gaps(i: int, j: int) -> FloatArray:
        return settled(whole[:, i] - whole[:, j], scale)

    joint = 1 - (1 - level) / max(1, k * (k - 1) // 2)  # Bonferroni: intervals of all pairs at once
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
    """Sentences on what was left out and what is assumed, for k models."""
    n = pairwise.blocks
    pairs = k * (k - 1) // 2
    notes = []
    if left_out:
        notes.append(
            f"{left_out} of {n + left_out} {BLOCK[kind]}s have no value of some model and are not "
            "tested. The mean of a model is over all its values."
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
            "of the differences hold for all of them at once (Bonferroni)."
        )
    if kind == "folds":
        notes.append(
            "Folds share training rows, and the variance is corrected for that (Nadeau and Bengio "
            "2003)."
        )
        errors = [pair.difference.test_rows for pair in pairwise.pairs]
        if n > 1 and all(errors):
            notes.append(
                "A difference is significant only if it is so by the spread of the folds and by "
                "the sampling error of their test rows: the wider of the two intervals is shown, "
                "and the larger p-value."
            )
        elif n > 1:
            notes.append(
                "The sampling error of the test rows is not known for every pair of models (no "
                "predictions by row): there, only the spread of the folds decides, which can be "
                "small by luck."
            )
    elif all(pair.difference.method == "seeds and test rows" for pair in pairwise.pairs):
        notes.append(
            "Standard errors hold both the variation over the seeds and the sampling of the test "
            "rows."
        )
    elif n > 1:
        notes.append(
            "The sampling error of the test rows is not known for every pair of models: there, "
            "the standard error is that of the seeds alone, and the result holds for these test "
            "rows only."
        )
    return tuple(notes)
