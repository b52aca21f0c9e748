"""Random granule tables, and classifiers with and without condition 4.1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmtrack import GranuleTable

Classifier = tuple[str, ...]
KINDS = ("any with (4.1)", "most frequent class", "breaks (4.1)")


def table_of(counts: npt.ArrayLike) -> GranuleTable:
    """A granule table of counts (granules, classes) with the classes Y_1, Y_2, ..."""
    table = np.asarray(counts, dtype=np.int64)
    labels = tuple(f"Y_{k + 1}" for k in range(table.shape[1]))
    return GranuleTable(table, labels, ("granule",), tuple((s,) for s in range(len(table))))


def random_table(rng: np.random.Generator) -> GranuleTable:
    """2 to 4 classes and 2 to 8 granules of up to 6 samples per class, many cells empty, no class and granule."""
    while True:
        granules, classes = int(rng.integers(2, 9)), int(rng.integers(2, 5))
        counts = rng.integers(1, 7, (granules, classes)) * (
            rng.random((granules, classes)) < rng.uniform(0.2, 0.9)
        )
        if counts.any(axis=1).all() and counts.any(axis=0).all():
            return table_of(counts)


def random_classifier(
    table: GranuleTable, kind: str, rng: np.random.Generator
) -> Classifier | None:
    """A classifier of granules of one of the :data:`KINDS`; None where the table has none."""
    if kind == "most frequent class":
        return tuple(map(str, table.majority()))
    meets = table.counts > 0
    if kind == "any with (4.1)":
        return tuple(str(table.labels[rng.choice(np.flatnonzero(row))]) for row in meets)
    if meets.all():
        return None
    free = rng.integers(len(table.labels), size=len(meets))
    if meets[np.arange(len(meets)), free].all():
        granule = rng.choice(np.flatnonzero(~meets.all(axis=1)))
        free[granule] = rng.choice(np.flatnonzero(~meets[granule]))
    return tuple(str(table.labels[k]) for k in free)
