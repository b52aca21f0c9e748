"""``log_evaluation``, the one line at the end of a training script, and nested runs of folds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from cmtrack import untrusted
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import check_headline
from cmtrack.evaluation.from_arrays import Inputs, evaluated
from cmtrack.evaluation.spec import Options, Spec, takes_options
from cmtrack.grouping import Label
from cmtrack.options import probabilities_of
from cmtrack.tracking import settings, steps
from cmtrack.tracking._warn import is_interrupt, note, tell, text_of
from cmtrack.tracking.contents import keep_inputs, make
from cmtrack.tracking.dataset import checked_name
from cmtrack.tracking.deliver import answer_of, deliver
from cmtrack.tracking.entry import Entry, Figures
from cmtrack.tracking.entry_file import whole_number
from cmtrack.tracking.names import prefix_to_log
from cmtrack.tracking.store import client_for, create_run, end_run, made_runs

if TYPE_CHECKING:
    from mlflow import MlflowClient


@dataclass(frozen=True)
class LoggedEvaluation:
    """The outcome of logging an evaluation.

    Attributes
    ----------
    evaluation : Evaluation, FamilyEvaluation or None
        None where it could not be computed.
    run_id : str or None
    status : "completed", "saved" or "failed"
        In the run; kept in a local folder; not computed (the inputs are in the local folder).
    path : Path or None
        The local folder, where it is not in the run.
    error : str
        Why it is not in the run.
    problems : tuple of str
        Figures or tables that could not be made, or sent.
    replaced : str
        The evaluation of the run that was replaced, in a sentence; empty where none was.

    Examples
    --------
    >>> import mlflow
    >>> from cmtrack import log_evaluation
    >>> with mlflow.start_run() as run:
    ...     logged = log_evaluation([0, 1, 1, 0], [0, 1, 0, 0])
    >>> logged.status, logged.run_id == run.info.run_id, logged.error
    ('completed', True, '')
    """

    evaluation: BaseEvaluation | None
    run_id: str | None
    status: str
    path: Path | None = None
    error: str = ""
    problems: tuple[str, ...] = ()
    replaced: str = ""


@takes_options
def log_evaluation(
    evaluation_or_y_true: Any,
    y_pred: Any = None,
    *,
    y_prob: Any = None,
    y_score: Any = None,
    labels: Sequence[Label] | None = None,
    calibration: Any = None,
    target: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    row_ids: Any = None,
    segments: Any = None,
    run_id: str | None = None,
    model_id: str | None = None,
    step: int | None = None,
    prefix: str = "",
    metrics: str | Sequence[str] = "headline",
    predictions: bool | str = "auto",
    on_existing: str = "replace",
    dataset: str | None = None,
    figures: Figures = "auto",
    strict: bool = False,
    **options: Unpack[Options],
) -> LoggedEvaluation:
    """Evaluate, unless it is an evaluation already, and log everything to an MLflow run.

    The run gets a headline set of metrics in one batch, ``cmtrack_evaluation.json`` with every
    number and the statistics, figures and a report at the root of its artifacts, one image series
    for the chart view, a table by class, tags, and the evaluated rows as a dataset. A training run
    is never ended, opened or broken by this: on any failure, a misspelt argument included, there is
    a warning that names a local folder with the evaluation or its inputs, and the script goes on.

    **What leaves the machine.** By default each row's actual and predicted label, probabilities,
    weight, group and segment by each declared column go to the tracking store, up to 32 MB; row ids
    only as a digest. The environment variable ``CMTRACK_PREDICTIONS`` or ``[tool.cmtrack]
    predictions`` in the nearest ``pyproject.toml`` that has it limits that whatever the code asks
    for: ``off`` keeps all rows here, ``labels`` the probabilities
    (:mod:`cmtrack.tracking.settings`). The logger ``cmtrack`` says at level INFO what goes along.
    Statistics go in any case: counts of each distinct score of the positive group are among them,
    and of segments the counts by the values of their columns.

    Parameters
    ----------
    evaluation_or_y_true : Evaluation, FamilyEvaluation or array-like of shape (n,)
    y_pred, y_prob, y_score, labels, calibration, target, sample_weight, groups, row_ids, segments
        As in :func:`cmtrack.evaluate`, where labels are given.
    run_id : str, optional
        The run to write to; by default the active run of this thread.
    model_id : str, optional
        The logged model that the metrics belong to; by default MLflow's active model, or the one
        model that the run logged at this step.
    step : int, optional
        The step of the metrics and of the image, for use during training. The files of a run are
        those of its highest step, as are the metrics that MLflow shows: a lower step logs only its
        metrics, with a warning, and an evaluation without a step is logged at the highest step of
        the run. The report is made at most every ten seconds, and ten seconds after the last step
        or when the process ends.
    prefix : str, default ""
        Put before metric names (``"val"`` and ``"val/"`` give ``val/multiclass/accuracy``,
        ``"val_"`` gives ``val_multiclass/accuracy``) and file names, for several evaluations in one
        run.
    metrics : "headline", "all" or list of names, default "headline"
        What becomes an MLflow metric; everything is in the JSON file. A name ending in ``/*`` is a
        section.
    predictions : "auto", "labels", True or False
        Which rows are written as a compact Parquet file, where there are rows: with "auto" all, up
        to 32 MB before compression; with "labels" the same without probabilities; with True all, of
        any size; with False none, also not in the local folder. Paired comparisons need the labels,
        those of scores the probabilities, too.
    on_existing : "replace" or "error", default "replace"
        What becomes of another evaluation that the run holds under the same prefix. It is replaced
        with a warning, its files are removed where the store can, and those of its metrics that the
        new one lacks, which MLflow cannot remove, are named in the tag ``cmtrack.stale_metrics``;
        or the new one is kept in the local folder. With ``step`` each takes the place of the one of
        a lower step. The same evaluation again changes nothing.
    dataset : str, optional
        A name for the evaluated data, such as "ANES 1996, test", in the run's list of datasets and
        below its figures; by default the number of rows and classes. The digest of the rows links
        runs on the same data, not the name.
    figures : "auto", "all", True, False or list of str, default "auto"
        Which are drawn: with "auto" or True those of a report, of which the confusion matrices and
        the ROC curve are files of the run, too; with "all" or by name (:meth:`Evaluation.figures`)
        each is also a file, and drawn with every ``step``; with False none, and no image.
    strict : bool, default False
        Raise instead of warning (the evaluation is kept in the local folder all the same).
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`, where labels are given.

    Returns
    -------
    LoggedEvaluation

    Notes
    -----
    Cost: that of :func:`cmtrack.evaluate`, about 0.04 s for each figure, and some ten requests to
    the store: of 10⁴ rows of two classes about 0.3 s into a local SQLite store; a step 0.15 s.

    Examples
    --------
    >>> import mlflow
    >>> from cmtrack import log_evaluation
    >>> with mlflow.start_run() as run:
    ...     logged = log_evaluation([0, 1, 1, 0], [0, 1, 0, 0])
    >>> logged.status, mlflow.get_run(run.info.run_id).data.metrics["multiclass/accuracy"]
    ('completed', 0.75)
    """
    inputs = Inputs(
        evaluation_or_y_true,
        y_pred,
        y_prob=y_prob,
        y_score=y_score,
        labels=labels,
        calibration=calibration,
        target=target,
        sample_weight=sample_weight,
        groups=groups,
        row_ids=row_ids,
        segments=segments,
    )
    request = Entry(
        run_id=run_id,
        prefix=prefix,
        step=step,
        model_id=model_id,
        on_existing=on_existing,
        metric_names=metrics,
        predictions=predictions,
        dataset_name=dataset,
        figures=figures,
    )
    return _log(inputs, request, options, strict)


def _log(inputs: Inputs, request: Entry, options: Options, strict: bool) -> LoggedEvaluation:
    """Evaluate, write the evaluation to the spool, and send it to its run."""
    problem: Exception | None = None
    evaluation: BaseEvaluation | None = None
    if isinstance(inputs.y_true, BaseEvaluation):
        evaluation = inputs.y_true  # it is written as it is if an option is wrong
    named_run = request.run_id

    # Evaluate, and decide where the evaluation goes.
    try:
        evaluation = _evaluated(inputs, options)
        request = _checked(request)
    except Exception as error:
        if is_interrupt(error):
            raise
        if evaluation is None:
            return _not_computed(error, inputs, request, strict)
        problem = error
        request = _with_right_options(request)

    # Write it to the spool. The report of a step waits if the last one was drawn just now. It is
    # claimed before anything is written, so that an earlier step's report does not come after it.
    place = (request.tracking_uri or "", request.run_id or "", request.prefix)
    is_due = steps.claim_report(place, request.step)
    has_report = is_due or request.step is None or request.figures not in ("auto", True)
    try:
        entry = write_entry(evaluation, request, report=has_report)
    except Exception as error:
        if is_interrupt(error):
            raise
        problem = problem or error
        try:
            entry = _write_plain_entry(evaluation, request)
        except Exception as second_error:
            path, sentence = _keep_inputs_instead(inputs, text_of(second_error))
            reason = _raise_or_warn(problem, sentence, strict)
            run_id = request.run_id or named_run
            return LoggedEvaluation(evaluation, run_id, "failed", path, reason)
    if problem is not None:
        return not_sent(problem, evaluation, entry, entry.run_id or named_run, strict)

    # Send it to the run. What does not arrive stays in the spool.
    try:
        sent = deliver(entry)
    except BaseException as error:
        if is_interrupt(error):
            error.add_note(f"cmtrack: {_copy_sentence(entry)}")
            raise
        return not_sent(error, evaluation, entry, entry.run_id, strict)
    if not has_report and not sent.stays:
        steps.later(place, _report_sender(evaluation, request, entry), request.step or 0)

    # Say what was replaced or left out.
    if sent.replaced:
        tell(sent.replaced)
    problems = entry.problems + sent.problems
    if problems:
        tell(f"left out of the evaluation's record: {'; '.join(problems)}")
    return LoggedEvaluation(
        evaluation, entry.run_id, "completed", problems=problems, replaced=sent.replaced
    )


# -- evaluate --------------------------------------------------------------------------------------


def _evaluated(inputs: Inputs, options: Options) -> BaseEvaluation:
    """Evaluate, and warn of what is strange in the input.

    An evaluation only gets what the options add to it.
    """
    inputs.y_prob = probabilities_of(inputs.y_prob, options)
    Spec.check_names(options, log_evaluation)
    remarks: Sequence[UserWarning] = ()
    evaluation: BaseEvaluation
    if isinstance(inputs.y_true, BaseEvaluation):
        if any(scores is not None for scores in (inputs.y_pred, inputs.y_prob, inputs.y_score)):
            raise ValueError(
                "y_pred, y_prob and y_score need labels, got an Evaluation beside them"
            )
        evaluation = inputs.y_true.with_metrics(options.get("extra_metrics", ()))
        if options.get("headline"):
            evaluation = evaluation.asking(headline=check_headline(options["headline"]))
    else:
        evaluation, remarks = evaluated(inputs, options)
    evaluation.metrics  # noqa: B018 - computed here, so that a failure is caught
    for remark in remarks:
        tell(str(remark), category=type(remark))
    return evaluation


def _not_computed(
    error: Exception, inputs: Inputs, request: Entry, strict: bool
) -> LoggedEvaluation:
    """Keep the inputs of an evaluation that could not be computed, and warn."""
    if strict:
        raise error
    path = None
    state = "its inputs could not be kept either"
    try:
        arrays, why = settings.kept_inputs(inputs.arrays(), request.predictions)
        if why:
            state = f"its inputs are not kept: {why}"
        path = keep_inputs(arrays)
        if path is not None:
            state = f"its inputs are kept in {path}"
            if why:
                state += f", without probabilities: {why}"
            state += "; `cmtrack spool` says how to log them"
    except Exception as second:
        state += f" ({text_of(second)})"
    reason = text_of(error)
    tell(f"the evaluation failed: {reason} ({state})")
    run_id = _with_right_options(request).run_id or request.run_id
    return LoggedEvaluation(None, run_id, "failed", path, reason)


# -- decide where it goes --------------------------------------------------------------------------


def _checked(request: Entry) -> Entry:
    """The entry with the active run, model and store.

    An error if an option is wrong or no run is active.
    """
    from mlflow import get_tracking_uri

    checked = {name: check(getattr(request, name)) for name, check in _CHECKS.items()}
    checked["tracking_uri"] = get_tracking_uri()
    checked["run_name"] = name_of_run(checked["run_id"])
    return replace(request, **checked)


def _with_right_options(request: Entry) -> Entry:
    """The entry with the options that are right, and the run, if it is known."""
    right: dict[str, Any] = {"on_existing": "error"}
    for name, check in _CHECKS.items():
        with contextlib.suppress(Exception):
            right[name] = check(getattr(request, name))
    if "prefix" not in right:
        # Without its prefix it would take another evaluation's place: it then waits for no run.
        right["run_id"] = None
    predictions = settings.safe(request.predictions)
    return Entry(metric_names=request.metric_names, predictions=predictions, **right)


def _checked_on_existing(on_existing: Any) -> str:
    """Check the option for an evaluation that the run already has: one of two words."""
    if on_existing not in ("replace", "error"):
        raise ValueError(f"on_existing must be 'replace' or 'error', got {on_existing!r}")
    return str(on_existing)


def _checked_model_id(model_id: Any) -> str | None:
    """A model's id, by default the active model's; ValueError if it is no id."""
    from mlflow import get_active_model_id

    return _checked_id(get_active_model_id() if model_id is None else model_id, "model_id")


def _checked_figures(figures: Any) -> Figures:
    """The figures that were asked for.

    ValueError if they are another word than "auto" and "all"; TypeError if they are no names.
    """
    words = "'auto', 'all', True, False or a list of names"
    if isinstance(figures, bool) or figures in ("auto", "all"):
        return figures
    if isinstance(figures, str):
        raise ValueError(f"figures must be {words}, got {figures!r}")
    names = tuple(figures) if isinstance(figures, Iterable) else (figures,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"figures must be {words}, got {figures!r:.80}")
    return names


def _checked_step(step: Any) -> int | None:
    """A step as an int; ValueError if it is not a whole number of 64 bits, such as 2.0 or True."""
    return None if step is None else whole_number(step, "step")


def _checked_id(text: Any, what: str) -> str | None:
    """An id as MLflow writes it; ValueError if it is none."""
    if isinstance(text, UUID):
        return text.hex
    return None if text is None else untrusted.identifier(text, what)


def chosen_run(run_id: str | None) -> str:
    """The run to write to, captured once; ValueError if it is no id, or none is active."""
    checked = _checked_id(run_id, "run_id")
    if checked is not None:
        return checked
    import mlflow

    active = mlflow.active_run()
    if active is None:
        raise ValueError(
            "no run is active in this thread: call log_evaluation inside "
            "`with mlflow.start_run():` or pass run_id="
        )
    return str(active.info.run_id)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "on_existing": _checked_on_existing,
    "run_id": chosen_run,
    "prefix": prefix_to_log,
    "step": _checked_step,
    "model_id": _checked_model_id,
    "dataset_name": checked_name,
    "figures": _checked_figures,
}
"""The check of each option of an entry; what is wrong with several is said in this order."""


def name_of_run(run_id: str) -> str:
    """The name of an active run, or of one made here; empty for others.

    The store is not asked for it: that would take another request for each evaluation.
    """
    import mlflow

    active = mlflow.active_run()
    if active is not None and active.info.run_id == run_id and active.info.run_name:
        return str(active.info.run_name)
    return made_runs.get(run_id, "")


# -- write, and send -------------------------------------------------------------------------------


def write_entry(evaluation: BaseEvaluation, request: Entry, *, report: bool = True) -> Entry:
    """Write the whole evaluation to the spool; the entry has no folder if no place is writable.

    Without a report it has of its figures the image of the charts only.
    """
    from mlflow import get_tracking_uri

    listed, sentence = settings.with_kept_rows(evaluation, request.predictions)
    metrics = request.metric_names
    entry = replace(
        request,
        metric_names=metrics if isinstance(metrics, str) else list(metrics),
        tracking_uri=request.tracking_uri or get_tracking_uri(),
        has_rows=listed is not None,
    )
    rows = None if listed is None else listed.write_rows
    with entry.writing():
        make(entry, evaluation, rows=rows, listed=listed, report=report)
        entry.finish()
    note(sentence)
    if entry.refusals:
        instead = "none is kept"
        if entry.folder is not None:
            instead = f"written instead to {entry.folder.parent}"
        refusals = "; ".join(entry.refusals)
        tell(f"the local copy could not be written to {refusals}; {instead}")
    return entry


def _write_plain_entry(evaluation: BaseEvaluation, request: Entry) -> Entry:
    """Write the evaluation with its headline metrics, after options that could not be followed."""
    predictions = settings.safe(request.predictions)
    return write_entry(
        evaluation, replace(request, metric_names="headline", predictions=predictions)
    )


def _report_sender(evaluation: BaseEvaluation, request: Entry, sent: Entry) -> Callable[[], object]:
    """A function that sends what a step left out: its evaluation once more, with a report."""
    from mlflow import get_tracking_uri

    tracking_uri = get_tracking_uri()  # with its credentials, and as it is now
    again = replace(request, timestamp=sent.timestamp)

    def send_report() -> None:
        client = client_for(tracking_uri)
        deliver(write_entry(evaluation, again), client, is_late=True)

    return send_report


def not_sent(
    error: BaseException, evaluation: BaseEvaluation, entry: Entry, run_id: str | None, strict: bool
) -> LoggedEvaluation:
    """Warn, or raise if ``strict``, that the evaluation was only spooled."""
    status = "saved"
    sentence = _copy_sentence(entry)
    if entry.folder is None:
        status = "failed"
        sentence = f"{_NOT_KEPT}: no folder on this machine could be written"
    reason = _raise_or_warn(error, sentence, strict)
    return LoggedEvaluation(evaluation, run_id, status, entry.folder, reason)


def _raise_or_warn(error: BaseException, sentence: str, strict: bool) -> str:
    """Raise the error if ``strict``; else warn that the evaluation is in no run, and return why.

    ``sentence``: where the evaluation is.
    """
    if strict:
        error.add_note(sentence)
        raise error
    reason = untrusted.without_credentials(text_of(error))
    tell(f"the evaluation was not logged: {reason} ({sentence})")
    return reason


_NOT_KEPT = "the evaluation could not be kept either"


def _copy_sentence(entry: Entry) -> str:
    if entry.folder is None:
        return "no copy of the evaluation was saved"
    where = "" if entry.run_id else " --experiment NAME"  # in which it gets a run
    return f"the evaluation is kept in {entry.folder}; `cmtrack push{where}` sends it"


def _keep_inputs_instead(inputs: Inputs, why: str) -> tuple[Path | None, str]:
    """Keep the inputs of an evaluation that could not be written; return where, and a sentence."""
    path = None
    if not isinstance(inputs.y_true, BaseEvaluation):
        with contextlib.suppress(Exception):
            arrays, _ = settings.kept_inputs(inputs.arrays())
            path = keep_inputs(arrays)
    if path is None:
        return None, f"{_NOT_KEPT}: {why}"
    return path, f"the evaluation could not be written: {why}; its inputs are kept in {path}"


# -- nested runs -----------------------------------------------------------------------------------

_PARENT = "mlflow.parentRunId"
_NAME = "mlflow.runName"
_COPIED_TAGS = ("mlflow.user", "mlflow.source.name", "mlflow.source.type")
"""Tags that MLflow's fluent functions give to a nested run, and its client does not."""
_MAX_PARAM = 500
"""Characters that stores of MLflow 2 take of a parameter."""


@dataclass(frozen=True, eq=False)
class NestedEvaluation:
    """An evaluation for a nested run.

    ``name``: put after the parent's name.
    ``params``: parameters of the run.
    ``model``: the parameter ``model``; by default the parent's name.
    """

    name: str
    evaluation: Evaluation
    params: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None


def log_nested(
    children: Iterable[NestedEvaluation],
    *,
    run_id: str | None = None,
    metrics: str | Sequence[str] = "headline",
    predictions: bool | str = "auto",
    strict: bool = False,
) -> tuple[LoggedEvaluation, ...]:
    """Log each evaluation to a new nested run, and end it.

    The runs are made by the client: the active run stays what it is, and other threads are not
    concerned. Where a run cannot be made, the evaluation is kept in the local folder, with a
    warning.

    ``run_id``: the parent; by default the active run.
    """
    parent: Any = None
    problem: Exception | None = None
    try:
        run_id = chosen_run(run_id)
        client = client_for()
        parent = answer_of(partial(client.get_run, run_id))
    except Exception as error:
        problem = error
    done = []
    for child in children:
        try:
            if problem is not None:
                raise problem
            nested_id = answer_of(partial(_create_nested_run, client, parent, child))
        except Exception as error:
            problem = error  # what failed once is not waited for again
            entry = write_entry(child.evaluation, Entry(predictions=settings.safe(predictions)))
            done.append(not_sent(error, child.evaluation, entry, None, strict))
            continue
        logged = log_evaluation(
            child.evaluation,
            run_id=nested_id,
            metrics=metrics,
            predictions=predictions,
            strict=strict,
        )
        done.append(logged)
        if logged.status != "completed":
            problem = ConnectionError(logged.error)
            continue
        try:
            answer_of(partial(end_run, client, nested_id))
        except Exception as error:
            if strict:
                raise
            problem = error
    return tuple(done)


def _create_nested_run(client: MlflowClient, parent: Any, child: NestedEvaluation) -> str:
    """Create the run of a child, with the tags of MLflow's own nested runs and its parameters."""
    from mlflow.entities import Param

    parent_id = parent.info.run_id
    parent_name = parent.data.tags.get(_NAME, "")
    tags = {name: text for name, text in parent.data.tags.items() if name in _COPIED_TAGS}
    tags[_PARENT] = parent_id
    name = f"{parent_name}: {child.name}" if parent_name else child.name
    run = create_run(client, parent.info.experiment_id, name, tags=tags)
    params = {"model": child.model or parent_name or parent_id, **child.params}
    logged = [Param(key, str(value)[:_MAX_PARAM]) for key, value in params.items()]
    client.log_batch(run.info.run_id, params=logged)
    return str(run.info.run_id)
