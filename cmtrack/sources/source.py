"""The interface of a source of rows: streams of batches that are counted here, and clusters that count there.

A source of its own is a class of about thirty lines: how its columns are called, and either the batches of some of
them (:class:`Stream`) or how each of its partitions is counted where it is (:class:`Cluster`).
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from cmtrack.sources.batches import Work, unpacked
from cmtrack.sources.columns import Columns
from cmtrack.sources.texts import KINDS
from cmtrack.statistics.kernel import Tally
from cmtrack.statistics.score_pass import n_threads

Watch = Callable[[int], object]
"""Is told how many rows were counted since it was last told."""


class Source(ABC):
    """A table of rows: its columns, and the counting of its rows.

    Attributes
    ----------
    n_rows : int, optional
        How many rows there are, where that is known without reading them.

    Examples
    --------
    >>> from cmtrack.sources import Cluster, Source, Stream
    >>> issubclass(Stream, Source), issubclass(Cluster, Source)
    (True, True)
    """

    n_rows: int | None = None

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Names and kinds of all columns; null where nothing tells the kind."""

    def categories(self, name: str) -> list[Any] | None:
        """The values of a column that someone put in an order; None for any other column."""
        return None

    def with_kinds(self, columns: Columns, label_kinds: Collection[type] = KINDS) -> Source:
        """The same rows; a source of texts converts labels, ids and segments to kinds that keep every text.

        ``label_kinds``: the kinds that labels may have.
        """
        return self

    @abstractmethod
    def count(self, work: Work, watch: Watch) -> Tally:
        """Count the rows."""


class Stream(Source):
    """Rows that come to this process batch by batch, and are counted by a thread for each core.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack import evaluate_table
    >>> from cmtrack.sources import Stream
    >>> class Repeated(Stream):
    ...     schema = pa.schema({"y": pa.int64(), "z": pa.int64()})
    ...     def batches(self, names):
    ...         return (pa.record_batch({"y": [0, 1], "z": [0, 0]}).select(names) for _ in range(1_000))
    >>> evaluate_table(Repeated(), y_true="y", y_pred="z", progress=False).confusion_matrix.counts.tolist()
    [[1000, 0], [1000, 0]]
    """

    @abstractmethod
    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """The named columns; asked for again for each reading."""

    def count(self, work: Work, watch: Watch) -> Tally:
        """Count the rows; no more batches are in memory than there are threads."""
        batches = _Shared(work.whole(self.batches(work.columns.names)))

        def tally(_: int) -> Tally:
            counted = Tally(work.kernel)
            try:
                for batch in batches:
                    counted.add(work.read(batch))
                    watch(batch.num_rows)
            finally:
                batches.stop()  # after an error the others need not go on
            return counted

        with ThreadPoolExecutor(n_threads()) as pool:
            tallies = pool.map(tally, range(n_threads()))
            return sum(tallies, next(tallies))


class Cluster(Source):
    """Rows that stay where they are: the kernel runs on the workers, which need cmtrack, and tallies come back.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack import evaluate_table
    >>> from cmtrack.sources import Cluster
    >>> class Two(Cluster):
    ...     parts = [pa.record_batch({"y": [0, 1], "z": [0, 1]}), pa.record_batch({"y": [1], "z": [0]})]
    ...     schema = parts[0].schema
    ...     def tallies(self, work):  # here the workers would do it
    ...         return (work.packed([part.select(work.columns.names)]) for part in self.parts)
    >>> evaluate_table(Two(), y_true="y", y_pred="z", progress=False).confusion_matrix.counts.tolist()
    [[1, 0], [1, 1]]
    """

    @abstractmethod
    def tallies(self, work: Work) -> Iterable[Any]:
        """The packed tally of each partition, or of several together (``work.packed``, ``packed_sum``)."""

    def count(self, work: Work, watch: Watch) -> Tally:
        """Count the rows, and add the tallies up as they come."""
        total = Tally(work.kernel)
        for packed in self.tallies(work):
            tally = unpacked(packed)
            watch(tally.faults.n_rows)
            total += tally
        return total


class _Shared:
    """Batches that several threads take turns to read."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._lock = threading.Lock()
        self._stopped = False

    def __iter__(self) -> _Shared:
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._lock:
            if self._stopped:
                raise StopIteration
            return next(self._batches)

    def stop(self) -> None:
        """Give out no more batches."""
        self._stopped = True


Reading = Callable[[str, int | None], Watch]
"""Begins a reading, which has a name for people and maybe a known number of rows, and says who counts its rows."""


@contextlib.contextmanager
def watched(show: bool | None, n_readings: int) -> Iterator[Reading]:
    """Say on stderr which reading runs, which of how many, and how many rows it has counted.

    ``show``: by default where stderr is a terminal.
    ``n_readings``: how many there will be, where all is well.
    """
    if show is False:
        yield lambda name, n_rows: lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    terminal = console.is_terminal
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=console, transient=terminal, disable=not (show or terminal))
    task = bar.add_task("opening", total=None)
    begun = 0

    def begin(name: str, n_rows: int | None) -> Watch:
        nonlocal begun
        begun += 1
        bar.reset(task, total=n_rows, description=f"{name} ({begun} of {max(n_readings, begun)})")
        return lambda rows: bar.advance(task, rows)

    with bar:
        yield begin
