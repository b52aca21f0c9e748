"""The public :class:`Grouping`: a partition of the classes, or a chain of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping.step import (
    Label,
    Mode,
    Step,
    accepted_pairs,
    check_cover,
    check_members,
    check_mode,
    describe_step,
    mode_of,
    numbers_of_groups,
    plain,
    read_file,
    read_step,
    write_step,
)
from cmtrack.untrusted import printable


@dataclass(frozen=True)
class ComposedStep:
    """A step of a chain, written in terms of the original classes.

    Attributes
    ----------
    name : str
        Name of the step, which becomes part of metric names.
    labels : tuple
        The M group names, in order.
    group_of_class : ndarray of shape (K,), int64
        Group index of each original class.
    accept : ndarray of shape (K, K), bool
        ``accept[i, j]`` is True if predicting actual class i as class j counts as a hit. Both
            classes are then in the same group.
    positive : int or None
        Index of the positive group if there are exactly two groups.
    threshold : float, optional
        The positive group is predicted if its score is at least this threshold. By default, the
        most probable class is predicted.

    Examples
    --------
    >>> from cmtrack import Grouping
    >>> step = Grouping({"low": [0, 1], "high": [2]}, mode="strict").compose([0, 1, 2])[0]
    >>> step.labels, step.group_of_class.tolist()
    (('low', 'high'), [0, 0, 1])
    >>> step.accept.astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """

    name: str
    labels: tuple[Label, ...]
    group_of_class: npt.NDArray[np.int64]
    accept: npt.NDArray[np.bool_]
    positive: int | None
    threshold: float | None = None

    @property
    def in_positive(self) -> npt.NDArray[np.bool_]:
        """Mask of the original classes that belong to the positive group, shape (K,)."""
        return self.group_of_class == self.positive

    @property
    def relaxed(self) -> bool:
        """True if every prediction in the actual group is a hit, so mismatches cannot occur."""
        same_group = self.group_of_class[:, None] == self.group_of_class
        return np.array_equal(self.accept, same_group)


@dataclass(frozen=True, init=False, repr=False)
class Grouping:
    """A partition of classes into groups, or a chain of such partitions.

    Parameters
    ----------
    groups : mapping of group name to classes
        For example ``{"detractor": range(0, 7), "passive": [7, 8], "promoter": [9, 10]}``. Each
        class must be in exactly one group. The groups keep the order of the mapping.
    mode : "relaxed", "strict" or mapping, default "relaxed"
        Rule that decides which pairs of classes in the same group are hits, for all groups or for
        each group by name.
        ``"relaxed"`` means that every pair is a hit, and ``"strict"`` means that only the exact
        class is a hit. For a hybrid group, give an iterable of ``(actual, predicted)`` pairs, or a
        callable ``(actual, predicted) -> bool``. In a hybrid group, predictions of the exact class
        are hits unless ``include_diagonal=False``. Groups that are not in the mapping are relaxed.
    positive : group name, optional
        The positive group, if there are two groups; by default the last group.
    name : str, optional
        Name of the step, which becomes part of metric names; by default ``"<M>_groups"``.
    include_diagonal : bool, default True
        Whether predictions of the exact class are hits in a hybrid group.

    Raises
    ------
    ValueError
        If a class is repeated, a group is empty, fewer than two groups are given, a hybrid pair
        is not inside its group, or the positive group does not exist.

    Notes
    -----
    The set of accepted pairs corresponds to G_TP in Markoulidakis et al. (2021), equations 4-8.
    Accepted pairs are written as (actual, predicted). The printed equations 19 and 20 swap the
    membership signs. The sum over the *accepted* pairs is the number of hits, and the sum over the
    remaining pairs is the number of intragroup mismatches.

    Examples
    --------
    >>> nps = Grouping({"detractor": range(7), "passive": [7, 8], "promoter": [9, 10]}, name="nps")
    >>> chain = nps.then(Grouping({"promoter": ["promoter"], "other": ["passive", "detractor"]},
    ...                           mode="strict", positive="promoter", name="promoters"))
    >>> [step.name for step in chain.steps]
    ['nps', 'promoters']
    """

    _steps: tuple[Step, ...]

    def __init__(
        self,
        groups: Mapping[Any, Iterable[Any]],
        mode: Mode = "relaxed",
        *,
        positive: Label | None = None,
        name: str | None = None,
        include_diagonal: bool = True,
    ) -> None:
        members = check_members(groups)
        acceptance = check_mode(members, mode, include_diagonal)
        if positive is not None:
            if len(members) != 2:
                raise ValueError(
                    f"positive needs exactly two groups, got {len(members)} groups and "
                    f"positive={positive!r}"
                )
            if positive not in dict(members):
                raise ValueError(
                    f"positive must be one of the groups {list(dict(members))}, got {positive!r}"
                )
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise ValueError(f"name must be a non-empty string, got {name!r}")
        step = Step(name or f"{len(members)}_groups", members, acceptance, plain(positive))
        object.__setattr__(self, "_steps", (step,))

    # -- reading ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the last step."""
        return self._steps[-1].name

    @property
    def labels(self) -> tuple[Label, ...]:
        """Group names of the last step, in order."""
        return self._steps[-1].labels

    @property
    def positive(self) -> Label | None:
        """Positive group of the last step, by default the last of two groups; otherwise None."""
        last = self._steps[-1]
        if last.positive is not None or len(last.members) != 2:
            return last.positive
        return last.members[-1][0]

    @property
    def groups(self) -> dict[Label, tuple[Label, ...]]:
        """Members of each group of the last step."""
        return dict(self._steps[-1].members)

    @property
    def steps(self) -> tuple[Grouping, ...]:
        """The steps of the chain, each as a separate grouping."""
        return tuple(_from_steps((step,)) for step in self._steps)

    def __repr__(self) -> str:
        steps = []
        for step in self._steps:
            groups = ", ".join(map(str, step.labels))
            modes = "/".join(sorted({mode_of(rule) for rule in step.acceptance}))
            steps.append(f"{step.name}: {groups} ({modes})")
        return printable(f"Grouping({' → '.join(steps)})")

    def describe(self) -> str:
        """Describe the grouping: ``nps: detractor = 0-6; promoter = 9, 10 (strict)``."""
        return " → ".join(describe_step(step) for step in self._steps)

    # -- building --------------------------------------------------------------------------------

    def then(self, other: Grouping) -> Grouping:
        """Append a grouping whose classes are the group names of this grouping.

        If two steps have the same name, a number is added (``3_groups``, ``3_groups_2``).

        Raises
        ------
        ValueError
            If the classes of the first step of ``other`` are not exactly the groups of this
            grouping.

        Examples
        --------
        >>> from cmtrack import Grouping
        >>> groups = {"pleased": ["passive", "promoter"], "displeased": ["detractor"]}
        >>> Grouping.nps().then(Grouping(groups, name="half"))
        Grouping(nps: detractor, passive, promoter (relaxed) → half: pleased, displeased (relaxed))
        """
        if not isinstance(other, Grouping):
            raise TypeError(f"then() takes a Grouping, got {type(other).__name__}")
        check_cover(other._steps[0], self.labels, "the earlier step's groups")
        steps = list(self._steps)
        for step in other._steps:
            used = {earlier.name for earlier in steps}
            name = step.name
            number = 1
            while name in used:
                number += 1
                name = f"{step.name}_{number}"
            steps.append(replace(step, name=name))
        return _from_steps(tuple(steps))

    @classmethod
    def nps(cls, mode: Mode = "relaxed") -> Grouping:
        """Return the net promoter score groups: detractor 0-6, passive 7-8, promoter 9-10.

        Source: Markoulidakis et al. (2021), Table 1a.
        """
        return cls(
            {"detractor": range(7), "passive": (7, 8), "promoter": (9, 10)}, mode, name="nps"
        )

    @classmethod
    def csat(cls, mode: Mode = "relaxed") -> Grouping:
        """Return customer satisfaction groups: dissatisfied 1-2, neutral 3, satisfied 4-5.

        Source: Markoulidakis et al. (2021), Table 1b.
        """
        return cls(
            {"dissatisfied": (1, 2), "neutral": (3,), "satisfied": (4, 5)}, mode, name="csat"
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Grouping:
        """Create a grouping from plain data, which :meth:`to_dict` or a person wrote.

        Parameters
        ----------
        data : mapping
            One step, ``{"groups": {...}, "mode": ..., "positive": ..., "name": ...}``, or a chain,
            ``{"steps": [step, ...]}``. The classes of a group are a list, or ``{"from": 0, "to":
            6}``, which includes both ends. A hybrid mode is a list of pairs ``[actual,
            predicted]``.

        Raises
        ------
        ValueError
            If a key is unknown or missing, or the grouping itself is invalid.

        Examples
        --------
        >>> from cmtrack import Grouping
        >>> groups = {"low": {"from": 0, "to": 2}, "high": [3, 4]}
        >>> Grouping.from_dict({"groups": groups, "mode": "strict"})
        Grouping(2_groups: low, high (strict))
        """
        if not isinstance(data, Mapping):
            raise ValueError(
                f"a grouping must be a mapping with 'groups' or 'steps', got {data!r:.60}"
            )
        if "steps" not in data:
            return cls(**read_step(data))
        steps = data["steps"]
        if set(data) != {"steps"} or not isinstance(steps, list) or not steps:
            raise ValueError(
                f"'steps' must be the only key and a list of groupings, got {data!r:.60}"
            )
        chain = cls.from_dict(steps[0])
        for step in steps[1:]:
            chain = chain.then(cls.from_dict(step))
        return chain

    def to_dict(self) -> dict[str, Any]:
        """Return the grouping as plain data for JSON or YAML."""
        steps = [write_step(step) for step in self._steps]
        if len(steps) == 1:
            return steps[0]
        return {"steps": steps}

    @classmethod
    def from_file(cls, path: str | Path) -> Grouping:
        """Read a grouping from a ``.yaml``, ``.yml`` or ``.json`` file (see :meth:`from_dict`).

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        ValueError
            If the file has a different extension, its text cannot be parsed, or the grouping is
            invalid.
        """
        return cls.from_dict(read_file(path, "a grouping file"))

    # -- using -----------------------------------------------------------------------------------

    def compose(self, labels: Sequence[Label]) -> tuple[ComposedStep, ...]:
        """Write every step of the chain in terms of the original classes.

        For each pair of classes, one step is the first to put both classes into the same group. The
        pair is a hit in a later step only if that first step and all steps up to the later step
        accept it. In this form, any step can be computed in one pass over the K x K matrix.

        Parameters
        ----------
        labels : sequence of length K
            The original classes, in the order of the confusion matrix.

        Returns
        -------
        tuple of ComposedStep

        Raises
        ------
        ValueError
            If a class in ``labels`` is in no group. Classes of the grouping that are not in
            ``labels`` have no rows and are ignored.
        """
        _check_grouped(labels, self._steps[0])
        current: Sequence[Label] = labels
        group = np.arange(len(labels))
        # Before the first step, every class is a separate group, in which its only pair is a hit.
        accept = np.eye(len(labels), dtype=bool)
        composed = []
        for step in self._steps:
            number_of = numbers_of_groups(step)
            pairs = accepted_pairs(step, current)
            # A step decides about pairs of classes that it is the first to join, and about previous
            # hits.
            together_before = group[:, None] == group[None, :]
            accept = (accept | ~together_before) & pairs[np.ix_(group, group)]
            group = np.array([number_of[current[g]] for g in group.tolist()], dtype=np.int64)
            current = step.labels
            positive = None
            if step.positive is not None:
                positive = current.index(step.positive)
            elif len(current) == 2:
                positive = 1
            composed.append(ComposedStep(step.name, current, group, accept, positive))
        return tuple(composed)

    def with_positive(self, positive: Label) -> Grouping:
        """Return the chain with ``positive`` as the positive group of its last step."""
        last = self._steps[-1]
        if len(last.members) != 2 or positive not in last.labels:
            raise ValueError(
                f"positive must be one of two groups {list(last.labels)}, got {positive!r}"
            )
        return _from_steps((*self._steps[:-1], replace(last, positive=plain(positive))))


def _check_grouped(labels: Sequence[Label], step: Step) -> None:
    """Raise ValueError if a label does not belong to any group of a step."""
    named = numbers_of_groups(step)
    missing = [label for label in labels if label not in named]
    if not missing:
        return
    message = f"every class must be in one group, got none for {missing[:10]}"
    # The message lists names that are not in the data, so a misspelled class is easy to see.
    unused = sorted(map(repr, named.keys() - set(labels)))
    if unused:
        message += f"; the groups name {', '.join(unused[:10])}, which the data do not have"
    raise ValueError(message)


def _from_steps(steps: tuple[Step, ...]) -> Grouping:
    grouping = object.__new__(Grouping)
    object.__setattr__(grouping, "_steps", steps)
    return grouping
