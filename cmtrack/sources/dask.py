"""Dask: the kernel runs on the workers over their partitions, and their tallies are added up there in a tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from cmtrack.sources.batches import Work, packed_sum
from cmtrack.sources.pandas import as_arrow, schema_of
from cmtrack.sources.source import Cluster

FAN_IN = 8
"""Tallies that are added up by a task."""


def opened(table: Any) -> DaskCluster | None:
    """The source of a data frame of Dask."""
    from cmtrack.sources import kind_of

    return (
        DaskCluster(table)
        if kind_of(table) in (("dask", "DataFrame"), ("dask_expr", "DataFrame"))
        else None
    )


class DaskCluster(Cluster):
    """Partitions of a frame."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def schema(self) -> pa.Schema:
        """Names and kinds of all columns; null for columns of objects."""
        return schema_of(self.frame._meta)

    def categories(self, name: str) -> list[Any] | None:
        """The categories of a categorical column, where they are known."""
        column = self.frame[name]
        are_known = hasattr(column.dtype, "categories") and column.cat.known
        return list(column.cat.categories) if are_known else None

    def tallies(self, work: Work) -> Iterable[Any]:
        """The sum of the tallies of all partitions."""
        from dask import delayed

        count, add = delayed(_count), delayed(packed_sum)
        tallies = [count(work, part) for part in self.frame[work.columns.names].to_delayed()]
        while len(tallies) > 1:
            tallies = [
                add(tallies[start : start + FAN_IN]) for start in range(0, len(tallies), FAN_IN)
            ]
        return [tally.compute() for tally in tallies]


def _count(work: Work, part: Any) -> bytes:
    return work.packed(as_arrow(part).to_batches())
