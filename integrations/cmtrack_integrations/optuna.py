"""Optuna: evaluate each trial, log it to a nested run, and rank the trials."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Unpack

from cmtrack.base import BaseEvaluation
from cmtrack.comparison import Comparison
from cmtrack.comparison.criterion import Criterion
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.own import own_metrics
from cmtrack.tracking.comparing import compare
from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import DataOptions, Hook

with needs("optuna"):
    import optuna

_RUN = "cmtrack_run_id"
_METRICS = "cmtrack_metrics"


def directions(metrics: str | Sequence[str], extra_metrics: Sequence[Metric] = ()) -> list[str]:
    """Return the direction of each metric, "maximize" or "minimize".

    A metric whose best value is zero, such as a bias, is minimised in absolute value.

    Raises
    ------
    ValueError
        If a metric does not exist, or if neither higher nor lower values of the metric are better.

    Examples
    --------
    >>> from cmtrack_integrations.optuna import directions
    >>> directions(["multiclass/accuracy", "probability/log_loss", "prevalence/bias"])
    ['maximize', 'minimize', 'minimize']
    """
    criterion = _criterion(metrics, extra_metrics)
    betters = [criterion.catalog.lookup(name).better for name in criterion.metrics]
    return ["maximize" if better == "higher" else "minimize" for better in betters]


class EvaluatedTrials:
    """Objective that evaluates trials and logs each trial to a nested run.

    The parent run is the run ``run_id`` or, by default, the run that is active when this object is
    created. The nested runs belong to the parent's experiment or, if there is no parent, to the
    active experiment. Each nested run stores the trial's parameters and the tags ``study`` and
    ``trial``. Trials never activate a run in their thread, so ``n_jobs`` may be greater than 1. If
    the evaluation of a trial fails, the objective returns NaN for this trial. Optuna then counts
    the trial as failed, and the study continues.

    Parameters
    ----------
    objective : str or sequence of str, default "multiclass/matthews_corrcoef"
        The name of a metric in the registry. Pass several names to search for a Pareto front.
    **options
        Options of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``sample_weight``, ``groups``, ``row_ids``, ``segments``, ``run_id`` (of the parent),
        ``prefix``, ``metrics``, ``predictions``, ``strict``, as in :func:`cmtrack.log_evaluation`.

    Notes
    -----
    The cost is one call of :func:`cmtrack.log_evaluation` for each trial.

    Examples
    --------
    >>> import mlflow
    >>> import optuna
    >>> from cmtrack_integrations.optuna import EvaluatedTrials
    >>> hook = EvaluatedTrials("multiclass/accuracy")
    >>> y, scores = [0, 1] * 50, [0.3, 0.6] * 40 + [0.7, 0.8] * 10
    >>> def objective(trial):
    ...     cut = trial.suggest_categorical("cut", [0.5, 0.1])
    ...     return hook(trial, y, [int(score > cut) for score in scores])
    >>> study = hook.create_study(sampler=optuna.samplers.GridSampler({"cut": [0.5, 0.1]}, seed=0))
    >>> with mlflow.start_run():
    ...     study.optimize(objective, n_trials=2)
    >>> study.best_params, study.best_value
    ({'cut': 0.5}, 0.9)
    """

    def __init__(
        self,
        objective: str | Sequence[str] = "multiclass/matthews_corrcoef",
        **options: Unpack[DataOptions],
    ) -> None:
        self._extra_metrics = tuple(options.get("extra_metrics") or ())
        self.objective = list(_criterion(objective, self._extra_metrics).metrics)
        self._hook = Hook(options, by_row=True)
        self._has_one_metric = isinstance(objective, str)
        self._experiment_id: str | None = None
        self._parent: str | None = None
        with self._hook.guarded("trials will have no runs"):
            self._find_experiment()

    def create_study(self, **how: Any) -> Any:
        """Create a study with the directions of the metrics.

        The arguments ``how`` are passed to ``optuna.create_study``.
        """
        goals = directions(self.objective, self._extra_metrics)
        return optuna.create_study(directions=goals, **how)

    def __call__(
        self, trial: Any, evaluation_or_y_true: Any, y_pred: Any = None, **more: Any
    ) -> float | tuple[float, ...]:
        """Evaluate a trial's predictions on validation rows, log the result, and return its value.

        Parameters
        ----------
        trial : optuna.Trial
        evaluation_or_y_true : Evaluation or array-like of shape (n,)
        y_pred : array-like of shape (n,), optional
        **more
            As in :func:`cmtrack.log_evaluation`. These arguments take precedence over the options
            of this object.

        Returns
        -------
        float, or tuple of float for several metrics
            The value of the metric, or the absolute value for a metric whose best value is zero.
            NaN if the metric is undefined.
        """
        hook = Hook(self._hook.options, by_row=True)
        # This id replaces the id of a run that cannot be created. It is in no store, so the
        # evaluation is saved in the local folder.
        hook.run_id = f"none-for-trial-{trial.number}"
        client = None
        with hook.guarded(f"trial {trial.number} has no run"):
            client, hook.run_id = self._create_run(trial)
        if y_pred is not None:
            more["y_pred"] = y_pred
        values = [float("nan")] * len(self.objective)
        status = "FAILED"
        with hook.guarded():
            try:
                logged = hook.log(evaluation_or_y_true, **more)
                if logged.evaluation is not None:
                    values = [_objective(logged.evaluation, name) for name in self.objective]
                    status = "FINISHED"
            finally:
                self._close(client, hook.run_id, status)
        return values[0] if self._has_one_metric else tuple(values)

    def _find_experiment(self) -> None:
        """Find the parent run, and the experiment to which the trials' runs belong."""
        from cmtrack.tracking.runs import active_experiment_id, client_for

        self._hook.begin()
        self._parent = self._hook.run_id
        client = client_for()
        if self._parent is None:
            self._experiment_id = active_experiment_id()
        else:
            self._experiment_id = str(client.get_run(self._parent).info.experiment_id)

    def _create_run(self, trial: Any) -> tuple[Any, str]:
        from mlflow.entities import Param

        from cmtrack.tracking.store import client_for

        client = client_for()
        if self._experiment_id is None:
            self._find_experiment()
        study = trial.study
        # Optuna does not record the start time of every trial.
        started = time.time() if trial.datetime_start is None else trial.datetime_start.timestamp()
        tags = {"study": study.study_name, "trial": str(trial.number)}
        if self._parent is not None:
            tags["mlflow.parentRunId"] = self._parent
        run = client.create_run(
            self._experiment_id,
            start_time=int(started * 1000),
            tags=tags,
            run_name=f"trial {trial.number}",
        )
        run_id = str(run.info.run_id)
        params = [Param(name, str(value)) for name, value in trial.params.items()]
        client.log_batch(run_id, params=params)
        trial.set_user_attr(_RUN, run_id)
        study.set_user_attr(_METRICS, self.objective)
        return client, run_id

    def _close(self, client: Any, run_id: str | None, status: str) -> None:
        if client is not None and run_id is not None:
            from cmtrack.tracking.store import end_run

            with self._hook.guarded("a trial's run could not be closed"):
                end_run(client, run_id, status)


