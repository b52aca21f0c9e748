"""Promotion runs in a store, and the records that they contain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack import untrusted
from cmtrack.comparison.promotion import RecordedPromotion
from cmtrack.comparison.promotion_record import MAX_BYTES, PromotionRecord, digest_of
from cmtrack.tracking import artifacts
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.names import KIND_TAG, REVIEW, tag

if TYPE_CHECKING:
    from mlflow import MlflowClient

RECORD_FILE = "cmtrack_promotion.json"
BUNDLE_FILE = "cmtrack_review.zip"
RULE_FILE = "cmtrack_rule.yaml"
SUMMARY_FILE = "cmtrack_promotion.md"
RECORD = tag("record")
"""Tag of a promotion run with its record, or with the digest of a record that is too long."""
MOVED = tag("alias")
"""Tag of a promotion run that moved an alias, such as ``party@champion``."""
OF_ALIAS = tag("promotion")
"""Tag of a promotion run with the alias that it is about, such as ``party@champion``."""
MAX_RUN_TAG = 8000
"""Number of characters after which MLflow cuts off a run's tag without an error."""
_PAGE = 1000


@dataclass(frozen=True)
class UnreadableRecord:
    """A promotion run whose record cannot be read, and the reason."""

    run_id: str
    reason: str


def record_tag(content: bytes) -> str:
    """Return the text of the tag with a record; a long record is only named by its digest."""
    text = content.decode("utf-8")
    if len(text) <= MAX_RUN_TAG:
        return text
    return f'{{"file":"{RECORD_FILE}","sha256":"{digest_of(content)}"}}'


def runs_of_history(client: MlflowClient, experiment_id: str, filter_string: str = "") -> list[Any]:
    """Return all runs of a history experiment, including deleted runs; usually one request."""
    from mlflow.entities import ViewType

    runs: list[Any] = []
    token = None
    while True:
        page = client.search_runs(
            [experiment_id],
            filter_string,
            run_view_type=ViewType.ALL,
            max_results=_PAGE,
            page_token=token,
        )
        runs += page
        token = page.token
        if not token:
            return runs


def promotion_runs(client: MlflowClient, experiment_id: str) -> list[Any]:
    """Return the promotion runs of a history experiment."""
    return runs_of_history(client, experiment_id, f"tags.`{KIND_TAG}` = '{REVIEW}'")


def read_promotions(
    runs: Iterable[Any], model: str, alias: str, client: MlflowClient
) -> Iterator[RecordedPromotion | UnreadableRecord]:
    """Yield the promotions of an alias from the runs of its experiment.

    A run without a record is unfinished and is skipped.
    """
    for run in runs:
        tags = run.data.tags
        if RECORD not in tags or tags.get(OF_ALIAS, f"{model}@{alias}") != f"{model}@{alias}":
            continue
        run_id = untrusted.identifier(run.info.run_id, "a run's id")
        try:
            content = _content_of(run, client)
            record = PromotionRecord.parse(content)
            if (record.model, record.alias) != (model, alias):
                raise ValueError(f"it is about {record.alias} of {record.model}")
        except Exception as error:  # a file may be missing, and an artifact store may refuse
            yield UnreadableRecord(run_id, first_line(error))
            continue
        yield RecordedPromotion(
            run_id,
            record,
            content,
            moved=record.chosen is not None and tags.get(MOVED) == f"{model}@{alias}",
            deleted=run.info.lifecycle_stage != "active",
        )


def _content_of(run: Any, client: MlflowClient) -> bytes:
    """Return the bytes of a run's record, from the tag or, if the record is long, the file."""
    text = run.data.tags[RECORD]
    data = untrusted.parsed_json(text)
    if isinstance(data, dict) and data.keys() == {"file", "sha256"}:
        content = read_artifact(run, RECORD_FILE, client, MAX_BYTES)
        if digest_of(content) != data["sha256"]:
            raise ValueError("the file differs from the digest in the run's tag")
        return content
    return str(text).encode("utf-8")


def read_artifact(run: Any, name: str, client: MlflowClient, limit: int) -> bytes:
    """Return the bytes of a run's artifact; raise ValueError if it is larger than the limit."""
    return artifacts.read(run.info.artifact_uri, name, client.tracking_uri, limit)
