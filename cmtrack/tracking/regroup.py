"""Past runs under another grouping: new metrics and files beside the old ones, without the data or the models."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.evaluation import Evaluation
from cmtrack.grouping import Grouping, Label
from cmtrack.tracking import names
from cmtrack.tracking.load import evaluation_of, plain_reason, rows_file, with_kept_predictions
from cmtrack.tracking.package import build_into
from cmtrack.tracking.runs import TrackedRun, as_references, client_for, find
from cmtrack.tracking.send import send

if TYPE_CHECKING:
    from mlflow import MlflowClient

ORIGIN = "regrouped_from"
"""Tag that names the evaluation which was regrouped: what it marks may be written anew."""


@dataclass(frozen=True)
class RegroupedRun:
    """What became of a run.

    Attributes
    ----------
    run_id, name : str
    status : "completed", "planned" or "left out"
        In the run; to be written, in a dry run; nothing was written.
    reason : str
        Why it is left out.
    warnings : tuple of str
        When not to trust a number of the new grouping, and what could not be made.
    prefix : str
        Of the new metrics and files.
    before, after : dict of str to float
        Headline metrics under the former and the new grouping, by their plain names.
    """

    run_id: str
    name: str
    status: str
    reason: str = ""
    warnings: tuple[str, ...] = ()
    prefix: str = ""
    before: dict[str, float] = field(default_factory=dict, repr=False)
    after: dict[str, float] = field(default_factory=dict, repr=False)


def regroup_runs(
    runs: Any,
    grouping: Grouping,
    *,
    positive: Label | None = None,
    prefix: str | None = None,
    source_prefix: str = "",
    dry_run: bool = False,
    progress: Callable[[str, int, int], object] | None = None,
) -> list[RegroupedRun]:
    """Reduce past runs anew under a grouping, and log the result into the same runs under a prefix.

    What the runs hold stays as it is; the new metrics, files and tags stand beside it, and
    ``compare(prefix=...)`` and ``load_evaluation(prefix=...)`` find them. A second time overwrites the first.

    Parameters
    ----------
    runs : run references
        As :func:`cmtrack.compare` takes them; finished runs, too.
    grouping : Grouping
    positive : label, optional
        The positive group of two.
    prefix : str, optional
        By default the name of the grouping's last step and an underscore, such as ``"party_"``.
    source_prefix : str, default ""
        As the evaluations to start from were logged.
    dry_run : bool, default False
        Only compute: nothing is written.
    progress : callable, optional
        Called with (the run's name, runs done, runs in all).

    Returns
    -------
    list of RegroupedRun
        In the order given. A run that cannot be regrouped is left out with the reason; it stops no other.

    Raises
    ------
    TypeError, ValueError
        If a run does not exist, or the prefix is not legal or would touch what is there.
    ConnectionError
        If the tracking server does not answer at the start.

    Notes
    -----
    Where the rows' predictions were kept, nothing is lost but the held-out calibration scores of another positive
    group; else see :meth:`cmtrack.Evaluation.regroup`. Predictions are not written again: a tag points to the file.
    """
    if not isinstance(grouping, Grouping):
        raise TypeError(f"grouping must be a Grouping, got {type(grouping).__name__}")
    names.check_prefix(source_prefix)
    prefix = default_prefix(grouping) if prefix is None else names.check_prefix(prefix)
    _check_apart(prefix, source_prefix)
    clients: dict[str, MlflowClient] = {}

    def client_of(run: Any) -> MlflowClient:
        uri = run.tracking_uri if isinstance(run, TrackedRun) else ""
        if uri not in clients:
            clients[uri] = client_for(uri or None)
        return clients[uri]

    found: dict[str, tuple[TrackedRun, MlflowClient]] = {}
    for reference in as_references(runs):
        client = client_of(reference)
        run = find(reference, [client])
        found.setdefault(run.run_id, (run, client))
    job = _Job(grouping, positive, prefix, source_prefix, dry_run)
    tell = progress or (lambda *_: None)
    out = []
    for done, (run, client) in enumerate(found.values()):
        tell(run.name, done, len(found))
        try:
            out.append(job.regroup(run, client))
        except Exception as error:  # of whatever kind: the other runs are none the worse for it
            out.append(RegroupedRun(run.run_id, run.name, "left out", plain_reason(error, run), prefix=prefix))
    tell("done", len(found), len(found))
    return out


def default_prefix(grouping: Grouping) -> str:
    """The name of the last step, made legal, and an underscore.

    Raises
    ------
    ValueError
        If nothing of the name is legal.
    """
    legal = re.sub(r"[^A-Za-z0-9-]+", "_", grouping.name).strip("_-")
    if not legal:
        raise ValueError(f"no prefix can be made from the grouping's name {grouping.name!r}: give prefix=")
    return f"{legal}_"


@dataclass(frozen=True)
class _Job:
    grouping: Grouping
    positive: Label | None
    prefix: str
    source_prefix: str
    dry_run: bool

    def regroup(self, run: TrackedRun, client: MlflowClient) -> RegroupedRun:
        """Regroup one run; an error is a reason to leave it out."""
        reason = run.why_incomplete(self.source_prefix) or self._in_the_way(run)
        if reason:
            raise ValueError(reason)
        before, problems = self._load(run, client)
        problems += check_classes(before.labels, self.grouping)
        after = before.regroup(self.grouping, positive=self.positive)
        if not self.dry_run:
            problems += self._write(run, client, after, rows=before.rows is not None)
        return RegroupedRun(
            run.run_id,
            run.name,
            "planned" if self.dry_run else "completed",
            warnings=(*problems, *after.warnings),
            prefix=self.prefix,
            before=_headline(before),
            after=_headline(after),
        )

    def _in_the_way(self, run: TrackedRun) -> str:
        if run.status(self.prefix) and names.tag(ORIGIN, self.prefix) not in run.tags:
            return f"it holds an evaluation under the prefix {self.prefix!r} that was not made by regrouping"
        return ""

    def _load(self, run: TrackedRun, client: MlflowClient) -> tuple[Evaluation, tuple[str, ...]]:
        """The evaluation with its rows, where they were kept and are whole."""
        evaluation = evaluation_of(run, client, self.source_prefix)
        evaluation, problem = with_kept_predictions(evaluation, run, client, self.source_prefix)
        return evaluation, (f"regrouped without its predictions by row: {problem}",) if problem else ()

    def _write(self, run: TrackedRun, client: MlflowClient, evaluation: Evaluation, *, rows: bool) -> tuple[str, ...]:
        tags = {}
        if rows:
            tags[names.tag(names.ROWS_FILE, self.prefix)] = rows_file(run, self.source_prefix)
            digest = run.tags.get(names.digest_tag(names.PREDICTIONS_FILE, self.source_prefix))
            if digest is not None:
                tags[names.digest_tag(names.PREDICTIONS_FILE, self.prefix)] = digest
        # first of all, so that a run of which only a part arrives can be regrouped again
        origin = names.file_name(names.EVALUATION_FILE, self.source_prefix)
        client.set_tag(run.run_id, names.tag(ORIGIN, self.prefix), origin)
        with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
            package = build_into(evaluation, Path(scratch) / "package", run_id=run.run_id, prefix=self.prefix)
            package = replace(package, tags=package.tags | tags)
            return package.problems + send(package, client).problems


def _check_apart(prefix: str, source_prefix: str) -> None:
    """Refuse a prefix whose tags or files are those of another evaluation."""
    for other in dict.fromkeys(("", source_prefix)):
        alike = names.tag("status", prefix) == names.tag("status", other)
        if alike or names.file_name("", prefix) == names.file_name("", other):
            what = f"the evaluation under {other!r}" if other else "the run's own evaluation"
            raise ValueError(f"prefix must be another one, got {prefix!r}: it would overwrite {what}")


def check_classes(labels: Sequence[Label], grouping: Grouping) -> tuple[str, ...]:
    """What a reader should know where the evaluation has not all the classes that the grouping names.

    Raises
    ------
    ValueError
        If a group has none of the evaluation's classes, or one of these stands in no group.
    """
    for step in grouping.compose(labels):
        empty = [group for place, group in enumerate(step.labels) if place not in step.group_of_class]
        if empty:
            known = ", ".join(map(str, labels[:10]))
            raise ValueError(f"it has no class of the group {str(empty[0])!r}: its classes are {known}")
    lacking = [label for members in grouping.steps[0].groups.values() for label in members if label not in labels]
    return (f"it lacks the classes {', '.join(map(str, lacking[:10]))} of the grouping",) if lacking else ()


def _headline(evaluation: Evaluation) -> dict[str, float]:
    chosen = names.chosen_metrics(evaluation, "headline")
    return {name: value for name, value in chosen.items() if math.isfinite(value)}
