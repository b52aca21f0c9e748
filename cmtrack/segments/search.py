"""Search for a model's worst segments, with control of the family-wise error rate.

The search examines a segment for each value of a column, and for each combination of values of two
columns. Under the null hypothesis the rows' losses are exchangeable. Random permutations of the
losses therefore show how far the worst segment deviates by chance (Westfall, Young 1993). Clusters
of rows are permuted as a whole. The estimated value of a found segment is biased, because the
segment was selected for its bad value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmtrack import notebook
from cmtrack.metrics.intervals import check_level, size_of_share
from cmtrack.segments.columns import SegmentColumn
from cmtrack.segments.inference import Estimates, differences
from cmtrack.statistics.attributes import distinct
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, as_weights, to_float_array
from cmtrack.statistics.labels import encode_groups
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

N_PERMUTATIONS = 999
SLICELINE_ALPHA = 0.95
"""Weight of the loss relative to the size in the score; SliceLine uses this value by default."""
MAX_UNITS = 10**8
MAX_SEGMENTS = 200_000
_AT_ONCE = 64
_NUMBERS_AT_ONCE = 1 << 23
"""Maximum number of permuted values in memory; ``_AT_ONCE`` also limits the permutations."""
_DIGITS = 9
"""Number of decimal places to which z values are rounded before they are compared."""
SAMPLING_WEIGHTS = (
    "worst_segments works without weights and with integer weights, which count identical "
    'rows; for sampling weights, evaluation.segments["region"].to_frame() compares declared '
    "segments"
)
BIASED = (
    "The value of a segment that was found is biased, because the segment was chosen for its "
    "extreme value."
)


@dataclass(frozen=True)
class SearchedSegment:
    """A segment that was examined in a search.

    Attributes
    ----------
    where : tuple of (column, value) pairs of str
    rows : int
        Number of the segment's rows from which the metric is computed.
    clusters : int or None
        Number of clusters in the segment; None if the rows are not in clusters.
    value, low, high : float
        Mean over the rows in the segment, and the ends of its interval. The intervals of all
        searched segments hold simultaneously. The mean and its interval are biased if the segment
        was selected for its value.
    rest, difference, difference_low, difference_high : float
        Mean of all rows outside the segment, ``value`` minus this mean, and the ends of the
        simultaneous interval of this difference.
    divergence : float
        ``value`` minus the mean of all rows, which is the divergence that DivExplorer computes.
    score : float
        Score of the SliceLine algorithm with alpha = 0.95; NaN if a loss is negative.
    z : float
        Standardised sum of the segment's deviations from the mean of all rows. A positive sum means
        a worse segment. NaN if all rows have the same value.
    p_adjusted : float
        Probability that the worst searched segment deviates at least this far by chance.

    Examples
    --------
    >>> from cmtrack.segments import search_columns, worst_segments
    >>> columns = search_columns({"region": ["north"] * 200 + ["south"] * 200}, 400)
    >>> correct = [1] * 190 + [0] * 10 + [1] * 140 + [0] * 60
    >>> worst = worst_segments(columns, correct, better="higher").segments[0]
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
    """Result of a search: all searched segments, starting with the worst.

    Attributes
    ----------
    segments : tuple of SearchedSegment
        The segments, in descending order of z.
    searched : int
        Number of segments with at least ``min_rows`` rows. The adjusted p-values and the intervals
        account for all of these segments.
    rows : int
        Number of searched rows.
    clusters : int or None
        Number of clusters; None if the rows are not in clusters.
    value : float
        The mean of all rows.
    depth, min_rows, n_permutations, seed : int
    confidence_level : float
        The level at which all intervals hold simultaneously; ``level`` is the level of each
        individual interval.
    notes : tuple of str
        Notes for readers, for example on the bias of found segments or on columns that were cut.

    Examples
    --------
    >>> from cmtrack.segments import search_columns, worst_segments
    >>> columns = search_columns({"region": ["north"] * 200 + ["south"] * 200}, 400)
    >>> correct = [1] * 190 + [0] * 10 + [1] * 140 + [0] * 60
    >>> found = worst_segments(columns, correct, better="higher")
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
        """Return the segments whose adjusted p-value is at most ``alpha``.

        The probability of finding any segment by chance alone is at most ``alpha``.
        """
        return tuple(segment for segment in self.segments if segment.p_adjusted <= alpha)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per segment, starting with the worst segment."""
        from cmtrack._pandas import pd

        names = [field.name for field in fields(SearchedSegment)]
        frame = pd.DataFrame(self.segments, columns=names)
        frame.insert(0, "segment", [segment.text for segment in self.segments])
        clusters = frame.pop("clusters")
        if self.clusters is not None:
            frame["clusters"] = clusters
        return frame.drop(columns="where")

    def _summary(self) -> str:
        return (
            f"{len(self.found())} of {self.searched:,} searched segments have an adjusted p-value "
            f"of at most .05 ({self.rows:,} rows, {self.n_permutations} permutations)"
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
    """Find the segments whose mean is worse than the mean of all other rows.

    Parameters
    ----------
    columns : sequence of SegmentColumn
        Columns from :func:`~cmtrack.segments.search_columns`.
    values : array-like of shape (n,)
        One number per row. The metric is the mean of these numbers. For accuracy and recall, the
        number is 1 for a correct prediction and 0 for a wrong prediction. For other metrics, it is
        a cost or the negative logarithm of the probability of the actual class.
    better : "lower" or "higher"
        Whether higher or lower values are better.
    where : array-like of shape (n,), bool, optional
        The rows from which the metric is computed. For the recall of a class, these are the rows of
        the class. By default all rows are used.
    weights : array-like of shape (n,), optional
        Integer weights: the number of identical rows that each row represents. Rows with a weight
        of 0 are ignored. The search does not accept sampling weights.
    clusters : array-like of shape (n,), optional
        Cluster of each row. Clusters are permuted as a whole, so within a cluster every column must
        contain a single value. If a row's value is missing, the value of the other rows in its
        cluster is used.
    depth : 1 or 2
        Maximum number of columns that define a segment. With 2, the search also covers combinations
        of values of two columns.
    min_rows : int
        Smallest number of rows of a segment to be searched.
    n_permutations : int, default 999
    confidence_level : float
    seed : int

    Returns
    -------
    SegmentSearch
        ``z = sum of e over S / sqrt(m (n - m) / (n - 1) mean of e^2)``, where S is a segment with m
        of the n rows (or clusters), and e are the deviations of the values from their mean, added
        up over the rows of a cluster and positive in the worse direction. ``p_adjusted = (1 +
        permutations whose greatest z is at least as large) / (1 + permutations)``, which is exact
        if no segment differs.

    Raises
    ------
    TypeError, ValueError
        If columns, values, weights and clusters differ in length, if ``where`` selects no row, if a
        value is not finite, if weights are sampling weights, if a cluster is in two segments of a
        column, if no segment has at least ``min_rows`` rows, or if ``depth`` is not 1 or 2.

    Notes
    -----
    The time grows with ``n_permutations``, the number of rows and the number of crossings. A search
    over 10⁵ rows and all pairs of 8 columns takes about 6 s on one core.

    Examples
    --------
    >>> from cmtrack.segments import search_columns, worst_segments
    >>> data = {"region": ["north"] * 200 + ["south"] * 200, "new": [True, False] * 200}
    >>> correct = [1] * 190 + [0] * 10 + [1] * 140 + [0] * 60
    >>> found = worst_segments(search_columns(data, 400), correct, better="higher")
    >>> found.searched, found.segments[0].text, found.segments[0].p_adjusted
    (8, 'region = south', 0.001)
    """
    if better not in ("higher", "lower"):
        raise ValueError(f'better must be "higher" or "lower", got {better!r}')
    options = _Options.checked(depth, min_rows, n_permutations, confidence_level, seed)
    n_rows = _common_length(columns)
    rows = _searched_rows(values, where, weights, n_rows)
    x = to_float_array("values", np.asarray(values)[rows])
    mean = float(x.mean())
    units = _units(columns, rows, clusters, n_rows, x - mean)
    slices = _slices(columns, units, options)
    spread = float(units.sums @ units.sums) / len(units.sums)
    is_flat = spread <= 1e-24 * max(float(x @ x) / len(x), 1e-300)
    if is_flat:
        z = np.full(len(slices.rows), math.nan)
        p = np.ones(len(slices.rows))
        notes = [f"All {len(x):,} rows have the same value: no segment differs."]
    else:
        z, p = _permutation_test(slices, units.sums if better == "lower" else -units.sums, options)
        notes = [BIASED]
    inside, outside = _estimates(slices, units, mean, bool(np.isin(x, (0.0, 1.0)).all()))
    score = _sliceline(inside.values, mean, x, better, slices.rows / len(x))
    gaps = differences(inside, outside, options.confidence_level, len(slices.rows))
    low, high = inside.ends(gaps.level)
    clusters_inside = slices.sums(np.ones(len(units.rows))).astype(np.int64)
    order = np.lexsort((-slices.rows, -np.nan_to_num(z, nan=-math.inf)))
    segments = tuple(
        SearchedSegment(
            where=slices.where[k],
            rows=int(slices.rows[k]),
            clusters=None if clusters is None else int(clusters_inside[k]),
            value=float(inside.values[k]),
            low=float(low[k]),
            high=float(high[k]),
            rest=float(outside.values[k]),
            difference=float(gaps.values[k]),
            difference_low=float(gaps.low[k]),
            difference_high=float(gaps.high[k]),
            divergence=float(inside.values[k] - mean),
            score=float(score[k]),
            z=float(z[k]),
            p_adjusted=float(p[k]),
        )
        for k in order.tolist()
    )
    return SegmentSearch(
        segments=segments,
        searched=len(segments),
        rows=len(x),
        clusters=None if clusters is None else len(units.rows),
        value=mean,
        depth=options.depth,
        min_rows=options.min_rows,
        n_permutations=options.n_permutations,
        seed=options.seed,
        confidence_level=options.confidence_level,
        level=gaps.level,
        notes=(*notes, *units.notes, *(column.note for column in columns if column.note)),
    )


# -- rows -----------------------------------------------------------------------------------------


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
            raise ValueError(
                f"depth must be 1 or 2, got {depth!r}: a search crosses at most two columns"
            )
        for name, number in (("min_rows", min_rows), ("n_permutations", n_permutations)):
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}")
        return cls(depth, int(min_rows), int(n_permutations), check_level(confidence_level), seed)


