"""Spark: the kernel runs in the executors' Python over Arrow batches, and one tally of each partition comes back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from cmtrack._lazy import cached_property
from cmtrack.sources.batches import Work, packed_sum
from cmtrack.sources.source import Cluster

FAN_IN = 16
"""Tallies that are added up by a task before they go to the driver."""


def opened(table: Any) -> SparkCluster | None:
    """The source of a frame of PySpark, also by Spark Connect."""
    from cmtrack.sources import kind_of

    return SparkCluster(table) if kind_of(table) == ("pyspark", "DataFrame") else None


class SparkCluster(Cluster):
    """Partitions of a frame."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and kinds of all columns; null for those that Arrow has no kind for."""
        from pyspark.sql.pandas.types import to_arrow_type

        fields = []
        for field in self.frame.schema.fields:
            try:
                kind = to_arrow_type(field.dataType)
            except Exception:  # a kind of its own, such as the vectors of Spark ML
                kind = pa.binary()
            fields.append(pa.field(field.name, kind))
        return pa.schema(fields)

    def tallies(self, work: Work) -> Iterable[Any]:
        """The tally of each partition; those of many are added up by the executors in a tree first."""
        chosen = self.frame.select(
            *("`" + name.replace("`", "``") + "`" for name in work.columns.names)
        )
        tallies = chosen.mapInArrow(_one(work.packed), "tally binary")
        n_parts = _partitions(chosen)
        while n_parts > FAN_IN:
            n_parts = -(-n_parts // FAN_IN)
            tallies = tallies.repartition(n_parts).mapInArrow(_one(_sum), "tally binary")
        try:
            return [row.tally for row in tallies.collect()]
        except Exception as error:
            lacking = re.search(r"No module named '([\w.]+)'", str(error))
            if lacking is None:
                raise
            raise RuntimeError(
                f"cmtrack must be installed where Spark's workers run Python, and they have no module "
                f"{lacking[1]!r}: install cmtrack in their environment, send one along by spark.archives, or set "
                "PYSPARK_PYTHON to a Python that has it (sys.executable, where Spark is on this machine)"
            ) from error


def _one(
    work: Callable[[Iterable[pa.RecordBatch]], bytes | None],
) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """The function that ``mapInArrow`` runs on a partition: one row comes back, or none."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = work(batches)
        if tally is not None:
            yield pa.RecordBatch.from_arrays([pa.array([tally], pa.binary())], names=["tally"])

    return run


def _sum(batches: Iterable[pa.RecordBatch]) -> bytes | None:
    packed = [value.as_py() for batch in batches for value in batch.column(0)]
    return packed_sum(packed) if packed else None


def _partitions(frame: Any) -> int:
    try:
        return int(frame.rdd.getNumPartitions())
    except Exception:  # Spark Connect does not say
        return FAN_IN**2
