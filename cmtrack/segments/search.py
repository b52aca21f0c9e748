"""Search for the segments where a model fails, or where two models differ, with control of the family-wise error.

All values of one column and all crossings of two are searched. Under the null hypothesis rows' losses are exchangeable;
permuting them shows how far the worst of all searched segments lies off by chance (Westfall, Young 1993). The values of
segments that were found so are biased: they were chosen for being bad.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmtrack import notebook
from cmtrack.metrics.intervals import check_level, size_of_share
from cmtrack.segments._lattice import Lattice, lattice
from cmtrack.segments.columns import SegmentColumn
from cmtrack.segments.inference import Estimates, differences
from cmtrack.statistics.attributes import combine
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, as_weights, to_float_array
from cmtrack.statistics.labels import encode_groups
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

N_PERMUTATIONS = 999
SLICELINE_ALPHA = 0.95
MAX_UNITS = 10**8
_AT_ONCE = 64
_DIGITS = 9
BIASED = "The value of a segment that was found is biased: it was chosen for being far off."


@dataclass(frozen=True)
class SearchedSegment:
    """One segment of a search.

    Attributes
    ----------
    where : tuple of (column, value) pairs of str
    rows : int
        Of the metric's own rows.
    clusters : int or None
    value, low, high : float
        Its mean, and an interval that holds for all searched segments together. Biased where the segment was chosen.
    rest, difference, difference_low, difference_high : float
        The mean of all rows outside, the difference to it, and its simultaneous interval.
    divergence : float
        The difference to the mean of all rows (DivExplorer's).
    score : float
        SliceLine's score at alpha .95; NaN where losses are negative, or for two models.
    z : float
        Standardised sum of deviations; positive is worse. NaN where nothing varies.
    p_adjusted : float
        Probability that the worst of all searched segments lies as far off by chance.

    Examples
    --------
    >>> from cmtrack.segments import search_columns, worst_segments
    >>> columns = search_columns({"region": ["north"] * 200 + ["south"] * 200}, 400)
    >>> worst = worst_segments(columns, [1] * 190 + [0] * 10 + [1] * 140 + [0] * 60, better="higher").segments[0]
    >>> worst.text, worst.rows, worst.value, worst.rest, worst.p_adjusted
    ('region = south', 200, 0.7, 0.95, 0.001)
    """

    where: tuple[tuple[str, str], ...]
    rows: int
    clusters: int | None
    value: float
    low: float
    high: float
    rest: float
    difference: float
    difference_low: float
    difference_high: float
    divergence: float
    score: float
    z: float
    p_adjusted: float

    @property
    def text(self) -> str:
        """The segment in words: "region = north, age = 60 to 70"."""
        return ", ".join(f"{column} = {value}" for column, value in self.where)


@dataclass(frozen=True, eq=False)
class SegmentSearch:
    """Searched segments, the worst first.

    Attributes
    ----------
    segments : tuple of SearchedSegment
        By falling z (for two models: by falling absolute z).
    searched : int
        Number of segments of enough rows: every adjusted p-value and interval accounts for all of them.
    rows : int
        Rows that were searched.
    clusters : int or None
        Clusters, where rows belong together.
    value : float
        The mean of all rows.
    depth, min_rows, n_permutations, seed : int
    confidence_level : float
        At which all intervals hold together; ``level`` is that of each.
    notes : tuple of str
        What a reader must know, such as the bias and columns that were cut.

    Examples
    --------
    >>> from cmtrack.segments import search_columns, worst_segments
    >>> columns = search_columns({"region": ["north"] * 200 + ["south"] * 200}, 400)
    >>> found = worst_segments(columns, [1] * 190 + [0] * 10 + [1] * 140 + [0] * 60, better="higher")
    >>> found.searched, found.rows, found.value, [segment.text for segment in found.segments]
    (2, 400, 0.825, ['region = south', 'region = north'])
    """

    segments: tuple[SearchedSegment, ...]
    searched: int
    rows: int
    clusters: int | None
    value: float
    depth: int
    min_rows: int
    n_permutations: int
    seed: int
    confidence_level: float
    level: float
    notes: tuple[str, ...]

    def found(self, alpha: float = 0.05) -> tuple[SearchedSegment, ...]:
        """The segments whose adjusted p-value is at most ``alpha``, which bounds the probability of any error."""
        return tuple(one for one in self.segments if one.p_adjusted <= alpha)

    def to_frame(self) -> pd.DataFrame:
        """One row per segment, the worst first."""
        from cmtrack._pandas import pd

        names = [
            name
            for name in SearchedSegment.__dataclass_fields__
            if name not in ("where", "clusters")
        ]
        table: dict[str, Any] = {"segment": [one.text for one in self.segments]}
        table.update({name: [getattr(one, name) for one in self.segments] for name in names})
        if self.clusters is not None:
            table["clusters"] = [one.clusters for one in self.segments]
        return pd.DataFrame(table)

    def _summary(self) -> str:
        return (
            f"{len(self.found())} of {self.searched:,} searched segments have an adjusted p-value of at most .05 "
            f"({self.rows:,} rows, {self.n_permutations} permutations)"
        )

    def __repr__(self) -> str:
        return printable(f"SegmentSearch({self._summary()})")

    def _repr_html_(self) -> str:
        return notebook.view(
            notebook.sentence(f"{self._summary()}."),
            notebook.table(self.to_frame()),
            notes=self.notes,
        )


def worst_segments(
    columns: Sequence[SegmentColumn],
    values: Any,
    *,
    better: str = "lower",
    where: Any = None,
    weights: Any = None,
    clusters: Any = None,
    depth: int = 2,
    min_rows: int = 100,
    n_permutations: int = N_PERMUTATIONS,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> SegmentSearch:
    """Find the segments whose mean is worse than that of other rows.

    Parameters
    ----------
    columns : sequence of SegmentColumn
        As :func:`~cmtrack.segments.search_columns` makes them.
    values : array-like of shape (n,)
        What the metric is the mean of: 1 for a hit (accuracy, recall), a cost, -ln of the actual class's probability.
    better : "lower" or "higher"
        Of the values.
    where : array-like of shape (n,), bool, optional
        The metric's own rows: for recall those of the class. By default all.
    weights : array-like of shape (n,), optional
        Integers are numbers of equal rows, floats sampling weights; rows of weight 0 are left out.
    clusters : array-like of shape (n,), optional
        Rows that belong together; each cluster must lie in one value of every column. Its rows without a value are
        searched with those that have one.
    depth : 1 or 2
        2 searches crossings of two columns, too.
    min_rows : int
        Least number of rows of a segment.
    n_permutations : int, default 999
    confidence_level : float
    seed : int

    Returns
    -------
    SegmentSearch
        ``z = sum of e over S / sqrt(m (n - m) / (n - 1) mean of e^2)``, m of n rows (or clusters) in S, e the weighted
        deviations from the mean. ``p_adjusted = (1 + permutations whose greatest z is as large) / (1 + permutations)``:
        exact where no segment differs.

    Raises
    ------
    TypeError, ValueError
        Columns, values, weights or clusters of another length; no row of the metric; values that are not finite; a
        cluster in two segments; ``min_rows`` that leaves nothing; a depth other than 1 or 2.

    Notes
    -----
    Cost: ``n_permutations`` times the n rows, or, of two values and a single table of crossings, times its cells.
    10⁵ rows and the crossings of 8 columns of 6 values take 1 to 2 s on one core.

    Examples
    --------
    >>> from cmtrack.segments import search_columns, worst_segments
    >>> columns = search_columns({"region": ["north"] * 200 + ["south"] * 200, "new": [True, False] * 200}, 400)
    >>> found = worst_segments(columns, [1] * 190 + [0] * 10 + [1] * 140 + [0] * 60, better="higher")
    >>> found.searched, found.segments[0].text, found.segments[0].p_adjusted
    (8, 'region = south', 0.001)
    """
    if better not in ("higher", "lower"):
        raise ValueError(f'better must be "higher" or "lower", got {better!r}')
    options = _Options.checked(depth, min_rows, n_permutations, confidence_level, seed)
    rows = _Rows(columns, {"values": values}, where, weights, clusters)
    x, sign = rows.values["values"], 1.0 if better == "lower" else -1.0
    mean = float(x @ rows.weights / rows.weights.sum())
    units = rows.units(x - mean, nested=True)
    slices = _searched(columns, units, options)
    m, n = slices.sums(None), len(units.sums)
    deviations = sign * units.sums
    spread = float(deviations @ deviations) / n
    flat = spread <= 1e-24 * max(float(x @ x) / len(x), 1e-300)
    scale = np.sqrt(m * (n - m) / max(n - 1, 1) * (0.0 if flat else spread))
    z = _over(slices.sums(deviations), scale)
    two = np.unique(x) if clusters is None and not rows.sampled else np.zeros(0)
    if flat:
        drawn: Iterator[FloatArray] = iter(())
    elif len(two) == 2:
        drawn = _draw_two(slices, deviations, options)
    else:
        drawn = _draw_orders(slices, deviations, options)
    p = _adjusted(
        z,
        (_over(sums, scale[:, None]).max(axis=0, initial=-math.inf) for sums in drawn),
        n_permutations,
    )
    inside, outside = _estimates(slices, units, mean, bool(np.isin(x, (0.0, 1.0)).all()))
    share = slices.rows / units.rows.sum()
    loss = (inside.values, mean) if better == "lower" else (1 - inside.values, 1 - mean)
    least = x.min() if better == "lower" else 1 - x.max()
    score = _sliceline(*loss, share) if least >= 0 else share * math.nan
    notes = [f"All {len(x):,} rows have the same value: no segment differs."] if flat else [BIASED]
    notes += units.notes
    return _result(
        columns, slices, units, (inside, outside), (z, z, p, score), mean, notes, options
    )


def differing_segments(
    columns: Sequence[SegmentColumn],
    first: Any,
    second: Any,
    *,
    where: Any = None,
    weights: Any = None,
    clusters: Any = None,
    depth: int = 2,
    min_rows: int = 100,
    n_permutations: int = N_PERMUTATIONS,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> SegmentSearch:
    """Find the segments where two models differ on the same rows.

    Under the null hypothesis the difference of a row, or the sum of a cluster's differences in a segment, is as likely
    positive as negative: the models do not differ in any segment.

    Parameters
    ----------
    columns, where, weights, clusters, depth, min_rows, n_permutations, confidence_level, seed
        As in :func:`worst_segments`; a cluster may lie in several segments.
    first, second : array-like of shape (n,)
        What the metric of each model is the mean of.

    Returns
    -------
    SegmentSearch
        Of first less second. ``z = sum over S / sqrt(sum of squares over S)``; the p-values are two-sided.

    Raises
    ------
    TypeError, ValueError
        As :func:`worst_segments` does.

    Examples
    --------
    >>> from cmtrack.segments import differing_segments, search_columns
    >>> columns = search_columns({"region": ["north"] * 200 + ["south"] * 200}, 400)
    >>> first, second = [1] * 300 + [0] * 100, [1] * 200 + [0] * 200
    >>> found = differing_segments(columns, first, second).segments[0]
    >>> found.text, found.value, found.p_adjusted
    ('region = south', 0.5, 0.001)
    """
    options = _Options.checked(depth, min_rows, n_permutations, confidence_level, seed)
    rows = _Rows(columns, {"first": first, "second": second}, where, weights, clusters)
    d = rows.values["first"] - rows.values["second"]
    mean = float(d @ rows.weights / rows.weights.sum())
    units = rows.units(d, nested=False)
    slices = _searched(columns, units, options)
    scale = np.sqrt(_products(slices, units, units.sums, units.sums)[0])
    z = _over(slices.sums(units.sums), scale)
    draw = _draw_signs(slices, units, options)
    most = (_over(np.abs(drawn), scale[:, None]).max(axis=0, initial=-math.inf) for drawn in draw)
    p = _adjusted(np.abs(z), most, n_permutations)
    inside, outside = _estimates(slices, units, 0.0, False)
    return _result(
        columns,
        slices,
        units,
        (inside, outside),
        (np.abs(z), z, p, z * math.nan),
        mean,
        [BIASED],
        options,
    )


# -- rows ----------------------------------------------------------------------------------------------


class _Options(NamedTuple):
    depth: int
    min_rows: int
    n_permutations: int
    confidence_level: float
    seed: int

    @classmethod
    def checked(
        cls, depth: Any, min_rows: Any, n_permutations: Any, confidence_level: float, seed: int
    ) -> _Options:
        if depth not in (1, 2):
            raise ValueError(f"depth must be 1 or 2, got {depth!r}")
        for name, number in (("min_rows", min_rows), ("n_permutations", n_permutations)):
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}")
        return cls(depth, int(min_rows), int(n_permutations), check_level(confidence_level), seed)


@dataclass(frozen=True, eq=False)
class _Units:
    """Rows, or clusters of rows, that are permuted whole.

    ``codes`` of each column, number of ``rows``, ``sums`` of weighted values, ``weights``, and the sums of the rows'
    squared weights if these are sampling weights, else None. Where clusters may lie in several segments, the units are
    their parts, and ``owner`` is the cluster of each.
    """

    codes: list[IntArray]
    rows: IntArray
    sums: FloatArray
    weights: FloatArray
    squares: FloatArray | None
    owner: IntArray | None
    clustered: bool
    n_clusters: int
    notes: tuple[str, ...] = ()


class _Rows:
    """The metric's own rows, checked."""

    def __init__(
        self,
        columns: Sequence[SegmentColumn],
        values: dict[str, Any],
        where: Any,
        weights: Any,
        clusters: Any,
    ) -> None:
        if not columns:
            raise ValueError("columns must have at least one segment column, got none")
        if not all(isinstance(column, SegmentColumn) for column in columns):
            kinds = sorted({type(column).__name__ for column in columns})
            raise TypeError(
                f"columns must be segment columns, as search_columns makes them, got {kinds}"
            )
        repeated = sorted(
            {c.name for c in columns if sum(c.name == other.name for other in columns) > 1}
        )
        if repeated:
            raise ValueError(f"segment columns must not repeat, got {repeated[0]!r} more than once")
        n = len(columns[0].codes)
        for column in columns:
            if len(column.codes) != n:
                raise ValueError(
                    f"segment columns must have one length, got {n:,} and {len(column.codes):,}"
                )
        arrays = {}
        for name, given in values.items():
            if np.ndim(given) != 1 or len(given) != n:
                raise ValueError(
                    f"{name} must have one number per row, got {np.shape(given)} for {n:,} rows"
                )
            arrays[name] = np.asarray(given)
        checked = as_weights(weights, n)
        mask = _mask(where, n) & (True if checked is None else checked > 0)
        if not mask.any():
            raise ValueError(f"the metric must have rows to search, got none of {n:,}")
        groups = None if clusters is None else encode_groups(clusters, n)
        taken = {name: to_float_array(name, array[mask]) for name, array in arrays.items()}
        self.columns, self.sampled = columns, checked is not None and checked.dtype.kind == "f"
        times: Any = 1 if checked is None or self.sampled else checked[mask].astype(np.int64)
        if np.sum(times) > MAX_UNITS:
            raise ValueError(
                f"weights must stand for at most {MAX_UNITS:,} rows, got {int(times.sum()):,}"
            )
        rows = np.repeat(np.flatnonzero(mask), times)
        self.codes = [column.codes[rows] for column in columns]
        self.values = {name: np.repeat(one, times) for name, one in taken.items()}
        self.weights = (
            checked[rows].astype(np.float64)
            if checked is not None and self.sampled
            else np.ones(len(rows))
        )
        self.clusters: IntArray | None = None
        if groups is not None:
            self.clusters = np.unique(groups[rows], return_inverse=True)[1].astype(
                np.int64, copy=False
            )

    def units(self, deviations: FloatArray, nested: bool) -> _Units:
        """The rows, or the clusters; ``nested`` refuses clusters in several segments of a column."""
        weighted, ones = self.weights * deviations, np.ones(len(deviations), dtype=np.int64)
        squared = self.weights**2
        if self.clusters is None:
            squares = squared if self.sampled else None
            return _Units(self.codes, ones, weighted, self.weights, squares, None, False, 0)
        owner, n = self.clusters, 1 + int(self.clusters.max())
        place, size, of_unit, of_column = owner, n, None, self.codes
        notes: tuple[str, ...] = ()
        if nested:
            of_column, notes = self._nested(owner, n)
        else:
            for column, codes in zip(self.columns, self.codes, strict=True):
                place, size = combine(place, size, codes, len(column.texts))
            of_unit = np.zeros(size, dtype=np.int64)
            of_unit[place] = owner
        some = np.zeros(size, dtype=np.int64)
        some[place] = np.arange(len(place))
        return _Units(
            [codes[some] for codes in of_column],
            np.bincount(place, minlength=size),
            np.bincount(place, weighted, size).astype(np.float64),
            np.bincount(place, self.weights, size).astype(np.float64),
            np.bincount(place, squared, size).astype(np.float64) if self.sampled else None,
            of_unit,
            True,
            n,
            notes,
        )

    def _nested(self, owner: IntArray, n: int) -> tuple[list[IntArray], tuple[str, ...]]:
        """The segment of each cluster for each of its rows, by column; rows without a value take that of the others."""
        filled, notes = [], []
        for column, codes in zip(self.columns, self.codes, strict=True):
            missing = column.values.index(None) if None in column.values else -1
            present = codes != missing
            first = np.full(n, missing, dtype=np.int64)
            first[owner[present]] = codes[present]
            filled.append(np.where(present, codes, first[owner]))
            apart = len(np.unique(owner[first[owner] != filled[-1]]))
            if apart:
                raise ValueError(
                    f"each cluster must lie in one segment of every column, {apart:,} of {n:,} lie in several of "
                    f"{column.name!r}: leave this column out, or give clusters that do not cross it"
                )
            if taken := int((filled[-1] != codes).sum()):
                notes.append(
                    f"{taken:,} rows without a value of {column.name!r} are searched with their cluster's."
                )
        return filled, tuple(notes)


def _mask(where: Any, n: int) -> BoolArray:
    if where is None:
        return np.ones(n, dtype=np.bool_)
    mask = np.asarray(where)
    if mask.dtype.kind != "b" or mask.shape != (n,):
        raise ValueError(
            f"where must be True or False for each of {n:,} rows, got {mask.dtype} of {mask.shape}"
        )
    return mask


def _searched(columns: Sequence[SegmentColumn], units: _Units, options: _Options) -> Lattice:
    found = lattice(columns, units.codes, units.rows, options.depth, options.min_rows)
    if not found.slices:
        raise ValueError(
            f"min_rows must be at most {found.largest:,}, got {options.min_rows:,}: that is the size of the largest of "
            f"{found.seen:,} segments which is not all of the metric's {int(units.rows.sum()):,} rows"
        )
    return found


# -- permutations --------------------------------------------------------------------------------------


def _over(sums: FloatArray, scale: FloatArray) -> FloatArray:
    """Sums by their standard deviations; where nothing varies NaN, and -inf in drawn ones, whose maximum is taken."""
    with np.errstate(all="ignore"):
        return np.where(scale > 0, sums / scale, math.nan if sums.ndim == 1 else -math.inf)


def _adjusted(z: FloatArray, maxima: Iterator[FloatArray], n_permutations: int) -> FloatArray:
    """(1 + maxima as large as z) / (1 + number of maxima); 1 where there is no z. Rounded, so that ties are ties."""
    drawn = np.sort(np.round(np.concatenate([*maxima, np.zeros(0)]), _DIGITS))
    as_large = len(drawn) - np.searchsorted(drawn, np.round(z, _DIGITS), side="left")
    return np.where(np.isfinite(z), (1 + as_large) / (1 + n_permutations), 1.0)


def _batches(n: int) -> Iterator[int]:
    for start in range(0, n, _AT_ONCE):
        yield min(_AT_ONCE, n - start)


def _drawn(
    slices: Lattice,
    options: _Options,
    codes: Sequence[IntArray],
    draw: Callable[[], tuple[Any, FloatArray | None]],
) -> Iterator[FloatArray]:
    """Sums of slices (S, b) of the units that are drawn, of their values or, for None, of ones.

    ``codes``: the cell of each unit in each table.
    """
    for batch in _batches(options.n_permutations):
        tables = [np.empty((batch, block.size)) for block in slices.blocks]
        for i in range(batch):
            some, values = draw()
            for cells, table in zip(codes, tables, strict=True):
                table[i] = np.bincount(cells[some], values, table.shape[1])
        yield sum(
            block.selection @ table.T for block, table in zip(slices.blocks, tables, strict=True)
        )


def _draw_two(slices: Lattice, deviations: FloatArray, options: _Options) -> Iterator[FloatArray]:
    """Sums (S, b) where values are of two kinds: counts of the rarer kind in each cell, multivariate hypergeometric."""
    rng = np.random.default_rng(options.seed)
    low, high = float(deviations.min()), float(deviations.max())
    many = int(np.sum(deviations > (low + high) / 2))
    units = len(deviations)
    usual, rare, k = (low, high, many) if 2 * many <= units else (high, low, units - many)
    base = usual * slices.sums(None)[:, None]
    alone = slices.blocks[0]
    if len(slices.blocks) == 1 and 8 * alone.size < k and units < 10**9:
        colours = np.bincount(alone.codes, minlength=alone.size)
        batches = _batches(options.n_permutations)
        tables = (
            rng.multivariate_hypergeometric(colours, k, batch, "marginals") for batch in batches
        )
        counts: Iterator[FloatArray] = (
            alone.selection @ table.astype(np.float64).T for table in tables
        )
    else:
        codes = [block.codes for block in slices.blocks]
        counts = _drawn(
            slices,
            options,
            codes,
            lambda: (rng.choice(units, k, replace=False, shuffle=False), None),
        )
    return (base + (rare - usual) * sums for sums in counts)


def _draw_orders(
    slices: Lattice, deviations: FloatArray, options: _Options
) -> Iterator[FloatArray]:
    """Sums (S, b) of deviations in random order."""
    rng, mixed = np.random.default_rng(options.seed), deviations.copy()

    def shuffled() -> tuple[Any, FloatArray]:
        rng.shuffle(mixed)
        return ..., mixed

    return _drawn(slices, options, [block.codes for block in slices.blocks], shuffled)


def _draw_signs(slices: Lattice, units: _Units, options: _Options) -> Iterator[FloatArray]:
    """Sums (S, b) of differences with random signs, one for each cluster."""
    rng, there = np.random.default_rng(options.seed), units.sums != 0
    left = units.sums[there]
    owner = None if units.owner is None else units.owner[there]
    size = len(left) if owner is None else units.n_clusters

    def flipped() -> tuple[Any, FloatArray]:
        signs = 2.0 * rng.integers(0, 2, size, dtype=np.int8) - 1.0
        return ..., left * (signs if owner is None else signs[owner])

    return _drawn(slices, options, [block.codes[there] for block in slices.blocks], flipped)


def _products(
    slices: Lattice, units: _Units, a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Products of two sums, added over the rows or clusters in each slice, and over those outside; both (S,).

    A cluster in several slices has one sum in each.
    """
    if units.owner is None:
        inside = slices.sums(a * b)
        return inside, float(a @ b) - inside
    own_a, own_b = slices.by_cluster(units.owner, a), slices.by_cluster(units.owner, b)
    whole_a, whole_b = np.bincount(units.owner, a), np.bincount(units.owner, b)
    inside = np.asarray(own_a.multiply(own_b).sum(axis=1)).ravel()
    return inside, float(whole_a @ whole_b) - own_a @ whole_b - own_b @ whole_a + inside


def _counts(slices: Lattice, units: _Units) -> tuple[FloatArray, FloatArray]:
    """Rows, or clusters, in each slice and outside of it; both (S,)."""
    if units.owner is None:
        inside = slices.sums(None)
        return inside, len(units.sums) - inside
    parts = slices.by_cluster(units.owner, np.ones(len(units.owner)))
    wholly = parts.copy()
    wholly.data = (parts.data == np.bincount(units.owner)[parts.indices]).astype(np.float64)
    return np.diff(parts.indptr).astype(np.float64), units.n_clusters - np.asarray(
        wholly.sum(axis=1)
    ).ravel()


# -- what is told of a segment -------------------------------------------------------------------------


def _estimates(
    slices: Lattice, units: _Units, mean: float, shares: bool
) -> tuple[Estimates, Estimates]:
    """Means inside and outside of each slice, with their errors (the influence of a mean, summed by cluster)."""
    s, w = units.sums, units.weights
    squares = [_products(slices, units, *pair) for pair in ((s, s), (s, w), (w, w))]
    totals = [(inside := slices.sums(one), float(one.sum()) - inside) for one in (s, w)]
    by_row: list[FloatArray] | None = None
    if units.squares is not None:
        inside = slices.sums(units.squares)
        by_row = [inside, float(units.squares.sum()) - inside]
    sides = []
    for side, count in enumerate(_counts(slices, units)):
        ss, sw, ww = (pair[side] for pair in squares)
        total, weight = (pair[side] for pair in totals)
        with np.errstate(all="ignore"):
            value = total / weight
            variance = np.maximum(ss - 2 * value * sw + value**2 * ww, 0.0)
            if units.clustered:
                variance *= np.where(count > 1, count / (count - 1), 1.0)
            error, size = np.sqrt(variance) / weight, weight**2 / ww
            kish = math.inf if by_row is None else weight**2 / by_row[side]
        degrees = np.maximum(count - 1, 1.0) if units.clustered else None
        value = value + mean
        if not shares:
            sides.append(Estimates(value, error, None, degrees))
            continue
        value = np.clip(np.round(value, 14), 0.0, 1.0)
        error = np.where((value > 0) & (value < 1), error, 0.0)
        sides.append(
            Estimates(value, error, np.atleast_1d(size_of_share(value, error, size, kish)), degrees)
        )
    return sides[0], sides[1]


def _sliceline(loss: FloatArray, mean: float, share: FloatArray) -> FloatArray:
    """SliceLine's score (Sagadeeva, Boehm 2021): relative loss against relative size."""
    with np.errstate(all="ignore"):
        score = SLICELINE_ALPHA * (loss / mean - 1) - (1 - SLICELINE_ALPHA) * (1 / share - 1)
    return np.where(np.isfinite(score), score, math.nan)


def _result(
    columns: Sequence[SegmentColumn],
    slices: Lattice,
    units: _Units,
    sides: tuple[Estimates, Estimates],
    tests: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    mean: float,
    notes: list[str],
    options: _Options,
) -> SegmentSearch:
    (inside, outside), (worse, z, p, score) = sides, tests
    order = np.lexsort((-slices.rows, -np.nan_to_num(worse, nan=-math.inf)))
    gaps = differences(inside, outside, options.confidence_level, len(slices.slices))
    low, high = inside.ends(gaps.level)
    clusters = _counts(slices, units)[0].astype(np.int64) if units.clustered else None
    table = np.stack(
        (
            inside.values,
            low,
            high,
            outside.values,
            gaps.values,
            gaps.low,
            gaps.high,
            inside.values - mean,
            score,
            z,
            p,
        )
    )[:, order].T.tolist()
    segments = []
    many = [None] * len(order) if clusters is None else clusters.tolist()
    for k, numbers in zip(order.tolist(), table, strict=True):
        where = tuple((columns[c].name, columns[c].texts[v]) for c, v in slices.slices[k])
        segments.append(SearchedSegment(where, int(slices.rows[k]), many[k], *numbers))
    return SegmentSearch(
        tuple(segments),
        len(segments),
        int(units.rows.sum()),
        units.n_clusters if units.clustered else None,
        mean,
        options.depth,
        options.min_rows,
        options.n_permutations,
        options.seed,
        options.confidence_level,
        gaps.level,
        (*notes, *(column.note for column in columns if column.note)),
    )
