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
    """Rows with wrong numbers in each of C columns, and the ends of the numbers that are finite."""

    missing: IntArray
    infinite: IntArray
    outside: IntArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def find(cls, columns: Sequence[Any], low: float, high: float) -> NumberFaults:
        """Look through columns of numbers that should lie between ``low`` and ``high``."""
        values = np.stack([np.asarray(column, dtype=np.float64) for column in columns])
        finite, outside = np.isfinite(values), (values < low) | (values > high)
        return cls(
            np.isnan(values).sum(axis=1),
            np.isinf(values).sum(axis=1),
            (finite & outside).sum(axis=1),
            np.where(finite, values, np.inf).min(axis=1, initial=np.inf),
            np.where(finite, values, -np.inf).max(axis=1, initial=-np.inf),
        )

    def __add__(self, other: NumberFaults) -> NumberFaults:
        how: dict[str, Any] = {"low": np.minimum, "high": np.maximum}
        both = {name: (ours, getattr(other, name)) for name, ours in vars(self).items()}
        return NumberFaults(**{name: how.get(name, np.add)(*pair) for name, pair in both.items()})

    def refuse_missing(self, column: int, what: str, also: str, n_rows: int, part: str) -> None:
        """Raise the error of missing or infinite numbers in a column, if there are any."""
        missing, infinite = int(self.missing[column]), int(self.infinite[column])
        if missing or infinite:
            kind = " or ".join(["NaN or null"] * bool(missing) + ["infinity"] * bool(infinite))
            raise ValueError(
                f"{what} must be finite{also}, got {kind} in {missing + infinite} of {n_rows} rows{part}"
            )


