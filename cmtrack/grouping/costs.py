"""The public :class:`Costs`: what each decision costs, by the actual class or group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping.chain import ComposedStep, Grouping
from cmtrack.grouping.step import Label, plain, read_file
from cmtrack.names import quoted
from cmtrack.untrusted import printable


@dataclass(frozen=True, init=False, repr=False)
class Costs:
    """Costs of the pairs (actual, predicted), of classes or of the groups of a step.

    Parameters
    ----------
    costs : mapping of (actual, predicted) to float
        For example ``{("promoter", "detractor"): 5, ("detractor", "promoter"): 20}``; a negative cost is a gain.
        Costs are of classes if all names are classes, else of the groups of the step that has all these names.
    default : float, default 1.0
        Cost of a wrong pair that is not named. Equal pairs cost 0 unless they are named.
    mismatch : mapping of group to float, optional
        Of groups: what a wrong class inside the right group costs where the grouping does not accept it; by default
        ``default``, so that no mismatch is free by oversight. Accepted pairs inside a group cost what the group's
        equal pair costs.
    step : str, optional
        Name of the step whose groups are named, where several steps have groups of these names.
    name : str, optional
        For people. Costs of other names and the same numbers are equal.

    Raises
    ------
    ValueError
        If a key is not a pair or a cost is not a finite number.

    Notes
    -----
    A cost of a pair of groups holds for every pair of their classes, so that costs of groups are costs of classes.
    Elkan (2001) writes predicted classes in rows; here the actual class comes first, as in confusion matrices.

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
                raise ValueError(f"a cost must be of a pair (actual, predicted), got {pair!r:.60}")
            pairs.append(
                (plain(pair[0]), plain(pair[1]), _number(cost, f"the cost of {pair!r:.60}"))
            )
        mismatches = [
            (plain(group), _number(cost, f"the mismatch of {group!r:.60}"))
            for group, cost in (mismatch or {}).items()
        ]
        object.__setattr__(self, "pairs", tuple(sorted(pairs, key=repr)))
        object.__setattr__(self, "default", _number(default, "the default cost"))
        object.__setattr__(self, "mismatch", tuple(sorted(mismatches, key=repr)))
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "name", name)

    def __repr__(self) -> str:
        parts = [f"{{{', '.join(f'({a!r}, {p!r}): {cost:g}' for a, p, cost in self.pairs[:12])}"]
        parts[0] += ", …}" if len(self.pairs) > 12 else "}"
        parts.append(f"default={self.default:g}")
        if self.mismatch:
            parts.append(
                f"mismatch={{{', '.join(f'{group!r}: {cost:g}' for group, cost in self.mismatch)}}}"
            )
        parts += [
            f"{name}={text!r}"
            for name, text in (("step", self.step), ("name", self.name))
            if text is not None
        ]
        return printable(f"Costs({', '.join(parts)})")

    def describe(self) -> str:
        """The costs in a line of words, the dearest first, such as ``“fraud” as “fine” 100; other wrong pairs 1``."""
        listed_pairs = [
            pair for pair in self.pairs if pair[2] != (0.0 if pair[0] == pair[1] else self.default)
        ]
        listed_pairs.sort(key=lambda pair: -abs(pair[2]))
        parts = [f"{quoted(a)} as {quoted(p)} {cost:g}" for a, p, cost in listed_pairs]
        parts = [*parts[:12], f"and {len(parts) - 12} more"] if len(parts) > 13 else parts
        parts += [f"mismatches of {quoted(group)} {cost:g}" for group, cost in self.mismatch]
        parts.append(f"other wrong pairs {self.default:g}")
        return ("" if self.name is None else f"{quoted(self.name)}: ") + "; ".join(parts)

    # -- reading and writing ---------------------------------------------------------------------------

    @classmethod
    def from_matrix(cls, matrix: Any, labels: Sequence[Any], **options: Any) -> Costs:
        """Costs of every pair, from a square matrix.

        Parameters
        ----------
        matrix : array_like of shape (K, K)
            Rows actual, columns predicted.
        labels : sequence of length K
            The classes, or the groups of a step, in the order of rows and columns.
        **options
            ``default``, ``mismatch``, ``step`` and ``name`` as in :class:`Costs`.

        Raises
        ------
        ValueError
            If the matrix has another shape, holds something other than finite numbers, or a label is repeated.
        """
        names = [plain(label) for label in labels]
        if len(set(names)) < len(names):
            raise ValueError(f"the labels of a cost matrix must be distinct, got {names[:20]}")
        rows = matrix.tolist() if hasattr(matrix, "tolist") else matrix
        try:
            shape: tuple[int, ...] = np.shape(rows)
        except ValueError:  # rows of different lengths
            shape = (len(rows),)
        if shape != (len(names), len(names)):
            raise ValueError(
                f"a cost matrix of {len(names)} labels must have the shape {(len(names),) * 2}, got {shape}"
            )
        pairs = {
            (a, p): cost
            for a, row in zip(names, rows, strict=True)
            for p, cost in zip(names, row, strict=True)
        }
        return cls(pairs, **options)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Costs:
        """Read what :meth:`to_dict` wrote, or the same written by hand.

        Parameters
        ----------
        data : mapping
            ``{"costs": [[actual, predicted, cost], ...]}`` or ``{"labels": [...], "matrix": [[...], ...]}``, and
            maybe ``default``, ``mismatch`` (``{group: cost}``, or a list of ``[group, cost]``), ``step`` and ``name``.

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
        keys = {"costs", "labels", "matrix", "default", "mismatch", "step", "name"}
        if (
            not isinstance(data, Mapping)
            or set(data) - keys
            or ("costs" in data) == ("matrix" in data)
        ):
            got = list(data) if isinstance(data, Mapping) else data
            raise ValueError(
                f"costs must have 'costs' or 'matrix', and may have {sorted(keys - {'costs', 'matrix'})}, "
                f"got {got!r:.120}"
            )
        if ("labels" in data) != ("matrix" in data):
            raise ValueError(f"costs must have 'labels' and 'matrix' or neither, got {list(data)}")
        options = {
            name: data[name] for name in ("default", "step", "name") if data.get(name) is not None
        }
        options["mismatch"] = _unique(
            data.get("mismatch") or {},
            2,
            "'mismatch' must map groups to costs or list [group, cost]",
        )
        if "matrix" in data:
            if not all(isinstance(data[name], list) for name in ("labels", "matrix")):
                raise ValueError(
                    f"'labels' and 'matrix' must be lists, got {data['labels']!r:.60} and {data['matrix']!r:.60}"
                )
            return cls.from_matrix(data["matrix"], data["labels"], **options)
        return cls(
            _unique(data["costs"], 3, "'costs' must list [actual, predicted, cost]"), **options
        )

    def to_dict(self) -> dict[str, Any]:
        """The costs as plain data that JSON and YAML can hold."""
        return {
            "costs": [list(pair) for pair in self.pairs],
            "default": self.default,
            **({"mismatch": [list(pair) for pair in self.mismatch]} if self.mismatch else {}),
            **({} if self.step is None else {"step": self.step}),
            **({} if self.name is None else {"name": self.name}),
        }

    @classmethod
    def from_file(cls, path: str | Path) -> Costs:
        """Read costs from a ``.yaml``, ``.yml`` or ``.json`` file (see :meth:`from_dict`).

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the ending is another one, the text does not parse, or the costs are wrong.
        """
        return cls.from_dict(read_file(path, "a file of costs"))

    # -- using -----------------------------------------------------------------------------------------

    def matrix(
        self, labels: Sequence[Label], grouping: Grouping | None = None
    ) -> npt.NDArray[np.float64]:
        """Costs of all pairs of classes.

        Parameters
        ----------
        labels : sequence of length K
            The classes, in the order of the confusion matrix.
        grouping : Grouping, optional
            Where costs may be of groups.

        Returns
        -------
        ndarray of shape (K, K)
            Rows actual, columns predicted.

        Raises
        ------
        ValueError
            If a cost names a class or group that does not exist, or several steps have groups of these names and their
            costs differ.
        """
        steps = () if grouping is None else grouping.compose(labels)
        named = list(
            dict.fromkeys(
                [n for a, p, _ in self.pairs for n in (a, p)]
                + [group for group, _ in self.mismatch]
            )
        )
        if self.step is None and not self.mismatch:
            absent = (
                ()
                if grouping is None
                else [c for members in grouping.steps[0].groups.values() for c in members]
            )
            # classes of the grouping that do not occur are passed over
            if set(named) <= {*labels, *absent}:
                return self._filled(labels)
        matrices = [
            self._of_groups(s)
            for s in steps
            if self.step in (None, s.name) and set(named) <= set(s.labels)
        ]
        if not matrices:
            allowed = "; ".join(
                [
                    f"the classes are {list(labels)[:20]}",
                    *(f"the groups of {s.name!r} {list(s.labels)}" for s in steps),
                ]
            )
            start = "mismatch costs are of groups: " if self.mismatch and not steps else ""
            of = "" if self.step is None else f" of the step {self.step!r}"
            every = {*labels, *(group for s in steps for group in s.labels)}
            strange = [n for n in named if n not in every] or named
            raise ValueError(
                f"{start}costs must be of the classes, or of the groups of one step{of}, got {strange[:10]}; {allowed}"
            )
        if any(not np.array_equal(matrices[0], other) for other in matrices[1:]):
            names = [s.name for s in steps if set(named) <= set(s.labels)]
            raise ValueError(
                f"costs must be of one step, which step= names: those of {named[:10]} differ in the steps {names}, "
                "got step=None"
            )
        return matrices[0]

    def _filled(self, labels: Sequence[Label]) -> npt.NDArray[np.float64]:
        place = {label: k for k, label in enumerate(labels)}
        out = np.full((len(place), len(place)), self.default)
        np.fill_diagonal(out, 0.0)
        for actual, predicted, cost in self.pairs:
            if actual in place and predicted in place:
                out[place[actual], place[predicted]] = cost
        return out

    def _of_groups(self, step: ComposedStep) -> npt.NDArray[np.float64]:
        mismatch_costs = np.array(
            [dict(self.mismatch).get(group, self.default) for group in step.labels]
        )
        group = step.group_of_class
        out = self._filled(step.labels)[np.ix_(group, group)]
        inside = group[:, None] == group[None, :]
        return np.where(inside & ~step.accept, mismatch_costs[group][:, None], out)


def as_costs(costs: Any) -> Costs:
    """Costs as they are, from a mapping of pairs, from plain data of :meth:`Costs.from_dict`, or from a file.

    Raises
    ------
    TypeError, ValueError
        If they are none.

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
            raise ValueError(f"there is no file of costs that can be read: {error}") from None
    if not isinstance(costs, Mapping):
        raise TypeError(
            f"costs must be Costs, a file, or map (actual, predicted) to costs, got {type(costs).__name__}"
        )
    return Costs.from_dict(costs) if {"costs", "matrix"} & set(costs) else Costs(costs)


def _number(value: Any, what: str) -> float:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number, got {value!r:.40}")
    return float(value)


def _unique(data: Any, width: int, rule: str) -> dict[Any, Any]:
    """Plain rows as a mapping: their last part by the parts before it, each once."""
    rows = (
        [list(item) for item in data.items()] if isinstance(data, Mapping) and width == 2 else data
    )
    out: dict[Any, Any] = {}
    for row in rows if isinstance(rows, list) else [rows]:
        if (
            not isinstance(row, list)
            or len(row) != width
            or any(isinstance(part, (list, dict)) for part in row)
        ):
            raise ValueError(f"{rule}, got {row!r:.60}")
        key = row[0] if width == 2 else tuple(row[:-1])
        if key in out:
            raise ValueError(f"a cost must be given once, got {key!r:.60} twice")
        out[key] = row[-1]
    return out
