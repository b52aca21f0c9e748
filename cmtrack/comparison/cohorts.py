"""Which runs may stand in one order: those of the same data, alike in all that the comparison reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.criterion import Criterion, reads
from cmtrack.comparison.gates import Gate
from cmtrack.comparison.ranking import Candidate, Ranking, content
from cmtrack.comparison.tie_breakers import TieBreaker
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.catalog import lookup
from cmtrack.names import distinct, quoted
from cmtrack.statistics import LabelDigest
from cmtrack.untrusted import one_line

_WIDTH = 80
_READ_BY_SOME = ("grouping", "positive")  # parts of a design that only some metrics depend on


def read_by(criterion: Criterion, gates: Iterable[Gate], rules: Iterable[TieBreaker]) -> frozenset[str]:
    """What the criterion, the gates and the tie-breakers read beside the labels: "grouping", "positive", or nothing."""
    names = [*criterion.metrics, *(gate.metric for gate in gates)]
    for rule in rules:
        name = rule.name.removeprefix("metrics.")  # a logged metric may be one of the registry
        try:
            names.append(lookup(name).name and name)
        except KeyError:
            continue
    return frozenset().union(*map(reads, names))


def split(candidates: Iterable[Candidate], read: frozenset[str]) -> list[list[Candidate]]:
    """Parts that may be ranked, that of the most rows first, parents before their children.

    Two runs are of the same data where their labels' digests are equal and their row ids are not known to differ.
    Digests of tables know no order: without row ids they say that there are as many rows of each label, and a table is
    ranked with tables and arrays on that ground alone, with errors that take no advantage of pairs.

    Parameters
    ----------
    candidates : iterable of Candidate
    read : frozenset of str
        From :func:`read_by`: runs of different groupings or positive groups are separate only where these are read.
    """
    chosen = list(candidates)
    tables = {digest.content_only for digest in map(_digest, chosen) if not digest.ordered}
    alike: dict[object, list[Candidate]] = {}
    for candidate in chosen:
        digest, evaluation = _digest(candidate), candidate.evaluation
        data = digest.content_only if digest.content_only in tables else digest
        key = data, _design(evaluation, read), f"{evaluation.n_samples:.9g}"
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
    depth = _depths(chosen)
    # the last key only makes the order the same whatever the order of the runs
    return sorted(parts, key=lambda part: (-_rows(part), min(depth[c.run_id] for c in part), min(map(content, part))))


def decides(parts: Sequence[Sequence[Candidate]]) -> bool:
    """Whether the first part is the one to decide by: of the most rows, or the parents of the next ones."""
    if len(parts) < 2 or _rows(parts[0]) > _rows(parts[1]):
        return bool(parts)
    depth = _depths([candidate for part in parts for candidate in part])
    return min(depth[c.run_id] for c in parts[0]) < min(depth[c.run_id] for c in parts[1])


def _rows(part: Sequence[Candidate]) -> int:
    return max(_digest(candidate).rows for candidate in part)


def _depths(candidates: Iterable[Candidate]) -> dict[str, int]:
    """How many of the other candidates each one is nested in."""
    parents = {candidate.run_id: candidate.run.parent_run_id for candidate in candidates}
    out = {}
    for run_id in parents:
        above: list[str] = []
        parent = parents[run_id]
        while parent in parents and parent not in above:
            above.append(parent)
            parent = parents[parent]
        out[run_id] = len(above)
    return out


def _design(evaluation: BaseEvaluation, read: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in evaluation.design if name in read or name not in _READ_BY_SOME)


def _digest(candidate: Candidate) -> LabelDigest:
    return candidate.evaluation.statistics.digest


# -- what a reader is told ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fact:
    """Something in which rankings may differ.

    Attributes
    ----------
    key : callable
        What must be equal.
    shown : callable
        The words for it in a heading.
    why : str
        How a sentence says that it differs.
    """

    key: Callable[[BaseEvaluation], object]
    shown: Callable[[BaseEvaluation], str]
    why: str


def _design_of(name: str) -> Callable[[BaseEvaluation], object]:
    return lambda evaluation: dict(evaluation.design).get(name)


def _grouped(evaluation: BaseEvaluation) -> str:
    steps = [] if evaluation.grouping is None else [quoted(step.name) for step in evaluation.grouping.steps]
    return f"grouped by {', then '.join(steps)}" if steps else "not grouped"


def _classes(evaluation: BaseEvaluation) -> str:
    return "classes " + ", ".join(map(one_line, evaluation.labels))


_DATA = _Fact(
    lambda e: (e.labels_digest, e.statistics.row_ids),
    lambda e: (
        f"evaluation data {e.labels_digest.rsplit('.', 1)[-1][:8]}"
        + ("" if e.statistics.row_ids is None else f", row ids {str(e.statistics.row_ids)[:8]}")
    ),
    "on different evaluation data",
)
_FACTS = {
    "data": _DATA,
    "kind": _Fact(
        lambda e: isinstance(e, Evaluation),
        lambda e: "single labels" if isinstance(e, Evaluation) else "sets of codes in families",
        "some by single labels, some by sets of codes in families",
    ),
    "labels": _Fact(_design_of("labels"), _classes, "with different classes"),
    "grouping": _Fact(_design_of("grouping"), _grouped, "under different groupings"),
    "positive": _Fact(
        _design_of("positive"),
        lambda e: "no positive group" if e.positive is None else f"positive group {quoted(e.positive)}",
        "for different positive groups",
    ),
    "families": _Fact(
        _design_of("families"),
        lambda e: f"families {dict(e.design).get('families', '')[:8]}",
        "with different families of codes",
    ),
    "none": _Fact(
        _design_of("none"),
        lambda e: "spans" if dict(e.design).get("none") else "no spans",
        "some as spans, some as rows",
    ),
    "weights": _Fact(lambda e: f"{e.n_samples:.9g}", lambda e: f"weight {e.n_samples:g}", "with different weights"),
}


def differing(rankings: Sequence[Ranking], read: frozenset[str]) -> list[str]:
    """Names of what differs between rankings, of what the comparison reads."""
    evaluations = [ranking.evaluation for ranking in rankings]
    single = [e for e in evaluations if isinstance(e, Evaluation)]
    out = []
    for name, fact in _FACTS.items():
        if name in _READ_BY_SOME and name not in read:
            continue
        if name == "weights" and "data" in out:  # other rows have another weight
            continue
        among = single if name in ("labels", "grouping", "positive") else evaluations
        if name == "families":
            among = [e for e in evaluations if not isinstance(e, Evaluation)]
        if len({fact.key(e) for e in among}) > 1:
            out.append(name)
    return out


def headings(rankings: Sequence[Ranking], read: frozenset[str]) -> list[str]:
    """For each of several rankings what tells it from the others, such as "grouped by “parity”"."""
    names = differing(rankings, read)
    if names == ["data"] or not names:  # their sizes may say it
        sizes = Counter(ranking.evaluation.statistics.digest.rows for ranking in rankings)
        if max(sizes.values(), default=0) == 1:
            return [""] * len(rankings)
    columns = []
    for name in names or ["data"]:
        fact = _FACTS[name]
        shown = [fact.shown(ranking.evaluation) for ranking in rankings]
        keys = {text: {fact.key(r.evaluation) for r, s in zip(rankings, shown, strict=True) if s == text}
                for text in shown}  # fmt: skip
        if name == "grouping" and any(len(found) > 1 for found in keys.values()):  # the same name, another content
            shown = [
                shown[place]
                if r.evaluation.grouping is None
                else f"grouped {one_line(r.evaluation.grouping.describe())}"
                for place, r in enumerate(rankings)
            ]
        columns.append(distinct(shown, _WIDTH))
    return ["; ".join(parts) for parts in zip(*columns, strict=True)]


def why_apart(rankings: Sequence[Ranking], read: frozenset[str]) -> str:
    """How the runs of several rankings were judged differently; empty where there is one ranking."""
    if len(rankings) < 2:
        return ""
    return " and ".join(_FACTS[name].why for name in differing(rankings, read)) or _DATA.why


def apart(rankings: Sequence[Ranking], read: frozenset[str]) -> tuple[str, ...]:
    """A sentence that says why there is more than one ranking; nothing where there is one."""
    why = why_apart(rankings, read)
    if not why:
        return ()
    return (f"The runs were judged {why}, so that they stand in {len(rankings)} separate rankings.",)
