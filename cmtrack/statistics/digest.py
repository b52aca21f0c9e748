"""A digest of the evaluated labels that says whether two runs were judged on the same rows.

It depends on every label and its place, and merges by concatenation: the digest of two shards put together
is the digest of the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.statistics.inputs import IntArray

_BASE = 0x9E3779B97F4A7C15  # odd, so its powers never vanish modulo 2**64
_MODULUS = 1 << 64
_BLOCK = 1 << 16


@dataclass(frozen=True)
class LabelDigest:
    """A polynomial hash, modulo 2**64, over the sequence of labels.

    Attributes
    ----------
    value : int
        The hash of the sequence.
    rows : int
        Its length.
    """

    value: int
    rows: int

    @classmethod
    def from_codes(cls, codes: IntArray, labels: Sequence[Label]) -> LabelDigest:
        """The digest of the labels numbered by ``codes`` (n,)."""
        return cls.from_hashes(label_hashes(labels)[codes])

    @classmethod
    def from_hashes(cls, hashes: npt.NDArray[np.uint64]) -> LabelDigest:
        """The digest of a sequence of things with these hashes (n,)."""
        powers = np.cumprod(np.full(min(_BLOCK, len(hashes)), _BASE, dtype=np.uint64))
        value = 0
        for start in range(0, len(hashes), _BLOCK):
            part = hashes[start : start + _BLOCK]
            block = int((part * powers[: len(part)]).sum(dtype=np.uint64))
            value = (value + block * pow(_BASE, start, _MODULUS)) % _MODULUS
        return cls(value, len(hashes))

    def __add__(self, other: LabelDigest) -> LabelDigest:
        shifted = other.value * pow(_BASE, self.rows, _MODULUS)
        return LabelDigest((self.value + shifted) % _MODULUS, self.rows + other.rows)

    def __str__(self) -> str:
        return f"{self.value:016x}-{self.rows}"

    @classmethod
    def parse(cls, text: str) -> LabelDigest:
        """Read what ``str`` wrote."""
        value, _, rows = text.partition("-")
        return cls(int(value, 16), int(rows))


def label_hashes(labels: Sequence[Label]) -> npt.NDArray[np.uint64]:
    """The hash of each label, shape (K,)."""
    return np.array([_hash(label) for label in labels], dtype=np.uint64)


def _hash(label: Label) -> int:
    return int.from_bytes(
        hashlib.blake2b(str(label).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )
