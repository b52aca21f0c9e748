"""``compare``: runs of tracking stores, or evaluations in memory, to one decision."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import Traits, split
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
from cmtrack.comparison.run import LeftOut, Listing, StoppedRun
from cmtrack.comparison.spec import CompareArguments, several, takes_options
from cmtrack.comparison.tie_breakers import check_there
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.evaluation.compute import SECTION_NAMES
from cmtrack.evaluation.gates import Gate
from cmtrack.metrics.catalog import RESERVED, Catalog
from cmtrack.tracking import cache, mlflow_inside
from cmtrack.tracking.load import evaluation_of, plain_reason, with_kept_predictions
from cmtrack.tracking.names import KIND_TAG, REVIEW, check_prefix, digests, tag, told
from cmtrack.tracking.parallel import each
from cmtrack.tracking.runs import (
    TrackedRun,
    active_experiment_id,
    as_references,
    client_for,
    experiment_ids,
    find,
    find_all,
    model_size,
    search,
    shown_uri,
    unique_names,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient

_OWN_NAME = re.compile(r"(?<![\w.])(?!params\.|tags\.|metrics\.)\w[\w-]*/\w[\w-]*")
_MOST_ASKED = 20
_MOST_LOOKS = 500


@takes_options
def compare(
    runs: Any = None,
    *,
    progress: Progress | None = None,
    **options: Unpack[CompareArguments],
) -> Comparison:
    """Rank evaluated runs, and say which differences are real.

    Parameters
    ----------
    runs : str, object, sequence of these, frame or mapping, optional
        Run ids or their beginnings (8 characters or more), names that a single run has,
        ``runs:/<id>``, ids of logged models, model URIs (``models:/name/3``,
        ``models:/name@champion``), MLflow's run and model entities, or the frame of
        ``mlflow.search_runs``; or ``{name: Evaluation}`` for evaluations that are in no run. By
        default the runs of the experiments, or of the active experiment.
    progress : callable, optional
        Called with (what is being done, done, in all; 0 where that is not known).
    **options
        As in :class:`cmtrack.comparison.spec.CompareSpec`.

    Returns
    -------
    RunComparison or ModelComparison
        The second where ``block`` is given.

    Raises
    ------
    ValueError, TypeError
        If a run or an experiment does not exist, nothing is evaluated, no run has a metric, or a
        gate does not parse.
    ConnectionError
        If a tracking server does not answer.

    Notes
    -----
    Differences use the rows' predictions where these were kept: the models were judged on the same
    rows, and what is common to them cancels. The *tied set* holds the runs that may be the best
    (multiple comparisons with the best, Hsu 1984, 1996), the best one with at least the confidence
    level. Many runs invite finding a winner by chance: the intervals from the best other run are
    simultaneous, that of the leader's value allows for its selection, and the probability of being
    the best allows for how little equal runs would differ.

    Cost: reading the runs' files, several at a time, and R² paired differences for R runs on the
    same rows. Of ten evaluations in memory with 10⁵ rows each, about 1 s on one core.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> runs = {"forest": evaluate(y, [0, 1] * 90 + [1, 0] * 10), "linear": evaluate(y, [0, 1] * 70 + [1, 0] * 30)}
    >>> comparison = compare(runs, rank_by="multiclass/accuracy", require="binary/recall >= 0.6")
    >>> comparison.best.name, [(run.rank, run.name, run.tied) for run in comparison.runs]
    ('forest', [(1, 'forest', True), (2, 'linear', False)])

    Of the runs that the active experiment holds:

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
    """Compare runs by a record of options; see :func:`compare`."""
    how, prefix, tell = (
        options.how(runs),
        check_prefix(options.prefix),
        progress or (lambda *_: None),
    )
    if isinstance(runs, Mapping):
        return compare_evaluations(runs, options, tell)
    options.check()
    listing = partial(list_runs, runs, options, tell)
    catalog = BUILT_IN.with_own(options.own)
    if names := _not_known(catalog, options.rank_by, options.require, options.tie_breakers):
        catalog = _declared(listing(order=None), prefix, names, catalog)
    criterion, rules = criterion_of(options, catalog), rules_of(options, catalog)
    listed = listing(order=criterion)
    prefix = next(
        (logged for run in listed.runs if (logged := run.logged_prefix(prefix)) != prefix), prefix
    )
    options = replace(options, prefix=prefix)
    complete = [run for run in listed.runs if run.status(prefix) == "completed"]
    if not complete:
        raise NothingFound(_nothing(listed, prefix))
    check_there(rules, complete)
    named = several(options.experiment_names or ())
    baseline = None if options.against is None else _baseline(listed, options.against, named)
    criterion = criterion or replace(_default_criterion(complete, listed, options), catalog=catalog)
    listed = _shortened(listed, criterion, options, tell)
    wanted = {run.run_id: run for run in (*listed.runs, baseline) if run is not None}
    evaluations, unreadable, problems = _read(wanted.values(), listed.clients, options, tell)
    if baseline is not None and baseline.run_id not in evaluations:
        why = next(left.reason for left in unreadable if left.run.run_id == baseline.run_id)
        raise ValueError(f"the baseline {baseline.name!r} cannot be read: {why}")
    evaluations = {run_id: _with_sections_of(one, criterion) for run_id, one in evaluations.items()}
    tell("ranking", 0, 0)
    sizes = each(
        lambda run: model_size(run, listed.clients[run.tracking_uri]), list(wanted.values())
    )
    listed = replace(
        listed,
        runs=tuple(
            replace(run, model_size=size.result())
            for run, size in zip(wanted.values(), sizes, strict=True)
        ),
        stopped=tuple(
            stop for stop in listed.stopped if stop.run.run_id not in wanted
        ),  # the baseline is judged
        passed_over=tuple(run for run in listed.passed_over if run.run_id not in wanted),
        unreadable=tuple(unreadable),
        baseline=baseline,
        notes=(*problems, *listed.notes),
        how=how,
        record=Record.now(
            mlflow_inside.user_name(), _experiment_names(wanted.values(), listed.clients)
        ),
        looks=_looks(
            evaluations.values(), listed, part=runs is not None or bool(options.filter_string)
        ),
    )
    return compare_runs(listed, evaluations, criterion, options)


