"""Example 1: partitions by sets of attributes, and tables with their sums."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy.typing as npt
import pandas as pd

from cmtrack import granule_table
from rough.published import ATTRIBUTES, PARTITION, TABLE_3

Partition = tuple[tuple[int, ...], ...]


def partition(attributes: Sequence[str]) -> Partition:
    """The objects of Table 3 that agree in the attributes, by the product: each object is a class of its own there."""
    table = granule_table(TABLE_3, list(TABLE_3.index), attributes=list(attributes))
    return tuple(
        tuple(label for label, n in zip(table.labels, row, strict=True) if n)
        for row in table.counts.tolist()
    )


def partition_table() -> pd.DataFrame:
    """Every set of attributes with its partition, whether it is the published one, and its quality."""
    rows = []
    for size in range(1, len(ATTRIBUTES) + 1):
        for names in combinations(ATTRIBUTES, size):
            parts = partition(names)
            rows.append({"attributes": ", ".join(names), "partition": _shown(parts)})
            rows[-1]["as published"] = "yes" if set(parts) == set(PARTITION) else "no"
            rows[-1]["gamma"] = (
                granule_table(TABLE_3, TABLE_3["d"], attributes=list(names)).approximations().gamma
            )
    return pd.DataFrame(rows)


def with_sums(counts: npt.NDArray, index: Sequence[str]) -> pd.DataFrame:
    """Counts by class with their sums, named like the source's tables."""
    frame = pd.DataFrame(counts, columns=["Y_1", "Y_2"])
    frame["Sum"] = frame.sum(axis=1)
    frame.loc[len(frame)] = frame.sum()
    frame.index = pd.Index([*index, "Sum"], name="")
    return frame


def beside_table(ours: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Cells ``3 (3)``: ours, published; † where they differ."""
    rows = [
        [f"{a} ({b})" + ("" if a == b else " †") for a, b in zip(mine, theirs, strict=True)]
        for mine, theirs in zip(
            ours.to_numpy().tolist(), published.to_numpy().tolist(), strict=True
        )
    ]
    index = pd.Index(published.index, name="granule or class")
    return pd.DataFrame(rows, index=index, columns=published.columns)


def _shown(parts: Partition) -> str:
    return " ".join("{" + ",".join(map(str, part)) + "}" for part in parts)