@dataclass(frozen=True, eq=False)
class Faults:
    """Faults of rows, counted; faults of disjoint rows add up.

    ``n_rows``: all rows, also those without a fault.
    ``missing``: rows without a label or an id, by what is missing.
    ``unknown``: rows by argument and label that is no class.
    ``lengths``: rows by length of their list of probabilities, where they are lists; -1 for rows without one.
    ``scores``, ``weights``: of the columns of probabilities, and of the weights.
    ``fractions``: weights that should be whole numbers and are not, one for each batch, by its rows with such.
    ``off``: rows of probabilities that do not sum to 1.
    ``worst``: by how much.
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
        both = {name: (ours, getattr(other, name)) for name, ours in vars(self).items()}
        return Faults(
            **{name: max(pair) if name == "worst" else _sum(*pair) for name, pair in both.items()}
        )

    def __bool__(self) -> bool:
        numbers = (self.scores, self.weights)
        wrong = any(
            f.missing.any() or f.infinite.any() or f.outside.any() for f in numbers if f is not None
        )
        return bool(self.missing or self.unknown or self.fractions or self.off or wrong)

    def with_labels(self, name: str, values: Any, order: tuple[Label, ...] | None) -> Faults:
        """The faults with those of a column of labels."""
        rows = label_rows(values)
        missing = sum(n for label, n in rows if is_missing(label) or label in (np.inf, -np.inf))
        labels = set(order) if order is not None else set()
        strange = {
            (name, label): n
            for label, n in rows
            if order is not None and not is_missing(label) and label not in labels
        }
        return replace(
            self,
            missing=self.missing + Counter({name: missing}),
            unknown=self.unknown + Counter(strange),
        )

    def with_scores(self, columns: Sequence[Any], normalize: Normalize) -> Faults:
        """The faults with those of columns of probabilities."""
        ends = (-LARGEST, LARGEST) if normalize == DECISIONS else (-ROUNDING, 1 + ROUNDING)
        faults = replace(self, scores=_sum(self.scores, NumberFaults.find(columns, *ends)))
        if len(columns) < 2 or normalize == DECISIONS:
            return faults
        off = np.abs(
            np.sum([np.asarray(column, dtype=np.float64) for column in columns], axis=0) - 1
        )
        wrong = off > most_off(normalize)
        return replace(
            faults,
            off=self.off + int(wrong.sum()),
            worst=max(self.worst, off[wrong].max(initial=0.0)),
        )

    def with_weights(self, weights: Any, weights_are: str | None) -> Faults:
        """The faults with those of weights."""
        given = np.asarray(weights, dtype=np.float64)
        wrong = given[np.isfinite(given)] if weights_are == FREQUENCY else given[:0]
        wrong = wrong[not_whole(wrong)]
        fractions = Counter({float(wrong[0]): len(wrong)} if len(wrong) else {})
        faults = _sum(self.weights, NumberFaults.find([given], 0.0, np.inf))
        return replace(self, weights=faults, fractions=self.fractions + fractions)

    def refuse(
        self,
        what: tuple[str, str],
        parts: Sequence[str],
        normalize: Normalize,
        order: Sequence[Label],
        declared: bool,
    ) -> None:
        """Raise the ValueError that says what is wrong and in how many rows, if anything is.

        ``what``: what error texts call the labels and the probabilities.
        ``parts``: what they call each column of probabilities.
        ``normalize``, "warn", True or False.
        ``order``: the classes.
        ``declared``: whether these are the classes that columns or a grouping name.
        """
        if not self.n_rows:
            raise ValueError("the table must have at least one row, got none")
        self._refuse_missing("y_true", what[0])
        if self.scores is not None:
            self._refuse_scores(what[1], parts, normalize)
        if self.weights is not None:
            self.weights.refuse_missing(0, "sample_weight", " and not negative", self.n_rows, "")
            if self.weights.outside[0]:
                raise ValueError(
                    f"sample_weight must be finite and not negative, got negative ones in {self.weights.outside[0]} "
                    f"of {self.n_rows} rows, the least is {self.weights.low[0]}"
                )
        if self.fractions:
            raise ValueError(
                f"{WHOLE}, got {min(self.fractions)} and the like in {self.fractions.total()} of {self.n_rows} rows"
            )
        if self.missing["row_ids"]:
            raise ValueError(
                f"row_ids must not be null, got null in {self.missing['row_ids']} of {self.n_rows} rows"
            )
        self._refuse_missing("y_pred", "y_pred")
        for name in dict.fromkeys(name for name, _ in self.unknown):
            strange = {label: n for (other, label), n in self.unknown.items() if other == name}
            no_scores(name, list(strange))
            shown = (
                sorted(strange) if len({type(label) for label in strange}) == 1 else list(strange)
            )
            if declared:
                raise ValueError(no_declared(order, shown))
            shown_name = what[0] if name == "y_true" else name
            raise ValueError(unknown_labels(shown_name, shown, order, sum(strange.values())))

    def refuse_lengths(self, name: str) -> None:
        """Raise the ValueError of lists that are not all of one length, if they are not."""
        total, usual = (
            self.lengths.total(),
            max(self.lengths, key=self.lengths.__getitem__, default=1),
        )
        if len(self.lengths) > 1 or usual < 1:
            shown = {
                ("null" if length < 0 else length): n for length, n in sorted(self.lengths.items())
            }
            raise ValueError(
                f"y_prob must hold lists of one length in column {name!r}, got {total - self.lengths[usual]} of "
                f"{total} rows that do not have {usual}: rows by length are {shown}"
            )

    def _refuse_missing(self, name: str, shown: str) -> None:
        if self.missing[name]:
            raise ValueError(
                f"{shown} must not have missing labels, got {self.missing[name]} in {self.n_rows} rows"
            )

    def _refuse_scores(self, what: str, parts: Sequence[str], normalize: Normalize) -> None:
        assert self.scores is not None
        for column, part in enumerate(parts):
            self.scores.refuse_missing(column, what, "", self.n_rows, f" ({part})")
        for column, part in enumerate(parts):
            if self.scores.outside[column]:
                low, high = self.scores.low[column], self.scores.high[column]
                rows = f"{self.scores.outside[column]} of {self.n_rows} rows ({part})"
                if normalize == DECISIONS:
                    got = high if high > LARGEST else low
                    raise ValueError(
                        f"{what} must lie between -{LARGEST:g} and {LARGEST:g}, got {got} and the like in {rows}"
                    )
                raise ValueError(
                    out_of_range(what, f"{low if low < -ROUNDING else high} and the like in {rows}")
                )
        if self.off:
            raise ValueError(
                f"each row of {what} must sum to 1, {self.off} of {self.n_rows} rows do not: the worst is off by "
                f"{self.worst:.6g} ({sum_rule(normalize)})"
            )


def label_rows(values: Any) -> list[tuple[Any, int]]:
    """Each label of an Arrow or NumPy column, None for rows without one, and its number of rows."""
    if hasattr(values, "value_counts"):
        return [
            (plain(each["values"]), each["counts"]) for each in values.value_counts().to_pylist()
        ]
    labels, rows = np.unique(values, return_counts=True)
    return list(zip(labels.tolist(), rows.tolist(), strict=True))


def _sum(ours: Any, theirs: Any) -> Any:
    return ours + theirs if ours is not None and theirs is not None else ours or theirs