def _common_length(columns: Sequence[SegmentColumn]) -> int:
    """Check the columns, and return their number of rows."""
    if not columns:
        raise ValueError("columns must have at least one segment column, got none")
    if not all(isinstance(column, SegmentColumn) for column in columns):
        kinds = sorted({type(column).__name__ for column in columns})
        raise TypeError(
            f"columns must be segment columns, as search_columns makes them, got {kinds}"
        )
    names = [column.name for column in columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"segment columns must not repeat, got {repeated[0]!r} more than once")
    n_rows = len(columns[0].codes)
    for column in columns:
        if len(column.codes) != n_rows:
            raise ValueError(
                f"segment columns must have the same length, got {n_rows:,} and "
                f"{len(column.codes):,}"
            )
    return n_rows


def _searched_rows(values: Any, where: Any, weights: Any, n_rows: int) -> IntArray:
    """Return the positions of the rows to search, each repeated according to its weight."""
    if np.ndim(values) != 1 or len(values) != n_rows:
        raise ValueError(
            f"values must have one number per row, got {np.shape(values)} for {n_rows:,} rows"
        )
    mask = _mask(where, n_rows)
    checked = as_weights(weights, n_rows)
    if checked is not None:
        if checked.dtype.kind == "f":
            raise ValueError(SAMPLING_WEIGHTS)
        mask = mask & (checked > 0)
    if not mask.any():
        raise ValueError(f"the metric must have rows to search, got none of {n_rows:,}")
    rows = np.flatnonzero(mask)
    if checked is None:
        return rows
    total = int(checked[mask].sum())
    if total > MAX_UNITS:
        raise ValueError(f"weights must stand for at most {MAX_UNITS:,} rows, got {total:,}")
    return np.repeat(rows, checked[mask].astype(np.int64))


