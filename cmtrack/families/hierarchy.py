"""Codes and their families, and the label sets that documents have of them.

A family is given by a mapping or by a callable, such as a :class:`Prefix` or one level of a
:class:`Tree`. Label sets come as lists of sets or as long frames, and become numbers once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.removed import MATRIX, RemovedFeature, reason
from cmtrack.statistics.digest import label_hashes
from cmtrack.statistics.inputs import FloatArray, IntArray, listed
from cmtrack.statistics.labels import encode_values

Path: TypeAlias = tuple[Label, ...]


@dataclass(frozen=True)
class Prefix:
    """Families by the beginning of a code: ``Prefix(separator=".")`` or ``Prefix(length=3)`` puts 364.01 into 364.

    Attributes
    ----------
    separator : str, optional
        The family is what stands before the first one; a code without it is a family of its own.
    length : int, optional
        The family is the first ``length`` characters; a code that is not longer is a family of its
        own.

    Examples
    --------
    >>> from cmtrack import Prefix
    >>> Prefix(separator=".")("364.01"), Prefix(length=1)("B20"), Prefix(separator=".")("V27")
    ('364', 'B', 'V27')
    """

    separator: str | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        if (self.separator is None) == (self.length is None):
            raise ValueError(
                f"Prefix must have either separator or length, got {self.separator!r} and {self.length!r}"
            )
        if self.separator == "" or (self.length is not None and self.length < 1):
            raise ValueError(f"a prefix must not be empty, got {self!r}")

    def __call__(self, code: Label) -> Label:
        """The family of a code."""
        text = str(code)
        return text[: self.length] if self.separator is None else text.split(self.separator, 1)[0]


@dataclass(frozen=True)
class Tree:
    """Families by one level of a tree of codes.

    Attributes
    ----------
    parents : mapping of label to label
        The parent of every node that has one. Codes may be anywhere in the tree, also inner nodes.
    level : int, default 0
        Families are the nodes of this level, counted from the top; a code above it is a family of
        its own. Level 0 are the roots, or, where there is a single root, its children: a root that
        holds everything says nothing, and is left out of the hierarchical measures as well
        (Kiritchenko et al. 2005).

    Examples
    --------
    >>> from cmtrack import Tree, evaluate_families
    >>> tree = Tree({"dog": "mammal", "cat": "mammal", "crow": "bird"})
    >>> evaluate_families([["dog"], ["crow"]], [["cat"], ["crow"]], tree).families
    ('bird', 'mammal')
    """

    parents: Mapping[Label, Label] = field(repr=False)
    level: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.parents, Mapping) or not self.parents:
            raise ValueError(f"parents must map nodes to their parents, got {self.parents!r:.80}")
        if isinstance(self.level, bool) or not isinstance(self.level, int) or self.level < 0:
            raise ValueError(f"level must be a whole number from 0 (the top), got {self.level!r}")

    @cached_property
    def _known(self) -> tuple[dict[Label, Label], set[Label], Label | None]:
        parents = {
            plain(child): plain(parent)
            for child, parent in self.parents.items()
            if parent is not None
        }
        nodes = {*map(plain, self.parents), *parents.values()}
        roots = nodes - set(parents)
        return parents, nodes, next(iter(roots)) if len(roots) == 1 else None

    def path(self, code: Label) -> Path | None:
        """The nodes from the top to a code; None where it is not in the tree.

        Raises
        ------
        ValueError
            If the code is its own ancestor.
        """
        parents, nodes, root = self._known
        if code not in nodes:
            return None
        up: dict[Label, None] = {code: None}
        while (parent := parents.get(next(reversed(up)))) is not None:
            if parent in up:
                raise ValueError(f"a node must not be its own ancestor, got {[*up, parent][:12]}")
            up[parent] = None
        path = tuple(reversed(up))
        return path[1:] if root is not None and len(path) > 1 and path[0] == root else path

    def __call__(self, code: Label) -> Label | None:
        """The family of a code; None where it is not in the tree."""
        path = self.path(code)
        return None if path is None else path[min(self.level, len(path) - 1)]


Rule: TypeAlias = Mapping[Label, Label] | Callable[[Any], Label | None]


@dataclass(frozen=True)
class Families:
    """Codes in order, the codes of a family side by side.

    ``paths``, tuple of tuple of labels, length L: for each code the nodes from the top down to the
        code itself.
    ``level``: where the family stands in a path; shorter paths are families of their own.
    ``chosen``: whether the order of codes was given; else they are sorted.
    """

    paths: tuple[Path, ...]
    level: int = 0
    chosen: bool = field(default=False, compare=False)

    @cached_property
    def codes(self) -> tuple[Label, ...]:
        """The codes, length L."""
        return tuple(path[-1] for path in self.paths)

    @cached_property
    def names(self) -> tuple[Label, ...]:
        """The families in order, length F."""
        return tuple(dict.fromkeys(self._name(path) for path in self.paths))

    @cached_property
    def family_of_code(self) -> IntArray:
        """The family's place for each code, shape (L,), never decreasing."""
        place = {name: f for f, name in enumerate(self.names)}
        return np.array([place[self._name(path)] for path in self.paths], dtype=np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """First place of each family among the codes, and the number of codes, shape (F + 1,)."""
        return np.concatenate(
            ([0], np.cumsum(np.bincount(self.family_of_code, minlength=len(self.names))))
        )

    @cached_property
    def nodes(self) -> IntArray:
        """Numbers of each code's nodes by depth, the code itself among them, shape (L, D); -1 below the code.

        Numbers never decrease along the codes of a depth. A code that is its own family is one
        node, not two: the hierarchical measures are of *sets* of codes and ancestors (Kiritchenko
        et al. 2005).
        """
        depth = max(map(len, self.paths))
        table = np.full((len(self.paths), depth), -1, dtype=np.int64)
        for d in range(depth):
            seen: dict[Path, int] = {}
            for i, path in enumerate(self.paths):
                if len(path) > d and not (d and str(path[d]) == str(path[d - 1])):
                    table[i, d] = seen.setdefault(path[: d + 1], len(seen))
        return table

    def place(self, code: Label) -> int:
        """Place of a code."""
        if code not in self._places:
            raise KeyError(
                f"no code is called {code!r}; there are {len(self.codes)}, such as {list(self.codes[:5])}"
            )
        return self._places[code]

    def family_place(self, family: Label) -> int:
        """Place of a family."""
        if family not in self.names:
            raise KeyError(
                f"no family is called {family!r}; there are {len(self.names)}, such as {list(self.names[:5])}"
            )
        return self.names.index(family)

    @cached_property
    def _places(self) -> dict[Label, int]:
        return {code: i for i, code in enumerate(self.codes)}

    def _name(self, path: Path) -> Label:
        return path[min(self.level, len(path) - 1)]

    def merged(self, other: Families) -> Families:
        """Merge the codes of both."""
        if self == other:
            return self
        if self.level != other.level or self.chosen or other.chosen:
            raise ValueError(
                "evaluations must have the same families and the same codes= to be merged, or codes in sorted order, "
                f"got {listed(self.codes)} and {listed(other.codes)}"
            )
        paths = {path[-1]: path for path in self.paths}
        for path in other.paths:
            if paths.setdefault(path[-1], path) != path:
                raise ValueError(
                    f"a code must have one family, got {paths[path[-1]]} and {path} for {path[-1]!r}"
                )
        return Families(tuple(_sorted(paths.values())), self.level)


def assign(
    rule: Rule, codes: Iterable[Label], *, chosen: bool = False, unassigned: Label | None = None
) -> Families:
    """Put codes into families.

    ``chosen``: whether the codes stand in an order that someone chose; it is kept within families,
        and families stand in the order of their first code. Else both are sorted.
    ``unassigned``: the family of codes that have none.
    """
    family_of = _family_of(rule)
    paths: list[Path] = []
    lacking: list[Label] = []
    for code in codes:
        if isinstance(rule, Tree):  # the nodes above a family count in the hierarchical measures
            path = rule.path(code)
        else:
            family = plain(family_of(code))
            path = None if family is None else (family, code)
        if path is None:
            lacking.append(code)
        paths.append(path or (unassigned, code))
    if lacking and unassigned is None:
        raise ValueError(
            f"each code must have a family, {len(lacking)} have none: {listed(lacking)}; unassigned= names one for them"
        )
    ordered = _in_order_of_appearance(paths) if chosen else _sorted(paths)
    level = rule.level if isinstance(rule, Tree) else 0
    out = Families(tuple(ordered), level, chosen)
    for kind, names in (("codes", out.codes), ("families", out.names)):
        texts = Counter(map(str, names))
        if len(texts) != len(names):
            alike = [name for name in names if texts[str(name)] > 1][:6]
            raise ValueError(f"{kind} must differ as texts, for metric names, got {alike}")
    return out


def _family_of(rule: Rule) -> Callable[[Any], Label | None]:
    """Return the family of a code as a function; None where a mapping has no family for it."""
    if isinstance(rule, Mapping):
        return {plain(code): plain(family) for code, family in rule.items()}.get
    if callable(rule):
        return rule
    raise TypeError(
        f"families must be a mapping of code to family, or a callable such as Prefix or Tree, got {rule!r:.60}"
    )


def _sorted(paths: Iterable[Path]) -> list[Path]:
    paths = list(paths)
    try:
        return sorted(paths)
    except TypeError:
        kinds = sorted({type(node).__name__ for path in paths for node in path})
        raise ValueError(
            f"codes and families must be of one kind that can be put in order, got {kinds}; codes= gives an order"
        ) from None


def _in_order_of_appearance(paths: Sequence[Path]) -> list[Path]:
    ranks: dict[Path, int] = {}
    for path in paths:
        for d in range(len(path)):
            ranks.setdefault(path[: d + 1], len(ranks))
    return sorted(paths, key=lambda path: [ranks[path[: d + 1]] for d in range(len(path))])


# -- label sets -----------------------------------------------------------------------------------

_NAMES = ("y_true_sets", "y_pred_sets")


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The codes of each document.

    ``indptr``, shape (n + 1,), int64: where each document begins among the labels.
    ``code``, shape (N,), int64: code numbers, increasing within a document.
    ``repeated``: labels that stood in a document before and were left out.
    """

    indptr: IntArray
    code: IntArray
    repeated: int = 0

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @classmethod
    def of(cls, document: IntArray, code: IntArray, size: int, many: int) -> LabelSets:
        """Sort labels given by document and code (< ``many``), and leave out repeated ones."""
        keys = document * many + code
        if not (keys[1:] > keys[:-1]).all():
            keys = np.unique(keys)
        indptr = np.searchsorted(keys, np.arange(size + 1) * many)
        return cls(indptr, keys % many, len(document) - len(keys))

    def part(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Document, counted from ``first``, and code of each label of some documents."""
        sizes = np.diff(self.indptr[first : last + 1])
        labels = slice(int(self.indptr[first]), int(self.indptr[last]))
        return np.repeat(np.arange(last - first), sizes), self.code[labels]

    def sum(self, values: FloatArray) -> FloatArray:
        """Sum values of the labels (N,) by document, shape (n,)."""
        out = np.zeros(self.size)
        filled = np.flatnonzero(np.diff(self.indptr))
        if len(filled):
            out[filled] = np.add.reduceat(values, self.indptr[filled])
        return out

    def document_hashes(self, codes: Sequence[Label]) -> Any:
        """A hash of each document's set of codes, independent of the codes' numbers, shape (n,), uint64."""
        hashes = np.concatenate(
            (np.zeros(1, np.uint64), np.cumsum(label_hashes(codes)[self.code], dtype=np.uint64))
        )
        out = hashes[self.indptr[1:]] - hashes[self.indptr[:-1]]  # modulo 2**64
        out ^= out >> np.uint64(31)
        return out * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)