def _with_sections_of(evaluation: BaseEvaluation, criterion: Criterion) -> BaseEvaluation:
    """The evaluation with the criterion's sections, also if it was logged without them: it keeps their statistics."""
    if not isinstance(evaluation, Evaluation) or evaluation.sections is None:
        return evaluation
    needed = [name.partition("/")[0] for name in criterion.metrics]
    return evaluation.with_sections(
        [*evaluation.sections, *(name for name in SECTION_NAMES if name in needed)]
    )


def _looks(evaluations: Iterable[BaseEvaluation], listed: Listed, part: bool) -> tuple[int, int]:
    """Number of runs judged on the most common test rows, and of the reviews that contain them.

    Where a ``part`` of the experiments' runs is compared, their stores are asked, for a few hundred
    runs at most.
    """
    digests = Counter(evaluation.labels_digest for evaluation in evaluations)
    if not digests:
        return 0, 0
    digest = digests.most_common(1)[0][0]
    others = [*(one.run for one in listed.stopped), *(one.run for one in listed.unreadable)]
    everyone = {
        (run.tracking_uri, run.run_id): run for run in (*listed.runs, *listed.passed_over, *others)
    }
    for uri, client in listed.clients.items() if part else ():
        ids = sorted({run.experiment_id for place, run in everyone.items() if place[0] == uri})
        try:
            judged = (
                [*search(client, ids, f"dataset.digest = '{digest}'", max_runs=_MOST_LOOKS)]
                if ids
                else []
            )
        except Exception:  # it is said that there are at least so many
            continue
        everyone |= {(run.tracking_uri, run.run_id): run for run in judged}
    same = [run for run in everyone.values() if digest in dict(run.datasets).values()]
    return len(same), len({run.tags[tag("review")] for run in same if tag("review") in run.tags})


def _experiment_names(
    runs: Iterable[TrackedRun], clients: Mapping[str, MlflowClient]
) -> dict[str, str]:
    """Experiment names by id; an id that means two experiments in two stores is left out."""
    names_by_id: dict[str, set[str]] = {}
    for uri, experiment_id in dict.fromkeys((run.tracking_uri, run.experiment_id) for run in runs):
        try:
            name = str(clients[uri].get_experiment(experiment_id).name)
        except Exception:  # the run is at hand without it
            continue
        names_by_id.setdefault(experiment_id, set()).add(name)
    return {
        experiment_id: names.pop()
        for experiment_id, names in names_by_id.items()
        if len(names) == 1
    }


