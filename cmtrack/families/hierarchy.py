"""Codes, their families, and the label sets of documents.

A mapping or a callable assigns a family to each code. Examples of such a callable are a
:class:`Prefix` and a level of a :class:`Tree`. Label sets are passed as lists of sets or as long
frames, and each code is assigned a number when the sets are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.removed import MATRIX, RemovedFeature, reason
from cmtrack.statistics.digest import LabelDigest, label_hashes
from cmtrack.statistics.inputs import FloatArray, IntArray, align_rows, listed
from cmtrack.statistics.labels import encode_row_ids, encode_values

Path: TypeAlias = tuple[Label, ...]


@dataclass(frozen=True)
class Prefix:
    """Rule that uses the beginning of a code as the name of its family.

    Both ``Prefix(separator=".")`` and ``Prefix(length=3)`` assign the code 364.01 to the family
    364.

    Attributes
    ----------
    separator : str, optional
        The family is the text before the first separator. A code without a separator forms its own
        family.
    length : int, optional
        The family consists of the first ``length`` characters. A code of at most this length forms
        its own family.

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
                f"Prefix needs either separator or length, got {self.separator!r} and "
                f"{self.length!r}"
            )
        if self.separator == "" or (self.length is not None and self.length < 1):
            raise ValueError(f"a prefix must not be empty, got {self!r}")

    def __call__(self, code: Label) -> Label:
        """Return the family of a code."""
        text = str(code)
        if self.separator is None:
            return text[: self.length]
        return text.split(self.separator, 1)[0]


