"""Quality of approximation of subsets of attributes, reducts and core.

A granule inside one class stays so under more attributes, and so do its rows. So the search over all subsets adds one
attribute at a time to what a smaller subset left undecided, and stops where nothing more can be decided.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cmtrack import notebook
from cmtrack.rough._granules import Values
from cmtrack.statistics.attributes import combine, encode_attribute
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

MAX_EXACT = 15


@dataclass(frozen=True, eq=False)
class AttributeSubsets:
    """The quality of approximation of subsets of attributes.

    Attributes
    ----------
    attributes : tuple of length A
        Their names.
    members : ndarray of shape (R, A), bool
        The subsets that were judged: all of them where ``exact``, else those on the way of the greedy search.
    gamma : ndarray of shape (R,)
        The quality of approximation of each: the share of samples in granules of a single class.
    reducts : tuple of tuples
        Smallest-by-inclusion subsets with the quality of all attributes, the ones with fewest attributes first: all of
        them where ``exact``, else one.
    core : tuple
        The attributes that every reduct has: without any of them the quality falls. Exact in any case.
    exact : bool
        Whether all subsets were judged.

    Examples
    --------
    >>> from cmtrack import attribute_subsets
    >>> weather = {"sky": ["sun", "sun", "rain", "rain"], "wind": [0, 1, 0, 1], "day": [1, 2, 3, 4]}
    >>> found = attribute_subsets(weather, ["out", "out", "in", "in"])
    >>> found.reducts, found.core, found.exact
    ((('sky',), ('day',)), (), True)
    """

    attributes: tuple[Hashable, ...]
    members: BoolArray
    gamma: FloatArray
    reducts: tuple[tuple[Hashable, ...], ...]
    core: tuple[Hashable, ...]
    exact: bool

    @property
    def gamma_of_all(self) -> float:
        """The quality of approximation of all attributes together."""
        return float(self.gamma[self.members.all(axis=1)][0])

    @property
    def reason(self) -> str:
        """The reason why the empty set is the only reduct; empty where it is not."""
        lacking = not self.gamma_of_all > 0
        return "gamma is 0: no granule is of a single class, so that no attribute decides anything" if lacking else ""

    def to_frame(self) -> pd.DataFrame:
        """One row per judged subset, small ones first and the best of a size before others."""
        from cmtrack._pandas import pd

        sizes = self.members.sum(axis=1)
        reducts = {frozenset(reduct) for reduct in self.reducts}
        subsets = [self._names(row) for row in self.members]
        frame = pd.DataFrame({
            "attributes": subsets,
            "n_attributes": sizes,
            "gamma": self.gamma,
            "reduct": [frozenset(subset) in reducts for subset in subsets],
        })  # fmt: skip
        order = np.lexsort((-self.gamma, sizes))
        return frame.iloc[order].reset_index(drop=True)

    def _names(self, row: BoolArray) -> tuple[Hashable, ...]:
        return tuple(name for name, chosen in zip(self.attributes, row, strict=True) if chosen)

    def __repr__(self) -> str:
        how = f"all {len(self.members)} subsets" if self.exact else f"greedy, {len(self.members)} subsets judged"
        shown = ", ".join(map(_braces, self.reducts[:4])) + (", …" if len(self.reducts) > 4 else "")
        return printable(
            f"AttributeSubsets({len(self.attributes)} attributes, {how}: gamma {self.gamma_of_all:.4g}, "
            f"reducts {shown}, core {_braces(self.core)}{self.reason and '; '}{self.reason})"
        )

    def _repr_html_(self) -> str:
        return notebook.view(notebook.table(self.to_frame()), notebook.sentence(self.reason))


@dataclass(frozen=True, eq=False)
class _Granules:
    """The finest granules: attribute codes (S, A), the number of values of each, the class (-1: several), the rows."""

    codes: IntArray
    sizes: tuple[int, ...]
    decision: IntArray
    rows: IntArray


def search(counts: IntArray, attributes: tuple[Hashable, ...], values: Values) -> AttributeSubsets:
    """Judge the subsets of the attributes of a granule table, counts (S, K)."""
    by_attribute = zip(attributes, zip(*values, strict=True), strict=True)
    columns = [encode_attribute(name, column) for name, column in by_attribute]
    single = (counts > 0).sum(axis=1) == 1
    data = _Granules(
        np.column_stack([codes for codes, _ in columns]),
        tuple(len(distinct) for _, distinct in columns),
        np.where(single, counts.argmax(axis=1), -1),
        counts.sum(axis=1),
    )
    exact = len(attributes) <= MAX_EXACT
    members, decided, reducts, core = _all_subsets(data) if exact else _greedy(data)
    return AttributeSubsets(
        attributes,
        members,
        decided / float(data.rows.sum()),
        tuple(tuple(attributes[a] for a in np.flatnonzero(row)) for row in reducts),
        tuple(attributes[a] for a in np.flatnonzero(core)),
        exact,
    )


_Found = tuple[BoolArray, IntArray, BoolArray, BoolArray]  # subsets, rows decided in each, reducts, core


def _all_subsets(data: _Granules) -> _Found:
    n = len(data.sizes)
    order = np.argsort([-_decided(data, [a]) for a in range(n)], kind="stable")  # decide early, search little
    decided = _decided_by_mask(data, order)
    masks = np.arange(1 << n)
    complete = decided == decided[-1]
    minimal = complete.copy()
    for bit in range(n):
        has = (masks >> bit & 1) == 1
        minimal &= ~has | ~complete[masks & ~(1 << bit)]
    members = np.empty((len(masks), n), dtype=bool)
    members[:, order] = (masks[:, None] >> np.arange(n) & 1) == 1
    core = np.array([not complete[masks[-1] & ~(1 << bit)] for bit in range(n)])
    reducts = members[minimal]
    return members, decided, reducts[np.argsort(reducts.sum(axis=1), kind="stable")], core[np.argsort(order)]


def _decided_by_mask(data: _Granules, order: IntArray) -> IntArray:
    """Rows in pure granules under each subset; bit b of an index is attribute ``order[b]``."""
    n, most = len(order), int(data.rows[data.decision >= 0].sum())
    out = np.zeros(1 << n, dtype=np.int64)

    def visit(mask: int, after: int, group: IntArray, size: int, left: IntArray, done: int) -> None:
        impure = _impure(group, size, data.decision[left])
        rest = left[impure]
        done += int(data.rows[left].sum() - data.rows[rest].sum())
        if done == most:  # so have all that contain it
            out[mask + (np.arange(1 << (n - after)) << after)] = most
            return
        out[mask] = done
        group = group[impure]
        for bit in range(after, n):
            a = order[bit]
            finer, count = combine(group, size, data.codes[rest, a], data.sizes[a])
            visit(mask | 1 << bit, bit + 1, finer, count, rest, done)

    everyone = np.arange(len(data.rows))
    visit(0, 0, np.zeros(len(everyone), dtype=np.int64), 1, everyone, 0)
    return out


def _greedy(data: _Granules) -> _Found:
    n = len(data.sizes)
    everything = list(range(n))
    most = _decided(data, everything)
    core = _needed(data, most)
    chosen = np.flatnonzero(core).tolist()
    decided = _decided(data, chosen)
    judged = {tuple(chosen): decided, tuple(everything): most}
    while decided < most:
        open_rows, group, size = _undecided(data, chosen)
        gains = {}
        for a in everything:
            if a not in chosen:
                finer, count = combine(group, size, data.codes[open_rows, a], data.sizes[a])
                impure = _impure(finer, count, data.decision[open_rows])
                gains[a] = int(data.rows[open_rows][~impure].sum())
        best = max(gains, key=lambda a: (gains[a], -a))
        chosen.append(best)
        decided += gains[best]
        judged[tuple(sorted(chosen))] = decided
    for a in sorted(set(chosen) - set(np.flatnonzero(core).tolist())):
        fewer = [b for b in chosen if b != a]
        judged[tuple(sorted(fewer))] = without = _decided(data, fewer)
        if without == most:
            chosen = fewer
    subsets = [np.isin(np.arange(n), subset) for subset in judged]
    reduct = np.isin(np.arange(n), chosen)
    return np.array(subsets), np.array(list(judged.values())), reduct[None, :], core


def _needed(data: _Granules, most: int) -> BoolArray:
    """Flags of the attributes without which fewer rows are decided, (A,); from partitions by the first and last."""
    n, rows = len(data.sizes), len(data.rows)
    nothing = (np.zeros(rows, dtype=np.int64), 1)
    last = [nothing]
    for a in reversed(range(1, n)):
        last.append(combine(*last[-1], data.codes[:, a], data.sizes[a]))
    first, needed = nothing, np.zeros(n, dtype=bool)
    for a in range(n):
        group, size = combine(*first, *last[n - 1 - a])
        impure = _impure(group, size, data.decision)
        needed[a] = int(data.rows[~impure].sum()) < most
        first = combine(*first, data.codes[:, a], data.sizes[a])
    return needed


def _undecided(data: _Granules, subset: list[int]) -> tuple[IntArray, IntArray, int]:
    """The finest granules that a subset leaves undecided, with the subset's granules that they are in."""
    group, size = np.zeros(len(data.rows), dtype=np.int64), 1
    for a in subset:
        group, size = combine(group, size, data.codes[:, a], data.sizes[a])
    impure = _impure(group, size, data.decision)
    return np.flatnonzero(impure), group[impure], size


def _decided(data: _Granules, subset: list[int]) -> int:
    """Rows in granules of one class under a subset."""
    return int(data.rows.sum() - data.rows[_undecided(data, subset)[0]].sum())


def _impure(group: IntArray, size: int, decision: IntArray) -> BoolArray:
    """Flags of the entries whose group holds more than one class."""
    seen = np.empty(size, dtype=np.int64)
    seen[group] = decision  # any one of the group's
    mixed = np.zeros(size, dtype=bool)
    mixed[group[(decision != seen[group]) | (decision < 0)]] = True
    return mixed[group]


def _braces(names: tuple[Hashable, ...]) -> str:
    return "{" + ", ".join(map(str, names)) + "}"