def _mask(where: Any, n: int) -> BoolArray:
    if where is None:
        return np.ones(n, dtype=np.bool_)
    mask = np.asarray(where)
    if mask.dtype.kind != "b" or mask.shape != (n,):
        raise ValueError(
            f"where must be True or False for each of {n:,} rows, got {mask.dtype} of {mask.shape}"
        )
    return mask


class _Units(NamedTuple):
    """Units of the permutation test: individual rows or clusters of rows.

    ``codes``: for each column, the segment of each of the u units, shape (u,).
    ``rows``, shape (u,): number of rows of each unit.
    ``sums``, shape (u,): for each unit, the sum of the deviations of its rows from the mean.
    """

    codes: list[IntArray]
    rows: FloatArray
    sums: FloatArray
    clustered: bool = False
    notes: tuple[str, ...] = ()


def _units(
    columns: Sequence[SegmentColumn],
    rows: IntArray,
    clusters: Any,
    n_rows: int,
    deviations: FloatArray,
) -> _Units:
    """Return the searched rows, or the clusters of these rows, as the units to permute."""
    codes = [column.codes[rows] for column in columns]
    if clusters is None:
        return _Units(codes, np.ones(len(rows)), deviations)
    names, cluster = np.unique(encode_groups(clusters, n_rows)[rows], return_inverse=True)
    notes = []
    by_cluster = []
    for column, of_rows in zip(columns, codes, strict=True):
        segment, filled = _segment_of_clusters(column, of_rows, cluster, len(names))
        by_cluster.append(segment)
        if filled:
            notes.append(
                f"{filled:,} rows without a value of {column.name!r} are searched "
                "with the value of their cluster."
            )
    sizes = np.bincount(cluster).astype(np.float64)
    return _Units(
        by_cluster, sizes, np.bincount(cluster, deviations).astype(np.float64), True, tuple(notes)
    )


