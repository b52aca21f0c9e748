"""Interface of a source of rows, which are counted in this process or by a cluster's workers.

If a library can return Arrow batches, a source for it is a class of about thirty lines. The class
must return the names and types of the columns. The class must also return batches of selected
columns (:class:`Stream`), or count each partition on its worker (:class:`Cluster`).
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
"""Function that is called with the number of rows counted since the previous call."""


class Source(ABC):
    """A table of rows, with its columns and a method that counts the rows.

    Attributes
    ----------
    n_rows : int, optional
        Number of rows, if it is known before the rows are read.

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
        """Names and types of all columns; null for an unknown type.

        A column must have the same type in all batches. If the type of the weights is unknown, they
        are treated as sampling weights, so a source should return their type if possible.
        """

    def categories(self, name: str) -> list[Any] | None:
        """Return the values of a column that states their order; None for any other column."""
        return None

    def with_kinds(self, columns: Columns, label_kinds: Collection[type] = KINDS) -> Source:
        """Return a source whose types for labels, ids and segments preserve every text.

        A source whose columns already have types returns itself.

        ``label_kinds``: the types that labels may have.
        """
        return self

    @abstractmethod
    def count(self, work: Work, watch: Watch) -> Tally:
        """Count all rows, and return their tally."""


class Stream(Source):
    """Source whose batches of rows are read in this process and counted by one thread per core.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack import evaluate_table
    >>> from cmtrack.sources import Stream
    >>> class Repeated(Stream):
    ...     schema = pa.schema({"y": pa.int64(), "z": pa.int64()})
    ...     def batches(self, names):
    ...         for _ in range(1_000):
    ...             yield pa.record_batch({"y": [0, 1], "z": [0, 0]}).select(names)
    >>> evaluation = evaluate_table(Repeated(), y_true="y", y_pred="z", progress=False)
    >>> evaluation.confusion_matrix.counts.tolist()
    [[1000, 0], [1000, 0]]
    """

    @abstractmethod
    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """Read only the named columns; this method is called once each time the table is read.

        Several threads take turns to read the batches. If a library can be used only in one thread,
        like sqlite3, its source must override :meth:`count`.
        """

    def count(self, work: Work, watch: Watch) -> Tally:
        """Count the rows, with at most one batch per thread in memory."""
        batches = _Shared(work.whole(self.batches(work.columns.names)))

        def tally(_: int) -> Tally:
            counted = Tally(work.kernel)
            try:
                for batch in batches:
                    counted.add(work.read(batch))
                    watch(batch.num_rows)
            finally:
                batches.stop()  # after an error, the other threads can stop
            return counted

        with ThreadPoolExecutor(n_threads()) as pool:
            tallies = pool.map(tally, range(n_threads()))
            return sum(tallies, next(tallies))


class Cluster(Source):
    """Source whose rows stay on workers, which run the kernel and return tallies.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack import evaluate_table
    >>> from cmtrack.sources import Cluster
    >>> class Two(Cluster):
    ...     first = pa.record_batch({"y": [0, 1], "z": [0, 1]})
    ...     second = pa.record_batch({"y": [1], "z": [0]})
    ...     schema = first.schema
    ...     def tallies(self, work):  # a real cluster does this on its workers
    ...         for batch in (self.first, self.second):
    ...             yield work.packed([batch.select(work.columns.names)])
    >>> evaluation = evaluate_table(Two(), y_true="y", y_pred="z", progress=False)
    >>> evaluation.confusion_matrix.counts.tolist()
    [[1, 0], [1, 1]]
    """

    @abstractmethod
    def tallies(self, work: Work) -> Iterable[Any]:
        """Return packed tallies of partitions (``work.packed``), or their sums (``packed_sum``)."""

    def count(self, work: Work, watch: Watch) -> Tally:
        """Count the rows, and add up the tallies as they arrive."""
        total = Tally(work.kernel)
        for packed in self.tallies(work):
            tally = unpacked(packed)
            watch(tally.faults.n_rows)
            total += tally
        return total


def kind_of(table: Any) -> tuple[str, str]:
    """Return the package and the name of a table's class, without importing the package."""
    return type(table).__module__.partition(".")[0], type(table).__name__


class _Shared:
    """Iterator over batches that several threads share by taking turns."""

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
        """Stop the iteration in all threads."""
        self._stopped = True


Reading = Callable[[str, int | None], Watch]
"""Function that starts showing the progress while a table is read. The function's arguments are a
name and, if it is known, the number of rows. The result is another function, which must be called
after each batch.
"""


@contextlib.contextmanager
def watched(show: bool | None, n_readings: int) -> Iterator[Reading]:
    """Show the progress on stderr: the current reading of the rows, and the rows counted so far.

    ``show``: whether to show the progress; by default only if stderr is a terminal.
    ``n_readings``: how often rows are expected to be read; an error in the rows may add one
    reading.
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
    n_begun = 0

    def begin(name: str, n_rows: int | None) -> Watch:
        nonlocal n_begun
        n_begun += 1
        description = f"{name} ({n_begun} of {max(n_readings, n_begun)})"
        bar.reset(task, total=n_rows, description=description)
        return lambda rows: bar.advance(task, rows)

    with bar:
        yield begin
