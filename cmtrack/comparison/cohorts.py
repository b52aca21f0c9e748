"""Which runs may stand in one order: those of the same data, judged in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cmtrack.comparison.ranking import Candidate, Ranking
from cmtrack.statistics import LabelDigest

_DESIGN = {
    "labels": "with different classes",
    "grouping": "under different groupings",
    "positive": "for different positive groups",
    "families": "with different families of codes",
}


def split(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Parts that may be ranked, the largest first, in a stable order.

    Two runs are of the same data where their labels' digests are equal and their row ids are not known to differ.
    Digests of tables know no order: without row ids they say that there are as many rows of each label, and a table is
    ranked with tables and arrays on that ground alone, with errors that take no advantage of pairs.
    """
    chosen = list(candidates)
    tables = {digest.content_only for digest in map(_digest, chosen) if not digest.ordered}
    alike: dict[object, list[Candidate]] = {}
    for candidate in chosen:
        digest, evaluation = _digest(candidate), candidate.evaluation
        data = digest.content_only if digest.content_only in tables else digest
        key = data, evaluation.design, f"{evaluation.n_samples:.9g}"
        alike.setdefault(key, []).append(candidate)
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
    designs = [dict(e.design) for e in evaluations]
    if len({tuple(design) for design in designs}) > 1:
        reasons.append("some by single labels, some by sets of codes in families")
    reasons += [
        said for name, said in _DESIGN.items() if len({design[name] for design in designs if name in design}) > 1
    ]
    why = " and ".join(reasons) or "with different sample weights"
    return (
        f"The runs were judged {why}: they stand in {len(rankings)} separate rankings, and values of different "
        "rankings must not be compared.",
    )


def _digest(candidate: Candidate) -> LabelDigest:
    return candidate.evaluation.statistics.digest