def compare_study(study: Any, **how: Any) -> Comparison:
    """Rank a study's evaluated trials by its metrics, with paired differences between trials.

    Parameters
    ----------
    study : optuna.Study
    **how
        As in :func:`cmtrack.compare`: ``require``, ``tie_breakers``, ``rank_by``, ``limit`` and so
        on.

    Returns
    -------
    Comparison
        The runs are called "trial 0", "trial 1", …

    Raises
    ------
    ValueError
        If no trial of the study was evaluated.

    Examples
    --------
    >>> import mlflow
    >>> import optuna
    >>> from cmtrack_integrations.optuna import EvaluatedTrials, compare_study
    >>> hook = EvaluatedTrials("multiclass/accuracy")
    >>> y, scores = [0, 1] * 50, [0.3, 0.6] * 40 + [0.7, 0.8] * 10
    >>> def objective(trial):
    ...     cut = trial.suggest_categorical("cut", [0.5, 0.1])
    ...     return hook(trial, y, [int(score > cut) for score in scores])
    >>> study = hook.create_study(sampler=optuna.samplers.GridSampler({"cut": [0.5, 0.1]}, seed=0))
    >>> with mlflow.start_run():
    ...     study.optimize(objective, n_trials=2)
    >>> compare_study(study).best.evaluation.metrics["multiclass/accuracy"]
    0.9
    """
    runs = [trial.user_attrs[_RUN] for trial in study.trials if _RUN in trial.user_attrs]
    if not runs:
        raise ValueError(
            f"none of the {len(study.trials)} trials of study {study.study_name!r} was evaluated "
            f"by EvaluatedTrials"
        )
    metrics = study.user_attrs[_METRICS]
    rank_by = metrics[0] if len(metrics) == 1 else metrics
    return compare(runs, **{"rank_by": rank_by, **how})


def _criterion(metrics: str | Sequence[str], extra_metrics: Sequence[Metric]) -> Criterion:
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    return Criterion.of(names, BUILT_IN.with_own(own_metrics(extra_metrics)))


def _objective(evaluation: BaseEvaluation, name: str) -> float:
    metrics = evaluation.metrics
    if name not in metrics:
        raise ValueError(f"this evaluation has no metric {name!r}; Evaluation.metrics lists them")
    if evaluation.catalog.lookup(name).better == "nearest zero":
        return abs(metrics[name])
    return metrics[name]
