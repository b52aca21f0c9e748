"""Shares of the classes in a target population, either stated by the caller or estimated."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval
from cmtrack.names import quoted
from cmtrack.prevalence.results import BasePrevalence, ClassPrevalenceEstimate
from cmtrack.statistics.inputs import FloatArray, IntArray, has_named_rows, listed

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

_ROUNDING = 1e-9
"""Largest accepted deviation of the sum of the stated shares from 1."""


@dataclass(frozen=True, eq=False)
class Target:
    """Shares of the classes in a target population.

    Each share belongs to a stratum, which is a class or a group. Within a group, the classes have
    the same relative shares as among the labelled rows.

    ``shares``, shape (K,): the share of each class.
    ``strata``, shape (K,): the index of each class's stratum.
    ``names``: the names of the strata, in quotation marks for display.
    ``rows``: the number of rows in the target; NaN if it is unknown.
    ``counted``: True if the shares were counted in the rows of the target.
    ``estimated``: the error of estimated shares; None if the shares are stated.
    """

    shares: FloatArray
    strata: IntArray
    names: tuple[str, ...]
    rows: float = math.nan
    counted: bool = False
    estimated: ShareErrors | None = None


@dataclass(frozen=True, eq=False)
class ShareErrors:
    """The error of estimated shares.

    ``covariance``, shape (S, S): the covariance matrix of the strata's shares.
    ``fit_pvalue``: the p-value of the test whether the target's scores fit the labelled scores.
    ``ends``: the confidence interval of the second of two shares; None if there are more than two.
    """

    covariance: FloatArray
    fit_pvalue: float
    ends: Interval | None = None


class _Stratum(NamedTuple):
    """A class or a group, its share, and ``members``, shape (K,), which marks its classes."""

    name: str
    members: npt.NDArray[np.bool_]
    share: float


def count_actual(evaluation: Evaluation) -> FloatArray:
    """Return the number (or weight) of labelled rows of each class, shape (K,)."""
    return evaluation.confusion_matrix.counts.sum(axis=1).astype(np.float64)


def spread_over_classes(
    evaluation: Evaluation, stratum_shares: FloatArray, strata: IntArray
) -> FloatArray:
    """Divide the share of each stratum among its classes in proportion to the labelled rows."""
    counts = count_actual(evaluation)
    totals = np.bincount(strata, counts, len(stratum_shares))
    # The callers check that a stratum without rows has the share 0, so any divisor will do.
    parts = counts / np.where(totals > 0, totals, 1.0)[strata]
    return stratum_shares[strata] * parts


def stated_target(evaluation: Evaluation, stated: Any, rows: float | None, counted: bool) -> Target:
    """Return a target whose shares the caller states.

    ``stated``: a single number is the share of the positive class or group. A mapping contains
        shares by the names of classes, or of the groups of one step. A sequence contains one share
        for each class.

    Raises TypeError or ValueError if the shares are not numbers or do not sum to 1, if a name is
    not a class or group, or if a class without labelled rows has a share above 0.
    """
    if rows is not None and not (isinstance(rows, numbers.Real) and rows > 0):
        raise ValueError(
            f"rows must be the number of rows of the target, above 0, got {rows!r:.40}"
        )
    labels = evaluation.labels
    if has_named_rows(stated):  # a pandas Series by class, in any order
        stated = stated.to_dict()
    named = _read_strata(evaluation, stated)
    times = np.sum([stratum.members for stratum in named], axis=0)
    if times.max() > 1:
        twice = [label for label, n in zip(labels, times, strict=True) if n > 1]
        raise ValueError(f"each class must have one share, got several for {listed(twice, 8)}")
    named += _rest(labels, named, stated)
    by_class = count_actual(evaluation)
    for stratum in named:
        if stratum.share > 0 and not by_class[stratum.members].any():
            raise ValueError(
                f"a class with a share above 0 needs labelled rows, got none of {stratum.name}"
            )
    strata = np.argmax([stratum.members for stratum in named], axis=0)
    shares = np.array([stratum.share for stratum in named])
    return Target(
        spread_over_classes(evaluation, shares, strata),
        strata,
        tuple(stratum.name for stratum in named),
        math.nan if rows is None else float(rows),
        counted,
    )


def _rest(labels: Sequence[Label], named: list[_Stratum], stated: Any) -> list[_Stratum]:
    """Return a stratum that contains all classes without a stated share, and the remaining share.

    The list is empty if shares are stated for all classes.

    Raises ValueError if the shares do not sum to 1.
    """
    is_rest = ~np.any([stratum.members for stratum in named], axis=0)
    missing = 1 - math.fsum(stratum.share for stratum in named)
    is_incomplete = not is_rest.any() and missing > _ROUNDING
    is_share = all(0 <= stratum.share <= 1 for stratum in named)
    if not is_share or missing < -_ROUNDING or is_incomplete:
        raise ValueError(f"shares must be between 0 and 1 and sum to 1, got {stated!r:.80}")
    if not is_rest.any():
        return []
    name = quoted(labels[int(is_rest.argmax())]) if is_rest.sum() == 1 else "all others"
    return [_Stratum(name, is_rest, max(missing, 0.0))]


def _read_strata(evaluation: Evaluation, stated: Any) -> list[_Stratum]:
    labels = evaluation.labels
    names: Sequence[Label] = labels
    members: Sequence[npt.NDArray[np.bool_]] = list(np.eye(len(labels), dtype=bool))
    if isinstance(stated, numbers.Real) and not isinstance(stated, bool):
        step = evaluation.scored
        if step is None or step.positive is None:
            raise ValueError(
                "a single share needs two classes or groups, because it is the share of the "
                f"positive one; give a share for each of {listed(labels, 8)}, got {stated!r}"
            )
        names = [step.labels[step.positive]]
        members = [step.in_positive]
        shares = [float(stated)]
    elif isinstance(stated, Mapping):
        names = list(stated)
        members = _members(evaluation, names)
        shares = _floats(list(stated.values()), stated)
    else:
        shares = _floats(stated, stated)
        if len(shares) != len(labels):
            raise ValueError(
                f"shares must have one number for each of {len(labels)} classes, got {len(shares)}"
            )
    return [
        _Stratum(quoted(name), classes, share)
        for name, classes, share in zip(names, members, shares, strict=True)
    ]


def _members(evaluation: Evaluation, names: Sequence[Label]) -> list[npt.NDArray[np.bool_]]:
    """Return a mask for each name, shape (K,), that is True for the classes of the name.

    Either all names are classes, or all names are groups of the last step that defines them.
    """
    labels = evaluation.labels
    steps = reversed(evaluation._views.composed.values())
    partitions = [(labels, np.arange(len(labels)))]
    partitions += [(step.labels, step.group_of_class) for step in steps]
    for part_names, part_of_class in partitions:
        positions = _find_positions(names, part_names)
        if positions is not None:
            return [part_of_class == position for position in positions]
    unknown = next((name for name in names if name not in labels), names[0])
    raise ValueError(
        f"shares must name the classes {listed(labels, 8)} or the groups of one step, "
        f"got {unknown!r}"
    )


def _find_positions(names: Sequence[Label], labels: Sequence[Label]) -> list[int] | None:
    """Return the positions of the names in the labels; None if one is missing or repeated.

    A name also matches a label of a different type that looks the same when written as text,
    because names in files are always texts.
    """
    by_text = {str(label): position for position, label in enumerate(labels)}
    positions = []
    for name in names:
        if name in labels:
            positions.append(labels.index(name))
        elif isinstance(name, str) and name in by_text:
            positions.append(by_text[name])
        else:
            return None
    return positions if len(set(positions)) == len(positions) else None


def _floats(values: Any, stated: Any) -> list[float]:
    try:
        shares = [float(value) for value in values]
    except (TypeError, ValueError):
        shares = []
    if not shares:
        raise TypeError(
            "shares must be a number, numbers by class or group, or one number per class, "
            f"got {stated!r:.80}"
        )
    return shares


def estimated_target(evaluation: Evaluation, estimate: BasePrevalence) -> Target:
    """Return a target whose shares are estimated and therefore have an error.

    If the estimate is rejected, its shares only determine which metrics are listed, and callers
    remove these metrics together with the estimate.
    """
    estimate = estimate.refused or estimate
    labels = evaluation.labels
    step = evaluation.scored
    names: Sequence[Label | None] = labels
    interval: Interval | None = None
    if isinstance(estimate, ClassPrevalenceEstimate):
        has_all = set(estimate.classes) == set(labels)
        if not has_all or not np.isfinite(estimate.class_shares.values).all():
            raise ValueError(
                f"the estimate must have shares of all classes {listed(labels, 8)}, got "
                f"{estimate!r}"
            )
        order = [estimate.classes.index(label) for label in labels]
        shares = estimate.class_shares.values[order]
        covariance = estimate.class_shares.covariance[np.ix_(order, order)]
        strata = np.arange(len(labels))
    else:
        if step is None or step.positive is None or estimate.positive != step.labels[step.positive]:
            raise ValueError(
                f"the estimate must be for the positive {evaluation.positive!r}, got {estimate!r}"
            )
        if not math.isfinite(estimate.variance.total):
            raise ValueError(f"the estimate is not identified: {estimate!r}")
        names = [evaluation.negative, evaluation.positive]
        shares = np.array([1 - estimate.value, estimate.value])
        # The two shares sum to 1, so their errors are opposite.
        covariance = np.array([[1.0, -1.0], [-1.0, 1.0]]) * estimate.variance.total
        interval = (estimate.low, estimate.high)
        strata = step.in_positive.astype(np.int64)
    texts = tuple(quoted(name) for name in names)
    totals = np.bincount(strata, count_actual(evaluation))
    if not totals.all():
        raise ValueError(
            "a class or group with an estimated share needs labelled rows, got none of "
            f"{texts[int(totals.argmin())]}"
        )
    return Target(
        spread_over_classes(evaluation, shares, strata),
        strata,
        texts,
        estimate.n_target,
        estimated=ShareErrors(covariance, estimate.fit_pvalue, interval),
    )
