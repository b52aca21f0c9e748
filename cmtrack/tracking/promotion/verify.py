"""Verification of a promotion from its record, its rule and its bundle in the store."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.history import Problem, ProblemKind
from cmtrack.comparison.promotion import Chain, Challenge, RecordedPromotion, decide, pair_facts
from cmtrack.comparison.promotion_record import (
    MAX_BYTES,
    PairFacts,
    PromotionRecord,
    RowsFacts,
    RuleFacts,
)
from cmtrack.comparison.run import Candidate, Run
from cmtrack.comparison.verdict import Answer
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.evaluation.gates import Gate
from cmtrack.report.review import bundle
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.promotion import records

if TYPE_CHECKING:
    from mlflow import MlflowClient

MAX_BUNDLE = 1 << 30
"""Largest size of a bundle that is read."""
_ORDER = (Answer.PROMOTE, Answer.CANNOT_TELL, Answer.KEEP)
"""Answers for several challengers: the first of these that a challenger has."""


class _Differs(ValueError):
    """Error raised if a number in a record differs from the recomputed number."""


def verify_promotion(
    promotion: RecordedPromotion, chain: Chain, run: Any, client: MlflowClient
) -> Problem | None:
    """Recompute a promotion from the store; return the problem, or None if all numbers agree.

    ``chain``: all promotions, because earlier looks are joined.
    ``run``: MLflow's entity of the promotion run.
    """
    run_id = promotion.run_id
    try:
        content = records.read_artifact(run, records.RECORD_FILE, client, MAX_BYTES)
        if content != promotion.content:
            raise _Differs("its file differs from its tag")
        if promotion.record.bundle is None:
            _check_without_rows(promotion.record)
            return None
        archive = records.read_artifact(run, records.BUNDLE_FILE, client, MAX_BUNDLE)
    except _Differs as error:
        return Problem(ProblemKind.CHANGED, f"The record of run {run_id}: {error}.", run_id)
    except Exception as error:  # an artifact store may raise anything
        sentence = f"The files of run {run_id} cannot be read: {first_line(error)}."
        return Problem(ProblemKind.GONE, sentence, run_id)
    try:
        with tempfile.TemporaryDirectory(prefix="cmtrack-") as folder:
            path = Path(folder) / "bundle.zip"
            path.write_bytes(archive)
            result = bundle.verify(path)
            evaluations = bundle.read_evaluations(path)
        _check_bundle(promotion.record, result)
        has_rows = all(evaluation.rows is not None for evaluation in evaluations.values())
        own = _own_metrics(promotion.record)
        _recompute(promotion, chain, evaluations, has_rows and not own)
    except Exception as error:  # a forged file may break any part of the computation
        sentence = f"The record of run {run_id} was not confirmed: {first_line(error)}."
        return Problem(ProblemKind.CHANGED, sentence, run_id)
    if result.outcome is not bundle.Outcome.VERIFIED or not has_rows or own:
        reason = "rows are not stored"
        if own:
            reason = f"{own[0]} is not a metric of cmtrack"
        elif has_rows:
            reason = "; ".join(result.not_recomputed) or result.outcome.value
        sentence = f"The record of run {run_id} was verified by statistics only: {reason}."
        return Problem(ProblemKind.NOT_RECOMPUTED, sentence, run_id)
    return None


def _check_bundle(record: PromotionRecord, result: bundle.Verification) -> None:
    if result.sha256 != record.bundle:
        raise _Differs("the bundle is not the one in the record")
    if result.problems:
        raise _Differs(result.problems[0])


def _recompute(
    promotion: RecordedPromotion,
    chain: Chain,
    evaluations: Mapping[str, BaseEvaluation],
    has_rows: bool,
) -> None:
    """Compare values, differences and answers with those of the bundle's evaluations."""
    record = promotion.record
    rule = record.rule
    if rule is None or record.rows is None:
        raise _Differs("it has a bundle, but no rule or no rows")
    if {str(facts.run) for facts in record.models.values()} != set(evaluations):
        raise _Differs("the versions differ from the bundle")
    gates = [Gate.parse(text) for text in rule.require]
    by_version = {
        version: evaluations[str(facts.run)].at_level(rule.level)
        for version, facts in record.models.items()
    }
    _check_rows(record.rows, next(iter(by_version.values())))
    _check_values(record, [rule.rank_by, *_metrics_of(gates)], by_version)
    if not has_rows:
        return
    challenges = _challenges(promotion, chain, rule, gates, by_version)
    required = [pair for one in challenges for pair in one.pairs]
    required += _pairs_of_champions(record, rule, by_version)
    optional = [
        pair
        for pair in _pairs_of_challengers(record, rule, by_version)
        if record.pair(pair.new, pair.old, pair.metric) is not None
    ]
    _check_pairs(record.pairs, [*required, *optional])
    _check_pairs(record.joined, [pair for one in challenges for pair in one.joined])
    _check_gates(record, challenges)
    _check_decision(record, rule, challenges, by_version)


