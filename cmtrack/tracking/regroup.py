"""Functions that regroup past runs without their data, and add the results to the runs."""

from __future__ import annotations

import contextlib
import json
import math
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.comparability import check_classes, of_classes
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import lookup
from cmtrack.grouping import Grouping, Label
from cmtrack.tracking import names
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.contents import build_into
from cmtrack.tracking.load import evaluation_of, plain_reason, rows_file, with_kept_predictions
from cmtrack.tracking.parallel import each
from cmtrack.tracking.runs import TrackedRun, with_clients
from cmtrack.tracking.send import send
from cmtrack.tracking.settings import with_kept_rows

if TYPE_CHECKING:
    from mlflow import MlflowClient

ORIGIN = "regrouped_from"
"""Tag that names the original evaluation's file and marks a regrouping as replaceable."""
FIGURES_UP_TO = 100
"""Maximum number of runs for which ``figures="auto"`` draws figures, which take most time."""


@dataclass(frozen=True)
class RegroupedRun:
    """Result of regrouping a run.

    Attributes
    ----------
    run_id, name : str
    status : "completed", "planned" or "left out"
        "completed" means that the result was written to the run. "planned" means that a dry run
        computed a result that could be written. "left out" means that the run could not be
        regrouped.
    reason : str
        The reason why the run was not regrouped.
    warnings : tuple of str
        Warnings about the numbers under the new grouping, and about files that could not be
        created.
    prefix : str
        Prefix of the new metrics and files.
    before, after : dict of str to float
        Headline metrics under the old grouping and under the new grouping. The metric names do not
        include the prefix.
    already_done : bool
        Whether the run already contained this regrouping. In that case nothing was read or written,
        and ``before`` and ``after`` contain the logged metrics.

    Examples
    --------
    >>> import mlflow
    >>> from cmtrack import Grouping, log_evaluation, regroup_runs
    >>> with mlflow.start_run() as run:
    ...     logged = log_evaluation([0, 1, 2, 2], [0, 1, 2, 1])
    >>> two = Grouping({"low": [0, 1], "high": [2]})
    >>> outcome = regroup_runs([run.info.run_id], two, prefix="two_", dry_run=True)[0]
    >>> outcome.status, outcome.before["multiclass/accuracy"], outcome.after["binary/recall"]
    ('planned', 0.75, 0.5)
    """

    run_id: str
    name: str
    status: str
    reason: str = ""
    warnings: tuple[str, ...] = ()
    prefix: str = ""
    before: dict[str, float] = field(default_factory=dict, repr=False)
    after: dict[str, float] = field(default_factory=dict, repr=False)
    already_done: bool = False


