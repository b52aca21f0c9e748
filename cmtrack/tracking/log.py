"""``log_evaluation``, which training scripts call, and ``log_nested``, which logs nested runs."""

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
from cmtrack.tracking.registry import find_version
from cmtrack.tracking.store import client_for, create_run, end_run, made_runs

if TYPE_CHECKING:
    from mlflow import MlflowClient


@dataclass(frozen=True)
class LoggedEvaluation:
    """Result of logging an evaluation.

    Attributes
    ----------
    evaluation : Evaluation, FamilyEvaluation or None
        The evaluation, or None if it could not be computed.
    run_id : str or None
    status : "completed", "saved" or "failed"
        "completed" means that the evaluation is in the run, and "saved" that it was saved in a
        local folder. "failed" means that it could not be computed or saved; the local folder may
        contain the inputs.
    path : Path or None
        The local folder with the evaluation or its inputs, if the evaluation is not in the run.
    error : str
        The reason why the evaluation is not in the run; empty if the evaluation is in the run.
    problems : tuple of str
        Figures or tables that could not be created or sent.
    replaced : str
        A sentence that describes the replaced evaluation; empty if no evaluation was replaced.

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
    model: str | None = None,
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
    """Evaluate predictions, and log everything to an MLflow run; you can also pass an evaluation.

    The following is added to the run: the headline metrics, ``cmtrack_evaluation.json`` with all
    numbers and statistics, figures, a report, an image series for the chart view, a table of the
    classes, tags, and the evaluated rows as a dataset. All files are at the root of the run's
    artifacts. This call never ends, opens or breaks a training run. After any failure, even a
    misspelt argument, you get a warning, and the script continues. The warning gives the path of a
    local folder that contains the evaluation or its inputs.

    **What leaves the machine.** By default, up to 32 MB of rows are sent to the tracking store. A
    row contains the actual label, the predicted label, the probabilities, the weight, the group,
    and the segment for each declared column. Row ids are sent only as a digest. The environment
    variable ``CMTRACK_PREDICTIONS``, or ``[tool.cmtrack] predictions`` in the nearest
    ``pyproject.toml`` with this setting, limits what is sent, regardless of the code: with ``off``,
    all rows stay on this machine; with ``labels``, the probabilities stay on this machine (see
    :mod:`cmtrack.tracking.settings`). The logger ``cmtrack`` reports at level INFO what is sent.
    Statistics are always sent. They include the counts of each distinct score of the positive
    group, and counts for each value of a segment column.

    Parameters
    ----------
    evaluation_or_y_true : Evaluation, FamilyEvaluation or array-like of shape (n,)
    y_pred, y_prob, y_score, labels, calibration, target, sample_weight, groups, row_ids, segments
        The arguments of :func:`cmtrack.evaluate`, if labels are given instead of an evaluation.
    run_id : str, optional
        The run to write to; by default the active run of this thread.
    model_id : str, optional
        The logged model that the metrics belong to; by default MLflow's active model, or the only
        model that the run logged at this step.
    model : str, optional
        The version of a registered model that was evaluated: ``models:/name/3`` or
        ``models:/name@alias``. The metrics then belong to the logged model of this version, and the
        tag ``cmtrack.model`` of the run names the version.
    step : int, optional
        The step at which the metrics and the image are logged, for use during training. A run
        contains the files of its highest step, and MLflow shows the metrics of that step. If the
        step is lower than the highest step, only the metrics are logged, with a warning. If no step
        is given, the evaluation is logged at the run's highest step. A report is created at most
        every ten seconds. The report for the last step is created ten seconds after that step, or
        when the process ends.
    prefix : str, default ""
        A text to put before metric names and file names, so that a run can contain several
        evaluations. ``"val"`` and ``"val/"`` give ``val/multiclass/accuracy``, ``"val_"`` gives
        ``val_multiclass/accuracy``.
    metrics : "headline", "all" or list of names, default "headline"
        Which metrics to log as MLflow metrics; the JSON file always contains all metrics. A name
        that ends in ``/*`` stands for all metrics of a section.
    predictions : "auto", "labels", True or False
        Which rows are written to a compact Parquet file: "auto" writes all rows, up to 32 MB before
        compression; "labels" writes them without probabilities; True writes all rows, regardless of
        size; False writes no rows, not even in the local folder. Paired comparisons need the
        labels; for metrics that use scores, they also need the probabilities.
    on_existing : "replace" or "error", default "replace"
        What to do if the run already contains a different evaluation under the same prefix.
        "replace" replaces that evaluation with a warning, and removes its files if the store
        supports this. MLflow cannot remove metrics, so the tag ``cmtrack.stale_metrics`` lists the
        metrics that only the old evaluation contained. "error" keeps the new evaluation in the
        local folder instead. If ``step`` is given, each evaluation replaces the evaluation of a
        lower step. Logging the same evaluation again changes nothing.
    dataset : str, optional
        A name for the evaluated data, such as "ANES 1996, test", which appears in the run's list of
        datasets and below its figures; by default, the name consists of the number of rows and
        classes. cmtrack recognizes runs on the same data by the digest of the rows, not by this
        name.
    figures : "auto", "all", True, False or list of str, default "auto"
        Which figures to draw. "auto" and True draw the figures of the report; the confusion
        matrices and the ROC curve are also files of the run. If you pass "all" or a list of names
        (see :meth:`Evaluation.figures`), each figure is also a file of the run and is drawn at
        every ``step``. False draws no figures and no image.
    strict : bool, default False
        Whether to raise an error instead of a warning. The evaluation is kept in the local folder
        in both cases.
    **options
        The options of :class:`cmtrack.evaluation.spec.Spec`, if labels are given.

    Returns
    -------
    LoggedEvaluation

    Notes
    -----
    The cost is the time that :func:`cmtrack.evaluate` takes, about 0.04 s for each figure, and
    about ten requests to the store. For 10⁴ rows with two classes and a local SQLite store, a call
    takes about 0.3 s, or 0.15 s if ``step`` is given.

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
        model=model or "",
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
        evaluation = inputs.y_true  # written unchanged if an option is invalid
    named_run = request.run_id

    # Compute the evaluation, and find out where to send it.
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

    # Write the evaluation to the spool. The report of a step waits if another report has just been
    # drawn. The report is claimed before anything is written, so that the report of an earlier step
    # cannot follow it.
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

    # Send the evaluation to the run. If this fails, it stays in the spool.
    try:
        sent = deliver(entry)
    except BaseException as error:
        if is_interrupt(error):
            error.add_note(f"cmtrack: {_copy_sentence(entry)}")
            raise
        return not_sent(error, evaluation, entry, entry.run_id, strict)
    if not has_report and not sent.stays:
        steps.later(place, _report_sender(evaluation, request, entry), request.step or 0)

    # Warn about what was replaced or left out.
    if sent.replaced:
        tell(sent.replaced)
    problems = entry.problems + sent.problems
    if problems:
        tell(f"missing in the logged evaluation: {'; '.join(problems)}")
    return LoggedEvaluation(
        evaluation, entry.run_id, "completed", problems=problems, replaced=sent.replaced
    )


# -- evaluate --------------------------------------------------------------------------------------


def _evaluated(inputs: Inputs, options: Options) -> BaseEvaluation:
    """Compute an evaluation, and report warnings about the input.

    If an evaluation is passed, only those options are applied that can be added later.
    """
    inputs.y_prob = probabilities_of(inputs.y_prob, options)
    Spec.check_names(options, log_evaluation)
    remarks: Sequence[UserWarning] = ()
    evaluation: BaseEvaluation
    if isinstance(inputs.y_true, BaseEvaluation):
        if any(scores is not None for scores in (inputs.y_pred, inputs.y_prob, inputs.y_score)):
            raise ValueError(
                "y_pred, y_prob and y_score need actual labels, but an Evaluation was given"
            )
        evaluation = inputs.y_true.with_metrics(options.get("extra_metrics", ()))
        if options.get("headline"):
            evaluation = evaluation.asking(headline=check_headline(options["headline"]))
    else:
        evaluation, remarks = evaluated(inputs, options)
    evaluation.metrics  # noqa: B018 - computed here, so that a failure can be caught
    for remark in remarks:
        tell(str(remark), category=type(remark))
    return evaluation


def _not_computed(
    error: Exception, inputs: Inputs, request: Entry, strict: bool
) -> LoggedEvaluation:
    """Save the inputs of an evaluation that could not be computed, and issue a warning."""
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
            state += "; `cmtrack spool` explains how to log them"
    except Exception as second:
        state += f" ({text_of(second)})"
    reason = text_of(error)
    tell(f"the evaluation failed: {reason} ({state})")
    run_id = _with_right_options(request).run_id or request.run_id
    return LoggedEvaluation(None, run_id, "failed", path, reason)


# -- choose the run and the store ------------------------------------------------------------------


def _checked(request: Entry) -> Entry:
    """Return the entry with validated options and with the active run, model and store.

    Raises an error if an option is invalid or no run is active.
    """
    from mlflow import get_tracking_uri

    checked = {name: check(getattr(request, name)) for name, check in _CHECKS.items()}
    if request.model:
        if request.model_id is not None:
            raise ValueError("give model or model_id, got both")
        version = find_version(request.model, client_for())
        checked["model"] = version.uri
        checked["model_id"] = version.model_id
    checked["tracking_uri"] = get_tracking_uri()
    checked["run_name"] = name_of_run(checked["run_id"])
    return replace(request, **checked)


def _with_right_options(request: Entry) -> Entry:
    """Return an entry that contains only the valid options and, if known, the run."""
    right: dict[str, Any] = {"on_existing": "error"}
    for name, check in _CHECKS.items():
        with contextlib.suppress(Exception):
            right[name] = check(getattr(request, name))
    if "prefix" not in right:
        # Without its prefix, the entry could replace another evaluation, so do not send it to the
        # run.
        right["run_id"] = None
    predictions = settings.safe(request.predictions)
    return Entry(metric_names=request.metric_names, predictions=predictions, **right)


def _checked_on_existing(on_existing: Any) -> str:
    """Return ``on_existing``; raise ValueError if it is not "replace" or "error"."""
    if on_existing not in ("replace", "error"):
        raise ValueError(f"on_existing must be 'replace' or 'error', got {on_existing!r}")
    return str(on_existing)


def _checked_model_id(model_id: Any) -> str | None:
    """Return a model's id, by default the id of the active model; raise ValueError if invalid."""
    from mlflow import get_active_model_id

    return _checked_id(get_active_model_id() if model_id is None else model_id, "model_id")


def _checked_figures(figures: Any) -> Figures:
    """Return the option ``figures``.

    Raises ValueError for any text except "auto" and "all", and TypeError if a list contains
    anything except names.
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
    """Return a step as an int; raise ValueError for values such as 2.0 or True."""
    return None if step is None else whole_number(step, "step")


def _checked_id(text: Any, what: str) -> str | None:
    """Return an id in MLflow's format; raise ValueError if it is invalid."""
    if isinstance(text, UUID):
        return text.hex
    return None if text is None else untrusted.identifier(text, what)


def chosen_run(run_id: str | None) -> str:
    """Return the id of the given or active run.

    Raises ValueError if the id is invalid or no run is active.
    """
    checked = _checked_id(run_id, "run_id")
    if checked is not None:
        return checked
    import mlflow

    active = mlflow.active_run()
    if active is None:
        raise ValueError(
            "no run is active in this thread: log inside `with mlflow.start_run():` or pass run_id="
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
"""Functions that check the options of an entry, in the order in which errors are reported."""


def name_of_run(run_id: str) -> str:
    """Return a run's name if the run is active or created by this process, or an empty string.

    The name is not requested from the store, to save one request for each evaluation.
    """
    import mlflow

    active = mlflow.active_run()
    if active is not None and active.info.run_id == run_id and active.info.run_name:
        return str(active.info.run_name)
    return made_runs.get(run_id, "")


# -- write, and send -------------------------------------------------------------------------------


def write_entry(evaluation: BaseEvaluation, request: Entry, *, report: bool = True) -> Entry:
    """Write an evaluation to the spool; if no folder is writable, the entry gets no folder.

    If ``report`` is False, only the image for MLflow's charts is drawn.
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
        instead = "no copy is kept"
        if entry.folder is not None:
            instead = f"written instead to {entry.folder.parent}"
        refusals = "; ".join(entry.refusals)
        tell(f"the local copy could not be written to {refusals}; {instead}")
    return entry


def _write_plain_entry(evaluation: BaseEvaluation, request: Entry) -> Entry:
    """Write the evaluation and its headline metrics after finding that an option is invalid."""
    predictions = settings.safe(request.predictions)
    return write_entry(
        evaluation, replace(request, metric_names="headline", predictions=predictions)
    )


def _report_sender(evaluation: BaseEvaluation, request: Entry, sent: Entry) -> Callable[[], object]:
    """Return a function that sends the evaluation of a step again, this time with its report."""
    from mlflow import get_tracking_uri

    tracking_uri = get_tracking_uri()  # includes credentials, and may change later
    again = replace(request, timestamp=sent.timestamp)

    def send_report() -> None:
        client = client_for(tracking_uri)
        deliver(write_entry(evaluation, again), client, is_late=True)

    return send_report


def not_sent(
    error: BaseException, evaluation: BaseEvaluation, entry: Entry, run_id: str | None, strict: bool
) -> LoggedEvaluation:
    """Warn that the evaluation is in the spool and not in the run, or raise if ``strict``."""
    status = "saved"
    sentence = _copy_sentence(entry)
    if entry.folder is None:
        status = "failed"
        sentence = f"{_NOT_KEPT}: no folder on this machine could be written"
    reason = _raise_or_warn(error, sentence, strict)
    return LoggedEvaluation(evaluation, run_id, status, entry.folder, reason)


def _raise_or_warn(error: BaseException, sentence: str, strict: bool) -> str:
    """Raise the error if ``strict``; otherwise issue a warning and return the reason.

    ``sentence``: a sentence that says where the evaluation is stored.
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
    where = "" if entry.run_id else " --experiment NAME"  # push makes a run in this experiment
    return f"the evaluation is kept in {entry.folder}; `cmtrack push{where}` sends it"


def _keep_inputs_instead(inputs: Inputs, why: str) -> tuple[Path | None, str]:
    """Save the inputs of an evaluation that could not be written; return path and message."""
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
"""Tags that MLflow's fluent functions add to a nested run, but MLflow's client does not."""
_MAX_PARAM = 500
"""Maximum length, in characters, of a parameter in an MLflow 2 store."""


@dataclass(frozen=True, eq=False)
class NestedEvaluation:
    """An evaluation to be logged to a nested run.

    ``name``: text to add after the name of the parent run.
    ``params``: the parameters of the nested run.
    ``model``: the value of the parameter ``model``; by default the name of the parent run.
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
    """Log each evaluation to a new nested run, and end the nested run.

    The runs are created through MLflow's client, so the active run does not change and other
    threads are not affected. If a run cannot be created, you get a warning, and the evaluation is
    kept in the local folder.

    ``run_id``: the parent run; by default the active run.
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
            problem = error  # do not wait for the store again after a failure
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
    """Create the nested run for an evaluation, with parameters and MLflow's tags."""
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
