"""Which runs may stand in one order: those of the same data, judged in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cmtrack.comparison.ranking import Candidate, Ranking
from cmtrack.evaluation.face import Judged

_DESIGN = {
    "labels": "with different classes",
    "grouping": "under different groupings",
    "positive": "for different positive groups",
    "families": "with different families of codes",
}


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


def _key(evaluation: Judged) -> object:
    return evaluation.labels_digest, evaluation.design, f"{evaluation.n_samples:.9g}"
