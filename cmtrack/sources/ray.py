"""Source for Ray Data: each of Ray's tasks runs the kernel on a block and returns a tally."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from cmtrack.sources.batches import Work
from cmtrack.sources.source import Cluster, kind_of


def opened(table: Any) -> RayCluster | None:
    """Open a Ray data set."""
    if kind_of(table) in (("ray", "Dataset"), ("ray", "MaterializedDataset")):
        return RayCluster(table)
    return None


class RayCluster(Cluster):
    """Blocks of a Ray data set."""

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns; null if Arrow has no matching type."""
        schema = self.data.schema()
        fields = []
        for name, kind in zip(schema.names, schema.types, strict=True):
            if not isinstance(kind, pa.DataType):
                kind = pa.null()
            fields.append(pa.field(name, kind))
        return pa.schema(fields)

    def tallies(self, work: Work) -> Iterable[Any]:
        """Return the tally of each block, in the order in which Ray finishes them."""

        def count(block: pa.Table) -> pa.Table:
            tally = pa.array([work.packed(block.to_batches())], pa.large_binary())
            return pa.table({"tally": tally})

        chosen = self.data.select_columns(work.columns.names)
        tallies = chosen.map_batches(
            count, batch_format="pyarrow", batch_size=None, zero_copy_batch=True
        )
        return (row["tally"] for row in tallies.iter_rows())
