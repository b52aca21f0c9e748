"""A digest of the evaluated labels, to check whether two runs were evaluated on the same rows.

The digest of a sequence depends on every label and its position. A table has no order, so its
digest depends on the number of rows of each label and, if rows have ids, on the ids. Both kinds can
be merged: the digests of two shards add up to the digest of all rows.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.grouping.step import same_label
from cmtrack.statistics.counting import blocks
from cmtrack.statistics.inputs import IntArray

_BASE = 0x9E3779B97F4A7C15
"""An odd number, so that its powers are never 0 modulo 2**64."""
_MODULUS = 1 << 64
_BLOCK = 1 << 16


@dataclass(frozen=True)
class LabelDigest:
    """A hash, modulo 2**64, of a sequence of labels or of rows without an order.

    Attributes
    ----------
    value : int
        The hash, which is a polynomial over the sequence, or a sum over rows without an order.
    rows : int
        Number of rows.
    content : int, optional
        The sum over the rows of a sequence, which is used when it is merged with rows without an
        order. None if the rows have no order.
    stored : LabelDigest, optional
        The digest in a file of cmtrack 0.2, which hashed booleans and floats as texts. Stored rows
        are checked against this digest, which is written to the file again.

    Examples
    --------
    >>> from cmtrack.statistics import LabelDigest
    >>> parts = [LabelDigest.from_codes(codes, ["no", "yes"]) for codes in ([0, 1], [1, 1, 0])]
    >>> parts[0] + parts[1] == LabelDigest.from_codes([0, 1, 1, 1, 0], ["no", "yes"])
    True
    """

    value: int
    rows: int
    content: int | None = None
    stored: LabelDigest | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_codes(cls, codes: IntArray, labels: Sequence[Label]) -> LabelDigest:
        """Return the digest of the labels numbered by ``codes`` (n,)."""
        return cls.from_hashes(label_hashes(labels)[codes])

    @classmethod
    def from_stored(
        cls, stored: LabelDigest, rows: IntArray | None, labels: Sequence[Label]
    ) -> LabelDigest:
        """Return the digest of an evaluation of booleans or floats stored by cmtrack 0.2.

        Without the rows, only the number of rows of each label is known, so the digest has no
        order. If the numbers are also unknown, the digest differs from every other digest, and the
        rows must be evaluated again.

        Parameters
        ----------
        stored : LabelDigest
        rows : ndarray of shape (K,), int64, optional
            Number of rows of each label.
        labels : sequence of length K
        """
        if rows is None:
            return replace(stored, stored=stored)
        return replace(cls.unordered(rows, labels), stored=stored)

    def is_of(self, codes: IntArray, labels: Sequence[Label]) -> bool:
        """Return whether the labels numbered by ``codes`` (n,) have this digest.

        The result is True for a digest without an order, which cannot be compared.
        """
        digest = self
        if self.stored is not None:
            digest = self.stored
            labels = list(map(str, labels))
        if not digest.ordered:
            return True
        return LabelDigest.from_codes(codes, labels).value == digest.value

    @classmethod
    def from_hashes(cls, hashes: npt.NDArray[np.uint64]) -> LabelDigest:
        """Return the digest of a sequence with the given hashes (n,).

        The digest is the sum of ``hashes[i] * _BASE**i``, so one multiplication shifts the digest
        of a shard.
        """
        powers = _powers()
        value = 0
        for rows in blocks(len(hashes), _BLOCK):
            part = hashes[rows]
            block = int(part @ powers[: len(part)])
            value = (value + block * pow(_BASE, rows.start, _MODULUS)) % _MODULUS
        return cls(value, len(hashes), int(hashes.sum(dtype=np.uint64)))

    @classmethod
    def unordered(
        cls, rows: IntArray, labels: Sequence[Label], powers: IntArray | None = None
    ) -> LabelDigest:
        """Return the digest of rows without an order.

        Without ids, equal digests only mean equal numbers of rows of each label. Different rows
        with the same counts have the same digest.

        Parameters
        ----------
        rows : ndarray of shape (K,), int64
            Number of rows of each label.
        labels : sequence of length K
        powers : ndarray of shape (K, P), int64, optional
            Sums of the powers of the ids over the rows of each label. With these sums, equal
            digests mean the same ids with the same labels.
        """
        if powers is None:
            return cls.unordered_each(rows[None], labels)[0]
        sums = np.column_stack((rows, powers)).T
        value = 0
        for power, sums_of_power in enumerate(sums):
            # Each power has different hashes, so that the sums of two powers cannot be exchanged.
            hashes = label_hashes([f"{power} {same_label(label)}" for label in labels])
            value += int((sums_of_power.astype(np.uint64) * hashes).sum(dtype=np.uint64))
        return cls(value % _MODULUS, int(rows.sum()))

    @classmethod
    def unordered_each(cls, rows: IntArray, labels: Sequence[Label]) -> list[LabelDigest]:
        """Return the digests of S sets of rows without ids.

        ``rows``, shape (S, K): number of rows of each label in each set.
        """
        values = (rows.astype(np.uint64) * label_hashes(labels)).sum(axis=1, dtype=np.uint64)
        return list(map(cls, values.tolist(), rows.sum(axis=1).tolist()))

    @property
    def outdated(self) -> bool:
        """True for a digest of cmtrack 0.2 that never equals another; see :meth:`from_stored`."""
        return self.stored is not None and self.stored.value == self.value

    @property
    def ordered(self) -> bool:
        """True for the digest of a sequence."""
        return self.content is not None

    def __add__(self, other: LabelDigest) -> LabelDigest:
        rows = self.rows + other.rows
        if self.content is None or other.content is None:
            value = self.content_only.value + other.content_only.value
            return LabelDigest(value % _MODULUS, rows)
        shifted = other.value * pow(_BASE, self.rows, _MODULUS)
        content = (self.content + other.content) % _MODULUS
        return LabelDigest((self.value + shifted) % _MODULUS, rows, content)

    @property
    def content_only(self) -> LabelDigest:
        """Digest of the same rows without an order."""
        if self.content is None:
            return self
        return LabelDigest(self.content, self.rows)

    def __str__(self) -> str:
        # MLflow accepts at most 36 characters.
        if self.content is None:
            return f"u.{self.rows}.{_text(self.value)}"
        return f"{self.rows}.{_text(self.content)}.{_text(self.value)}"

    def to_plain(self) -> str:
        """Return the digest as text; a digest stored by cmtrack 0.2 keeps its stored text."""
        return str(self if self.stored is None else self.stored)

    @classmethod
    def parse(cls, text: str) -> LabelDigest:
        """Read the text of a digest.

        Raises
        ------
        ValueError
            If the text is not a digest.
        """
        if "." not in text:
            # Earlier versions wrote a sequence without its content.
            value, _, rows = text.partition("-")
            return cls(int(value, 16), int(rows), 0)
        parts = text.split(".")
        if len(parts) != 3:
            raise ValueError(
                "a digest must be 'rows.content.value', or 'u.rows.value' without an order, got "
                f"{text!r}"
            )
        if parts[0] == "u":
            return cls(_number(parts[2]), int(parts[1]))
        return cls(_number(parts[2]), int(parts[0]), _number(parts[1]))


def _text(number: int) -> str:
    """Encode 64 bits as 11 characters."""
    return base64.urlsafe_b64encode(number.to_bytes(8, "big")).decode()[:11]


def _number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(f"{text}="), "big")


@cache
def _powers() -> npt.NDArray[np.uint64]:
    """Return the powers of the base for one block."""
    return np.cumprod(np.full(_BLOCK, _BASE, dtype=np.uint64), dtype=np.uint64)


def label_hashes(labels: Sequence[Label]) -> npt.NDArray[np.uint64]:
    """Return the hash of each label, shape (K,).

    A boolean or a whole float has the same hash as the integer with the same value.
    """
    texts = (str(same_label(label)).encode("utf-8", "surrogatepass") for label in labels)
    hashes = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64)
