"""The interface of a source of rows: this process counts streams, workers count clusters.

A new source is a class of about thirty lines if its library makes batches of Arrow. It has the
names and types of its columns, and either batches of some of them (:class:`Stream`) or a way to
count each partition on its worker (:class:`Cluster`).
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
"""Function to call with the number of rows counted since its last call."""


class Source(ABC):
    """A table of rows: its columns, and a way to count its rows.

    Attributes
    ----------
    n_rows : int, optional
        Number of rows, if it is known without reading them.

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

        A column must have the same type in all batches. Weights of an unknown type count as
        sampling weights, so a source should find their type if it can.
        """

    def categories(self, name: str) -> list[Any] | None:
        """Return the values of a column with a stated order; None for any other column."""
        return None

    def with_kinds(self, columns: Columns, label_kinds: Collection[type] = KINDS) -> Source:
        """Return the rows, with labels, ids and segments of a type that preserves every text.

        Only sources of texts convert anything.

        ``label_kinds``: the types that labels may have.
        """
        return self

    @abstractmethod
    def count(self, work: Work, watch: Watch) -> Tally:
        """Count the rows."""


class Stream(Source):
    """Rows that arrive in this process in batches, counted by a thread per core.

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
        """Read the named columns; every reading of the table calls this once.

        Several threads take the batches, one at a time. If a library must stay in one thread, as
        sqlite3 must, its source needs its own :meth:`count`.
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
                batches.stop()  # after an error, the other threads need not continue
            return counted

        with ThreadPoolExecutor(n_threads()) as pool:
            tallies = pool.map(tally, range(n_threads()))
            return sum(tallies, next(tallies))


class Cluster(Source):
    """Rows that stay on workers, which run the kernel (so they need cmtrack) and return tallies.

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
        """Return packed tallies: of each partition (``work.packed``), or sums (``packed_sum``)."""

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
        """End the batches for all threads."""
        self._stopped = True


Reading = Callable[[str, int | None], Watch]
"""Function that starts a reading with a name and, if known, a number of rows. It returns the
function that the batches call."""


@contextlib.contextmanager
def watched(show: bool | None, n_readings: int) -> Iterator[Reading]:
    """Show on stderr the name and number of the current reading, and the rows counted so far.

    ``show``: by default, if stderr is a terminal.
    ``n_readings``: the expected number; an error in the rows may need one more.
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