@dataclass(frozen=True)
class Given:
    """Both sides as they were given.

    ``names``: codes by number.
    ``ids``: names of the documents, where the input has them.
    ``note``: what a user should know.
    """

    names: list[Label]
    actual: LabelSets
    predicted: LabelSets
    ids: list[Label] | None = None
    note: str = ""

    def renumbered(self, codes: Sequence[Label]) -> tuple[LabelSets, LabelSets]:
        """Both sides with the places in ``codes`` as code numbers."""
        index = {code: i for i, code in enumerate(codes)}
        place = np.array([index.get(name, -1) for name in self.names], dtype=np.int64)
        actual = _renumbered(_NAMES[0], self.actual, place, self.names, len(codes))
        return actual, _renumbered(_NAMES[1], self.predicted, place, self.names, len(codes))

    @property
    def seen(self) -> list[Label]:
        """The codes that some document has."""
        used = np.zeros(len(self.names), dtype=bool)
        used[self.actual.code] = used[self.predicted.code] = True
        return [self.names[i] for i in np.flatnonzero(used)]


def _renumbered(
    name: str, sets: LabelSets, place: IntArray, names: list[Label], many: int
) -> LabelSets:
    code = place[sets.code]
    if len(code) and code.min() < 0:
        strange = [names[i] for i in dict.fromkeys(sets.code[code < 0].tolist())]
        raise ValueError(
            f"codes must hold all of {name}, got none for {listed(strange)} ({int((code < 0).sum())} labels)"
        )
    if np.array_equal(place, np.arange(len(place))):
        return sets
    document = np.repeat(np.arange(sets.size), np.diff(sets.indptr))
    return replace(LabelSets.of(document, code, sets.size, many), repeated=sets.repeated)


