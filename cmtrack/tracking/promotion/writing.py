"""Writing a promotion into a store, and moving the alias.

The order survives a crash at any point. Evaluation runs come first. The promotion run gets its
record only after all files, so that a run without a record is unfinished. The alias moves last. If
the process ends before, the next call finds the record and completes it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.promotion import (
    Challenge,
    Promotion,
    RecordedPromotion,
)
from cmtrack.comparison.promotion_record import (
    PromotionRecord,
    canonical_json,
    digest_of,
)
from cmtrack.comparison.result import RunComparison
from cmtrack.report.formatting import short_id
from cmtrack.report.promotion import promotion_markdown, verdict_in_short
from cmtrack.report.review import bundle
from cmtrack.schemas import PROMOTION
from cmtrack.tracking._warn import first_line, mlflow_errors_as
from cmtrack.tracking.description import NOTE, artifact_link
from cmtrack.tracking.log import log_evaluation
from cmtrack.tracking.model_rows import EvaluatedModel
from cmtrack.tracking.names import tag, tag_text
from cmtrack.tracking.promotion import NotMoved, records
from cmtrack.tracking.promotion.evaluations import Evaluated, compare_versions
from cmtrack.tracking.promotion.request import Found, Request, empty_record, promotion_of
from cmtrack.tracking.publish import HTML_FILE, ReviewTexts, write_review
from cmtrack.tracking.registry import (
    find_model,
    history_experiment,
    version_of_alias,
)
from cmtrack.tracking.runs import from_entity
from cmtrack.tracking.settings import kept_rows, with_kept_rows
from cmtrack.tracking.store import create_run, end_run

if TYPE_CHECKING:
    from mlflow import MlflowClient


def write(
    request: Request,
    found: Found,
    record: PromotionRecord,
    challenges: tuple[Challenge, ...],
    evaluated: Evaluated,
    client: MlflowClient,
) -> Promotion:
    """Log the evaluations, write the promotion run, and move the alias."""
    if record.rows is None:
        raise ValueError("a promotion with evaluations needs rows")
    experiment_id = history_experiment(found.challengers[0], client)
    for number, model in evaluated.models.items():
        evaluated.run_ids[number] = _log(model, experiment_id, record.rows.name, client)
    runs = {
        number: replace(from_entity(client.get_run(run_id), client), name=f"version {number}")
        for number, run_id in evaluated.run_ids.items()
    }
    comparison = compare_versions(evaluated, found, runs)
    archive, manifest = _bundle(comparison)
    models = {
        number: replace(facts, run=evaluated.run_ids[number])
        for number, facts in record.models.items()
    }
    record = replace(record, models=models, bundle=manifest)
    sha256 = digest_of(record.to_bytes())
    promotion = promotion_of(record, challenges, comparison, evaluated.notes)
    problems: list[str] = []
    # The alias moves after all files are written.
    summary = promotion_markdown(promotion, with_alias=False)
    files = {
        records.RECORD_FILE: record.to_bytes(),
        records.BUNDLE_FILE: archive,
        records.RULE_FILE: evaluated.settled.content,
        records.SUMMARY_FILE: summary.encode("utf-8"),
    }
    run_id = write_review(
        comparison,
        client,
        experiment_id,
        _run_name(record),
        problems,
        files=files,
        tags=_run_tags(record),
        link=False,
        first=summary,
    )
    promotion = replace(promotion, run_id=run_id, experiment_id=experiment_id, sha256=sha256)
    promotion = _finished(request, found, promotion, client)
    link = artifact_link(experiment_id, run_id, HTML_FILE)
    texts = ReviewTexts(comparison, run_id, link, problems)
    given_versions: dict[str, list[Any]] = {}
    for number, run in runs.items():
        texts.attempt(
            f"version {number}",
            partial(_add_version, given_versions, run.run_id, found.model, number, client),
        )
    texts.tag_all({client.tracking_uri: client}, given_versions)
    return replace(promotion, notes=(*promotion.notes, *problems))


def _add_version(
    versions: dict[str, list[Any]], run_id: str, model: str, number: str, client: MlflowClient
) -> None:
    versions[run_id] = [client.get_model_version(model, number)]


def _log(model: EvaluatedModel, experiment_id: str, dataset: str, client: MlflowClient) -> str:
    """Log an evaluation to a new run of the history experiment, and return the run's id."""
    name = f"version {model.version.number} on {dataset}"
    run_id = str(create_run(client, experiment_id, name).info.run_id)
    try:
        log_evaluation(
            model.evaluation,
            run_id=run_id,
            model=model.version.uri,
            dataset=dataset,
            strict=True,
        )
    except BaseException:
        end_run(client, run_id, "FAILED", link=False)
        raise
    end_run(client, run_id, link=False)
    return run_id


