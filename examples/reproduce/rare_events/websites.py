"""Websites as counts of words: a stand-in for the web-scraped data of Statistics Netherlands, which are not public.

A vocabulary has two languages with words of Zipf's frequencies. Every website has a theme, which gives a part of its
words. A platform also uses words that platforms use, of all of them or of its kind, to a share that differs much from
one to the next: some hardly say what they are. A few of the other websites (the look-alikes: shops, agencies) use the
same words nearly as much. They are the negatives with high scores, the bump of Figures 2.1, 2.4 and 2.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Websites(NamedTuple):
    """Counts of words, sparse of shape (n, n_words + 1), and whether each website is a platform (1) or not (0).

    The last column is the language feature: 1 for English.
    """

    counts: sparse.csr_matrix
    y: IntArray


@dataclass(frozen=True)
class Web:
    """Where websites are drawn from: fixed distributions of words, any number of independent draws.

    Parameters
    ----------
    n_words : int
        Of the vocabulary; half Dutch, half English.
    seed : int
        Of the distributions themselves, not of the draws.
    platform_share : float
        Mean share of platform words on a platform.
    platform_concentration : float
        Of the beta distribution of that share; the smaller, the more platforms hardly show what they are.
    lookalikes : float
        Share of the other websites that use platform words, too.
    lookalike_share : float
        Mean share of platform words on these.
    english : float
        Share of websites in English.
    themes, theme_share : int, float
        Number of themes, and the share of a website's other words that its theme gives.
    kinds : int
        Of platforms; half of a platform's words are of its kind.
    median_length : float
        Words of a website; at least 10, as in section 0.3.
    platform_words, kind_words : int
        Words that all platforms, or those of a kind, use; in each language.
    """

    n_words: int = 20_000
    seed: int = 2023
    platform_share: float = 0.45
    platform_concentration: float = 6.0
    lookalikes: float = 0.03
    lookalike_share: float = 0.25
    english: float = 0.25
    themes: int = 40
    theme_share: float = 0.35
    kinds: int = 40
    median_length: float = 140.0
    platform_words: int = 600
    kind_words: int = 150

    def draw(
        self,
        positives: int,
        negatives: int,
        seed: int | list[int],
        *,
        lookalikes: float | None = None,
    ) -> Websites:
        """Independent websites, platforms first.

        Parameters
        ----------
        positives, negatives : int
        seed : int or list of int
        lookalikes : float, optional
            Another share of look-alikes, so that not only the prevalence differs from other draws.
        """
        rng = np.random.default_rng(seed)
        n = positives + negatives
        y = np.repeat([1, 0], [positives, negatives]).astype(np.int64)
        alike = (y == 0) & (rng.random(n) < (self.lookalikes if lookalikes is None else lookalikes))
        english = rng.random(n) < self.english
        length = np.clip(self.median_length * np.exp(0.8 * rng.standard_normal(n)), 10, 600).astype(
            np.int64
        )
        share = np.zeros(n)
        for group, mean in ((y == 1, self.platform_share), (alike, self.lookalike_share)):
            a = mean * self.platform_concentration
            share[group] = rng.beta(a, self.platform_concentration - a, int(group.sum()))
        platform = rng.binomial(length, share)
        themed = rng.binomial(length - platform, self.theme_share)
        kind, theme = rng.integers(self.kinds, size=n), rng.integers(self.themes, size=n)
        of_kind = rng.binomial(platform, 0.5)
        parts = [
            (length - platform - themed, english.astype(np.int64), self._background),
            (themed, 2 * theme + english, self._themes),
            (platform - of_kind, english.astype(np.int64), self._platform),
            (of_kind, 2 * kind + english, self._kinds),
        ]
        rows, words = [], []
        for amount, source, tables in parts:
            row, word = _draw_words(amount, source, tables, rng)
            rows.append(row)
            words.append(word)
        rows.append(np.flatnonzero(english))
        words.append(np.full(int(english.sum()), self.n_words))
        row, word = np.concatenate(rows), np.concatenate(words)
        shape = (n, self.n_words + 1)
        counts = sparse.coo_matrix((np.ones(len(row)), (row, word)), shape=shape).tocsr()
        return Websites(counts, y)

    @cached_property
    def _background(self) -> list[tuple[IntArray, FloatArray]]:
        half = self.n_words // 2
        rng = np.random.default_rng([self.seed, 0])
        return [(offset + rng.permutation(half), _zipf(half)) for offset in (0, half)]

    @cached_property
    def _themes(self) -> list[tuple[IntArray, FloatArray]]:
        return self._subjects(self.themes, 150, 1)

    @cached_property
    def _platform(self) -> list[tuple[IntArray, FloatArray]]:
        return self._subjects(1, self.platform_words, 2)

    @cached_property
    def _kinds(self) -> list[tuple[IntArray, FloatArray]]:
        return self._subjects(self.kinds, self.kind_words, 3)

    def _subjects(self, many: int, size: int, stream: int) -> list[tuple[IntArray, FloatArray]]:
        """Words of each subject in both languages, from the commoner tenth to half of the vocabulary."""
        rng = np.random.default_rng([self.seed, stream])
        half = self.n_words // 2
        tables = []
        for _ in range(many):
            for words, _p in self._background:
                chosen = rng.choice(words[half // 200 : half // 4], size, replace=False)
                tables.append((chosen, _zipf(size, 20.0)))
        return tables


def _zipf(size: int, offset: float = 3.0) -> FloatArray:
    """Cumulative probabilities of words by rank, each in proportion to 1 / (rank + 2)."""
    weight = 1.0 / (np.arange(size) + offset)
    return np.cumsum(weight) / weight.sum()


def _draw_words(
    amount: IntArray,
    source: IntArray,
    tables: list[tuple[IntArray, FloatArray]],
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """`amount` words for each website, from the table of its source: (rows, words)."""
    rows, words = [], []
    for number, (vocabulary, cumulative) in enumerate(tables):
        own = np.flatnonzero(source == number)
        row = np.repeat(own, amount[own])
        rows.append(row)
        words.append(
            vocabulary[
                np.minimum(np.searchsorted(cumulative, rng.random(len(row))), len(vocabulary) - 1)
            ]
        )
    return np.concatenate(rows), np.concatenate(words)
