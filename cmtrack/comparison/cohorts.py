"""Which runs may stand in one order: those of the same data, grouping and positive group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cmtrack.comparison.ranking import Candidate, Ranking
from cmtrack.evaluation import Evaluation


def split(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Parts that may be ranked, the largest first, in a stable order.

    Two runs are of the same data where their labels' digests are equal and their row ids are not known to differ.
    """
    alike: dict[object, list[Candidate]] = {}
    for candidate in candidates:
        alike.setdefault(_key(candidate.evaluation), []).append(candidate)
    parts: list[list[Candidate]] = []
    for group in alike.values():
        ids = {candidate.evaluation.statistics.row_ids for candidate in group}
        if len(ids - {None}) <= 1:
            parts.append(group)
            continue
        by_ids: dict[object, list[Candidate]] = {}
        for candidate in group:
            by_ids.setdefault(candidate.evaluation.statistics.row_ids, []).append(candidate)
        parts += by_ids.values()
    return sorted(parts, key=len, reverse=True)


def apart(rankings: Sequence[Ranking]) -> tuple[str, ...]:
    """A sentence that says why there is more than one ranking; nothing where there is one."""
    if len(rankings) < 2:
        return ()
    evaluations = [ranking.evaluation for ranking in rankings]
    reasons = []
    if len({e.labels_digest for e in evaluations}) > 1 or len({e.statistics.row_ids for e in evaluations}) > 1:
        reasons.append("on different evaluation data")
    if len({repr(e.labels) for e in evaluations}) > 1:
        reasons.append("with different classes")
    if len({_grouping(e) for e in evaluations}) > 1:
        reasons.append("under different groupings")
    if len({e.positive for e in evaluations}) > 1:
        reasons.append("for different positive groups")
    why = " and ".join(reasons) or "with different sample weights"
    return (
        f"The runs were judged {why}: they stand in {len(rankings)} separate rankings, and values of different "
        "rankings must not be compared.",
    )


def _key(evaluation: Evaluation) -> object:
    return (
        evaluation.labels_digest,
        repr(evaluation.labels),
        _grouping(evaluation),
        str(evaluation.positive),
        f"{evaluation.n_samples:.9g}",
    )


def _grouping(evaluation: Evaluation) -> str:
    return "" if evaluation.grouping is None else repr(evaluation.grouping.to_dict())
