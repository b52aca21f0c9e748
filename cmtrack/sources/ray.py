"""Ray Data: the kernel runs in Ray's tasks over blocks of Arrow, and one tally of each block comes back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from cmtrack.sources.batches import Work
from cmtrack.sources.source import Cluster


def opened(table: Any) -> RayCluster | None:
    """The source of a data set of Ray."""
    from cmtrack.sources import kind_of

    package, name = kind_of(table)
    return (
        RayCluster(table)
        if package == "ray" and name in ("Dataset", "MaterializedDataset")
        else None
    )


class RayCluster(Cluster):
    """Blocks of a data set."""

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    def schema(self) -> pa.Schema:
        """Names and kinds of all columns; null for those that Arrow has no kind for."""
        fields = self.data.schema()
        kinds = [kind if isinstance(kind, pa.DataType) else pa.null() for kind in fields.types]
        return pa.schema(
            [pa.field(name, kind) for name, kind in zip(fields.names, kinds, strict=True)]
        )

    def tallies(self, work: Work) -> Iterable[Any]:
        """The tally of each block, as Ray finishes them."""

        def count(block: pa.Table) -> pa.Table:
            return pa.table(
                {"tally": pa.array([work.packed(block.to_batches())], pa.large_binary())}
            )

        chosen = self.data.select_columns(work.columns.names)
        tallies = chosen.map_batches(
            count, batch_format="pyarrow", batch_size=None, zero_copy_batch=True
        )
        return (row["tally"] for row in tallies.iter_rows())
