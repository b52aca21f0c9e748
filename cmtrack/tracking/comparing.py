"""The function ``compare``, which ranks runs from tracking stores or evaluations in memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.compare import (
    NO_RUN,
    CompareOptions,
    NothingFound,
    Progress,
    compare_evaluations,
    compare_runs,
    criterion_of,
    default_criterion,
    rules_of,
)
from cmtrack.comparison.criterion import Criterion, read_by
from cmtrack.comparison.record import Record
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.run import LeftOut, Run
from cmtrack.comparison.spec import CompareArguments, several, takes_options
from cmtrack.comparison.tie_breakers import check_there
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.evaluation.compute import SECTION_NAMES
from cmtrack.metrics.catalog import RESERVED, Catalog
from cmtrack.tracking import cache, mlflow_inside
from cmtrack.tracking.listed import Listed, LoggedValues, list_runs, shortlist
from cmtrack.tracking.load import evaluation_of, plain_reason, with_kept_predictions
from cmtrack.tracking.names import check_prefix, readable_tag, tag, under_prefix
from cmtrack.tracking.parallel import each
from cmtrack.tracking.runs import TrackedRun, find, model_size, search, shown_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient

_CUSTOM_NAME = re.compile(r"(?<![\w.])(?!params\.|tags\.|metrics\.)\w[\w-]*/\w[\w-]*")
"""Matches a metric's name in a gate or criterion, but not a run's parameter, tag or metric."""
_MOST_ASKED = 20
"""Maximum number of evaluations to read when looking for the declaration of a custom metric."""
_MOST_LOOKS = 500
"""Maximum number of runs to list when counting the runs evaluated on the same rows."""
_MOST_NAMED = 6
"""Maximum number of other evaluations whose prefixes an error message lists."""


@takes_options
def compare(
    runs: Any = None,
    *,
    progress: Progress | None = None,
    **options: Unpack[CompareArguments],
) -> Comparison:
    """Rank evaluated runs, and report which runs may be the best.

    Parameters
    ----------
    runs : str, object, sequence of these, frame or mapping, optional
        Run ids or at least their first 8 characters, unique run names, ``runs:/<id>``, ids of
        logged models, model URIs (``models:/name/3``, ``models:/name@champion``), MLflow's run and
        model entities, or the frame that ``mlflow.search_runs`` returns. For evaluations that are
        not in a run, give ``{name: Evaluation}``. By default, all runs in the given experiments are
        compared. If no experiment is given either, the runs in the active experiment are compared.
    progress : callable, optional
        Function that is called with (current activity, number of finished items, total number of
        items). The total is 0 if it is not known.
    **options
        The options of :class:`cmtrack.comparison.spec.CompareSpec`.

    Returns
    -------
    RunComparison or ModelComparison
        A ModelComparison if ``block`` is given.

    Raises
    ------
    ValueError, TypeError
        If a run or an experiment does not exist, no run contains an evaluation, no run contains a
        requested metric, or a gate cannot be parsed.
    ConnectionError
        If a tracking server does not answer.

    Notes
    -----
    If the runs stored their row-level predictions, differences are paired: two models are compared
    on the same rows, so errors that both models make cancel in the difference. The *tied set*
    contains all runs that may be the best, according to multiple comparisons with the best (Hsu
    1984, 1996). The probability that it includes the truly best run is at least the confidence
    level. If many runs are compared, a run may lead by chance. Therefore the confidence intervals
    for the differences from the best other run are simultaneous, and the interval for the leader's
    value accounts for the fact that the leader was selected. The probability of being the best
    takes into account that runs of equal quality would differ only slightly.

    The cost is the time to read the runs' files, several at a time, and to compute R² paired
    differences for R runs on the same rows. Comparing ten evaluations in memory with 10⁵ rows each
    takes about 1 s on one core.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30)
    >>> runs = {"forest": forest, "linear": linear}
    >>> comparison = compare(runs, rank_by="multiclass/accuracy", require="binary/recall >= 0.6")
    >>> comparison.best.name, [(run.rank, run.name, run.tied) for run in comparison.runs]
    ('forest', [(1, 'forest', True), (2, 'linear', False)])

    Compare the runs of the active experiment:

    >>> import mlflow
    >>> from cmtrack import log_evaluation
    >>> for name, evaluation in runs.items():
    ...     with mlflow.start_run(run_name=name):
    ...         logged = log_evaluation(evaluation)
    >>> compare(rank_by="multiclass/accuracy").best.name
    'forest'
    """
    CompareOptions.check_names(options, compare)
    return compare_by(CompareOptions(**options), runs, progress)


def compare_by(
    options: CompareOptions, runs: Any = None, progress: Progress | None = None
) -> Comparison:
    """Compare runs with the options of a :class:`CompareOptions`; see :func:`compare`."""
    how = options.how(runs)
    prefix = check_prefix(options.prefix)
    tell = progress or _say_nothing
    if isinstance(runs, Mapping):
        return compare_evaluations(runs, options, tell)
    options.check()
    catalog = BUILT_IN.with_own(options.own)
    unknown = _unknown_metrics(catalog, options.rank_by, options.require, options.tie_breakers)
    if unknown:
        declaring = list_runs(runs, options, tell, order=None)
        catalog = _with_declared(catalog, unknown, declaring, prefix)
    criterion = criterion_of(options, catalog)
    rules = rules_of(options, catalog)

    # List the runs, and use their tags and logged metrics to shorten the list.
    listed = list_runs(runs, options, tell, order=criterion)
    prefix = _logged_prefix(listed, prefix)
    options = replace(options, prefix=prefix)
    complete = [run for run in listed.runs if run.status(prefix) == "completed"]
    if not complete:
        raise NothingFound(_nothing(listed, prefix))
    check_there(rules, complete)
    baseline = None if options.against is None else _baseline(listed, options)
    if criterion is None:
        criterion = replace(_default_criterion(complete, listed, options), catalog=catalog)
    listed = _shortened(listed, criterion, options, tell)

    # Read the evaluations.
    judged = {run.run_id: run for run in (*listed.runs, baseline) if run is not None}
    evaluations, unreadable, problems = _read(judged.values(), listed.clients, options, tell)
    for left_out in unreadable:
        if baseline is not None and left_out.run.run_id == baseline.run_id:
            raise ValueError(f"the baseline {baseline.name!r} cannot be read: {left_out.reason}")
    evaluations = {
        run_id: _with_sections_of(evaluation, criterion)
        for run_id, evaluation in evaluations.items()
    }
    tell("ranking", 0, 0)
    is_selection = runs is not None or bool(options.filter_string)
    experiment_names = _experiment_names(judged.values(), listed.clients)
    listed = replace(
        listed,
        runs=_with_model_sizes(list(judged.values()), listed.clients),
        # The baseline is evaluated even if a gate stops it or it is not on the short list.
        stopped=tuple(stop for stop in listed.stopped if stop.run.run_id not in judged),
        passed_over=tuple(run for run in listed.passed_over if run.run_id not in judged),
        unreadable=tuple(unreadable),
        baseline=baseline,
        notes=(*problems, *listed.notes),
        how=how,
        record=Record.now(mlflow_inside.user_name(), experiment_names),
        looks=_looks(evaluations.values(), listed, is_selection),
    )
    return compare_runs(listed, evaluations, criterion, options)


# -- metrics and criterion -------------------------------------------------------------------------


def _unknown_metrics(catalog: Catalog, *options: Any) -> set[str]:
    """Return the custom metrics in gates and criteria that are missing from the catalog."""
    texts: list[Any] = []
    for option in options:
        if isinstance(option, Iterable):
            texts += several(option)
    names = {name for text in texts if isinstance(text, str) for name in _CUSTOM_NAME.findall(text)}
    return {
        name for name in names if name.split("/")[0] not in RESERVED and name not in catalog.names
    }


def _with_declared(catalog: Catalog, names: set[str], listed: Listed, prefix: str) -> Catalog:
    """Add custom metrics to the catalog, declared as in the first evaluation that contains each."""
    runs = [run for run in listed.runs if run.status(run.logged_prefix(prefix)) == "completed"]
    for run in runs[:_MOST_ASKED]:
        client = listed.clients[run.tracking_uri]
        try:
            evaluation = evaluation_of(run, client, run.logged_prefix(prefix))
        except ValueError:
            continue
        wanted = names - {metric.name for metric in catalog.own}
        declared = [metric for metric in evaluation.catalog.own if metric.name in wanted]
        catalog = catalog.with_own((*catalog.own, *declared))
        if names <= set(catalog.names):
            break
    return catalog


def _default_criterion(
    runs: Sequence[TrackedRun], listed: Listed, options: CompareOptions
) -> Criterion:
    """Return the first default metric that was logged, or that a tag lists as undefined.

    If the options change the grouping, the function returns the first default metric that can be
    computed.
    """
    if options.grouping is not None:
        first = min(runs, key=lambda run: run.run_id)
        evaluations, _, _ = _read([first], listed.clients, options, _say_nothing, rows=False)
        return default_criterion(
            lambda name: any(name in evaluation.metrics for evaluation in evaluations.values())
        )
    names: set[str] = set()
    for run in runs:
        names |= run.metrics.keys()
        undefined = readable_tag(run.tags, "undefined", options.prefix) or ""
        names |= {options.prefix + name for name in undefined.split(", ")}
    return default_criterion(lambda name: options.prefix + name in names)


def _with_sections_of(evaluation: BaseEvaluation, criterion: Criterion) -> BaseEvaluation:
    """Return the evaluation with the sections that the criterion needs.

    An evaluation that was logged without these sections still contains the statistics from which
    they can be computed.
    """
    if not isinstance(evaluation, Evaluation) or evaluation.sections is None:
        return evaluation
    needed = {name.partition("/")[0] for name in criterion.metrics}
    added = [name for name in SECTION_NAMES if name in needed]
    return evaluation.with_sections([*evaluation.sections, *added])


# -- runs ------------------------------------------------------------------------------------------


def _logged_prefix(listed: Listed, prefix: str) -> str:
    """Return the full prefix from the first run that uses it, such as ``test/`` for ``test``."""
    for run in listed.runs:
        logged_prefix = run.logged_prefix(prefix)
        if logged_prefix != prefix:
            return logged_prefix
    return prefix


def _baseline(listed: Listed, options: CompareOptions) -> TrackedRun:
    """Find the baseline among the listed runs or in the stores.

    Raises ValueError if the baseline does not exist.
    """
    experiments = several(options.experiment_names or ())
    baseline = find(options.against, list(listed.clients.values()), experiments)
    # Prefer the listed run, whose name is unique among the listed runs.
    for run in listed.runs:
        if run.run_id == baseline.run_id:
            return run
    return baseline


def _nothing(listed: Listed, prefix: str) -> str:
    """Return the error message to show if no run contains a complete evaluation."""
    if not listed.runs:
        stores = ", ".join(map(shown_uri, listed.clients.values()))
        return NO_RUN.format(f" in {stores}" if stores else "")
    holder = "the run has no"
    if len(listed.runs) > 1:
        holder = f"none of the {len(listed.runs)} runs has a"
    under = under_prefix(prefix)
    others = sorted({used for run in listed.runs for used in run.prefixes} - {prefix})
    named = [repr(other) for other in others if other]
    advice = "cmtrack.log_evaluation in the training script logs one"
    if named:
        advice = f"there are evaluations under {', '.join(named[:_MOST_NAMED])}"
    elif others:
        advice = "there are evaluations without a prefix"
    if named and len(others) > _MOST_NAMED:
        advice += f" and {len(others) - _MOST_NAMED} more prefixes"
    return f"{holder} complete evaluation{under}: {advice}"


def _shortened(
    listed: Listed, criterion: Criterion, options: CompareOptions, tell: Progress
) -> Listed:
    """Choose the runs to read: the best runs by their logged values, or all repeated runs."""
    values = LoggedValues(criterion.catalog, options.prefix, options.changes)
    if options.blocks is not None:
        # Gates apply to the mean of a model's runs, so all runs are read.
        return shortlist(listed, values, criterion, (), limit=len(listed.runs))
    limit = options.limit
    read = read_by(criterion, options.gates, rules_of(options, criterion.catalog))
    listed = shortlist(listed, values, criterion, options.gates, limit=limit, read=read)
    if len(listed.runs) <= limit or not criterion.single:
        return listed
    metric = criterion.metrics[0]
    is_logged = all(values.value(run, metric) is not None for run in listed.runs)
    if is_logged and not options.changes:
        return listed
    # The logged values cannot order the runs, so read their evaluations.
    evaluations, _, _ = _read(listed.runs, listed.clients, options, tell, rows=False)
    recomputed: dict[str, dict[str, float]] = {run.run_id: {} for run in listed.runs}
    for run_id, evaluation in evaluations.items():
        recomputed[run_id] = dict(evaluation.metrics)
    values = replace(values, recomputed=recomputed)
    return shortlist(listed, values, criterion, options.gates, limit=limit, read=read)


def _read(
    runs: Iterable[TrackedRun],
    clients: Mapping[str, MlflowClient],
    options: CompareOptions,
    tell: Progress,
    *,
    rows: bool = True,
) -> tuple[dict[str, BaseEvaluation], list[LeftOut], list[str]]:
    """Read evaluations in parallel.

    Returns the evaluations by run id, the runs that could not be read, and notes on rows that could
    not be read.
    """
    runs = list(runs)
    evaluations: dict[str, BaseEvaluation] = {}
    unreadable: list[LeftOut] = []
    notes: list[str] = []

    def read(run: TrackedRun) -> tuple[BaseEvaluation, str]:
        client = clients[run.tracking_uri]
        evaluation = evaluation_of(run, client, options.prefix)
        problem = ""
        if rows:  # rows that were not kept are not a problem
            evaluation, problem = with_kept_predictions(evaluation, run, client, options.prefix)
        return options.prepared(evaluation), problem

    jobs = each(read, runs, lambda _, done: tell("reading evaluations", done, len(runs)))
    for run, job in zip(runs, jobs, strict=True):
        try:
            evaluations[run.run_id], problem = job.result()
        except Exception as error:
            unreadable.append(LeftOut(run, plain_reason(error, run)))
            continue
        if problem:
            notes.append(f"{run.name}: compared without its predictions by row: {problem}")
    cache.trim()
    return evaluations, unreadable, sorted(notes)


def _with_model_sizes(
    runs: Sequence[TrackedRun], clients: Mapping[str, MlflowClient]
) -> tuple[TrackedRun, ...]:
    """Add the sizes of their models to the runs; this takes one request per model."""

    def with_model_size(run: TrackedRun) -> TrackedRun:
        return replace(run, model_size=model_size(run, clients[run.tracking_uri]))

    return tuple(job.result() for job in each(with_model_size, runs))


def _looks(
    evaluations: Iterable[BaseEvaluation], listed: Listed, is_selection: bool
) -> tuple[int, int]:
    """Count the runs evaluated on the most common test rows, and the reviews of such runs.

    If only a selection of an experiment's runs is compared, the other runs on the same rows are
    listed, up to a few hundred.
    """
    digests = Counter(evaluation.labels_digest for evaluation in evaluations)
    if not digests:
        return 0, 0
    digest = digests.most_common(1)[0][0]
    known = _by_place([*listed.runs, *listed.passed_over])
    known |= _by_place(stop.run for stop in listed.stopped)
    known |= _by_place(left_out.run for left_out in listed.unreadable)
    clients = listed.clients if is_selection else {}
    for uri, client in clients.items():
        ids = sorted({run.experiment_id for run in known.values() if run.tracking_uri == uri})
        if ids:
            # A store that does not answer adds nothing: the numbers are reported as lower bounds.
            with suppress(Exception):
                condition = f"dataset.digest = '{digest}'"
                known |= _by_place(search(client, ids, condition, max_runs=_MOST_LOOKS))
    same_rows = [run for run in known.values() if digest in dict(run.datasets).values()]
    reviews = {run.tags.get(tag("review")) for run in same_rows} - {None}
    return len(same_rows), len(reviews)


def _by_place(runs: Iterable[Run]) -> dict[tuple[str, str], Run]:
    """Return a mapping from (store, id) to run, because an id is unique only within a store."""
    return {(run.tracking_uri, run.run_id): run for run in runs}


def _experiment_names(
    runs: Iterable[TrackedRun], clients: Mapping[str, MlflowClient]
) -> dict[str, str]:
    """Map experiment ids to names, except ids that refer to different experiments in two stores."""
    names_by_id: dict[str, set[str]] = {}
    for uri, experiment_id in dict.fromkeys((run.tracking_uri, run.experiment_id) for run in runs):
        with suppress(Exception):  # the comparison continues without a name
            name = str(clients[uri].get_experiment(experiment_id).name)
            names_by_id.setdefault(experiment_id, set()).add(name)
    return {
        experiment_id: names.pop()
        for experiment_id, names in names_by_id.items()
        if len(names) == 1
    }


def _say_nothing(*_: object) -> None:
    """Ignore progress reports."""