@dataclass(frozen=True)
class Tree:
    """Rule that uses the nodes at a given level of a tree of codes as families.

    Attributes
    ----------
    parents : mapping of label to label
        The parent of each node except the roots. Codes may be anywhere in the tree, including inner
        nodes.
    level : int, default 0
        The families are the nodes at this level of the tree. Levels are counted from the top, and
        level 0 consists of the roots. A code above this level forms its own family. If the tree has
        only one root, level 0 consists of the root's children, because a root that contains all
        codes adds no information. The hierarchical measures (Kiritchenko et al. 2005) also ignore
        such a root.

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
    def _parents(self) -> dict[Label, Label]:
        return {
            plain(child): plain(parent)
            for child, parent in self.parents.items()
            if parent is not None
        }

    @cached_property
    def _nodes(self) -> set[Label]:
        return {*map(plain, self.parents), *self._parents.values()}

    @cached_property
    def _single_root(self) -> Path:
        """The path that contains only the root; empty if the tree has several roots."""
        roots = tuple(self._nodes - set(self._parents))
        if len(roots) > 1:
            return ()
        return roots

    def path(self, code: Label) -> Path | None:
        """Return the nodes from the top to a code; None if the code is not in the tree.

        Raises
        ------
        ValueError
            If the code is its own ancestor.
        """
        if code not in self._nodes:
            return None
        nodes = [code]
        seen = {code}
        parent = self._parents.get(code)
        while parent is not None:
            if parent in seen:
                raise ValueError(
                    f"a node must not be its own ancestor, got {[*nodes, parent][:12]}"
                )
            nodes.append(parent)
            seen.add(parent)
            parent = self._parents.get(parent)
        path = tuple(reversed(nodes))
        if len(path) > 1 and path[:1] == self._single_root:
            return path[1:]
        return path

    def __call__(self, code: Label) -> Label | None:
        """Return the family of a code; None if the code is not in the tree."""
        path = self.path(code)
        if path is None:
            return None
        return _family_in(path, self.level)


Rule: TypeAlias = Mapping[Label, Label] | Callable[[Any], Label | None]


def _family_in(path: Path, level: int) -> Label:
    """Return the node of a path at the given level, or the last node of a shorter path."""
    return path[min(level, len(path) - 1)]


@dataclass(frozen=True)
class Families:
    """Codes and their families, ordered so that the codes of a family are next to each other.

    ``paths``, tuple of L tuples of labels: for each code, the nodes from the top of the hierarchy
    to the code itself.
    ``level``: the position of the family in a path. A code with a shorter path forms its own
        family.
    ``chosen``: True if the caller specified the order of the codes; False if they are sorted.
    """

    paths: tuple[Path, ...]
    level: int = 0
    chosen: bool = field(default=False, compare=False)

    @cached_property
    def codes(self) -> tuple[Label, ...]:
        """All L codes in order."""
        return tuple(path[-1] for path in self.paths)

    @cached_property
    def names(self) -> tuple[Label, ...]:
        """All F families in order."""
        return tuple(dict.fromkeys(self._family_of_paths))

    @cached_property
    def family_of_code(self) -> IntArray:
        """Position of each code's family among the families, shape (L,), in ascending order."""
        numbers = [self._number_of[name] for name in self._family_of_paths]
        return np.array(numbers, dtype=np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """Position of each family's first code, followed by the number of codes, shape (F + 1,)."""
        return np.searchsorted(self.family_of_code, np.arange(len(self.names) + 1))

    @cached_property
    def nodes(self) -> IntArray:
        """For each code, the numbers of its nodes from the top to the code itself, shape (L, D).

        Entries for depths below the code are -1. At each depth, the numbers are ascending in the
        order of the codes. A code that is its own family is a single node, because the hierarchical
        measures use *sets* of codes and ancestors (Kiritchenko et al. 2005).
        """
        depth = max(map(len, self.paths))
        table = np.full((len(self.paths), depth), -1, dtype=np.int64)
        for d in range(depth):
            number_of: dict[Path, int] = {}
            for i, path in enumerate(self.paths):
                is_repeated = 0 < d < len(path) and str(path[d]) == str(path[d - 1])
                if len(path) > d and not is_repeated:
                    table[i, d] = number_of.setdefault(path[: d + 1], len(number_of))
        return table

    def place(self, code: Label) -> int:
        """Return the position of a code."""
        return _position("code", self._position_of, code)

    def family_place(self, family: Label) -> int:
        """Return the position of a family."""
        return _position("family", self._number_of, family)

    @cached_property
    def _position_of(self) -> dict[Label, int]:
        return {code: position for position, code in enumerate(self.codes)}

    @cached_property
    def _number_of(self) -> dict[Label, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def _family_of_paths(self) -> list[Label]:
        return [_family_in(path, self.level) for path in self.paths]

    def merged(self, other: Families) -> Families:
        """Return the families that contain the codes of both operands."""
        if self == other:
            return self
        if self.level != other.level or self.chosen or other.chosen:
            raise ValueError(
                "merging evaluations needs the same families and the same codes=, "
                f"or codes in sorted order, got {listed(self.codes)} and {listed(other.codes)}"
            )
        paths = {path[-1]: path for path in self.paths}
        for path in other.paths:
            first = paths.setdefault(path[-1], path)
            if first != path:
                raise ValueError(
                    f"a code must have one family, got {first} and {path} for {path[-1]!r}"
                )
        return Families(tuple(_sorted(paths.values())), self.level)


def _position(kind: str, position_of: Mapping[Label, int], name: Label) -> int:
    """Return the position of a code or a family, or raise KeyError."""
    if name not in position_of:
        raise KeyError(
            f"there is no {kind} named {name!r}; there are {len(position_of)}, "
            f"such as {list(position_of)[:5]}"
        )
    return position_of[name]


def assign(
    rule: Rule, codes: Iterable[Label], *, chosen: bool = False, unassigned: Label | None = None
) -> Families:
    """Assign each code to a family.

    ``chosen``: True if the caller specified the order of the codes. The codes of a family then keep
    this order, and the families are in the order of their first codes. If False, both codes and
    families are sorted.
    ``unassigned``: the family to use for codes to which the rule assigns no family.
    """
    path_of, level = _paths_by(rule)
    paths: list[Path] = []
    lacking: list[Label] = []
    for code in codes:
        path = path_of(code)
        if path is None:
            lacking.append(code)
            path = (unassigned, code)
        paths.append(path)
    if lacking and unassigned is None:
        raise ValueError(
            f"each code must have a family, {len(lacking)} have none: {listed(lacking)}; "
            "pass unassigned= to name a family for them"
        )
    ordered = _in_order_of_appearance(paths) if chosen else _sorted(paths)
    families = Families(tuple(ordered), level, chosen)
    _check_texts("codes", families.codes)
    _check_texts("families", families.names)
    return families


def _check_texts(kind: str, names: Sequence[Label]) -> None:
    """Raise ValueError if two names have the same text, because metric names contain the texts."""
    texts = Counter(map(str, names))
    if len(texts) != len(names):
        alike = [name for name in names if texts[str(name)] > 1][:6]
        raise ValueError(
            f"{kind} must differ as strings, because metric names contain them, got {alike}"
        )


def _paths_by(rule: Rule) -> tuple[Callable[[Label], Path | None], int]:
    """Return a function that maps a code to its path, and the level of families in paths.

    The path is None if the rule assigns no family to the code.
    """
    if isinstance(rule, Tree):  # the nodes above a family count in the hierarchical measures
        return rule.path, rule.level
    family_of: Callable[[Any], Label | None]
    if isinstance(rule, Mapping):
        family_of = {plain(code): plain(family) for code, family in rule.items()}.get
    elif callable(rule):
        family_of = rule
    else:
        raise TypeError(
            "families must be a mapping of code to family, or a callable such as Prefix or Tree, "
            f"got {rule!r:.60}"
        )

    def path_of(code: Label) -> Path | None:
        family = plain(family_of(code))
        if family is None:
            return None
        return (family, code)

    return path_of, 0


def _sorted(paths: Iterable[Path]) -> list[Path]:
    paths = list(paths)
    try:
        return sorted(paths)
    except TypeError:
        kinds = sorted({type(node).__name__ for path in paths for node in path})
        raise ValueError(
            f"codes and families must be of one type that can be sorted, got {kinds}; codes= "
            "defines their order"
        ) from None


def _in_order_of_appearance(paths: Sequence[Path]) -> list[Path]:
    """Order paths by the first appearance of their nodes, keeping the codes of a node together."""
    ranks: dict[Path, int] = {}

    def ranks_of(path: Path) -> list[int]:
        beginnings = [path[: d + 1] for d in range(len(path))]
        return [ranks.setdefault(beginning, len(ranks)) for beginning in beginnings]

    for path in paths:
        ranks_of(path)
    return sorted(paths, key=ranks_of)


# -- label sets -----------------------------------------------------------------------------------

_NAMES = ("y_true_sets", "y_pred_sets")


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Sets of codes, one set for each document.

    ``indptr``, shape (n + 1,), int64: position of each document's first label.
    ``code``, shape (N,), int64: the code number of each label, in ascending order within a
    document.
    ``repeated``: number of labels that were dropped because the document already contains the same
        label.
    """

    indptr: IntArray
    code: IntArray
    repeated: int = 0

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @classmethod
    def of(cls, document: IntArray, code: IntArray, size: int, n_codes: int) -> LabelSets:
        """Sort labels by document and code, and remove repetitions within a document."""
        n_codes = max(1, n_codes)  # documents without any code have none
        keys = document * n_codes + code
        if not (keys[1:] > keys[:-1]).all():
            keys = np.unique(keys)
        indptr = np.searchsorted(keys, np.arange(size + 1) * n_codes)
        return cls(indptr, keys % n_codes, len(document) - len(keys))

    def part(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Return the document and the code of each label in a range of documents.

        Document numbers start from ``first``.
        """
        sizes = np.diff(self.indptr[first : last + 1])
        labels = slice(int(self.indptr[first]), int(self.indptr[last]))
        return np.repeat(np.arange(last - first), sizes), self.code[labels]

    def sum(self, values: FloatArray) -> FloatArray:
        """Add up the values (N,) of the labels of each document; the result has the shape (n,)."""
        sums = np.zeros(self.size)
        filled = np.flatnonzero(np.diff(self.indptr))
        if len(filled):
            sums[filled] = np.add.reduceat(values, self.indptr[filled])
        return sums

    def document_hashes(self, codes: Sequence[Label]) -> Any:
        """Compute a hash of each document's set of codes, shape (n,), uint64.

        The hash depends on the codes themselves, not on the numbers assigned to them.
        """
        sums = np.zeros(len(self.code) + 1, np.uint64)
        np.cumsum(label_hashes(codes)[self.code], out=sums[1:])
        hashes = sums[self.indptr[1:]] - sums[self.indptr[:-1]]  # modulo 2**64
        # A digest adds up the hashes of all documents. If these were plain sums of the codes'
        # hashes, the digest would not change if a code moved to another document. The shift and
        # the constant come from splitmix64.
        hashes ^= hashes >> np.uint64(31)
        return hashes * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)


@dataclass(frozen=True)
class GivenSets:
    """Actual and predicted label sets as passed by the caller, before the codes are put in order.

    ``names``: the distinct codes of both sides, in the order of their code numbers.
    ``ids``: names of the documents, if the input contains names.
    ``remarks``: remarks about the input, to be shown to the user.
    """

    names: list[Label]
    actual: LabelSets
    predicted: LabelSets
    ids: Any = None
    remarks: tuple[str, ...] = ()

    @cached_property
    def row_ids(self) -> LabelDigest | None:
        """The digest of the documents' names."""
        if self.ids is None:
            return None
        return LabelDigest.from_codes(*encode_row_ids(self.ids, self.actual.size))

    def listed(self, codes: Sequence[Label] | None) -> list[Label]:
        """Return the codes to evaluate: the given codes or, by default, all codes that occur."""
        if codes is None:
            is_used = np.zeros(len(self.names), dtype=bool)
            is_used[self.actual.code] = True
            is_used[self.predicted.code] = True
            return [self.names[number] for number in np.flatnonzero(is_used)]
        chosen = [plain(code) for code in codes]
        repeated = [code for code, n in Counter(chosen).items() if n > 1]
        if repeated:
            raise ValueError(f"codes must not repeat, got {repeated[0]!r} more than once")
        return chosen

    def renumbered(self, codes: Sequence[Label]) -> tuple[LabelSets, LabelSets]:
        """Return both sides, in which each code's number is its position in ``codes``."""
        position_of = {code: position for position, code in enumerate(codes)}
        position = np.array([position_of.get(name, -1) for name in self.names], dtype=np.int64)
        sides = []
        for side_name, sets in zip(_NAMES, (self.actual, self.predicted), strict=True):
            code = position[sets.code]
            strange = sets.code[code < 0]
            if len(strange):
                lacking = [self.names[number] for number in dict.fromkeys(strange.tolist())]
                raise ValueError(
                    f"codes must include all of {side_name}, "
                    f"got none for {listed(lacking)} ({len(strange)} labels)"
                )
            if not np.array_equal(position, np.arange(len(position))):
                document = np.repeat(np.arange(sets.size), np.diff(sets.indptr))
                moved = LabelSets.of(document, code, sets.size, len(codes))
                sets = replace(moved, repeated=sets.repeated)
            sides.append(sets)
        return sides[0], sides[1]


def read_sets(
    y_true_sets: Any,
    y_pred_sets: Any,
    *,
    may_be_empty: bool = False,
    columns: tuple[str, str] = ("document", "code"),
    documents: Any = None,
    row_ids: Any = None,
) -> GivenSets:
    """Read the actual and the predicted label sets.

    ``y_true_sets``, ``y_pred_sets``: actual and predicted label sets, both in the same form. They
    are iterables of sets of codes, or long frames (pandas, polars) with one row for each code of a
    document.
    ``may_be_empty``: whether the input is valid if no document contains any code.
    ``columns``: names of the frame columns that contain the documents and the codes.
    ``documents``, array-like of shape (n,): all documents of frames, including documents without a
        code.
    ``row_ids``, array-like of shape (n,): names of the documents.
    """
    are_frames = [hasattr(side, "columns") for side in (y_true_sets, y_pred_sets)]
    if not any(are_frames):  # the index of a long frame names its rows, not documents
        aligned = align_rows(
            {"y_true_sets": y_true_sets, "y_pred_sets": y_pred_sets, "row_ids": row_ids}
        )
        y_true_sets, y_pred_sets, row_ids = aligned.values()
    for side in (y_true_sets, y_pred_sets):
        if hasattr(side, "tocsr") or (isinstance(side, np.ndarray) and side.ndim == 2):
            raise RemovedFeature(reason(MATRIX))
    if are_frames[0] != are_frames[1]:
        raise ValueError(
            "y_true_sets and y_pred_sets must both be long frames, "
            "or both list a set of codes per document"
        )
    if are_frames[0]:
        label_sets = _from_frames(y_true_sets, y_pred_sets, columns, documents)
    elif documents is None:
        label_sets = _from_lists(y_true_sets, y_pred_sets)
    else:
        raise ValueError("documents= needs long frames; for lists, use row_ids=")
    actual = label_sets.actual
    predicted = label_sets.predicted
    if actual.size != predicted.size:
        raise ValueError(
            "y_true_sets and y_pred_sets must have the same documents, got "
            f"{actual.size} and {predicted.size}"
        )
    if not actual.size:
        raise ValueError("there must be at least one document, got none")
    if not (may_be_empty or len(actual.code) or len(predicted.code)):
        raise ValueError(
            f"at least one document must have a code, got {actual.size} empty documents; "
            "use codes= to declare codes"
        )
    if row_ids is None:
        return label_sets
    if documents is not None:
        raise ValueError(
            "pass either row_ids or documents, got both: documents already names the documents"
        )
    return replace(label_sets, ids=row_ids)


def _from_lists(y_true: Any, y_pred: Any) -> GivenSets:
    labels: list[Label] = []
    documents: list[IntArray] = []
    n_documents: list[int] = []
    for name, data in zip(_NAMES, (y_true, y_pred), strict=True):
        rule = f"{name} must list a set of codes per document, got"
        if not _is_list(data):
            raise TypeError(f"{rule} {data!r:.60}")
        sizes: list[int] = []
        for index, codes in enumerate(data):
            if not _is_list(codes):
                raise ValueError(f"{rule} {codes!r:.60} for document {index}")
            n_before = len(labels)
            labels.extend(codes)
            sizes.append(len(labels) - n_before)
        documents.append(np.repeat(np.arange(len(sizes)), np.array(sizes, dtype=np.int64)))
        n_documents.append(len(sizes))
    numbers, names = encode_values("the codes", labels)
    actual_codes, predicted_codes = np.split(numbers, [len(documents[0])])
    actual = LabelSets.of(documents[0], actual_codes, n_documents[0], len(names))
    predicted = LabelSets.of(documents[1], predicted_codes, n_documents[1], len(names))
    return GivenSets(names, actual, predicted)


def _is_list(data: Any) -> bool:
    return isinstance(data, Iterable) and not isinstance(data, (str, bytes))


def _from_frames(y_true: Any, y_pred: Any, columns: tuple[str, str], documents: Any) -> GivenSets:
    frames = dict(zip(_NAMES, (y_true, y_pred), strict=True))
    for name, frame in frames.items():
        if not {*columns} <= {*frame.columns}:
            raise ValueError(
                f"{name} must have the columns {list(columns)} (columns= names them), "
                f"got {list(frame.columns)[:10]}"
            )
    document_column, code_column = columns
    encoded = {
        name: encode_values(f"{name}[{document_column!r}]", frame[document_column])
        for name, frame in frames.items()
    }
    encoded_codes = {
        name: encode_values(f"{name}[{code_column!r}]", frame[code_column])
        for name, frame in frames.items()
    }
    remarks: tuple[str, ...] = ()
    if documents is None:
        ids = _sorted_documents(label for _, labels in encoded.values() for label in labels)
        remarks = (
            "documents= was not given, so documents without any code, predicted or actual, "
            "are not counted",
        )
    else:
        ids = _distinct_documents(documents)
    row_of = {name: row for row, name in enumerate(ids)}
    number_of: dict[Label, int] = {}
    labels_by_side = []
    for name, (document, document_names) in encoded.items():
        strange = [label for label in document_names if label not in row_of]
        if strange:
            raise ValueError(
                f"documents must include all of {name}, "
                f"got none for {len(strange)}, such as {strange[:5]}"
            )
        rows = np.array([row_of[label] for label in document_names], dtype=np.int64)
        code, code_names = encoded_codes[name]
        numbers = [number_of.setdefault(label, len(number_of)) for label in code_names]
        labels_by_side.append((rows[document], np.array(numbers, dtype=np.int64)[code]))
    # Sets can only be built after the codes of both sides have numbers.
    actual, predicted = (
        LabelSets.of(rows, code, len(ids), len(number_of)) for rows, code in labels_by_side
    )
    return GivenSets(list(number_of), actual, predicted, ids, remarks)


def _sorted_documents(labels: Iterable[Label]) -> list[Label]:
    """Return the distinct names of documents in sorted order."""
    names = list(dict.fromkeys(labels))
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:
        kinds = sorted({type(name).__name__ for name in names})
        raise ValueError(
            "documents must be of one type that can be sorted, or be listed in documents=, "
            f"got {kinds}"
        ) from None


def _distinct_documents(documents: Any) -> list[Label]:
    """Return the given names of documents as a list; raise ValueError if a name is repeated."""
    numbers, names = encode_values("documents", documents)
    if len(names) != len(numbers):
        repeated = names[int(np.argmax(np.bincount(numbers)))]
        raise ValueError(f"documents must not repeat, got {repeated!r} more than once")
    return [names[number] for number in numbers]
