"""The boundary for label sets: lists of sets, indicator matrices or long frames become numbers, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.digest import label_hashes
from cmtrack.statistics.inputs import FloatArray, IntArray, listed
from cmtrack.statistics.labels import encode_values

_NAMES = ("y_true_sets", "y_pred_sets")


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The codes of each document.

    Attributes
    ----------
    indptr : ndarray of shape (n + 1,), int64
        Where each document begins among the labels.
    code : ndarray of shape (N,), int64
        Code numbers, increasing within a document.
    repeated : int
        Labels that stood in a document before and were left out.
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
        if len(keys) > 1 and not (keys[1:] > keys[:-1]).all():
            keys.sort()
            new = np.concatenate(([True], keys[1:] != keys[:-1]))
            if not new.all():
                keys = keys[new]
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
        """A hash of each document's set of codes, whatever their numbers, shape (n,), uint64."""
        hashes = np.concatenate((np.zeros(1, np.uint64), np.cumsum(label_hashes(codes)[self.code], dtype=np.uint64)))
        out = hashes[self.indptr[1:]] - hashes[self.indptr[:-1]]  # modulo 2**64
        out ^= out >> np.uint64(31)
        return out * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)


@dataclass(frozen=True)
class Given:
    """Both sides as they came.

    Attributes
    ----------
    names : list of labels
        Codes by number.
    actual, predicted : LabelSets
    ids : list of labels or None
        Names of the documents, where the input has them.
    note : str
        What a user should know.
    """

    names: list[Label]
    actual: LabelSets
    predicted: LabelSets
    ids: list[Label] | None = None
    note: str = ""

    def renumbered(self, codes: Sequence[Label]) -> tuple[LabelSets, LabelSets]:
        """Both sides with the places in ``codes`` as code numbers.

        Raises
        ------
        ValueError
            If a document has a code that is not among them.
        """
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


def _renumbered(name: str, sets: LabelSets, place: IntArray, names: list[Label], many: int) -> LabelSets:
    code = place[sets.code]
    if len(code) and code.min() < 0:
        strange = [names[i] for i in dict.fromkeys(sets.code[code < 0].tolist())]
        raise ValueError(f"{name} has codes that are not in codes=: {listed(strange)} ({int((code < 0).sum())} labels)")
    if np.array_equal(place, np.arange(len(place))):
        return sets
    document = np.repeat(np.arange(sets.size), np.diff(sets.indptr))
    return replace(LabelSets.of(document, code, sets.size, many), repeated=sets.repeated)


def read_sets(
    y_true_sets: Any,
    y_pred_sets: Any,
    *,
    codes: Sequence[Label] | None = None,
    columns: tuple[str, str] = ("document", "code"),
    documents: Any = None,
) -> Given:
    """Read both sides.

    Parameters
    ----------
    y_true_sets, y_pred_sets
        Both of one form: iterables of sets of codes; indicator matrices (SciPy sparse or dense) of shape (n, L); or
        long frames (pandas, polars) with a row for each document and code.
    codes : sequence, optional
        The codes of an indicator matrix' columns; by default their numbers.
    columns : (str, str)
        The frames' columns of documents and codes.
    documents : array-like of shape (n,), optional
        Of frames: all documents, also those without a code.

    Raises
    ------
    ValueError, TypeError
        Wrong input; the text gives the rule and the value.
    """
    kinds = tuple(map(_kind, (y_true_sets, y_pred_sets)))
    if kinds[0] != kinds[1]:
        raise ValueError(f"y_true_sets and y_pred_sets must be of one form, got a {kinds[0]} and a {kinds[1]}")
    if documents is not None and kinds[0] != "long frame":
        raise ValueError(f"documents goes with long frames, not with a {kinds[0]}: each row or set is a document")
    if kinds[0] == "matrix":
        given = _from_matrices(y_true_sets, y_pred_sets, codes)
    elif kinds[0] == "long frame":
        given = _from_frames(y_true_sets, y_pred_sets, columns, documents)
    else:
        given = _from_lists(y_true_sets, y_pred_sets)
    if given.actual.size != given.predicted.size:
        sizes = given.actual.size, given.predicted.size
        raise ValueError(f"y_true_sets and y_pred_sets must have the same documents, got {sizes[0]} and {sizes[1]}")
    if not given.actual.size:
        raise ValueError("at least one document is needed, got none")
    if codes is None and not len(given.actual.code) and not len(given.predicted.code):
        raise ValueError(
            f"at least one document must have a code, got {given.actual.size} empty documents; codes= declares codes"
        )
    return given


