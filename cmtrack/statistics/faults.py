"""Invalid values of a table, counted over all batches, and their error message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.decision_cells import LARGEST
from cmtrack.statistics.factorize import is_missing
from cmtrack.statistics.inputs import FREQUENCY, WHOLE, FloatArray, IntArray, not_whole
from cmtrack.statistics.labels import no_declared, no_scores, unknown_labels
from cmtrack.statistics.probabilities import (
    DECISIONS,
    ROUNDING,
    Normalize,
    most_off,
    out_of_range,
    sum_rule,
)


@dataclass(frozen=True, eq=False)
class NumberFaults:
    """Number of rows with invalid numbers in each of C columns, and the range of finite numbers.

    ``missing``, ``infinite``, ``outside``, shape (C,): rows with NaN or null, with infinity, and
        with a finite number outside the limits.
    ``low``, ``high``, shape (C,): the smallest and the largest finite number.
    """

    missing: IntArray
    infinite: IntArray
    outside: IntArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def find(cls, columns: Sequence[Any], low: float, high: float) -> NumberFaults:
        """Count the faults in columns of numbers that should be between ``low`` and ``high``."""
        values = np.stack([np.asarray(column, dtype=np.float64) for column in columns])
        finite = np.isfinite(values)
        outside = (values < low) | (values > high)
        return cls(
            np.isnan(values).sum(axis=1),
            np.isinf(values).sum(axis=1),
            (finite & outside).sum(axis=1),
            np.where(finite, values, np.inf).min(axis=1, initial=np.inf),
            np.where(finite, values, -np.inf).max(axis=1, initial=-np.inf),
        )

    def __add__(self, other: NumberFaults) -> NumberFaults:
        return NumberFaults(
            self.missing + other.missing,
            self.infinite + other.infinite,
            self.outside + other.outside,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def __bool__(self) -> bool:
        return bool(self.missing.any() or self.infinite.any() or self.outside.any())

    def refuse_missing(self, column: int, what: str, rule: str, n_rows: int, part: str) -> None:
        """Raise ValueError if a column has missing or infinite numbers.

        ``what``: name of the columns in messages.
        ``rule``: another requirement for the message, such as " and not negative".
        ``part``: the column for the message, such as " (column 'a')".
        """
        missing = int(self.missing[column])
        infinite = int(self.infinite[column])
        kinds = []
        if missing:
            kinds.append("NaN or null")
        if infinite:
            kinds.append("infinity")
        if kinds:
            raise ValueError(
                f"{what} must be finite{rule}, got {' or '.join(kinds)} in "
                f"{missing + infinite} of {n_rows} rows{part}"
            )


@dataclass(frozen=True, eq=False)
class Faults:
    """Counts of faults in rows; the counts of disjoint sets of rows can be added up.

    ``n_rows``: number of all rows.
    ``missing``: number of rows with a missing label or id, by argument.
    ``unknown``: number of rows with an unknown label, by argument and label.
    ``lengths``: number of rows by the length of their list of probabilities, if these are lists;
        -1 for rows without a list.
    ``scores``, ``weights``: faults of the columns of probabilities, and of the weights.
    ``fractions``: for each batch, an example of a fractional weight and the number of such rows, if
        weights must be whole numbers.
    ``off``: number of rows whose probabilities do not sum to 1.
    ``worst``: largest distance of such a sum from 1.
    """

    n_rows: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[tuple[str, Any]] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    scores: NumberFaults | None = None
    weights: NumberFaults | None = None
    fractions: Counter[float] = field(default_factory=Counter)
    off: int = 0
    worst: float = 0.0

    def __add__(self, other: Faults) -> Faults:
        return Faults(
            self.n_rows + other.n_rows,
            self.missing + other.missing,
            self.unknown + other.unknown,
            self.lengths + other.lengths,
            _sum(self.scores, other.scores),
            _sum(self.weights, other.weights),
            self.fractions + other.fractions,
            self.off + other.off,
            max(self.worst, other.worst),
        )

    def __bool__(self) -> bool:
        counts = (self.missing, self.unknown, self.fractions, self.off, self.scores, self.weights)
        return any(map(bool, counts))

    def with_labels(self, name: str, values: Any, order: tuple[Label, ...] | None) -> Faults:
        """Return the faults after adding faults of a column of labels.

        ``order``: the classes; None if they are read from the rows, so that every label is known.
        """
        classes = None if order is None else set(order)
        missing = 0
        unknown: Counter[tuple[str, Any]] = Counter()
        for label, n_rows in label_rows(values):
            absent = is_missing(label)
            if absent or label in (np.inf, -np.inf):
                missing += n_rows
            if classes is not None and not absent and label not in classes:
                unknown[name, label] += n_rows
        return replace(
            self,
            missing=self.missing + Counter({name: missing}),
            unknown=self.unknown + unknown,
        )

    def with_scores(self, columns: Sequence[Any], normalize: Normalize) -> Faults:
        """Return the faults after adding faults of columns of probabilities."""
        limits = (-ROUNDING, 1 + ROUNDING)
        if normalize == DECISIONS:
            limits = (-LARGEST, LARGEST)
        faults = replace(self, scores=_sum(self.scores, NumberFaults.find(columns, *limits)))
        if len(columns) < 2 or normalize == DECISIONS:
            return faults
        sums = np.sum([np.asarray(column, dtype=np.float64) for column in columns], axis=0)
        distances = np.abs(sums - 1)
        refused = distances[distances > most_off(normalize)]
        return replace(
            faults,
            off=self.off + len(refused),
            worst=max(self.worst, refused.max(initial=0.0)),
        )

    def with_weights(self, weights: Any, weights_are: str | None) -> Faults:
        """Return the faults after adding faults of weights."""
        numbers = np.asarray(weights, dtype=np.float64)
        faults = replace(self, weights=_sum(self.weights, NumberFaults.find([numbers], 0, np.inf)))
        if weights_are != FREQUENCY:
            return faults
        finite = numbers[np.isfinite(numbers)]
        fractions = finite[not_whole(finite)]
        if not len(fractions):
            return faults
        example = Counter({float(fractions[0]): len(fractions)})
        return replace(faults, fractions=self.fractions + example)

    def refuse(
        self,
        what: tuple[str, str],
        parts: Sequence[str],
        normalize: Normalize,
        order: Sequence[Label],
        declared: bool,
    ) -> None:
        """Raise ValueError with the fault and its number of rows, if there is any fault.

        ``what``: names of the labels and the probabilities in messages.
        ``parts``: name of each column of probabilities in messages.
        ``normalize``, "warn", True or False.
        ``order``: the classes.
        ``declared``: whether the classes were declared by columns or a grouping.
        """
        if not self.n_rows:
            raise ValueError("the table must have at least one row, got none")
        self._refuse_missing("y_true", what[0])
        if self.scores is not None:
            self._refuse_scores(self.scores, what[1], parts, normalize)
        self._refuse_weights()
        if self.missing["row_ids"]:
            raise ValueError(
                f"row_ids must not be null, got null in {self.missing['row_ids']} of {self.n_rows} "
                "rows"
            )
        self._refuse_missing("y_pred", "y_pred")
        for name in dict.fromkeys(name for name, _ in self.unknown):
            shown_name = what[0] if name == "y_true" else name
            self._refuse_unknown(name, shown_name, order, declared)

    def refuse_lengths(self, name: str) -> None:
        """Raise ValueError if lists of probabilities differ in length."""
        usual = max(self.lengths, key=self.lengths.__getitem__, default=1)
        if len(self.lengths) <= 1 and usual >= 1:
            return
        total = self.lengths.total()
        shown: dict[int | str, int] = {}
        for length, n_rows in sorted(self.lengths.items()):
            shown["null" if length < 0 else length] = n_rows
        raise ValueError(
            f"y_prob must contain lists of equal length in column {name!r}, got "
            f"{total - self.lengths[usual]} of {total} rows with a length other than {usual}; "
            f"the numbers of rows by length are {shown}"
        )

    def _refuse_missing(self, name: str, shown_name: str) -> None:
        if self.missing[name]:
            raise ValueError(
                f"{shown_name} must not have missing labels, got {self.missing[name]} in "
                f"{self.n_rows} rows"
            )

    def _refuse_weights(self) -> None:
        weights = self.weights
        if weights is not None:
            weights.refuse_missing(0, "sample_weight", " and not negative", self.n_rows, "")
            if weights.outside[0]:
                raise ValueError(
                    "sample_weight must be finite and not negative, got negative weights in "
                    f"{weights.outside[0]} of {self.n_rows} rows, the lowest is "
                    f"{weights.low[0]}"
                )
        if self.fractions:
            raise ValueError(
                f"{WHOLE}, got values such as {min(self.fractions)} in "
                f"{self.fractions.total()} of {self.n_rows} rows"
            )

    def _refuse_unknown(
        self, name: str, shown_name: str, order: Sequence[Label], declared: bool
    ) -> None:
        """Raise ValueError for unknown labels in one column."""
        rows = {label: n for (column, label), n in self.unknown.items() if column == name}
        labels = list(rows)
        no_scores(name, labels)
        if len(set(map(type, labels))) == 1:
            labels.sort()
        if declared:
            raise ValueError(no_declared(order, labels))
        raise ValueError(unknown_labels(shown_name, labels, order, sum(rows.values())))

    def _refuse_scores(
        self, scores: NumberFaults, what: str, parts: Sequence[str], normalize: Normalize
    ) -> None:
        # A missing number in any column is reported before an outside number in an earlier column.
        for column, part in enumerate(parts):
            scores.refuse_missing(column, what, "", self.n_rows, f" ({part})")
        for column in np.flatnonzero(scores.outside).tolist():
            low = scores.low[column]
            high = scores.high[column]
            rows = f"{scores.outside[column]} of {self.n_rows} rows ({parts[column]})"
            if normalize == DECISIONS:
                example = high if high > LARGEST else low
                raise ValueError(
                    f"{what} must be between -{LARGEST:g} and {LARGEST:g}, got values such as "
                    f"{example} in {rows}"
                )
            example = low if low < -ROUNDING else high
            raise ValueError(out_of_range(what, f"values such as {example} in {rows}"))
        if self.off:
            raise ValueError(
                f"each row of {what} must sum to 1, {self.off} of {self.n_rows} rows do not: the "
                f"worst is off by {self.worst:.6g} ({sum_rule(normalize)})"
            )


def label_rows(values: Any) -> list[tuple[Any, int]]:
    """Return each label of a column with its number of rows; missing labels are None."""
    if hasattr(values, "value_counts"):
        counts = values.value_counts().to_pylist()
        return [(plain(label["values"]), label["counts"]) for label in counts]
    labels, rows = np.unique(values, return_counts=True)
    return list(zip(labels.tolist(), rows.tolist(), strict=True))


def _sum(ours: NumberFaults | None, theirs: NumberFaults | None) -> NumberFaults | None:
    if ours is None or theirs is None:
        return ours if theirs is None else theirs
    return ours + theirs
