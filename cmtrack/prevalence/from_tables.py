"""Counts by cell from files, which are read in batches; only counts are kept of the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.prevalence.domains import CellRows, DomainPrevalence
from cmtrack.prevalence.estimate import CalibrationRows, domain_prevalence
from cmtrack.sources import Columns, Stream, Work, check_kinds, choose_columns, open_source
from cmtrack.statistics.inputs import FloatArray, listed, to_float_array
from cmtrack.statistics.kernel import Batch, Kernel
from cmtrack.statistics.labels import number_as_they_come
from cmtrack.statistics.probabilities import as_probabilities

Watch = Callable[[int], object]


@dataclass(frozen=True, eq=False)
class _Table:
    """A table that is read in batches, and its columns."""

    stream: Stream
    columns: Columns

    @classmethod
    def opened(
        cls, table: Any, by: Sequence[str], y_true: str | None, y_prob: Any, missing: Sequence[str]
    ) -> _Table:
        """Open a table, and find its columns."""
        named = [name for name in (y_true, *by) if name is not None]
        if isinstance(y_prob, str):
            named.append(y_prob)
        source = open_source(table, named, missing or None)
        if not isinstance(source, Stream):
            raise TypeError(
                "counts by cell need a table that this process can read, got "
                f"{type(table).__name__}"
            )
        names = source.schema.names
        unknown = [name for name in by if name not in names]
        if unknown:
            which = "target" if y_true is None else "labelled table"
            raise ValueError(
                f"by must name columns of both tables, got {unknown[0]!r}; the columns of the "
                f"{which} are {listed(names, 20)}"
            )
        if len(set(by)) < len(by):
            raise ValueError(f"by must not repeat a column, got {listed(list(by), 20)}")
        columns = choose_columns(names, y_true=y_true, y_prob=y_prob, segments=by or None)
        typed = source.with_kinds(columns)
        return cls(typed, check_kinds(columns, typed.schema))  # type: ignore[arg-type]

    def batches(self) -> Iterator[Batch]:
        """Read the rows of the table."""
        work = Work(self.columns, Kernel(None))
        for batch in work.whole(self.stream.batches(self.columns.names)):
            yield work.read(batch)

    def cells(self, batch: Batch) -> CellRows:
        """Return the cell of each row of a batch."""
        columns = {str(name): (rows.codes, rows.values) for name, rows in batch.segments.items()}
        return CellRows.of_columns(columns)

    def scores(self, batch: Batch, labels: Sequence[Label], positive: Label) -> FloatArray:
        """Return the score of the positive class (n,), or the probabilities of K classes (n, K)."""
        columns = [to_float_array("y_prob", column) for column in batch.scores]
        declared = self.columns.declared
        if len(labels) == 2:
            if len(columns) == 1:
                return columns[0]
            names = list(map(str, declared or labels))
            return columns[names.index(str(positive))]
        data: Any = np.column_stack(columns)
        if declared is not None:
            by_text = {str(label): label for label in labels}
            data = {
                by_text.get(str(name), name): column
                for name, column in zip(declared, columns, strict=True)
            }
        return as_probabilities(data, tuple(labels), batch.n_rows, False, "y_prob").array


def count_table(
    target: Any,
    labelled: Any,
    *,
    by: Sequence[str],
    y_true: str,
    y_prob: Any,
    positive: Label | None = None,
    assumption: str = "auto",
    half_width: float = 0.05,
    confidence_level: float = 0.95,
    missing: Sequence[str] = (),
    watch: Watch = lambda rows: None,
) -> DomainPrevalence:
    """Estimate the share of positives by cell from two tables, which are read once.

    Parameters
    ----------
    target, labelled : path, list of paths, or frame
        The rows to count, and the labelled rows of the same scorer. Only counts of the target are
        kept.
    by : sequence of str
        Columns that form the cells, with the time last. Both tables need them, unless the labelled
        table has none of them.
    y_true : str
        Column of labels in the labelled table.
    y_prob : str
        Column of scores, or columns of probabilities such as ``p_*``.
    positive : label, optional
        The positive class; by default the last label in sorted order.
    assumption, half_width, confidence_level
        As in :func:`cmtrack.estimate_prevalence`.
    missing : sequence of str
        Texts that mark a missing value in a CSV file.
    watch : callable
        It is called with the number of rows of each batch.

    Returns
    -------
    DomainPrevalence

    Raises
    ------
    ValueError, TypeError
        As in :func:`cmtrack.estimate_prevalence`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from cmtrack.prevalence.from_tables import count_table
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame({"month": rng.integers(1, 3, 2_000), "p": rng.random(2_000)})
    >>> rows["y"] = rng.random(2_000) < rows["p"]
    >>> table = count_table(rows[200:], rows[:200], by=["month"], y_true="y", y_prob="p")
    >>> table.to_frame()["n"].tolist(), table.positive
    ([868, 932], True)
    """
    rows, placed = _labelled_rows(
        _labelled_table(labelled, by, y_true, y_prob, missing), by, positive
    )
    counter = rows.counter(tuple(by), placed)
    table = _Table.opened(target, by, None, y_prob, missing)
    n_rows = 0
    for batch in table.batches():
        counter.add(table.cells(batch), table.scores(batch, rows.labels, rows.positive))
        n_rows += batch.n_rows
        watch(batch.n_rows)
    if not n_rows:
        raise ValueError("the target must have at least one row, got none")
    return domain_prevalence(counter, rows, assumption, half_width, confidence_level)


def _labelled_table(
    labelled: Any, by: Sequence[str], y_true: str, y_prob: Any, missing: Sequence[str]
) -> _Table:
    """Open the labelled table, whose rows have no cells if it has none of the columns."""
    names = open_source(labelled, [y_true], missing or None).schema.names
    if not set(by) & set(names):
        by = ()
    return _Table.opened(labelled, by, y_true, y_prob, missing)


def _labelled_rows(
    table: _Table, by: Sequence[str], positive: Label | None
) -> tuple[CalibrationRows, CellRows | None]:
    """Read all labelled rows, and the cell of each row."""
    batches = list(table.batches())
    y = [label for batch in batches for label in _as_list(batch.actual)]
    labels, codes = number_as_they_come({"y_true": y})
    if len(labels) < 2:
        raise ValueError(f"y_true must contain two or more classes, got only {list(labels)}")
    by_text = {str(label): label for label in labels}
    if positive is None:
        positive = labels[-1]
    elif str(positive) not in by_text:
        raise ValueError(f"positive must be one of {list(labels)}, got {positive!r}")
    positive = by_text[str(positive)]
    classes = codes["y_true"].all()
    if len(labels) == 2:
        classes = (classes == labels.index(positive)).astype(np.int64)
    scores = np.concatenate([table.scores(batch, labels, positive) for batch in batches])
    rows = CalibrationRows(labels, positive, classes, scores)
    if not table.columns.segments:
        return rows, None
    return rows, CellRows.joined([table.cells(batch) for batch in batches])


def _as_list(labels: Any) -> list[Any]:
    """Return a column of labels as a list."""
    if hasattr(labels, "to_pylist"):
        return list(labels.to_pylist())
    return list(labels.tolist())
