"""Conversion of arrays and tables to plain data for JSON, and back."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cmtrack import untrusted
from cmtrack.statistics.counting import Counts, SparseCounts
from cmtrack.statistics.records import Record

_PLAIN_SIZE = 512
"""Maximum number of elements in an array that is stored as a list, which people can read."""
_WHOLE_TABLE = 1 << 20
"""Maximum number of cells in a table that is stored with its zeros."""
MAX_ARRAYS = 1 << 30
"""Maximum bytes of one array, and of all arrays whose size is not quadratic in the classes."""
LARGEST_NUMBER = 1e100
"""Largest absolute value in an array from a file; the square of this number is finite."""


def encode_array(array: npt.NDArray[Any]) -> Any:
    """Encode small arrays as nested lists, large ones as compressed little-endian bytes.

    Integers are stored under "planes", with the lowest bytes of all numbers first, then the next
    bytes. This order makes the compressed data a third smaller.
    """
    if array.size <= _PLAIN_SIZE:
        return array.tolist()
    if array.dtype.kind == "i":
        kind = "<i8"
        form = "planes"
        numbers = np.ascontiguousarray(array, dtype=kind).reshape(-1, 1).view(np.uint8).T
    else:
        kind = "<f8"
        form = "zlib"
        numbers = np.ascontiguousarray(array, dtype=kind)
    packed = zlib.compress(numbers.tobytes(), 6)
    text = base64.b64encode(packed).decode("ascii")
    return {"dtype": kind, "shape": list(array.shape), form: text}


def encode_table(table: SparseCounts) -> Any:
    """Encode counts that may be mostly 0; for large tables only the non-zero cells are stored."""
    if math.prod(table.shape) <= _WHOLE_TABLE:
        return encode_array(table.array())
    steps = np.diff(table.places, prepend=0)
    return {
        "shape": list(table.shape),
        "steps": encode_array(steps),
        "sums": encode_array(table.sums),
    }


def decode_table(data: Any, expected: tuple[int | None, ...]) -> SparseCounts:
    """Read a table encoded by :func:`encode_table`."""
    if isinstance(data, list) or "steps" not in data:
        return SparseCounts.of_array(decode_counts(data, expected))
    untrusted.array_bytes(data["shape"][:-1], MAX_ARRAYS)
    shape = tuple(data["shape"])
    _check_shape(shape, expected)
    places = decode_counts(data["steps"], (None,)).cumsum()
    sums = decode_counts(data["sums"], (None,))
    if (
        places.dtype.kind != "i"
        or len(places) != len(sums)
        or not (places[1:] > places[:-1]).all()
        or not ((places >= 0) & (places < math.prod(shape))).all()
        or not sums.all()
    ):
        raise ValueError("a table must have counts above 0 at ascending positions inside its shape")
    return SparseCounts(shape, places, sums)


def decode_counts(data: Any, expected: tuple[int | None, ...] | None = None) -> npt.NDArray[Any]:
    """Read an array of counts or sums of weights, which must not be negative."""
    array = decode_array(data, expected)
    if array.size and array.min() < 0:
        raise ValueError(f"counts must not be negative, got {array.min()}")
    return array


def decode_array(data: Any, expected: tuple[int | None, ...] | None = None) -> npt.NDArray[Any]:
    """Read an array encoded by :func:`encode_array`.

    ``expected``: the required shape, with None for any length. Data with a different shape are not
        unpacked.
    """
    array = _numbers(data, expected)
    if array.dtype.kind == "f" and not (np.abs(array) <= LARGEST_NUMBER).all():
        raise ValueError(
            f"an array must contain numbers from -{LARGEST_NUMBER:g} to {LARGEST_NUMBER:g}"
        )
    return array


def _numbers(data: Any, expected: tuple[int | None, ...] | None) -> npt.NDArray[Any]:
    """Read an array that may contain negative and infinite numbers."""
    if isinstance(data, list):
        array = np.array(data)
        if array.dtype.kind not in "if":
            raise ValueError(f"an array must contain numbers, got {array.dtype}")
        _check_shape(array.shape, expected)
        return array.astype(np.int64 if array.dtype.kind == "i" else np.float64)
    kind = data["dtype"]
    # The size is checked first, because an invalid shape may not be convertible to a tuple.
    size = untrusted.array_bytes(data["shape"], MAX_ARRAYS)
    if kind not in ("<i8", "<f8"):
        raise ValueError(f"an array of the type {kind!r:.20} cannot be read")
    shape = tuple(data["shape"])
    _check_shape(shape, expected)
    if "planes" in data:
        planes = untrusted.unpacked(data["planes"], size)
        unpacked = np.frombuffer(planes, dtype=np.uint8).reshape(8, -1).T.tobytes()
    else:
        unpacked = untrusted.unpacked(data["zlib"], size)
    # A copy is writable and has the byte order of this machine.
    return np.frombuffer(unpacked, dtype=kind).reshape(shape).astype(kind[1:])


def _check_shape(shape: tuple[int, ...], expected: tuple[int | None, ...] | None) -> None:
    if expected is None:
        return
    if len(shape) == len(expected):
        pairs = zip(shape, expected, strict=True)
        if all(wanted is None or n == wanted for n, wanted in pairs):
            return
    listed = ", ".join("any" if wanted is None else str(wanted) for wanted in expected)
    raise ValueError(f"an array must have shape ({listed}), got {shape}")


@dataclass(frozen=True, eq=False)
class Table(Record):
    """Counts in a table that is mostly empty."""

    table: SparseCounts

    def to_plain(self) -> Any:
        """Return the table as plain data."""
        return encode_table(self.table)

    @property
    def counts(self) -> Counts:
        """The whole table, as a new array."""
        return self.table.array()

    def __add__(self, other: Self) -> Self:
        """Merge the counts of disjoint sets of rows."""
        return type(self)(self.table + other.table)


def encode_fields(record: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Encode arrays of a record by name, by default all; empty and absent arrays are skipped."""
    arrays = {name: getattr(record, name) for name in names or record.__dataclass_fields__}
    return {
        name: encode_array(array)
        for name, array in arrays.items()
        if array is not None and array.size
    }


def decode_fields(
    data: Any, shapes: Mapping[str, tuple[int | None, ...]], signed: Iterable[str] = ()
) -> dict[str, npt.NDArray[Any]]:
    """Read arrays encoded by :func:`encode_fields`; only ``signed`` arrays may be negative."""
    arrays = {}
    for name, shape in shapes.items():
        decode = decode_array if name in signed else decode_counts
        arrays[name] = decode(data[name], shape)
    return arrays


def part(read: Callable[[Any, Any], Any], default: Any = None) -> Any:
    """Declare a record's field, which a function of (data, labels) reads from plain data."""
    return field(default=default, metadata={"read": read})


def part_by_size(read: Callable[[Any, int], Any]) -> Any:
    """Declare a record's field, which a function of (data, number of classes) reads from data."""
    return part(lambda data, labels: read(data, len(labels)))