def _shortened(
    listed: Listed, criterion: Criterion, options: CompareOptions, tell: Progress
) -> Listed:
    """The runs to read: all repeated runs, since gates apply to a model's mean; else the best by logged values."""
    if options.blocks is not None:
        return reduced(
            listed, criterion, (), options.prefix, limit=len(listed.runs), changes=options.changes
        )
    prefix, changes, limit = options.prefix, options.changes, options.limit
    read = read_by(criterion, options.gates, rules_of(options, criterion.catalog))
    listed = reduced(
        listed, criterion, options.gates, prefix, limit=limit, changes=changes, read=read
    )
    logged = all(prefix + criterion.metrics[0] in run.metrics for run in listed.runs)
    if len(listed.runs) <= limit or not criterion.single or (logged and not changes):
        return listed
    # the listing could not order them: their evaluations are read for that
    judged, _, _ = _read(listed.runs, listed.clients, options, tell, rows=False)
    anew = {
        run.run_id: dict(judged[run.run_id].metrics) if run.run_id in judged else {}
        for run in listed.runs
    }
    return reduced(
        listed, criterion, options.gates, prefix, limit=limit, changes=changes, read=read, anew=anew
    )


def _read(
    runs: Iterable[TrackedRun],
    clients: Mapping[str, MlflowClient],
    options: CompareOptions,
    tell: Progress,
    *,
    rows: bool = True,
) -> tuple[dict[str, BaseEvaluation], list[LeftOut], list[str]]:
    """Evaluations by run id, read in parallel; unreadable runs; and notes on unreadable rows."""
    runs = list(runs)
    evaluations: dict[str, BaseEvaluation] = {}
    unreadable: list[LeftOut] = []
    notes: list[str] = []

    def read(run: TrackedRun) -> tuple[BaseEvaluation, str]:
        client = clients[run.tracking_uri]
        evaluation, problem = evaluation_of(run, client, options.prefix), ""
        if rows:  # that they were not kept is no problem
            evaluation, problem = with_kept_predictions(evaluation, run, client, options.prefix)
        return options.prepared(evaluation), problem

    jobs = each(read, runs, lambda _, done: tell("reading evaluations", done, len(runs)))
    for run, job in zip(runs, jobs, strict=True):
        try:
            evaluations[run.run_id], problem = job.result()
        except Exception as error:
            unreadable.append(LeftOut(run, plain_reason(error, run)))
            continue
        notes += (
            [f"{run.name}: compared without its predictions by row: {problem}"] if problem else []
        )
    cache.trim()
    return evaluations, unreadable, sorted(notes)


def _default_criterion(
    runs: Sequence[TrackedRun], listed: Listed, options: CompareOptions
) -> Criterion:
    """The first default metric logged or tagged as undefined; under a grouping, the first that can be computed."""
    if options.grouping is not None:
        first = sorted(runs, key=lambda run: run.run_id)[:1]
        evaluations, _, _ = _read(first, listed.clients, options, lambda *_: None, rows=False)
        return default_criterion(
            lambda name: any(name in evaluation.metrics for evaluation in evaluations.values())
        )
    undefined = [told(run.tags, "undefined", options.prefix) or "" for run in runs]
    names = {name for run in runs for name in run.metrics}
    names |= {options.prefix + name for listed in undefined for name in listed.split(", ")}
    return default_criterion(lambda name: options.prefix + name in names)


def _not_known(catalog: Catalog, *texts: Any) -> set[str]:
    """Custom metrics named in gates and criteria that the catalog lacks."""
    words: list[str] = []
    for given in texts:
        words += (
            [given]
            if isinstance(given, str)
            else list(given)
            if isinstance(given, Iterable)
            else []
        )
    names = {name for word in words if isinstance(word, str) for name in _OWN_NAME.findall(word)}
    return {
        name for name in names if name.split("/")[0] not in RESERVED and name not in catalog.names
    }