def read_sets(
    y_true_sets: Any,
    y_pred_sets: Any,
    *,
    may_be_empty: bool = False,
    columns: tuple[str, str] = ("document", "code"),
    documents: Any = None,
) -> Given:
    """Read the label sets of both sides.

    ``y_true_sets``, ``y_pred_sets``: both of one form: iterables of sets of codes, or long frames
        (pandas, polars) with a row for each document and code.
    ``may_be_empty``: whether all documents may be without a code.
    ``columns``, (str, str): the frames' columns of documents and codes.
    ``documents``, array-like of shape (n,): of frames: all documents, also those without a code.
    """
    for side in (y_true_sets, y_pred_sets):
        if hasattr(side, "tocsr") or (isinstance(side, np.ndarray) and side.ndim == 2):
            raise RemovedFeature(reason(MATRIX))
    are_frames = [hasattr(side, "columns") for side in (y_true_sets, y_pred_sets)]
    if are_frames[0] != are_frames[1]:
        raise ValueError(
            "y_true_sets and y_pred_sets must both be long frames, or both list a set of codes per document"
        )
    if are_frames[0]:
        given = _from_frames(y_true_sets, y_pred_sets, columns, documents)
    elif documents is None:
        given = _from_lists(y_true_sets, y_pred_sets)
    else:
        raise ValueError("documents needs long frames; row_ids names the documents of lists")
    if given.actual.size != given.predicted.size:
        raise ValueError(
            "y_true_sets and y_pred_sets must have the same documents, got "
            f"{given.actual.size} and {given.predicted.size}"
        )
    if not given.actual.size:
        raise ValueError("there must be at least one document, got none")
    if not (may_be_empty or len(given.actual.code) or len(given.predicted.code)):
        raise ValueError(
            f"at least one document must have a code, got {given.actual.size} empty documents; codes= declares codes"
        )
    return given


