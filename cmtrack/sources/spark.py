"""Source for Spark: Python on the executors runs the kernel and returns a tally per partition."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from cmtrack._lazy import cached_property
from cmtrack.sources.batches import Work, packed_sum
from cmtrack.sources.source import Cluster, kind_of

FAN_IN = 16
"""Number of tallies that one task adds up before it sends the sum to the driver."""


def opened(table: Any) -> SparkCluster | None:
    """Open a PySpark data frame; frames of Spark Connect are also supported."""
    if kind_of(table) == ("pyspark", "DataFrame"):
        return SparkCluster(table)
    return None


class SparkCluster(Cluster):
    """Partitions of a PySpark data frame."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of all columns; null if Arrow has no matching type."""
        from pyspark.sql.pandas.types import to_arrow_type

        fields = []
        for field in self.frame.schema.fields:
            try:
                kind = to_arrow_type(field.dataType)
            except Exception:  # Arrow has no type for some columns, such as Spark ML vectors
                kind = pa.binary()
            fields.append(pa.field(field.name, kind))
        return pa.schema(fields)

    def tallies(self, work: Work) -> Iterable[Any]:
        """Return tallies; if there are many partitions, executors first add them up in a tree."""
        quoted = ["`" + name.replace("`", "``") + "`" for name in work.columns.names]
        chosen = self.frame.select(*quoted)
        tallies = chosen.mapInArrow(_one_row(work.packed), "tally binary")
        n_partitions = _count_partitions(chosen)
        while n_partitions > FAN_IN:
            n_partitions = math.ceil(n_partitions / FAN_IN)
            tallies = tallies.repartition(n_partitions).mapInArrow(_one_row(_sum), "tally binary")
        try:
            return [row.tally for row in tallies.collect()]
        except Exception as error:
            missing = re.search(r"No module named '([\w.]+)'", str(error))
            if missing is None:
                raise
            raise RuntimeError(
                "cmtrack must be installed where Spark's workers run Python, but they have no "
                f"module {missing[1]!r}: install cmtrack in their environment, ship an "
                "environment with spark.archives, or set PYSPARK_PYTHON to a Python that has "
                "it (sys.executable, if Spark runs on this machine)"
            ) from error


def _one_row(
    count: Callable[[Iterable[pa.RecordBatch]], bytes | None],
) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that yields at most one row for each partition."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = count(batches)
        if tally is not None:
            yield pa.RecordBatch.from_arrays([pa.array([tally], pa.binary())], names=["tally"])

    return run


def _sum(batches: Iterable[pa.RecordBatch]) -> bytes | None:
    packed = [value.as_py() for batch in batches for value in batch.column(0)]
    if not packed:  # a repartition can create empty partitions
        return None
    return packed_sum(packed)


def _count_partitions(frame: Any) -> int:
    try:
        return int(frame.rdd.getNumPartitions())
    except Exception:  # Spark Connect has no RDDs; assume enough for one level of the tree
        return FAN_IN**2
