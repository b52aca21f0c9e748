"""Cells for decision values, which are unbounded: float64 numbers without their last bits.

A float64 has a sign, an exponent and a mantissa of 52 bits. Setting the last b bits of the mantissa
to 0 gives the edge of the value's cell that is closer to 0. The width of a cell is roughly
proportional to the values in it. Cells with fewer bits are unions of cells with more bits, so
counts with different numbers of bits can be merged. The number of dropped bits depends only on the
values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.inputs import FloatArray

CELLS = 1 << 12
"""Maximum number of cells; without any bits of the mantissa, there are 4,093 finite cells."""
MANTISSA_BITS = 52
_SIZE = np.int64(2**63 - 1)
"""All bits of a float64 except the sign bit."""
_MOST_CODES = 1 << 20
"""Maximum range of codes for a lookup table; it covers cells with up to 8 mantissa bits."""
LARGEST = 1e100
"""Largest absolute decision value, the same as for numbers in files (``plain.LARGEST_NUMBER``)."""


def without_last_bits(values: npt.NDArray[Any], bits: int) -> FloatArray:
    """Set the last bits of each value to 0, which rounds towards 0; -0.0 becomes 0.0."""
    if bits == 0:
        return values
    mask = np.int64(-1) << np.int64(bits)
    cells: FloatArray = (values.view(np.int64) & mask).view(np.float64) + 0.0
    return cells


def fewest_dropped_bits(values: FloatArray, most: int) -> int:
    """Return the least number of last bits to drop so that at most ``most`` values remain.

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
    """Return the ascending distinct cells of values, and the index of each value's cell (n,).

    Each cell has an integer code, and the codes have the same order as the values. A lookup table
    contains the index of each code.
    """
    # Without the sign, the bits of floats are integers in the order of the absolute values.
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
    # The value of a cell consists of its bits, with zeros for the dropped bits.
    cells: FloatArray = (np.abs(present + low) << bits).view(np.float64)
    cells[present + low < 0] *= -1
    return cells, place_of_code[codes]


def placed_by_old(values: FloatArray) -> FloatArray:
    """Map decision values to [0, 1] in the same way as cmtrack 0.2."""
    return 0.5 + 0.5 * values / (1 + np.abs(values))


def given_to_old(placed: FloatArray) -> FloatArray:
    """Invert :func:`placed_by_old`: return the original decision values."""
    signed = 2 * np.clip(placed, 0.0, 1.0) - 1
    with np.errstate(divide="ignore"):
        values = signed / (1 - np.abs(signed))
    return np.clip(values, -LARGEST, LARGEST)
