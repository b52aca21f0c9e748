"""The public result of counts by cell: a table, and questions about several cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.digits import level, percent_with_interval
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import simultaneous_level
from cmtrack.metrics.scores import values_of_classes
from cmtrack.names import quoted
from cmtrack.prevalence.domains import joint, words
from cmtrack.prevalence.domains.check import Assumption
from cmtrack.prevalence.domains.inputs import cell_value, is_ordered
from cmtrack.prevalence.domains.joint import NoChange, Quantity
from cmtrack.prevalence.domains.rule import CellShare, DomainShares
from cmtrack.prevalence.domains.tables import DomainTables, Key
from cmtrack.schemas import COUNTS
from cmtrack.statistics import plain
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_MOST_LINES = 40
"""Maximum number of cells in the printed table."""
_MOST_REASONS = 5
"""Maximum number of reasons below the printed table."""


class Heading(NamedTuple):
    """The heading of a column of the shown table.

    ``key``: name of the column in the frame. ``right``: whether the column is right-aligned.
    """

    key: str
    text: str
    right: bool = False


@dataclass(frozen=True, eq=False)
class DomainPrevalence:
    """Estimated shares and numbers of positives by cell, such as a region in a month.

    :func:`cmtrack.estimate_prevalence` returns it if ``by`` is given. A *cell* is a combination of
    the values of the ``by`` columns. The number of a cell with at least 20 labelled rows comes from
    these *own rows*, and assumes only that they are a random part of the cell. All other numbers
    come from labelled rows of other cells, and only if the labelled cells could check this step. A
    cell has no number if nothing supports one.

    Attributes
    ----------
    shares : DomainShares
        The shares of all cells as numbers, and the counts from which they are computed.
    labels : tuple
        The classes. If there are two, the second one is the positive class.
    positive : label
    warnings : tuple of str

    Notes
    -----
    A number from own rows is the difference estimator of Cassel, Särndal and Wretman (1976),
    Biometrika 63, 615-620. Numbers from other cells add an allowance to the variance: the 90% upper
    bound of the error beyond sampling error, as seen when labelled cells are left out (Viechtbauer,
    2007, Statistics in Medicine 26, 37-52).

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import estimate_prevalence
    >>> rng = np.random.default_rng(0)
    >>> month = rng.integers(1, 4, 6_000)
    >>> score = rng.random(6_000)
    >>> y = rng.random(6_000) < score
    >>> labelled = np.arange(6_000) % 10 == 0
    >>> table = estimate_prevalence(
    ...     score, by={"month": month}, positive=True,
    ...     calibration=(y[labelled], score[labelled]), calibration_by={"month": month[labelled]},
    ... )
    >>> table.to_frame()[["month", "n", "labelled", "source"]].values.tolist()
    [[1, 1987, 207, 'own rows'], [2, 2014, 192, 'own rows'], [3, 1999, 201, 'own rows']]
    >>> change = table.change(1, 3)
    >>> change.low < change.value < change.high
    True
    """

    shares: DomainShares = field(repr=False)
    labels: tuple[Label, ...]
    positive: Label
    warnings: tuple[str, ...] = ()

    # -- the table --------------------------------------------------------------------------------

    def to_frame(self, simultaneous: bool = False) -> pd.DataFrame:
        """Return one row for each cell with target rows, and for each class if there are several.

        Parameters
        ----------
        simultaneous : bool, default False
            Whether all intervals contain the true shares at the same time with the confidence
            level (Šidák, 1967, JASA 62, 626-633).

        Returns
        -------
        DataFrame
            The ``by`` columns; ``label`` if there are more than two classes; ``n`` and
            ``labelled``, numbers of rows; ``value``, ``low`` and ``high``, the share in the cell's
            population; ``count``, ``count_low`` and ``count_high``, the number in these very rows;
            ``source`` and ``assumption``; ``shift`` and ``calibration`` with their intervals, the
            shares under each assumption without an allowance; ``fit_pvalue``, the test of shift;
            ``rows_needed``, further labelled rows for the half-width; ``why``. If nothing supports
            a number, ``value`` is NaN. ``low`` and ``high`` then contain the range of both
            assumptions, or NaN.
        """
        from cmtrack._pandas import pd

        shares = self._at_level(len(self.shares.cells)) if simultaneous else self.shares
        return pd.DataFrame([self._row(shares, cell) for cell in shares.cells])

    def _at_level(self, m: int) -> DomainShares:
        """Return the shares with intervals that hold for ``m`` quantities at the same time."""
        level = simultaneous_level(max(m, 1), self.shares.confidence_level)
        return replace(self.shares, confidence_level=level)

    def _row(self, shares: DomainShares, cell: CellShare) -> dict[str, Any]:
        row: dict[str, Any] = dict(zip(shares.tables.columns, cell.key, strict=True))
        if len(self.labels) > 2:
            row["label"] = self.labels[cell.k]
        row |= {"n": int(cell.n), "labelled": int(cell.labelled)}
        row |= {"value": cell.share.value, "low": cell.share.low, "high": cell.share.high}
        row |= {
            "count": cell.n * cell.own_share.value,
            "count_low": cell.n * cell.own_share.low,
            "count_high": cell.n * cell.own_share.high,
            "source": words.source_text(shares, cell),
            "assumption": str(cell.basis.assumption or ""),
        }
        for assumption, share in (("shift", cell.shift), ("calibration", cell.calibration)):
            row |= {
                assumption: share.value,
                f"{assumption}_low": share.low,
                f"{assumption}_high": share.high,
            }
        row |= {
            "fit_pvalue": cell.fit_pvalue,
            "rows_needed": math.ceil(cell.rows_needed),
            "why": cell.why,
        }
        return row

    @property
    def check(self) -> pd.DataFrame:
        """The errors of labelled cells that were estimated without their own labelled rows.

        There is one row for each kind of step (``left_out``: "domains" or "periods"), assumption
        and labelled cell, with the ``error`` (estimate less labelled share) and its
        ``standard_error``. The frame is empty if fewer cells are labelled than a check needs.
        """
        from cmtrack._pandas import pd

        names = [*self.shares.tables.columns, "left_out", "assumption", "error", "standard_error"]
        return pd.DataFrame(words.check_rows(self.shares), columns=names)

    # -- several cells ----------------------------------------------------------------------------

    def change(
        self, first: Any, second: Any, *, own: bool = False, label: Label | None = None
    ) -> Quantity:
        """Return the share of the second cell less the share of the first.

        Two estimates from the same labelled rows have a common error, which partly cancels.

        Parameters
        ----------
        first, second : tuple
            The values of the ``by`` columns; a single value if there is one column.
        own : bool, default False
            Whether the change is between the rows of the target itself. By default, it is between
            the populations from which they come.
        label : label, optional
            The class; by default the positive class.

        Returns
        -------
        Quantity
            ``value``, ``low``, ``high``, ``standard_error`` and ``why``. All numbers are NaN if a
            cell has no number, and ``why`` contains its reason.

        Raises
        ------
        KeyError
            If a cell has no target rows.
        """
        return _within(
            joint.change(
                self.shares, self._key(first), self._key(second), self._values(label), own=own
            ),
            -1.0,
            1.0,
        )

    def changes(self, *, own: bool = False, label: Label | None = None) -> pd.DataFrame:
        """Return the changes between neighbours in the last column, with simultaneous intervals.

        Returns
        -------
        DataFrame
            The other ``by`` columns, ``first`` and ``second`` (values of the last column),
            ``value``, ``low``, ``high``, ``standard_error`` and ``why``.
        """
        from cmtrack._pandas import pd

        columns = self.shares.tables.columns[:-1]
        numbers = ["value", "low", "high", "standard_error", "why"]
        rows = []
        found = joint.changes(self.shares, self._values(label), own)
        for (first, second), quantity in found.items():
            row: dict[str, Any] = dict(zip(columns, first[:-1], strict=True))
            row |= {"first": first[-1], "second": second[-1]}
            shown = _within(quantity, -1.0, 1.0)
            rows.append(row | {name: getattr(shown, name) for name in numbers})
        return pd.DataFrame(rows, columns=[*columns, "first", "second", *numbers])

    def ratio(
        self, first: Any, second: Any, *, own: bool = False, counts: bool = False
    ) -> Quantity:
        """Return the share of the second cell divided by the share of the first.

        Parameters
        ----------
        first, second, own
            As in :meth:`change`.
        counts : bool, default False
            Whether to divide the numbers of positives instead of the shares.

        Returns
        -------
        Quantity
            With Fieller's interval (1954), whose upper end is infinite if the share of the first
            cell may be 0.
        """
        self._needs_two_classes("ratio")
        return joint.ratio(self.shares, self._key(first), self._key(second), own=own, counts=counts)

    def total(self, cells: Iterable[Any] | None = None, *, own: bool = True) -> Quantity:
        """Return the number of positives in several cells, or in all.

        Parameters
        ----------
        cells : iterable of tuple, optional
        own : bool, default True
            Whether to count these very rows. Otherwise, the number is the expected number in
            the population.
        """
        self._needs_two_classes("total")
        keys = self._keys(cells)
        n = sum(joint.sizes(self.shares.tables, keys).values())
        return _within(joint.total(self.shares, keys, own), 0.0, n)

    def score(
        self,
        values: Mapping[Label, float] | str,
        cells: Iterable[Any] | None = None,
        *,
        others: float | None = None,
        own: bool = False,
    ) -> Quantity:
        """Return the mean of class values over the rows of several cells, or of all.

        Parameters
        ----------
        values : mapping of label to float, "nps" or "mean"
            The value of each class, such as ``{"promoter": 1, "detractor": -1}``. "nps" and "mean"
            are as in :meth:`cmtrack.Evaluation.score`.
        cells : iterable of tuple, optional
        others : float, optional
            The value of the classes that ``values`` does not name.
        own : bool, default False
            As in :meth:`change`.
        """
        array = self._score_values(values, others)
        quantity = joint.score(self.shares, array, self._keys(cells), own)
        return _within(quantity, float(array.min()), float(array.max()))

    def score_change(
        self,
        first: Any,
        second: Any,
        values: Mapping[Label, float] | str,
        *,
        others: float | None = None,
        own: bool = False,
    ) -> Quantity:
        """Return the score of the second cell less the score of the first; see :meth:`score`."""
        array = self._score_values(values, others)
        span = float(array.max() - array.min())
        change = joint.change(self.shares, self._key(first), self._key(second), array, own=own)
        return _within(change, -span, span)

    def no_change(self, *, own: bool = False, label: Label | None = None) -> NoChange:
        """Test that all neighbours in the last column have equal shares.

        Returns
        -------
        NoChange
            ``statistic`` (chi-square), ``degrees``, ``pvalue`` and ``why``. The test is refused if
            a cell has no number.
        """
        return joint.no_change(self.shares, self._values(label), own)

    def _key(self, cell: Any) -> Key:
        if isinstance(cell, np.ndarray):
            cell = cell.tolist()
        parts = cell if isinstance(cell, (tuple, list)) else (cell,)
        return tuple(map(cell_value, parts))

    def _keys(self, cells: Iterable[Any] | None) -> list[Key] | None:
        if cells is None:
            return None
        keys = [] if isinstance(cells, str) else [self._key(cell) for cell in cells]
        if not keys:
            raise ValueError(f"cells must be a list of one or more cells, got {cells!r:.40}")
        return keys

    def _values(self, label: Label | None) -> FloatArray:
        wanted = self.positive if label is None else label
        if wanted not in self.labels:
            raise ValueError(f"label must be one of {list(self.labels)}, got {label!r}")
        return np.eye(len(self.labels))[self.labels.index(wanted)]

    def _score_values(
        self, values: Mapping[Label, float] | str, others: float | None
    ) -> FloatArray:
        by_class = values_of_classes(values, self.labels, others=others)
        return np.array([by_class[label] for label in self.labels], dtype=np.float64)

    def _needs_two_classes(self, method: str) -> None:
        if len(self.labels) > 2:
            raise ValueError(
                f"{method} needs two classes, got {len(self.labels)}; for several classes use score"
            )

    # -- how it is shown --------------------------------------------------------------------------

    @cached_property
    def lead(self) -> str:
        """The sentence about all cells together."""
        cells = {cell.key: cell.n for cell in self.shares.cells}
        n = sum(cells.values())
        where = f"{len(cells):,} cells" if len(cells) > 1 else "one cell"
        if len(self.labels) > 2:
            return f"Estimated shares of {len(self.labels)} classes in {where} with {n:,.0f} rows."
        total = self.total()
        if math.isnan(total.value):
            missing = sum(math.isnan(cell.share.value) for cell in self.shares.cells)
            have = "cell has" if missing == 1 else "cells have"
            return (
                f"There is no total of the {where} with {n:,.0f} rows, because {missing:,} {have} "
                "no number."
            )
        share = percent_with_interval(total.value / n, (total.low / n, total.high / n))
        return (
            f"About {total.value:,.0f} [{total.low:,.0f}, {total.high:,.0f}] of the {n:,.0f} rows "
            f"in {where} are {quoted(self.positive)} ({share})."
        )

    @property
    def sentences(self) -> list[str]:
        """The sentences about the checks and the assumptions, which are shown below the table."""
        return words.closing_sentences(self.shares, self.labels)

    @property
    def headings(self) -> list[Heading]:
        """The headings of the shown table."""
        names = self.shares.tables.columns
        columns = [Heading(name, words.short_name(name)) for name in names]
        if len(self.labels) > 2:
            columns.append(Heading("label", "label"))
        interval = level(self.shares.confidence_level)
        return [
            *columns,
            Heading("n", "rows", right=True),
            Heading("labelled", "labelled", right=True),
            Heading("value", f"share [{interval} interval]"),
            Heading("count", "number"),
            Heading("source", "from"),
            Heading("rows_needed", words.half_width_heading(self.shares), right=True),
        ]

    def lines(self, most: int | None = None) -> list[list[str]]:
        """Return the texts of the shown table, one list for each cell."""
        lines = []
        for cell in self.shares.cells[:most]:
            line = list(map(words.short_name, cell.key))
            if len(self.labels) > 2:
                line.append(words.short_name(self.labels[cell.k]))
            line += [
                f"{cell.n:,.0f}",
                f"{cell.labelled:,.0f}",
                words.share_text(cell.share),
                words.count_text(cell),
                words.source_text(self.shares, cell),
                words.needed_text(cell),
            ]
            lines.append(line)
        return lines

    def remarks(self, most: int | None = None) -> list[str]:
        """Return the reasons of cells without a number, and other remarks about cells."""
        found = words.reasons(self.shares)
        shown = found[:most]
        if len(shown) < len(found):
            n_more = len(found) - len(shown)
            shown.append(f"{n_more:,} more remarks are in the column why of the frame and the JSON")
        return shown

    def __repr__(self) -> str:
        headings = self.headings
        lines = [[heading.text for heading in headings], *self.lines(_MOST_LINES)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = []
        for line in lines:
            cells = [
                text.rjust(width) if heading.right else text.ljust(width)
                for text, width, heading in zip(line, widths, headings, strict=True)
            ]
            texts.append("  ".join(cells).rstrip())
        n_cells = len(self.shares.cells)
        if n_cells > _MOST_LINES:
            texts.append(f"{_MOST_LINES} of {n_cells:,} rows; .to_frame() returns all.")
        remarks = [f"{note}." for note in (*self.warnings, *self.remarks(_MOST_REASONS))]
        return "\n".join([*texts, *self.sentences, *remarks])

    def _repr_html_(self) -> str:
        """Return HTML with the total, the figure, the table and the check."""
        from cmtrack.prevalence.figures import counts_figure

        frame = self._shown_frame()
        # The sentences are below the table, so the figure does not repeat them.
        figure = counts_figure(self, with_notes=False)
        return notebook.view(
            notebook.sentence(self.lead),
            notebook.picture(figure),
            notebook.table(frame, _MOST_LINES),
            *(notebook.sentence(sentence) for sentence in self.sentences),
            notes=(*self.warnings, *self.remarks(_MOST_REASONS)),
        )

    def _shown_frame(self) -> pd.DataFrame:
        """Return the texts of the shown table as a frame."""
        from cmtrack._pandas import pd

        return pd.DataFrame(self.lines(), columns=[heading.text for heading in self.headings])

    def figure(self) -> Figure:
        """Draw the shares: one panel for each domain over time, or one row for each cell."""
        from cmtrack.prevalence.figures import counts_figure

        return counts_figure(self)

    @property
    def is_over_time(self) -> bool:
        """True if the last column has an order, such as that of months."""
        tables = self.shares.tables
        return tables.has_periods and is_ordered([cell.key[-1] for cell in self.shares.cells])

    def names_of(self, cell: CellShare) -> tuple[str, str]:
        """Return the names of a cell's domain, with its class if there are several, and period."""
        parts = list(map(str, cell.key))
        label = [] if len(self.labels) == 2 else [quoted(self.labels[cell.k])]
        if len(parts) == 1:
            return ", ".join([*parts, *label]), ""
        return ", ".join([*parts[:-1], *label]), parts[-1]

    # -- plain data -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the cells and the tables of counts as plain data for a JSON file.

        :meth:`from_dict` reads them, so that changes can be computed later without the rows.
        """
        tables = self.shares.tables
        return {
            "schema": COUNTS.newest,
            "columns": list(tables.columns),
            "keys": [list(key) for key in tables.keys],
            "period_values": list(tables.period_values),
            "labels": list(self.labels),
            "positive": self.positive,
            "assumption": str(self.shares.assumption or "auto"),
            "half_width": self.shares.half_width,
            "confidence_level": self.shares.confidence_level,
            "warnings": list(self.warnings),
            "n_bins": tables.n_bins,
            "tables": plain.encode_fields(tables, _ARRAYS),
            "cells": [self._row(self.shares, cell) for cell in self.shares.cells],
        }

    @classmethod
    def from_dict(cls, data: Any) -> DomainPrevalence:
        """Read the data of :meth:`to_dict`; every number is computed again from the counts.

        Raises
        ------
        ValueError
            If the data do not describe a table by cell.
        """
        try:
            return cls._from_plain(COUNTS.migrated(data))
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the counts cannot be read: {error}") from error

    @classmethod
    def _from_plain(cls, data: dict[str, Any]) -> DomainPrevalence:
        keys = tuple(map(_labels, data["keys"]))
        labels = _labels(data["labels"])
        columns = tuple(map(str, data["columns"]))
        period_values = _labels(data["period_values"])
        n_bins = data["n_bins"]
        arrays = plain.decode_fields(
            data["tables"],
            {
                "labelled": (len(keys), None, len(labels)),
                "target": (len(keys), None),
                "bins": (len(keys), None),
                "own_bins": (len(keys), None),
            },
        )
        sizes = {array.shape[1] for array in arrays.values()}
        is_bin = all(arrays[name].dtype.kind == "i" for name in ("bins", "own_bins"))
        _require(arrays["labelled"].any() and arrays["target"].any(), "they contain no rows")
        _require(
            type(n_bins) is int and len(sizes) == 1 and is_bin, "their tables do not fit together"
        )
        # A table has at least as many positions as bins, so that no larger array is made.
        highest = max(int(arrays["own_bins"].max()) + 1, n_bins)
        _require(
            arrays["bins"].max() < n_bins and highest <= min(sizes), "their bins are not valid"
        )
        _require(len(set(keys)) == len(keys), "their cells are not valid")
        _require(
            {len(key) for key in keys} == {len(columns)} and len(set(columns)) == len(columns),
            "their columns are not valid",
        )
        periods = {key[-1] for key in keys}
        _require(periods <= set(period_values or periods), "their periods are not valid")
        # Of two classes, the second one is the positive class.
        possible = labels
        if len(labels) == 2:
            possible = labels[1:]
        _require(
            data["positive"] in possible and len(set(labels)) == len(labels),
            "their classes are not valid",
        )
        tables = DomainTables(
            columns,
            keys,
            arrays["labelled"].astype(np.float64),
            arrays["target"].astype(np.float64),
            arrays["bins"],
            arrays["own_bins"],
            n_bins,
            period_values,
        )
        shares = DomainShares(
            tables,
            read_assumption(data["assumption"]),
            float(data["half_width"]),
            float(data["confidence_level"]),
        )
        return cls(shares, labels, data["positive"], tuple(map(str, data["warnings"])))


_ARRAYS = ("labelled", "target", "bins", "own_bins")


def _labels(values: Any) -> tuple[Label, ...]:
    """Return the values of a list in a file as labels."""
    if not isinstance(values, (list, tuple)) or not all(
        isinstance(value, (str, int, float)) for value in values
    ):
        raise ValueError(f"the counts cannot be read: {values!r:.40} is not a list of labels")
    return tuple(map(cell_value, values))


def _require(is_valid: Any, fault: str) -> None:
    """Raise ValueError with the fault of a file unless it is valid."""
    if not is_valid:
        raise ValueError(f"the counts cannot be read: {fault}")


def read_assumption(assumption: Any) -> Assumption | None:
    """Return the requested assumption; None if the check decides."""
    if assumption == "auto":
        return None
    choices = ("auto", *map(str, Assumption))
    if assumption not in choices:
        raise ValueError(f"assumption must be one of {choices}, got {assumption!r:.40}")
    return Assumption(assumption)


def _within(quantity: Quantity, lowest: float, highest: float) -> Quantity:
    """Return a quantity that does not leave its possible range."""
    if math.isnan(quantity.value):
        return quantity
    return replace(
        quantity,
        value=min(max(quantity.value, lowest), highest),
        low=max(quantity.low, lowest),
        high=min(quantity.high, highest),
    )