def regroup_runs(
    runs: Any,
    grouping: Grouping,
    *,
    positive: Label | None = None,
    prefix: str | None = None,
    source_prefix: str = "",
    figures: bool | str = "auto",
    force: bool = False,
    dry_run: bool = False,
    progress: Callable[[str, int, int], object] | None = None,
) -> list[RegroupedRun]:
    """Evaluate past runs under another grouping, and log the result to the same runs.

    The new metrics, files and tags are added under a prefix, which you can pass to
    ``compare(prefix=...)`` and ``load_evaluation(prefix=...)``. An earlier regrouping under the
    same prefix is overwritten, and nothing else in the runs changes. Several runs are processed in
    parallel. If the work is interrupted, each run is either completely regrouped or unchanged, and
    a second call regroups the remaining runs.

    Parameters
    ----------
    runs : run references
        References as in :func:`cmtrack.compare`; the runs may be finished.
    grouping : Grouping
    positive : label, optional
        The positive group, if the grouping consists of two groups.
    prefix : str, optional
        The prefix of the new metrics and files; by default the name of the grouping's last step,
        followed by an underscore, such as ``"party_"``.
    source_prefix : str, default ""
        The prefix of the evaluations to regroup.
    figures : bool or "auto", default "auto"
        Whether to draw figures; "auto" draws them for up to 100 runs.
    force : bool, default False
        Whether to regroup runs again if this version of cmtrack has already logged the same
        regrouping of the same evaluation.
    dry_run : bool, default False
        Whether to compute the results without writing anything.
    progress : callable, optional
        A function that is called each time a run is finished, in any order, with (name of the run,
        number of finished runs, total number of runs).

    Returns
    -------
    list of RegroupedRun
        The results, in the order of the given runs. If a run cannot be regrouped, its result gives
        the reason, and all other runs are still regrouped.

    Raises
    ------
    TypeError, ValueError
        If a run does not exist, or if the prefix is invalid or would overwrite another evaluation.
    ConnectionError
        If the tracking server does not answer at the start.

    Notes
    -----
    If a run contains its row-level predictions, nothing is lost, except that the held-out
    calibration scores are missing if the positive group changes. For runs without row-level
    predictions, see :meth:`cmtrack.Evaluation.regroup`. The predictions are not written again,
    because a tag points to their existing file.

    The cost for each run is the time to read its evaluation, to compute the new numbers and
    figures, and to send eleven requests to the store. Several runs are processed at a time.

    Examples
    --------
    >>> import mlflow
    >>> from cmtrack import Grouping, log_evaluation, regroup_runs
    >>> with mlflow.start_run() as run:
    ...     logged = log_evaluation([0, 1, 2, 2], [0, 1, 2, 1])
    >>> two = Grouping({"low": [0, 1], "high": [2]})
    >>> outcome = regroup_runs([run.info.run_id], two, prefix="two_", figures=False)[0]
    >>> outcome.status, mlflow.get_run(run.info.run_id).data.metrics["two_binary/recall"]
    ('completed', 0.5)
    """
    if not isinstance(grouping, Grouping):
        raise TypeError(f"grouping must be a Grouping, got {type(grouping).__name__}")
    if figures not in (True, False, "auto"):
        raise ValueError(f"figures must be True, False or 'auto', got {figures!r}")
    names.check_prefix(source_prefix)
    prefix = default_prefix(grouping) if prefix is None else names.prefix_to_log(prefix)
    _check_apart(prefix, source_prefix)
    chosen = list({run.run_id: (run, client) for run, client in with_clients(runs)}.values())
    draws = len(chosen) <= FIGURES_UP_TO if figures == "auto" else bool(figures)
    job = _Job(grouping, positive, prefix, source_prefix, draws, dry_run)
    tell = progress or (lambda *_: None)

    def regroup(run_and_client: tuple[TrackedRun, MlflowClient]) -> RegroupedRun:
        run, client = run_and_client
        if not force and not dry_run and job.is_done(run, with_figures=figures is True):
            return job.done(run)
        return job.regroup(run, client)

    def report_progress(run_and_client: tuple[TrackedRun, MlflowClient], done: int) -> None:
        if done < len(chosen):
            tell(run_and_client[0].name, done, len(chosen))

    for run, _ in chosen[:1]:
        tell(run.name, 0, len(chosen))
    outcomes = []
    for (run, _), job_of_run in zip(chosen, each(regroup, chosen, report_progress), strict=True):
        try:
            outcome = job_of_run.result()
        except Exception as error:  # errors of any type must not stop the other runs
            reason = plain_reason(error, run)
            outcome = RegroupedRun(run.run_id, run.name, "left out", reason, prefix=prefix)
        outcomes.append(outcome)
    tell("done", len(chosen), len(chosen))
    return outcomes


def default_prefix(grouping: Grouping) -> str:
    """Return the last step's name, with illegal characters replaced and an underscore added.

    Raises ValueError if the name contains no legal characters.
    """
    legal = re.sub(r"[^A-Za-z0-9-]+", "_", grouping.name).strip("_-")
    if not legal:
        raise ValueError(
            f"no prefix can be made from the grouping's name {grouping.name!r}: give prefix="
        )
    return f"{legal}_"