def _check_without_rows(record: PromotionRecord) -> None:
    """Raise an error if a record without a bundle states more than a move by force."""
    is_empty = not (record.values or record.pairs or record.joined or record.gates or record.looks)
    answers = [facts.answer for facts in record.models.values()]
    if record.rule is not None or record.rows is not None or not is_empty:
        raise _Differs("it has numbers, but no bundle")
    if record.forced is None or record.answer is not None or any(answers):
        raise _Differs("it has an answer, but no bundle")
    if record.challengers != (record.chosen,):
        raise _Differs("the chosen version is not the one that was given")


def _check_rows(rows: RowsFacts, evaluation: BaseEvaluation) -> None:
    ids = evaluation.statistics.row_ids
    if rows.labels != evaluation.labels_digest or rows.ids != (None if ids is None else str(ids)):
        raise _Differs("the rows differ from the bundle")
    _check(rows.n, float(evaluation.n_samples), "the number of rows")
    if isinstance(evaluation, Evaluation) and rows.clusters != evaluation.n_clusters:
        raise _Differs("the number of clusters differs from the bundle")


def _own_metrics(record: PromotionRecord) -> list[str]:
    """Return the metrics of the rule that only the author's code can compute."""
    if record.rule is None:
        return []
    names = [record.rule.rank_by, *_metrics_of(map(Gate.parse, record.rule.require))]
    return [name for name in names if not BUILT_IN.has(name)]


def _metrics_of(gates: Iterable[Gate]) -> list[str]:
    return [gate.metric for gate in gates if not gate.of_flips]


def _check_values(
    record: PromotionRecord, metrics: Iterable[str], evaluations: Mapping[str, BaseEvaluation]
) -> None:
    """Compare the values of the rule's metrics, and which values there are."""
    names = set(metrics)
    _check_same(record.values, evaluations, "the versions with values")
    for version, evaluation in evaluations.items():
        values = record.values[version]
        _check_same(values, names & set(evaluation.metrics), f"the metrics of version {version}")
        for metric, (value, error) in values.items():
            _check(value, evaluation.metrics[metric], f"{metric} of version {version}")
            found = evaluation.standard_errors.get(metric, math.nan)
            _check(error, found, f"the standard error of {metric} of version {version}")


def _pairs_of_champions(
    record: PromotionRecord, rule: RuleFacts, evaluations: Mapping[str, BaseEvaluation]
) -> list[PairFacts]:
    """Return the differences between the champion and the earlier champions."""
    others = [name for name, facts in record.models.items() if facts.role in ("previous", "first")]
    return _over(record.champion, others, rule, evaluations)


def _pairs_of_challengers(
    record: PromotionRecord, rule: RuleFacts, evaluations: Mapping[str, BaseEvaluation]
) -> list[PairFacts]:
    """Return the differences between the champion and challengers, which may be in a record.

    A record has such a difference if the challenger was champion before.
    """
    return _over(record.champion, record.challengers, rule, evaluations)


def _over(
    champion: str | None,
    others: Iterable[str],
    rule: RuleFacts,
    evaluations: Mapping[str, BaseEvaluation],
) -> list[PairFacts]:
    if champion is None:
        return []
    return [
        pair_facts(champion, evaluations[champion], other, evaluations[other], rule.rank_by)
        for other in others
    ]


def _check_pairs(stated: Sequence[PairFacts], computed: Sequence[PairFacts]) -> None:
    """Compare differences, and which differences there are; their order has no meaning."""
    by_key = {(pair.new, pair.old, pair.metric): pair for pair in computed}
    keys = [(pair.new, pair.old, pair.metric) for pair in stated]
    if len(keys) != len(by_key):
        raise _Differs(f"it has {len(keys)} differences, recomputed {len(by_key)}")
    for key, one in zip(keys, stated, strict=True):
        what = f"the difference in {one.metric} between versions {one.new} and {one.old}"
        if key not in by_key:
            raise _Differs(f"{what} is not the one that was recomputed")
        other = by_key.pop(key)
        for name in ("difference", "standard_error", "low", "high"):
            _check(getattr(one, name), getattr(other, name), what)
        if (one.counts is None) != (other.counts is None):
            raise _Differs(f"the counts of {what} are missing or were added")
        for number, found in zip(one.counts or (), other.counts or (), strict=True):
            _check(number, found, what)