def _segment_of_clusters(
    column: SegmentColumn, codes: IntArray, cluster: IntArray, n_clusters: int
) -> tuple[IntArray, int]:
    """Return each cluster's segment, and the number of rows whose missing value was replaced."""
    missing = column.values.index(None) if None in column.values else -1
    present = codes != missing
    segment = np.full(n_clusters, missing, dtype=np.int64)
    segment[cluster[present]] = codes[present]
    elsewhere = codes != segment[cluster]
    several = len(np.unique(cluster[elsewhere & present]))
    if several:
        raise ValueError(
            f"each cluster must be in one segment of every column, {several:,} of {n_clusters:,} "
            f"are in several segments of {column.name!r}: leave this column out, "
            "or give clusters that do not cross it"
        )
    return segment, int(elsewhere.sum())


# -- segments -------------------------------------------------------------------------------------


class _Slices(NamedTuple):
    """Segments that contain enough rows, defined by the values of one or two columns.

    ``where``: (column, value) pairs of each segment.
    ``rows``, shape (S,): number of rows of each segment.
    ``members``: for each column or pair of columns, a scipy.sparse.csc_array of ones that marks the
    units of each segment. The array's rows are the segments, followed by one row for all other
    combinations of values. The array's columns are the units.
    """

    where: list[tuple[tuple[str, str], ...]]
    rows: IntArray
    members: list[Any]

    def sums(self, values: FloatArray) -> FloatArray:
        """For each segment, add up the values of its units; values have shape (u,) or (u, b)."""
        return np.concatenate([(member @ values)[:-1] for member in self.members])


def _slices(columns: Sequence[SegmentColumn], units: _Units, options: _Options) -> _Slices:
    from scipy.sparse import csc_array

    n_units = len(units.rows)
    n_rows = int(units.rows.sum())
    ones = np.ones(n_units)
    starts = np.arange(n_units + 1)  # each unit is in exactly one cell
    where: list[tuple[tuple[str, str], ...]] = []
    sizes: list[IntArray] = []
    members = []
    largest = 0
    seen = 0
    for chosen in _crossings(len(columns), options.depth):
        cell = np.zeros(n_units, dtype=np.int64)
        size = 1
        for c in chosen:
            pairs, cell = distinct(cell * len(columns[c].texts) + units.codes[c])
            size = len(pairs)
        support = np.bincount(cell, units.rows, size).astype(np.int64)
        is_part = support < n_rows
        largest = max(largest, int(support[is_part].max(initial=0)))
        seen += size
        large = np.flatnonzero(is_part & (support >= options.min_rows))
        if len(where) + len(large) > MAX_SEGMENTS:
            raise ValueError(
                f"a search must cover at most {MAX_SEGMENTS:,} segments, got more: give fewer "
                f"columns, or a min_rows above {options.min_rows}"
            )
        if not len(large):
            continue
        number = np.full(size, len(large), dtype=np.int32)
        number[large] = np.arange(len(large))
        members.append(csc_array((ones, number[cell], starts), shape=(len(large) + 1, n_units)))
        sizes.append(support[large])
        some_unit = np.zeros(size, dtype=np.int64)
        some_unit[cell] = np.arange(n_units)
        values = [
            [(columns[c].name, columns[c].texts[v]) for v in units.codes[c][some_unit[large]]]
            for c in chosen
        ]
        where.extend(zip(*values, strict=True))
    if not members:
        raise ValueError(
            f"min_rows must be at most {largest:,}, the size of the largest of {seen:,} "
            f"segments, got {options.min_rows:,}; segments with all {n_rows:,} rows of the "
            "metric do not count"
        )
    return _Slices(where, np.concatenate(sizes), members)


