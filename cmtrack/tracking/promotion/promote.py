"""``promote``: compare a version of a registered model with the champion on the same rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from cmtrack.comparison.promotion import (
    MOST_LOOKS,
    Chain,
    Challenge,
    Promotion,
    RecordedPromotion,
    decide,
    pair_facts,
)
from cmtrack.comparison.promotion_record import (
    GateFacts,
    ModelFacts,
    PairFacts,
    PromotionRecord,
    RowsFacts,
)
from cmtrack.comparison.promotion_rule import PromotionRule
from cmtrack.comparison.run import Candidate, Run
from cmtrack.comparison.verdict import Answer
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.labelled_rows import LabelledRows, StoredColumns
from cmtrack.evaluation.spec import Options, Spec, takes_options
from cmtrack.grouping import Label
from cmtrack.names import join_names
from cmtrack.report.formatting import short_id
from cmtrack.report.promotion import chosen_before
from cmtrack.tracking.promotion.evaluations import Evaluated, compare_versions, evaluate_versions
from cmtrack.tracking.promotion.request import (
    Found,
    Request,
    empty_record,
    find,
    promotion_of,
)
from cmtrack.tracking.promotion.writing import complete, write, write_without_rows
from cmtrack.tracking.store import client_for, tracking_store

if TYPE_CHECKING:
    from mlflow import MlflowClient


@takes_options
def promote(
    challengers: str | Sequence[str],
    *,
    data: Any = None,
    y_true: str | None = None,
    y_pred: str | None = None,
    y_prob: str | None = None,
    y_score: str | None = None,
    labels: Sequence[Label] | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    row_ids: str | None = None,
    segments: Sequence[str | tuple[str, ...]] | None = None,
    rule: Any = None,
    require: str | Sequence[str] = (),
    rank_by: str | None = None,
    alias: str = "champion",
    also: str = "all",
    name: str | None = None,
    move: bool = False,
    dry_run: bool = False,
    force: str | None = None,
    client: MlflowClient | None = None,
    **options: Unpack[Options],
) -> Promotion:
    """Compare versions of a registered model with the champion, and record the decision.

    The champion is the version that ``alias`` names. Champion and challengers are evaluated on the
    same rows. The answer is "promote" if every gate of the rule holds, "keep" if the rows refute a
    gate, and "cannot tell" otherwise. If earlier months could not tell for the same versions and
    the same rule, their rows are joined with these rows. After three months, the champion stays.

    Each call writes one promotion run into the experiment "<model>: history", with a review, a
    bundle and a record. The records form a chain of digests, which :func:`cmtrack.history` reads.
    The alias moves only if you ask for it with ``move`` or ``force``.

    Parameters
    ----------
    challengers : str or sequence of str
        Versions such as ``models:/party/5``. Several challengers are compared with the champion at
        the level 1 - 0.05/m, and the best of those that pass is promoted.
    data : path, list of paths, or frame
        Labelled rows, as in :func:`cmtrack.evaluate_model`. They may be omitted with ``force``.
    y_true, y_pred, y_prob, y_score, labels, sample_weight, groups, row_ids, segments
        As in :func:`cmtrack.evaluate_model`. In the names of stored predictions, ``{version}``
        stands for the number of a version, and ``{role}`` for champion, challenger, previous or
        first.
    rule : path, optional
        A rule file, as in :func:`cmtrack.compare`.
    require : str or sequence of str
        Gates, instead of a rule file. By default, ``<rank_by>.difference.low > 0``.
    rank_by : str, optional
        The metric, as in :func:`cmtrack.compare`.
    alias : str, default "champion"
    also : "all" or "none", default "all"
        Whether the previous and the first champion are evaluated as well. They do not take part in
        the decision, but the history needs them to state gains on these rows.
    name : str, optional
        Name of the rows, by default the name of the file.
    move : bool, default False
        Whether to move the alias if the answer is "promote". If the same decision was recorded
        before, the alias moves and no new test is made.
    dry_run : bool, default False
        Whether to write nothing. The history cannot count this look.
    force : str, optional
        Reason for moving the alias whatever the answer is, such as "first champion".
    client : mlflow.MlflowClient, optional
        By default, a client for the current tracking URI.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    Promotion

    Raises
    ------
    ValueError, TypeError
        If a version, the alias or a column does not exist, if a version cannot be loaded or
        evaluated, if a challenger had three looks, or if options contradict each other.
    NotMoved
        If the decision is recorded, but the alias was moved meanwhile or MLflow refused to move it.
    ConnectionError
        If the store does not answer.

    Examples
    --------
    >>> import mlflow
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cmtrack import promote
    >>> rows = pd.DataFrame({"x": [-2.0, -1.0, 1.0, 2.0, 0.5], "y": [0, 0, 1, 1, 0]})
    >>> with mlflow.start_run():
    ...     fitted = LogisticRegression().fit(rows[["x"]], rows["y"])
    ...     info = mlflow.sklearn.log_model(
    ...         fitted, name="model", registered_model_name="sign",
    ...         serialization_format="pickle",
    ...     )
    >>> promote("models:/sign/1", force="first champion")
    Promotion(version 1 of sign is champion by force: first champion)
    """
    Spec.check_names(options, promote)
    level = options.get("confidence_level")
    request = Request(
        rule=PromotionRule.from_arguments(rule, require, rank_by, level),
        stored=StoredColumns(y_pred, y_prob, y_score),
        labels=labels,
        options=options,
        alias=alias,
        move=move or force is not None,
        dry_run=dry_run,
        force=force,
    )
    request.check(data, y_true, also, name)
    client = client or client_for()
    # MLflow loads models from its current store, which must be the store of the client.
    with tracking_store(client.tracking_uri):
        found = find(challengers, alias, client, force)
        if data is None or y_true is None:
            return write_without_rows(request, found, client)
        rows = LabelledRows.read(
            data,
            y_true,
            sample_weight=sample_weight,
            groups=groups,
            row_ids=row_ids,
            segments=segments,
        )
        name = name or _name_of_rows(data)
        return _promoted(request, found, rows, name, also, client)


def _promoted(
    request: Request,
    found: Found,
    rows: LabelledRows,
    name: str,
    also: str,
    client: MlflowClient,
) -> Promotion:
    """Evaluate, decide, record, and move the alias."""
    evaluated = evaluate_versions(request, found, rows, also, client)
    evaluated.notes += found.notes
    facts = _rows_facts(evaluated.first, rows, name)
    if facts.ids is None and found.chain.promotions:
        evaluated.notes.append(
            "Without row ids, rows that were used before are recognized by the order of their "
            "labels only. Give row_ids."
        )
    for promotion in found.chain.of_rows(facts):
        if promotion.moved:
            evaluated.notes.append(chosen_before(promotion.record))
    rule = evaluated.settled.facts(len(found.challengers), request.options)
    recorded = _recorded_before(request, found, facts, rule.question)
    if recorded is not None:
        before = found.chain.before(recorded)
        challenges = _decide(request, evaluated, before, facts, rule.question)
        if _has_equal_numbers(recorded, challenges):
            return complete(request, found, recorded, challenges, evaluated, client)
        evaluated.notes.append(
            f"Run {short_id(recorded.run_id)} compared the same versions on these rows, but with "
            "other numbers. Options or predictions have changed since."
        )
    challenges = _decide(request, evaluated, found.chain, facts, rule.question)
    record = replace(_record(request, found, evaluated, challenges, facts), rule=rule)
    # A record that cannot be read again must fail before anything is written.
    record.to_bytes()
    if request.dry_run:
        evaluated.notes.append("Not recorded: history cannot count this look.")
        comparison = compare_versions(evaluated, found, {})
        return promotion_of(record, challenges, comparison, evaluated.notes)
    return write(request, found, record, challenges, evaluated, client)


def _recorded_before(
    request: Request, found: Found, rows: RowsFacts, question: str
) -> RecordedPromotion | None:
    """Return the recorded promotion that answers the request; None if there is no such record.

    Only the newest record can move the alias. A later record already names the champion that
    stayed, so an older decision is recorded again.
    """
    if found.champion is None or request.force is not None:
        return None
    numbers = [version.number for version in found.challengers]
    recorded = found.chain.same_question(numbers, found.champion.number, rows, question)
    if recorded is None or not request.move or recorded.record.chosen is None:
        return recorded
    return recorded if recorded == found.chain.promotions[-1] else None


def _has_equal_numbers(recorded: RecordedPromotion, challenges: Sequence[Challenge]) -> bool:
    """Return whether the differences and the gates on these rows are those of the record."""
    record = recorded.record
    for pair in (pair for one in challenges for pair in one.pairs):
        earlier = record.pair(pair.new, pair.old, pair.metric)
        if earlier is None:
            return False
        for name in ("difference", "standard_error", "low", "high"):
            if not _is_equal(getattr(pair, name), getattr(earlier, name)):
                return False
    outcomes = {(gate.version, gate.text): gate for gate in record.gates}
    for challenge in challenges:
        if record.models[challenge.version].answer is not challenge.answer:
            return False
        for check in challenge.checks:
            gate = outcomes.get((challenge.version, check.gate.text))
            if gate is None or gate.outcome is not check.outcome:
                return False
            if not _is_equal(gate.value, check.value):
                return False
    return True


def _is_equal(ours: float, theirs: float) -> bool:
    """Return whether two numbers agree; the last digits may depend on the version of NumPy."""
    if math.isnan(ours) and math.isnan(theirs):
        return True
    return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-9)


def _name_of_rows(data: Any) -> str:
    """Return the names of files without their endings, or the date."""
    files = data if isinstance(data, (list, tuple)) else [data]
    if all(isinstance(file, (str, Path)) for file in files):
        return join_names([Path(file).stem for file in files])
    return time.strftime("%Y-%m-%d", time.gmtime())


def _rows_facts(evaluation: Evaluation, rows: LabelledRows, name: str) -> RowsFacts:
    ids = evaluation.statistics.row_ids
    clusters = None
    if rows.groups is not None:
        clusters = int(rows.column(rows.groups).nunique())
    n = float(evaluation.n_samples)
    return RowsFacts(
        name,
        int(n) if n.is_integer() else n,
        evaluation.labels_digest,
        None if ids is None else str(ids),
        clusters,
    )


def _decide(
    request: Request, evaluated: Evaluated, chain: Chain, facts: RowsFacts, question: str
) -> tuple[Challenge, ...]:
    """Return the decision on each challenger; empty if there is no champion.

    A move by force needs no decision, so it is possible after three looks.
    """
    champion = evaluated.champion
    if champion is None:
        return ()
    candidate = Candidate(Run(champion, champion), evaluated.evaluations[champion])
    settled = evaluated.settled
    challenges = []
    for number in evaluated.challengers:
        looks = chain.looks(number, champion, question).without_rows(facts)
        if looks.n_months >= MOST_LOOKS and request.force is None:
            raise ValueError(f"version {number} had its three looks at version {champion}")
        challenges.append(
            decide(
                (number, evaluated.evaluations[number]),
                (champion, candidate),
                settled.gates,
                settled.rank_by,
                looks,
            )
        )
    return tuple(challenges)


def _chosen(request: Request, evaluated: Evaluated, challenges: Sequence[Challenge]) -> str | None:
    """Return the version that the alias should name; None if the champion stays."""
    if request.force is not None:
        return evaluated.challengers[0]
    passing = [one for one in challenges if one.answer is Answer.PROMOTE]
    if not passing:
        return None
    metric = evaluated.settled.rank_by
    better = evaluated.first.catalog.lookup(metric).better
    sign = -1 if better == "lower" else 1
    return max(passing, key=lambda one: sign * one.difference(metric).difference).version


def _record(
    request: Request,
    found: Found,
    evaluated: Evaluated,
    challenges: Sequence[Challenge],
    rows: RowsFacts,
) -> PromotionRecord:
    """Return the record, still without the ids of runs and the digest of the bundle."""
    answers = {one.version: one.answer for one in challenges}
    models = {
        number: ModelFacts(
            evaluated.roles[number],
            None,
            model.version.model_id,
            model.version.made,
            answers.get(number),
        )
        for number, model in evaluated.models.items()
    }
    metrics = evaluated.settled.metrics
    values = {
        number: {
            metric: (
                evaluation.metrics[metric],
                evaluation.standard_errors.get(metric, float("nan")),
            )
            for metric in metrics
            if metric in evaluation.metrics
        }
        for number, evaluation in evaluated.evaluations.items()
    }
    undecided = [one.rows_more for one in challenges if one.answer is Answer.CANNOT_TELL]
    numbers = list(filter(math.isfinite, undecided))
    return replace(
        empty_record(request, found),
        answer=_overall(challenges),
        chosen=_chosen(request, evaluated, challenges),
        rows=rows,
        models=models,
        values=values,
        pairs=(
            *(pair for one in challenges for pair in one.pairs),
            *_pairs_of_champions(evaluated, found),
        ),
        looks={
            one.version: tuple(look.run_id for look in one.looks) for one in challenges if one.looks
        },
        joined=tuple(pair for one in challenges for pair in one.joined),
        gates=tuple(
            GateFacts(one.version, check.gate.text, check.outcome, check.value, check.rows_more)
            for one in challenges
            for check in one.checks
        ),
        rows_more=min(numbers, default=float("nan")),
    )


def _overall(challenges: Sequence[Challenge]) -> Answer | None:
    """Return the answer for all challengers: promote if one passes, keep if all are refuted."""
    answers = {one.answer for one in challenges}
    for answer in (Answer.PROMOTE, Answer.CANNOT_TELL, Answer.KEEP):
        if answer in answers:
            return answer
    return None


def _pairs_of_champions(evaluated: Evaluated, found: Found) -> list[PairFacts]:
    """Return the differences between the champion and the previous and first champions."""
    if found.champion is None:
        return []
    champion = found.champion.number
    champions = found.chain.champions(champion)
    others = dict.fromkeys([*champions[-2:-1], *champions[:1]])
    return [
        pair_facts(
            champion,
            evaluated.evaluations[champion],
            other,
            evaluated.evaluations[other],
            evaluated.settled.rank_by,
        )
        for other in others
        if other != champion and other in evaluated.models
    ]
