"""Runs before they are ranked: what a store lists, evaluations and gates, and runs left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.record import Record
from cmtrack.evaluation.gates import GateResult


@dataclass(frozen=True, eq=False)
class Run:
    """One run, without its artifacts, or a name for an evaluation in memory.

    ``tracking_uri``: the store that it is in; it may hold a password, and is not shown.
    ``metrics``: the logged ones, last values.
    ``start_time``, ``end_time``: milliseconds since 1970; 0 where the run has none.
    ``model_ids``: logged models that the run made, or that it stands for.
    ``model_size``: bytes of these models, where that was logged; else 0.
    ``datasets``: name and digest of the run's logged datasets.
    """

    run_id: str
    name: str
    experiment_id: str = ""
    tracking_uri: str = field(default="", repr=False)
    metrics: dict[str, float] = field(default_factory=dict, repr=False)
    params: dict[str, str] = field(default_factory=dict, repr=False)
    tags: dict[str, str] = field(default_factory=dict, repr=False)
    artifact_uri: str = field(default="", repr=False)
    start_time: int = 0
    end_time: int = 0
    model_ids: tuple[str, ...] = ()
    model_size: int = 0
    datasets: tuple[tuple[str, str], ...] = ()

    @property
    def parent_run_id(self) -> str | None:
        """The run that this one is nested in."""
        return self.tags.get("mlflow.parentRunId")

    def read(self, name: str) -> Any:
        """The run's value under a name of :func:`source_of`; None without."""
        source, _, rest = name.partition(".")
        return getattr(self, source).get(rest)


def source_of(name: str) -> tuple[str, str] | None:
    """Return source and key of a name such as ``"params.depth"``; None of a metric's name.

    Sources are ``params``, ``metrics`` and ``tags``.
    """
    source, _, key = name.partition(".")
    return (source, key) if source in ("params", "metrics", "tags") and key else None


def run_id_of(run: Any) -> str | None:
    """The id of a run, of MLflow's or this module's; None of anything else."""
    ids = (getattr(holder, "run_id", None) for holder in (run, getattr(run, "info", None)))
    return next((run_id for run_id in ids if isinstance(run_id, str) and run_id), None)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A run that may be ranked."""

    run: Run
    evaluation: BaseEvaluation
    gates: tuple[GateResult, ...] = ()

    @property
    def name(self) -> str:
        """The run's name, made unique in a comparison."""
        return self.run.name

    @property
    def run_id(self) -> str:
        """The run's id; the name of an evaluation that is in no run."""
        return self.run.run_id

    @property
    def passed(self) -> bool:
        """True if it passes all gates."""
        return all(result.passed for result in self.gates)


@dataclass(frozen=True)
class StoppedRun:
    """A run, or a model of repeated runs, that a gate stopped.

    ``gates``: those that it fails are among them; a run that was stopped by its logged values has
    no others.
    """

    run: Run
    gates: tuple[GateResult, ...]

    @property
    def name(self) -> str:
        """The run's name, made unique in a comparison."""
        return self.run.name

    @property
    def run_id(self) -> str:
        """The run's id; empty for a model."""
        return self.run.run_id


@dataclass(frozen=True)
class LeftOut:
    """A run that is not ranked, or is last without a number.

    Attributes
    ----------
    run : Run
    reason : str
    last : bool
        Whether it is behind all ranked runs: its loss is infinite.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> good = evaluate([0, 1] * 50, [0, 1] * 50)
    >>> constant = evaluate([0, 1] * 50, [0] * 100)
    >>> runs = {"good": good, "constant": constant}
    >>> left = compare(runs, rank_by="binary/precision").left_out[0]
    >>> left.run.name, left.reason.partition(";")[0]
    ('constant', 'binary/precision is undefined: it predicts only “0”')
    """

    run: Run
    reason: str
    last: bool = False


@dataclass(frozen=True, eq=False)
class Listing:
    """Runs to compare, and what is known of runs before an evaluation is judged.

    ``runs``: to be judged, under distinct names; the baseline is among them.
    ``stopped``: fail a gate by their logged value.
    ``passed_over``: behind the short list's end by their logged value.
    ``incomplete``, ``unreadable``: without a complete evaluation, and those whose evaluation could
    not be read.
    ``notes``: what a reader should know about the listing.
    ``how``: the arguments, to repeat it.
    ``record``: when and by whom it is made; by default now, by the user of this process.
    ``looks``: runs that the store is known to hold on the same rows, and reviews that contain
    these.
    """

    runs: tuple[Run, ...]
    stopped: tuple[StoppedRun, ...] = ()
    passed_over: tuple[Run, ...] = ()
    incomplete: tuple[LeftOut, ...] = ()
    unreadable: tuple[LeftOut, ...] = ()
    baseline: Run | None = None
    notes: tuple[str, ...] = ()
    how: Mapping[str, Any] = field(default_factory=dict)
    record: Record | None = None
    looks: tuple[int, int] = (0, 0)
