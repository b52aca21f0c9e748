"""Repeated runs as a table of models by blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cmtrack.comparison.ranking import Candidate
from cmtrack.comparison.run import Run

KINDS = ("auto", "folds", "seeds", "datasets")
_SOURCES = ("params", "tags", "metrics")
_FOLD = re.compile(r"fold|split|cv", re.IGNORECASE)


@dataclass(frozen=True)
class Blocks:
    """How repeated runs are told apart.

    Attributes
    ----------
    by : str
        What names a block: ``"params.fold"``, ``"tags.dataset"``, or ``"name"``.
    model : str or None
        What names a model; None: all parameters but the block, or the run's name where there are none.
    kind : "auto", "folds", "seeds" or "datasets"
    rope : float or None
    test_train_ratio : float or None
        For folds: rows of a test part over rows of its training part; by default that of as many folds as blocks.
    """

    by: str
    model: str | None = None
    kind: str = "auto"
    rope: float | None = 0.01
    test_train_ratio: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"block_kind must be one of {list(KINDS)}, got {self.kind!r}")
        for what, name in (("block", self.by), ("model", self.model)):
            source, _, rest = (name or "name").partition(".")
            if name not in (None, "name") and not (source in _SOURCES and rest):
                raise ValueError(f"{what} must read 'params.…', 'tags.…', 'metrics.…' or 'name', got {name!r}")

    def kind_of(self, candidates: Sequence[Candidate]) -> str:
        """The kind, found from the data where it was not said."""
        if self.kind != "auto":
            return self.kind
        if len({candidate.evaluation.labels_digest for candidate in candidates}) == 1:
            return "seeds"
        return "folds" if _FOLD.search(self.by) else "datasets"


def read_key(run: Run, by: str) -> str | None:
    """What a run has under ``"params.fold"``, ``"tags.x"``, ``"metrics.x"`` or ``"name"``."""
    if by == "name":
        return run.name
    source, _, rest = by.partition(".")
    found = getattr(run, source).get(rest)
    return None if found is None else str(found)


def names_of_models(candidates: Sequence[Candidate], blocks: Blocks) -> list[str]:
    """The model of each run; runs without a block have no say in what tells the models apart."""
    blocked = [read_key(candidate.run, blocks.by) is not None for candidate in candidates]
    if blocks.model is not None:
        names = [read_key(candidate.run, blocks.model) for candidate in candidates]
        lacking = [c.name for c, name, own in zip(candidates, names, blocked, strict=True) if own and name is None]
        if lacking:
            raise ValueError(f"{len(lacking)} runs have no {blocks.model}, among them {lacking[:3]}")
        return [str(name) for name in names]
    own = blocks.by.removeprefix("params.")
    params = [{k: v for k, v in c.run.params.items() if k != own} for c in candidates]
    ranked = [p for p, has_block in zip(params, blocked, strict=True) if has_block]
    varying = [k for k in dict.fromkeys(k for p in ranked for k in p) if len({p.get(k) for p in ranked}) > 1]
    if not varying:
        return [candidate.run.tags.get("mlflow.runName", candidate.name) for candidate in candidates]
    if len(varying) == 1:
        return [str(p.get(varying[0], "–")) for p in params]
    return [", ".join(f"{k}={p[k]}" for k in varying if k in p) for p in params]


def by_block(
    candidates: Sequence[Candidate], names: Sequence[str], blocks: Blocks
) -> tuple[dict[tuple[str, str], Candidate], tuple[str, ...]]:
    """The newest run of each model in each block."""
    table: dict[tuple[str, str], Candidate] = {}
    repeats, lacking = 0, []
    for name, candidate in zip(names, candidates, strict=True):
        block = read_key(candidate.run, blocks.by)
        if block is None:
            lacking.append(candidate.name)
            continue
        known = table.get((name, block))
        repeats += known is not None
        if known is None or known.run.start_time <= candidate.run.start_time:
            table[name, block] = candidate
    notes = []
    if lacking:
        notes.append(f"{len(lacking)} runs have no {blocks.by} and are left out, among them {lacking[0]}.")
    if repeats:
        notes.append(f"{repeats} older runs of a model in a block that was run again are left out.")
    return table, tuple(notes)


def natural_order(text: str) -> tuple[bool, float, str]:
    """Numbers by their value, before texts."""
    try:
        return False, float(text), text
    except ValueError:
        return True, 0.0, text