def _from_lists(y_true: Any, y_pred: Any) -> Given:
    flat, sizes = [], []
    for name, data in zip(_NAMES, (y_true, y_pred), strict=True):
        rule = f"{name} must list a set of codes per document, got"
        if not _is_list(data):
            raise TypeError(f"{rule} {data!r:.60}")
        sets = []
        for place, codes in enumerate(data):
            if not _is_list(codes):
                raise ValueError(f"{rule} {codes!r:.60} for document {place}")
            sets.append(codes if hasattr(codes, "__len__") else list(codes))
        sizes.append(np.fromiter(map(len, sets), np.int64, len(sets)))
        flat.append(list(chain.from_iterable(sets)))
    codes, names = encode_values("the codes", flat[0] + flat[1])
    parts = np.split(codes, [len(flat[0])])
    sides = [
        LabelSets.of(np.repeat(np.arange(len(size)), size), part, len(size), max(1, len(names)))
        for size, part in zip(sizes, parts, strict=True)
    ]
    return Given(names, sides[0], sides[1])


def _is_list(data: Any) -> bool:
    return isinstance(data, Iterable) and not isinstance(data, (str, bytes))


def _from_frames(y_true: Any, y_pred: Any, columns: tuple[str, str], documents: Any) -> Given:
    frames = dict(zip(_NAMES, (y_true, y_pred), strict=True))
    for name, frame in frames.items():
        missing = [column for column in columns if column not in list(frame.columns)]
        if missing:
            raise ValueError(
                f"{name} must have the columns {list(columns)} (columns= names them), got {list(frame.columns)[:10]}"
            )
    seen, labels = (
        [encode_values(f"{name}[{column!r}]", frame[column]) for name, frame in frames.items()]
        for column in columns
    )
    note = ""
    if documents is None:
        order = list(dict.fromkeys([*seen[0][1], *seen[1][1]]))
        try:
            order = sorted(order)  # type: ignore[type-var]
        except TypeError:
            kinds = sorted({type(one).__name__ for one in order})
            raise ValueError(
                f"documents must be of one kind that can be put in order, or named by documents=, got {kinds}"
            ) from None
        note = "documents= was not given: documents without any code, predicted or actual, are not counted"
    else:
        numbers, names = encode_values("documents", documents)
        if len(names) != len(numbers):
            twice = names[int(np.argmax(np.bincount(numbers)))]
            raise ValueError(f"documents must not repeat, got {twice!r} more than once")
        order = [names[i] for i in numbers]
    index = {name: i for i, name in enumerate(order)}
    codes: dict[Label, int] = {}
    sides = []
    for name, (documents_of, of_rows), (code_of, code_names) in zip(
        frames, seen, labels, strict=True
    ):
        strange = [d for d in of_rows if d not in index]
        if strange:
            raise ValueError(
                f"documents must hold all of {name}, got none for {len(strange)}, such as {strange[:5]}"
            )
        at = np.array([index[d] for d in of_rows], dtype=np.int64)[documents_of]
        number = np.array([codes.setdefault(c, len(codes)) for c in code_names], dtype=np.int64)[
            code_of
        ]
        sides.append((at, number))
    true, pred = (LabelSets.of(at, c, len(order), max(1, len(codes))) for at, c in sides)
    return Given(list(codes), true, pred, order, note)
