"""Source for Dask: the workers run the kernel and add up their tallies in a tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from cmtrack.sources.batches import Work, packed_sum
from cmtrack.sources.pandas import as_arrow, schema_of
from cmtrack.sources.source import Cluster, kind_of

FAN_IN = 8
"""Number of tallies that one task of the tree adds up."""


def opened(table: Any) -> DaskCluster | None:
    """Open a Dask data frame."""
    if kind_of(table) in (("dask", "DataFrame"), ("dask_expr", "DataFrame")):
        return DaskCluster(table)
    return None


class DaskCluster(Cluster):
    """Partitions of a Dask data frame."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns; null for columns of Python objects."""
        return schema_of(self.frame._meta)

    def categories(self, name: str) -> list[Any] | None:
        """Return the categories of a categorical column, if they are known."""
        column = self.frame[name]
        if hasattr(column.dtype, "categories") and column.cat.known:
            return list(column.cat.categories)
        return None

    def tallies(self, work: Work) -> Iterable[Any]:
        """Return one tally, the sum over all partitions."""
        from dask import delayed

        count = delayed(_count)
        add = delayed(packed_sum)
        partitions = self.frame[work.columns.names].to_delayed()
        tallies = [count(work, partition) for partition in partitions]
        while len(tallies) > 1:
            tallies = [
                add(tallies[start : start + FAN_IN]) for start in range(0, len(tallies), FAN_IN)
            ]
        return [tally.compute() for tally in tallies]


def _count(work: Work, partition: Any) -> bytes:
    return work.packed(as_arrow(partition).to_batches())
