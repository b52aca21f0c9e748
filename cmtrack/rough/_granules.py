"""Functions that count granules (sets of rows with identical attribute values) by class."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.statistics.attributes import attribute_columns, distinct, encode_attribute
from cmtrack.statistics.counting import Counts, count_codes
from cmtrack.statistics.inputs import IntArray, align_rows
from cmtrack.statistics.labels import encode_labels

MAX_CELLS = 100_000_000

Values = tuple[tuple[Any, ...], ...]


def count_granules(
    data: Any,
    y: Any,
    attributes: Sequence[Hashable] | None,
    labels: Sequence[Label] | None,
    what: str = "y",
) -> tuple[Counts, tuple[Label, ...], tuple[Hashable, ...], Values]:
    """Count granules by class; return counts (S, K), labels, attribute names and values.

    Granules are in the order in which they first appear in the rows. Each granule's attribute
    values are stored as a tuple.

    ``what``: the name to use for ``y`` in error messages.
    """
    data, y = align_rows({"X": data, what: y}).values()
    columns = attribute_columns(data, attributes)
    order, numbered = encode_labels({what: y}, labels)
    classes = numbered[what]
    encoded = {name: encode_attribute(name, column) for name, column in columns.items()}
    for name, (codes, _) in encoded.items():
        if len(codes) != len(classes):
            lengths = f"{len(codes)} in {name!r} and {len(classes)} in {what}"
            raise ValueError(f"X must have one row per label, got {lengths}")
    granule = np.zeros(len(classes), dtype=np.int64)
    size = 1
    for codes, values in encoded.values():
        pairs, granule = distinct(granule * len(values) + codes)
        size = len(pairs)
    n_classes = len(order)
    if size * n_classes > MAX_CELLS:
        raise ValueError(
            f"a granule table must have at most {MAX_CELLS:,} cells, got {size:,} granules by "
            f"{n_classes} classes: choose fewer attributes, or put their values into groups"
        )
    granule, first = _by_appearance(granule, size)
    counts = count_codes(granule * n_classes + classes, size * n_classes)
    columns_of_values = [
        [values[code] for code in codes[first].tolist()] for codes, values in encoded.values()
    ]
    granules = tuple(zip(*columns_of_values, strict=True))
    return counts.reshape(size, n_classes), order, tuple(encoded), granules


def _by_appearance(codes: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Renumber codes in the order in which they appear, and return the first row of each code."""
    first = np.zeros(size, dtype=np.int64)
    # Row numbers are written from the last row to the first, so each code keeps its first row.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(first)
    return np.argsort(order)[codes], first[order]
