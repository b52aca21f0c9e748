"""``compare``: many runs, one decision."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from cmtrack import untrusted
from cmtrack.comparison.blocks import rank_models
from cmtrack.comparison.cohorts import apart, decides, read_by, split
from cmtrack.comparison.criterion import Criterion, RankBy
from cmtrack.comparison.gates import Gate
from cmtrack.comparison.ranking import Candidate, rank
from cmtrack.comparison.repetitions import Blocks
from cmtrack.comparison.result import Comparison, LeftOut, ModelComparison, RunComparison
from cmtrack.comparison.tie_breakers import TieBreaker, check_there
from cmtrack.grouping import Grouping, Label
from cmtrack.metrics.catalog import known_names
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.own import RESERVED, own_metrics
from cmtrack.tracking.fetching import Progress, Wanted
from cmtrack.tracking.load import evaluation_of
from cmtrack.tracking.names import check_prefix
from cmtrack.tracking.reading import Reader
from cmtrack.tracking.run_sources import Source, from_memory, from_stores
from cmtrack.tracking.runs import TrackedRun, find
from cmtrack.tracking.shortlist import Shortlist, shorten

_OWN_NAME = re.compile(r"(?<![\w.])(?!params\.|tags\.|metrics\.)\w[\w-]*/\w[\w-]*")
_MOST_ASKED = 20


def compare(
    runs: Any = None,
    *,
    experiment_names: Sequence[str] | None = None,
    filter_string: str = "",
    rank_by: RankBy | None = None,
    require: str | Sequence[str] = (),
    tie_breakers: str | Sequence[str] = (),
    margin: float | None = None,
    confidence_level: float = 0.95,
    grouping: Grouping | None = None,
    positive: Label | None = None,
    against: Any = None,
    block: str | None = None,
    model: str | None = None,
    block_kind: str = "auto",
    rope: float = 0.01,
    test_train_ratio: float | None = None,
    prefix: str = "",
    limit: int = 50,
    max_runs: int | None = 5000,
    tracking_uri: str | Sequence[str] | None = None,
    seed: int = 0,
    extra_metrics: Sequence[Metric] = (),
    progress: Progress | None = None,
) -> Comparison:
    """Rank evaluated runs, and say which differences are real.

    Parameters
    ----------
    runs : str, object, sequence of these, frame or mapping, optional
        Run ids, ``runs:/<id>``, ids of logged models, model URIs (``models:/name/3``, ``models:/name@champion``),
        MLflow's run and model entities, or the frame of ``mlflow.search_runs``; or ``{name: Evaluation}`` for
        evaluations that are in no run. By default the runs of the experiments, or of the active experiment.
    experiment_names : sequence of str, optional
    filter_string : str, default ""
        MLflow's filter, such as ``"params.model = 'forest' and tags.stage = 'final'"``; the store applies it.
    rank_by : str, sequence of str or mapping, optional
        A metric's name (its direction is known); several names for a Pareto front; ``{name: weight}`` for a weighted
        sum in units of the metrics' standard errors. By default the Matthews correlation of the positive group, or
        of all classes where there is none; of sets of codes the micro F1.
    require : str or sequence of str
        Gates such as ``"class/3/recall >= 0.6"``, ``"prevalence/bias.abs <= 0.01"`` or
        ``"binary/roc_auc.low > 0.8"`` (an end of the interval); ``.difference`` is the one from ``against``. A run
        that fails one is listed, and not ranked.
    tie_breakers : str or sequence of str
        What chooses among the tied runs within a margin of the leader: a metric, ``"params.depth"``,
        ``"metrics.seconds asc"``, ``"tags.size desc"``. Without ``desc`` the least wins; metrics of the registry know
        their direction.
    margin : float, optional
        What a tie-breaker may give up against the leader, in units of the metric. By default the paired standard
        error of each run's difference (the one-standard-error rule of Breiman, Friedman, Olshen and Stone 1984). With
        a number, those runs that are shown not to be worse by more than it: the lower end of their simultaneous
        interval is at least ``-margin`` (non-inferiority).
    confidence_level : float, default 0.95
    grouping : Grouping, optional
        Re-reduce every run under this grouping. Without it, runs of different groupings get rankings of their own
        where ``rank_by``, ``require`` or ``tie_breakers`` read a metric that depends on the grouping.
    positive : label, optional
        The positive group of ``grouping``.
    against : run reference, optional
        The baseline of ``.difference`` gates. It is ranked with the others.
    block : str, optional
        For repeated runs: what tells the repetitions apart, ``"params.fold"``, ``"params.seed"``, ``"tags.dataset"``.
    model : str, optional
        For repeated runs: what names the model, such as ``"params.model"``; by default all parameters but the block.
    block_kind : "auto", "folds", "seeds" or "datasets"
        What the blocks are; "auto": seeds where all blocks hold the same test rows, folds where the name of
        ``block`` says so, else data sets.
    rope : float, default 0.01
        For repeated runs: differences up to this size are practically none.
    test_train_ratio : float, optional
        For folds: rows of a test part over rows of its training part; by default 1 / (folds - 1).
    prefix : str, default ""
        As the evaluations were logged.
    limit : int, default 50
        At most so many runs of one data set are looked at closely: the best by their logged value.
    max_runs : int or None, default 5000
        At most so many runs are listed from each store, the best first.
    tracking_uri : str or sequence of str, optional
        One store or several; by default MLflow's own choice.
    seed : int, default 0
        Of the draws.
    extra_metrics : sequence of Metric, optional
        Metrics of your own, computed for every run, also for those that were logged without them. Of a metric that the
        runs were logged with, the numbers are known without it, differences by row and regrouped ones are not.
    progress : callable, optional
        Called with (what is being done, done, in all; 0 where that is not known).

    Returns
    -------
    RunComparison or ModelComparison
        The second where ``block`` is given.

    Raises
    ------
    ValueError, TypeError
        If a run or an experiment does not exist, nothing is evaluated, no run has a metric, or a gate does not parse.
    ConnectionError
        If a tracking server does not answer.

    Notes
    -----
    Differences use the rows' predictions where these were kept: the models were judged on the same rows, and what
    is common to them cancels. Ties are called ties: the *tied set* is the model confidence set (Hansen, Lunde and
    Nason 2011), which holds the best run with at least the confidence level. Many runs invite finding a winner by
    chance; p-values and intervals hold for all pairs of runs at once.
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1, got {confidence_level!r}")
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit!r}")
    if positive is not None and grouping is None:
        raise ValueError("positive goes with grouping: without one, runs keep the positive group they were logged with")
    if margin is not None and not 0 <= margin < math.inf:
        raise ValueError(f"margin must be a finite number that is not negative, got {margin!r}")
    how = {name: value for name, value in locals().items() if name not in ("progress", "extra_metrics")}
    own = own_metrics(extra_metrics)
    how["tracking_uri"] = _shown(tracking_uri)
    check_prefix(prefix)
    tell = progress or (lambda *_: None)
    uris = [tracking_uri] if tracking_uri is None or isinstance(tracking_uri, str) else list(tracking_uri)
    listing = partial(
        from_stores, runs, experiment_names, filter_string, uris, prefix=prefix, max_runs=max_runs, progress=tell
    )
    if not isinstance(runs, Mapping) and _not_known(rank_by, require, tie_breakers):
        _read_declarations(listing(order=None), prefix)
    gates = tuple(map(Gate.parse, [require] if isinstance(require, str) else require))
    rules = tuple(map(TieBreaker.parse, [tie_breakers] if isinstance(tie_breakers, str) else tie_breakers))
    if against is None and any(gate.difference for gate in gates):
        raise ValueError("a .difference gate needs against=, the run to take the difference from")
    asked = None if rank_by is None else Criterion.of(rank_by)
    blocks = None if block is None else Blocks(block, model, block_kind, rope, test_train_ratio)
    source = from_memory(runs) if isinstance(runs, Mapping) else listing(order=asked)
    prefix = next((known for run in source.runs if (known := run.logged_prefix(prefix)) != prefix), prefix)
    reader = Reader(source, Wanted(prefix, grouping, positive, confidence_level, extra_metrics=own), gates, tell)
    complete = [run for run in source.runs if run.status(prefix) == "completed"]
    if not complete:
        raise ValueError(_nothing(source, prefix))
    check_there(rules, complete)
    baseline = None if against is None else _baseline(source, against)
    criterion = asked or reader.default_criterion(complete)
    beside = read_by(criterion, gates, rules)
    if blocks is None:
        listed = shorten(source.runs, criterion, gates, limit=limit, prefix=prefix, grouping=grouping, read=beside)
        listed = reader.narrowed(listed, criterion, limit, beside)
    else:  # gates are of a model's mean over its blocks
        listed = shorten(source.runs, criterion, (), limit=len(source.runs), prefix=prefix, grouping=grouping)
    read = reader.read(listed, criterion, baseline)
    notes = [*read.notes, *_notes(source, listed, max_runs, limit), *passed_over_notes(read.candidates, criterion)]
    tell("ranking", 0, 0)
    both: dict[str, Any] = {
        "criterion": criterion,
        "gates": gates,
        "confidence_level": confidence_level,
        "left_out": (*read.left_out, *(LeftOut(run, reason) for run, reason in listed.incomplete)),
        "passed_over": listed.passed_over,
        "baseline": read.baseline,
        "how": how,
        "reads": beside,
    }
    if blocks is not None:
        repeated, stopped, more = rank_models(
            read.candidates,
            criterion,
            blocks,
            gates=gates,
            tie_breakers=rules,
            confidence_level=confidence_level,
            margin=margin,
        )
        ranked = () if repeated is None else (repeated,)
        return ModelComparison(rankings=ranked, failed=stopped, notes=(*notes, *more), **both)
    parts = split(read.passed, beside)
    decided = decides(parts)
    rankings = tuple(
        rank(
            part,
            criterion,
            tie_breakers=rules,
            confidence_level=confidence_level,
            seed=seed,
            margin=margin,
            choose=decided and place == 0,
        )
        for place, part in enumerate(parts)
    )
    notes += apart(rankings, beside)
    return RunComparison(rankings=rankings, failed=(*listed.stopped, *read.failed), notes=tuple(notes), **both)


