"""``history``: read the promotions of a registered model, and verify them from the store alone."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cmtrack import untrusted
from cmtrack.comparison.criterion import FALLBACK
from cmtrack.comparison.history import EvaluatedMonth, History, Problem, ProblemKind, problems_of
from cmtrack.comparison.promotion import Chain, RecordedPromotion
from cmtrack.evaluation.catalog import BUILT_IN, OPEN
from cmtrack.metrics.names import near_metric
from cmtrack.schemas import PROMOTION
from cmtrack.tracking import names
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.names import tag
from cmtrack.tracking.promotion import records
from cmtrack.tracking.promotion.verify import verify_promotion
from cmtrack.tracking.registry import (
    filter_by_name,
    find_model,
    model_name,
    stated_experiment,
    version_of_alias,
)
from cmtrack.tracking.store import client_for

if TYPE_CHECKING:
    from mlflow import MlflowClient

_OF_VERSION = tag("promotion.")


def history(
    model: str,
    *,
    alias: str = "champion",
    over: str = "first",
    metric: str | None = None,
    verify: bool = False,
    client: MlflowClient | None = None,
) -> History:
    """Read the history of a registered model: its champions, their gains, and what to check.

    Gains are stated only from rows that did not choose the champion. Three requests read the whole
    history. With ``verify``, every record is recomputed from the bundle in the store.

    Parameters
    ----------
    model : str
        Name of the registered model, such as ``models:/party`` or ``party``.
    alias : str, default "champion"
    over : str, default "first"
        "first", "previous" or a version, with which today's champion is compared.
    metric : str, optional
        By default, the metric of the newest record's rule.
    verify : bool, default False
        Whether to recompute all numbers and answers from the store.
    client : mlflow.MlflowClient, optional
        By default, a client for the current tracking URI.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        If the model does not exist, ``over`` is invalid, or no version has the metric.
    ConnectionError
        If the store does not answer.

    Examples
    --------
    >>> import mlflow
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cmtrack import history, promote
    >>> rows = pd.DataFrame({"x": [-2.0, -1.0, 1.0, 2.0, 0.5], "y": [0, 0, 1, 1, 0]})
    >>> with mlflow.start_run():
    ...     fitted = LogisticRegression().fit(rows[["x"]], rows["y"])
    ...     info = mlflow.sklearn.log_model(
    ...         fitted, name="model", registered_model_name="past",
    ...         serialization_format="pickle",
    ...     )
    >>> promotion = promote("models:/past/1", force="first champion")
    >>> history("models:/past").to_frame()[["version", "answer"]].to_dict("records")
    [{'version': '1', 'answer': 'first'}]
    """
    over = str(over)
    if over not in ("first", "previous") and not over.isdecimal():
        raise ValueError(f"over must be 'first', 'previous' or a version, got {over!r:.40}")
    client = client or client_for()
    name = model_name(model)
    entity = find_model(name, client)
    experiment_id = stated_experiment(entity)
    versions = list(client.search_model_versions(filter_by_name(name)))
    runs = [] if experiment_id is None else records.runs_of_history(client, experiment_id)
    found = list(records.read_promotions(runs, name, alias, client))
    current = version_of_alias(entity, alias)
    chain = Chain.from_promotions(
        [one for one in found if isinstance(one, RecordedPromotion)], current
    )
    _check_over(over, name, chain, versions)
    evaluated = tuple(_evaluated(runs, name, chain))
    if metric is not None:
        _check_metric(metric, chain, evaluated)
    story = History(
        name,
        alias,
        current,
        metric or _newest_metric(chain),
        over,
        chain,
        evaluated=evaluated,
        as_of=time.strftime("%Y-%m-%d", time.gmtime()),
    )
    problems = list(_unreadable(found))
    problems += problems_of(chain, story.terms, alias)
    problems += _against_versions(chain, versions, alias, {run.info.run_id for run in runs})
    problems += _deleted(chain, versions, runs)
    verified = None
    if verify:
        verified = 0
        by_id = {run.info.run_id: run for run in runs}
        for promotion in chain.promotions:
            problem = verify_promotion(promotion, chain, by_id[promotion.run_id], client)
            if problem is None:
                verified += 1
            else:
                problems.append(problem)
    return replace(story, problems=tuple(problems), verified=verified)


def _check_over(over: str, model: str, chain: Chain, versions: Sequence[Any]) -> None:
    """Raise ValueError if neither the registry nor a record has a version."""
    numbers = {str(version.version) for version in versions}
    known = numbers.union(*(promotion.record.models for promotion in chain.promotions))
    if over in ("first", "previous") or over in known:
        return
    newest = f", the newest is {max(numbers, key=int)}" if numbers else ""
    raise ValueError(f"{model} has no version {over}{newest}")


def _check_metric(metric: str, chain: Chain, evaluated: Sequence[EvaluatedMonth]) -> None:
    """Raise ValueError if no record and no evaluation has a metric.

    Without values in records and evaluations, the metric must be one that cmtrack knows.
    """
    names = {name for month in evaluated for name in month.metrics if OPEN.has(name)}
    for promotion in chain.promotions:
        for values in promotion.record.values.values():
            names |= values.keys()
    is_known = metric in names
    if not names:
        is_known = BUILT_IN.has(metric)
        names = set(BUILT_IN.names)
    if not is_known:
        raise ValueError(f"no version has {metric!r}{near_metric(metric, names)}")


def _newest_metric(chain: Chain) -> str:
    for promotion in reversed(chain.promotions):
        rule = promotion.record.rule
        if rule is not None and OPEN.has(rule.rank_by):
            return rule.rank_by
    return FALLBACK


# -- evaluations -----------------------------------------------------------------------------------


def _evaluated(runs: Sequence[Any], model: str, chain: Chain) -> Iterator[EvaluatedMonth]:
    """Yield the evaluations of versions, oldest first."""
    roles = {
        facts.run: facts.role
        for promotion in chain.promotions
        for facts in promotion.record.models.values()
        if facts.run is not None
    }
    for run in sorted(runs, key=lambda run: run.info.start_time or 0):
        tags = run.data.tags
        address = tags.get(tag("model"), "")
        version = address.removeprefix(f"models:/{model}/")
        if tags.get(tag("status")) != "completed" or not version.isdecimal():
            continue
        run_id = untrusted.identifier(run.info.run_id, "a run's id")
        yield EvaluatedMonth(
            version,
            roles.get(run_id, ""),
            _data_name(run),
            names.digests(tags).get("labels", ""),
            run_id,
            int(run.info.start_time or 0),
            _number(tags.get(tag("samples"))),
            dict(run.data.metrics),
            _errors(tags.get(tag("errors"), "{}")),
        )


def _data_name(run: Any) -> str:
    """Return the name of the first data set of a run."""
    inputs = getattr(getattr(run, "inputs", None), "dataset_inputs", None) or []
    if not inputs:
        return ""
    return untrusted.one_line(inputs[0].dataset.name)


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _errors(text: str) -> dict[str, float]:
    """Return the standard errors in a run's tag; empty if the tag is damaged."""
    try:
        data = untrusted.parsed_json(text, finite=True)
        return {str(name): float(error) for name, error in data.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


# -- problems --------------------------------------------------------------------------------------


def _unreadable(found: Sequence[RecordedPromotion | records.UnreadableRecord]) -> Iterator[Problem]:
    for one in found:
        if not isinstance(one, RecordedPromotion):
            sentence = f"The record of run {one.run_id} cannot be read: {one.reason}."
            yield Problem(ProblemKind.UNREADABLE, sentence, one.run_id)


def _against_versions(
    chain: Chain, versions: Sequence[Any], alias: str, run_ids: set[str]
) -> Iterator[Problem]:
    """Yield records that differ from the digests in the tags of the versions, and missing runs."""
    stated = _stated_digests(versions, alias)
    numbers = {str(version.version) for version in versions}
    for promotion in chain.promotions:
        digests = {digest for (_, run_id), digest in stated.items() if run_id == promotion.run_id}
        if digests and digests != {promotion.sha256}:
            sentence = (
                f"The record of run {promotion.run_id} was changed: its SHA-256 is not the one in "
                "the tag of the version."
            )
            yield Problem(ProblemKind.CHANGED, sentence, promotion.run_id)
        if not digests:
            sentence = (
                f"No version has the digest of the record of run {promotion.run_id}, so a change "
                "of this record cannot be noticed here."
            )
            kind = ProblemKind.GAP
            # Only challengers have the digest, and it is deleted with them.
            if numbers.isdisjoint(promotion.record.challengers):
                kind = ProblemKind.DELETED
            yield Problem(kind, sentence, promotion.run_id)
    missing = {run_id: version for version, run_id in stated if run_id not in run_ids}
    for run_id, version in missing.items():
        sentence = f"The promotion run {run_id} of version {version} is gone."
        yield Problem(ProblemKind.GONE, sentence, run_id)


def _stated_digests(versions: Sequence[Any], alias: str) -> dict[tuple[str, str], str]:
    """Return the digests of records in the tags of versions, by version and run."""
    stated = {}
    for version in versions:
        for name, text in (version.tags or {}).items():
            if not name.startswith(_OF_VERSION):
                continue
            try:
                data = PROMOTION.migrated(untrusted.parsed_json(text))
                run_id = untrusted.identifier(data["run"], "a run's id")
                if data["alias"] == alias:
                    stated[str(version.version), run_id] = str(data["record"])
            except (ValueError, KeyError, TypeError, AttributeError):
                stated[str(version.version), name.removeprefix(_OF_VERSION)] = first_line(text)
    return stated


def _deleted(chain: Chain, versions: Sequence[Any], runs: Sequence[Any]) -> Iterator[Problem]:
    """Yield deleted runs and versions, whose numbers are still in the records."""
    stages: Mapping[str, str] = {run.info.run_id: run.info.lifecycle_stage for run in runs}
    numbers = {str(version.version) for version in versions}
    gone: dict[str, str] = {}
    for promotion in chain.promotions:
        record = promotion.record
        if promotion.deleted:
            sentence = (
                f"The promotion run {promotion.run_id} of {record.made[:10]} is deleted: MLflow "
                "keeps it until `mlflow gc`."
            )
            yield Problem(ProblemKind.DELETED, sentence, promotion.run_id)
        for version, facts in record.models.items():
            if version not in numbers:
                gone.setdefault(version, record.made[:10])
            if facts.run is not None and stages.get(facts.run, "gone") != "active":
                state = "deleted" if facts.run in stages else "gone"
                rows = "" if record.rows is None else f" on {record.rows.name}"
                sentence = (
                    f"The evaluation run of version {version}{rows} is {state}: its numbers are in "
                    "the record and in the bundle."
                )
                yield Problem(ProblemKind.DELETED, sentence, promotion.run_id)
    for version, day in gone.items():
        yield Problem(
            ProblemKind.DELETED, f"Version {version} of {day} was deleted from the registry."
        )
