"""Counts of labelled rows and of target rows per cell, bin and class.

A cell is a combination of the values of the ``by`` columns, such as an age group in a year. The
last column is called the period. All other columns together are the domain. If there is only one
column, each of its values is a domain, and there are no periods.

Bins are made twice: once from all labelled rows, and once from the labelled rows of a domain, if
each class has enough of them there. A row's *position* is a pair of these two bins, so each of the
two tables can be computed from the counts by position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.grouping import Label
from cmtrack.metrics.quantile_bins import quantile_bins
from cmtrack.prevalence.class_shares import GROUPS, top_bins
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.attributes import distinct
from cmtrack.statistics.counting import SparseCounts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.top_scores import CELLS, TopScoreCounts, cells_of

Key = tuple[Label, ...]

ENOUGH = 20
"""Labelled rows that a cell needs so that its number comes from its own rows.

Ten rows would give intervals that contain the true share often enough, but their half-width is 22
points. With five rows, these intervals contain the true share too rarely in some domains.
"""

UNPLACED = "(unknown)"
"""Value of every column for labelled rows whose cells are unknown."""


def cell_text(value: Label) -> str:
    """Return the text by which values of two tables are matched, such as the year 2017 and "2017".

    A boolean matches the numbers 0 and 1.
    """
    if isinstance(value, bool):
        return str(int(value))
    return str(value)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Numbers of equal rows, which have the same cell, class and score.

    ``cells``, shape (E,): index of the cell. ``classes``, shape (E,): class code; 0 in a target.
    ``scores``, shape (E,): the score. If there are more than two classes, it is the number of the
        pair of most probable class and probability cell; see :meth:`TopScoreCounts.cells`.
    ``counts``, shape (E,): number of rows.
    """

    cells: IntArray
    classes: IntArray
    scores: FloatArray
    counts: FloatArray

    @classmethod
    def from_rows(cls, cells: IntArray, classes: IntArray, scores: FloatArray) -> CellCounts:
        """Return one entry for each row, from scores (n,) or from probabilities (n, K)."""
        if scores.ndim == 2:
            best = scores.argmax(axis=1)
            places = best * CELLS + cells_of(scores[np.arange(len(best)), best])
            scores = places.astype(np.float64)
        return cls(cells, classes, scores, np.ones(len(cells)))

    def __add__(self, other: CellCounts) -> CellCounts:
        return CellCounts(
            np.concatenate((self.cells, other.cells)),
            np.concatenate((self.classes, other.classes)),
            np.concatenate((self.scores, other.scores)),
            np.concatenate((self.counts, other.counts)),
        )

    def chosen(self, rows: BoolArray | IntArray) -> CellCounts:
        """Return a selection of the entries."""
        return CellCounts(
            self.cells[rows], self.classes[rows], self.scores[rows], self.counts[rows]
        )


