"""Verification of a promotion from its record, its rule and its bundle in the store."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.history import Problem, ProblemKind
from cmtrack.comparison.promotion import Chain, RecordedPromotion, decide, pair_facts
from cmtrack.comparison.promotion_record import MAX_BYTES, PairFacts, PromotionRecord
from cmtrack.comparison.run import Candidate, Run
from cmtrack.evaluation.gates import Gate
from cmtrack.report.review import bundle
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.promotion import records

if TYPE_CHECKING:
    from mlflow import MlflowClient

MAX_BUNDLE = 1 << 30
"""Largest size of a bundle that is read."""


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
        _recompute(promotion, chain, evaluations, has_rows)
    except Exception as error:  # a forged file may break any part of the computation
        sentence = f"The record of run {run_id} was not confirmed: {first_line(error)}."
        return Problem(ProblemKind.CHANGED, sentence, run_id)
    if result.outcome is not bundle.Outcome.VERIFIED or not has_rows:
        reason = "rows are not stored"
        if has_rows:
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
    if record.rule is None or record.rows is None:
        raise _Differs("it has a bundle, but no rule or no rows")
    by_version = {}
    for version, facts in record.models.items():
        evaluation = evaluations[str(facts.run)].at_level(record.rule.level)
        by_version[version] = evaluation
        for metric, (value, error) in record.values[version].items():
            _check(value, evaluation.metrics[metric], f"{metric} of version {version}")
            found = evaluation.standard_errors.get(metric, math.nan)
            _check(error, found, f"the standard error of {metric} of version {version}")
    digest = next(iter(by_version.values())).labels_digest
    if digest != record.rows.labels:
        raise _Differs("the rows are not those of the bundle")
    if has_rows:
        _check_pairs(record.pairs, list(_pairs(record, by_version)))
        _check_decisions(promotion, chain, by_version)


def _pairs(
    record: PromotionRecord, evaluations: Mapping[str, BaseEvaluation]
) -> Iterator[PairFacts]:
    for pair in record.pairs:
        yield pair_facts(
            pair.new, evaluations[pair.new], pair.old, evaluations[pair.old], pair.metric
        )


def _check_pairs(stated: tuple[PairFacts, ...], computed: list[PairFacts]) -> None:
    if len(stated) != len(computed):
        raise _Differs(f"it has {len(stated)} differences, recomputed {len(computed)}")
    for one, other in zip(stated, computed, strict=True):
        what = f"the difference in {one.metric} between versions {one.new} and {one.old}"
        if (one.new, one.old, one.metric) != (other.new, other.old, other.metric):
            raise _Differs(f"{what} is not the one that was recomputed")
        for name in ("difference", "standard_error", "low", "high"):
            _check(getattr(one, name), getattr(other, name), what)
        for number, found in zip(one.counts or (), other.counts or (), strict=True):
            _check(number, found, what)


def _check_decisions(
    promotion: RecordedPromotion, chain: Chain, evaluations: Mapping[str, BaseEvaluation]
) -> None:
    """Recompute the answer for each challenger."""
    record = promotion.record
    champion = record.champion
    if record.rule is None or record.rows is None or champion is None:
        return
    candidate = Candidate(Run(champion, champion), evaluations[champion])
    gates = [Gate.parse(text) for text in record.rule.require]
    before = chain.before(promotion)
    joined: list[PairFacts] = []
    for version in record.challengers:
        looks = before.looks(version, champion, record.rule.question)
        challenge = decide(
            (version, evaluations[version]),
            (champion, candidate),
            gates,
            record.rule.rank_by,
            looks.without_rows(record.rows),
        )
        if challenge.answer is not record.models[version].answer:
            raise _Differs(
                f"the answer for version {version} is {challenge.answer.value!r} when recomputed"
            )
        joined += challenge.joined
        stated = [gate for gate in record.gates if gate.version == version]
        for gate, check in zip(stated, challenge.checks, strict=True):
            _check(gate.value, check.value, f"the gate {gate.text!r}")
            if gate.outcome is not check.outcome:
                raise _Differs(f"the gate {gate.text!r} has another outcome when recomputed")
    _check_pairs(record.joined, joined)


def _check(stated: float, computed: float, what: str) -> None:
    """Raise an error if two numbers differ by more than the tolerance."""
    both_undefined = math.isnan(stated) and not math.isfinite(computed)
    if both_undefined:
        return
    if not math.isclose(stated, computed, rel_tol=bundle.TOLERANCE, abs_tol=bundle.TOLERANCE):
        raise _Differs(f"{what} is {stated:.6g}, recomputed {computed:.6g}")
