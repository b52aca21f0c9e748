"""The public :class:`Costs`: the cost of a prediction, given the actual class or group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping.chain import ComposedStep, Grouping
from cmtrack.grouping.step import Label, plain, read_file
from cmtrack.names import quoted
from cmtrack.untrusted import printable

_SHOWN = 12
"""Maximum number of pairs in a repr or a description; longer lists are hard to read."""


@dataclass(frozen=True, init=False, repr=False)
class Costs:
    """Costs of (actual, predicted) pairs of classes, or of the groups in a step.

    Parameters
    ----------
    costs : mapping of (actual, predicted) to float
        For example ``{("promoter", "detractor"): 5, ("detractor", "promoter"): 20}``. A negative
        cost is a gain. If all names are classes, the costs apply to classes. Otherwise, they apply
        to groups in the step that contains groups with all these names.
    default : float, default 1.0
        Cost of an error that is not listed in ``costs``. A correct prediction costs 0 unless
        ``costs`` lists it.
    mismatch : mapping of group to float, optional
        For each group, the cost of an intragroup mismatch, which is a wrong prediction inside the
        actual group that the grouping does not accept. The default is
        ``default``, so that you cannot forget the cost of a mismatch. Accepted pairs inside a group
        cost the same as predicting the correct group.
    step : str, optional
        Name of the step that contains the groups; needed if several steps contain groups with these
        names.
    name : str, optional
        A name that is displayed. Two ``Costs`` with the same numbers are equal even if their names
        differ.

    Raises
    ------
    ValueError
        If a key is not a pair or a cost is not a finite number.

    Notes
    -----
    The cost of a pair of groups applies to every pair of their classes, so costs of groups also
    define costs of classes. Elkan (2001) writes predicted classes in rows. In cmtrack, the actual
    class comes first, as in confusion matrices.

    Examples
    --------
    >>> costs = Costs({("fraud", "fine"): 100, ("fine", "fraud"): 2})
    >>> costs.matrix(["fine", "fraud"]).tolist()
    [[0.0, 2.0], [100.0, 0.0]]
    """

    pairs: tuple[tuple[Label, Label, float], ...]
    default: float
    mismatch: tuple[tuple[Label, float], ...]
    step: str | None
    name: str | None = field(compare=False)

    def __init__(
        self,
        costs: Mapping[tuple[Any, Any], float],
        *,
        default: float = 1.0,
        mismatch: Mapping[Any, float] | None = None,
        step: str | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(costs, Mapping):
            raise TypeError(
                f"costs must map (actual, predicted) to costs, got {type(costs).__name__}"
            )
        if mismatch is not None and not isinstance(mismatch, Mapping):
            raise TypeError(f"mismatch must map groups to costs, got {type(mismatch).__name__}")
        for option, text in (("step", step), ("name", name)):
            if text is not None and (not isinstance(text, str) or not text.strip()):
                raise ValueError(f"{option} must be a non-empty string, got {text!r}")
        pairs = []
        for pair, cost in costs.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ValueError(f"a cost must be for a pair (actual, predicted), got {pair!r:.60}")
            actual, predicted = pair
            number = _number(cost, f"the cost of {pair!r:.60}")
            pairs.append((plain(actual), plain(predicted), number))
        mismatches = []
        for group, cost in (mismatch or {}).items():
            mismatches.append((plain(group), _number(cost, f"the mismatch of {group!r:.60}")))
        # The pairs are sorted, so that costs are equal if only the order of the pairs differs.
        object.__setattr__(self, "pairs", tuple(sorted(pairs, key=repr)))
        object.__setattr__(self, "default", _number(default, "the default cost"))
        object.__setattr__(self, "mismatch", tuple(sorted(mismatches, key=repr)))
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "name", name)

    def __repr__(self) -> str:
        pairs = [f"({a!r}, {p!r}): {cost:g}" for a, p, cost in self.pairs[:_SHOWN]]
        if len(self.pairs) > _SHOWN:
            pairs.append("…")
        arguments = [f"{{{', '.join(pairs)}}}", f"default={self.default:g}"]
        if self.mismatch:
            groups = ", ".join(f"{group!r}: {cost:g}" for group, cost in self.mismatch)
            arguments.append(f"mismatch={{{groups}}}")
        if self.step is not None:
            arguments.append(f"step={self.step!r}")
        if self.name is not None:
            arguments.append(f"name={self.name!r}")
        return printable(f"Costs({', '.join(arguments)})")

    def describe(self) -> str:
        """Describe the costs in one line: ``“fraud” as “fine” 100; other wrong pairs 1``.

        The largest costs come first. Pairs whose cost is the default are not listed.
        """
        unusual = []
        for actual, predicted, cost in self.pairs:
            usual_cost = 0.0 if actual == predicted else self.default
            if cost != usual_cost:
                unusual.append((actual, predicted, cost))
        unusual.sort(key=lambda pair: -abs(pair[2]))
        words = [f"{quoted(a)} as {quoted(p)} {cost:g}" for a, p, cost in unusual]
        if len(words) > _SHOWN + 1:
            words = [*words[:_SHOWN], f"and {len(words) - _SHOWN} more"]
        words += [f"mismatches of {quoted(group)} {cost:g}" for group, cost in self.mismatch]
        words.append(f"other wrong pairs {self.default:g}")
        text = "; ".join(words)
        if self.name is not None:
            text = f"{quoted(self.name)}: {text}"
        return text

    # -- reading and writing ---------------------------------------------------------------------

    @classmethod
    def from_matrix(cls, matrix: Any, labels: Sequence[Any], **options: Any) -> Costs:
        """Create costs from a square matrix with the costs of all pairs.

        Parameters
        ----------
        matrix : array_like of shape (K, K)
            The rows are actual classes and the columns are predicted classes.
        labels : sequence of length K
            The classes, or the groups of a step, in the order of the rows and columns.
        **options
            ``default``, ``mismatch``, ``step`` and ``name`` as in :class:`Costs`.

        Raises
        ------
        ValueError
            If the shape of the matrix is not (K, K), if it contains something other than finite
            numbers, or if a label is repeated.
        """
        names = [plain(label) for label in labels]
        if len(set(names)) < len(names):
            raise ValueError(f"the labels of a cost matrix must be distinct, got {names[:20]}")
        rows = matrix
        if hasattr(matrix, "tolist"):
            rows = matrix.tolist()
        try:
            shape: tuple[int, ...] = np.shape(rows)
        except ValueError:  # the lengths of the rows differ
            shape = (len(rows),)
        square = (len(names), len(names))
        if shape != square:
            raise ValueError(
                f"a cost matrix of {len(names)} labels must have the shape {square}, got {shape}"
            )
        pairs = {}
        for actual, row in zip(names, rows, strict=True):
            for predicted, cost in zip(names, row, strict=True):
                pairs[actual, predicted] = cost
        return cls(pairs, **options)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Costs:
        """Create costs from plain data, which :meth:`to_dict` or a person wrote.

        Parameters
        ----------
        data : mapping
            ``{"costs": [[actual, predicted, cost], ...]}`` or ``{"labels": [...], "matrix": [[...],
            ...]}``, and optionally ``default``, ``mismatch`` (``{group: cost}``, or a list of
            ``[group, cost]``), ``step`` and ``name``.

        Raises
        ------
        ValueError
            If a key is unknown or missing, a pair occurs twice, or a cost is not a finite number.

        Examples
        --------
        >>> from cmtrack import Costs
        >>> Costs.from_dict({"costs": [["fraud", "fine", 100]], "default": 2})
        Costs({('fraud', 'fine'): 100}, default=2)
        """
        optional = {"labels", "default", "mismatch", "step", "name"}
        keys = set(data) if isinstance(data, Mapping) else set()
        if len(keys & {"costs", "matrix"}) != 1 or keys - optional - {"costs", "matrix"}:
            found = list(data) if isinstance(data, Mapping) else data
            raise ValueError(
                f"costs must have 'costs' or 'matrix', and may have {sorted(optional)}, "
                f"got {found!r:.120}"
            )
        if ("labels" in data) != ("matrix" in data):
            raise ValueError(f"costs must have 'labels' and 'matrix' or neither, got {list(data)}")
        options = {
            name: data[name] for name in ("default", "step", "name") if data.get(name) is not None
        }
        mismatch = data.get("mismatch") or {}
        if isinstance(mismatch, Mapping):
            mismatch = [list(item) for item in mismatch.items()]
        rule = "'mismatch' must map groups to costs or list [group, cost]"
        options["mismatch"] = _costs_by_key(mismatch, 2, rule)
        if "costs" in data:
            rule = "'costs' must list [actual, predicted, cost]"
            return cls(_costs_by_key(data["costs"], 3, rule), **options)
        labels = data["labels"]
        matrix = data["matrix"]
        if not isinstance(labels, list) or not isinstance(matrix, list):
            raise ValueError(
                f"'labels' and 'matrix' must be lists, got {labels!r:.60} and {matrix!r:.60}"
            )
        return cls.from_matrix(matrix, labels, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return the costs as plain data for JSON or YAML."""
        data: dict[str, Any] = {
            "costs": [list(pair) for pair in self.pairs],
            "default": self.default,
        }
        if self.mismatch:
            data["mismatch"] = [list(pair) for pair in self.mismatch]
        if self.step is not None:
            data["step"] = self.step
        if self.name is not None:
            data["name"] = self.name
        return data

    @classmethod
    def from_file(cls, path: str | Path) -> Costs:
        """Read costs from a ``.yaml``, ``.yml`` or ``.json`` file (see :meth:`from_dict`).

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        ValueError
            If the file has a different extension, its text cannot be parsed, or the costs are
            invalid.
        """
        return cls.from_dict(read_file(path, "a file of costs"))

    # -- using -----------------------------------------------------------------------------------

    def matrix(
        self, labels: Sequence[Label], grouping: Grouping | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the costs of all pairs of classes.

        Parameters
        ----------
        labels : sequence of length K
            The classes, in the order of the confusion matrix.
        grouping : Grouping, optional
            The grouping whose groups the costs may name.

        Returns
        -------
        ndarray of shape (K, K)
            The rows are actual classes and the columns are predicted classes.

        Raises
        ------
        ValueError
            If a cost names a class or group that does not exist, or if several steps contain groups
            with these names and the resulting costs differ.
        """
        steps: tuple[ComposedStep, ...] = ()
        classes = set(labels)
        if grouping is not None:
            steps = grouping.compose(labels)
            # Costs may name classes of the grouping that are not in the data.
            classes.update(chain.from_iterable(grouping.steps[0].groups.values()))
        names = self._names()
        if self.step is None and not self.mismatch and classes.issuperset(names):
            return self._matrix_of(labels)
        fitting = [step for step in steps if set(step.labels).issuperset(names)]
        matrices = [
            self._matrix_of_groups(step) for step in fitting if self.step in (None, step.name)
        ]
        if not matrices:
            raise ValueError(self._no_such_names(labels, steps))
        if any(not np.array_equal(matrices[0], other) for other in matrices[1:]):
            raise ValueError(
                "costs must be for one step, which you name with step=: the costs of "
                f"{names[:10]} differ in the steps {[step.name for step in fitting]}, got "
                "step=None"
            )
        return matrices[0]

    def _names(self) -> list[Label]:
        """Return the classes or groups that occur in the costs, without repetition."""
        names = []
        for actual, predicted, _ in self.pairs:
            names += [actual, predicted]
        names += [group for group, _ in self.mismatch]
        return list(dict.fromkeys(names))

    def _no_such_names(self, labels: Sequence[Label], steps: Sequence[ComposedStep]) -> str:
        """Return the error text for names that are neither all classes nor all groups of a step."""
        allowed = [f"the classes are {list(labels)[:20]}"]
        known = set(labels)
        for step in steps:
            allowed.append(f"the groups of {step.name!r} {list(step.labels)}")
            known.update(step.labels)
        names = self._names()
        # All names may exist, although some are classes and others are groups.
        unknown = [name for name in names if name not in known] or names
        rule = "costs must be for the classes, or for the groups of one step"
        if self.mismatch and not steps:
            rule = f"mismatch costs are for groups: {rule}"
        if self.step is not None:
            rule += f" of the step {self.step!r}"
        return f"{rule}, got {unknown[:10]}; {'; '.join(allowed)}"

    def _matrix_of(self, names: Sequence[Label]) -> npt.NDArray[np.float64]:
        """Return the costs of all pairs of names, which must be all classes or all groups."""
        index = {name: k for k, name in enumerate(names)}
        costs = np.full((len(index), len(index)), self.default)
        np.fill_diagonal(costs, 0.0)
        for actual, predicted, cost in self.pairs:
            if actual in index and predicted in index:
                costs[index[actual], index[predicted]] = cost
        return costs

    def _matrix_of_groups(self, step: ComposedStep) -> npt.NDArray[np.float64]:
        """Compute the costs of pairs of classes from the costs of their groups, shape (K, K)."""
        mismatch = dict(self.mismatch)
        mismatch_costs = np.array([mismatch.get(group, self.default) for group in step.labels])
        group = step.group_of_class
        costs = self._matrix_of(step.labels)[np.ix_(group, group)]
        same_group = group[:, None] == group[None, :]
        return np.where(same_group & ~step.accept, mismatch_costs[group][:, None], costs)


def as_costs(costs: Any) -> Costs:
    """Return costs from a mapping of pairs, plain data for :meth:`Costs.from_dict`, or a file.

    A :class:`Costs` object is returned unchanged.

    Raises
    ------
    TypeError, ValueError
        If the argument is none of these.

    Examples
    --------
    >>> from cmtrack.grouping import as_costs
    >>> as_costs({("fraud", "fine"): 100})
    Costs({('fraud', 'fine'): 100}, default=1)
    """
    if isinstance(costs, Costs):
        return costs
    if isinstance(costs, (str, Path)):
        try:
            return Costs.from_file(costs)
        except OSError as error:
            raise ValueError(f"the file of costs cannot be read: {error}") from None
    if not isinstance(costs, Mapping):
        raise TypeError(
            "costs must be Costs, a file, or map (actual, predicted) to costs, "
            f"got {type(costs).__name__}"
        )
    if "costs" in costs or "matrix" in costs:
        return Costs.from_dict(costs)
    return Costs(costs)


def _number(value: Any, what: str) -> float:
    """Check that a cost is a finite number, and return it; ``what``: its name in messages."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number, got {value!r:.40}")
    return float(value)


def _costs_by_key(rows: Any, length: int, rule: str) -> dict[Any, Any]:
    """Map the names in each plain row, such as [actual, predicted, cost], to the row's cost.

    ``length``: number of values that each row must contain.
    ``rule``: description of the expected form of the rows, for the error message.
    """
    costs: dict[Any, Any] = {}
    for row in rows if isinstance(rows, list) else [rows]:
        is_nested = isinstance(row, list) and any(isinstance(value, (list, dict)) for value in row)
        if not isinstance(row, list) or len(row) != length or is_nested:
            raise ValueError(f"{rule}, got {row!r:.60}")
        *names, cost = row
        key = names[0] if len(names) == 1 else tuple(names)
        if key in costs:
            raise ValueError(f"each cost must be given only once, got {key!r:.60} twice")
        costs[key] = cost
    return costs