@dataclass(frozen=True, eq=False)
class DomainTables:
    """Counts of C cells, K classes and F positions.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns. The last one is the period, unless there is only one.
    keys : tuple of tuple
        The values of the columns in each cell.
    labelled : ndarray of shape (C, F, K)
        Labelled rows of each cell by position and class.
    target : ndarray of shape (C, F)
        Target rows of each cell by position.
    bins, own_bins : ndarray of shape (C, F)
        The bin of each position: among the bins of all labelled rows, and among the bins of the
        labelled rows of the cell's domain.
    n_bins : int
        Number of bins of all labelled rows.
    period_values : tuple
        The values of the last column in their order; by default, they are sorted.
    """

    columns: tuple[str, ...]
    keys: tuple[Key, ...]
    labelled: FloatArray
    target: FloatArray
    bins: IntArray
    own_bins: IntArray
    n_bins: int
    period_values: tuple[Label, ...] = ()

    @classmethod
    def from_bins(
        cls,
        columns: tuple[str, ...],
        keys: tuple[Key, ...],
        labelled: FloatArray,
        target: FloatArray,
    ) -> DomainTables:
        """Return tables in which each domain uses the bins of all labelled rows."""
        n_cells, n_bins, _ = labelled.shape
        bins = np.tile(np.arange(n_bins), (n_cells, 1))
        return cls(columns, keys, labelled, target, bins, bins, n_bins)

    @cached_property
    def counts(self) -> FloatArray:
        """Labelled rows of each cell by bin and class, shape (C, B, K)."""
        binned = np.zeros((len(self.keys), self.n_bins, self.labelled.shape[2]))
        np.add.at(binned, (np.arange(len(self.keys))[:, None], self.bins), self.labelled)
        return binned

    @cached_property
    def total(self) -> FloatArray:
        """Labelled rows of all cells by bin and class, shape (B, K)."""
        return np.asarray(self.counts.sum(axis=0))

    @cached_property
    def targets(self) -> FloatArray:
        """Target rows of each cell by bin, shape (C, B)."""
        return np.stack(
            [
                np.bincount(bins, counts, self.n_bins)
                for bins, counts in zip(self.bins, self.target, strict=True)
            ]
        )

    @cached_property
    def n(self) -> FloatArray:
        """Number of target rows of each cell, shape (C,)."""
        return np.asarray(self.target.sum(axis=1))

    @cached_property
    def n_labelled(self) -> FloatArray:
        """Number of labelled rows of each cell, shape (C,)."""
        return np.asarray(self.labelled.sum(axis=(1, 2)))

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return self.labelled.shape[2]

    @property
    def is_unplaced(self) -> bool:
        """True if it is unknown to which cells the labelled rows belong."""
        return (UNPLACED,) * len(self.columns) in self.keys

    @property
    def has_periods(self) -> bool:
        """True if the last column is a period."""
        return len(self.columns) > 1

    @cached_property
    def domains(self) -> IntArray:
        """Number of each cell's domain, shape (C,)."""
        return domain_codes(self.keys)

    @cached_property
    def periods(self) -> IntArray:
        """Rank of each cell's value in the last column, shape (C,)."""
        values = self.period_values or sorted({key[-1] for key in self.keys})  # type: ignore[type-var]
        ranks = {value: rank for rank, value in enumerate(values)}
        return np.array([ranks[key[-1]] for key in self.keys])

    @cached_property
    def has_enough(self) -> BoolArray:
        """Array that is True for each cell with enough labelled rows, shape (C,)."""
        return self.n_labelled >= ENOUGH

    def cells_of_domain(self, cell: int) -> IntArray:
        """Return the cells of a cell's domain, including the cell."""
        return np.flatnonzero(self.domains == self.domains[cell])

    def other_periods(self, cell: int) -> IntArray:
        """Return the cells of the same domain in other periods."""
        cells = self.cells_of_domain(cell)
        return cells[cells != cell]

    def own_counts(self, cell: int) -> tuple[FloatArray, FloatArray]:
        """Return labelled rows of the cell's domain, shape (K, B), and its target rows, (B,).

        They are counted in the domain's own bins.
        """
        bins = self.own_bins[cell]
        domain = self.labelled[self.cells_of_domain(cell)].sum(axis=0)
        counts = np.zeros((int(bins.max()) + 1, self.n_classes))
        np.add.at(counts, bins, domain)
        return counts.T, np.bincount(bins, self.target[cell]).astype(np.float64)

    def has_own_bins(self, cell: int) -> bool:
        """Return whether each class has enough labelled rows in the cell's domain."""
        by_class = self.labelled[self.cells_of_domain(cell)].sum(axis=(0, 1))
        return bool(by_class.min() >= ENOUGH)

    @cached_property
    def _numbers(self) -> dict[tuple[str, ...], int]:
        """The index of each cell with target rows, by the texts of its key."""
        return {
            tuple(map(cell_text, self.keys[cell])): cell for cell in np.flatnonzero(self.n).tolist()
        }

    def find(self, key: Key) -> int:
        """Return the index of a cell with target rows, or raise KeyError with similar keys."""
        if len(key) != len(self.columns):
            wanted = ", ".join(self.columns)
            raise KeyError(f"a cell needs a value for each of the columns {wanted}; got {key}")
        number = self._numbers.get(tuple(map(cell_text, key)))
        if number is not None:
            return number
        keys = [known for known, n in zip(self.keys, self.n, strict=True) if n > 0]
        keys.sort(key=lambda known: -sum(a == b for a, b in zip(known, key, strict=False)))
        raise KeyError(f"no rows of {key}; cells are {', '.join(map(str, keys[:12]))}")


def domain_codes(keys: tuple[Key, ...]) -> IntArray:
    """Return the number of each cell's domain, shape (C,)."""
    size = max(len(keys[0]) - 1, 1)
    codes: dict[Key, int] = {}
    return np.array([codes.setdefault(key[:size], len(codes)) for key in keys])


