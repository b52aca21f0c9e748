"""Which family a code belongs to: a mapping, a function, a prefix, or one level of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.inputs import IntArray, listed

Path: TypeAlias = tuple[Label, ...]


@dataclass(frozen=True)
class Prefix:
    """Families by the beginning of a code: ``Prefix(separator=".")`` or ``Prefix(length=3)`` puts 364.01 into 364.

    Attributes
    ----------
    separator : str, optional
        The family is what stands before the first one; a code without it is a family of its own.
    length : int, optional
        The family is so many characters; a code that is not longer is a family of its own.
    """

    separator: str | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        if (self.separator is None) == (self.length is None):
            raise ValueError(f"Prefix takes either separator or length, got {self.separator!r} and {self.length!r}")
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
        The parent of every node that has one. Codes may stand anywhere in the tree, inner nodes too.
    level : int, default 0
        Families are the nodes of this level, counted from the top; a code that stands above it is a family of its
        own. Level 0 are the roots, or, where there is a single root, its children: a root that holds everything says
        nothing, and is left out of the hierarchical measures as well (Kiritchenko et al. 2005).
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
        parents = {plain(child): plain(parent) for child, parent in self.parents.items() if parent is not None}
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


Rule: TypeAlias = "Mapping[Label, Label] | Callable[[Any], Label] | Tree"


@dataclass(frozen=True, eq=False)
class Families:
    """Codes in order, the codes of a family side by side.

    Attributes
    ----------
    paths : tuple of tuple of labels, length L
        For each code the nodes from the top down to the code itself.
    level : int
        Where the family stands in a path; shorter paths are families of their own.
    chosen : bool
        Whether the order of codes was given; else they are sorted.
    """

    paths: tuple[Path, ...]
    level: int = 0
    chosen: bool = False

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
        """Where each family begins among the codes, and the number of codes, shape (F + 1,)."""
        return np.concatenate(([0], np.cumsum(np.bincount(self.family_of_code, minlength=len(self.names)))))

    @cached_property
    def nodes(self) -> IntArray:
        """Numbers of each code's nodes by depth, the code itself among them, shape (L, D); -1 below the code.

        Numbers never decrease along the codes of a depth. A code that is its own family is one node, not two: the
        hierarchical measures are of *sets* of codes and ancestors (Kiritchenko et al. 2005).
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
        """Where a code stands.

        Raises
        ------
        KeyError
            If there is no such code.
        """
        if code not in self._places:
            raise KeyError(f"no code is called {code!r}; there are {len(self.codes)}, such as {list(self.codes[:5])}")
        return self._places[code]

    def family_place(self, family: Label) -> int:
        """Where a family stands.

        Raises
        ------
        KeyError
            If there is no such family.
        """
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Families):
            return NotImplemented
        return self.level == other.level and self.paths == other.paths

    def merged(self, other: Families) -> Families:
        """The codes of both.

        Raises
        ------
        ValueError
            If they stand in chosen orders that differ, or a code has another family on the other side.
        """
        if self == other:
            return self
        if self.level != other.level or self.chosen or other.chosen:
            raise ValueError(
                "evaluations must have the same families and the same codes= to be merged, or codes in sorted order"
            )
        paths = {path[-1]: path for path in self.paths}
        for path in other.paths:
            if paths.setdefault(path[-1], path) != path:
                raise ValueError(f"the code {path[-1]!r} has another family on each side: {paths[path[-1]]} and {path}")
        return Families(tuple(_sorted(paths.values())), self.level)


def assign(rule: Rule, codes: Iterable[Label], *, chosen: bool = False, unassigned: Label | None = None) -> Families:
    """Put codes into families.

    Parameters
    ----------
    rule : mapping of code to family, callable, or Tree
    codes : iterable of labels
    chosen : bool
        Whether the codes stand in an order that someone chose; it is kept within families, and families stand in the
        order of their first code. Else both are sorted.
    unassigned : label, optional
        The family of codes that have none.

    Raises
    ------
    ValueError, TypeError
        If a code has no family, names repeat as texts, labels cannot be put in order, or the rule is none.
    """
    codes = list(codes)
    if isinstance(rule, Tree):
        found = {code: rule.path(code) for code in codes}
    elif isinstance(rule, Mapping):
        family = {plain(code): plain(name) for code, name in rule.items()}
        found = {code: (family[code], code) if code in family else None for code in codes}
    elif callable(rule):
        named = {code: plain(rule(code)) for code in codes}
        found = {code: None if name is None else (name, code) for code, name in named.items()}
    else:
        raise TypeError(
            f"families must be a mapping of code to family, a function, a Prefix or a Tree, got {rule!r:.60}"
        )
    lacking = [code for code, path in found.items() if path is None]
    if lacking and unassigned is None:
        raise ValueError(
            f"each code must have a family, {len(lacking)} have none: {listed(lacking)}; unassigned= names one for them"
        )
    paths = [path or (unassigned, code) for code, path in found.items()]
    out = Families(
        tuple(_in_order_of_appearance(paths) if chosen else _sorted(paths)),
        rule.level if isinstance(rule, Tree) else 0,
        chosen,
    )
    for what, names in (("codes", out.codes), ("families", out.names)):
        if len({str(name) for name in names}) != len(names):
            raise ValueError(f"{what} must differ as texts, for metric names, got {_same_text(names)}")
    return out


def _same_text(names: Sequence[Label]) -> list[Label]:
    texts = [str(name) for name in names]
    return [name for name, text in zip(names, texts, strict=True) if texts.count(text) > 1][:6]


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
