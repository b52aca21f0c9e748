"""Cells of decision values, which have no bounds: float64 numbers without their last bits.

A float64 is a sign, an exponent and 52 bits of a mantissa. Without the last b bits of the mantissa
it is the end that is nearer to 0 of a cell whose width is a share of its values: values around 1e10
that differ by 1 fall into as many cells as values around 0. Cells of fewer bits are unions of cells
of more, so that counts of any two numbers of bits can be merged, and the number that is dropped
depends on the values alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.inputs import FloatArray

CELLS = 1 << 12
"""Largest number of cells, which suffices: without a mantissa there are 4,093 finite ones."""
MANTISSA_BITS = 52
_SIZE = np.int64(2**63 - 1)
"""All bits of a float64 but that of the sign."""
_MOST_CODES = 1 << 20
"""Range of cells that a table is made of: of up to 8 bits of the mantissa it has all."""
LARGEST = 1e100
"""Size of the largest decision value: files hold no larger number (``plain.LARGEST_NUMBER``)."""


def without_last_bits(values: npt.NDArray[Any], bits: int) -> FloatArray:
    """Set the last bits of values to 0, which moves them towards 0; -0.0 becomes 0.0."""
    if bits == 0:
        return values
    mask = np.int64(-1) << np.int64(bits)
    cells: FloatArray = (values.view(np.int64) & mask).view(np.float64) + 0.0
    return cells


def fewest_dropped_bits(values: FloatArray, most: int) -> int:
    """Return the smallest number of last bits to drop that leaves at most ``most`` values.

    ``values``, shape (n,), ascending.
    """
    low = 0
    high = MANTISSA_BITS
    while low < high:
        middle = (low + high) // 2
        n_steps = np.count_nonzero(np.diff(without_last_bits(values, middle)))
        if n_steps < most:
            high = middle
        else:
            low = middle + 1
    return low


def distinct_cells(values: FloatArray, bits: int) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Return the distinct values without their last bits, ascending, and each value's place, (n,).

    Integers that are ordered like the values number the cells, and a table finds their places.
    """
    # Without their sign the bits of floats are integers in the order of the floats' sizes.
    sizes = values.view(np.int64) & _SIZE
    sizes >>= bits
    codes = np.where(values < 0, -sizes, sizes)
    low = int(codes.min(initial=0))
    width = int(codes.max(initial=0)) - low + 1
    if width > _MOST_CODES:
        return np.unique(without_last_bits(values, bits), return_inverse=True)
    codes -= low
    is_present = np.zeros(width, dtype=np.bool_)
    is_present[codes] = True
    present = np.flatnonzero(is_present)
    place_of_code = np.zeros(width, dtype=np.int32)
    place_of_code[present] = np.arange(len(present))
    # The bits of a cell, with zeros for those that were dropped, are its value.
    cells: FloatArray = (np.abs(present + low) << bits).view(np.float64)
    cells[present + low < 0] *= -1
    return cells, place_of_code[codes]


def placed_by_old(values: FloatArray) -> FloatArray:
    """Return decision values as cmtrack 0.2 put them between 0 and 1."""
    return 0.5 + 0.5 * values / (1 + np.abs(values))


def given_to_old(placed: FloatArray) -> FloatArray:
    """Return the decision values that :func:`placed_by_old` put between 0 and 1."""
    signed = 2 * np.clip(placed, 0.0, 1.0) - 1
    with np.errstate(divide="ignore"):
        values = signed / (1 - np.abs(signed))
    return np.clip(values, -LARGEST, LARGEST)