def _declared(listed: Listed, prefix: str, names: set[str], catalog: Catalog) -> Catalog:
    """The catalog with these custom metrics, as declared in the first evaluations that have them."""
    runs = [run for run in listed.runs if run.status(run.logged_prefix(prefix)) == "completed"]
    for run in runs[:_MOST_ASKED]:
        try:
            evaluation = evaluation_of(
                run, listed.clients[run.tracking_uri], run.logged_prefix(prefix)
            )
        except ValueError:
            continue
        new = [
            one
            for one in evaluation.catalog.own
            if one.name in names - {metric.name for metric in catalog.own}
        ]
        catalog = catalog.with_own((*catalog.own, *new))
        if names <= set(catalog.names):
            break
    return catalog


def _baseline(listed: Listed, against: Any, experiments: Sequence[str]) -> TrackedRun:
    """The baseline: a listed run, or another run in the same stores; ValueError if there is none."""
    run = find(against, list(listed.clients.values()), experiments)
    return next((listed_run for listed_run in listed.runs if listed_run.run_id == run.run_id), run)


def _nothing(listed: Listed, prefix: str) -> str:
    """The error if no run holds a complete evaluation."""
    under = f" under the prefix {prefix!r}" if prefix else ""
    others = sorted({used for run in listed.runs for used in run.prefixes} - {prefix})
    named = ", ".join([repr(other) for other in others if other][:6])
    named += f" and {len(others) - 6} more prefixes" if len(others) > 6 else ""
    if not listed.runs:
        stores = ", ".join(map(shown_uri, listed.clients.values()))
        return NO_RUN.format(f" in {stores}" if stores else "")
    which = (
        f"none of the {len(listed.runs)} runs holds a"
        if len(listed.runs) > 1
        else "the run holds no"
    )
    there = f"there are evaluations {f'under {named}' if named else 'without a prefix'}"
    way_out = "cmtrack.log_evaluation in the training script logs one"
    return f"{which} complete evaluation{under}: {there if others else way_out}"


# -- what stores list, and the short list of it ----------------------------------------------------


@dataclass(frozen=True, eq=False)
class Listed(Listing):
    """Runs that stores list, sorted by their tags and metrics before any artifact is read.

    ``runs``: to be read, under distinct names; best logged value first where they are reduced by
    it. ``clients``: by tracking URI.
    """

    runs: tuple[TrackedRun, ...]
    clients: dict[str, MlflowClient] = field(default_factory=dict)


def list_runs(
    runs: Any, options: CompareOptions, progress: Progress, *, order: Criterion | None
) -> Listed:
    """List the referenced runs, or those of experiments, in one or more stores; the best first if there are many.

    ValueError or TypeError if a run, an experiment or a filter is not one; ConnectionError if a
    tracking server does not answer.
    """
    if runs is not None and options.filter_string and not options.experiment_names:
        raise ValueError(
            f"filter_string needs experiment_names beside runs, got {options.filter_string!r:.60} "
            f"alone"
        )
    uris: list[Any] = several(options.tracking_uri or ()) or [None]
    by_uri = {client.tracking_uri: client for client in map(client_for, uris)}
    by_id: dict[str, TrackedRun] = {}
    if runs is not None:
        references = as_references(runs)
        everywhere = list(by_uri.values())
        names, n = several(options.experiment_names or ()), len(references)
        for run in find_all(
            references, lambda _: everywhere, lambda done: progress("finding runs", done, n), names
        ):
            by_id.setdefault(run.run_id, run)
    notes: tuple[str, ...] = ()
    if runs is None or options.experiment_names:
        names = several(options.experiment_names or ())
        for client in by_uri.values():
            before = len(by_id)
            ids = _experiments(client, names, several=len(by_uri) > 1)
            # one more than wanted tells whether there are more
            most = None if options.max_runs is None else options.max_runs + 1
            by = _order_by(order, options.prefix)
            for run in search(
                client,
                ids,
                options.filter_string,
                by,
                most,
                lambda n: progress("listing runs", n, 0),
            ):
                by_id.setdefault(run.run_id, run)
            if options.max_runs is not None and len(by_id) - before > options.max_runs:
                by_id.popitem()
                notes = (
                    f"The store holds more runs than the {options.max_runs} that were listed "
                    f"(max_runs).",
                )
        for name in names if not by_id and len(by_uri) > 1 else ():
            if all(client.get_experiment_by_name(name) is None for client in by_uri.values()):
                raise ValueError(
                    f"there is no experiment {name!r} in "
                    f"{', '.join(map(shown_uri, by_uri.values()))}"
                )
    # the same review whatever the order that they were given or found in
    by_id = dict(sorted(by_id.items()))
    label = unique_names({run_id: run.name for run_id, run in by_id.items()})
    named = tuple(replace(run, name=label[run.run_id]) for run in by_id.values())
    return Listed(named, clients=by_uri, notes=notes)