def _crossings(n_columns: int, depth: int) -> list[tuple[int, ...]]:
    """Return every column and, for depth 2, every pair of columns as a tuple of positions."""
    crossings: list[tuple[int, ...]] = []
    for n_crossed in range(1, depth + 1):
        crossings += combinations(range(n_columns), n_crossed)
    return crossings


# -- numbers --------------------------------------------------------------------------------------


def _permutation_test(
    slices: _Slices, deviations: FloatArray, options: _Options
) -> tuple[FloatArray, FloatArray]:
    """Return the z value and the adjusted p-value of each segment, both of shape (S,).

    ``deviations``, shape (u,): deviations of the units from their mean; positive is worse.
    """
    n = len(deviations)
    m = slices.sums(np.ones(n))
    scale = np.sqrt(m * (n - m) / max(n - 1, 1) * float(deviations @ deviations) / n)
    z = slices.sums(deviations) / scale
    rng = np.random.default_rng(options.seed)
    permuted = deviations.copy()
    at_once = max(min(_AT_ONCE, _NUMBERS_AT_ONCE // n), 1)
    greatest: list[FloatArray] = []
    for first in range(0, options.n_permutations, at_once):
        batch = np.empty((min(at_once, options.n_permutations - first), n))
        for draw in batch:
            rng.shuffle(permuted)
            draw[:] = permuted
        sums = slices.sums(np.ascontiguousarray(batch.T))
        greatest.append((sums / scale[:, None]).max(axis=0))
    # The order of summation affects the last digits of a sum. Rounding makes sums equal if they
    # differ only for this reason.
    drawn = np.sort(np.round(np.concatenate(greatest), _DIGITS))
    as_large = len(drawn) - np.searchsorted(drawn, np.round(z, _DIGITS), side="left")
    return z, (1 + as_large) / (1 + options.n_permutations)


def _estimates(
    slices: _Slices, units: _Units, mean: float, shares: bool
) -> tuple[Estimates, Estimates]:
    """For each segment, return the means inside and outside it, with their standard errors.

    The standard errors are computed from the variation between units.
    """
    s = units.sums
    w = units.rows
    parts = np.stack([s, w, s * s, s * w, w * w, np.ones(len(w))], axis=1)
    inside = slices.sums(parts)
    outside = parts.sum(axis=0) - inside
    return (
        _means(inside, mean, shares, units.clustered),
        _means(outside, mean, shares, units.clustered),
    )


def _means(sums: FloatArray, mean: float, shares: bool, clustered: bool) -> Estimates:
    total, rows, ss, sw, ww, n = sums.T
    with np.errstate(all="ignore"):
        value = total / rows
        variance = np.maximum(ss - 2 * value * sw + value**2 * ww, 0.0)
        if clustered:
            variance *= np.where(n > 1, n / (n - 1), 1.0)
        error = np.sqrt(variance) / rows
        size = rows**2 / ww
    degrees = np.maximum(n - 1, 1.0) if clustered else None
    value = value + mean
    if not shares:
        return Estimates(value, error, None, degrees)
    value = np.clip(np.round(value, 14), 0.0, 1.0)
    error = np.where((value > 0) & (value < 1), error, 0.0)
    return Estimates(
        value, error, np.atleast_1d(size_of_share(value, error, size, math.inf)), degrees
    )


def _sliceline(
    values: FloatArray, mean: float, x: FloatArray, better: str, share: FloatArray
) -> FloatArray:
    """Return each segment's SliceLine score (Sagadeeva, Boehm 2021), based on loss and size.

    The score is NaN if a loss is negative.
    """
    if better == "higher":
        values = 1 - values
        mean = 1 - mean
        x = 1 - x
    if x.min() < 0:
        return np.full(len(values), math.nan)
    with np.errstate(all="ignore"):
        score = SLICELINE_ALPHA * (values / mean - 1) - (1 - SLICELINE_ALPHA) * (1 / share - 1)
    return np.where(np.isfinite(score), score, math.nan)