def _not_known(*texts: Any) -> bool:
    """Whether texts name a metric of a user's own that this process has not met."""
    words: list[str] = []
    for given in texts:
        words += [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    names = {name for word in words if isinstance(word, str) for name in _OWN_NAME.findall(word)}
    return any(name.split("/")[0] not in RESERVED and name not in known_names() for name in names)


def _read_declarations(source: Source, prefix: str) -> None:
    """Read evaluations until one brings metrics of its user's own; reading makes their names known."""
    runs = [run for run in source.runs if run.status(run.logged_prefix(prefix)) == "completed"]
    for run in runs[:_MOST_ASKED]:
        try:
            evaluation = evaluation_of(run, source.clients[run.tracking_uri], run.logged_prefix(prefix))
        except ValueError:
            continue
        if getattr(evaluation, "extra_metrics", ()):
            return


def _baseline(source: Source, against: Any) -> TrackedRun:
    """The run among those of the source, or one more of its stores.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not source.clients:
        found = [run for run in source.runs if run.name == against]
        if not found:
            raise ValueError(f"against must be one of {[run.name for run in source.runs][:10]}, got {against!r}")
        return found[0]
    run = find(against, list(source.clients.values()))
    named = [known for known in source.runs if known.run_id == run.run_id]
    return named[0] if named else run


def _shown(tracking_uri: str | Sequence[str] | None) -> str | list[str] | None:
    """Tracking URIs as a review may show them."""
    if tracking_uri is None or isinstance(tracking_uri, str):
        return None if tracking_uri is None else untrusted.without_credentials(tracking_uri)
    return [untrusted.without_credentials(str(uri)) for uri in tracking_uri]


def _nothing(source: Source, prefix: str) -> str:
    """Why there is nothing to compare."""
    under = f" under the prefix {prefix!r}" if prefix else ""
    others = sorted({known for run in source.runs for known in run.prefixes} - {prefix})
    named = [repr(known) for known in others if known]
    if not source.runs:
        return "no run was found: the experiments are empty, or the filter lets none through"
    return f"none of the {len(source.runs)} runs holds a complete evaluation{under}: " + (
        f"there are evaluations {'without a prefix' if not named else f'under {_and_more(named)}'}"
        if others
        else "cmtrack.log_evaluation in the training script leaves one"
    )


def _and_more(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more prefixes" if len(names) > 6 else "")


def passed_over_notes(candidates: Sequence[Candidate], criterion: Criterion) -> list[str]:
    """What is said where runs are ranked by an average that leaves out classes that they never predict."""
    notes = []
    for metric in criterion.metrics:
        left_out = [(c.run.name, len(c.evaluation.classes_passed_over(metric))) for c in candidates]
        left_out = [(name, number) for name, number in left_out if number]
        if not left_out:
            continue
        shown = ", ".join(f"{number} of “{name}”" for name, number in left_out[:5])
        more = f" and of {len(left_out) - 5} more runs" if len(left_out) > 5 else ""
        zero = f"{metric}_zero"
        counted = f"; {zero} counts them as 0" if any(zero in c.evaluation.metrics for c in candidates) else ""
        notes.append(f"Ranked by {metric}, which passes over never-predicted classes: {shown}{more}{counted}.")
    return notes


def _notes(source: Source, listed: Shortlist, max_runs: int | None, limit: int) -> list[str]:
    notes = []
    if source.truncated:
        notes.append(f"The store holds more runs than the {max_runs} that were listed (max_runs).")
    if listed.passed_over:
        notes.append(
            f"{len(listed.passed_over)} more complete runs have a worse logged value than the best {limit} of their "
            "data and were not looked at closely (limit)."
        )
    return notes
