"""Evaluations as nested runs: folds of a cross-validation, candidates of a search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cmtrack.evaluation import Evaluation
from cmtrack.tracking import log, settings
from cmtrack.tracking.deliver import within_patience
from cmtrack.tracking.send import probe
from cmtrack.tracking.store import end_run

if TYPE_CHECKING:
    from mlflow import MlflowClient

_PARENT = "mlflow.parentRunId"
_NAME = "mlflow.runName"
_KEPT_TAGS = ("mlflow.user", "mlflow.source.name", "mlflow.source.type")
_MAX_PARAM = 500


@dataclass(frozen=True, eq=False)
class NestedEvaluation:
    """An evaluation that gets a run of its own below another.

    Attributes
    ----------
    name : str
        Put after the parent's name.
    evaluation : Evaluation
    params : mapping
        Parameters of the run.
    model : str, optional
        The parameter ``model``; by default the parent's name.
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
) -> tuple[log.LoggedEvaluation, ...]:
    """Log each evaluation to a new run below ``run_id`` (by default the active run), which has ended afterwards.

    The runs are made by the client: the active run stays what it is, and other threads are not concerned. Where a run
    cannot be made, the evaluation is kept in the local folder, with a warning.
    """
    from mlflow import MlflowClient

    client = MlflowClient()
    parent: Any = None
    problem: Exception | None = None
    try:
        run_id = log.chosen_run(run_id)
        probe(client.tracking_uri)
        parent = within_patience(lambda _: client.get_run(run_id))
    except Exception as error:
        problem = error
    done = []
    for child in children:
        try:
            if problem is not None:
                raise problem
            made = within_patience(lambda _, child=child: _make(client, parent, child))  # type: ignore[misc]
        except Exception as error:
            problem = error  # what failed once is not waited for again
            package = log.spooled(child.evaluation, log.Destination(predictions=settings.safe(predictions)))
            done.append(log.not_sent(error, child.evaluation, package.folder, None, strict))
            continue
        logged = log.log_evaluation(
            child.evaluation, run_id=made, metrics=metrics, predictions=predictions, strict=strict
        )
        done.append(logged)
        if logged.status != "completed":
            problem = ConnectionError(logged.error)
            continue
        try:
            within_patience(lambda _, made=made: end_run(client, made))  # type: ignore[misc]
        except Exception as error:
            if strict:
                raise
            problem = error
    return tuple(done)


def _make(client: MlflowClient, parent: Any, child: NestedEvaluation) -> str:
    from mlflow.entities import Param

    name = parent.data.tags.get(_NAME, "")
    tags = {tag: parent.data.tags[tag] for tag in _KEPT_TAGS if tag in parent.data.tags}
    run = client.create_run(
        parent.info.experiment_id,
        run_name=f"{name}: {child.name}" if name else child.name,
        tags={**tags, _PARENT: parent.info.run_id},
    )
    given = {"model": child.model or name or parent.info.run_id, **child.params}
    params = [Param(key, str(value)[:_MAX_PARAM]) for key, value in given.items()]
    client.log_batch(run.info.run_id, params=params)
    return str(run.info.run_id)