def _kind(data: Any) -> str:
    if hasattr(data, "tocsr") or (isinstance(data, np.ndarray) and data.ndim == 2):
        return "matrix"
    if hasattr(data, "columns"):
        return "long frame"
    return "sequence of sets"


def _from_matrices(y_true: Any, y_pred: Any, codes: Sequence[Label] | None) -> Given:
    import scipy.sparse as sp

    sides, width = [], None
    for name, data in zip(_NAMES, (y_true, y_pred), strict=True):
        if not hasattr(data, "tocsr") and data.dtype.kind not in "biuf":
            raise ValueError(f"{name} must be an indicator matrix of 0 and 1, got an array of {data.dtype}")
        matrix = data.tocsr() if hasattr(data, "tocsr") else sp.csr_matrix(data)
        values = matrix.data
        wrong = values[(values != 0) & (values != 1)]
        if len(wrong):
            raise ValueError(f"{name} must be an indicator matrix of 0 and 1, got {wrong[0]!r}")
        if not values.all():
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        if width is not None and matrix.shape[1] != width:
            raise ValueError(f"both matrices must have a column per code, got {width} and {matrix.shape[1]} columns")
        width = int(matrix.shape[1])
        document = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        sides.append(LabelSets.of(document, matrix.indices.astype(np.int64), matrix.shape[0], max(width, 1)))
    names: list[Label] = list(range(width or 0)) if codes is None else [plain(code) for code in codes]
    if len(names) != width:
        raise ValueError(f"codes must name the {width} columns of the matrices, got {len(names)} codes")
    return Given(names, sides[0], sides[1])


def _from_lists(y_true: Any, y_pred: Any) -> Given:
    flat, sizes = [], []
    for name, data in zip(_NAMES, (y_true, y_pred), strict=True):
        sets = [_one_set(name, i, codes) for i, codes in enumerate(_iterable(name, data))]
        sizes.append(np.fromiter(map(len, sets), np.int64, len(sets)))
        flat.append(list(chain.from_iterable(sets)))
    codes, names = encode_values("the codes", flat[0] + flat[1])
    parts = np.split(codes, [len(flat[0])])
    sides = [
        LabelSets.of(np.repeat(np.arange(len(size)), size), part, len(size), max(1, len(names)))
        for size, part in zip(sizes, parts, strict=True)
    ]
    return Given(names, sides[0], sides[1])


def _iterable(name: str, data: Any) -> Iterable[Any]:
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise TypeError(f"{name} must list a set of codes per document, got {data!r:.60}")
    return data


def _one_set(name: str, place: int, codes: Any) -> Any:
    if isinstance(codes, (str, bytes)) or not isinstance(codes, Iterable):
        raise ValueError(f"{name} must list a set of codes per document, got {codes!r:.60} for document {place}")
    return codes if hasattr(codes, "__len__") else list(codes)


def _from_frames(y_true: Any, y_pred: Any, columns: tuple[str, str], documents: Any) -> Given:
    ids, code = columns
    for name, frame in zip(_NAMES, (y_true, y_pred), strict=True):
        missing = [column for column in columns if column not in list(frame.columns)]
        if missing:
            raise ValueError(
                f"{name} must have the columns {list(columns)} (columns= names them), got {list(frame.columns)[:10]}"
            )
    seen = [encode_values(f"{name}[{ids!r}]", frame[ids]) for name, frame in zip(_NAMES, (y_true, y_pred), strict=True)]
    labels = [
        encode_values(f"{name}[{code!r}]", frame[code]) for name, frame in zip(_NAMES, (y_true, y_pred), strict=True)
    ]
    note = ""
    if documents is None:
        order = list(dict.fromkeys([*seen[0][1], *seen[1][1]]))
        try:
            order = sorted(order)  # type: ignore[type-var]
        except TypeError:
            raise ValueError("documents must be of one kind that can be put in order, or named by documents=") from None
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
    for name, (documents_of, known), (code_of, code_names) in zip(_NAMES, seen, labels, strict=True):
        strange = [d for d in known if d not in index]
        if strange:
            raise ValueError(f"{name} has {len(strange)} documents that are not in documents=: {strange[:5]}")
        at = np.array([index[d] for d in known], dtype=np.int64)[documents_of]
        number = np.array([codes.setdefault(c, len(codes)) for c in code_names], dtype=np.int64)[code_of]
        sides.append((at, number))
    true, pred = (LabelSets.of(at, c, len(order), max(1, len(codes))) for at, c in sides)
    return Given(list(codes), true, pred, order, note)