def _experiments(client: MlflowClient, names: list[str], several: bool) -> list[str]:
    if not names:
        if several:
            return [str(e.experiment_id) for e in client.search_experiments()]
        return [active_experiment_id()]
    if not several:
        return experiment_ids(client, names)
    return [
        str(e.experiment_id) for e in map(client.get_experiment_by_name, names) if e is not None
    ]


def _order_by(order: Criterion | None, prefix: str) -> list[str]:
    """The `order_by` for the store, so that the limit cuts off the worst runs."""
    if order is None or not order.single or "`" in prefix:
        return []
    way = {"higher": "DESC", "lower": "ASC"}.get(order.direction)
    return [f"metrics.`{prefix}{order.metrics[0]}` {way}"] if way else []


def reduced(
    listed: Listed,
    criterion: Criterion,
    gates: Sequence[Gate],
    prefix: str = "",
    *,
    limit: int,
    changes: frozenset[str] = frozenset(),
    read: frozenset[str] = frozenset(),
    anew: Mapping[str, Mapping[str, float]] | None = None,
) -> Listed:
    """Shortlist at most ``limit`` runs per data set that pass the gates by their logged values.

    A value that was not logged decides nothing here: such a run stays on the list until its
    evaluation is read. ``changes`` names what the runs are judged by anew
    (:attr:`CompareOptions.changes`), ``anew`` has their metrics by run id where they are judged so
    already; ``read`` names what the comparison reads besides the labels.
    """

    def logged(run: TrackedRun, name: str) -> float | None:
        return run.metrics.get(prefix + name) if anew is None else anew[run.run_id].get(name)

    def holds(name: str) -> bool:
        """True if the logged value still holds under the changed options."""
        return anew is not None or not (
            "at" in changes or criterion.catalog.depends_on(name) & changes
        )

    def distance(run: TrackedRun) -> float:
        value = logged(run, criterion.metrics[0])
        return (
            math.inf
            if value is None or not math.isfinite(value)
            else criterion.distance_from_best(value)
        )

    deciding = [gate for gate in gates if gate.of_value and holds(gate.metric)]
    incomplete, stopped, passing = list(listed.incomplete), list(listed.stopped), []
    for run in listed.runs:
        if run.tags.get(KIND_TAG) == REVIEW:
            continue  # an earlier comparison, not a model
        if reason := run.why_incomplete(prefix):
            incomplete.append(LeftOut(run, reason))
            continue
        values = {gate: logged(run, gate.metric) for gate in deciding}
        results = tuple(
            gate.check({gate.metric: one}, {}) for gate, one in values.items() if one is not None
        )
        if all(result.passed for result in results):
            passing.append(run)
        else:
            stopped.append(StoppedRun(run, results))
    chosen: list[TrackedRun] = []
    passed_over = list(listed.passed_over)
    in_order = criterion.single and holds(criterion.metrics[0])
    for part in split(passing, lambda run: _traits(run, prefix), read - changes):
        if in_order and any(logged(run, criterion.metrics[0]) is not None for run in part):
            part = sorted(part, key=distance)
            passed_over += part[limit:]
            part = part[:limit]
        chosen += part
    lists = {
        "stopped": tuple(stopped),
        "passed_over": tuple(passed_over),
        "incomplete": tuple(incomplete),
    }
    return replace(listed, runs=tuple(chosen), **lists)  # type: ignore[arg-type]


def _traits(run: TrackedRun, prefix: str) -> Traits:
    of_run = digests(run.tags, prefix)
    judged = (told(run.tags, name, prefix) for name in ("grouping", "positive", "costs"))
    return Traits.listed(of_run.get("labels"), of_run.get("row_ids"), *judged)