@dataclass(frozen=True)
class _Job:
    grouping: Grouping
    positive: Label | None
    prefix: str
    source_prefix: str
    figures: bool
    dry_run: bool

    def is_done(self, run: TrackedRun, with_figures: bool) -> bool:
        """Return True if the run's tags show that its current evaluation is already regrouped."""
        if {run.status(self.prefix), run.status(self.source_prefix)} != {"completed"}:
            return False
        entries = names.digests(run.tags, self.prefix)
        mark, _, digest = entries.get(names.REGROUPING, "").partition(" ")
        if not mark or digest != entries.get(names.digest_key(names.EVALUATION_FILE)):
            return False  # the prefix is used by another evaluation
        marks = [self._mark(run, figures=True)]
        if not with_figures:
            marks.append(self._mark(run, figures=False))
        return mark in marks

    def done(self, run: TrackedRun) -> RegroupedRun:
        """Return the result for a run that was regrouped before, with its logged metrics."""
        warnings = (names.readable_tag(run.tags, "warnings", self.prefix) or "").splitlines()
        before = _logged(run, self.source_prefix)
        after = _logged(run, self.prefix)
        return replace(self._outcome(run, "completed", warnings, before, after), already_done=True)

    def _outcome(
        self,
        run: TrackedRun,
        status: str,
        warnings: Sequence[str],
        before: dict[str, float],
        after: dict[str, float],
    ) -> RegroupedRun:
        return RegroupedRun(
            run.run_id, run.name, status, "", tuple(warnings), self.prefix, before, after
        )

    def _mark(self, run: TrackedRun, figures: bool) -> str:
        """Return a digest of the source evaluation and the grouping.

        The digest is empty if no digests were logged for the source evaluation.
        """
        entries = names.digests(run.tags, self.source_prefix)
        evaluation = entries.get(names.digest_key(names.EVALUATION_FILE))
        if evaluation is None:
            return ""
        origins = [
            version("cmtrack"),
            self.source_prefix,
            evaluation,
            entries.get(names.digest_key(names.PREDICTIONS_FILE)),
            self.grouping.to_dict(),
            self.positive,
            figures,
        ]
        return digest_of(json.dumps(origins, sort_keys=True, default=repr).encode())

    def regroup(self, run: TrackedRun, client: MlflowClient) -> RegroupedRun:
        """Regroup a run; raise ValueError if the run cannot be regrouped."""
        reason = run.why_incomplete(self.source_prefix) or self._in_the_way(run)
        if reason:
            raise ValueError(reason)
        before, problems = self._load(run, client)
        lacking = check_classes(before.labels, self.grouping)
        after = before.regroup(self.grouping, positive=self.positive)
        status = "planned"
        if not self.dry_run:
            # Without a mark, a later call tries again, because the rows may be readable by then.
            mark = "" if problems else self._mark(run, self.figures)
            problems += self._write(run, client, after, mark, rows=before.rows is not None)
            status = "completed"
        warnings = (*problems, *lacking, *after.warnings)
        return self._outcome(run, status, warnings, _headline(before), _headline(after))

    def _in_the_way(self, run: TrackedRun) -> str:
        if run.status(self.prefix) and names.tag(ORIGIN, self.prefix) not in run.tags:
            return (
                f"it holds an evaluation under the prefix {self.prefix!r} that was not made by "
                "regrouping"
            )
        return ""

    def _load(self, run: TrackedRun, client: MlflowClient) -> tuple[Evaluation, tuple[str, ...]]:
        """Read the evaluation, with its rows if they were stored and can be read."""
        evaluation = evaluation_of(run, client, self.source_prefix)
        evaluation, problem = with_kept_predictions(evaluation, run, client, self.source_prefix)
        problems: tuple[str, ...] = ()
        if problem:
            problems = (f"regrouped without its predictions by row: {problem}",)
        return of_classes(evaluation), problems

    def _write(
        self,
        run: TrackedRun,
        client: MlflowClient,
        evaluation: Evaluation,
        mark: str,
        *,
        rows: bool,
    ) -> tuple[str, ...]:
        entries: dict[str, str | None] = {}
        if rows:
            predictions = names.digest_key(names.PREDICTIONS_FILE)
            entries[names.ROWS_FILE] = rows_file(run, self.source_prefix)
            entries[predictions] = names.digests(run.tags, self.source_prefix).get(predictions)
        # Write this tag first, so that the run can be regrouped again if only a part is sent.
        origin = names.file_name(names.EVALUATION_FILE, self.source_prefix)
        client.set_tag(run.run_id, names.tag(ORIGIN, self.prefix), origin)
        with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
            entry = build_into(
                evaluation,
                Path(scratch) / "entry",
                listed=with_kept_rows(evaluation)[0],
                run_id=run.run_id,
                run_name=run.name,
                prefix=self.prefix,
                figures=self.figures,
            )
            entries[names.REGROUPING] = f"{mark} {entry.digest(names.EVALUATION_FILE)}".strip()
            tags = names.with_digests(entry.tags, self.prefix, entries)
            entry.tags = tags | {names.tag(ORIGIN, self.prefix): origin}
            return entry.problems + send(entry, client).problems


def _check_apart(prefix: str, source_prefix: str) -> None:
    """Raise ValueError if tags or files under the prefix belong to a different evaluation."""
    for other in dict.fromkeys(("", source_prefix)):
        has_same_tags = names.tag("status", prefix) == names.tag("status", other)
        if has_same_tags or names.file_name("", prefix) == names.file_name("", other):
            evaluation = f"the evaluation under {other!r}" if other else "the run's own evaluation"
            raise ValueError(
                f"prefix must be different from {prefix!r}, which would overwrite {evaluation}"
            )


def _logged(run: TrackedRun, prefix: str) -> dict[str, float]:
    """Return an evaluation's logged headline metrics, by name without the prefix."""
    logged = {}
    for name, value in run.metrics.items():
        with contextlib.suppress(KeyError):  # metrics that the script logged itself
            plain_name = name.removeprefix(prefix)
            if name.startswith(prefix) and lookup(plain_name).headline:
                logged[plain_name] = value
    return logged


def _headline(evaluation: Evaluation) -> dict[str, float]:
    """Return the finite headline metrics of an evaluation."""
    return {
        name: value
        for name, value in evaluation.metrics.items()
        if evaluation.catalog.lookup(name).headline and math.isfinite(value)
    }