class DomainBins:
    """The two bins of each score, which are made from labelled rows.

    If there are two classes, bins are class-balanced quantiles (:func:`quantile_bins`). If there
    are more classes, a bin is the most probable class with a quantile group of its probability.

    ``labelled``: the labelled rows. ``domains``, shape (E,): the domain of each of its entries.
    """

    def __init__(self, labelled: CellCounts, domains: IntArray, n_classes: int) -> None:
        make_bins: Callable[[CellCounts], Callable[[FloatArray], IntArray]] = _quantile_bins
        if n_classes > 2:
            make_bins = _top_bins(n_classes)
        self._shared = make_bins(labelled)
        self._own: dict[int, Callable[[FloatArray], IntArray]] = {}
        for domain in np.unique(domains).tolist():
            of_domain = labelled.chosen(domains == domain)
            by_class = np.bincount(of_domain.classes, of_domain.counts, n_classes)
            if by_class.min() >= ENOUGH:
                self._own[domain] = make_bins(of_domain)

    def of_scores(self, scores: FloatArray, domains: IntArray) -> tuple[IntArray, IntArray]:
        """Return the bin of each score among all labelled rows, and among those of its domain."""
        own_bins = np.zeros(len(scores), dtype=np.int64)
        # NumPy sorts 16-bit integers without comparisons, which takes one pass for all domains.
        order = np.argsort(domains.astype(np.int16), kind="stable")
        ends = np.cumsum(np.bincount(domains))
        for domain, bin_of in self._own.items():
            if domain < len(ends):
                start = ends[domain - 1] if domain else 0
                rows = order[start : ends[domain]]
                own_bins[rows] = bin_of(scores[rows])
        return self._shared(scores), own_bins

    def merged(self, target: CellCounts, domains: IntArray) -> CellCounts:
        """Merge the entries of a target that have the same cell and bins.

        The merged entry keeps one of the scores, so that it still belongs to the same bins.
        """
        bins, own_bins = self.of_scores(target.scores, domains)
        n_own = int(own_bins.max()) + 1
        codes = (target.cells * (int(bins.max()) + 1) + bins) * n_own + own_bins
        _, place = distinct(codes)
        merged = target.chosen(first_rows(place))
        return replace(merged, counts=np.bincount(place, target.counts).astype(np.float64))


def first_rows(codes: IntArray) -> IntArray:
    """Return the index of the first row with each code; all codes up to the largest must occur."""
    first = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    # Of several rows with the same code, the last assignment stays.
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def tabulate(
    columns: tuple[str, ...],
    keys: tuple[Key, ...],
    labelled: CellCounts,
    target: CellCounts,
    n_classes: int = 2,
    period_values: tuple[Label, ...] = (),
) -> DomainTables:
    """Count rows per cell, bin and class; see :class:`DomainBins`."""
    domains = domain_codes(keys)
    domain_of_row = domains[np.concatenate((labelled.cells, target.cells))]
    bin_pair = DomainBins(labelled, domains[labelled.cells], n_classes)
    scores = np.concatenate((labelled.scores, target.scores))
    bins, own_bins = bin_pair.of_scores(scores, domain_of_row)
    n_bins = int(bins.max()) + 1
    n_own = int(own_bins.max()) + 1
    codes = (domain_of_row * n_bins + bins) * n_own + own_bins
    places = np.flatnonzero(np.bincount(codes))
    of_domains, pair = np.divmod(places, n_bins * n_own)
    position = np.arange(len(places)) - np.searchsorted(of_domains, of_domains)
    size = max(int(position.max()) + 1, n_bins, n_own)
    maps = np.zeros((2, int(domains.max()) + 1, size), dtype=np.int64)
    maps[:, of_domains, position] = np.divmod(pair, n_own)
    position_of_code = np.zeros(int(places[-1]) + 1, dtype=np.int64)
    position_of_code[places] = position
    first, last = np.split(position_of_code[codes], [len(labelled.cells)])
    counts = np.zeros((len(keys), size, n_classes))
    np.add.at(counts, (labelled.cells, first, labelled.classes), labelled.counts)
    target_counts = np.zeros((len(keys), size))
    np.add.at(target_counts, (target.cells, last), target.counts)
    return DomainTables(
        columns,
        keys,
        counts,
        target_counts,
        maps[0][domains],
        maps[1][domains],
        n_bins,
        period_values,
    )


def _quantile_bins(rows: CellCounts) -> Callable[[FloatArray], IntArray]:
    """Return the function that assigns scores to class-balanced quantile bins of labelled rows."""
    return quantile_bins(
        ScoreCounts.from_scores(rows.scores, rows.classes, 2, rows.counts, exact=True)
    ).bin_of


def _top_bins(n_classes: int) -> Callable[[CellCounts], Callable[[FloatArray], IntArray]]:
    """Return the function that makes bins of labelled rows of more than two classes."""

    def make_bins(rows: CellCounts) -> Callable[[FloatArray], IntArray]:
        shape = (n_classes, n_classes, CELLS)
        codes = rows.classes * n_classes * CELLS + rows.scores.astype(np.int64)
        table = TopScoreCounts(SparseCounts.of_codes(codes, shape, rows.counts))
        bins = top_bins(table, GROUPS)
        return lambda scores: bins[scores.astype(np.int64)]

    return make_bins