def _challenges(
    promotion: RecordedPromotion,
    chain: Chain,
    rule: RuleFacts,
    gates: Sequence[Gate],
    evaluations: Mapping[str, BaseEvaluation],
) -> list[Challenge]:
    """Decide on each challenger again; empty if there was no champion."""
    record = promotion.record
    champion = record.champion
    if record.rows is None or champion is None:
        return []
    candidate = Candidate(Run(champion, champion), evaluations[champion])
    before = chain.before(promotion)
    challenges = []
    for version in record.challengers:
        looks = before.looks(version, champion, rule.question)
        challenges.append(
            decide(
                (version, evaluations[version]),
                (champion, candidate),
                gates,
                rule.rank_by,
                looks.without_rows(record.rows),
            )
        )
    return challenges


def _check_gates(record: PromotionRecord, challenges: Sequence[Challenge]) -> None:
    """Compare the outcomes of gates, and which gates there are."""
    n_gates = sum(len(challenge.checks) for challenge in challenges)
    if len(record.gates) != n_gates:
        raise _Differs(f"it has {len(record.gates)} gates, recomputed {n_gates}")
    for challenge in challenges:
        stated = [gate for gate in record.gates if gate.version == challenge.version]
        texts = [check.gate.text for check in challenge.checks]
        if [gate.text for gate in stated] != texts:
            raise _Differs(f"the gates of version {challenge.version} are not those of the rule")
        for gate, check in zip(stated, challenge.checks, strict=True):
            _check(gate.value, check.value, f"the gate {gate.text!r}")
            _check_more(gate.rows_more, [check.rows_more], f"the gate {gate.text!r}")
            if gate.outcome is not check.outcome:
                raise _Differs(f"the gate {gate.text!r} has another outcome when recomputed")


def _check_decision(
    record: PromotionRecord,
    rule: RuleFacts,
    challenges: Sequence[Challenge],
    evaluations: Mapping[str, BaseEvaluation],
) -> None:
    """Compare the answers, the earlier looks, the chosen version, and the number of more rows."""
    answers = {challenge.version: challenge.answer for challenge in challenges}
    for version, facts in record.models.items():
        answer = answers.get(version)
        if facts.answer is not answer:
            raise _Differs(f"the answer for version {version} is {_word(answer)} when recomputed")
    looks = {one.version: tuple(look.run_id for look in one.looks) for one in challenges}
    if {version: runs for version, runs in looks.items() if runs} != dict(record.looks):
        raise _Differs("the earlier looks are not those of the records before")
    answer = next((one for one in _ORDER if one in answers.values()), None)
    if record.answer is not answer:
        raise _Differs(f"the answer is {_word(answer)} when recomputed")
    chosen = _chosen(record, rule, challenges, evaluations)
    if record.chosen not in chosen:
        name = "no version" if chosen == {None} else f"version {min(map(str, chosen))}"
        raise _Differs(f"the chosen version is {name} when recomputed")
    open_ = [one.rows_more for one in challenges if one.answer is Answer.CANNOT_TELL]
    _check_more(record.rows_more, open_, "the number of further rows")


def _word(answer: Answer | None) -> str:
    return "none" if answer is None else repr(answer.value)


def _chosen(
    record: PromotionRecord,
    rule: RuleFacts,
    challenges: Sequence[Challenge],
    evaluations: Mapping[str, BaseEvaluation],
) -> set[str | None]:
    """Return the version that is to be chosen; several versions if they are equally good."""
    if record.forced is not None:
        return {*record.challengers}
    passing = [one for one in challenges if one.answer is Answer.PROMOTE]
    if not passing:
        return {None}
    better = evaluations[passing[0].version].catalog.lookup(rule.rank_by).better
    sign = -1 if better == "lower" else 1
    gains = {one.version: sign * one.difference(rule.rank_by).difference for one in passing}
    best = max(gains.values())
    return {version for version, gain in gains.items() if gain >= best - bundle.TOLERANCE}


def _check_same(stated: Collection[str], computed: Collection[str], what: str) -> None:
    different = set(stated) ^ set(computed)
    if different:
        raise _Differs(f"{what} differ when recomputed: {min(different)}")


def _check_more(stated: float, computed: Sequence[float], what: str) -> None:
    """Raise an error if a number of further rows is none of the recomputed numbers.

    The numbers are whole, so the last digits of an estimate may change one by 1.
    """
    finite = [number for number in computed if math.isfinite(number)]
    if math.isnan(stated) and len(finite) < max(len(computed), 1):
        return
    found = min(finite, default=math.nan)
    if not math.isclose(stated, found, rel_tol=bundle.TOLERANCE, abs_tol=1.0):
        raise _Differs(f"{what} is {stated:.6g}, recomputed {found:.6g}")


def _check(stated: float, computed: float, what: str) -> None:
    """Raise an error if two numbers differ by more than the tolerance."""
    both_undefined = math.isnan(stated) and not math.isfinite(computed)
    if both_undefined:
        return
    if not math.isclose(stated, computed, rel_tol=bundle.TOLERANCE, abs_tol=bundle.TOLERANCE):
        raise _Differs(f"{what} is {stated:.6g}, recomputed {computed:.6g}")