def _bundle(comparison: RunComparison) -> tuple[bytes, str]:
    """Return the bundle of a review, and the digest of its manifest.

    The bundle contains rows only if the settings allow all rows to leave this machine.
    """
    judged = []
    has_rows = kept_rows().content == "all"
    for candidate in comparison.judged:
        kept, _ = with_kept_rows(candidate.evaluation)
        if kept is None:
            has_rows = False
        judged.append(replace(candidate, evaluation=kept or candidate.evaluation))
    if has_rows:
        comparison = replace(comparison, judged=tuple(judged))
    files = bundle.contents(comparison, rows=has_rows)
    return bundle.packed(files), bundle.digest_of_manifest(files)


def _run_name(record: PromotionRecord) -> str:
    challengers = " and ".join(record.challengers)
    noun = "version" if len(record.challengers) == 1 else "versions"
    rows = "" if record.rows is None else f" on {record.rows.name}"
    return f"promote: {noun} {challengers}{rows}"


def _run_tags(record: PromotionRecord) -> dict[str, str]:
    answer = "" if record.answer is None else record.answer.value
    return {
        records.OF_ALIAS: f"{record.model}@{record.alias}",
        tag("answer"): answer or "by force",
        records.RECORD: records.record_tag(record.to_bytes()),
    }


def write_without_rows(request: Request, found: Found, client: MlflowClient) -> Promotion:
    """Record a move by force without rows, and move the alias."""
    record = empty_record(request, found)
    experiment_id = history_experiment(found.challengers[0], client)
    sha256 = digest_of(record.to_bytes())
    promotion = promotion_of(record, (), None, found.notes)
    run = create_run(client, experiment_id, _run_name(record))
    run_id = str(run.info.run_id)
    try:
        client.log_text(run_id, record.to_bytes().decode("utf-8"), records.RECORD_FILE)
        summary = promotion_markdown(promotion, with_alias=False)
        client.log_text(run_id, summary, records.SUMMARY_FILE)
        client.set_tag(run_id, NOTE, summary)
        for name, text in {tag("kind"): "review", **_run_tags(record)}.items():
            client.set_tag(run_id, name, text)
    except BaseException:
        end_run(client, run_id, "FAILED", link=False)
        raise
    end_run(client, run_id, link=False)
    promotion = replace(promotion, run_id=run_id, experiment_id=experiment_id, sha256=sha256)
    return _finished(request, found, promotion, client)


def complete(
    request: Request,
    found: Found,
    recorded: RecordedPromotion,
    challenges: tuple[Challenge, ...],
    evaluated: Evaluated,
    client: MlflowClient,
) -> Promotion:
    """Return a decision that was recorded before; move the alias if this is still to be done.

    The alias is still at the champion, even if the recorded promotion moved it: somebody moved it
    back without a record.
    """
    run_id = recorded.run_id
    note = f"Recorded before, as run {short_id(run_id)}: this is no new look."
    comparison = compare_versions(evaluated, found, {})
    promotion = replace(
        promotion_of(recorded.record, challenges, comparison, [*evaluated.notes, note]),
        run_id=run_id,
        experiment_id=found.experiment_id,
        sha256=recorded.sha256,
    )
    if request.dry_run:
        return promotion
    return _finished(request, found, promotion, client)


def _finished(
    request: Request, found: Found, promotion: Promotion, client: MlflowClient
) -> Promotion:
    """Tag the challengers' versions with the decision, and move the alias if it is to be moved."""
    record = promotion.record
    for version in found.challengers:
        facts = record.models[version.number]
        data = {
            "schema": PROMOTION.newest,
            "alias": record.alias,
            "against": record.champion,
            "answer": None if facts.answer is None else facts.answer.value,
            "rows": None if record.rows is None else record.rows.labels,
            "run": promotion.run_id,
            "record": promotion.sha256,
        }
        texts = {
            f"promotion.{promotion.run_id[:8]}": canonical_json(data).decode("utf-8"),
            "verdict": tag_text(verdict_in_short(promotion, version.number)),
        }
        for name, text in texts.items():
            client.set_model_version_tag(version.name, version.number, tag(name), text)
    if not request.move or record.chosen is None:
        return promotion
    _move(found, promotion, client)
    return replace(promotion, moved=True)


def _named(number: str | None) -> str:
    return "no version" if number is None else f"version {number}"


def _move(found: Found, promotion: Promotion, client: MlflowClient) -> None:
    """Move the alias, unless somebody moved it since the call began."""
    record = promotion.record
    run_id = promotion.run_id
    recorded = f"recorded as run {short_id(run_id)}"
    current = version_of_alias(find_model(record.model, client), record.alias)
    if current != found.champion_number:
        raise NotMoved(
            f"{recorded}, but {record.alias} moved from {_named(found.champion_number)} to "
            f"{_named(current)} meanwhile: nothing was moved",
            run_id,
        )
    try:
        with mlflow_errors_as(f"{recorded}, but the alias was refused"):
            client.set_registered_model_alias(record.model, record.alias, record.chosen)
    except ValueError as error:
        raise NotMoved(first_line(error), run_id) from None
    client.set_tag(run_id, records.MOVED, f"{record.model}@{record.alias}")
