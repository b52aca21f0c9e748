"""Request for a promotion: arguments, versions, and the chain of earlier records."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.promotion import (
    Chain,
    Challenge,
    Promotion,
    RecordedPromotion,
)
from cmtrack.comparison.promotion_record import (
    MAX_NAME,
    ModelFacts,
    PromotionRecord,
)
from cmtrack.comparison.promotion_rule import PromotionRule
from cmtrack.comparison.record import versions
from cmtrack.comparison.result import RunComparison
from cmtrack.evaluation.labelled_rows import StoredColumns
from cmtrack.grouping import Label
from cmtrack.report.formatting import short_id
from cmtrack.tracking import mlflow_inside
from cmtrack.tracking.promotion import records
from cmtrack.tracking.registry import (
    ModelVersion,
    find_model,
    find_version,
    stated_experiment,
    version_of_alias,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient


CHALLENGER, CHAMPION, PREVIOUS, FIRST = "challenger", "champion", "previous", "first"


_ALIAS = re.compile(r"(?!latest$|v[0-9]+$)[A-Za-z0-9_-]{1,255}", re.IGNORECASE)


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`promote` that decide and that say what to write."""

    rule: PromotionRule
    stored: StoredColumns
    labels: Sequence[Label] | None
    options: Mapping[str, Any]
    alias: str
    move: bool
    dry_run: bool
    force: str | None

    def check(self, data: Any, y_true: str | None, also: str, name: str | None) -> None:
        """Raise ValueError if arguments contradict each other, or if a text is too long."""
        for argument, text in {"force": self.force, "name": name}.items():
            if text is not None and len(text) > MAX_NAME:
                raise ValueError(
                    f"{argument} must have at most {MAX_NAME} characters, got {len(text):,}"
                )
        if self.force is not None and not self.force.strip():
            raise ValueError("force must state a reason, such as 'first champion', got no text")
        if self.dry_run and self.move:
            raise ValueError("dry_run writes nothing: leave out move and force")
        if not _ALIAS.fullmatch(self.alias):
            raise ValueError(
                "an alias must have letters, digits, '_' and '-', and must not be 'latest' or a "
                f"version such as 'v3', got {self.alias!r:.60}"
            )
        if also not in ("all", "none"):
            raise ValueError(f"also must be 'all' or 'none', got {also!r}")
        if (data is None) != (y_true is None):
            raise ValueError("give data and y_true together")
        if data is None and self.force is None:
            raise ValueError("data must contain labelled rows; only force works without them")


@dataclass(frozen=True)
class Found:
    """The versions, and the recorded promotions of the alias.

    ``experiment_id``: id of the history experiment; empty if there is none.
    ``notes``: remarks on records that cannot be read.
    """

    challengers: tuple[ModelVersion, ...]
    champion: ModelVersion | None
    chain: Chain
    experiment_id: str = ""
    notes: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """The name of the registered model."""
        return self.challengers[0].name

    @property
    def champion_number(self) -> str | None:
        """The champion's version; None if the alias is not set."""
        return None if self.champion is None else self.champion.number


def find(
    challengers: str | Sequence[str], alias: str, client: MlflowClient, force: str | None
) -> Found:
    """Find the versions of challengers and champion, and read the chain of records."""
    uris = [challengers] if isinstance(challengers, str) else list(challengers)
    if not uris:
        raise ValueError("challengers must contain at least one version, got none")
    versions = [find_version(uri, client) for uri in uris]
    names = list(dict.fromkeys(version.name for version in versions))
    if len(names) > 1:
        raise ValueError(
            f"challengers must be versions of one registered model, got {' and '.join(names)}"
        )
    numbers = [version.number for version in versions]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"each challenger must be given once, got versions {', '.join(numbers)}")
    if force is not None and len(numbers) > 1:
        raise ValueError(f"force moves the alias to one version, got {', '.join(numbers)}")
    model = find_model(names[0], client)
    current = version_of_alias(model, alias)
    if current is None and force is None:
        command = f'cmtrack promote {versions[0].uri} --force "first champion"'
        if alias != "champion":
            command += f" --alias {alias}"
        raise ValueError(f"{names[0]} has no alias {alias!r}; name the first champion: {command}")
    if current in numbers:
        raise ValueError(f"version {current} is the {alias} already")
    champion = None
    if current is not None:
        champion = find_version(f"models:/{names[0]}/{current}", client)
    experiment_id = stated_experiment(model)
    if experiment_id is None:
        return Found(tuple(versions), champion, Chain())
    runs = records.promotion_runs(client, experiment_id)
    readable = []
    notes = []
    for one in records.read_promotions(runs, model.name, alias, client):
        if isinstance(one, RecordedPromotion):
            readable.append(one)
        else:
            notes.append(
                f"The record of run {short_id(one.run_id)} cannot be read, so its looks do not "
                f"count: {one.reason}"
            )
    chain = Chain.from_promotions(readable, current)
    if chain.promotions and chain.promotions[-1].champion_after != current:
        notes.append(
            f"Since the last record, {alias} moved from version "
            f"{chain.promotions[-1].champion_after} to version {current} without a record"
        )
    return Found(tuple(versions), champion, chain, experiment_id, tuple(notes))


def empty_record(request: Request, found: Found) -> PromotionRecord:
    """Return a record without rows."""
    models = {
        version.number: ModelFacts(CHALLENGER, None, version.model_id, version.made)
        for version in found.challengers
    }
    if found.champion is not None:
        models[found.champion.number] = ModelFacts(
            CHAMPION, None, found.champion.model_id, found.champion.made
        )
    chosen = None
    if request.force is not None:
        chosen = found.challengers[0].number
    return PromotionRecord(
        model=found.model,
        alias=request.alias,
        answer=None,
        chosen=chosen,
        forced=request.force,
        made=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        author=mlflow_inside.user_name() or "",
        versions=versions(),
        models=models,
        previous=found.chain.head,
    )


def promotion_of(
    record: PromotionRecord,
    challenges: tuple[Challenge, ...],
    comparison: RunComparison | None,
    notes: Iterable[str],
) -> Promotion:
    """Return the result of a call, before anything is written."""
    version = record.chosen or record.challengers[0]
    return Promotion(
        record, version, False, challenges, comparison, notes=tuple(dict.fromkeys(notes))
    )
