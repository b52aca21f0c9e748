"""Discharge codes with a known law of confusion: what a document has, and what a model makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FamilyLaw:
    """A family of codes and the probabilities of what a model does with them.

    Attributes
    ----------
    codes : tuple of str
    presence : float
        Probability that a document has a code of the family.
    frequency : tuple of float
        Of the codes where it has one.
    right : tuple of float
        Probability that an actual code is predicted.
    confused : mapping of (actual, predicted) to float
        Probability that the sibling is predicted instead. What is left to 1 is missed: nothing of the family is.
    extra : mapping of (actual, sibling) to float
        Probability that the sibling is predicted, too, where the actual code is.
    spurious : float
        Probability that a code is predicted in a document without any of the family; each code equally likely.
    """

    codes: tuple[str, ...]
    presence: float
    frequency: tuple[float, ...]
    right: tuple[float, ...]
    confused: Mapping[tuple[str, str], float] = field(default_factory=dict)
    extra: Mapping[tuple[str, str], float] = field(default_factory=dict)
    spurious: float = 0.0

    def __post_init__(self) -> None:
        if not np.isclose(sum(self.frequency), 1) or len(self.frequency) != len(self.codes):
            raise ValueError(
                f"frequency must have one share per code that sum to 1, got {self.frequency}"
            )
        if (self.outcomes < -1e-12).any() or (self.extras.sum(axis=1) > 1).any():
            raise ValueError(
                f"probabilities of an actual code must not exceed 1 in sum, got {self.outcomes.tolist()}"
            )

    @property
    def outcomes(self) -> Floats:
        """Probabilities (k, k + 1) of what is predicted for each actual code, nothing of the family last."""
        table = np.zeros((len(self.codes), len(self.codes) + 1))
        np.fill_diagonal(table, self.right)
        for (actual, predicted), share in self.confused.items():
            table[self.codes.index(actual), self.codes.index(predicted)] = share
        table[:, -1] = 1 - table[:, :-1].sum(axis=1)
        return table

    @property
    def extras(self) -> Floats:
        """Probabilities (k, k) of a sibling beside each code that is rightly predicted."""
        table = np.zeros((len(self.codes), len(self.codes)))
        for (actual, sibling), share in self.extra.items():
            table[self.codes.index(actual), self.codes.index(sibling)] = share
        return table


def all_codes(laws: Sequence[FamilyLaw]) -> tuple[str, ...]:
    """The codes of all families, in order."""
    return tuple(code for law in laws for code in law.codes)


def draw_actual(
    laws: Sequence[FamilyLaw], documents: int, rng: np.random.Generator, *, at_once: int = 1
) -> Bools:
    """Actual codes (documents, codes): of each family none, or `at_once` different ones."""
    return np.hstack([_actual(law, documents, rng, at_once) for law in laws])


def draw_predicted(laws: Sequence[FamilyLaw], actual: Bools, rng: np.random.Generator) -> Bools:
    """What a model of these laws predicts (documents, codes); every actual code by itself."""
    ends = np.cumsum([len(law.codes) for law in laws])[:-1]
    blocks = np.split(actual, ends, axis=1)
    return np.hstack([_predicted(law, block, rng) for law, block in zip(laws, blocks, strict=True)])


def _actual(law: FamilyLaw, documents: int, rng: np.random.Generator, at_once: int) -> Bools:
    # the largest has law.frequency
    keys = np.log(law.frequency) + rng.gumbel(size=(documents, len(law.codes)))
    chosen = np.argsort(-keys, axis=1)[:, :at_once]
    actual = np.zeros(keys.shape, dtype=bool)
    np.put_along_axis(actual, chosen, True, axis=1)
    actual[rng.random(documents) >= law.presence] = False
    return actual


def _predicted(law: FamilyLaw, actual: Bools, rng: np.random.Generator) -> Bools:
    size = len(law.codes)
    predicted = np.zeros((len(actual), size + 1), dtype=bool)
    document, code = np.nonzero(actual)
    outcome = (rng.random(len(code))[:, None] > law.outcomes.cumsum(axis=1)[code, :-1]).sum(axis=1)
    predicted[document, outcome] = True
    right = outcome == code
    beside = (rng.random(len(code))[:, None] > law.extras.cumsum(axis=1)[code]).sum(axis=1)
    predicted[document[right], beside[right]] = True  # the last column takes what is no code
    lonely = ~actual.any(axis=1) & (rng.random(len(actual)) < law.spurious)
    predicted[lonely, rng.integers(size, size=int(lonely.sum()))] = True
    return predicted[:, :-1]
