"""Runs before they are ranked: listed runs, candidates with gate results, and excluded runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.record import Record
from cmtrack.evaluation.gates import GateResult
from cmtrack.names import quoted
from cmtrack.untrusted import printable


@dataclass(frozen=True, eq=False)
class Run:
    """A run without its artifacts, or a placeholder for a run whose evaluation is in memory.

    ``tracking_uri``: store of the run. The URI may contain a password and is never shown.
    ``metrics``: last logged value of each metric.
    ``start_time``, ``end_time``: milliseconds since 1970; 0 if the time is unknown.
    ``model_ids``: ids of the logged models that the run created or represents.
    ``model_size``: total size of the logged models in bytes; 0 if it was not logged.
    ``datasets``: name and digest of each logged data set.
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

    def __repr__(self) -> str:
        return printable(f"{type(self).__name__}({quoted(self.name)}, {self.run_id!r})")

    @property
    def parent_run_id(self) -> str | None:
        """Id of the parent run, if this run is nested."""
        return self.tags.get("mlflow.parentRunId")

    def read(self, name: str) -> Any:
        """Return the run's value for a name such as ``"params.depth"``; None if there is none."""
        source, _, rest = name.partition(".")
        return getattr(self, source).get(rest)


def source_of(name: str) -> tuple[str, str] | None:
    """Split a name such as ``"params.depth"`` into source and key; None for a metric's name.

    Sources are ``params``, ``metrics`` and ``tags``.
    """
    source, _, key = name.partition(".")
    return (source, key) if source in ("params", "metrics", "tags") and key else None


def run_id_of(run: Any) -> str | None:
    """Return the id of an MLflow run or of a :class:`Run`; None for any other object."""
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
        """The run's name, changed if necessary so that it is unique in a comparison."""
        return self.run.name

    @property
    def run_id(self) -> str:
        """The run's id; for an evaluation without a run, its name."""
        return self.run.run_id

    @property
    def passed(self) -> bool:
        """True if the run passes all gates."""
        return all(result.passed for result in self.gates)


@dataclass(frozen=True)
class StoppedRun:
    """A run, or a model of repeated runs, that a gate stopped.

    ``gates``: gate results. If logged values stopped the run, only the failed gates are included.
    """

    run: Run
    gates: tuple[GateResult, ...]

    @property
    def name(self) -> str:
        """The run's name, changed if necessary so that it is unique in a comparison."""
        return self.run.name

    @property
    def run_id(self) -> str:
        """The run's id; empty for a model."""
        return self.run.run_id


@dataclass(frozen=True)
class LeftOut:
    """A run that is not ranked, or that is listed last without a rank.

    Attributes
    ----------
    run : Run
    reason : str
    last : bool
        Whether the run is worse than all ranked runs, because its loss is infinite.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> good = evaluate([0, 1] * 50, [0, 1] * 50)
    >>> constant = evaluate([0, 1] * 50, [0] * 100)
    >>> runs = {"good": good, "constant": constant}
    >>> left = compare(runs, rank_by="binary/precision").left_out[0]
    >>> left.run.name, left.reason.partition(";")[0]
    ('constant', 'binary/precision is undefined: the run predicts only “0”')
    """

    run: Run
    reason: str
    last: bool = False

    def __repr__(self) -> str:
        return printable(f"LeftOut({quoted(self.run.name)}: {self.reason})")


@dataclass(frozen=True, eq=False)
class Listing:
    """Runs to compare, and runs that were excluded before their evaluations were compared.

    ``runs``: runs to compare, with distinct names, including the baseline.
    ``stopped``: runs that fail a gate according to their logged values.
    ``passed_over``: runs that were not read, because their logged value is not among the best.
    ``incomplete``, ``unreadable``: runs without a complete evaluation, and runs whose evaluation
    could not be read.
    ``notes``: notes for readers about the listing.
    ``how``: arguments with which the comparison can be repeated.
    ``record``: time and author of the comparison; by default, the current time and the user of this
    process.
    ``looks``: known number of runs in the store that were evaluated on the same rows, and known
    number of reviews that include these runs.
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
